"""gpuready fabric --tests train and collective on three machines over gloo: figures, the host that is bad, lost
packets, a dead host, and nothing left.
"""

import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab, Machine, scale
from tests.system.faults import until
from tests.system.harness import Gpuready, Inventories, listing


@pytest.fixture(scope="module")
def nodes(lab: Lab) -> Iterator[list[Machine]]:
    """Three machines with PyTorch."""
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        yield list(pool.map(lambda _: stack.enter_context(lab.machine(with_torch=True)), range(3)))


@pytest.fixture(scope="module")
def hosts(nodes: list[Machine], inventory: Inventories) -> Path:
    return inventory(nodes, verify={"torch": "/usr/bin/python3"})


def train(gpuready: Gpuready, hosts: Path, code: int = 0) -> list[dict[str, Any]]:
    result = gpuready("fabric", "--tests", "train", "--seconds", "2", inventory=hosts, code=code)
    found: list[dict[str, Any]] = result.document["fabric"]["findings"]
    return found


def running(node: Machine) -> int:
    """The processes of a training: timeout, torchrun and the rank."""
    return int(
        node.run(
            r"ps -eo args | grep -c '[-]-nnodes [123]\|[-]-checkpoint /nonexistent\|[-]-collectives ' || true"
        ).stdout
    )


def await_nothing_left(nodes: list[Machine]) -> None:
    left = "ls -d /run/gpuready-fabric.* /dev/shm/*"
    until(lambda: not any(running(node) or node.run(left, check=False).stdout for node in nodes), 20)


def begin(gpuready: Gpuready, hosts: Path, nodes: list[Machine]) -> Any:
    """Start a training that does not end by itself, and wait for all of its ranks."""
    process = gpuready.start("fabric", "--tests", "train", "--seconds", "600", inventory=hosts)
    until(lambda: all(running(node) >= 3 for node in nodes), 60)
    return process


def test_three_hosts_train_together_also_if_packets_are_lost(
    nodes: list[Machine], hosts: Path, gpuready: Gpuready
) -> None:
    before = [listing(node) for node in nodes]
    found = train(gpuready, hosts)
    assert [each["client"]["host"] for each in found] == [node.name for node in nodes]
    assert {each["status"] for each in found} <= {"pass", "warn"}, found  # on a loaded machine, a host may be slow
    assert found[0]["value"] > 10 and "3 ranks, gloo, loss 0." in found[0]["summary"], found
    assert all("sent " in each["proof"] and 0 < each["more"]["own_ms"] <= each["more"]["step_ms"] for each in found)
    assert [listing(node) for node in nodes] == before
    await_nothing_left(nodes)

    *others, lossy = nodes
    peers = ",".join(node.address for node in others)
    lossy.run(f"iptables -I OUTPUT -d {peers} -m statistic --mode random --probability 0.1 -j DROP")
    slow = train(gpuready, hosts)
    assert {each["status"] for each in slow} <= {"pass", "warn"}, slow
    lost = int(lossy.run("iptables -nvxL OUTPUT | awk '/DROP/ {n += $1} END {print n}'").stdout)
    assert lost > 10, lost
    lossy.run("iptables -F OUTPUT")


def test_a_host_without_torch_is_named(nodes: list[Machine], hosts: Path, gpuready: Gpuready) -> None:
    nodes[1].run("mv /usr/lib/python3/dist-packages/torch /root/torch")
    found = train(gpuready, hosts, code=3)  # nothing was tested
    nodes[1].run("mv /root/torch /usr/lib/python3/dist-packages/torch")
    (summary,) = {each["summary"] for each in found}
    assert {each["status"] for each in found} == {"unknown"}
    assert summary == f"{nodes[1].name}: /usr/bin/python3 there finds no torch with gloo"
    await_nothing_left(nodes)


def test_an_interrupt_ends_all_ranks(nodes: list[Machine], hosts: Path, gpuready: Gpuready) -> None:
    process = begin(gpuready, hosts, nodes)
    process.send_signal(signal.SIGINT)
    gpuready.finish(process, code=130)
    await_nothing_left(nodes)


#: What the last machine's torch does in an all-reduce while a file is there.
SEAM = """
import os as _os

_all_reduce = all_reduce


def all_reduce(tensor, *args, **options):
    if tensor.numel() > 1000 and _os.path.exists("/etc/fault-wrong"):
        tensor[7] += 1
    if tensor.numel() > 1000 and _os.path.exists("/etc/fault-hang"):
        _os.kill(_os.getpid(), 19)
    return _all_reduce(tensor, *args, **options)
"""


def collective(gpuready: Gpuready, hosts: Path, code: int = 0) -> dict[str, Any]:
    result = gpuready("fabric", "--tests", "collective", "--seconds", "1", inventory=hosts, code=code)
    found: dict[str, Any] = result.document["fabric"]
    return found


def test_collectives_on_all_hosts_have_figures_by_size(nodes: list[Machine], hosts: Path, gpuready: Gpuready) -> None:
    found = collective(gpuready, hosts)
    assert {each["status"] for each in found["findings"]} == {"pass"}, found["findings"]
    assert all("sent " in each["proof"] and each["value"] > 0 for each in found["findings"])
    names = {each["collective"] for each in found["collectives"]}
    assert names == {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
    first = found["collectives"][0]
    assert (first["collective"], first["ranks"], first["size"]) == ("all_reduce", 3, (1 << 20) // 12 * 12)
    assert first["busbw"] == pytest.approx(first["size"] / first["microseconds"] / 1000 * 4 / 3, rel=0.01)
    assert "search" not in found
    await_nothing_left(nodes)


@pytest.mark.parametrize("fault", ["wrong", "hang"])
@pytest.mark.fault("collective-host-bad")
def test_the_host_that_spoils_or_stops_a_collective_is_named(
    fault: str, nodes: list[Machine], hosts: Path, gpuready: Gpuready
) -> None:
    *others, bad = nodes
    module = bad.root / "usr/lib/python3/dist-packages/torch/distributed/__init__.py"
    whole = module.read_text("utf-8")
    module.write_text(whole + SEAM, "utf-8")
    bad.run(f"touch /etc/fault-{fault}")
    found = collective(gpuready, hosts, code=3)
    bad.run(f"rm /etc/fault-{fault}")
    module.write_text(whole, "utf-8")
    search = found["search"]
    assert search["named"] == [bad.name] and search["cleared"] == [node.name for node in others], search
    assert max(each["round"] for each in search["tried"]) <= search["most_rounds"] == 4
    assert [each["status"] for each in found["findings"]] == ["pass", "pass", "fail"], found["findings"]
    cause = "wrong result: all-reduce of 1 MiB on ranks 0, 1, 2" if fault == "wrong" else "Timed out waiting"
    assert cause in found["findings"][2]["summary"], found["findings"][2]
    await_nothing_left(nodes)


@pytest.mark.fault("collective-host-slow")
def test_the_host_with_a_slow_network_is_named(
    nodes: list[Machine], inventory: Inventories, gpuready: Gpuready
) -> None:
    """The limit is three times what its interface sends, and far below what the others reach on a busy machine."""
    *others, slow = nodes
    python = {"torch": "/usr/bin/python3", "thresholds": {"collective": 0.004}}
    hosts = inventory(nodes, verify=python)
    route = slow.run(f"ip -o route get {others[0].address}").stdout
    device = route.split(" dev ")[1].split()[0]
    slow.run(f"tc qdisc add dev {device} root tbf rate 10mbit burst 64k latency 1200ms")
    found = collective(gpuready, hosts, code=3)
    slow.run(f"tc qdisc del dev {device} root")
    search = found["search"]
    assert search["named"] == [slow.name] and search["cleared"] == [node.name for node in others], search
    assert [each["status"] for each in found["findings"]] == ["pass", "pass", "fail"], found["findings"]
    assert "below 0.004" in found["findings"][2]["summary"], found["findings"][2]
    await_nothing_left(nodes)


@pytest.mark.fault("train-host-dies")
def test_a_host_that_dies_ends_the_training_and_is_named(nodes: list[Machine], hosts: Path, gpuready: Gpuready) -> None:
    *others, dying = nodes
    process = begin(gpuready, hosts, nodes)
    dying.kill()
    killed = time.monotonic()
    result = gpuready.finish(process, code=4)
    assert time.monotonic() - killed < scale.seconds(30)
    found = result.document["fabric"]["findings"]
    (summary,) = {each["summary"] for each in found}
    assert {each["status"] for each in found} == {"unknown"}
    assert re.match(f"the training was ended: {dying.name}: ", summary), summary
    assert result.host(dying.name)["outcome"] == "unreachable"
    await_nothing_left(others)

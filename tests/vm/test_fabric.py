"""gpuready fabric between two virtual machines over soft RoCE: real tools, figures, proof, and no leftovers."""

import csv
import signal
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import VM
from tests.system.faults import until
from tests.system.harness import Gpuready, Inventories, Result

TOOLS = "rping|ib_write_bw|ib_read_lat|timeout"


@pytest.fixture(scope="module")
def roce(pair: tuple[VM, VM]) -> Iterator[tuple[VM, VM]]:
    """The pair, with a soft RoCE device each."""
    for vm in pair:
        vm.rxe()
    yield pair


def left(vm: VM) -> str:
    """What a test could leave behind: its processes, listeners, directories."""
    return vm.run(
        f"pgrep -xl '{TOOLS}'; ls -d /run/gpuready-fabric.* /tmp/gpuready-fabric.* 2>/dev/null;"
        " grep -E ':48[5-9][0-9A-F] [0-9A-F]+:[0-9A-F]+ 0A' /proc/net/tcp; rdma resource show cm_id | grep LISTEN; true"
    ).stdout


def await_nothing_left(*vms: VM) -> None:
    """The node ends what it runs when the connection goes: within seconds, and not by a later run."""
    until(lambda: not any(left(vm) for vm in vms), 20, "nothing is left")


def begun(gpuready: Gpuready, *vms: VM, inventory: Path) -> subprocess.Popen[str]:
    """A run in the middle of a bandwidth test: the tool runs at both ends.

    Looking costs such a machine so much that the tool may lose its peer over it; then the run is begun anew.
    """
    ended = []
    for _ in range(4):
        process = gpuready.start("fabric", "--tests", "write_bw", "--seconds", "120", inventory=inventory)
        while process.poll() is None:
            if all(vm.run("pgrep -x ib_write_bw || true").stdout for vm in vms):
                return process
            time.sleep(0.2)
        ended.append(process.communicate())
    raise AssertionError(f"no run lasted until it was seen at both ends: {ended}")


def findings(result: Result, test: str) -> list[dict[str, object]]:
    return [each for each in result.document["fabric"]["findings"] if each["test"] == test]


@pytest.mark.core
def test_two_hosts_over_soft_roce(
    roce: tuple[VM, VM], gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    """rping, write_bw in both directions and read_lat, each with a figure and the proof by both ports' counters."""
    hosts = inventory(roce)
    files = {form: tmp_path / f"fabric.{form}" for form in ("csv", "svg", "junit")}
    outputs = [word for form, path in files.items() for word in ("--output", f"{form}:{path}")]
    result = gpuready("fabric", "--seconds", "10", *outputs, inventory=hosts, timeout=400, code=0)
    a, b = (vm.name for vm in roce)
    (rping,), writes, (read,) = (findings(result, name) for name in ("rping", "write_bw", "read_lat"))
    assert rping["value"] == 10
    assert [(each["client"]["host"], each["server"]["host"]) for each in writes] == [(b, a), (a, b)]  # type: ignore[index]
    for each in (rping, *writes, read):
        assert each["status"] == "pass"
        assert f"{a} rxe0:1: hw_counters/sent_pkts" in str(each["proof"])
        assert f"{b} rxe0:1: hw_counters/sent_pkts" in str(each["proof"])
    assert all(0 < float(str(each["value"])) < 50 for each in writes)  # emulated, they may move one message a second
    assert "no limit: a software device" in str(writes[0]["summary"])
    assert 10 < float(str(read["value"])) < 1e6
    assert float(str(read["more"]["p99"])) >= float(str(read["value"]))  # type: ignore[index]
    (nccl,) = findings(result, "nccl")
    assert (nccl["status"], nccl["summary"]) == ("skip", f"{a}, {b}: no GPU")
    assert result.document["level"] == "fabric"
    assert len(list(csv.DictReader(files["csv"].open()))) == 5
    assert "rxe0:1" in files["svg"].read_text("utf-8")
    assert ET.parse(files["junit"]).getroot().get("failures") == "0"
    await_nothing_left(*roce)


def test_each_port_of_one_host_by_itself(roce: tuple[VM, VM], gpuready: Gpuready, inventory: Inventories) -> None:
    """The figure of one port, and the name of another one that is down."""
    one = roce[0]
    one.run("ip link add spare type dummy && ip address add 10.99.9.1/24 dev spare && ip link set spare up")
    one.run("rdma link add rxe9 type rxe netdev spare && ip link set spare down")
    try:
        hosts = inventory([one])
        result = gpuready("fabric", "--tests", "loopback", "--seconds", "5", inventory=hosts, timeout=400, code=3)
    finally:
        one.run("rdma link delete rxe9; ip link delete spare")
    fine, down = sorted(findings(result, "loopback"), key=lambda each: str(each["client"]))
    assert fine["client"] == fine["server"] and (fine["status"], down["status"]) == ("pass", "fail")
    assert 0 < float(str(fine["value"])) < 100 and "(no limit: its line rate is unknown)" in str(fine["summary"])
    assert "rxe9:1: its state is DOWN" in str(down["summary"])
    assert result.checks("fail", host=one.name) == {"fabric.loopback"}
    await_nothing_left(one)


def test_lost_packets_are_a_failed_pair_that_says_what_both_ends_said(
    roce: tuple[VM, VM], gpuready: Gpuready, inventory: Inventories
) -> None:
    """RoCE's UDP port is filtered, TCP passes: what the probe cannot see, the test does, though ib_write_bw exits 0."""
    roce[0].run("iptables -A INPUT -p udp --dport 4791 -j DROP")
    try:
        result = gpuready("fabric", "--tests", "write_bw", "--seconds", "2", inventory=inventory(roce), timeout=400)
    finally:
        roce[0].run("iptables -D INPUT -p udp --dport 4791 -j DROP")
    assert result.code == 3, result.explain()
    (finding,) = findings(result, "write_bw")
    assert finding["status"] == "fail"
    assert "UDP port 4791" in str(finding["remedy"])
    assert "no message arrived" in str(finding["summary"])
    await_nothing_left(*roce)


def test_a_port_that_is_down_is_named_and_a_missing_tool_is_unknown(
    roce: tuple[VM, VM], gpuready: Gpuready, inventory: Inventories
) -> None:
    """Exit 3 with the port's name and state; nothing waits for a server that cannot be."""
    a, b = roce
    hosts = inventory(roce)
    b.run("ip link set eth1 down")
    try:
        down = gpuready("fabric", "--tests", "rping,write_bw", inventory=hosts, timeout=400)
    finally:
        b.run("ip link set eth1 up")
    assert down.code == 3, down.explain()
    assert {each["status"] for each in down.document["fabric"]["findings"]} == {"fail"}
    assert f"{b.name} rxe0:1: its state is DOWN" in down.document["fabric"]["findings"][0]["summary"]
    assert "fabric.ports" in down.checks("fail", host=a.name)
    a.run("chmod -x $(command -v ib_write_bw)")
    try:
        missing = gpuready("fabric", "--tests", "write_bw", inventory=hosts, timeout=400)
    finally:
        a.run("chmod +x /usr/bin/ib_write_bw")
    assert missing.code == 3, missing.explain()  # nothing at all was tested
    (finding,) = findings(missing, "write_bw")
    assert (finding["status"], finding["remedy"]) == (
        "unknown",
        "install perftest (in the spec: rdma: {packages: [perftest]}) on all of these hosts",
    )
    assert "fabric.ports" in missing.checks("unknown", host=a.name)
    await_nothing_left(*roce)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing(
    roce: tuple[VM, VM], gpuready: Gpuready, inventory: Inventories, number: signal.Signals
) -> None:
    """In the middle of a bandwidth test: the tools end with the connection, also when nobody could clean up."""
    process = begun(gpuready, *roce, inventory=inventory(roce))
    process.send_signal(number)
    result = gpuready.finish(process, check_json=number == signal.SIGINT)
    assert result.code == (130 if number == signal.SIGINT else -number)
    await_nothing_left(*roce)

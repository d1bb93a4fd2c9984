"""gpuready fabric over TCP between two machines: figures, a blocked port, a smaller MTU, and nothing left behind."""

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.lab import Machine
from tests.lab.fixtures import MachineFactory
from tests.system.faults import until
from tests.system.harness import ANY_SPEED, Gpuready, Inventories, Result

pytestmark = pytest.mark.promise


def findings(result: Result, test: str) -> dict[str, dict[str, Any]]:
    """The findings of a test, by the client's host."""
    return {each["client"]["host"]: each for each in result.document["fabric"]["findings"] if each["test"] == test}


def left(node: Machine) -> str:
    """What a test could leave behind: its processes and directories."""
    return node.run("pgrep -l 'iperf3|ping|timeout'; ls -d /run/gpuready-fabric.* 2>/dev/null", check=False).stdout


def await_nothing_left(*nodes: Machine) -> None:
    until(lambda: not any(left(node) for node in nodes), 20, "nothing is left")


def test_two_hosts_without_rdma(machine: MachineFactory, gpuready: Gpuready, inventory: Inventories) -> None:
    with ThreadPoolExecutor() as pool:
        nodes = list(pool.map(lambda _: machine(), range(2)))
        list(pool.map(lambda node: node.install("iputils-ping iperf3"), nodes))
    a, b = nodes
    hosts = inventory(nodes, verify=ANY_SPEED)

    result = gpuready("fabric", "--seconds", "1", inventory=hosts, code=0)
    assert result.document["fabric"]["tests"] == ["tcp_connect", "tcp_mtu", "tcp_lat", "tcp_bw", "nccl"]
    for name in (a.name, b.name):
        connect, mtu, bandwidth = (findings(result, test)[name] for test in ("tcp_connect", "tcp_mtu", "tcp_bw"))
        assert (connect["status"], connect["value"]) == ("pass", 3), connect
        assert (mtu["status"], mtu["value"]) == ("pass", 1500), mtu
        assert bandwidth["status"] == "pass", bandwidth
        assert bandwidth["value"] > 0.01 and bandwidth["more"]["one_stream"] > 0.01
        assert f"{name} {bandwidth['client']['netdev']}: sent " in bandwidth["proof"]
    (latency,) = findings(result, "tcp_lat").values()
    assert latency["status"] == "pass" and 0 < latency["value"] < 1e6, latency
    (nccl,) = findings(result, "nccl").values()
    assert (nccl["status"], nccl["summary"]) == ("skip", f"{a.name}, {b.name}: no GPU")
    await_nothing_left(a, b)

    a.run("chmod -x /usr/bin/iperf3")
    lacking = gpuready("fabric", "--tests", "tcp_lat,tcp_bw", "--seconds", "1", inventory=hosts, code=3)
    a.run("chmod +x /usr/bin/iperf3")
    (missing,) = findings(lacking, "tcp_bw").values()
    assert (missing["status"], missing["remedy"]) == ("unknown", "install iperf3 on all of these hosts"), missing
    assert lacking.checks("unknown", host=a.name) == lacking.checks("unknown", host=b.name) == {"fabric.tcp_bw"}

    told = gpuready("nccl", inventory=hosts).host(a.name)["nccl"]
    assert told["variables"] == {"NCCL_SOCKET_IFNAME": f"={latency['server']['netdev']}"}, told
    assert told["interfaces"][0]["address"].startswith(f"{a.address}/")

    process = gpuready.start("fabric", "--tests", "tcp_bw", "--seconds", "120", inventory=hosts)
    until(lambda: all("iperf3" in left(node) for node in nodes), 60)
    process.send_signal(signal.SIGKILL)
    gpuready.finish(process, check_json=False)
    await_nothing_left(a, b)

    b.run("iptables -I INPUT -p tcp --dport 29500 -j DROP")
    b.run(f"ip link set {latency['client']['netdev']} mtu 1400")
    broken = gpuready("fabric", "--tests", "tcp_connect,tcp_mtu", inventory=hosts, code=3)
    connect, mtu = findings(broken, "tcp_connect"), findings(broken, "tcp_mtu")
    assert connect[a.name]["status"] == "fail"
    assert "is not reached on port 29500: no answer within 5 s" in connect[a.name]["summary"]
    assert (connect[b.name]["status"], mtu[b.name]["status"]) == ("pass", "pass")
    assert mtu[a.name]["status"] == "fail"
    for words in ("packets of 1500 bytes", f"do not reach {b.name}", "which has an MTU of 1400; 1400 bytes do"):
        assert words in mtu[a.name]["summary"]
    assert {"fabric.tcp_connect", "fabric.tcp_mtu"} <= broken.checks("fail", host=a.name)

    nothing = gpuready("fabric", "--tests", "write_bw", inventory=hosts, code=3)
    assert nothing.document["fabric"]["findings"] == []
    assert "fabric.ports" in nothing.checks("unknown", host=a.name)
    await_nothing_left(a, b)

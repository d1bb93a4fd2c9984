"""The tests over TCP: what the tools print, the verdict, the links, and which tests a run has."""

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from ipaddress import ip_interface
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpuready.fabric.checks import judge_host
from gpuready.fabric.commands import GROUPS, TESTS, WITH_RDMA, WITHOUT_RDMA, commands
from gpuready.fabric.counters import Snapshot
from gpuready.fabric.run import FabricRun, Wanted
from gpuready.fabric.schedule import Pairing
from gpuready.fabric.tcp_tests import AGAIN, BANDWIDTH_SCRIPT, STREAMS
from gpuready.fabric.verdict import Answer, Finding, blocked, found, skipped
from gpuready.model.network import NetDevice, Network
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.model.verify import Thresholds
from gpuready.network.links import End, tcp_links
from gpuready.network.tcp_choice import Wire, Wires
from gpuready.result.model import HostResult
from gpuready.verbs.fabric.rounds import Hosts, Meeting
from gpuready.verbs.fabric.rounds import test_all as run_rounds
from tests.verdicts import root_files

SOCKETS = (Path(__file__).parents[1] / "data/fabric/all_reduce-sockets.txt").read_text("utf-8")
A, B = (End(f"n{n}", "eth0", 0, "eth0", f"10.0.0.{n}", None, 10.0, 1500) for n in (1, 2))


def judged(
    test: str, text: str, ends: tuple[End, End] = (A, B), moved: int = 1 << 40, rc: int = 0, **limits: float
) -> Finding:
    """The finding of what the client printed; both interfaces moved that many bytes."""
    names = ("net/tx_bytes", "net/rx_bytes")
    shots = [Snapshot("ena", dict.fromkeys(names, 5)), Snapshot("ena", dict.fromkeys(names, 5 + moved))]
    server = Answer(0, text, *shots) if test == "nccl" else Answer(143, "", *shots)
    return found(TESTS[test], *ends, (server, Answer(rc, text, *shots)), Thresholds.model_validate(limits))


def iperf(gbits: float, sent: int = 1000) -> str:
    """One run's JSON, with the keys that count."""
    sums = {"bits_per_second": gbits * 1e9, "bytes": sent}
    return json.dumps({"start": {}, "end": {"sum_sent": {**sums, "retransmits": 3}, "sum_received": sums}}, indent=1)


REFUSED = "bash: connect: Connection refused\nbash: line 1: /dev/tcp/10.0.0.1/{0}: Connection refused\nport {0}: 1\n"
ROUTE = "10.0.0.1 dev {} src 10.0.0.2 uid 0 \\    cache\n"
REACHED = "port 29500: 0\n" + REFUSED.format(40000) + REFUSED.format(60000) + ROUTE.format("eth0")
SILENT = "".join(f"port {port}: 124\n" for port in (29500, 40000, 60000))
NO_ROUTE = REACHED.replace("port 29500: 0", "bash: connect: No route to host\nport 29500: 1")
PINGED = """10 packets transmitted, {} received, {}% packet loss, time 1810ms
rtt min/avg/max/mdev = 0.040/0.052/0.090/0.010 ms
"""
SLOW, BIG = iperf(2.0) + iperf(3.0), iperf(9.0, 1 << 30) * 2
BUSY = iperf(4.0) + '{"error": "the server is busy running a test. try again later"}'
SUMMED = SOCKETS + "1073741824 268435456 float sum -1 700.0 1.53 1.53 0\n"
BY_RDMA = SUMMED.replace(SOCKETS, "NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE\nNCCL INFO Using network IB\n")
PORTS = replace(A, device="mlx5_0", port=1), replace(B, device="mlx5_0", port=1)
#: Test, output of the client, what else is given; and status, value, limit, and a part of the summary.
VERDICTS: dict[str, tuple[str, str, dict[str, Any], str, float | None, float | None, str]] = {
    "open and refused ports": ("tcp_connect", REACHED, {}, "pass", 3, None, "are reached"),
    "a silent port": ("tcp_connect", REACHED.replace("port 29500: 0", "port 29500: 124"), {}, "fail", 2, None,
         "10.0.0.1 is not reached on port 29500: no answer within"),
    "a port without a route": ("tcp_connect", NO_ROUTE.replace("port 40000: 1", "port 40000: 124"), {}, "fail", 2, None,
         "port 29500: connect: No route to host"),
    "no port": ("tcp_connect", SILENT, {}, "fail", 0, None,
         "not reached on port 29500, 40000, 60000: no answer within 5 s"),
    "another way": ("tcp_connect", REACHED.replace("dev eth0", "dev eth1"), {}, "fail", None, None,
         "packets to 10.0.0.1 leave by eth1, not by eth0"),
    "no try": ("tcp_connect", "bash: fork: retry: Resource temporarily unavailable\n", {}, "fail", None, None,
         "no port was tried: fork: retry"),
    "whole packets": ("tcp_mtu", "2 packets transmitted\npasses 1500\n", {}, "pass", 1500, 1500, "arrive whole"),
    "small packets": (
        "tcp_mtu", "ping: local error: message too long\nlost 1500\nlost 1460\npasses 1400\n", {}, "fail", 1400, 1500,
        "packets of 1500 bytes, the MTU of eth0, do not reach n1 eth0; 1400 bytes do",
    ),
    "another MTU": ("tcp_mtu", "lost 1500\npasses 1400\n", {"ends": (replace(A, mtu=1400), B)}, "fail", 1400, 1500,
         "reach n1 eth0, which has an MTU of 1400; 1400"),
    "no ping": ("tcp_mtu", "lost 1500\nlost 100\n", {}, "unknown", None, None, "ICMP is filtered"),
    "no MTU": ("tcp_mtu", "", {"ends": (A, replace(B, mtu=0))}, "unknown", None, None, "the MTU of eth0 was not read"),
    "latency": ("tcp_lat", PINGED.format(10, 0), {}, "pass", 52, None, "52 us (no limit set)"),
    "slow": ("tcp_lat", PINGED.format(10, 0), {"tcp_lat": 50.0}, "fail", 52, 50, "52 us, above 50"),
    "lost": ("tcp_lat", PINGED.format(8, 20), {}, "fail", 52, None, "2 of 10 packets were lost"),
    "all lost": ("tcp_lat", "10 packets transmitted, 0 received\n", {}, "unknown", None, None, "ICMP is filtered"),
    "throughput": ("tcp_bw", iperf(4.0) + "\n" + iperf(9.0), {}, "pass", 9, 5,
         "9 Gbit/s with 8 streams, 4 with one (0.5 of the speed of 10)"),
    "far below the speed": ("tcp_bw", SLOW, {}, "warn", 3, 5,
         "3 Gbit/s with 8 streams, 2 with one, below 5 (0.5 of the speed of 10)"),
    "a limit of the spec": ("tcp_bw", SLOW, {"tcp_bw": 0.3}, "pass", 3, 3, "(0.3 of the speed of 10)"),
    "unknown speed": ("tcp_bw", SLOW, {"ends": (replace(A, line_gbps=None), B)}, "pass", 3, None,
         "speed of an interface is unknown"),
    "no connection": (
        "tcp_bw", '{"error": "unable to connect to server: Connection timed out"}', {"rc": 1}, "fail", None, None,
        "iperf3: unable to connect to server",
    ),
    "no such option": ("tcp_bw", "iperf3: error - unrecognized option", {"rc": 1}, "fail", None, None,
         "iperf3: iperf3: error"),
    "another test": ("tcp_bw", BUSY, {"rc": 1}, "fail", None, None, "the server is busy"),
    "no data": ("tcp_bw", iperf(0.0, 0) * 2, {"rc": 1}, "fail", 0, None, "iperf3 ran, but no data arrived"),
    "another interface": ("tcp_bw", BIG, {"moved": 5000}, "fail", 9, 5, "but not through eth0 and eth0"),
    "nccl over sockets, as wanted": ("nccl", SUMMED, {}, "pass", 12.24, None, "(no limit over TCP)"),
    "nccl by RDMA, unwanted": ("nccl", BY_RDMA, {}, "fail", 12.24, None, "but not over TCP"),
    "nccl over sockets, unwanted": ("nccl", SUMMED, {"ends": PORTS}, "fail", 12.24, None, "but not by RDMA"),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_what_the_client_printed_is_judged(name: str) -> None:
    test, text, more, status, value, limit, words = VERDICTS[name]
    finding = judged(test, text, **more)
    assert (finding.status, finding.value, finding.limit) == (status, pytest.approx(value), limit), finding
    assert words in finding.summary and (finding.remedy or status != "fail"), finding


def test_more_figures_and_the_proof() -> None:
    finding = judged("tcp_bw", iperf(4.0) + iperf(9.0))
    assert finding.more == {"one_stream": 4.0, "retransmits": 6.0}
    assert "n1 eth0: sent" in finding.proof and "n2 eth0: sent" in finding.proof
    assert judged("tcp_lat", PINGED.format(10, 0)).more == {"max": 90.0, "lost": 0.0}


def cores(text: str, host: float, remote: float) -> str:
    """The same runs, with the CPU time of both ends in percent of a core."""
    return text.replace(
        '"end": {', f'"end": {{"cpu_utilization_percent": {{"host_total": {host}, "remote_total": {remote}}},'
    )


FAST = iperf(4.0) + iperf(9.0)


@pytest.mark.parametrize(
    ("text", "driver", "by_user", "told"),
    [
        (FAST, "mlx5_core", {}, "NCCL_SOCKET_NTHREADS: 1, NCCL_NSOCKS_PERTHREAD: 8"),
        (cores(FAST, 60.5, 99.0), "mlx5_core", {}, "NCCL_SOCKET_NTHREADS: 1, NCCL_NSOCKS_PERTHREAD: 8"),
        (cores(FAST, 260.5, 12.0), "mlx5_core", {}, "NCCL_SOCKET_NTHREADS: 4, NCCL_NSOCKS_PERTHREAD: 2"),
        (cores(FAST, 1.0, 1900.0), "mlx5_core", {}, "NCCL_SOCKET_NTHREADS: 8, NCCL_NSOCKS_PERTHREAD: 1"),
        (iperf(8.0) + iperf(9.0), "mlx5_core", {}, ""),  # one socket is enough
        (FAST, "ena", {}, ""),  # NCCL does it by itself
        (FAST, "mlx5_core", {"extra": {"NCCL_SOCKET_NTHREADS": "2"}}, ""),  # the user has decided
        (FAST, "mlx5_core", {"file": "NCCL_NSOCKS_PERTHREAD=4\n"}, ""),
        (FAST, "mlx5_core", {"login": "/etc/environment:NCCL_SOCKET_NTHREADS=2"}, ""),
        (FAST, "mlx5_core", {"file": "#NCCL_NSOCKS_PERTHREAD=4\n"}, "NCCL_NSOCKS_PERTHREAD: 8"),
        (iperf(0.0, 0) * 2, "mlx5_core", {}, ""),
    ],
)
def test_nccls_sockets_follow_what_was_measured(text: str, driver: str, by_user: dict[str, Any], told: str) -> None:
    spec = NodeSpec.model_validate({"nccl": {"extra": by_user.get("extra", {})}})
    files = root_files({"/etc/nccl.conf": by_user.get("file", "")})
    states = {}
    for name in ("n1", "n2"):
        device = NetDevice(state="up", mtu=1500, speed=10000, addresses=(f"10.0.0.{name[1]}/24",), driver=driver)
        network = Network(devices={"eth0": device}, default=("eth0",))
        states[name] = NodeState(network=network, files=files, nccl=tuple(filter(None, [by_user.get("login")])))
    entries = {name: SimpleNamespace(spec=spec) for name in states}
    results = {name: HostResult(name, outcome="ok") for name in states}
    hosts = cast(Hosts, SimpleNamespace(entries=entries, results=results, progress=lambda *words: None))
    fabric = FabricRun(Wanted(Pairing("ring"), ("tcp_bw",), 5))
    rounds = list[Sequence[Meeting]]()

    def meet(meetings: Sequence[Meeting]) -> None:
        rounds.append(meetings)
        fabric.add(judged("tcp_bw", text))

    run_rounds(hosts, fabric, states, meet, lambda jobs: [])
    assert len(rounds) == 1 and results["n1"].notes == []
    assert [note for note in results["n2"].notes if "NCCL" in note] == results["n2"].notes
    assert [told in note for note in results["n2"].notes] == ([True] if told else []), results["n2"].notes


def test_a_warning_is_one_of_both_hosts() -> None:
    run = FabricRun(Wanted(Pairing("ring"), ("tcp_bw",), 5), findings=[judged("tcp_bw", SLOW)])
    for host in ("n1", "n2"):
        verdicts = {each.check.id: each.verdict for each in judge_host(run, host, NodeSpec(), date(2026, 11, 1))}
        assert verdicts["fabric.tcp_bw"].status == "warn"
        assert verdicts["fabric.ports"].status == "pass"


@pytest.mark.parametrize(("automatic", "status"), [(True, "skip"), (False, "unknown")])
def test_a_named_test_without_its_tool_is_unknown(automatic: bool, status: str) -> None:
    run = FabricRun(Wanted(Pairing("ring"), ("tcp_lat", "tcp_bw"), 5, automatic))
    run.add(judged("tcp_lat", PINGED.format(10, 0)))
    run.add(found(TESTS["tcp_bw"], A, B, (Answer(missing="there is no iperf3"), Answer()), Thresholds()))
    run.add(skipped(TESTS["nccl"], A, B, "n1: no GPU"))
    assert [each.status for each in run.findings] == ["pass", status, "skip"]
    verdicts = {each.check.id: each.verdict for each in judge_host(run, "n1", NodeSpec(), date(2026, 11, 1))}
    assert (verdicts["fabric.tcp_lat"].status, verdicts["fabric.tcp_bw"].status) == ("pass", status)
    assert verdicts["fabric.tcp_bw"].remedy == ("" if automatic else "install iperf3 on all of these hosts")


def test_nccl_is_held_to_sockets() -> None:
    server, _ = commands(TESTS["nccl"], A, B, 5)
    assert {"NCCL_NET=Socket", "NCCL_SOCKET_IFNAME==eth0"} <= set(server.before)
    assert not any("NCCL_IB" in word for word in server.before)


@pytest.mark.parametrize(("address", "head"), [("10.0.0.1", "28"), ("2001:db8::1", "48")])
def test_sizes_are_those_of_the_interface_and_below(address: str, head: str) -> None:
    _, client = commands(TESTS["tcp_mtu"], replace(A, address=address), replace(B, mtu=9000), 5)
    assert client.arguments == (address, head, "9000", "8896", "4096", "1500", "1460", "1400", "1280", "100")


def wire(name: str, address: str) -> Wire:
    return Wire(name, ip_interface(address), 25.0, 9000)


def test_links_join_interfaces_of_one_network() -> None:
    mine = Wires((wire("eth1", "10.0.1.1/24"), wire("eth0", "10.0.0.1/24")))
    theirs = Wires((wire("ens0", "10.0.0.2/24"), wire("ens1", "10.0.1.2/24")))
    made = tcp_links("a", mine, "b", theirs)
    assert [(str(link.server), str(link.client), link.obstacle) for link in made] == [
        ("a eth1", "b ens1", ""),
        ("a eth0", "b ens0", ""),
    ]
    (routed,) = tcp_links("a", Wires((wire("eth0", "10.0.0.1/24"),)), "b", Wires((wire("eth0", "10.9.0.1/24"),)))
    assert routed.client.address == "10.9.0.1" and routed.client.mtu == 9000


def test_an_interface_that_is_not_certain_blocks_the_link() -> None:
    (link,) = tcp_links("a", Wires((wire("eth0", "10.0.0.1/24"),)), "b", Wires(problem="several interfaces"))
    assert link.obstacle == "b: several interfaces"
    finding = blocked(TESTS["tcp_mtu"], *link.ends, link.obstacle)
    run = FabricRun(Wanted(Pairing("ring"), ("tcp_mtu",), 5), findings=[finding])
    (ports, _) = judge_host(run, "a", NodeSpec(), date(2026, 11, 1))
    assert (ports.check.id, ports.verdict.status) == ("fabric.ports", "fail")


def test_the_hosts_decide_where_no_test_is_named() -> None:
    assert (WITH_RDMA, WITHOUT_RDMA) == (
        ("rping", "write_bw", "read_lat", "nccl"),
        ("tcp_connect", "tcp_mtu", "tcp_lat", "tcp_bw", "nccl"),
    )
    named = Wanted(Pairing("ring"), ("tcp_bw", "nccl"), 5)
    assert named.for_hosts(WITH_RDMA) == named and named.only_tcp
    free = replace(named, automatic=True)
    assert free.for_hosts(WITH_RDMA).tests == WITH_RDMA and not free.for_hosts(WITH_RDMA).only_tcp
    assert free.for_hosts(WITHOUT_RDMA).only_tcp
    assert not replace(named, tests=("nccl",)).only_tcp
    assert GROUPS["tcp"] == WITHOUT_RDMA[:-1]


@pytest.mark.parametrize(
    ("test", "text", "status"),
    [
        ("tcp_lat", "1" * 150_000, "unknown"),
        ("tcp_lat", "3 packets transmitted, 3 received\nrtt = 1.2.3/1.2.3/4.5/1\n", "unknown"),
        ("tcp_mtu", "passes " + "9" * 5000, "unknown"),
        ("tcp_connect", "".join(f"port {n}: 1\n" for n in range(9000)), "fail"),
        ("tcp_bw", "{}{}", "fail"),
        ("tcp_bw", '{"end": {"sum_received": {"bytes": 1e999, "bits_per_second": true}}}' * 2, "fail"),
        ("tcp_bw", '{"a":' * 30_000, "fail"),
        ("tcp_bw", '{"error": "' + "x" * 9000 + '"}', "fail"),
    ],
)
def test_no_answer_of_a_node_takes_long_or_is_a_bug_of_ours(test: str, text: str, status: str) -> None:
    began = time.process_time()
    finding = judged(test, text)
    assert finding.status == status and len(finding.summary) < 1000
    assert time.process_time() - began < 2  # a quadratic pattern takes minutes


@pytest.mark.parametrize("ends", [7, 0])
@pytest.mark.parametrize(
    ("resets", "failed", "runs"), [((), 0, 2), ((2,), 0, 2), ((1, 2), 0, 2), (tuple(range(1, 20)), 1, 1)]
)
def test_a_server_that_opens_its_port_anew_is_tried_again(
    tmp_path: Path, resets: tuple[int, ...], failed: int, runs: int, ends: int
) -> None:
    """A stand-in for iperf3, whose calls of these numbers end at once with a reset. The real one may end with 0."""
    rc = failed and (ends or 1)
    program = tmp_path / "iperf3"
    program.write_text(
        f"#!/bin/sh\necho >>{tmp_path}/calls\nn=$(wc -l <{tmp_path}/calls)\n"
        f'case " {" ".join(map(str, resets))} " in *" $n "*) echo \'{{"error": "reset"}}\'; exit {ends} ;; esac\n'
        'echo "{\\"said\\": \\"$*\\"}"\n'
    )
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PORT": "18515"}
    script = BANDWIDTH_SCRIPT.replace(f"SECONDS + {AGAIN}", "SECONDS + 5")
    argv = ["bash", "-c", script, "10.0.0.2", "10.0.0.1", "5"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (rc, runs, "")
    assert rc or [json.loads(line)["said"].split()[:8] for line in done.stdout.splitlines()] == [
        ["-c", "10.0.0.2", "-B", "10.0.0.1", "-t", "5", "-P", str(streams)] for streams in STREAMS
    ]

"""The tests over TCP: what the tools print, the verdict, the links, and which tests a run has."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace
from datetime import date
from ipaddress import ip_interface
from pathlib import Path

import pytest

from gpuready.network.links import End, tcp_links
from gpuready.network.tcp import Wire, Wires
from gpuready.spec.model import NodeSpec
from gpuready.spec.verify import Thresholds
from gpuready.tools.fabric.checks import judge_host
from gpuready.tools.fabric.commands import GROUPS, TESTS, WITH_RDMA, WITHOUT_RDMA, commands
from gpuready.tools.fabric.counters import Snapshot
from gpuready.tools.fabric.run import FabricRun, Wanted
from gpuready.tools.fabric.schedule import Pairing
from gpuready.tools.fabric.tcp import BANDWIDTH_SCRIPT, STREAMS
from gpuready.tools.fabric.verdict import Answer, Finding, blocked, found

SOCKETS = (Path(__file__).parents[2] / "data/fabric/all_reduce-sockets.txt").read_text("utf-8")
A, B = (End(f"n{n}", "eth0", 0, "eth0", f"10.0.0.{n}", None, 10.0, 1500) for n in (1, 2))


def judged(
    test: str, text: str, server: End = A, client: End = B, moved: int = 1 << 40, rc: int = 0, **limits: float
) -> Finding:
    """The finding of what the client printed; both interfaces moved that many bytes."""
    names = ("net/tx_bytes", "net/rx_bytes")
    shots = [Snapshot("ena", dict.fromkeys(names, 5)), Snapshot("ena", dict.fromkeys(names, 5 + moved))]
    answers = Answer(143, text if test == "nccl" else "", *shots), Answer(rc, text, *shots)
    if test == "nccl":
        answers = replace(answers[0], rc=0), answers[1]
    return found(TESTS[test], server, client, answers, Thresholds.model_validate(limits))


REFUSED = "bash: connect: Connection refused\nbash: line 1: /dev/tcp/10.0.0.1/{0}: Connection refused\nport {0}: 1\n"
ROUTE = "10.0.0.1 dev {} src 10.0.0.2 uid 0 \\    cache\n"
REACHED = "port 29500: 0\n" + REFUSED.format(40000) + REFUSED.format(60000) + ROUTE.format("eth0")


def test_ports_that_are_open_or_refused_are_reached() -> None:
    finding = judged("tcp_connect", REACHED)
    assert (finding.status, finding.value) == ("pass", 3)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (
            REACHED.replace("port 29500: 0", "port 29500: 124"),
            "10.0.0.1 is not reached on port 29500: no answer within",
        ),
        (
            REACHED.replace("port 29500: 0", "bash: connect: No route to host\nport 29500: 1").replace(
                "port 40000: 1", "port 40000: 124"
            ),
            "port 29500: connect: No route to host",
        ),
        (
            "".join(f"port {port}: 124\n" for port in (29500, 40000, 60000)),
            "not reached on port 29500, 40000, 60000: no answer within 5 s",
        ),
        (REACHED.replace("dev eth0", "dev eth1"), "packets to 10.0.0.1 leave by eth1, not by eth0"),
        ("bash: fork: retry: Resource temporarily unavailable\n", "no port was tried: fork: retry"),
    ],
)
def test_a_port_that_is_not_reached_is_named(text: str, summary: str) -> None:
    finding = judged("tcp_connect", text)
    assert finding.status == "fail" and summary in finding.summary and finding.remedy, finding


def test_the_largest_packet() -> None:
    assert judged("tcp_mtu", "2 packets transmitted\npasses 1500\n").status == "pass"
    small = judged("tcp_mtu", "ping: local error: message too long\nlost 1500\nlost 1460\npasses 1400\n")
    assert (small.status, small.value, small.limit) == ("fail", 1400, 1500)
    assert small.summary == "packets of 1500 bytes, the MTU of eth0, do not reach n1 eth0; 1400 bytes do"
    theirs = judged("tcp_mtu", "lost 1500\npasses 1400\n", server=replace(A, mtu=1400))
    assert "reach n1 eth0, which has an MTU of 1400; 1400" in theirs.summary
    silent = judged("tcp_mtu", "lost 1500\nlost 100\n")
    assert (silent.status, "ICMP is filtered" in silent.summary) == ("unknown", True)
    assert judged("tcp_mtu", "", client=replace(B, mtu=0)).summary == "the MTU of eth0 was not read"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("10.0.0.1", ("10.0.0.1", "28", "9000", "8896", "4096", "1500", "1460", "1400", "1280", "100")),
        ("2001:db8::1", ("2001:db8::1", "48", "9000", "8896", "4096", "1500", "1460", "1400", "1280", "100")),
    ],
)
def test_sizes_are_those_of_the_interface_and_below(address: str, words: tuple[str, ...]) -> None:
    _, client = commands(TESTS["tcp_mtu"], replace(A, address=address), replace(B, mtu=9000), 5)
    assert client.arguments == words


PINGED = """10 packets transmitted, {} received, {}% packet loss, time 1810ms
rtt min/avg/max/mdev = 0.040/0.052/0.090/0.010 ms
"""


def test_latency() -> None:
    finding = judged("tcp_lat", PINGED.format(10, 0))
    assert (finding.status, finding.value, finding.more) == ("pass", 52.0, {"max": 90.0, "lost": 0.0})
    assert judged("tcp_lat", PINGED.format(10, 0), tcp_lat=50.0).status == "fail"
    lost = judged("tcp_lat", PINGED.format(8, 20))
    assert (lost.status, lost.summary) == ("fail", "2 of 10 packets were lost")
    assert judged("tcp_lat", "10 packets transmitted, 0 received, 100% packet loss\n").status == "unknown"


def iperf(gbits: float, sent: int = 1000) -> str:
    """One run's JSON, with the keys that count."""
    sums = {"bits_per_second": gbits * 1e9, "bytes": sent}
    return json.dumps({"start": {}, "end": {"sum_sent": {**sums, "retransmits": 3}, "sum_received": sums}}, indent=1)


def test_throughput_with_one_and_eight_streams() -> None:
    finding = judged("tcp_bw", iperf(4.0) + "\n" + iperf(9.0))
    assert (finding.status, finding.value, finding.limit) == ("pass", 9.0, 5.0)
    assert finding.more == {"one_stream": 4.0, "retransmits": 6.0}
    assert finding.summary == "9 Gbit/s with 8 streams, 4 with one (0.5 of the speed of 10)"
    assert "n1 eth0: sent" in finding.proof and "n2 eth0: sent" in finding.proof


def test_far_below_the_speed_is_a_warning_of_both_hosts() -> None:
    finding = judged("tcp_bw", iperf(2.0) + iperf(3.0))
    assert (finding.status, finding.summary) == (
        "warn",
        "3 Gbit/s with 8 streams, 2 with one, below 5 (0.5 of the speed of 10)",
    )
    assert judged("tcp_bw", iperf(2.0) + iperf(3.0), tcp_bw=0.3).status == "pass"
    assert judged("tcp_bw", iperf(2.0) + iperf(3.0), server=replace(A, line_gbps=None)).status == "pass"
    run = FabricRun(Wanted(Pairing("ring"), ("tcp_bw",), 5), findings=[finding])
    for host in ("n1", "n2"):
        verdicts = {each.check.id: each.verdict for each in judge_host(run, host, NodeSpec(), date(2026, 11, 1))}
        assert verdicts["fabric.tcp_bw"].status == "warn"
        assert verdicts["fabric.ports"].status == "pass"


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ('{"error": "unable to connect to server: Connection timed out"}', "iperf3: unable to connect to server"),
        ("iperf3: error - unrecognized option", "iperf3: iperf3: error"),
        (iperf(4.0) + '{"error": "the server is busy running a test. try again later"}', "the server is busy"),
        (iperf(0.0, 0) + iperf(0.0, 0), "iperf3 ran, but no data arrived"),
    ],
)
def test_throughput_that_was_not_measured_fails(text: str, summary: str) -> None:
    finding = judged("tcp_bw", text, rc=1)
    assert finding.status == "fail" and summary in finding.summary and finding.remedy, finding


def test_bytes_through_another_interface_fail() -> None:
    finding = judged("tcp_bw", iperf(9.0, 1 << 30) + iperf(9.0, 1 << 30), moved=5000)
    assert (finding.status, "but not through eth0 and eth0" in finding.summary) == ("fail", True)


def test_iperf3_that_is_missing_is_a_skip_that_says_what_to_install() -> None:
    finding = found(TESTS["tcp_bw"], A, B, (Answer(missing="there is no iperf3"), Answer()), Thresholds())
    assert (finding.status, finding.summary, finding.remedy) == ("skip", "n1: there is no iperf3", "install iperf3")


def test_nccl_over_sockets_is_wanted_here_and_a_failure_with_rdma() -> None:
    row = "1073741824 268435456 float sum -1 700.0 1.53 1.53 0\n"
    assert judged("nccl", SOCKETS + row).status == "pass"
    assert judged("nccl", SOCKETS + row).summary.endswith("(no limit over TCP)")
    by_rdma = "NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE\nNCCL INFO Using network IB\n" + row
    assert judged("nccl", by_rdma).summary.endswith("but not over TCP")
    port = replace(A, device="mlx5_0", port=1), replace(B, device="mlx5_0", port=1)
    assert judged("nccl", SOCKETS + row, *port).status == "fail"
    server, _ = commands(TESTS["nccl"], A, B, 5)
    assert {"NCCL_NET=Socket", "NCCL_SOCKET_IFNAME==eth0"} <= set(server.before)
    assert not any("NCCL_IB" in word for word in server.before)


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


@pytest.mark.parametrize(("resets", "rc", "runs"), [((), 0, 2), ((2,), 0, 2), ((1, 2), 7, 1)])
def test_a_server_that_opens_its_port_anew_is_tried_again(
    tmp_path: Path, resets: tuple[int, ...], rc: int, runs: int
) -> None:
    """A stand-in for iperf3, whose calls of these numbers end at once with a reset."""
    program = tmp_path / "iperf3"
    program.write_text(
        f"#!/bin/sh\necho >>{tmp_path}/calls\nn=$(wc -l <{tmp_path}/calls)\n"
        f'case " {" ".join(map(str, resets))} " in *" $n "*) echo \'{{"error": "reset"}}\'; exit 7 ;; esac\n'
        'echo "{\\"said\\": \\"$*\\"}"\n'
    )
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PORT": "18515"}
    argv = ["bash", "-c", BANDWIDTH_SCRIPT, "10.0.0.2", "10.0.0.1", "5"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (rc, runs, "")
    assert rc or [json.loads(line)["said"].split()[:8] for line in done.stdout.splitlines()] == [
        ["-c", "10.0.0.2", "-B", "10.0.0.1", "-t", "5", "-P", str(streams)] for streams in STREAMS
    ]

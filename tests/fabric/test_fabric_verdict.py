"""From what both ends said to a finding: a figure counts only with its proof, and a failure says what to do."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from gpuready.fabric.checks import judge_host
from gpuready.fabric.commands import ALL_REDUCE_BYTES, ALL_REDUCES, PINGS, TESTS, commands, program
from gpuready.fabric.counters import Snapshot
from gpuready.fabric.run import FabricRun, Wanted
from gpuready.fabric.schedule import Pairing
from gpuready.fabric.verdict import Answer, Finding, found
from gpuready.model.spec import NodeSpec
from gpuready.model.verify import Thresholds
from gpuready.network.links import End
from tests.fabric.fabric_samples import end

DATA = Path(__file__).parents[1] / "data/fabric"
ROW = " 65536      10000             0.00               92.41   \t\t   0.17\n"
LATENCY = " 64      1000          3.11           9.02         3.20     \t  3.25  \t0.20   \t\t3.90    \t\t9.02\n"
PING = "".join(f"ping data: rdma-ping-{i}: ABC\n" for i in range(PINGS))
A, B = end("n1"), end("n2")


def shots(driver: str = "mlx5_core", out: int = 1 << 40, into: int = 1 << 40) -> dict[str, Snapshot]:
    names = ("counters/port_xmit_data", "counters/port_rcv_data")
    return {
        "before": Snapshot(driver, dict.fromkeys(names, 5)),
        "after": Snapshot(driver, dict(zip(names, (5 + out // 4, 5 + into // 4), strict=True))),
    }


def recorded(name: str) -> str:
    return (DATA / f"{name}.txt").read_text("utf-8")


def said(client: str, server: str = "", rc: tuple[int, int] = (0, 0), **shot: object) -> tuple[Answer, Answer]:
    return Answer(rc[0], server, **shots(**shot)), Answer(rc[1], client, **shots(**shot))  # type: ignore[arg-type]


def judged(
    test: str,
    answers: tuple[Answer, Answer],
    ends: tuple[End, End] = (A, B),
    measured: float | None = None,
    **limits: float,
) -> Finding:
    """The finding. ``measured``: the write_bw of the link."""
    return found(TESTS[test], *ends, answers, Thresholds.model_validate(limits), measured)


def nccl(log: str, wrong: int = 0) -> tuple[Answer, Answer]:
    row = f"{ALL_REDUCE_BYTES} {ALL_REDUCE_BYTES // 4} float sum -1 100000.0 10.74 10.74 {wrong}\n"
    return said(log, log + row, out=ALL_REDUCE_BYTES * ALL_REDUCES * 2, into=ALL_REDUCE_BYTES * ALL_REDUCES * 2)


WRITTEN = said(ROW)
SLOW_END, UNKNOWN_END = (end("n1", line=25.0), B), (end("n1", line=None), B)
BY_RDMA = "".join(line for line in recorded("all_reduce_perf").splitlines(keepends=True) if "NCCL INFO" in line)
REFUSED = " Couldn't connect to 10.0.0.1:18515\n Unable to open file descriptor for socket connection"
ENDED = "the client exits with 0, the server with 0, without a figure"
#: Test, answers, what else is given; and status, limit, and a part of "summary / remedy".
VERDICTS: dict[str, tuple[str, tuple[Answer, Answer], dict[str, Any], str, float | None, str]] = {
    "all pings": ("rping", said(PING), {}, "pass", None, "10 pings (all came back)"),
    "bandwidth": ("write_bw", WRITTEN, {}, "pass", 85.0, "92.41 Gbit/s (0.85 of the line rate of 100)"),
    "latency": ("read_lat", said(LATENCY), {}, "pass", None, "3.2 us (no limit set)"),
    "pings elsewhere": ("rping", said(PING, out=0, into=0), {}, "fail", None, "but not by RDMA"),
    "bytes elsewhere": ("write_bw", said(ROW, out=0, into=0), {}, "fail", 85.0, "but not by RDMA"),
    "reads elsewhere": ("read_lat", said(LATENCY, out=0, into=0), {}, "fail", None, "but not by RDMA"),
    "one end without bytes": ("write_bw", (replace(WRITTEN[0], **shots(into=100)), WRITTEN[1]), {}, "fail", 85.0,
         "but not by RDMA"),
    "an end without counters": (
        "write_bw", (WRITTEN[0], replace(WRITTEN[1], before=Snapshot("siw", {}), after=Snapshot("siw", {}))), {},
        "unknown", None, "92.41 Gbit/s, but without proof",
    ),
    "below the fraction": ("write_bw", WRITTEN, {"write_bw": 0.95}, "fail", 95.0,
         "below 95 (0.95 of the line rate of 100)"),
    "the slower end counts": ("write_bw", WRITTEN, {"ends": SLOW_END}, "pass", 21.25, "of the line rate of 25"),
    "unknown line rate": ("write_bw", WRITTEN, {"ends": UNKNOWN_END}, "pass", None, "rate of an interface is unknown"),
    "software device": ("write_bw", said(ROW, driver="rdma_rxe"), {}, "pass", None,
         "no limit: a software device has no line rate"),
    "software device, small packets": ("write_bw", said(recorded("rxe-bw-ok"), driver="rdma_rxe"), {}, "pass", None,
         "0.03951 Gbit/s (no limit: a software device has no line rate)"),
    "latency above its limit": ("read_lat", said(LATENCY), {"read_lat": 3.0}, "fail", 3.0, "above 3"),
    "latency at its limit": ("read_lat", said(LATENCY), {"read_lat": 3.2}, "pass", 3.2, "verify.thresholds.read_lat"),
    "pings missing": ("rping", said(PING.split("ping data: rdma-ping-7")[0]), {}, "fail", None, "without a figure"),
    "not one message": ("write_bw", said(recorded("rxe-bw-drop")), {}, "fail", None,
         "no message arrived / RDMA packets are lost, but TCP works: check UDP port 4791"),
    "no TCP": ("write_bw", said(recorded("rxe-bw-notcp"), rc=(0, 1)), {}, "fail", None,
         "Unable to init the socket connection (exit 1) / the hosts do not reach each other over TCP"),
    "bad GID": ("write_bw", said(recorded("rxe-bw-badgid"), rc=(0, 1)), {}, "fail", None,
         "IP version. (exit 1) / the two ends differ in GID"),
    "no address": ("rping", said(recorded("rxe-rping-addr"), rc=(0, 1)), {}, "fail", None,
         "cma event RDMA_CM_EVENT_ADDR_ERROR, error -110 (exit 1) / no host answers"),
    "no server": ("rping", said(recorded("rxe-rping-none"), rc=(0, 1)), {}, "fail", None,
         "wait for CONNECTED state 4; connect error -1 (exit 1) / the server had stopped"),
    "both ends are quoted": (
        "write_bw", said(REFUSED, rc=(124, 1)), {}, "fail", None,
        "n1 mlx5_0:1: no answer within its time limit; n2 mlx5_0:1: Couldn't connect to 10.0.0.1:18515; Unable to open "
        "file descriptor for socket connection (exit 1) / the hosts do not reach each other over TCP: check firewall",
    ),
    "no word": ("write_bw", said(""), {}, "fail", None, f"{ENDED} / "),
    "no figure": ("write_bw", said(" #bytes BW\n-----\n"), {}, "fail", None,
         f"{ENDED}; the client's last line: #bytes BW / "),
    "missing tool": ("write_bw", (Answer(missing="there is no ib_write_bw"), Answer()), {}, "skip", None,
         "n1: there is no ib_write_bw / install perftest (in the spec: rdma: {packages: [perftest]})"),
    "lost connection": ("rping", (Answer(trouble="it broke"), Answer()), {}, "unknown", None, "n1: it broke"),
    "nccl": ("nccl", nccl(BY_RDMA), {"measured": 92.0}, "pass", 73.6, "(0.8 of its write_bw of 92)"),
    "nccl below write_bw": ("nccl", nccl(BY_RDMA), {"measured": 110.0}, "fail", 88.0,
         "below 88 (0.8 of its write_bw of 110)"),
    "nccl without write_bw": ("nccl", nccl(BY_RDMA), {}, "pass", None, "write_bw was not measured on this link"),
    "nccl over sockets": ("nccl", nccl("n:1:1 [0] NCCL INFO Using network Socket\n"), {}, "fail", None,
         "but not by RDMA"),
    "nccl without a log": ("nccl", nccl("nothing\n"), {}, "unknown", None, "but without proof"),
    "a wrong sum": ("nccl", nccl("n:1:1 [0] NCCL INFO Using network IB\n", wrong=17), {}, "fail", None,
         "wrong in 17 elements"),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_a_figure_counts_with_its_proof_and_a_failure_says_what_to_do(name: str) -> None:
    test, answers, more, status, limit, words = VERDICTS[name]
    finding = judged(test, answers, **more)
    assert (finding.status, finding.limit) == (status, pytest.approx(limit)), finding
    assert words in f"{finding.summary} / {finding.remedy}", finding
    assert finding.value is None or f"{finding.value:.4g} " in finding.summary
    if status == "pass":
        assert all(f"{each} mlx5_0:1: counters/port_xmit_data" in finding.proof for each in ("n1", "n2"))


@pytest.mark.parametrize(("mtu", "status"), [(1024, "warn"), (2048, "warn"), (4096, "pass")])
def test_an_rdma_mtu_below_what_both_ends_can_is_a_warning(mtu: int, status: str) -> None:
    """RoCE derives it from the interface's MTU: 1500 gives 1024."""
    text = f" Mtu             : {mtu}[B]\n{ROW}"
    small = replace(A, netdev="ens1", mtu=1500), replace(B, netdev="ens2", mtu=9000)
    finding = judged("write_bw", said(text), small)
    assert (finding.status, finding.more) == (status, {"mtu": float(mtu)})
    if status == "warn":
        assert f"carry {mtu} of 4096 bytes (MTU of n1 ens1: 1500; n2 ens2: 9000)" in finding.summary
        assert "an MTU of 4200 or more" in finding.remedy
    assert judged("write_bw", said(text), small, write_bw=0.95).status == "fail"
    assert judged("write_bw", said(recorded("rxe-bw-ok"), driver="rdma_rxe")).more == {"mtu": 1024.0}


def test_commands_name_device_port_and_gid_and_the_server_last() -> None:
    server, client = commands(TESTS["write_bw"], A, B, 2)
    assert client.arguments == (*server.arguments, A.address)
    assert server.arguments[:6] == ("-d", "mlx5_0", "-i", "1", "-x", "3")
    assert server.limit > client.limit
    _, client = commands(TESTS["rping"], A, B, 2)
    assert client.arguments[-4:] == ("-a", A.address, "-I", B.address)
    # InfiniBand has no GID index.
    server, _ = commands(TESTS["read_lat"], replace(A, gid_index=None), B, 2)
    assert "-x" not in server.arguments


def test_nccl_is_held_to_the_port_under_test() -> None:
    server, client = commands(TESTS["nccl"], A, B, 2)
    assert {"MASTER_ADDR=10.0.0.1", "RANK=1", "WORLD_SIZE=2", "NCCL_IB_HCA==mlx5_0:1"} <= set(client.before)
    assert {"RANK=0", "NCCL_SOCKET_IFNAME==eth1", "NCCL_IB_GID_INDEX=3"} <= set(server.before)


def test_the_all_reduce_runs_in_the_python_of_the_spec() -> None:
    spec = NodeSpec.model_validate({"verify": {"torch": "/opt/torch/bin/python3"}})
    assert program(TESTS["nccl"], spec) == "/opt/torch/bin/python3"
    assert program(TESTS["write_bw"], spec) == "ib_write_bw"
    assert program(TESTS["nccl"], NodeSpec()) == "python3"


def test_ports_that_are_paired_have_one_mtu() -> None:
    """A warning for both hosts; not over TCP, which tcp_mtu tests, nor over InfiniBand, nor where one is unknown."""
    for ends, status in (
        ((replace(A, mtu=9000), replace(B, mtu=1500)), "warn"),
        ((replace(A, mtu=9000), replace(B, mtu=9000)), "pass"),
        ((replace(A, mtu=9000), B), "pass"),
        ((replace(A, mtu=9000, port=0, gid_index=None), replace(B, mtu=1500, port=0, gid_index=None)), "pass"),
        ((replace(A, mtu=2044, gid_index=None), replace(B, mtu=4092, gid_index=None)), "pass"),
    ):
        written = replace(judged("write_bw", WRITTEN), server=ends[0], client=ends[1])
        run = FabricRun(Wanted(Pairing("ring"), ("write_bw",), 5), findings=[written])
        for host in ("n1", "n2"):
            ports = judge_host(run, host, NodeSpec(), date(2026, 11, 1))[0].verdict
            assert ports.status == status
            assert ("n1 mlx5_0:1 9000, n2 mlx5_0:1 1500" in ports.summary) == (status == "warn")


def test_wrong_data_is_called_that() -> None:
    """What rping of rdma-core 56 prints if the other end changes a byte."""
    text = "data mismatch!\nrping client failed: -1\n"
    finding = judged("rping", said(text, rc=(0, 255)))
    assert finding.status == "fail" and "data mismatch!" in finding.summary
    assert finding.remedy.startswith("data was corrupted")

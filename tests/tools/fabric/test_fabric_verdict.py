"""From what both ends said to a finding: a figure counts only with its proof, and a failure says what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpuready.spec.model import NodeSpec
from gpuready.spec.verify import Thresholds
from gpuready.tools.fabric.commands import ALL_REDUCE_BYTES, ALL_REDUCES, PINGS, TESTS, commands, program
from gpuready.tools.fabric.counters import Snapshot
from gpuready.tools.fabric.verdict import Answer, Finding, found
from tests.tools.fabric.fabric_samples import end

DATA = Path(__file__).parents[2] / "data/fabric"
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


def said(client: str, server: str = "", rc: tuple[int, int] = (0, 0), **shot: object) -> tuple[Answer, Answer]:
    return Answer(rc[0], server, **shots(**shot)), Answer(rc[1], client, **shots(**shot))  # type: ignore[arg-type]


def judged(test: str, answers: tuple[Answer, Answer], write_bw: float | None = None) -> Finding:
    return found(TESTS[test], A, B, answers, Thresholds(), write_bw)


@pytest.mark.parametrize(
    ("test", "text", "value"), [("rping", PING, PINGS), ("write_bw", ROW, 92.41), ("read_lat", LATENCY, 3.2)]
)
def test_a_figure_with_its_proof_passes(test: str, text: str, value: float) -> None:
    finding = judged(test, said(text))
    assert (finding.status, finding.value) == ("pass", value)
    assert "n1 mlx5_0:1: counters/port_xmit_data" in finding.proof
    assert "n2 mlx5_0:1: counters/port_xmit_data" in finding.proof


@pytest.mark.parametrize(("test", "text"), [("rping", PING), ("write_bw", ROW), ("read_lat", LATENCY)])
def test_the_same_figure_without_bytes_on_the_port_fails(test: str, text: str) -> None:
    finding = judged(test, said(text, out=0, into=0))
    assert finding.status == "fail"
    assert "but not by RDMA" in finding.summary


def test_one_end_without_bytes_is_enough_to_fail() -> None:
    server, client = said(ROW)
    assert judged("write_bw", (replace(server, **shots(into=100)), client)).status == "fail"


def test_without_counters_it_is_unknown() -> None:
    server, client = said(ROW)
    finding = judged("write_bw", (server, replace(client, before=Snapshot("siw", {}), after=Snapshot("siw", {}))))
    assert finding.status == "unknown"
    assert finding.value == 92.41


def test_below_the_fraction_of_the_line_rate_it_fails() -> None:
    assert judged("write_bw", said(ROW)).limit == 85.0
    strict = found(TESTS["write_bw"], A, B, said(ROW), Thresholds(write_bw=0.95))
    assert (strict.status, strict.limit) == ("fail", 95.0)
    assert "below 95 (0.95 of the line rate of 100)" in strict.summary


@pytest.mark.parametrize(("mtu", "status"), [(1024, "warn"), (2048, "warn"), (4096, "pass")])
def test_an_rdma_mtu_below_what_both_ends_can_is_a_warning(mtu: int, status: str) -> None:
    """RoCE derives it from the interface's MTU: 1500 gives 1024."""
    text = f" Mtu             : {mtu}[B]\n{ROW}"
    small = replace(A, netdev="ens1", mtu=1500), replace(B, netdev="ens2", mtu=9000)
    finding = found(TESTS["write_bw"], *small, said(text), Thresholds())
    assert (finding.status, finding.more) == (status, {"mtu": float(mtu)})
    if status == "warn":
        assert f"carry {mtu} of 4096 bytes (MTU of n1 ens1: 1500; n2 ens2: 9000)" in finding.summary
        assert "an MTU of 4200 or more" in finding.remedy
    slow = found(TESTS["write_bw"], *small, said(text), Thresholds(write_bw=0.95))
    assert slow.status == "fail"


def test_a_software_device_may_have_small_packets() -> None:
    soft = said((DATA / "rxe-bw-ok.txt").read_text("utf-8"), driver="rdma_rxe")
    finding = judged("write_bw", soft)
    assert (finding.status, finding.more) == ("pass", {"mtu": 1024.0})


def test_the_slower_end_is_the_line_rate() -> None:
    finding = found(TESTS["write_bw"], end("n1", line=25.0), B, said(ROW), Thresholds())
    assert finding.limit == 21.25


def test_a_software_device_has_no_limit_and_says_so() -> None:
    server, client = said(ROW)
    soft = [
        Answer(0, each.text, *(Snapshot("rdma_rxe", shot.values) for shot in (each.before, each.after) if shot))
        for each in (server, client)
    ]
    finding = judged("write_bw", (soft[0], soft[1]))
    assert (finding.status, finding.limit) == ("pass", None)
    assert "no limit: a software device has no line rate" in finding.summary


def test_an_unknown_line_rate_is_no_limit() -> None:
    finding = found(TESTS["write_bw"], end("n1", line=None), B, said(ROW), Thresholds())
    assert (finding.status, finding.limit) == ("pass", None)
    assert "line rate of an interface is unknown" in finding.summary


def test_latency_has_a_limit_only_where_one_was_set() -> None:
    assert judged("read_lat", said(LATENCY)).limit is None
    slow = found(TESTS["read_lat"], A, B, said(LATENCY), Thresholds(read_lat=3.0))
    assert slow.status == "fail"
    assert "above 3" in slow.summary
    assert found(TESTS["read_lat"], A, B, said(LATENCY), Thresholds(read_lat=3.2)).status == "pass"


def test_rping_that_exits_0_without_all_its_pings_fails() -> None:
    finding = judged("rping", said(PING.split("ping data: rdma-ping-7")[0]))
    assert finding.status == "fail"


def test_a_test_that_ended_well_without_one_message_fails() -> None:
    lost = (DATA / "rxe-bw-drop.txt").read_text("utf-8")
    finding = judged("write_bw", said(lost))
    assert finding.status == "fail"
    assert "no message arrived" in finding.summary
    assert "UDP port 4791" in finding.remedy


@pytest.mark.parametrize(
    ("name", "test", "remedy"),
    [
        ("rxe-bw-notcp", "write_bw", "over TCP"),
        ("rxe-bw-badgid", "write_bw", "differ in GID"),
        ("rxe-rping-addr", "rping", "no host answers"),
        ("rxe-rping-none", "rping", "the server had stopped"),
    ],
)
def test_what_the_tools_say_has_a_meaning(name: str, test: str, remedy: str) -> None:
    finding = judged(test, said((DATA / f"{name}.txt").read_text("utf-8"), rc=(0, 1)))
    assert finding.status == "fail"
    assert remedy in finding.remedy


def test_a_failure_quotes_both_ends_and_says_what_to_do() -> None:
    client = " Couldn't connect to 10.0.0.1:18515\n Unable to open file descriptor for socket connection"
    finding = judged("write_bw", said(client, rc=(124, 1)))
    assert finding.status == "fail"
    assert "n2 mlx5_0:1: Couldn't connect to 10.0.0.1:18515" in finding.summary
    assert "n1 mlx5_0:1: no answer within its time limit" in finding.summary
    assert "firewall" in finding.remedy


def test_a_failure_without_a_word_still_says_how_it_ended() -> None:
    ended = "the client exits with 0, the server with 0, without a figure"
    assert judged("write_bw", said("")).summary == ended
    assert judged("write_bw", said(" #bytes BW\n-----\n")).summary == f"{ended}; the client's last line: #bytes BW"


def test_a_missing_tool_is_a_skip_that_names_the_package() -> None:
    finding = judged("write_bw", (Answer(missing="there is no ib_write_bw"), Answer()))
    assert (finding.status, finding.summary, finding.remedy) == (
        "skip",
        "n1: there is no ib_write_bw",
        "install perftest (in the spec: rdma: {packages: [perftest]})",
    )


def test_a_lost_connection_is_unknown() -> None:
    assert judged("rping", (Answer(trouble="the connection broke"), Answer())).status == "unknown"


def nccl(log: str) -> tuple[Answer, Answer]:
    row = f"{ALL_REDUCE_BYTES} {ALL_REDUCE_BYTES // 4} float sum -1 100000.0 10.74 10.74 0\n"
    return said(log, log + row, out=ALL_REDUCE_BYTES * ALL_REDUCES * 2, into=ALL_REDUCE_BYTES * ALL_REDUCES * 2)


def test_nccl_is_held_against_its_links_write_bw() -> None:
    recorded = (DATA / "all_reduce_perf.txt").read_text("utf-8")
    log = "".join(line for line in recorded.splitlines(keepends=True) if "NCCL INFO" in line)
    assert judged("nccl", nccl(log), 92.0).status == "pass"
    slow = judged("nccl", nccl(log), 110.0)
    assert slow.status == "fail"
    assert "below 88 (0.8 of its write_bw of 110)" in slow.summary
    assert judged("nccl", nccl(log)).limit is None


def test_nccl_over_sockets_fails_and_silence_is_unknown() -> None:
    assert judged("nccl", nccl("n:1:1 [0] NCCL INFO Using network Socket\n"), 92.0).status == "fail"
    assert judged("nccl", nccl("nothing\n"), 92.0).status == "unknown"


def test_a_wrong_sum_is_no_figure_however_fast_it_came() -> None:
    server, client = nccl("n:1:1 [0] NCCL INFO Using network IB\n")
    finding = judged("nccl", (replace(server, text=server.text.replace(" 10.74 0\n", " 10.74 17\n")), client))
    assert (finding.status, finding.value) == ("fail", None)
    assert "wrong in 17 elements" in finding.summary


def test_commands_name_device_port_and_gid_and_the_server_last() -> None:
    server, client = commands(TESTS["write_bw"], A, B, 2)
    assert client.arguments == (*server.arguments, A.address)
    assert server.arguments[:6] == ("-d", "mlx5_0", "-i", "1", "-x", "3")
    assert server.limit > client.limit
    _, client = commands(TESTS["rping"], A, B, 2)
    assert client.arguments[-4:] == ("-a", A.address, "-I", B.address)


def test_infiniband_has_no_gid_index() -> None:
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

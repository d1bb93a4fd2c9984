"""What the tools print: recorded between E810s with A100s (IIJ), on H200s, and between VMs over soft RoCE."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuready.tools.fabric import figures
from gpuready.tools.fabric.figures import Bandwidth, Collective, Latency

DATA = Path(__file__).parents[2] / "data/fabric"


def recorded(name: str) -> str:
    return (DATA / name).read_text("utf-8")


def test_rping_is_counted_by_its_pings() -> None:
    text = recorded("rping-client.txt")
    assert figures.pings(text) == 3
    assert figures.pings(text.replace("rdma-ping-1:", "rdma-ping-7:")) == 0
    assert figures.pings("client DISCONNECT EVENT...\n") == 0


def test_two_vms_over_soft_roce() -> None:
    """perftest 25.01 of Debian 13 between two virtual machines."""
    assert figures.bandwidth(recorded("rxe-bw-ok.txt")) == Bandwidth(65536, 151, 0.039511)
    assert figures.latency(recorded("rxe-lat-ok.txt")) == Latency(64, 1000, 10223.97, 16070.66, 99008.28)
    assert figures.complaint(recorded("rxe-bw-ok.txt")) == ""
    assert figures.complaint(recorded("rxe-lat-ok.txt")) == ""


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (recorded("ib_write_bw-server.txt"), Bandwidth(65536, 1324156, 23.14)),
        # RoCE's UDP port was filtered at the server: ib_write_bw -D does not call that an error, and exits with 0.
        (recorded("rxe-bw-drop.txt"), Bandwidth(65536, 0, 0.0)),
        (" 2 10 0.00 1.00 0.1\n 4 20 0.00 2.00 0.1\n", Bandwidth(4, 20, 2.0)),  # of several sizes the last counts
    ],
)
def test_the_row_of_ib_write_bw_gives_its_average(text: str, row: Bandwidth) -> None:
    assert figures.bandwidth(text) == row


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "rxe-bw-notcp.txt",
            "Couldn't connect to 10.77.0.1:18702; Unable to open file descriptor for socket connection",
        ),
        ("rxe-bw-badgid.txt", "Found Incompatibility issue with GID types.; Please Try to use a different IP version."),
        ("rxe-rping-addr.txt", "cma event RDMA_CM_EVENT_ADDR_ERROR, error -110"),
        ("rxe-rping-none.txt", "cma event RDMA_CM_EVENT_REJECTED, error 8"),
    ],
)
def test_what_the_tools_say_when_they_fail(name: str, words: str) -> None:
    assert figures.complaint(recorded(name)).startswith(words)


def test_tabs_warnings_and_a_missing_peak_do_not_matter() -> None:
    text = " #bytes #iterations\nConflicting CPU frequency values detected: 2200.0 != 3400.0\n"
    row = " 65536      1568             0.00               0.27   \t\t   0.000522\n----\n"
    assert figures.bandwidth(text + row) == Bandwidth(65536, 1568, 0.27)
    assert figures.bandwidth(text) is None


def test_a_latency_row_has_nine_numbers() -> None:
    row = " 64      1000       3.11       9.02      3.20   \t     3.25      \t0.20   \t\t3.90    \t\t9.02\n"
    assert figures.latency(row) == Latency(64, 1000, 3.2, 3.25, 3.9)
    odd = " 64      1000    -493.27         284326.67      3.20  \t       3.25     \t-nan\t\t3.90 \t\t-1.00"
    assert figures.latency(odd) == Latency(64, 1000, 3.2, 3.25, 3.9)
    assert figures.bandwidth(row) is None
    assert figures.latency(" 65536 1568 0.00 0.27 0.000522\n") is None


def test_nccl_tests_row() -> None:
    found = figures.collective(recorded("all_reduce_perf.txt"))
    assert found is not None and found == Collective(10737418240, 3825027.0, 2.81, 2.81, 0)
    assert found.size / found.time / 1e3 == pytest.approx(found.algbw, rel=0.01)
    assert figures.collective("  8  2  float  sum  -1  1e+05  0.00  0.00  N/A  11.2 0.00 0.00 N/A\n") == Collective(
        8, 100000.0, 0.0, 0.0, None
    )


def test_the_network_is_what_the_log_says() -> None:
    log = recorded("all_reduce_perf.txt")
    assert figures.network(log) == "NET/IB irdma0:1/RoCE"
    assert figures.network(log.replace("Using network IBext", "Using network Socket")) == "Socket"
    assert figures.network("n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n") == "Socket"
    assert figures.network("n1:1:1 [0] NCCL INFO NET/IB : No device found.\n") == ""


def test_torchs_all_reduce_is_told_in_the_same_columns() -> None:
    """tools/fabric/all_reduce.py.j2 on two H200s, held to sockets (NCCL 2.28.9): its log has a NET/IB line, too."""
    text = recorded("all_reduce-sockets.txt")
    assert figures.collective(text) == Collective(1073741824, 322920.0, 3.33, 3.33, 0)
    assert "NET/IB : Using [RO]" in text
    assert figures.network(text) == "Socket"


def test_a_complaint_is_any_line_without_a_figure_or_decoration() -> None:
    assert figures.complaint(recorded("ib_write_bw-server.txt")) == ""
    text = recorded("ib_write_bw-server.txt") + " Couldn't connect to 10.0.0.1:18515\n Unable to open file descriptor\n"
    assert figures.complaint(text) == "Couldn't connect to 10.0.0.1:18515; Unable to open file descriptor"
    assert figures.complaint("cma event RDMA_CM_EVENT_ADDR_ERROR, error -110\n") == (
        "cma event RDMA_CM_EVENT_ADDR_ERROR, error -110"
    )
    log = (  # the lines of NCCL are from two H200s that did not reach each other
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled system error\n"
        "vm:836:1115 [0] NCCL INFO misc/socket.cc:868 -> 3\n"
        "vm:836:1115 [0] NCCL INFO comm 0x11d46210 rank 0 nranks 2 cudaDev 0 busId 60 - Abort COMPLETE\n"
        "vm:836:836 [0] NCCL INFO ENV/Plugin: Closing env plugin ncclEnvDefault\n"
    )
    assert figures.complaint(log) == log.splitlines()[0]

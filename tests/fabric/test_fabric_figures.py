"""What the tools print: recorded between E810s with A100s (IIJ), on H200s, and between VMs over soft RoCE."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuready.fabric import figures
from gpuready.fabric.figures import Bandwidth, Collective, Latency

DATA = Path(__file__).parents[1] / "data/fabric"


def recorded(name: str) -> str:
    return (DATA / name).read_text("utf-8")


PINGED, WRITTEN, SUMMED = map(recorded, ("rping-client.txt", "ib_write_bw-server.txt", "all_reduce_perf.txt"))
TABS = " 65536      1568             0.00               0.27   \t\t   0.000522\n----\n"
WARNED = " #bytes #iterations\nConflicting CPU frequency values detected: 2200.0 != 3400.0\n"
LATENCY = " 64      1000       3.11       9.02      3.20   \t     3.25      \t0.20   \t\t3.90    \t\t9.02\n"
ODD = " 64      1000    -493.27         284326.67      3.20  \t       3.25     \t-nan\t\t3.90 \t\t-1.00"
UNCHECKED = "  8  2  float  sum  -1  1e+05  0.00  0.00  N/A  11.2 0.00 0.00 N/A\n"
#: torch's all-reduce, printed in the columns of nccl-tests: fabric/all_reduce.py.j2 on two H200s, held to sockets
#: (NCCL 2.28.9). Its log has a NET/IB line, too.
SOCKETS = recorded("all_reduce-sockets.txt")


@pytest.mark.parametrize(
    ("read", "text", "figure"),
    [
        (figures.pings, PINGED, 3),
        (figures.pings, PINGED.replace("rdma-ping-1:", "rdma-ping-7:"), 0),
        (figures.pings, "client DISCONNECT EVENT...\n", 0),
        # perftest 25.01 of Debian 13 between two virtual machines, over soft RoCE.
        (figures.bandwidth, recorded("rxe-bw-ok.txt"), Bandwidth(65536, 151, 0.039511)),
        (figures.latency, recorded("rxe-lat-ok.txt"), Latency(64, 1000, 10223.97, 16070.66, 99008.28)),
        (figures.bandwidth, WRITTEN, Bandwidth(65536, 1324156, 23.14)),
        # RoCE's UDP port was filtered at the server: ib_write_bw -D does not call that an error, and exits with 0.
        (figures.bandwidth, recorded("rxe-bw-drop.txt"), Bandwidth(65536, 0, 0.0)),
        (figures.bandwidth, " 2 10 0.00 1.00 0.1\n 4 20 0.00 2.00 0.1\n", Bandwidth(4, 20, 2.0)),  # the last one counts
        (figures.bandwidth, WARNED + TABS, Bandwidth(65536, 1568, 0.27)),
        (figures.bandwidth, WARNED, None),
        (figures.bandwidth, LATENCY, None),
        (figures.latency, LATENCY, Latency(64, 1000, 3.2, 3.25, 3.9)),
        (figures.latency, ODD, Latency(64, 1000, 3.2, 3.25, 3.9)),
        (figures.latency, TABS, None),
        (figures.collective, SUMMED, Collective(10737418240, 3825027, 2.81, 2.81, 0)),
        (figures.collective, UNCHECKED, Collective(8, float(UNCHECKED.split()[5]), 0.0, 0.0, None)),
        (figures.collective, UNCHECKED.replace("N/A  11", "0  11"), Collective(8, 1e5, 0.0, 0.0, 0)),
        (figures.collective, UNCHECKED.replace("0.00 N/A\n", "0.00 17\n"), Collective(8, 1e5, 0.0, 0.0, 17)),
        (figures.collective, UNCHECKED.replace("N/A  11", "-nan  11"), Collective(8, 1e5, 0.0, 0.0, 1)),
        (figures.collective, SOCKETS, Collective(1073741824, 322920.0, 3.33, 3.33, 0)),
        (figures.network, SUMMED, "NET/IB irdma0:1/RoCE"),
        (figures.network, SUMMED.replace("Using network IBext", "Using network Socket"), "Socket"),
        (figures.network, "n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n", "Socket"),
        (figures.network, "n1:1:1 [0] NCCL INFO NET/IB : No device found.\n", ""),
        (figures.network, SOCKETS, "Socket"),
    ],
)
def test_what_is_read_of_an_output(read: Callable[[str], object], text: str, figure: object) -> None:
    assert read(text) == figure


@pytest.mark.parametrize("text", [WRITTEN, recorded("rxe-bw-ok.txt"), recorded("rxe-lat-ok.txt")])
def test_a_figure_is_no_complaint(text: str) -> None:
    assert figures.complaint(text) == ""


def test_a_complaint_is_any_line_without_a_figure_or_decoration() -> None:
    text = WRITTEN + " Couldn't connect to 10.0.0.1:18515\n Unable to open file descriptor\n"
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

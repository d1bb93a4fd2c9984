"""Verdicts of the checks of NVLink: two recorded H200, and answers that differ in a few words."""

from typing import Any

from gpuready.base.facts import Unknown
from gpuready.model.state import Driver, NodeState
from tests.model.probe_answers import DATA
from tests.verdicts import Row, fails, held, is_unknown, passes, skips, warns

STATUS, ERRORS, P2P = (
    (DATA / "h200x2" / f"{name}.txt").read_text("utf-8") for name in ("nvlink-s", "nvlink-e", "topo-p2pr")
)
SWITCHED: dict[str, Any] = {"hardware": {"nvswitch": True}}
#: What NVLink 5 counts, by the names of driver 595; the first bucket of FEC counts whole codewords.
NVLINK5 = """GPU 0: NVIDIA B300 SXM6 AC (UUID: GPU-1)
\t Link 0: Malformed packet Errors: 0
\t Link 0: Link recovery successful events: 0
\t Link 0: Link recovery failed events: 0
\t Link 0: FEC Errors - 0: 36140749276
\t Link 0: Effective BER: 15e-255
"""
NO_LINKS = "GPU 0: NVIDIA L4 (UUID: GPU-1)\n"


def node(status: str = STATUS, errors: str = ERRORS, p2p: str = P2P, rc: int = 0) -> NodeState:
    told = {"nvlink": status, "nvlink_errors": errors, "p2p": p2p}
    return NodeState(
        driver=Driver(proc_version="580.159.04"), active={name: {"rc": rc, "out": text} for name, text in told.items()}
    )


def silent(name: str) -> NodeState:
    """One of the answers was cut off with the connection."""
    return node().model_copy(update={"active": {**node().active, name: Unknown(unknown="its answer is cut off")}})


def down(*links: int, gpu: int = 1, text: str = STATUS) -> str:
    """The recorded answer with links of one GPU that are not up."""
    head, mark, tail = text.partition(f"GPU {gpu}:")
    for link in links:
        tail = tail.replace(f"Link {link}: 26.562 GB/s", f"Link {link}: <inactive>", 1)
    return head + mark + tail


def counted(name: str, count: int = 1, text: str = ERRORS) -> str:
    """The errors of the last GPU that is listed, with another count."""
    head, zero, tail = text.rpartition(f"{name}: 0")
    assert zero
    return f"{head}{name}: {count}{tail}"


def between(word: str) -> str:
    """The recorded matrix with another word for one pair of GPUs."""
    return P2P.replace("OK\t\n", f"{word}\t\n", 1)


ALL = tuple(range(18))
UP_TO_9 = {"verify": {"thresholds": {"nvlink_errors": 9}}}
VERDICTS: list[Row] = [
    passes("gpu.nvlink", "18 of 18 links are up on each of 2 GPUs, 26.562 GB/s each", node()),
    skips("gpu.nvlink", "nvidia-smi is missing"),
    skips("gpu.nvlink", "no GPU has NVLink", node(NO_LINKS, NO_LINKS)),
    skips("gpu.nvlink", "no GPU has NVLink", node("", "")),
    is_unknown("gpu.nvlink", "no answer within 30 s", node("no answer within 30 s\n", "", rc=124)),
    is_unknown("gpu.nvlink", "cut off", silent("nvlink")),
    is_unknown("gpu.nvlink", "cut off", silent("nvlink_errors")),
    fails("gpu.nvlink", "different numbers of links up: 18, 16", node(down(3, 4))),
    fails("gpu.nvlink", "1 of 2 GPUs: 1 of 18 links are down (3)", node(down(3)), SWITCHED),
    fails("gpu.nvlink", "2 of 2 GPUs: 18 of 18 links", node(down(*ALL, text=down(*ALL, gpu=0))), SWITCHED),
    # H100 NVL: a bridge joins 12 of 18 links; without the bridge, none.
    passes("gpu.nvlink", "12 of 18 links are up", node(down(*ALL[12:], text=down(*ALL[12:], gpu=0)))),
    skips("gpu.nvlink", "no switch or bridge connects them", node(down(*ALL, text=down(*ALL, gpu=0)))),
    fails("gpu.nvlink", "17, 18", node(STATUS.replace("Link 5: 26.562 GB/s", "Link 5: sleeping", 1))),
    warns("gpu.nvlink", "differ in speed: 25.781, 26.562", node(STATUS.replace("26.562", "25.781", 1))),
    passes("gpu.nvlink_errors", "more than 0 errors", node()),
    skips("gpu.nvlink_errors", "nvidia-smi is missing"),
    skips("gpu.nvlink_errors", "prints no NVLink error counters", node(errors="")),
    warns("gpu.nvlink_errors", "GPU 1 link 17: CRC Errors 2", node(errors=counted("CRC Errors", 2))),
    fails("gpu.nvlink_errors", "GPU 1 link 17: Recovery Errors 1", node(errors=counted("Recovery Errors"))),
    passes("gpu.nvlink_errors", "more than 9 errors", node(errors=counted("Replay Errors", 9)), UP_TO_9),
    passes("gpu.nvlink_errors", "more than 0", node(errors=NVLINK5)),
    warns("gpu.nvlink_errors", "successful events 1", node(errors=counted("recovery successful events", text=NVLINK5))),
    fails("gpu.nvlink_errors", "failed events 1", node(errors=counted("Link recovery failed events", text=NVLINK5))),
    passes("gpu.p2p", "each of 2 GPUs", node()),
    skips("gpu.p2p", "one GPU"),
    is_unknown("gpu.p2p", "no answer within 30 s", node(p2p="no answer within 30 s")),
    is_unknown("gpu.p2p", "cut off", silent("p2p")),
    fails("gpu.p2p", "GPU 0 cannot access the memory of GPU 1: the chipset", node(p2p=between("CNS"))),
    passes("gpu.p2p", "no NVLink connects them", node(NO_LINKS, NO_LINKS, between("GNS"))),
]
test_verdict = held(VERDICTS)

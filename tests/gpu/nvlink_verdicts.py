"""Verdicts of the checks of NVLink, for test_checks.py: two recorded H200, and answers that differ in a few words."""

from __future__ import annotations

from typing import Any

from gpuready.state.model import Driver, NodeState
from tests.state.probe_answers import DATA

Row = tuple[str, str, NodeState, dict[str, Any], str]
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
    return node().model_copy(update={"active": {**node().active, name: {"unknown": "its answer is cut off"}}})


def down(*links: int, gpu: int = 1, text: str = STATUS) -> str:
    """The recorded answer with links of one GPU that are not up."""
    head, mark, tail = text.partition(f"GPU {gpu}:")
    for link in links:
        tail = tail.replace(f"Link {link}: 26.562 GB/s", f"Link {link}: <inactive>", 1)
    return head + mark + tail


def counted(name: str, count: int, gpu: int = 1, link: int = 17) -> str:
    head, mark, tail = ERRORS.partition(f"GPU {gpu}:")
    assert f"Link {link}: {name}: 0" in tail
    return head + mark + tail.replace(f"Link {link}: {name}: 0", f"Link {link}: {name}: {count}", 1)


ALL = tuple(range(18))
VERDICTS: list[Row] = [
    ("gpu.nvlink", "pass", node(), {}, "18 of 18 links are up on each of 2 GPUs, 26.562 GB/s each"),
    ("gpu.nvlink", "skip", NodeState(), {}, "nvidia-smi is missing"),
    ("gpu.nvlink", "skip", node(NO_LINKS, NO_LINKS), {}, "no GPU has NVLink"),
    ("gpu.nvlink", "skip", node("", ""), {}, "no GPU has NVLink"),
    ("gpu.nvlink", "unknown", node("no answer within 30 s\n", "", rc=124), {}, "no answer within 30 s"),
    ("gpu.nvlink", "unknown", silent("nvlink"), {}, "cut off"),
    ("gpu.nvlink", "unknown", silent("nvlink_errors"), {}, "cut off"),
    ("gpu.nvlink", "fail", node(down(3, 4)), {}, "different numbers of links up: 18, 16"),
    ("gpu.nvlink", "fail", node(down(3)), SWITCHED, "1 of 2 GPUs: 1 of 18 links are down (3)"),
    ("gpu.nvlink", "fail", node(down(*ALL, text=down(*ALL, gpu=0))), SWITCHED, "2 of 2 GPUs: 18 of 18 links"),
    # H100 NVL: a bridge joins 12 of 18 links; without the bridge, none.
    ("gpu.nvlink", "pass", node(down(*ALL[12:], text=down(*ALL[12:], gpu=0))), {}, "12 of 18 links are up"),
    ("gpu.nvlink", "skip", node(down(*ALL, text=down(*ALL, gpu=0))), {}, "no switch or bridge connects them"),
    ("gpu.nvlink", "fail", node(STATUS.replace("Link 5: 26.562 GB/s", "Link 5: sleeping", 1)), {}, "17, 18"),
    ("gpu.nvlink", "warn", node(STATUS.replace("26.562", "25.781", 1)), {}, "differ in speed: 25.781, 26.562"),
    ("gpu.nvlink_errors", "pass", node(), {}, "more than 0 errors"),
    ("gpu.nvlink_errors", "skip", NodeState(), {}, "nvidia-smi is missing"),
    ("gpu.nvlink_errors", "skip", node(errors=""), {}, "prints no NVLink error counters"),
    ("gpu.nvlink_errors", "warn", node(errors=counted("CRC Errors", 2)), {}, "GPU 1 link 17: CRC Errors 2"),
    ("gpu.nvlink_errors", "fail", node(errors=counted("Recovery Errors", 1)), {}, "GPU 1 link 17: Recovery Errors 1"),
    ("gpu.nvlink_errors", "pass", node(errors=counted("Replay Errors", 9)),
     {"verify": {"thresholds": {"nvlink_errors": 9}}}, "more than 9 errors"),
    ("gpu.nvlink_errors", "pass", node(errors=NVLINK5), {}, "more than 0"),
    ("gpu.nvlink_errors", "warn", node(errors=NVLINK5.replace("successful events: 0", "successful events: 1")), {},
     "Link recovery successful events 1"),
    ("gpu.nvlink_errors", "fail", node(errors=NVLINK5.replace("failed events: 0", "failed events: 1")), {},
     "Link recovery failed events 1"),
    ("gpu.p2p", "pass", node(), {}, "each of 2 GPUs"),
    ("gpu.p2p", "skip", NodeState(), {}, "one GPU"),
    ("gpu.p2p", "unknown", node(p2p="no answer within 30 s"), {}, "no answer within 30 s"),
    ("gpu.p2p", "unknown", silent("p2p"), {}, "cut off"),
    ("gpu.p2p", "fail", node(p2p=P2P.replace("OK\t\n", "CNS\t\n", 1)), {},
     "GPU 0 cannot access the memory of GPU 1: the chipset does not support it"),
    ("gpu.p2p", "pass", node(NO_LINKS, NO_LINKS, P2P.replace("OK\t\n", "GNS\t\n", 1)), {}, "no NVLink connects them"),
]  # fmt: skip

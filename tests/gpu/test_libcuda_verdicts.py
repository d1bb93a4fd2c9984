"""Verdicts on libcuda as ldconfig, the loader and CUDA find it on the host."""

from collections.abc import Mapping
from typing import Any

from gpuready.model.state import Linker, NodeState
from tests.model.probe_answers import DRIVER, LIB64, h200
from tests.verdicts import (
    GPU,
    LOADED,
    UNREADABLE,
    Row,
    answered,
    fails,
    held,
    holding,
    is_unknown,
    one,
    passes,
    skips,
    state,
)

LIB = f"{LIB64}/libcuda.so.1"
REAL = f"{LIB64}/libcuda.so.{DRIVER}"


def cuda(out: str, rc: int = 0) -> NodeState:
    """A node with its driver loaded, after cuInit was called."""
    return state(LOADED, active=answered("cuda", out, rc))


CONF = "/etc/ld.so.conf.d/x.conf"
STUB = "/usr/local/cuda/lib64/stubs/libcuda.so"


def linker(*cached: str, libs: Mapping[str, str] | None = None) -> Linker:
    return Linker(cache={"libcuda.so.1": cached} if cached else {}, libs=dict(libs or {}))


def leading(real: str, driver: Mapping[str, Any] | None = LOADED) -> NodeState:
    """A node whose cached libcuda leads to this file."""
    return state(driver, linker=linker(LIB, libs={LIB: real}))


VERDICTS: list[Row] = [
    # libcuda.stub
    passes("libcuda.stub", "no stub", h200()),
    passes("libcuda.stub", "no stub", holding("# /usr/local/cuda/lib64/stubs\n", CONF)),
    passes("libcuda.stub", "no stub", holding("/opt/compat-tools/lib\n", CONF)),
    fails("libcuda.stub", "stubs or compat", holding("/usr/local/cuda/lib64/stubs\n", CONF)),
    fails("libcuda.stub", "stubs or compat", holding("/usr/local/cuda-13.0/compat # x\n", CONF)),
    fails("libcuda.stub", "stubs or compat", holding("/usr/local/cuda/compat/\n", "/etc/ld.so.conf")),
    fails("libcuda.stub", "stubs or compat", state(linker=linker("/l/libcuda.so.1", libs={"/l/libcuda.so.1": STUB}))),
    fails("libcuda.stub", "stubs or compat", state(linker=linker("/usr/local/cuda/compat/libcuda.so.1"))),
    is_unknown("libcuda.stub", "could not be read", state(linker=UNREADABLE)),
    # libcuda.ldcache
    passes("libcuda.ldcache", LIB, h200()),
    skips("libcuda.ldcache", "no NVIDIA driver"),
    is_unknown("libcuda.ldcache", "could not be read", state(linker=UNREADABLE)),
    fails("libcuda.ldcache", "does not list", state({"pci": (GPU,)})),
    fails("libcuda.ldcache", "does not list", state(linker=linker(libs={LIB: REAL}))),
    fails("libcuda.ldcache", "does not list", spec={"ldso": ["/opt/lib"]}),
    fails("libcuda.ldcache", "does not exist", state({"pci": (GPU,)}, linker=linker(LIB))),
    fails("libcuda.ldcache", "535.1.2", leading("/l/libcuda.so.535.1.2")),
    fails("libcuda.ldcache", "module is 9.9", leading(REAL, {"module_version": "9.9"})),
    passes("libcuda.ldcache", LIB, leading(REAL, None)),
    # libcuda.loader
    passes("libcuda.loader", LIB, h200()),
    skips("libcuda.loader", "no NVIDIA driver"),
    is_unknown("libcuda.loader", "could not be read", state(linker=UNREADABLE)),
    fails("libcuda.loader", "loader does not find", state({"pci": (GPU,)}, linker=linker(LIB))),
    # libcuda.init
    skips("libcuda.init", "no nvidia module"),
    is_unknown("libcuda.init", "was not called", state(LOADED)),
    is_unknown("libcuda.init", "lost", state(LOADED, active={"cuda": {"unknown": "lost"}})),
    is_unknown("libcuda.init", "no python3", cuda("no python3\n", 1)),
    is_unknown("libcuda.init", "no answer", cuda("", 124)),
    passes("libcuda.init", "13.0", cuda("cuInit=0 count=1 version=13000\n")),
    fails("libcuda.init", "803", cuda("cuInit=803 count=-1 version=0\n")),
    fails("libcuda.init", "returns 5", cuda("cuInit=5 count=-1 version=0\n")),
    fails("libcuda.init", "0 of", cuda("cuInit=0 count=0 version=13000\n")),
    fails("libcuda.init", "7 of 8", cuda("cuInit=0 count=7 version=13000\n"), {"hardware": {"gpus": 8}}),
]
test_verdict = held(VERDICTS)


def test_evidence_of_failures() -> None:
    assert one("driver.loaded", state({"pci": (GPU,)})).evidence == "PCI: 0000:00:06.0"
    lies = one("libcuda.ldcache", state(linker=linker(libs={LIB: REAL}))).evidence
    assert lies == f"libcuda is in {LIB64}"
    wrong = one("driver.match", leading("/x/libcuda.so.535.1.2")).evidence
    assert wrong == f"libcuda.so.1 -> {LIB} is 535.1.2"
    assert STUB not in one("libcuda.stub", h200()).evidence
    assert CONF in one("libcuda.stub", holding("/x/stubs\n", CONF)).evidence

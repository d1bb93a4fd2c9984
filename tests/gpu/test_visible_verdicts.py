"""Verdicts of the checks of libcuda's visibility: id, status, node, spec, part of the summary."""

from typing import Any

from gpuready.model.state import Driver, Linker, NodeState, Unknown
from tests.model.probe_answers import DRIVER, LIB64, h200, recorded
from tests.verdicts import Row, fails, held, is_unknown, passes, skips, warns

IMAGE: dict[str, Any] = {"verify": {"image": "app:1"}}
ONE, DEV, REAL = f"{LIB64}/libcuda.so.1", f"{LIB64}/libcuda.so", f"{LIB64}/libcuda.so.{DRIVER}"
OLD = "/usr/lib64/libcuda.so.535.261.03"
OLD_ONE, OTHER = "/usr/lib64/libcuda.so.1", "/x/libcuda.so.1"
LOADED = Driver(proc_version=DRIVER, gpus=("0000:06:00.0",))


def linked(*cached: str, libs: dict[str, str]) -> NodeState:
    """A node with these libraries, and with these libcuda.so.1 in the linker's cache."""
    linker = Linker(cache={"libcuda.so.1": cached} if cached else {}, libs=libs)
    return NodeState(driver=LOADED, linker=linker)


def node(out: str | None = None, rc: int = 0) -> NodeState:
    """A node whose smoke container printed this, or did not run."""
    return NodeState(driver=LOADED, active={} if out is None else {"smoke": {"rc": rc, "out": out}})


def said(*lines: str, cuda: str = "cuInit=0 count=1 version=13000\ncuinit-exit=0") -> str:
    return "\n".join(("gpus=1 memlock=64 shm=65536", "env LD_LIBRARY_PATH=", "env TRITON_LIBCUDA_PATH=", *lines, cuda))


LISTED = (f"cached libcuda.so.1 {ONE}", f"at {ONE} {REAL}")
LINKED = f"at {DEV} {REAL}"
SECOND = (f"cached libcuda.so.1 {OLD}.1", f"at {OLD}.1 {OLD}")
TWICE = {ONE: REAL, REAL: REAL, OTHER: f"/y/libcuda.so.{DRIVER}"}
NOT_FOUND = "/c: error while loading shared libraries: libcuda.so.1: no\ncuinit-exit=127"
STUB = "/usr/local/cuda/lib64/stubs/libcuda.so.1"
PHANTOM = "/usr/local/cuda/compat/lib/libcuda.so.1"
HIDDEN = (f"cached libcuda.so.1 {PHANTOM}", f"env LD_LIBRARY_PATH={LIB64}", f"gone {PHANTOM}", f"at {ONE} {REAL}")
UNREADABLE = NodeState(linker=Unknown(unknown="it could not be read"))

VERDICTS: list[Row] = [
    skips("libcuda.triton", "no NVIDIA driver"),
    is_unknown("libcuda.triton", "could not be read", UNREADABLE),
    passes("libcuda.triton", f"use {LIB64}", h200()),
    fails("libcuda.triton", "finds no libcuda.so.1", linked(ONE, libs={})),
    warns("libcuda.triton", f"{LIB64} has libcuda.so.1: Triton 2.x", linked(ONE, libs={ONE: REAL})),
    skips("libcuda.copies", "no libcuda on this node"),
    is_unknown("libcuda.copies", "could not be read", UNREADABLE),
    passes("libcuda.copies", "the driver's libcuda is the only one", h200()),
    fails("libcuda.copies", f"several drivers: {REAL}, {OLD}", linked(ONE, OLD_ONE, libs={ONE: REAL, OLD_ONE: OLD})),
    warns("libcuda.copies", "the same version twice", linked(ONE, OTHER, libs=TWICE)),
    warns("libcuda.copies", f"but the node also has {OLD}", linked(libs={ONE: REAL, REAL: REAL, OLD: OLD})),
    warns("libcuda.copies", f"broken link: {ONE} -> {REAL}", linked(libs={ONE: REAL})),
    skips("libcuda.container", "no container ran", node(), IMAGE),
    skips("libcuda.container", "no container ran", node("", 125), IMAGE),
    skips("libcuda.container", "no nvidia module", NodeState(active={"smoke": {"rc": 0, "out": "gpus=0"}}), IMAGE),
    is_unknown("libcuda.container", "is not in the container", node(said(cuda="")), IMAGE),
    skips("libcuda.container", "app:1 has no glibc", node(said(cuda="cuinit-exit=127")), IMAGE),
    fails("libcuda.container", "does not find libcuda.so.1", node(said(cuda=NOT_FOUND)), IMAGE),
    fails("libcuda.container", "803 (driver and library", node(said(cuda="cuInit=803 count=-1 version=0")), IMAGE),
    fails("libcuda.container", "1 of 8 GPUs", node(said()), IMAGE | {"hardware": {"gpus": 8}}),
    passes("libcuda.container", "CUDA 13.0, GPUs: 1", node(recorded("container-look.txt")), IMAGE),
    passes("libcuda.container_triton", f"in a container: {LIB64}", node(recorded("container-look.txt")), IMAGE),
    passes("libcuda.container", "CUDA 13.0, GPUs: 1", node(said()), IMAGE),
    skips("libcuda.container_triton", "no container ran", node(), IMAGE),
    skips("libcuda.container_triton", "does not contain Triton", node(said("no-ldconfig")), IMAGE),
    skips("libcuda.container_triton", "no nvidia module", NodeState(active={"smoke": {"rc": 0, "out": ""}}), IMAGE),
    fails("libcuda.container_triton", "app:1: ldconfig -p lists no libcuda.so.1", node(said()), IMAGE),
    fails("libcuda.container_triton", f"lists {PHANTOM}, which does not exist", node(said(*HIDDEN)), IMAGE),
    fails("libcuda.container_triton", "stub", node(said(f"cached libcuda.so.1 {STUB}", f"at {STUB} {STUB}")), IMAGE),
    fails("libcuda.container_triton", "is /gone, but", node(said("env TRITON_LIBCUDA_PATH=/gone")), IMAGE),
    warns("libcuda.container_triton", "Triton 2.x and the first", node(said(*LISTED)), IMAGE),
    warns("libcuda.container_triton", "several libcudas", node(said(*LISTED, LINKED, *SECOND)), IMAGE),
    passes("libcuda.container_triton", f"in a container: {LIB64}", node(said(*LISTED, LINKED)), IMAGE),
]
test_verdict = held(VERDICTS)

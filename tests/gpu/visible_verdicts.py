"""Verdicts of the checks of libcuda's visibility, for test_checks.py: id, status, node, spec, part of the summary."""

from __future__ import annotations

from typing import Any

from gpuready.state.model import Driver, Linker, NodeState, Unknown
from tests.state.probe_answers import DRIVER, LIB64, h200, recorded

IMAGE: dict[str, Any] = {"verify": {"image": "app:1"}}
ONE, DEV, REAL = f"{LIB64}/libcuda.so.1", f"{LIB64}/libcuda.so", f"{LIB64}/libcuda.so.{DRIVER}"
OLD = "/usr/lib64/libcuda.so.535.261.03"


def node(out: str | None = None, rc: int = 0, cached: tuple[str, ...] = (), **libs: Any) -> NodeState:
    cache = {"libcuda.so.1": tuple(p for p in cached if p.endswith(".1")), "libcuda.so": tuple(
        p for p in cached if p.endswith(".so")
    )}  # fmt: skip
    active = {} if out is None else {"smoke": {"rc": rc, "out": out}}
    return NodeState(
        driver=Driver(proc_version=DRIVER, gpus=("0000:06:00.0",)),
        linker=Linker(cache={k: v for k, v in cache.items() if v}, libs=libs.get("libs", {})),
        active=active,
    )


def said(*lines: str, cuda: str = "cuInit=0 count=1 version=13000\ncuinit-exit=0") -> str:
    return "\n".join(("gpus=1 memlock=64 shm=65536", "env LD_LIBRARY_PATH=", "env TRITON_LIBCUDA_PATH=", *lines, cuda))


LISTED = (f"cached libcuda.so.1 {ONE}", f"at {ONE} {REAL}")
LINKED = (f"at {DEV} {REAL}",)
STUB = "/usr/local/cuda/lib64/stubs/libcuda.so.1"
MOUNTED = ("gone /usr/local/cuda/compat/lib/libcuda.so.1", f"at {ONE} {REAL}")
UNREADABLE = NodeState(linker=Unknown(unknown="it could not be read"))

VERDICTS: list[tuple[str, str, NodeState, dict[str, Any], str]] = [
    ("libcuda.triton", "skip", NodeState(), {}, "no NVIDIA driver"),
    ("libcuda.triton", "unknown", UNREADABLE, {}, "could not be read"),
    ("libcuda.triton", "pass", h200(), {}, f"use {LIB64}"),
    ("libcuda.triton", "fail", node(cached=(ONE,)), {}, "finds no libcuda.so.1"),
    ("libcuda.triton", "warn", node(cached=(ONE,), libs={ONE: REAL}), {}, f"{LIB64} has libcuda.so.1: Triton 2.x"),
    ("libcuda.copies", "skip", NodeState(), {}, "no libcuda on this node"),
    ("libcuda.copies", "unknown", UNREADABLE, {}, "could not be read"),
    ("libcuda.copies", "pass", h200(), {}, "the driver's libcuda is the only one"),
    (
        "libcuda.copies",
        "fail",
        node(cached=(ONE, "/usr/lib64/libcuda.so.1"), libs={ONE: REAL, "/usr/lib64/libcuda.so.1": OLD}),
        {},
        f"of several drivers: {REAL}, {OLD}",
    ),
    (
        "libcuda.copies",
        "warn",
        node(
            cached=(ONE, "/x/libcuda.so.1"), libs={ONE: REAL, REAL: REAL, "/x/libcuda.so.1": f"/y/libcuda.so.{DRIVER}"}
        ),
        {},
        "the same version twice",
    ),
    ("libcuda.copies", "warn", node(libs={ONE: REAL, REAL: REAL, OLD: OLD}), {}, f"but the node also has {OLD}"),
    ("libcuda.copies", "warn", node(libs={ONE: REAL}), {}, f"broken link: {ONE} -> {REAL}"),
    ("libcuda.container", "skip", node(), IMAGE, "no container ran"),
    ("libcuda.container", "skip", node("", 125), IMAGE, "no container ran"),
    ("libcuda.container", "skip", NodeState(active={"smoke": {"rc": 0, "out": "gpus=0"}}), IMAGE, "no nvidia module"),
    ("libcuda.container", "unknown", node(said(cuda="")), IMAGE, "is not in the container"),
    ("libcuda.container", "skip", node(said(cuda="cuinit-exit=127")), IMAGE, "app:1 has no glibc"),
    (
        "libcuda.container",
        "fail",
        node(said(cuda="/c: error while loading shared libraries: libcuda.so.1: no\ncuinit-exit=127")),
        IMAGE,
        "does not find libcuda.so.1",
    ),
    ("libcuda.container", "fail", node(said(cuda="cuInit=803 count=-1 version=0")), IMAGE, "803 (driver and library"),
    ("libcuda.container", "fail", node(said()), IMAGE | {"hardware": {"gpus": 8}}, "1 of 8 GPUs"),
    ("libcuda.container", "pass", node(recorded("container-look.txt")), IMAGE, "CUDA 13.0, GPUs: 1"),
    ("libcuda.container_triton", "pass", node(recorded("container-look.txt")), IMAGE, f"in a container: {LIB64}"),
    ("libcuda.container", "pass", node(said()), IMAGE, "CUDA 13.0, GPUs: 1"),
    ("libcuda.container_triton", "skip", node(), IMAGE, "no container ran"),
    ("libcuda.container_triton", "skip", node(said("no-ldconfig")), IMAGE, "does not contain Triton"),
    ("libcuda.container_triton", "skip", NodeState(active={"smoke": {"rc": 0, "out": ""}}), IMAGE, "no nvidia module"),
    ("libcuda.container_triton", "fail", node(said()), IMAGE, "app:1: ldconfig -p lists no libcuda.so.1"),
    (
        "libcuda.container_triton",
        "fail",
        node(
            said(
                "cached libcuda.so.1 /usr/local/cuda/compat/lib/libcuda.so.1", f"env LD_LIBRARY_PATH={LIB64}", *MOUNTED
            )
        ),
        IMAGE,
        "lists /usr/local/cuda/compat/lib/libcuda.so.1, which does not exist",
    ),
    ("libcuda.container_triton", "fail", node(said(f"cached libcuda.so.1 {STUB}", f"at {STUB} {STUB}")), IMAGE, "stub"),
    ("libcuda.container_triton", "fail", node(said("env TRITON_LIBCUDA_PATH=/gone")), IMAGE, "is /gone, but"),
    ("libcuda.container_triton", "warn", node(said(*LISTED)), IMAGE, "Triton 2.x and the first"),
    (
        "libcuda.container_triton",
        "warn",
        node(said(*LISTED, *LINKED, f"cached libcuda.so.1 {OLD}.1", f"at {OLD}.1 {OLD}")),
        IMAGE,
        "several libcudas",
    ),
    ("libcuda.container_triton", "pass", node(said(*LISTED, *LINKED)), IMAGE, f"in a container: {LIB64}"),
]

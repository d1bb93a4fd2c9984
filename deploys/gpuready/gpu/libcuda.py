"""libcuda as programs find it: the linker's cache, the loader's own answer, and cuInit.

Sources: ldconfig(8), ld.so(8), Triton's driver.py ("libcuda.so cannot found!"), the CUDA driver API (cuInit,
cuDeviceGetCount and their error numbers).
"""

from __future__ import annotations

import re

from gpuready.core.check import Check, Level, Verdict, fail, has_gpu, passed, skip, unknown, unread
from gpuready.spec.model import NodeSpec
from gpuready.state.linker import DRIVER_DIRS, library_version
from gpuready.state.model import Linker, NodeState, Unknown


def concerns(spec: NodeSpec, state: NodeState, linker: Linker) -> bool:
    """A node with a GPU, with driver libraries, or whose spec names directories needs a visible libcuda."""
    return has_gpu(state) or bool(linker.libs) or not isinstance(spec.ldso, str)


def _ldcache(spec: NodeSpec, state: NodeState) -> Verdict:
    linker = state.linker
    if isinstance(linker, Unknown):
        return unread(linker)
    if not concerns(spec, state, linker):
        return skip("no NVIDIA driver on this node")
    listed = linker.cache.get("libcuda.so.1", ())
    if not listed:
        lies = sorted({p.rpartition("/")[0] for p in linker.libs if "/libcuda.so" in p})
        where = f"it lies in {', '.join(lies)}" if lies else f"none of {', '.join(DRIVER_DIRS[:2])}, ... has it"
        return fail("ldconfig -p does not list libcuda.so.1", evidence=where)
    gone = [p for p in listed if p not in linker.libs]
    if gone:
        return fail("the cache lists a libcuda.so.1 that is not there", "run ldconfig", ", ".join(gone))
    loaded = state.driver.loaded
    version = library_version(linker.libs.get(listed[0], listed[0]))
    if loaded and version and version != loaded:
        return fail(f"the first libcuda.so.1 of the cache is {version}, the module is {loaded}", evidence=listed[0])
    return passed(f"listed: {listed[0]}")


def _loader(spec: NodeSpec, state: NodeState) -> Verdict:
    linker = state.linker
    if isinstance(linker, Unknown):
        return unread(linker)
    if not concerns(spec, state, linker):
        return skip("no NVIDIA driver on this node")
    if not linker.loader:
        return fail("the loader does not find libcuda.so.1", evidence="LD_TRACE_LOADED_OBJECTS names no libcuda.so.1")
    return passed(f"the loader takes {linker.loader}")


def _stub(spec: NodeSpec, state: NodeState) -> Verdict:
    if isinstance(state.linker, Unknown):
        return unread(state.linker)
    bad = [p for paths in state.linker.cache.values() for p in paths if odd(state.linker.libs.get(p, p)) or odd(p)]
    for path, file in state.glob("/etc/ld.so.conf").items():
        bad += [f"{path}: {line.strip()}" for line in file.text.splitlines() if odd(f"{line.split('#')[0].strip()}/")]
    if bad:
        return fail("a stubs or compat directory is in the linker's reach", evidence="; ".join(bad))
    return passed("no stub and no compat library in the cache or its configuration")


def odd(path: str) -> str:
    """``stubs`` or ``compat`` when the path leads through such a directory of CUDA's, else empty."""
    if "/stubs/" in path:
        return "stubs"
    return "compat" if "/cuda/compat/" in path or re.search(r"/cuda-[^/]*/compat/", path) else ""


_MEANS = {
    3: "not initialized",
    34: "a stub library was loaded",
    100: "no device",
    101: "invalid device",
    802: "system not ready: the fabric manager does not run",
    803: "driver and library do not fit together",
    804: "forward compatibility was attempted on hardware that has none",
    999: "unknown error",
}


def _init(spec: NodeSpec, state: NodeState) -> Verdict:
    if not state.driver.loaded:
        return skip("no nvidia module is loaded")
    answer = state.active.get("cuda")
    if answer is None or "unknown" in answer:
        return unknown((answer or {}).get("unknown", "cuInit was not tried"))
    out = str(answer.get("out", ""))
    return result_of(out, spec) or unknown(out.strip()[:200] or "no answer")


def result_of(out: str, spec: NodeSpec) -> Verdict | None:
    """The verdict on what cuinit printed (binaries/cuinit.c); None where it printed nothing."""
    m = re.search(r"^cuInit=(-?\d+) count=(-?\d+) version=(\d+)", out, re.M)
    if not m:
        return None
    result, count = int(m[1]), int(m[2])
    if result:
        return fail(f"cuInit answers {result} ({_MEANS.get(result, 'see the CUDA driver API')})")
    want = spec.hardware.gpus if isinstance(spec.hardware.gpus, int) else None
    if count < 1 or (want is not None and count != want):
        return fail(f"CUDA sees {count} of {want or 'at least 1'} GPUs")
    return passed(f"cuInit works, CUDA {int(m[3]) // 1000}.{int(m[3]) % 1000 // 10}, GPUs: {count}")


CHECKS = (
    Check(
        "libcuda.stub",
        Level.config,
        "A stubs directory in ld.so.conf makes ldconfig list the linking stub as libcuda.so.1: every CUDA program "
        "fails with error 34. A compat directory makes forward compatibility global: 803 or 804.",
        "ldconfig -p | grep libcuda; grep -rE 'stubs|compat' /etc/ld.so.conf /etc/ld.so.conf.d",
        "take the directory out of /etc/ld.so.conf.d and run ldconfig; stubs belong in LIBRARY_PATH while linking",
        _stub,
    ),
    Check(
        "libcuda.ldcache",
        Level.effective,
        "The driver's libraries lie where ldconfig does not look (GCP Batch and COS mount /usr/local/nvidia/lib64). "
        "Triton asks ldconfig -p and stops with 'libcuda.so cannot found!'.",
        "/sbin/ldconfig -p | grep -F libcuda.so.1",
        "name the directory in the spec (ldso: [/usr/local/nvidia/lib64]) and apply, or leave ldso: auto",
        _ldcache,
    ),
    Check(
        "libcuda.loader",
        Level.effective,
        "The dynamic loader itself cannot find libcuda.so.1, whatever the cache says.",
        "env -i LD_PRELOAD=libcuda.so.1 LD_TRACE_LOADED_OBJECTS=1 /bin/true",
        "run ldconfig; check that the library and what it needs are readable and of this architecture",
        _loader,
        after=("libcuda.ldcache",),
    ),
    Check(
        "libcuda.init",
        Level.effective,
        "Libraries are found, but CUDA does not come up: module and library differ, device nodes are missing, the "
        "fabric manager is down, or a GPU is lost.",
        "nvidia-smi; CUDA's deviceQuery; or python3 -c \"import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))\"",
        "look the number up with 'gpuready explain libcuda.init'; nvidia-smi and dmesg name the GPU",
        _init,
        gpu=True,
        active=True,
        after=("driver.loaded", "driver.match", "libcuda.ldcache", "libcuda.loader"),
    ),
)

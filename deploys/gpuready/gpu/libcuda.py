"""Checks that programs find libcuda: in the linker's cache, by the loader, and with cuInit.

Sources: ldconfig(8), ld.so(8), Triton's driver.py ("libcuda.so cannot found!"), the CUDA driver API (cuInit,
cuDeviceGetCount and their error numbers).
"""

import re

from gpuready.components.ldso.state import DRIVER_DIRS, SONAMES, is_old_link, library_version, newest_versions
from gpuready.contract import need
from gpuready.contract.check import Check, EndCheck, Level, Verdict, by_count, fail, has_gpu, passed, skip, unknown
from gpuready.contract.question import Question
from gpuready.gpu.gpus import check
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Linker, NodeState


def driver_linker(spec: NodeSpec, state: NodeState) -> Linker:
    """Return the linker. The check is skipped if there is no GPU, no driver library, and no directory in the spec."""
    linker = need.value(state.linker)
    if has_gpu(state) or linker.libs or not isinstance(spec.ldso, str):
        return linker
    raise EndCheck(skip("no NVIDIA driver on this node"))


def _ldcache(spec: NodeSpec, state: NodeState) -> Verdict:
    linker = driver_linker(spec, state)
    listed = linker.cache.get("libcuda.so.1", ())
    if not listed:
        found = sorted({p.rpartition("/")[0] for p in linker.libs if "/libcuda.so" in p})
        where = f"libcuda is in {', '.join(found)}" if found else f"no libcuda in {', '.join(DRIVER_DIRS[:2])}, ..."
        return fail("ldconfig -p does not list libcuda.so.1", evidence=where)
    gone = [p for soname in SONAMES for p in linker.cache.get(soname, ()) if p not in linker.libs]
    if gone:
        return fail("the cache lists a library that does not exist", "run ldconfig", ", ".join(gone))
    loaded, newest = state.driver.loaded, newest_versions(linker)
    firsts = [path for soname in SONAMES for path in linker.cache.get(soname, ())[:1]]
    old = [path for path in firsts if is_old_link(linker, newest, path, loaded)]
    if old:
        return fail("a link leads to another version, and the loaded driver's is beside it", "run ldconfig", old[0])
    version = library_version(linker.libs.get(listed[0], listed[0]))
    if loaded and version and version != loaded:
        summary = f"the first libcuda.so.1 in the cache is {version}, but the loaded module is {loaded}"
        return fail(summary, evidence=listed[0])
    return passed(f"ldconfig -p lists {listed[0]}")


def _loader(spec: NodeSpec, state: NodeState) -> Verdict:
    linker = driver_linker(spec, state)
    if not linker.loader:
        return fail("the loader does not find libcuda.so.1", evidence="LD_TRACE_LOADED_OBJECTS lists no libcuda.so.1")
    return passed(f"the loader uses {linker.loader}")


def _stub(spec: NodeSpec, state: NodeState) -> Verdict:
    linker = need.value(state.linker)
    bad = [p for paths in linker.cache.values() for p in paths if odd(linker.libs.get(p, p)) or odd(p)]
    for path, file in state.glob("/etc/ld.so.conf").items():
        bad += [f"{path}: {line.strip()}" for line in file.text.splitlines() if odd(f"{line.split('#')[0].strip()}/")]
    if bad:
        return fail("the linker searches a stubs or compat directory", evidence="; ".join(bad))
    return passed("no stub or compat library in the cache or in ld.so.conf")


def odd(path: str) -> str:
    """Return ``stubs`` or ``compat`` if the path goes through such a directory of CUDA, else an empty string."""
    if "/stubs/" in path:
        return "stubs"
    return "compat" if "/compat/" in path and re.search(r"/cuda(-[^/]*)?/compat/", path) else ""


_MEANS = {
    3: "not initialized",
    34: "a stub library was loaded",
    100: "no device",
    101: "invalid device",
    802: "system not ready: the fabric manager is not running",
    803: "driver and library do not match",
    804: "forward compatibility is not supported on this GPU",
    999: "unknown error",
}


def _init(spec: NodeSpec, state: NodeState) -> Verdict:
    need.driver(state)
    out = need.answer(state, "cuda", "cuInit was not called").out
    return result_of(out, spec, state) or unknown(out.strip()[:200] or "no answer")


def result_of(out: str, spec: NodeSpec, state: NodeState) -> Verdict | None:
    """Judge the output of cuinit (binaries/cuinit.c); None if it printed no result."""
    m = re.search(r"^cuInit=(-?\d+) count=(-?\d+) version=(\d+)", out, re.M)
    if not m:
        return None
    result, count = int(m[1]), int(m[2])
    if result:
        because = by_count(0, state) if result == 100 else ""
        return fail(f"cuInit returns {result} ({_MEANS.get(result, 'see the CUDA driver API')})", because=because)
    want = spec.hardware.expected_gpus
    if count < 1 or (want is not None and count != want):
        return fail(f"CUDA sees {count} of {want or 'at least 1'} GPUs", because=by_count(count, state))
    return passed(f"cuInit works, CUDA {int(m[3]) // 1000}.{int(m[3]) % 1000 // 10}, GPUs: {count}")


class AskCuda(Question, template="gpu/ask-cuda"):
    """Call cuInit on the host."""


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    return (AskCuda({"cuda": 60}),)


CHECKS = (
    Check(
        "libcuda.stub",
        "ldconfig lists no stub and no compatibility library",
        Level.config,
        "A stubs directory in ld.so.conf makes ldconfig list the linking stub as libcuda.so.1: every CUDA program "
        "fails with error 34. A compat directory there forces forward compatibility on all programs: error 803 or 804.",
        "ldconfig -p | grep libcuda; grep -rE 'stubs|compat' /etc/ld.so.conf /etc/ld.so.conf.d",
        "remove the directory from /etc/ld.so.conf.d and run ldconfig; to link against stubs, use LIBRARY_PATH",
        _stub,
        component="ldso",
    ),
    Check(
        "libcuda.ldcache",
        "ldconfig lists the driver's libcuda",
        Level.effective,
        "The driver's libraries are where ldconfig does not look (GCP Batch and COS mount /usr/local/nvidia/lib64). "
        "Triton asks ldconfig -p and stops with 'libcuda.so cannot found!'.",
        "/sbin/ldconfig -p | grep -F libcuda.so.1",
        "name the directory in the spec (ldso: [/usr/local/nvidia/lib64]) and apply, or leave ldso: auto",
        _ldcache,
        component="ldso",
    ),
    Check(
        "libcuda.loader",
        "the loader finds libcuda.so.1",
        Level.effective,
        "The dynamic loader cannot find libcuda.so.1, even if the cache lists it.",
        "env -i LD_PRELOAD=libcuda.so.1 LD_TRACE_LOADED_OBJECTS=1 /bin/true",
        "run ldconfig; check that the library and its dependencies are readable and built for this architecture",
        _loader,
        component="ldso",
        after=("libcuda.ldcache",),
    ),
    check(
        "libcuda.init",
        "CUDA initializes on the host",
        "The libraries are found, but CUDA does not initialize: module and library versions differ, device nodes are "
        "missing, the fabric manager is down, or a GPU is lost.",
        "nvidia-smi; CUDA's deviceQuery; or python3 -c \"import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))\"",
        "gpuready explain 'CUDA error N' explains the number that the check shows; nvidia-smi and dmesg name the GPU",
        _init,
        component="ldso",
        active=True,
        after=("driver.loaded", "driver.match", "libcuda.ldcache", "libcuda.loader"),
    ),
)

"""libcuda as Triton finds it, on the host and in a new container, and libcudas that should not be there.

The messages are Triton's own (libcuda_dirs, see triton.py); the container is that of the smoke test.
"""

from __future__ import annotations

import re

from gpuready.core.check import Check, Level, Verdict, fail, passed, skip, unknown, unread, warn
from gpuready.gpu import triton
from gpuready.gpu.libcuda import concerns, odd, result_of
from gpuready.gpu.triton import Sight
from gpuready.spec.model import NodeSpec
from gpuready.state.linker import library_version
from gpuready.state.model import Linker, NodeState, Unknown

_LINKS = "Triton 2.x and the first 3.x link with -lcuda, and there is no libcuda.so beside it"


def _host(spec: NodeSpec, state: NodeState) -> Verdict:
    linker = state.linker
    if isinstance(linker, Unknown):
        return unread(linker)
    if not concerns(spec, state, linker):
        return skip("no NVIDIA driver on this node")
    sight = _sight(linker)
    if not triton.triton3(sight):
        return fail("Triton finds no libcuda.so.1 by ldconfig -p", evidence=", ".join(sight.listed("libcuda.so")))
    if not (linked := triton.triton2(sight)):
        where = triton.triton3(sight)
        return warn(
            f"{where} has libcuda.so.1: {_LINKS}", f"for those: ln -s libcuda.so.1 {where}/libcuda.so; ldconfig"
        )
    return passed(f"Triton 2.x and 3.x take {linked}")


def _sight(linker: Linker) -> Sight:
    return Sight({name: paths for name, paths in linker.cache.items() if "libcuda.so" in name}, linker.libs)


def _copies(spec: NodeSpec, state: NodeState) -> Verdict:
    linker = state.linker
    if isinstance(linker, Unknown):
        return unread(linker)
    loaded = state.driver.loaded
    several = triton.copies(_sight(linker))
    files = {path: real for path, real in linker.libs.items() if "/libcuda.so." in path}
    places = {path.rpartition("/")[0] for path in files}
    dangling = sorted(p for p, real in files.items() if real.rpartition("/")[0] in places and real not in files)
    strange = sorted({real for real in files.values() if loaded and library_version(real) not in ("", loaded)})
    if len(several) > 1 and len({library_version(real) for real in several}) > 1:
        return fail(f"the cache leads to libcudas of several drivers: {', '.join(several)}")
    if dangling:
        return warn(f"a link leads nowhere: {dangling[0]} -> {files[dangling[0]]}", "remove it, and run ldconfig")
    if strange:
        return warn(f"the loaded driver is {loaded}, and there is {', '.join(strange)}, too")
    if len(several) > 1:
        return warn(f"the cache leads to the same version twice: {', '.join(several)}")
    return passed("no libcuda but the driver's own") if files else skip("no libcuda on this node")


def _inside(spec: NodeSpec, state: NodeState) -> Verdict:
    answer = state.active.get("smoke")
    if answer is None or answer.get("rc") or "unknown" in answer:
        return skip("no container ran (docker.smoke)")
    if not state.driver.loaded:
        return skip("no nvidia module is loaded")
    out = str(answer.get("out", ""))
    if (result := result_of(out, spec)) is None:
        lost = re.search(r"^.*error while loading shared libraries.*$", out, re.M)
        if lost:
            return fail("a program in a container does not find libcuda.so.1", evidence=lost[0][:200])
        code = re.search(r"^cuinit-exit=(\d+)", out, re.M)
        if code and code[1] == "127":  # the program is there, its loader is not
            return skip(f"{spec.verify.image} has no glibc, so no program of CUDA runs in it")
        why = f"exit {code[1]}" if code else "its program is not in there"
        return unknown(f"cuInit was not called in a container: {why}")
    return result


def _inside_triton(spec: NodeSpec, state: NodeState) -> Verdict:
    answer = state.active.get("smoke")
    if answer is None or answer.get("rc") or "unknown" in answer:
        return skip("no container ran (docker.smoke)")
    if not state.driver.loaded:
        return skip("no nvidia module is loaded")
    sight = sight_in(str(answer.get("out", "")))
    if sight.cache is None and not sight.env.get("TRITON_LIBCUDA_PATH"):
        return skip(f"{spec.verify.image} has no ldconfig, so Triton cannot be in it")
    if bad := [path for path in sight.listed("libcuda.so") if odd(sight.files.get(path, path)) == "stubs"]:
        return fail(f"the stub {bad[0]} is in the linker cache of {spec.verify.image}", "rebuild it without that entry")
    if not (where := triton.triton3(sight)):
        gone = triton.phantoms(sight)
        what = f"the image's cache lists {gone[0]}, which is not there" if gone else "ldconfig -p lists no libcuda.so.1"
        return fail(f"Triton finds no libcuda in a container of {spec.verify.image}: {what}", evidence=_told(sight))
    if where not in {path.rpartition("/")[0] for path in sight.files}:
        return fail(f"TRITON_LIBCUDA_PATH of {spec.verify.image} is {where}, and no libcuda is there")
    if len({library_version(real) for real in triton.copies(sight)}) > 1:
        return warn(f"there are several libcudas in a container: {', '.join(triton.copies(sight))}")
    if not triton.triton2(sight):
        return warn(f"in a container {where} has libcuda.so.1: {_LINKS}", "name it in the image: ln -s libcuda.so.1")
    return passed(f"Triton 2.x and 3.x find libcuda in a container: {where}")


def sight_in(out: str) -> Sight:
    """What the container's script said (templates/probe/container.sh.j2)."""
    cache: dict[str, list[str]] = {}
    for soname, path in re.findall(r"^cached (\S+) (.+)$", out, re.M):
        cache.setdefault(soname, []).append(path)
    files = dict(re.findall(r"^at (\S+) (.+)$", out, re.M))
    env = {name: value for name, value in re.findall(r"^env (\w+)=(.*)$", out, re.M) if value}
    return Sight(None if re.search(r"^no-ldconfig$", out, re.M) else cache, files, env)


def _told(sight: Sight) -> str:
    paths = ", ".join(dict.fromkeys(sight.listed("libcuda.so"))) or "nothing"
    return f"ldconfig -p: {paths}; LD_LIBRARY_PATH: {sight.env.get('LD_LIBRARY_PATH', 'not set')}"


HOST = (
    Check(
        "libcuda.triton",
        Level.effective,
        "Triton (torch.compile) searches libcuda on its own: 2.x wants libcuda.so beside a line of ldconfig -p, 3.x "
        "libcuda.so.1, and LD_LIBRARY_PATH counts only where ldconfig lists nothing. Else it ends with 'libcuda.so "
        'cannot found! Please make sure GPU is set up and then run "/sbin/ldconfig" (requires sudo) to refresh the '
        "linker cache.' or 'libcuda.so cannot found! Possible files are located at [...]. Please create a symlink of "
        "libcuda.so to any of the files.'.",
        "/sbin/ldconfig -p | grep -F libcuda.so",
        "apply (ldso); for one job, export TRITON_LIBCUDA_PATH=DIRECTORY of libcuda.so.1",
        _host,
        after=("libcuda.ldcache",),
    ),
    Check(
        "libcuda.copies",
        Level.config,
        "More than one driver's libcuda is there. In one directory ldconfig links the highest version, so that one "
        "left by a driver before takes over: error 803 after a downgrade; elsewhere the order of ld.so.conf decides.",
        "ls -l $(/sbin/ldconfig -p | sed -n 's/.*libcuda.so.1.* => //p'); cat /proc/driver/nvidia/version",
        "remove the packages or files of the other driver, and run ldconfig",
        _copies,
        after=("libcuda.ldcache",),
    ),
)

INSIDE = (
    Check(
        "libcuda.container",
        Level.smoke,
        "A container gets GPUs, but CUDA does not come up in it: the image's libcuda takes the driver's place (803, "
        "804), a stub does (34), no GPU is given (100), or the loader finds no libcuda.so.1 there.",
        "docker run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all IMAGE sh -c 'ldconfig -p; ls /dev'",
        "gpuready compat -i INVENTORY --image IMAGE says which libcuda is taken and what helps; nvidia-ctk's hooks "
        "run ldconfig in the container, which images without glibc do not have",
        _inside,
        gpu=True,
        active=True,
        after=("driver.loaded", "docker.runtime", "docker.smoke", "libcuda.init"),
    ),
    Check(
        "libcuda.container_triton",
        Level.smoke,
        "In a container Triton finds no libcuda and ends with 'libcuda.so cannot found!': the driver is mounted at "
        "/usr/local/nvidia (GCP Batch), which the image's linker cache does not list, or the cache lists a "
        "libcuda.so.1 that is not there, which hides LD_LIBRARY_PATH from Triton.",
        "docker run --rm --pull=never --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all IMAGE /sbin/ldconfig -p",
        "run it with --runtime=nvidia, whose hook runs ldconfig; else ldconfig DIRECTORY at the container's start, or "
        "-e TRITON_LIBCUDA_PATH=/usr/local/nvidia/lib64",
        _inside_triton,
        gpu=True,
        active=True,
        after=("driver.loaded", "docker.runtime", "docker.smoke"),
    ),
)

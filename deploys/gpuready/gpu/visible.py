"""Checks of libcuda as Triton finds it, on the host and in a new container, and of unwanted copies of libcuda.

The quoted messages are Triton's own (libcuda_dirs, see triton.py). The container is that of the smoke test.
"""

import re

from gpuready.base.facts import Answer
from gpuready.components.ldso.state import library_version
from gpuready.contract import need
from gpuready.contract.check import Check, EndCheck, Level, Verdict, fail, passed, skip, unknown, warn
from gpuready.gpu import triton
from gpuready.gpu.libcuda import driver_linker, odd, result_of
from gpuready.gpu.triton import Sight
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Linker, NodeState

_LINKS = "Triton 2.x and the first 3.x releases link with -lcuda, but there is no libcuda.so beside it"


def _host(spec: NodeSpec, state: NodeState) -> Verdict:
    sight = _sight(driver_linker(spec, state))
    if not triton.triton3(sight):
        return fail("Triton finds no libcuda.so.1 with ldconfig -p", evidence=", ".join(sight.listed("libcuda.so")))
    if not (linked := triton.triton2(sight)):
        where = triton.triton3(sight)
        return warn(f"{where} has libcuda.so.1: {_LINKS}", f"ln -s libcuda.so.1 {where}/libcuda.so; ldconfig")
    return passed(f"Triton 2.x and 3.x use {linked}")


def _sight(linker: Linker) -> Sight:
    return Sight({name: paths for name, paths in linker.cache.items() if "libcuda.so" in name}, linker.libs)


def _copies(spec: NodeSpec, state: NodeState) -> Verdict:
    linker = need.value(state.linker)
    loaded = state.driver.loaded
    several = triton.copies(_sight(linker))
    files = {path: real for path, real in linker.libs.items() if "/libcuda.so." in path}
    places = {path.rpartition("/")[0] for path in files}
    dangling = sorted(p for p, real in files.items() if real.rpartition("/")[0] in places and real not in files)
    strange = sorted({real for real in files.values() if loaded and library_version(real) not in ("", loaded)})
    if len(several) > 1 and len({library_version(real) for real in several}) > 1:
        return fail(f"the linker cache lists libcudas of several drivers: {', '.join(several)}")
    if dangling:
        return warn(f"broken link: {dangling[0]} -> {files[dangling[0]]}", "remove the link, and run ldconfig")
    if strange:
        return warn(f"the loaded driver is {loaded}, but the node also has {', '.join(strange)}")
    if len(several) > 1:
        return warn(f"the linker cache lists the same version twice: {', '.join(several)}")
    return passed("the driver's libcuda is the only one") if files else skip("no libcuda on this node")


def _printed(state: NodeState) -> str:
    """Return the output of the smoke test's container. Without it or a driver, the check is skipped."""
    need.driver(state)
    answer = state.active.get("smoke")
    if not isinstance(answer, Answer) or answer.rc:
        raise EndCheck(skip("no container ran (docker.smoke)"))
    return answer.out


def _inside(spec: NodeSpec, state: NodeState) -> Verdict:
    out = _printed(state)
    if (result := result_of(out, spec, state)) is None:
        lost = re.search(r"^.*error while loading shared libraries.*$", out, re.M)
        if lost:
            return fail("a program in a container does not find libcuda.so.1", evidence=lost[0][:200])
        code = re.search(r"^cuinit-exit=(\d+)", out, re.M)
        if code and code[1] == "127":  # the program exists, its loader does not
            return skip(f"{spec.verify.image} has no glibc, so no CUDA program runs in it")
        why = f"exit {code[1]}" if code else "the test program is not in the container"
        return unknown(f"cuInit was not called in the container: {why}")
    return result


def _inside_triton(spec: NodeSpec, state: NodeState) -> Verdict:
    sight = sight_in(_printed(state))
    if sight.cache is None and not sight.env.get("TRITON_LIBCUDA_PATH"):
        return skip(f"{spec.verify.image} has no ldconfig, so it does not contain Triton")
    if bad := [path for path in sight.listed("libcuda.so") if odd(sight.files.get(path, path)) == "stubs"]:
        found = f"the stub {bad[0]} is in the linker cache of {spec.verify.image}"
        return fail(found, "rebuild the image without that entry")
    if not (where := triton.triton3(sight)):
        what = "ldconfig -p lists no libcuda.so.1"
        if gone := triton.phantoms(sight):
            what = f"the image's cache lists {gone[0]}, which does not exist"
        return fail(f"Triton finds no libcuda in a container of {spec.verify.image}: {what}", evidence=_evidence(sight))
    if where not in {path.rpartition("/")[0] for path in sight.files}:
        return fail(f"TRITON_LIBCUDA_PATH of {spec.verify.image} is {where}, but {where} has no libcuda")
    if len({library_version(real) for real in triton.copies(sight)}) > 1:
        return warn(f"a container has several libcudas: {', '.join(triton.copies(sight))}")
    if not triton.triton2(sight):
        remedy = "add the link to the image: ln -s libcuda.so.1 libcuda.so"
        return warn(f"in a container {where} has libcuda.so.1: {_LINKS}", remedy)
    return passed(f"Triton 2.x and 3.x find libcuda in a container: {where}")


def sight_in(out: str) -> Sight:
    """Parse what the script in the container printed (templates/probe/container.sh.j2)."""
    cache: dict[str, list[str]] = {}
    for soname, path in re.findall(r"^cached (\S+) (.+)$", out, re.M):
        cache.setdefault(soname, []).append(path)
    files = dict(re.findall(r"^at (\S+) (.+)$", out, re.M))
    env = {name: value for name, value in re.findall(r"^env (\w+)=(.*)$", out, re.M) if value}
    return Sight(None if re.search(r"^no-ldconfig$", out, re.M) else cache, files, env)


def _evidence(sight: Sight) -> str:
    paths = ", ".join(dict.fromkeys(sight.listed("libcuda.so"))) or "nothing"
    return f"ldconfig -p: {paths}; LD_LIBRARY_PATH: {sight.env.get('LD_LIBRARY_PATH', 'not set')}"


HOST = (
    Check(
        "libcuda.triton",
        "Triton finds libcuda",
        Level.effective,
        "Triton (torch.compile) searches libcuda itself, in the directories that ldconfig -p lists: 2.x needs "
        "libcuda.so there, 3.x libcuda.so.1. It reads LD_LIBRARY_PATH only if ldconfig lists none. Otherwise it fails: "
        "'libcuda.so "
        'cannot found! Please make sure GPU is set up and then run "/sbin/ldconfig" (requires sudo) to refresh the '
        "linker cache.' or 'libcuda.so cannot found! Possible files are located at [...]. Please create a symlink of "
        "libcuda.so to any of the files.'.",
        "/sbin/ldconfig -p | grep -F libcuda.so",
        "gpuready apply (ldso); for one job, set TRITON_LIBCUDA_PATH to the directory of libcuda.so.1",
        _host,
        component="ldso",
        after=("libcuda.ldcache",),
    ),
    Check(
        "libcuda.copies",
        "no libcuda of another driver",
        Level.config,
        "The node has libcudas of several drivers. Within one directory, ldconfig links the highest version: after a "
        "downgrade, a leftover newer one causes error 803. Between directories, the order in ld.so.conf decides.",
        "ls -l $(/sbin/ldconfig -p | sed -n 's/.*libcuda.so.1.* => //p'); cat /proc/driver/nvidia/version",
        "remove the packages or files of the other driver, and run ldconfig",
        _copies,
        component="ldso",
        after=("libcuda.ldcache",),
    ),
)

INSIDE = (
    Check(
        "libcuda.container",
        "CUDA initializes in a container",
        Level.smoke,
        "A container starts, but CUDA does not initialize in it: the image's libcuda replaces the driver's (803, 804), "
        "a stub replaces it (34), the container has no GPU (100), or the loader finds no libcuda.so.1.",
        "docker run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all IMAGE sh -c 'ldconfig -p; ls /dev'",
        "gpuready compat -i INVENTORY --image IMAGE shows which libcuda the container uses and what helps. "
        "nvidia-ctk's hooks run ldconfig in the container; images without glibc have no ldconfig",
        _inside,
        component="ldso",
        gpu=True,
        active=True,
        after=("driver.loaded", "docker.runtime", "docker.smoke", "libcuda.init"),
    ),
    Check(
        "libcuda.container_triton",
        "Triton finds libcuda in a container",
        Level.smoke,
        "In a container, Triton finds no libcuda and fails with 'libcuda.so cannot found!'. Either the driver is "
        "mounted at /usr/local/nvidia (GCP Batch), which the image's linker cache does not list; or the cache lists a "
        "libcuda.so.1 that does not exist, so that Triton ignores LD_LIBRARY_PATH.",
        "docker run --rm --pull=never --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all IMAGE /sbin/ldconfig -p",
        "start the container with --runtime=nvidia, whose hook runs ldconfig; else run ldconfig DIRECTORY at its "
        "start, or set -e TRITON_LIBCUDA_PATH=/usr/local/nvidia/lib64",
        _inside_triton,
        component="ldso",
        gpu=True,
        active=True,
        after=("driver.loaded", "docker.runtime", "docker.smoke"),
    ),
)

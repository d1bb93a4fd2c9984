"""Triton's search for libcuda, in roots that the real ldconfig has made a cache of, as a container tells it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.gpu import triton
from gpuready.gpu.triton import Sight
from gpuready.gpu.visible import sight_in

LIB64 = "/usr/local/nvidia/lib64"
REAL = f"{LIB64}/libcuda.so.580.159.04"
Root = Callable[..., Path]
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("busybox", "ldconfig", "gcc"))),
    reason="a root of its own takes root, a static busybox, ldconfig and gcc",
)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that calls itself libcuda.so.1 and has nothing in it."""
    path = tmp_path_factory.mktemp("library") / "libcuda.so"
    flags = ["-shared", "-nostdlib", "-Wl,-soname,libcuda.so.1", "-x", "c", "/dev/null"]
    subprocess.run(["gcc", *flags, "-o", path], check=True)
    return path


@pytest.fixture
def root(tmp_path: Path, library: Path) -> Root:
    """A root with a shell, ldconfig, and libraries at the given paths; ``dirs`` are in ld.so.conf."""

    def make(*libraries: str, dirs: tuple[str, ...] = (), ldconfig: bool = True) -> Path:
        for name in ("bin", "sbin", "etc", "usr/lib", "lib", "dev"):
            (tmp_path / name).mkdir(parents=True)
        shutil.copy2(str(shutil.which("busybox")), tmp_path / "bin/busybox")
        for name in ("sh", "df", "sed", "readlink"):
            (tmp_path / "bin" / name).symlink_to("busybox")
        if ldconfig:
            shutil.copy2("/sbin/ldconfig", tmp_path / "sbin/ldconfig")
        for path in libraries:
            (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(library, tmp_path / path[1:])
        (tmp_path / "etc/ld.so.conf").write_text("".join(f"{d}\n" for d in dirs))
        return tmp_path

    return make


def cached(root: Path) -> Path:
    subprocess.run(["ldconfig", "-r", root], check=True, capture_output=True)
    return root


def told(root: Path, **env: str) -> Sight:
    """What the script of a new container says in that root."""
    text = resources.script("probe/container")
    script = text.split("<<'SH'\n")[1].rpartition("\nSH\n")[0]
    done = subprocess.run(
        ["chroot", root, "/bin/sh", "-c", script], env={"PATH": "/bin:/sbin", **env}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gpus=0 memlock=")
    return sight_in(done.stdout)


def test_a_mounted_driver_that_nobody_told_ldconfig(root: Root) -> None:
    made = cached(root(REAL))
    (made / LIB64[1:] / "libcuda.so.1").symlink_to(REAL)
    sight = told(made)
    assert (sight.cache, triton.triton2(sight), triton.triton3(sight)) == ({}, "", "")
    # The cache is empty, so that 3.x goes by the path; 2.x never does.
    sight = told(made, LD_LIBRARY_PATH=f"/x:{LIB64}/")
    assert (triton.triton2(sight), triton.triton3(sight)) == ("", LIB64)


def test_the_dev_link_is_what_the_second_generation_needs(root: Root) -> None:
    made = cached(root(REAL, dirs=(LIB64,)))
    sight = told(made)
    assert sight.files == {f"{LIB64}/libcuda.so.1": REAL}
    assert (triton.triton2(sight), triton.triton3(sight)) == ("", LIB64)
    (made / LIB64[1:] / "libcuda.so").symlink_to("libcuda.so.1")
    for sight in (told(made), told(cached(made))):  # it looks at the directory, not at the cache's line
        assert (triton.triton2(sight), triton.triton3(sight)) == (LIB64, LIB64)


def test_a_phantom_hides_the_path(root: Root) -> None:
    made = cached(root("/opt/compat/libcuda.so.575.57.08", REAL, dirs=("/opt/compat",)))
    shutil.rmtree(made / "opt/compat")
    (made / LIB64[1:] / "libcuda.so.1").symlink_to(REAL)
    sight = told(made, LD_LIBRARY_PATH=LIB64)
    assert triton.phantoms(sight) == ["/opt/compat/libcuda.so.1"]
    assert (triton.triton3(sight), triton.copies(sight)) == ("", [])
    named = told(made, LD_LIBRARY_PATH=LIB64, TRITON_LIBCUDA_PATH=LIB64)
    assert (triton.triton2(named), triton.triton3(named)) == ("", LIB64)


def test_the_highest_version_takes_the_link_and_several_places_are_several_copies(root: Root) -> None:
    old = "/usr/lib/libcuda.so.99.1"
    sight = told(cached(root(REAL, f"{LIB64}/libcuda.so.580.65.06", old, dirs=(LIB64,))))
    assert triton.copies(sight) == [REAL, old]
    assert triton.triton3(sight) == LIB64


def test_a_stub_becomes_a_libcuda_that_everybody_takes(root: Root) -> None:
    stubs = "/usr/local/cuda/lib64/stubs"
    sight = told(cached(root(f"{stubs}/libcuda.so", dirs=(stubs,))))
    assert sight.listed("libcuda.so.1") == [f"{stubs}/libcuda.so.1"]
    assert triton.triton3(sight) == stubs


def test_without_ldconfig_triton_ends_there(root: Root) -> None:
    made = root(REAL, ldconfig=False)
    sight = told(made, LD_LIBRARY_PATH=LIB64)
    assert (sight.cache, triton.triton2(sight), triton.triton3(sight)) == (None, "", "")
    assert triton.triton3(told(made, TRITON_LIBCUDA_PATH="/x")) == "/x"

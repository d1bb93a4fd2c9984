"""The carried program that calls cuInit: the source's own, tiny, free of any libc, and what it says of libcudas."""

import base64
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from gpuready import binaries

HERE = Path(binaries.__file__).parent
#: Who made the files that are carried: the same make the same bytes.
COMPILER, LINKER = "12.2.0", "2.40"
LOADER = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}
MACHINE = platform.machine()
here = pytest.mark.skipif(
    MACHINE not in binaries.MACHINES or not shutil.which(f"{MACHINE}-linux-gnu-gcc"), reason="no gcc for this machine"
)


def said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("machine", binaries.MACHINES)
def test_what_is_carried_needs_libcuda_and_nothing_else(machine: str) -> None:
    data = base64.b64decode(binaries.cuinit(machine))
    assert len(data) < 4096
    with (HERE / f"cuinit.{machine}").open("rb") as file:
        elf = ELFFile(file)
        assert elf.get_machine_arch() == {"x86_64": "x64", "aarch64": "AArch64"}[machine]
        segments = list(elf.iter_segments())
        assert [s.get_interp_name() for s in segments if s["p_type"] == "PT_INTERP"] == [LOADER[machine]]
        (dynamic,) = (s for s in segments if isinstance(s, DynamicSegment))
        assert [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")] == ["libcuda.so.1"]
        # Kernels of aarch64 have pages of up to 64 KiB.
        page = 0x10000 if machine == "aarch64" else 0x1000
        assert all(s["p_align"] >= page for s in segments if s["p_type"] == "PT_LOAD")
    assert binaries.cuinit("riscv64") == ""


@pytest.mark.parametrize("machine", binaries.MACHINES)
def test_it_is_built_from_its_source(machine: str, tmp_path: Path) -> None:
    compiler = f"{machine}-linux-gnu-gcc"
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    linker = said("ld", "--version").split("\n")[0].split()[-1]
    if (said(compiler, "-dumpfullversion").strip(), linker) != (COMPILER, LINKER):
        pytest.skip("another compiler makes other bytes")
    subprocess.run(["sh", HERE / "build.sh", tmp_path, machine], check=True)
    assert (tmp_path / f"cuinit.{machine}").read_bytes() == (HERE / f"cuinit.{machine}").read_bytes()


@here
@pytest.mark.parametrize(
    ("init", "count", "output"),
    [
        (0, 0, "cuInit=0 count=8 version=13010\n"),
        (34, 0, "cuInit=34 count=-1 version=0\n"),
        (0, 999, "cuInit=999 count=8 version=13010\n"),
        (-2147483648, 0, "cuInit=-2147483648 count=-1 version=0\n"),
    ],
)
def test_what_it_says(init: int, count: int, output: str, tmp_path: Path) -> None:
    # A libcuda with a libc of its own behind it, whose constructors have to have run.
    source = f"""#include <stdlib.h>
    static int ready;
    __attribute__((constructor)) static void start(void) {{ ready = getenv("READY") != 0 && malloc(100000) != 0; }}
    int cuInit(unsigned f) {{ return ready ? (int){init}LL + (int)f : 7; }}
    int cuDeviceGetCount(int *n) {{ *n = 8; return {count}; }}
    int cuDriverGetVersion(int *n) {{ *n = 13010; return 0; }}"""
    flags = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-x", "c", "-"]
    subprocess.run(
        [f"{MACHINE}-linux-gnu-gcc", *flags, "-o", tmp_path / "libcuda.so.1"], input=source, text=True, check=True
    )
    env = {"LD_LIBRARY_PATH": str(tmp_path), "READY": "1"}
    done = subprocess.run([HERE / f"cuinit.{MACHINE}"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


@here
def test_without_a_libcuda_the_loader_says_so(tmp_path: Path) -> None:
    done = subprocess.run([HERE / f"cuinit.{MACHINE}"], env={}, capture_output=True, text=True)
    if done.returncode == 0:
        pytest.skip("this machine has a libcuda")
    assert done.returncode == 127 and "error while loading shared libraries: libcuda.so.1" in done.stderr

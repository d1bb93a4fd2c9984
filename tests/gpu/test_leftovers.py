"""What an update leaves behind, told by the probe's own functions from real files, and read back."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from gpuready.model.leftovers import leftovers

TEMPLATE = Path(__file__).parents[2] / "templates" / "lib" / "leftovers.sh.j2"
SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]


def told(shell: str, function: str, tmp_path: Path, *places: str) -> str:
    """What a function of the template prints, with these absolute places below tmp_path instead."""
    script = TEMPLATE.read_text("utf-8").partition("#}\n")[2]
    for place in places:
        assert place in script, place
        script = script.replace(place, f"{tmp_path}{place}")
    done = subprocess.run([shell, "-c", f"{script}\n{function}"], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_firmware_and_the_modules_beside_the_driver(shell: str, tmp_path: Path) -> None:
    for name in ("580.159.04/gsp_ga10x.bin", "570.86.15/gsp_tu10x.bin.zst", "535.1.2/other.bin", "tu102/gsp_log.bin"):
        file = tmp_path / "lib/firmware/nvidia" / name
        file.parent.mkdir(parents=True)
        file.touch()
    for source in ("gdrdrv-2.5", "nvidia-fs-2.26.6"):
        (tmp_path / "usr/src" / source).mkdir(parents=True)
    (tmp_path / "sys/module/nvidia_fs").mkdir(parents=True)
    assert told(shell, "firmware", tmp_path, "/lib/firmware") == "gsp=570.86.15\ngsp=580.159.04\n"
    assert told(shell, "peers", tmp_path, "/usr/src", "/sys/module") == "peer=gdrdrv\n"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes are root's to make")
def test_device_nodes(shell: str, tmp_path: Path) -> None:
    (tmp_path / "dev/char").mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/devices").write_text("Character devices:\n195 nvidia\n507 nvidia-uvm\n")
    for name, major, minor in (("nvidia0", 195, 0), ("nvidiactl", 195, 255), ("nvidia-uvm", 506, 0)):
        try:
            os.mknod(tmp_path / "dev" / name, 0o600 | 0o020000, os.makedev(major, minor))
        except PermissionError:
            pytest.skip("this root may make no device nodes")
    (tmp_path / "dev/char/195:255").symlink_to("../nvidiactl")
    lines = told(shell, "node_leftovers", tmp_path, "/dev/", "/proc/devices").replace(str(tmp_path), "").splitlines()
    assert lines == ["unlinked=/dev/nvidia0", "unlinked=/dev/nvidia-uvm", "misnumbered=/dev/nvidia-uvm"]


@pytest.mark.parametrize("shell", SHELLS)
def test_nvidia_persistenced_and_its_socket(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lines() -> list[str]:
        return told(shell, "persistenced", tmp_path, "/run/nvidia-persistenced").split()

    assert lines() == ["persistenced_no_socket=1"]
    folder = tmp_path / "run/nvidia-persistenced"
    folder.mkdir(parents=True)
    (folder / "socket").touch()
    (folder / "nvidia-persistenced.pid").write_text(f"{os.getpid()}\n")  # of another program's file
    assert lines() == ["persistenced_old=1", "persistenced_no_socket=1"]
    (folder / "socket").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(folder)  # the path of a socket may have 107 bytes
        listener.bind("socket")
        assert lines() == ["persistenced_old=1"]


def test_who_holds_a_deleted_library(tmp_path: Path) -> None:
    """A real process maps a file of such a name, and the file goes."""
    library = tmp_path / "libcuda.so.535.1.2"
    shutil.copy(Path("/proc/self/exe").resolve(), library)
    holder = subprocess.Popen([library, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:

        def rows() -> list[list[str]]:
            found = [row.split("\t") for row in told("sh", "holders", tmp_path).splitlines()]
            return [row for row in found if row[0] == str(holder.pid)]

        assert rows() == []
        library.unlink()
        ((_, name, cgroup, file),) = rows()
        assert (name, file) == ("libcuda.so.535."[:15], "libcuda.so.535.1.2")
        assert cgroup.startswith("/")
    finally:
        holder.communicate()


def test_rows_are_read_and_others_left_out() -> None:
    container = f"/system.slice/docker-{'0123456789ab' + 'cd' * 26}.scope"
    text = f"7\tpython3\t{container}\tlibcuda.so.535.1.2\n\nx\ty\n?\ta\tb\tc\n8\tnv-hostengine\t/\tlibnvidia-ml.so.1\n"
    found = leftovers({"gsp": ["580.1"], "persistenced_old": ["1"], "persistenced_no_socket": ["1"]}, text, "")
    assert [(h.pid, h.container) for h in found.holders] == [(7, "0123456789ab"), (8, "")]
    assert (found.firmware, found.persistenced_old, found.persistenced_no_socket) == (("580.1",), True, True)
    assert found.unread == "" and not leftovers({}, "", "").persistenced_no_socket
    assert leftovers({}, "", "holders: no answer").unread == "holders: no answer"

"""One test machine in a container: its disk (an overlay over the root image), its life, and files put on its disk.

Docker's and containerd's data are plain directories beside the disk, because overlay2 does not stack on an overlay;
they start as a copy of a seed that holds the image busybox:lab.
"""

import shutil
import subprocess
import time
import uuid
from pathlib import Path

from tests.lab import network, nspawn
from tests.lab.host import LabError, sh
from tests.lab.image import UNLISTED
from tests.lab.node import Node, Record
from tests.lab.processes import wait_gone

_DATA = {"docker": "/var/lib/docker", "containerd": "/var/lib/containerd"}


class Machine(Node):
    """A container with a systemd of its own; `root` is its disk, which may be read and written from here."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.root = self.home / "root"

    # -- disk ---------------------------------------------------------------------------------------------------

    def create(self) -> None:
        for part in ("upper", "work", "root"):
            (self.home / part).mkdir(parents=True)
        self._mount()
        for part in _DATA:
            seed = Path(self.record.seed, part)
            if self.record.seed and seed.is_dir():
                sh("cp", "-a", "--reflink=auto", seed, self.home / part)
            else:
                (self.home / part).mkdir(mode=0o711)
        if self.distro == UNLISTED:
            for path in (*self.root.glob("var/lib/apt/lists/*_dists_*"), *self.root.glob("var/cache/apt/*.bin")):
                path.unlink()
        self._identify(self.root)
        (self.root / "etc/machine-id").write_text(f"{uuid.uuid4().hex}\n", "utf-8")
        network.attach(self.name, self.record.index)

    def _mount(self) -> None:
        layers = f"lowerdir={self.record.image},upperdir={self.home}/upper,workdir={self.home}/work"
        # volatile: the disk is thrown away with the machine, so nothing need wait for it to be written.
        sh("mount", "-t", "overlay", "-o", f"{layers},volatile", f"gpuready-lab-{self.name}", self.root)

    @property
    def layers(self) -> str:
        """What its disk is made of, as overlay names it."""
        return f"{self.home}/upper:{self.record.image}"

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self, docker: bool = True) -> None:
        if nspawn.running(self.name):
            raise LabError(f"{self.name} is already running")
        binds = [(self.home / part, target) for part, target in _DATA.items()]
        nspawn.start(self.name, self.root, binds, self._log)
        self.wait(docker)

    def running(self) -> bool:
        return nspawn.running(self.name)

    def _held(self) -> bool:
        return bool(nspawn.processes(self.name))

    def poweroff(self) -> None:
        nspawn.shutdown(self.name)
        nspawn.remove_traces(self.name)

    def reboot(self) -> None:
        before = nspawn.inits(self.name)
        self.run("systemctl reboot", check=False)
        wait_gone(before, 30)
        self.wait()

    def kill(self) -> None:
        nspawn.kill(self.name)
        nspawn.remove_traces(self.name)

    def destroy(self) -> None:
        self.kill()
        network.detach(self.name, self.record.index)
        self._unmount()
        self._remove()

    def _unmount(self) -> None:
        """Unmount all below the machine's directory, a test's own mounts, too: what is mounted must not be deleted."""
        deadline = time.monotonic() + 5
        while points := _mounts_below(self.home):
            lazy = ["--lazy"] if time.monotonic() > deadline else []
            done = subprocess.run(["umount", *lazy, points[-1]], capture_output=True, check=False)
            if done.returncode != 0:
                time.sleep(0.02)

    # -- ways in ------------------------------------------------------------------------------------------------

    def put(self, local: Path, remote: str) -> None:
        """Copy a file, or a directory's contents, to a place on the machine's disk; links and modes are kept.

        Not below /tmp or /run: those are memory of the running machine, and no part of its disk.
        """
        target = self.root / remote.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if local.is_dir():
            shutil.copytree(local, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(local, target, follow_symlinks=False)

    def script(self, path: str, text: str) -> Path:
        """Put a program on the machine's disk."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        file.chmod(0o755)
        return file


def _mounts_below(place: Path) -> list[str]:
    rows = (row.split()[1] for row in Path("/proc/self/mounts").read_text("utf-8").splitlines())
    return [point for point in rows if point.startswith(f"{place}/")]

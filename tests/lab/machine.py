"""One test machine: its disk (an overlay over the root image), its life, and the ways into it.

A machine is a directory below the lab's run directory, with all that a later process needs to find it again.
Docker's and containerd's data are plain directories there, because overlay2 does not stack on an overlay; they
start as a copy of a seed that holds the image busybox:lab.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.lab import access, inventory, network, nspawn, repository
from tests.lab.host import LabError, run_root, sh
from tests.lab.processes import wait_gone

_BOOT_SECONDS = 90
_DATA = {"docker": "/var/lib/docker", "containerd": "/var/lib/containerd"}


@dataclass(frozen=True)
class Record:
    """What is remembered of a machine; `owner` is the pid of the test run it belongs to, 0 for `up`."""

    name: str
    distro: str
    index: int
    image: str
    seed: str
    owner: int


class Machine:
    """A machine with a name, an address and, while it is up, ssh."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.name = record.name
        self.distro = record.distro
        self.address = network.address(record.index)
        self.home = home(record.name)
        self.root = self.home / "root"

    @classmethod
    def load(cls, name: str) -> Machine:
        """The machine of that name, made earlier by any process."""
        return cls(Record(**json.loads((home(name) / "machine.json").read_text("utf-8"))))

    # -- disk ---------------------------------------------------------------------------------------------------

    def create(self) -> None:
        """Give the machine a pristine disk, its name, its keys and its network."""
        for part in ("upper", "work", "root"):
            (self.home / part).mkdir(parents=True)
        self._mount()
        for part in _DATA:
            seed = Path(self.record.seed, part)
            if self.record.seed and seed.is_dir():
                sh("cp", "-a", "--reflink=auto", seed, self.home / part)
            else:
                (self.home / part).mkdir(mode=0o711)
        self._personalise()
        network.attach(self.name, self.record.index)

    def _mount(self) -> None:
        layers = f"lowerdir={self.record.image},upperdir={self.home}/upper,workdir={self.home}/work"
        # volatile: the disk is thrown away with the machine, so nothing need wait for it to be written.
        sh("mount", "-t", "overlay", "-o", f"{layers},volatile", f"gpuready-lab-{self.name}", self.root)

    def _personalise(self) -> None:
        etc = self.root / "etc"
        (etc / "hostname").write_text(f"{self.name}\n", "utf-8")
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {self.name}\n::1 localhost\n", "utf-8")
        (etc / "machine-id").write_text(f"{uuid.uuid4().hex}\n", "utf-8")
        shutil.copyfile(_resolv_conf(), etc / "resolv.conf")
        access.install(self.root, self.name)
        shutil.copyfile(etc / "ssh/ssh_host_ed25519_key.pub", self.home / "host_key.pub")

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self, docker: bool = True) -> None:
        """Boot from the disk as the last run left it, and return when ssh, systemd and Docker answer."""
        if nspawn.running(self.name):
            raise LabError(f"{self.name} is already running")
        binds = [(self.home / part, target) for part, target in _DATA.items()]
        nspawn.start(self.name, self.root, binds, self.home / "console.log")
        self.wait(docker)

    def wait(self, docker: bool = True) -> None:
        """Wait until the machine has finished booting and, unless that is not expected, Docker answers."""
        deadline = time.monotonic() + _BOOT_SECONDS
        while not self._banner():
            if not nspawn.processes(self.name) or time.monotonic() > deadline:
                log = (self.home / "console.log").read_text("utf-8", "replace")
                raise LabError(f"{self.name} does not boot; its console ends with:\n{log[-2000:]}")
            time.sleep(0.02)
        script = f"systemctl is-system-running --wait; {'docker info >/dev/null' if docker else 'true'}"
        done = self.run(script, check=False, timeout=_BOOT_SECONDS)
        if done.stdout.strip() not in ("running", "degraded") or done.returncode != 0:
            failed = self.run("systemctl --no-pager --failed", check=False).stdout
            raise LabError(f"{self.name} came up wrong: {done.stdout}{done.stderr}{failed}")

    def _banner(self) -> bool:
        try:
            with socket.create_connection((self.address, 22), timeout=2) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def running(self) -> bool:
        """Whether the machine is up or booting."""
        return nspawn.running(self.name)

    def poweroff(self) -> None:
        """Shut down in good order; the disk stays for another start()."""
        nspawn.shutdown(self.name)
        nspawn.remove_traces(self.name)

    def reboot(self) -> None:
        """Reboot from inside, and return when the machine is up again."""
        before = nspawn.inits(self.name)
        self.run("systemctl reboot", check=False)
        wait_gone(before, 30)
        self.wait()

    def kill(self) -> None:
        """Cut the power; the disk stays for another start()."""
        nspawn.kill(self.name)
        nspawn.remove_traces(self.name)

    def destroy(self) -> None:
        """End the machine and remove all of it. Works on one that is half-made or dead."""
        self.kill()
        network.detach(self.name, self.record.index)
        self._unmount()
        shutil.rmtree(self.home, ignore_errors=True)  # two may be at it: a test that ends and a `down`
        if self.home.exists():
            raise LabError(f"{self.name}: {self.home} cannot be removed")

    def _unmount(self) -> None:
        """Unmount all below the machine's directory, a test's own mounts, too: what is mounted must not be deleted."""
        deadline = time.monotonic() + 5
        while points := _mounts_below(self.home):
            lazy = ["--lazy"] if time.monotonic() > deadline else []
            done = subprocess.run(["umount", *lazy, points[-1]], capture_output=True, check=False)
            if done.returncode != 0:
                time.sleep(0.02)

    # -- ways in ------------------------------------------------------------------------------------------------

    def run(
        self,
        command: str,
        user: str = "root",
        stdin: str | None = None,
        check: bool = True,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command over ssh as that user; LabError with its stderr when check is on and it fails."""
        done = subprocess.run(
            [*access.ssh(), f"{user}@{self.address}", command],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
        if check and done.returncode != 0:
            raise LabError(f"{self.name}: {command!r} exited {done.returncode}\n{done.stdout}{done.stderr}")
        return done

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

    def inventory(
        self,
        repo: repository.Repository | None = None,
        user: str = "gpu",
        plain: bool = False,
        **gpuready: object,
    ) -> Path:
        """Write an inventory of this machine alone; keywords are laid over the lab's `gpuready` settings."""
        source = repo or repository.shared()
        settings = None if plain else inventory.settings(source.settings(), gpuready)
        handle, path = tempfile.mkstemp(prefix="inventory-", suffix=".yaml", dir=self.home)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(inventory.text([(self.name, self.address)], settings, user))
        return Path(path)


def home(name: str) -> Path:
    """The directory of the machine of that name."""
    return run_root() / "machines" / name


def save(record: Record) -> Machine:
    """Write down a machine before anything of it exists, so that whatever comes to exist can be found."""
    place = home(record.name)
    if (place / "machine.json").exists():
        raise LabError(f"there is a machine {record.name} already")
    place.mkdir(parents=True, exist_ok=True)
    (place / "machine.new").write_text(json.dumps(asdict(record), indent=1), "utf-8")
    (place / "machine.new").rename(place / "machine.json")
    return Machine(record)


def _mounts_below(place: Path) -> list[str]:
    rows = (row.split()[1] for row in Path("/proc/self/mounts").read_text("utf-8").splitlines())
    return [point for point in rows if point.startswith(f"{place}/")]


def _resolv_conf() -> Path:
    """The host's resolvers, not its local stub: that one's address means the machine itself inside."""
    upstream = Path("/run/systemd/resolve/resolv.conf")
    return upstream if upstream.exists() else Path("/etc/resolv.conf")

"""What a test machine is whatever runs it: a record on disk, an address, ssh, an inventory.

A node is a directory below the lab's run directory, with all that a later process needs to find it again.
"""

import json
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.lab import access, inventory, network, repository, scale
from tests.lab.host import LabError, run_root


@dataclass(frozen=True)
class Record:
    """What is remembered of a node; `owner` is the pid of the test run it belongs to, 0 for `up`.

    `image` is what its disk starts as: a root directory, or a VM's disk. `kind` says which of the two runs it, `wire`
    is a VM's place on the private wire (from 1), and `peer` the name of the VM at the first place, if it is another.
    """

    name: str
    distro: str
    index: int
    image: str
    seed: str
    owner: int
    kind: str = "machine"
    wire: int = 1
    peer: str = ""


#: The checkout that this process runs from. It stands in a file of its own: the record is read by other checkouts, too.
CHECKOUT = str(Path(__file__).parents[2])


class Node(ABC):
    """A test machine with a name, an address and, while it is up, ssh."""

    boot_seconds = 90.0

    def __init__(self, record: Record) -> None:
        self.record = record
        self.name = record.name
        self.distro = record.distro
        self.address = network.address(record.index)
        self.home = home(record.name)

    @property
    def checkout(self) -> str:
        """The checkout that made it; empty if that is not known."""
        with suppress(FileNotFoundError):  # made by an earlier release, or half-made
            return (self.home / "checkout").read_text("utf-8")
        return ""

    # -- life ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def create(self) -> None:
        """Give the node a pristine disk, its name, its keys and its network."""

    @abstractmethod
    def start(self, docker: bool = True) -> None:
        """Boot from the disk as the last run left it, and return when ssh, systemd and Docker answer."""

    @abstractmethod
    def running(self) -> bool:
        """Whether the node is up or booting."""

    @abstractmethod
    def poweroff(self) -> None:
        """Shut down in good order; the disk stays for another start()."""

    @abstractmethod
    def reboot(self) -> None:
        """Reboot from inside, and return when the node is up again."""

    @abstractmethod
    def kill(self) -> None:
        """Cut the power; the disk stays for another start()."""

    @abstractmethod
    def destroy(self) -> None:
        """End the node and remove all of it. Works on one that is half-made or dead."""

    def wait(self, docker: bool = True) -> None:
        """Wait until the node has finished booting and, unless that is not expected, Docker answers."""
        limit, look = scale.Limit(self.boot_seconds), 0.0
        while not self._banner():
            now = time.monotonic()
            if now > look:  # not each time: it reads the arguments of every process of the host
                if not self._held() or limit.over():
                    raise LabError(f"{self.name} does not boot; its console ends with:\n{self.console()}")
                look = now + 0.5
            time.sleep(0.02)
        script = f"systemctl is-system-running --wait; {'docker info >/dev/null' if docker else 'true'}"
        done = self.run(script, check=False, timeout=self.boot_seconds)
        if done.stdout.strip() not in ("running", "degraded") or done.returncode != 0:
            failed = self.run("systemctl --no-pager --failed", check=False).stdout
            raise LabError(f"{self.name} came up wrong: {done.stdout}{done.stderr}{failed}")

    def _held(self) -> bool:
        """Whether anything on the host still has to do with it: between two boots that may be more than running()."""
        return self.running()

    @property
    def _log(self) -> Path:
        return self.home / "console.log"

    def console(self) -> str:
        """The last 40 lines of its console."""
        return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-40:]) if self._log.exists() else ""

    def _banner(self) -> bool:
        try:
            with socket.create_connection((self.address, 22), timeout=2) as connection:
                connection.settimeout(scale.seconds(20))
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    # -- ways in ------------------------------------------------------------------------------------------------

    @abstractmethod
    def put(self, local: Path, remote: str) -> None:
        """Copy a file, or a directory's contents, to a place on the node's disk; links and modes are kept."""

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
            timeout=scale.seconds(timeout),
            check=False,
        )
        if check and done.returncode != 0:
            raise LabError(f"{self.name}: {command!r} exited {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def sh(self, script: str) -> str:
        """The output of a script that runs as root and ends at its first error."""
        return self.run("sh -e", stdin=script).stdout

    def install(self, packages: str) -> None:
        """Install packages of the distribution."""
        apt = "DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install"
        self.run(f"apt-get -q update && {apt} {packages} </dev/null", timeout=900)

    def inventory(self, **gpuready: object) -> Path:
        """Write an inventory of this node alone; keywords are laid over the lab's `gpuready` settings."""
        settings = inventory.settings(repository.shared().settings(), gpuready)
        path = self.home / "hosts.yaml"
        path.write_text(inventory.text([(self.name, self.address)], settings), "utf-8")
        return path

    # -- disk ------------------------------------------------------------------------------------------------

    def _identify(self, root: Path) -> None:
        """Write into a root directory what no other node may have: the name, the host key, who may log in."""
        etc = root / "etc"
        (etc / "hostname").write_text(f"{self.name}\n", "utf-8")
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {self.name}\n::1 localhost\n", "utf-8")
        shutil.copyfile(resolv_conf(), etc / "resolv.conf")
        access.install(root, self.name)
        shutil.copyfile(etc / "ssh/ssh_host_ed25519_key.pub", self.home / "host_key.pub")

    def _remove(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)  # two may be at it: a test that ends and a `down`
        if self.home.exists():
            raise LabError(f"{self.name}: {self.home} cannot be removed")


def home(name: str) -> Path:
    """The directory of the node of that name."""
    return run_root() / "machines" / name


def load(name: str) -> Record:
    """What is remembered of the node of that name, made earlier by any process."""
    return Record(**json.loads((home(name) / "machine.json").read_text("utf-8")))


def save(record: Record) -> None:
    """Write down a node before anything of it exists, so that whatever comes to exist can be found."""
    place = home(record.name)
    if (place / "machine.json").exists():
        raise LabError(
            f"there is a machine {record.name} already\n"
            f"  fix:     .venv/bin/python -m tests.lab down --name {record.name} (while its run works: --all)"
        )
    place.mkdir(parents=True, exist_ok=True)
    (place / "checkout").write_text(CHECKOUT, "utf-8")
    (place / "machine.new").write_text(json.dumps(asdict(record), indent=1), "utf-8")
    (place / "machine.new").rename(place / "machine.json")


def resolv_conf() -> Path:
    """The host's resolvers, not its local stub: that one's address means the machine itself inside."""
    upstream = Path("/run/systemd/resolve/resolv.conf")
    return upstream if upstream.exists() else Path("/etc/resolv.conf")

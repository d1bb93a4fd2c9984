"""``apply --image``: prepare the root file system of an image. Nothing is started; the first boot does the rest.

Steps and packages start services if they see systemd, an engine or a driver. So gpuready runs itself again in a mount
namespace in which none of them is to be seen, and /run is empty. A mark in that /run tells the components
(:attr:`NodeState.image`); those that need a booted machine wait. Then gpuready removes what only the builder has, and
writes a unit that runs an ordinary ``apply`` at the first boot.

The ledger stays: it says what was on this disk before, which ``remove`` needs, and names no host. The record of the
last apply is not written, because it names the builder and its boot.
Sources: systemd.io/BUILDING_IMAGES, machine-id(5), invoke-rc.d(8) and policy-rc.d, unshare(1).
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gpuready.base import resources
from gpuready.base.errors import ConvergeError, UsageError, brief
from gpuready.base.files import reason
from gpuready.cli.online import online
from gpuready.contract.check import undecided
from gpuready.contract.compare import FIRST_BOOT
from gpuready.contract.component import Disruption
from gpuready.contract.image_boot import FILES, NAME, SPEC
from gpuready.contract.node_record import PATH as RECORD
from gpuready.inventory.build import local_values, written
from gpuready.model.state import IMAGE, NodeState
from gpuready.result.model import Error
from gpuready.verbs.apply.part import FirstBoot

if TYPE_CHECKING:
    from gpuready.cli.change import Act
    from gpuready.cli.request import Request
    from gpuready.model.spec import NodeSpec
    from gpuready.result.model import Run

#: Of these, each machine has its own. An empty machine-id is filled at the boot; a missing one is not everywhere.
#: iscsid of Debian does not start without its file, and makes a name in place of this line; RHEL makes the file.
_INITIATOR, _OF_DEBIAN = "etc/iscsi/initiatorname.iscsi", "lib/open-iscsi"
_RENEWED = {"etc/machine-id": b"", _INITIATOR: b"GenerateName=yes\n"}
_OF_ONE_MACHINE = (
    "etc/ssh/ssh_host_*_key",
    "etc/ssh/ssh_host_*_key.pub",
    "etc/ssh/ssh_host_*_key-cert.pub",
    "etc/nvme/hostid",
    "etc/nvme/hostnqn",
    "var/lib/dbus/machine-id",
    "var/lib/systemd/random-seed",
    "var/lib/systemd/credential.secret",
    "var/lib/gpuready/tx",
)
#: Directories that the image does not keep.
_FLEETING = ("/tmp", "/run", "/dev/shm", "/var/tmp")
#: The environment of the first boot, but for what systemd adds.
_BOOTED = {"HOME": "/root", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
#: Programs of a machine in use: agents of schedulers, and what holds a running container or virtual machine.
_WORK = (
    *("kubelet", "kubelite", "k3s", "slurmd", "pbs_mom", "sbatchd", "condor_startd"),
    *("containerd-shim", "conmon", "qemu-system"),
)
#: Files of a GPU in use, and programs that hold them open without using it.
_GPU = re.compile("/dev/nvidia([0-9]+|-uvm)")
_IDLE = ("nvidia-persiste", "nv-hostengine")
_LOCK = "run/gpuready.lock"
#: Seconds. Nobody builds an image for so long.
_OLDEST = 86400
_POLICY = "/usr/sbin/policy-rc.d"


def enter(*, yes: bool, state_dir: str | None) -> None:
    """Run this command line again where nothing of the builder is to be seen. Return at once if it already is.

    Raises UsageError if this cannot be an image, or if the system does not permit it.
    """
    if not yes:
        raise UsageError("--image needs --yes: nobody answers while an image is built")
    if state_dir:
        raise UsageError("--image changes one machine, --state-dir is for a fleet", remedy="leave out --state-dir")
    if Path(IMAGE).exists():
        atexit.register(forget_policy)  # also if the inventory has an error
        return
    program = program_words()
    _refuse(program)
    command = (sys.executable, *sys.orig_argv[1:])
    script = resources.script("verbs/apply/enter", command=command, mark=IMAGE, policy=_POLICY)
    words = ["unshare", "--mount", "--propagation", "private"]
    try:
        done = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UsageError("--image needs unshare(1)", remedy="install util-linux") from None
    if done.returncode != 0:
        raise UsageError(
            f"--image needs a mount namespace of its own: {done.stderr.strip()}",
            remedy="run it as root of the builder, not of an unprivileged container; the root of a chroot must be a "
            "mount point (mount --bind ROOT ROOT)",
        )
    os.execvp(words[0], [*words, "sh", "-c", script])


def program_words() -> tuple[str, ...]:
    """Return the words by which this gpuready can be called again, with absolute paths."""
    given = Path(sys.argv[0])
    if given.name == "__main__.py":
        return (sys.executable, "-m", "gpuready")
    return (sys.executable, str(given.absolute()))


def _refuse(program: tuple[str, ...], root: Path = Path("/")) -> None:
    """Raise UsageError if this is no image that is being built."""
    if os.geteuid() != 0:
        raise UsageError("--image needs root", remedy="run it with sudo, as the provisioner in the guide does")
    for word in program:
        if word.startswith("/") and not _stays(word):
            raise UsageError(
                f"--image: the first boot needs gpuready, and {word} does not stay in the image",
                remedy="install it into /opt/gpuready",
            )
    done = subprocess.run([*program, "--version"], cwd="/", env=_BOOTED, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UsageError(
            f"--image: the first boot could not run {shlex.join(program)}: {brief(done.stderr)}",
            remedy="install gpuready into /opt/gpuready; a source directory or PYTHONPATH is not there at boot",
        )
    if (root / RECORD.lstrip("/")).exists():
        raise UsageError(
            f"--image: this is a machine in use, not an image: gpuready converged it without --image ({RECORD})",
            remedy="leave --image out. If an image is made of this machine, and it was rebooted after --image, its "
            "first boot ran here: gpuready remove, then --image again",
        )
    if found := _in_use() or _locked(root / _LOCK):
        raise UsageError(
            f"--image: this is a machine in use, not an image: {found}",
            remedy="leave --image out; an image is made on a machine of its own, which was booted for it",
        )


def _stays(path: str) -> bool:
    """Tell whether the image keeps the file. A link may lead to where it does not."""
    return not any(
        f"{each}/".startswith(tuple(f"{one}/" for one in _FLEETING)) for each in (path, Path(path).resolve())
    )


def _in_use(proc: Path = Path("/proc")) -> str:
    """Say what a process of this machine shows about its use; empty if nothing does.

    In a chroot, /proc may be the builder's: only processes with this root directory count.
    """
    booted = _same_root(proc / "1")
    if booted and (age := _age(proc)) > _OLDEST:
        return f"it booted {age / 86400:.0f} days ago"
    for folder in proc.glob("[0-9]*"):
        if not booted and not _same_root(folder):
            continue
        with suppress(OSError):  # it has ended
            name = (folder / "comm").read_text("utf-8", "replace").strip()
            if name.startswith(_WORK):
                return f"{name} (pid {folder.name}) runs"
            opened = (str(file.readlink()) for file in (folder / "fd").iterdir())
            gpu = next(filter(_GPU.fullmatch, opened), "")
            if gpu and name not in _IDLE:
                return f"{name} (pid {folder.name}) holds {gpu} open"
    return ""


def _same_root(folder: Path) -> bool:
    with suppress(OSError):
        return (folder / "root").samefile("/")
    return False


def _age(proc: Path) -> float:
    """Return the seconds since process 1 began. In a container, /proc/uptime alone is the host's (proc(5))."""
    began = int((proc / "1/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19])
    return float((proc / "uptime").read_text("utf-8").split()[0]) - began / os.sysconf("SC_CLK_TCK")


def _locked(lock: Path) -> str:
    """Say that another run changes this machine; empty if none does."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return ""
    except BlockingIOError:
        return f"another run of gpuready changes it (/{_LOCK})"
    return ""


def make(wanted: Request) -> Act:
    """Return what does a request, and after a change that ended well, makes the rest of the image.

    Raises UsageError if the request makes no sense in an image.
    """
    if [entry.name for entry in wanted.entries] != ["@local"]:
        raise UsageError(
            "--image changes the image in which gpuready runs, and no other host",
            remedy="-i @local and, if the spec names hosts, --limit @local",
        )
    if wanted.selected is not None:
        raise UsageError("--image prepares the whole image", remedy="leave out --only and --skip")
    if wanted.allowed == Disruption.reboot:
        raise UsageError("--image never reboots the builder", remedy="leave out --allow-disruption reboot")
    if undecided(wanted.entries[0].spec, NodeState()):
        raise UsageError(
            "--image: the spec does not say hardware.gpus, so a first boot that sees no GPU would do nothing",
            remedy="write hardware: {gpus: 8}, the number of the machines that will boot it",
        )
    for key, value in local_values(wanted.entries[0].spec):
        path = value.removeprefix("file:")
        if value.startswith(("env:", "cmd:")) or not path.startswith("/") or not _stays(path):
            raise UsageError(
                f"--image: {key} is {value!r}, which the first boot does not have",
                remedy="put it into a file that stays in the image, and name its absolute path (a secret: file:PATH)",
            )
    return _make


def _make(wanted: Request, *, verb: str = "") -> Run:
    run = online(wanted, verb=verb)
    (host,) = run.hosts
    run.choice = ""  # no command follows: `verify` would ask for what the first boot does
    if host.outcome in ("ok", "changed") and not run.interrupted:
        pending = tuple(item.name for item in host.components if item.reason == FIRST_BOOT)
        try:
            _write(wanted.entries[0].spec)
            host.parts["first_boot"] = FirstBoot(f"{NAME}.service", pending, forget_builder())
        except ConvergeError as e:
            host.outcome, host.error = "failed", Error.of(e)
    if "first_boot" not in host.parts:
        host.notes.append("the image is not finished: do not boot machines from it")
    return run


def forget_policy(policy: Path = Path(_POLICY)) -> None:
    """Remove the link to the policy of this run, which is a file of its own /run (verbs/apply/enter.sh.j2)."""
    if policy.is_symlink() and policy.readlink() == Path("/run/gpuready.policy"):
        policy.unlink()


def unit(spec: NodeSpec) -> str:
    """Return the unit of the first boot. It may read the files of secrets that this run was allowed to read."""
    words = " ".join(map(resources.unit_word, program_words()))
    secrets = [value for _, value in local_values(spec) if value.startswith("file:")]
    allowed = "".join(f" --allow-read {resources.unit_word(each)}" for each in secrets)
    return resources.document(
        "verbs/apply/first-boot.service", program=words, allowed=allowed, spec=SPEC, files=" ".join(FILES)
    )


def _write(spec: NodeSpec) -> None:
    """Write the units of the first boot, and the spec that it applies."""
    keys = resources.document("verbs/apply/host-keys.service")
    texts = (unit(spec), keys, resources.document("verbs/apply/first-boot.conf"), written(spec))
    for path, text in zip(map(Path, FILES), texts, strict=True):
        with _naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = 0o600 if path == Path(SPEC) else 0o644
            path.touch(mode)
            path.chmod(mode)  # before anything is in it
            path.write_text(text, "utf-8")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Raise ConvergeError with the path for an OSError, which does not name it if the disk is full."""
    try:
        yield
    except OSError as e:
        raise ConvergeError(f"{path}: {reason(e)}") from None


def forget_builder(root: Path = Path("/")) -> tuple[str, ...]:
    """Remove what only the builder has. Return the paths of the files."""
    patterns = _OF_ONE_MACHINE if (root / _OF_DEBIAN).exists() else (*_OF_ONE_MACHINE, _INITIATOR)
    found = [path for pattern in patterns for path in sorted(root.glob(pattern))]
    for path in found:
        with _naming(path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    for name, data in _RENEWED.items():
        path = root / name
        with _naming(path):
            if path.exists() and path.read_bytes() != data:
                path.write_bytes(data)
                found.append(path)
    return tuple(str(path) for path in found)

"""Start and end one QEMU, independent of the process that asked, by KVM where that boots a stock kernel.

Which processes belong to a VM is read from /proc by its unique argument, as for containers. A QEMU that a test run
started ends with that run, whatever ends it: without KVM it would keep whole cores busy until somebody cleans up.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.lab import cache, scale
from tests.lab.host import LabError, run_root, sh
from tests.lab.processes import matching, send, wait_gone

PROGRAM = "qemu-system-x86_64"
NICE = "-10"
_KVM_SECONDS = 15
# The reading end of a pipe is its stdin: that ends when the test run, which holds the other end, does.
_LEASH = 'read -r _; grep -qszx -- "$1" "/proc/$2/cmdline" && kill -9 "$2"'


def _name(name: str) -> str:
    return f"guest=gpuready-lab-{name}"


def processes(name: str) -> list[int]:
    """The VM itself: its QEMU, while it runs."""
    return matching(lambda argv: Path(argv[0]).name == PROGRAM and _name(name) in argv)


def start(name: str, options: Sequence[str], accelerator: str) -> None:
    """Begin to boot; LabError with QEMU's own words where it refuses."""
    argv = [PROGRAM, "-name", _name(name), "-nodefaults", "-no-user-config", "-display", "none", *_speed(accelerator)]
    # Without KVM it is many times slower than all beside it, and what waits for it has limits in seconds.
    sh("nice", "-n", NICE, *argv, *options, "-daemonize")
    # As a daemon it has a session of its own, and where the kernel groups processes by sessions the group's niceness
    # is the one that counts beside others.
    for pid in processes(name):
        with suppress(FileNotFoundError):
            Path(f"/proc/{pid}/autogroup").write_text(NICE)


def leash(name: str) -> int:
    """Let the VM end with this process, whatever ends it; the file descriptor returned has to stay open until then."""
    reading, writing = os.pipe()
    (pid,) = processes(name)
    words = ["sh", "-c", _LEASH, "leash", _name(name), str(pid)]
    subprocess.Popen(words, stdin=reading, stdout=subprocess.DEVNULL, start_new_session=True)
    os.close(reading)
    return writing


def end(name: str) -> None:
    """End the VM as a power cut would: the guest is asked nothing, what it has written is on its disk."""
    qemu = processes(name)
    send(qemu, signal.SIGTERM)  # QEMU closes the disk's file; it does not tell the guest
    with suppress(LabError):
        wait_gone(qemu, 10)
    rest = matching(lambda argv: _name(name) in argv)  # one that does not end, and the leash
    send(rest, signal.SIGKILL)
    wait_gone(rest, 10)


def accelerator(kernel: Path) -> str:
    """`kvm` where the host's KVM boots that kernel, else `tcg`; found out once per boot of the host, and said then."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
    verdict = run_root() / "accelerator.json"
    with cache.locked(run_root() / "accelerator.lock"):
        known = json.loads(verdict.read_text("utf-8")) if verdict.exists() else {}
        if known.get("boot_id") == boot:
            return str(known["accelerator"])
        why = _no_kvm(kernel)
        found = "tcg" if why else "kvm"
        print(f"lab: virtual machines by {f'TCG, slowly: {why}' if why else 'KVM'}", file=sys.stderr, flush=True)
        verdict.write_text(json.dumps({"boot_id": boot, "accelerator": found}), "utf-8")
    return found


def _no_kvm(kernel: Path) -> str:
    """Why KVM is not to be used here; empty when it boots the kernel up to the point where a disk is missing."""
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR))
    except OSError as error:
        return f"/dev/kvm: {error.strerror}"
    with tempfile.TemporaryDirectory(prefix=".kvm-", dir=run_root()) as scratch:
        log = Path(scratch, "log")
        argv = [PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", *_speed("kvm"), "-no-reboot"]
        argv += ["-serial", f"file:{log}", "-kernel", str(kernel), "-append", "console=ttyS0 panic=-1"]
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, timeout=scale.seconds(_KVM_SECONDS), check=False
            )
        except subprocess.TimeoutExpired:
            return f"/dev/kvm does not boot Debian's kernel within {_KVM_SECONDS} s"
        if log.exists() and "Unable to mount root fs" in log.read_text("utf-8", "replace"):
            return ""
        return f"/dev/kvm does not boot Debian's kernel {done.stderr.strip()[:200]}".strip()


def _speed(accelerator: str) -> list[str]:
    cpu = {"kvm": ["-accel", "kvm", "-cpu", "host"], "tcg": ["-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max"]}
    return [*cpu[accelerator], "-smp", "2", "-m", "1024"]

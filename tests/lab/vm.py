"""One virtual machine: a kernel of its own, which reboots, loads modules and has RDMA devices (soft RoCE).

The ways in are a machine's: the same address, keys, users and inventory. What differs: the disk cannot be reached from
the host, put() goes through ssh; and there is a second interface, eth1, on a private wire to other VMs.
"""

import os
import subprocess
import tempfile
import time
from pathlib import Path

from tests.lab import access, disk, network, node, qemu, scale, uefi
from tests.lab.host import LabError, sh
from tests.lab.node import Node, Record
from tests.lab.processes import wait_gone

_BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


class VM(Node):
    """A virtual machine; `wire` is its address on eth1."""

    boot_seconds = 300.0  # without KVM, beside another one, on a busy host

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.wire = network.wire(record.wire)
        self._leash: int | None = None

    # -- disk ---------------------------------------------------------------------------------------------------

    def create(self) -> None:
        disk.overlay(Path(self.record.image) / "disk.raw", self.disk)
        if self._boot.is_dir():
            uefi.variables(self._variables)
        with tempfile.TemporaryDirectory(prefix="identity-", dir=self.home) as scratch:
            tree = Path(scratch)
            for place in ("etc/ssh", *(place for place, _ in access.USERS.values())):
                (tree / place).mkdir(parents=True)
            self._identify(tree)
            batch = network.guest(self.record.index, self.record.wire)
            (tree / "etc/gpuready-lab-network").write_text(batch, "utf-8")
            # The owner of .ssh is ours to set, that of /etc is not: such directories are not in it.
            names = [path.relative_to(tree) for path in tree.rglob("*") if path.is_file() or path.name == ".ssh"]
            listed = "".join(f"{name}\n" for name in sorted(names))
            sh("tar", "-c", "-C", tree, "--no-recursion", "-T", "-", "-f", self._identity, stdin=listed)
        first = node.load(self.record.peer).index if self.record.peer else self.record.index
        network.attach_taps(self.record.index, first)

    @property
    def disk(self) -> Path:
        """The VM's own disk, over the one that all start from."""
        return self.home / "disk.qcow2"

    @property
    def _boot(self) -> Path:
        """The boot partition of a VM with UEFI."""
        return Path(self.record.image) / "boot"

    @property
    def _variables(self) -> Path:
        return self.home / "variables.fd"

    @property
    def _serial(self) -> Path:
        return self.home / "serial"

    @property
    def _identity(self) -> Path:
        return self.home / "identity.tar"

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self, docker: bool = False) -> None:
        if self.running():
            raise LabError(f"{self.name} is already running")
        image = Path(self.record.image)
        accelerator = qemu.accelerator(image / "vmlinuz")
        self._let_go()
        qemu.start(self.name, self._devices(), accelerator)
        if self.record.owner == os.getpid():
            self._leash = qemu.leash(self.name)
        self.wait(docker)

    def _devices(self) -> list[str]:
        serial = f"socket,id=console,path={self._serial},server=on,wait=off,logfile={self._log},logappend=on"
        return [
            *("-chardev", serial, "-serial", "chardev:console", "-device", "virtio-rng-pci"),
            # Nothing need wait for the host's disk: this one does not outlive the VM.
            *("-drive", f"if=none,id=disk,format=qcow2,cache=unsafe,file={self.disk}"),
            # UEFI looks only at the disks that QEMU says to boot from; GRUB finds no other.
            *("-device", "virtio-blk-pci,drive=disk,bootindex=1"),
            *("-drive", f"if=none,id=identity,format=raw,read-only=on,file={self._identity}"),
            *("-device", "virtio-blk-pci,drive=identity"),
            *("-netdev", f"tap,id=lan,ifname={network.link(self.record.index)},script=no,downscript=no"),
            *("-device", f"virtio-net-pci,netdev=lan,romfile=,mac={network.mac(self.record.index, 0)}"),
            *("-netdev", f"tap,id=wire,ifname={network.plug(self.record.index)},script=no,downscript=no"),
            *("-device", f"virtio-net-pci,netdev=wire,romfile=,mac={network.mac(self.record.index, 1)}"),
            *(uefi.devices(self._boot, self._variables) if self._boot.is_dir() else ()),
        ]

    def running(self) -> bool:
        return bool(qemu.processes(self.name))

    def poweroff(self) -> None:
        running = qemu.processes(self.name)
        self.run("systemctl poweroff", check=False)
        wait_gone(running, self.boot_seconds)
        self.kill()

    def reboot(self) -> None:
        """Reboot from inside, and return when the VM is up again, with another boot_id."""
        before = self.run(_BOOT_ID).stdout
        self.run("systemctl reboot", check=False)
        self.await_boot(before)

    def await_boot(self, before: str) -> None:
        """Wait until the VM is up with another boot_id than that: for a reboot that something else asks for."""
        limit = scale.Limit(self.boot_seconds)
        while True:
            now = self.run(_BOOT_ID, check=False)
            if now.returncode == 0 and now.stdout.strip() != before.strip():
                break
            if not self.running() or limit.over():
                raise LabError(f"{self.name} did not reboot; its console ends with:\n{self.console()}")
            time.sleep(0.2)
        self.wait(docker=False)

    def kill(self) -> None:
        qemu.end(self.name)
        self._let_go()

    def _let_go(self) -> None:
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None

    def destroy(self) -> None:
        self.kill()
        network.detach(self.name, self.record.index)
        self._remove()

    def at_console(self) -> uefi.Console:
        """A person at its serial console."""
        return uefi.Console(self._serial)

    # -- ways in ------------------------------------------------------------------------------------------------

    def put(self, local: Path, remote: str) -> None:
        """Copy a file, or a directory's contents, to a place in the running VM; links and modes are kept."""
        parent = remote if local.is_dir() else str(Path(remote).parent)
        source = ["-C", str(local), "."] if local.is_dir() else ["-C", str(local.parent), local.name]
        rename = [] if local.is_dir() else [f"--transform=s|.*|{Path(remote).name}|"]
        packed = subprocess.run(["tar", "-c", *rename, *source], capture_output=True, check=True).stdout
        unpack = f"mkdir -p '{parent}' && tar -x -C '{parent}' --no-overwrite-dir --no-same-owner -f -"
        done = subprocess.run(
            [*access.ssh(), f"root@{self.address}", unpack], input=packed, capture_output=True, check=False
        )
        if done.returncode != 0:
            raise LabError(f"{self.name}: {local} to {remote}: {done.stderr.decode('utf-8', 'replace')}")

    def rxe(self) -> str:
        """Make eth1 an RDMA device (soft RoCE), until the next boot, and return the device's name."""
        self.run(
            "modprobe rdma_rxe && { [ -e /sys/class/infiniband/rxe0 ] || rdma link add rxe0 type rxe netdev eth1; }"
        )
        return "rxe0"

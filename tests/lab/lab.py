"""The lab as a whole: makes machines from cached parts, knows all that there are, and takes them away again."""

import os
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from tests.lab import (
    access,
    cache,
    disk,
    driver,
    host,
    image,
    inventory,
    network,
    node,
    packages,
    pytorch,
    qemu,
    repository,
    rpm,
    seed,
    uefi,
)
from tests.lab.host import LabError, run_root
from tests.lab.machine import Machine
from tests.lab.node import Node, Record
from tests.lab.repository import Repository
from tests.lab.vm import VM

DISTROS = ("debian13", "debian12")
VM_DISTROS = ("debian13",)  # what tests start; another one's disk is built when it is asked for


def available() -> str | None:
    """None where the lab can run, else one line that says why not."""
    return host.unavailable()


class Lab:
    """Everything that tests and the command line ask of the lab."""

    def prepare(self, distros: Sequence[str] = DISTROS) -> None:
        """Do all that takes long, once: packages of the host, root images, Docker data, the repository."""
        why = available()
        if why:
            raise LabError(why)
        host.ensure_packages()
        access.client_key()
        with ThreadPoolExecutor() as pool:
            parts: list[Future[Any]] = [pool.submit(repository.shared)]
            parts += [pool.submit(image.root_image, distro) for distro in distros]
        for part in parts:
            part.result()
        for distro in distros:
            self._seed(distro)
            self.driver_libraries(distro)

    def prepare_vms(self, distros: Sequence[str] = VM_DISTROS) -> None:
        """The same for virtual machines: QEMU and their disks."""
        why = available() or host.no_vms()
        if why:
            raise LabError(why)
        host.ensure_packages(disk.HOST_PACKAGES)
        for distro in distros:
            self._disk(distro)

    def kvm(self) -> bool:
        """Whether virtual machines run at the processor's own speed here."""
        return qemu.accelerator(self._disk(VM_DISTROS[0]) / "vmlinuz") == "kvm"

    def _disk(self, distro: str) -> Path:
        """The directory with the disk that virtual machines of a distribution start from."""
        root = image.root_image(distro)
        data = self._seed(distro)

        def build(into: Path) -> None:
            disk.fill(into, root, data, node.resolv_conf())

        return cache.cached(f"disk-{distro}", disk.recipe(root, data), build)

    def driver_libraries(self, distro: str) -> Path:
        """A directory with the driver's libraries of a distribution and their links; driver.version() names it."""
        root = image.root_image(distro)

        def build(into: Path) -> None:
            with self.machine(distro) as fresh:
                driver.fill(into / "lib", fresh)

        return cache.cached(f"driver-{distro}", driver.recipe(root), build) / "lib"

    def _seed(self, distro: str) -> Path:
        distro = "debian13" if distro in (image.DNF, image.DNF5) else distro  # newer ones read it, too
        root = image.root_image(distro)

        def build(into: Path) -> None:
            with self.machine(distro, seeded=False) as fresh:
                seed.fill(into, fresh)

        return cache.cached(f"docker-{distro}", seed.recipe(root), build)

    def create(
        self, name: str, distro: str = "debian13", owner: int = 0, seeded: bool = True, with_torch: bool = False
    ) -> Machine:
        """A machine with a pristine disk, not yet started."""
        root = image.root_image(distro)
        data = str(self._seed(distro)) if seeded else ""
        layers = f"{pytorch.layer(root)}:{root}" if with_torch else str(root)
        made = Machine(self._register(Record(name, distro, 0, layers, data, owner)))
        self._make(made)
        return made

    def create_vm(
        self, name: str, distro: str = "debian13", owner: int = 0, place: int = 1, peer: str = "", disks: str = ""
    ) -> VM:
        """A virtual machine with a pristine disk, not yet started; at this `place` of the wire that the peer is on."""
        disks = disks or str(self._disk(distro))
        made = VM(self._register(Record(name, distro, 0, disks, "", owner, "vm", place, peer)))
        self._make(made)
        return made

    def _register(self, record: Record) -> Record:
        """Write the node down with an index that no other has, on a host that is ready for it."""
        with self._lock():
            network.open_host()
            repository.serve_shared()
            taken = {other.record.index for other in self.machines()}
            index = next(free for free in range(1, network.LAST) if free not in taken)
            mine = replace(record, index=index)
            node.save(mine)
        return mine

    def _make(self, made: Node) -> None:
        try:
            made.create()
            self._refresh_known_hosts()
        except BaseException:
            self.destroy(made)
            raise

    @contextmanager
    def machine(
        self, distro: str = "debian13", name: str = "", seeded: bool = True, with_torch: bool = False
    ) -> Iterator[Machine]:
        """A pristine machine, up; it is gone when the block ends."""
        made = self.create(name or _fresh_name(), distro, os.getpid(), seeded, with_torch)
        try:
            made.start()
            yield made
        finally:
            self.destroy(made)

    @contextmanager
    def vm(self, distro: str = "debian13") -> Iterator[VM]:
        """A pristine virtual machine, up; it is gone when the block ends."""
        with self.vms(1, distro) as (made,):
            yield made

    @contextmanager
    def vms(self, count: int, distro: str = "debian13") -> Iterator[tuple[VM, ...]]:
        """Virtual machines, up, joined by the private wire (eth1); gone when the block ends.

        One such block at a time on this host: others wait, because without KVM each VM wants a core.
        """
        self.prepare_vms([distro])
        with cache.locked(run_root() / "vm.lock"):
            made = self._wired(distro, [_fresh_name() for _ in range(count)], os.getpid())
            try:
                self._start(made)
                yield tuple(made)
            finally:
                self._remove(made)

    @contextmanager
    def vm_of(self, machine: Machine, secure_boot: bool = False) -> Iterator[VM]:
        """A virtual machine, up, with what is on the disk of a machine, which is off; it is gone when the block ends.

        The machine has a kernel already; the disk gets all else that a virtual machine needs. With Secure Boot, the
        machine also has the packages of tests/lab/uefi.py.
        """
        lock = cache.locked(run_root() / "vm.lock")
        with lock, tempfile.TemporaryDirectory(prefix="disk-", dir=run_root()) as disks:
            disk.fill(Path(disks), machine.layers, self._seed(machine.distro), node.resolv_conf(), with_kernel=False)
            if secure_boot:
                host.ensure_packages(uefi.HOST_PACKAGES)
                uefi.fill(Path(disks) / "boot", machine.root)
            made = self.create_vm(_fresh_name(), machine.distro, os.getpid(), disks=disks)
            try:
                made.start()
                yield made
            finally:
                self.destroy(made)

    def _wired(self, distro: str, names: Sequence[str], owner: int) -> list[VM]:
        made: list[VM] = []
        try:
            for place, name in enumerate(names, 1):
                made.append(self.create_vm(name, distro, owner, place, names[0] if place > 1 else ""))
        except BaseException:
            self._remove(made)
            raise
        return made

    def _start(self, made: Sequence[Node]) -> None:
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(lambda each: each.start(), made))

    def up_vms(self, count: int = 1, distro: str = "debian13", prefix: str = "lab") -> list[VM]:
        """Virtual machines on one wire that outlive this process, until down()."""
        made = self._wired(distro, self._names(prefix, count), 0)
        self._start(made)
        return made

    def up(self, count: int = 1, distro: str = "debian13", prefix: str = "lab") -> list[Machine]:
        """Machines that outlive this process, until down()."""
        made = [self.create(name, distro) for name in self._names(prefix, count)]
        self._start(made)
        return made

    def _names(self, prefix: str, count: int) -> list[str]:
        taken = {other.name for other in self.machines()}
        free = (f"{prefix}{number}" for number in range(1, 100_000) if f"{prefix}{number}" not in taken)
        return list(islice(free, count))

    def down(self, prefix: str = "", everything: bool = False) -> list[str]:
        """Remove the machines of up() and those of dead test runs; with `everything`, those of live ones, too.

        Without a prefix only those of this checkout: the machines of others have names that their users know.
        """
        known = self.machines()
        chosen = [found for found in known if found.name.startswith(prefix)] if prefix else ours(known)
        return self._remove([found for found in chosen if everything or not _alive(found.record.owner)])

    def reap(self, owner: int | None = None) -> list[str]:
        """Remove the machines of one test run, else those of all test runs that have ended."""
        owned = [found for found in self.machines() if found.record.owner]
        return self._remove(
            [
                found
                for found in owned
                if found.record.owner == owner or (owner is None and not _alive(found.record.owner))
            ]
        )

    def _remove(self, chosen: Sequence[Node]) -> list[str]:
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(self.destroy, chosen))
        return [found.name for found in chosen]

    def destroy(self, gone: Node) -> None:
        """End a machine and remove all of it, and the lab's traces on the host after the last one."""
        gone.destroy()
        self._refresh_known_hosts()
        with self._lock():
            if not self.machines():
                repository.end_shared()
                network.close_host()

    def inventory(
        self, machines: Iterable[Node], repo: Repository | None = None, user: str = "gpu", **gpuready: object
    ) -> str:
        """An inventory of several machines as YAML; keywords are laid over the lab's `gpuready` settings."""
        settings = inventory.settings((repo or repository.shared()).settings(), gpuready)
        return inventory.text([(found.name, found.address) for found in machines], settings, user)

    @contextmanager
    def publish(
        self, signer: str = "lab", versions: Sequence[str] = packages.VERSIONS, with_rpms: bool = False
    ) -> Iterator[Repository]:
        """A repository of a test's own, served while the block lasts; it can be stopped and signed anew."""
        with self._lock():
            network.open_host()
        with tempfile.TemporaryDirectory(prefix="repository-", dir=run_root()) as scratch:
            published = repository.publish(Path(scratch), signer, versions)
            if with_rpms:
                rpm.publish(published.directory / f"stable/rpm/{rpm.architecture()}", signer, versions)
            published.start()
            try:
                yield published
            finally:
                published.stop()

    def machines(self) -> list[Node]:
        """All machines there are, virtual ones, too, running or not, ordered by address."""
        found: list[Node] = []
        for path in run_root().glob("machines/*/machine.json"):
            with suppress(FileNotFoundError):  # another process is just removing it
                record = node.load(path.parent.name)
                found.append(VM(record) if record.kind == "vm" else Machine(record))
        return sorted(found, key=lambda each: each.record.index)

    def _refresh_known_hosts(self) -> None:
        with self._lock():
            access.write_known_hosts({found.address: found.home / "host_key.pub" for found in self.machines()})

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with cache.locked(run_root() / "lock"):
            yield


def ours(machines: Sequence[Node]) -> list[Node]:
    """Those of the machines that this checkout made."""
    return [found for found in machines if found.checkout == node.CHECKOUT]


def _fresh_name() -> str:
    """A name that no other test run can have taken; it is a host name, too."""
    return f"t{os.getpid()}-{uuid.uuid4().hex[:6]}"


def _alive(pid: int) -> bool:
    return pid > 0 and Path(f"/proc/{pid}").exists()

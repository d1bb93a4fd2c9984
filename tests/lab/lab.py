"""The lab as a whole: makes machines from cached parts, knows all that there are, and takes them away again."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.lab import access, cache, driver, host, image, inventory, machine, network, packages, repository, seed
from tests.lab.host import LabError, run_root
from tests.lab.machine import Machine, Record
from tests.lab.repository import Repository

DISTROS = tuple(image.SUITES)


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

    def driver_libraries(self, distro: str) -> Path:
        """A directory with the driver's libraries of a distribution and their links; driver.version() names it."""
        root = image.root_image(distro)

        def build(into: Path) -> None:
            with self.machine(distro) as fresh:
                driver.fill(into / "lib", fresh)

        return cache.cached(f"driver-{distro}", driver.recipe(root), build) / "lib"

    def _seed(self, distro: str) -> Path:
        root = image.root_image(distro)

        def build(into: Path) -> None:
            with self.machine(distro, seeded=False) as fresh:
                seed.fill(into, fresh)

        return cache.cached(f"docker-{distro}", seed.recipe(root), build)

    def create(self, name: str, distro: str = "debian13", owner: int = 0, seeded: bool = True) -> Machine:
        """A machine with a pristine disk, not yet started."""
        root = image.root_image(distro)
        data = str(self._seed(distro)) if seeded else ""
        with self._lock():
            network.open_host()
            repository.serve_shared()
            taken = {other.record.index for other in self.machines()}
            index = next(free for free in range(1, network.LAST) if free not in taken)
            made = machine.save(Record(name, distro, index, str(root), data, owner))
        try:
            made.create()
            self._refresh_known_hosts()
        except BaseException:
            self.destroy(made)
            raise
        return made

    @contextmanager
    def machine(self, distro: str = "debian13", name: str = "", seeded: bool = True) -> Iterator[Machine]:
        """A pristine machine, up; it is gone when the block ends."""
        made = self.create(name or _fresh_name(), distro, os.getpid(), seeded)
        try:
            made.start()
            yield made
        finally:
            self.destroy(made)

    def up(self, count: int = 1, distro: str = "debian13", prefix: str = "lab") -> list[Machine]:
        """Machines that outlive this process, until down()."""
        taken = {other.name for other in self.machines()}
        numbers = (number for number in range(1, 100_000) if f"{prefix}{number}" not in taken)
        made = [self.create(f"{prefix}{next(numbers)}", distro) for _ in range(count)]
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(Machine.start, made))
        return made

    def down(self, prefix: str = "", everything: bool = False) -> list[str]:
        """Remove the machines of up() and those of dead test runs; with `everything`, those of live ones, too."""
        return self._remove(
            [
                found
                for found in self.machines()
                if found.name.startswith(prefix) and (everything or not _alive(found.record.owner))
            ]
        )

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

    def _remove(self, chosen: list[Machine]) -> list[str]:
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(self.destroy, chosen))
        return [found.name for found in chosen]

    def destroy(self, gone: Machine) -> None:
        """End a machine and remove all of it, and the lab's traces on the host after the last one."""
        gone.destroy()
        self._refresh_known_hosts()
        with self._lock():
            if not self.machines():
                repository.end_shared()
                network.close_host()

    def inventory(
        self, machines: Iterable[Machine], repo: Repository | None = None, user: str = "gpu", **gpuready: object
    ) -> str:
        """An inventory of several machines as YAML; keywords are laid over the lab's `gpuready` settings."""
        settings = inventory.settings((repo or repository.shared()).settings(), gpuready)
        return inventory.text([(found.name, found.address) for found in machines], settings, user)

    @contextmanager
    def publish(self, signer: str = "lab", versions: Sequence[str] = packages.VERSIONS) -> Iterator[Repository]:
        """A repository of a test's own, served while the block lasts; it can be stopped and signed anew."""
        with self._lock():
            network.open_host()
        with tempfile.TemporaryDirectory(prefix="repository-", dir=run_root()) as scratch:
            published = repository.publish(Path(scratch), signer, versions)
            published.start()
            try:
                yield published
            finally:
                published.stop()

    def machines(self) -> list[Machine]:
        """All machines there are, running or not, ordered by address."""
        found = []
        for path in run_root().glob("machines/*/machine.json"):
            with suppress(FileNotFoundError):  # another process is just removing it
                found.append(Machine.load(path.parent.name))
        return sorted(found, key=lambda each: each.record.index)

    def _refresh_known_hosts(self) -> None:
        with self._lock():
            access.write_known_hosts({found.address: found.home / "host_key.pub" for found in self.machines()})

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with cache.locked(run_root() / "lock"):
            yield


def _fresh_name() -> str:
    """A name that no other test run can have taken; it is a host name, too."""
    return f"t{os.getpid()}-{uuid.uuid4().hex[:6]}"


def _alive(pid: int) -> bool:
    return pid > 0 and Path(f"/proc/{pid}").exists()

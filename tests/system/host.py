"""A machine with the command line's runs for it alone: what most system tests work with."""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path
from typing import Any

from tests.lab import Machine, Repository
from tests.system.faults import problem
from tests.system.harness import Gpuready, Inventories, Result, Sessions, await_processes, listing, processes

#: Where :meth:`Host.put_libraries` puts the driver's; some clouds mount them there.
LIBRARIES = "/usr/local/nvidia/lib64"
#: Makes one: ``fresh("debian12")``.
Hosts = Callable[..., "Host"]


class Host(Machine):
    """A machine of the lab; ``spec`` is what each run asks for, over the lab's own settings."""

    def __init__(self, machine: Machine, gpuready: Gpuready, inventories: Inventories, **spec: object) -> None:
        super().__init__(machine.record)
        self.gpuready, self.inventories, self.spec = gpuready, inventories, spec
        self.options: tuple[str, ...] = ()
        self.repo: Repository | None = None  # the lab's own

    def with_spec(self, **spec: object) -> Host:
        """The same machine, of which each run asks for this, too."""
        found = copy.copy(self)
        found.spec = {**self.spec, **spec}
        return found

    def only(self, *components: str) -> Host:
        """The same machine, whose runs are about these components alone."""
        return self.given(*(word for name in components for word in ("--only", name)))

    def given(self, *options: str) -> Host:
        """The same machine, whose runs get these options, too."""
        found = copy.copy(self)
        found.options = (*self.options, *options)
        return found

    def where(self, repo: Repository | None = None, user: str = "gpu", **spec: object) -> Path:
        """An inventory of it."""
        return self.inventories(self, repo or self.repo, user, **{**self.spec, **spec})

    def call(
        self,
        verb: str,
        *words: str,
        code: int | None = 0,
        inventory: Path | None = None,
        repo: Repository | None = None,
        user: str = "gpu",
        env: Mapping[str, str] = {},
        check_json: bool = True,
        **spec: object,
    ) -> Result:
        """One run, unasked (``--yes``), that ends with this exit code (None: with any)."""
        where = inventory or self.where(repo, user, **spec)
        given = self._words(verb, words)
        return self.gpuready(*given, inventory=where, code=code, env=env, check_json=check_json)

    def _words(self, verb: str, words: tuple[str, ...]) -> list[str]:
        yes = ["--yes"] if verb in ("apply", "remove") and "--dry-run" not in words else []
        return [verb, *yes, *self.options, *words]

    def begin(self, verb: str, *words: str, inventory: Path | None = None, **spec: Any) -> subprocess.Popen[str]:
        """Begin a run, which ``gpuready.finish`` waits for."""
        return self.gpuready.start(*self._words(verb, words), inventory=inventory or self.where(**spec))

    plan = partialmethod(call, "plan")
    apply = partialmethod(call, "apply")
    verify = partialmethod(call, "verify")
    remove = partialmethod(call, "remove")

    def shown(self, verb: str, *words: str, **spec: Any) -> str:
        """What a run prints for people."""
        return self.call(verb, *words, check_json=False, **spec).stdout

    def settled(self, *words: str, **spec: Any) -> Result:
        """Another apply finds nothing to do, with one exec."""
        again = self.call("apply", *words, **spec)
        assert (again.host()["outcome"], again.host()["execs"]) == ("ok", 1), again.explain()
        return again

    def mends(self, *words: str, **spec: Any) -> Result:
        """One apply closes what is left, and the next finds nothing."""
        found = self.call("apply", *words, **spec)
        assert found.host()["outcome"] == "changed", found.explain()
        self.settled(*words, **spec)
        return found

    def fails(self, *says: str, **spec: Any) -> Result:
        """An apply that fails with one message, which has all of these words."""
        found = self.call("apply", code=1, **spec)
        message = problem(found)
        assert all(word in message for word in says), message
        return found

    def waits(self, component: str, *says: str, **spec: Any) -> str:
        """What a component's part of an apply waits for, which has all of these words; it is not done."""
        message = str(self.call("apply", code=7, **spec).component(component)["pending_reason"])
        assert all(word in message for word in says), message
        return message

    def put_libraries(self) -> None:
        """The libraries of a driver lie where no linker looks for them."""
        self.put(self.inventories.lab.driver_libraries(self.distro), LIBRARIES)

    def pids(self) -> list[str]:
        """The pids of the container ``work``, which runs, and of dockerd."""
        work = "docker inspect -f '{{.State.Running}} {{.State.Pid}}' work"
        running, *pids = self.run(f"{work}; systemctl show -p MainPID --value docker.service").stdout.split()
        assert running == "true"
        return pids

    @contextmanager
    def untouched(self, sessions: int | None = None) -> Iterator[None]:
        """Meanwhile nothing that lasts changes, no process stays, and sshd counts so many commands (None: any)."""
        count, before, running = Sessions(self), listing(self), processes(self)
        yield
        assert sessions in (None, count.count())
        await_processes(self, running)
        assert before ^ listing(self) == frozenset()

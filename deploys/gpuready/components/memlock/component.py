"""Locked memory: RDMA pins its buffers, and a limit of 8 MiB makes NCCL fall back to TCP without a word.

Three ways lead to a process, and each has a limit of its own: a login (pam_limits, where ``*`` does not mean root), a
service (systemd, where limits.d does not count), and a container, which inherits from containerd. A drop-in takes a
daemon-reload to be loaded, which can take the GPU away from containers in legacy mode (class *recreate*); the daemon
that runs is told by prlimit(2) meanwhile, so nothing has to be restarted. Where root itself may not raise a limit (in a
container without CAP_SYS_RESOURCE), all of this is left alone. daemon.json's default-ulimits is not used: dockerd takes
it over at a restart only, and where root may not raise the limit no container starts any more (26.1 was seen to).
Sources: pam_limits(8), limits.conf(5), systemd.exec(5), prlimit(1), capabilities(7), ibv_reg_mr(3),
nvidia-container-toolkit issue 2037.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuready.core import ignored_containers, ledger, resources
from gpuready.core.component import Applies, Change, Component, Disruption, NotComparable, Value
from gpuready.core.step import Script, Step, Steps
from gpuready.spec.model import NodeSpec
from gpuready.state.containers import gpu_containers
from gpuready.state.model import NodeState, Unit, Unknown

#: Read last of its directory, so that nobody's older line takes precedence.
LIMITS = "/etc/security/limits.d/zz-gpuready-memlock.conf"
#: Those whose children need it: containers inherit from containerd, jobs from slurmd.
SERVICES = ("containerd", "slurmd")
_MAY_NOT = "root may not raise limits on this node (CAP_SYS_RESOURCE is missing: is it a container?)"
_SYS_RESOURCE = 24  # its number, in linux/capability.h
_UNLIMITED = ("unlimited", "infinity", "-1")


def drop_in(service: str) -> str:
    """Our file for that service."""
    return f"/etc/systemd/system/{service}.service.d/zz-gpuready-memlock.conf"


FILES = (LIMITS, *(drop_in(service) for service in SERVICES))


def wanted(spec: NodeSpec, state: NodeState) -> str:
    """Why locked memory is to be unlimited here; empty where it is not."""
    if spec.memlock == "unlimited":
        return "memlock: unlimited"
    port = next((path for path in state.rdma if "/ports/" in path), "")
    return f"auto: {port.split('/')[4]} is an RDMA device" if spec.memlock == "auto" and port and _may(state) else ""


class Memlock(Component):
    """limits.d for logins, and for containerd and slurmd a drop-in, loaded, and in force in the process that runs."""

    name = "memlock"

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        why = wanted(spec, state)
        if why or spec.memlock == "unmanaged":
            return Applies(bool(why), why or "memlock: unmanaged")
        return Applies(False, f"auto: {'no RDMA port here' if _may(state) else _MAY_NOT}")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        if isinstance(state.units, Unknown):
            raise NotComparable(state.units.unknown)
        if not _may(state):
            raise NotComparable(f"{_MAY_NOT}; give it on the host of this node, or say memlock: unmanaged")
        want: dict[str, Value] = {"memlock.login.users": "unlimited", "memlock.login.root": "unlimited"}
        for service, unit in _services(state).items():
            want |= {f"memlock.{service}.drop-in": "unlimited", f"memlock.{service}.loaded": "unlimited"}
            if unit.main_pid:
                want[f"memlock.{service}.process"] = "unlimited"
        return want

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        found: dict[str, Value] = {
            "memlock.login.users": _login(state, "*"),
            "memlock.login.root": _login(state, "root"),
            **ledger.actual("memlock", state, FILES),
        }
        for service, unit in _services(state).items():
            loaded = _plain(unit.limit_memlock)
            ours = drop_in(service) in state.files
            found[f"memlock.{service}.drop-in"] = "unlimited" if ours or loaded == "unlimited" else None
            found[f"memlock.{service}.loaded"] = loaded
            found[f"memlock.{service}.process"] = _plain(unit.process_memlock)
        return found

    def original(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        return ledger.whole("memlock", state, FILES)

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.recreate if any(_reloads(c) for c in diff) else Disruption.none

    def groups(self, diff: tuple[Change, ...]) -> tuple[tuple[Change, ...], ...]:
        reloads = tuple(c for c in diff if _reloads(c))
        rest = tuple(c for c in diff if c not in reloads)
        return tuple(group for group in (rest, reloads) if group)

    def hits(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        return gpu_containers(state) if any(_reloads(c) for c in diff) else ()

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        if any(c.expected == "unlimited" for c in diff):
            return ("containers and logins that run keep the limit that they began with",)
        return ()

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        keys = [c.key for c in diff]
        puts, services = [], []
        if any(key.startswith("memlock.login.") for key in keys):
            puts.append(ledger.put(state, LIMITS, resources.document("memlock/memlock.limits")))
        for service in _services(state):
            if f"memlock.{service}.drop-in" in keys:
                puts.append(ledger.put(state, drop_in(service), resources.document("memlock/memlock.unit")))
            if f"memlock.{service}.process" in keys or f"memlock.files.{drop_in(service)}" in keys:
                services.append(f"{service}.service")
        back = ledger.to_restore(diff, state)
        reload = any(_reloads(c) for c in diff)
        script = SetLimits(tuple(puts), back, tuple(services), bool(back), reload, ignored_containers.words(spec))
        yield Step("memlock", script, summary="limits of locked memory")


@dataclass(frozen=True)
class SetLimits(Script):
    """Write our files or put those of before back, and set the limit of the services that run."""

    template = "memlock/converge"
    puts: tuple[ledger.Put, ...]
    files: tuple[ledger.Putback, ...]
    services: tuple[str, ...]
    back: bool
    reload: bool
    work: tuple[str, ...]


def _may(state: NodeState) -> bool:
    """May root raise a limit here? Where that was not read, the script finds out."""
    return not state.capabilities or bool(int(state.capabilities, 16) >> _SYS_RESOURCE & 1)


def _reloads(change: Change) -> bool:
    """Does closing it take a daemon-reload?"""
    return change.key.endswith(".loaded") or change.key.startswith("memlock.files./etc/systemd/")


def _services(state: NodeState) -> dict[str, Unit]:
    units = {} if isinstance(state.units, Unknown) else state.units
    found = {name: units.get(f"{name}.service") for name in SERVICES}
    return {name: unit for name, unit in found.items() if unit is not None and unit.load == "loaded"}


def _plain(value: str) -> Value:
    """The value that several programs spell differently; older systemds print RLIM_INFINITY as a number."""
    return "unlimited" if value in (*_UNLIMITED, str(2**64 - 1)) else value or None


def _login(state: NodeState, domain: str) -> Value:
    """What pam_limits gives that domain: limits.conf, then limits.d by name; the last line counts."""
    limits: dict[str, str] = {}
    for _, file in sorted(
        state.glob("/etc/security/limits").items(), key=lambda item: ("limits.d" in item[0], item[0])
    ):
        for line in file.text.splitlines():
            fields = line.split("#")[0].split()
            if len(fields) == 4 and fields[0] == domain and fields[2] == "memlock":
                limits |= dict.fromkeys(("soft", "hard") if fields[1] == "-" else fields[1:2], fields[3])
    values = {str(_plain(limits.get(kind, ""))) for kind in ("soft", "hard")}
    if values == {"unlimited"}:
        return "unlimited"
    return ", ".join(f"{kind} {value}" for kind, value in sorted(limits.items())) or None

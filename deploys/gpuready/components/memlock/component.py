"""Locked memory: RDMA pins its buffers, and with a limit of 8 MiB NCCL silently falls back to TCP.

A process gets its limit in one of three ways: from a login (pam_limits, where ``*`` does not include root), from its
service (systemd, which ignores limits.d), or, in a container, from containerd. A new drop-in needs a daemon-reload,
which can take GPUs away from containers in legacy mode (class *recreate*). Meanwhile, prlimit(2) raises the limit of
the running daemon, so nothing has to restart. If root may not raise limits (in a container without CAP_SYS_RESOURCE),
gpuready changes nothing. It does not use daemon.json's default-ulimits: dockerd applies that only at a restart, and
where root may not raise limits, no container would start any more (seen with 26.1).
Sources: pam_limits(8), limits.conf(5), systemd.exec(5), prlimit(1), capabilities(7), ibv_reg_mr(3),
nvidia-container-toolkit issue 2037.
"""

from gpuready.base import resources
from gpuready.base.step import Script, Step, Steps
from gpuready.contract import ignored_containers, ledger, need
from gpuready.contract.component import Applies, Change, Disruption, NotComparable, Value, Values
from gpuready.contract.removal import WholeFiles
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unit

#: Its name sorts last, so that it takes precedence over other files.
LIMITS = "/etc/security/limits.d/zz-gpuready-memlock.conf"
#: Services whose children need it: containers inherit from containerd, jobs from slurmd.
SERVICES = ("containerd", "slurmd")
_MAY_NOT = "root may not raise limits on this node (CAP_SYS_RESOURCE is missing: is it a container?)"
_SYS_RESOURCE = 24  # its number, in linux/capability.h
_UNLIMITED = ("unlimited", "infinity", "-1")


def drop_in(service: str) -> str:
    return f"/etc/systemd/system/{service}.service.d/zz-gpuready-memlock.conf"


FILES = (LIMITS, *(drop_in(service) for service in SERVICES))


def wanted(spec: NodeSpec, state: NodeState) -> str:
    """Return why locked memory should be unlimited on this node; empty if it should not."""
    if spec.memlock == "unlimited":
        return "memlock: unlimited"
    port = next((path for path in state.rdma if "/ports/" in path), "")
    return f"auto: {port.split('/')[4]} is an RDMA device" if spec.memlock == "auto" and port and _may(state) else ""


class Memlock(WholeFiles):
    """Unlimited locked memory for logins, containerd and slurmd, also in the running processes."""

    name = "memlock"
    needs_boot = True

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        why = wanted(spec, state)
        if why or spec.memlock == "unmanaged":
            return Applies(bool(why), why or "memlock: unmanaged")
        return Applies(False, f"auto: {'no RDMA port here' if _may(state) else _MAY_NOT}")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        need.value(state.units)
        if not _may(state):
            raise NotComparable(f"{_MAY_NOT}; give it on the host of this node, or say memlock: unmanaged")
        want: dict[str, Value] = {"memlock.login.users": "unlimited", "memlock.login.root": "unlimited"}
        for service, unit in _services(state).items():
            want |= {f"memlock.{service}.drop-in": "unlimited", f"memlock.{service}.loaded": "unlimited"}
            if unit.main_pid:
                want[f"memlock.{service}.process"] = "unlimited"
        return want

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
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

    def touched(self, state: NodeState) -> tuple[str, ...]:
        return FILES

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.recreate if any(_reloads(c) for c in diff) else Disruption.none

    def stage(self, change: Change) -> int:
        return int(_reloads(change))

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
            if f"memlock.{service}.process" in keys:
                services.append(f"{service}.service")
        reload = any(_reloads(c) for c in diff)
        script = SetLimits(tuple(puts), (), tuple(services), reload, ignored_containers.words(spec))
        yield Step("memlock", script, summary="limits of locked memory")

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        files, reload = ledger.to_restore(diff, state), any(_reloads(c) for c in diff)
        paths = [file.path for file in files]
        services = tuple(f"{service}.service" for service in _services(state) if drop_in(service) in paths)
        script = SetLimits((), files, services, reload, ignored_containers.words(spec))
        yield Step("memlock", script, summary="limits of locked memory")


class SetLimits(Script, template="memlock/converge"):
    """Write gpuready's files or restore the original ones, and set the limit of the running services."""

    puts: tuple[ledger.Put, ...]
    files: tuple[ledger.Putback, ...]
    services: tuple[str, ...]
    reload: bool
    work: tuple[str, ...]


def _may(state: NodeState) -> bool:
    """Tell whether root may raise limits. If the probe could not read that, the script finds out."""
    return not state.capabilities or bool(int(state.capabilities, 16) >> _SYS_RESOURCE & 1)


def _reloads(change: Change) -> bool:
    """Tell whether closing the change needs a daemon-reload."""
    return change.key.endswith(".loaded") or change.key.startswith("memlock.files./etc/systemd/")


def _services(state: NodeState) -> dict[str, Unit]:
    found = {name: state.unit(f"{name}.service") for name in SERVICES}
    return {name: unit for name, unit in found.items() if unit.load == "loaded"}


def _plain(value: str) -> Value:
    """Return a limit in one spelling. Older versions of systemd print RLIM_INFINITY as a number."""
    return "unlimited" if value in (*_UNLIMITED, str(2**64 - 1)) else value or None


def _login(state: NodeState, domain: str) -> Value:
    """Return pam_limits' limit for a domain: limits.conf, then limits.d by name; the last line counts."""
    limits: dict[str, str] = {}
    files = state.glob("/etc/security/limits")
    for path in sorted(files, key=lambda path: ("limits.d" in path, path)):
        for line in files[path].text.splitlines():
            fields = line.split("#")[0].split()
            if len(fields) == 4 and fields[0] == domain and fields[2] == "memlock":
                limits |= dict.fromkeys(("soft", "hard") if fields[1] == "-" else fields[1:2], fields[3])
    values = {str(_plain(limits.get(kind, ""))) for kind in ("soft", "hard")}
    if values == {"unlimited"}:
        return "unlimited"
    return ", ".join(f"{kind} {value}" for kind, value in sorted(limits.items())) or None

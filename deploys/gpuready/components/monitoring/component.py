"""RDMA counters for Prometheus: every counter of every device, also of those that a container has.

node_exporter knows the counters of a few drivers by name, and loses all when one device cannot be read. This is one
POSIX-sh script that reads whatever lies in sysfs. As *service* systemd listens and starts it for each scrape, so that
nothing runs in between and no Python is needed; as *textfile* a timer writes a file for node_exporter. New unit files
need no daemon-reload, which could take GPUs away from containers (class *recreate*); changed ones do.
Sources: Documentation/ABI/stable/sysfs-class-infiniband, systemd.socket(5), systemd.exec(5), node_exporter's README.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuready.components.monitoring.spec import address
from gpuready.core import ignored_containers, ledger, resources
from gpuready.core.component import Applies, Change, Component, Disruption, NotComparable, Value
from gpuready.core.step import Script, Step, Steps
from gpuready.spec.model import NodeSpec
from gpuready.state.containers import gpu_containers
from gpuready.state.model import NodeState, Unit, Unknown

NAME = "gpuready-rdma-exporter"
SCRIPT = f"/usr/local/lib/{NAME}"
SOCKET, TIMER, WRITER = f"{NAME}.socket", f"{NAME}.timer", f"{NAME}.service"
_UNITS = "/etc/systemd/system"
FILES = (SCRIPT, *(f"{_UNITS}/{unit}" for unit in (SOCKET, f"{NAME}@.service", TIMER, WRITER)))
#: What starts them after a boot. systemd's own word on it is of when it read the unit, as long as it keeps it.
LINKS = {SOCKET: f"{_UNITS}/sockets.target.wants/{SOCKET}", TIMER: f"{_UNITS}/timers.target.wants/{TIMER}"}
#: And what they start.
_STARTS = {SOCKET: f"{NAME}@*.service", TIMER: WRITER}
#: Seconds between two files, and after which a device is left out.
INTERVAL, LIMIT = 15, 5


class Monitoring(Component):
    """The RDMA exporter: its script and units, and that it listens, or writes."""

    name = "monitoring"

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        mode = spec.monitoring.rdma_exporter
        if mode != "off" or not _there(state):
            return Applies(mode != "off", f"rdma_exporter: {mode}")
        return Applies(True, "rdma_exporter: off, but it is still installed")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        if not state.systemd:
            raise NotComparable("no systemd runs on this node to start the exporter; say rdma_exporter: off")
        if isinstance(state.units, Unknown):
            raise NotComparable(state.units.unknown)
        return _expected(spec)

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        found: dict[str, Value] = {_key(path): _file(state, path, wanted(spec).get(path)) for path in FILES}
        for name in (SOCKET, TIMER):
            found[f"monitoring.{name}.enabled"] = LINKS[name] in state.files
            found[f"monitoring.{name}.active"] = _unit(state, name).active == "active"
        found["monitoring.listens"] = _listens(state)
        old = [name for name in (SOCKET, TIMER, WRITER) if _unit(state, name).need_daemon_reload]
        found["monitoring.units.loaded"] = not any(f"{_UNITS}/{name}" in wanted(spec) for name in old)
        return found

    def original(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        return _expected(NodeSpec()) if _there(state) else {}

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.recreate if _reloads(diff, state) else Disruption.none

    def hits(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        return gpu_containers(state) if _reloads(diff, state) else ()

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        want = {c.key: c.expected for c in diff}
        content = wanted(spec)
        puts = tuple(ledger.put(state, path, content[path]) for path in FILES if want.get(_key(path)) == "current")
        goes = [path for path in FILES if want.get(_key(path), "") is None]
        writer = f"{_UNITS}/{WRITER}"
        moves = writer in goes or any(put.path == writer for put in puts)
        start = tuple(unit for unit in (SOCKET, TIMER) if any(want.get(key) for key in _keys(unit)))
        stop = (unit for unit in (SOCKET, TIMER) if f"{_UNITS}/{unit}" in goes)
        script = SetExporter(
            puts=puts,
            files=tuple(ledger.Putback(path, state.sha256(path), False) for path in goes),
            services=start,
            stop=tuple(name for unit in stop for name in (unit, _STARTS[unit])),
            prove=WRITER if TIMER in start else "",
            directory=spec.monitoring.textfile_directory if TIMER in start else "",
            left=_textfile(state) if moves else "",
            reload=_reloads(diff, state),
            work=ignored_containers.words(spec),
        )
        summary = "install the RDMA exporter" if puts or start else "take the RDMA exporter away"
        yield Step("monitoring", script, summary=summary)


@dataclass(frozen=True)
class SetExporter(Script):
    """Write the exporter's files and start ``services``, or remove files and stop units; all or nothing."""

    template = "monitoring/converge"
    puts: tuple[ledger.Put, ...]
    files: tuple[ledger.Putback, ...]
    services: tuple[str, ...]
    stop: tuple[str, ...]
    prove: str
    directory: str
    left: str
    reload: bool
    work: tuple[str, ...]


def wanted(spec: NodeSpec) -> dict[str, str]:
    """The files of the exporter, path to content; none when it is off."""
    mode, directory = spec.monitoring.rdma_exporter, spec.monitoring.textfile_directory
    if mode == "off":
        return {}
    found = {SCRIPT: resources.script("monitoring/rdma-exporter", sysfs="/sys", limit=LIMIT)}
    if mode == "service":
        return found | {
            f"{_UNITS}/{SOCKET}": resources.document("monitoring/rdma-exporter.socket", listen=spec.monitoring.listen),
            f"{_UNITS}/{NAME}@.service": resources.document(
                "monitoring/rdma-exporter.service", script=SCRIPT, directory=""
            ),
        }
    return found | {
        f"{_UNITS}/{TIMER}": resources.document("monitoring/rdma-exporter.timer", interval=INTERVAL),
        f"{_UNITS}/{WRITER}": resources.document(
            "monitoring/rdma-exporter.service", script=SCRIPT, directory=directory
        ),
    }


def scrape(spec: NodeSpec) -> tuple[str, ...]:
    """The command that shows, on the node, what a monitoring system gets; empty when the exporter is off."""
    if spec.monitoring.rdma_exporter == "textfile":
        return ("cat", f"{spec.monitoring.textfile_directory}/rdma.prom")
    if spec.monitoring.rdma_exporter == "off":
        return ()
    host, port = address(spec.monitoring.listen)
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return ("bash", "-c", _GET, local, str(port))


#: bash opens the connection, because a node may have neither curl nor Python.
_GET = r"""exec 3<>"/dev/tcp/$0/$1" && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && cat <&3"""


def _expected(spec: NodeSpec) -> dict[str, Value]:
    files = wanted(spec)
    want: dict[str, Value] = {_key(path): "current" if path in files else None for path in FILES}
    for unit in (SOCKET, TIMER):
        on = f"{_UNITS}/{unit}" in files
        want |= {f"monitoring.{unit}.enabled": on, f"monitoring.{unit}.active": on}
    want["monitoring.listens"] = spec.monitoring.listen if spec.monitoring.rdma_exporter == "service" else None
    return want | {"monitoring.units.loaded": True}


def _key(path: str) -> str:
    return f"monitoring.files.{path}"


def _keys(unit: str) -> tuple[str, ...]:
    """The keys that a start of the unit closes."""
    own = (_key(f"{_UNITS}/{unit}"), f"monitoring.{unit}.enabled", f"monitoring.{unit}.active")
    return (*own, "monitoring.listens") if unit == SOCKET else own


def _there(state: NodeState) -> bool:
    return any(path in state.files for path in FILES)


def _file(state: NodeState, path: str, content: str | None) -> Value:
    if path not in state.files:
        return None
    if content is None:
        return "present"
    return "current" if state.files[path].text == content else "another"


def _unit(state: NodeState, name: str) -> Unit:
    none = Unit(load="not-found", active="inactive")
    return none if isinstance(state.units, Unknown) else state.units.get(name, none)


def _listens(state: NodeState) -> Value:
    """Where the socket that runs listens: systemd says ``127.0.0.1:9879 (Stream)``."""
    unit = _unit(state, SOCKET)
    return unit.listen.removesuffix(" (Stream)") if unit.active == "active" else None


def _textfile(state: NodeState) -> str:
    """What the timer's service has written."""
    file = state.files.get(f"{_UNITS}/{WRITER}")
    found = re.search(r"^ExecStart=.* textfile (\S+)$", file.text, re.M) if file else None
    return f"{found[1]}/rdma.prom" if found else ""


def _reloads(diff: tuple[Change, ...], state: NodeState) -> bool:
    """A unit that systemd has in memory, even without its file, gets another one; what it does not know, it reads."""
    changed = {c.key for c in diff if c.expected == "current"}
    return any(c.key == "monitoring.units.loaded" for c in diff) or any(
        _unit(state, name).load == "loaded" and _key(f"{_UNITS}/{name}") in changed for name in (SOCKET, TIMER, WRITER)
    )

"""RDMA counters for Prometheus: every counter of every device, including devices of containers.

node_exporter has the counters of a few drivers, and loses all of them if one device cannot be read. This exporter is
one POSIX sh script that reads all of sysfs. As *service*, systemd listens and starts the script for each scrape:
nothing runs in between, and the node needs no Python. As *textfile*, a timer writes a file for node_exporter. New unit
files need no daemon-reload, which could take GPUs away from containers (class *recreate*); changed ones do.
Sources: Documentation/ABI/stable/sysfs-class-infiniband, systemd.socket(5), systemd.exec(5), node_exporter's README.
"""

import re

from gpuready.base import resources
from gpuready.base.step import Script, Step, Steps
from gpuready.components.monitoring.spec import address
from gpuready.contract import ignored_containers, ledger, need
from gpuready.contract.component import Applies, Change, Component, Disruption, NotComparable, Value, Values
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

NAME = "gpuready-rdma-exporter"
SCRIPT = f"/usr/local/lib/{NAME}"
SOCKET, TIMER, WRITER = f"{NAME}.socket", f"{NAME}.timer", f"{NAME}.service"
_UNITS = "/etc/systemd/system"
FILES = (SCRIPT, *(f"{_UNITS}/{unit}" for unit in (SOCKET, f"{NAME}@.service", TIMER, WRITER)))
#: Links that start the units at boot. systemd itself reports the links as they were when it loaded the unit.
LINKS = {SOCKET: f"{_UNITS}/sockets.target.wants/{SOCKET}", TIMER: f"{_UNITS}/timers.target.wants/{TIMER}"}
#: Unit -> the service that it starts.
_STARTS = {SOCKET: f"{NAME}@*.service", TIMER: WRITER}
#: Seconds between two files, and the limit for reading one device.
INTERVAL, LIMIT = 15, 5


class Monitoring(Component):
    """The RDMA exporter for Prometheus: its script and units, installed and running."""

    name = "monitoring"

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        mode = spec.monitoring.rdma_exporter
        if mode != "off" or not _there(state):
            return Applies(mode != "off", f"rdma_exporter: {mode}")
        return Applies(True, "rdma_exporter: off, but it is still installed")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        if not state.systemd:
            raise NotComparable(
                "systemd does not run on this node, so it cannot start the exporter; set rdma_exporter: off"
            )
        need.value(state.units)
        return _expected(spec)

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        found: dict[str, Value] = {_key(path): _file(state, path, wanted(spec).get(path)) for path in FILES}
        for name in (SOCKET, TIMER):
            found[f"monitoring.{name}.enabled"] = LINKS[name] in state.files
            found[f"monitoring.{name}.active"] = state.unit(name).active == "active"
        found["monitoring.listens"] = listens(state)
        old = [name for name in (SOCKET, TIMER, WRITER) if state.unit(name).need_daemon_reload]
        found["monitoring.units.loaded"] = not any(f"{_UNITS}/{name}" in wanted(spec) for name in old)
        return found

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        return _expected(NodeSpec()) if _there(state) else {}

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.recreate if _reloads(diff, state) else Disruption.none

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        want = {c.key: c.expected for c in diff}
        content = wanted(spec)
        puts = tuple(ledger.put(state, path, content[path]) for path in FILES if want.get(_key(path)) == "current")
        goes = [path for path in FILES if want.get(_key(path), "") is None]
        writer = f"{_UNITS}/{WRITER}"
        moves = writer in goes or any(put.path == writer for put in puts)
        start = tuple(name for name in (SOCKET, TIMER) if any(want.get(key) for key in _keys(name)))
        stopped = [name for name in (SOCKET, TIMER) if f"{_UNITS}/{name}" in goes]
        script = SetExporter(
            puts=puts,
            files=tuple(ledger.Putback(path, state.sha256(path), False) for path in goes),
            services=start,
            stop=tuple(each for name in stopped for each in (name, _STARTS[name])),
            prove=WRITER if TIMER in start else "",
            directory=spec.monitoring.textfile_directory if TIMER in start else "",
            left=_textfile(state) if moves else "",
            reload=_reloads(diff, state),
            work=ignored_containers.words(spec),
        )
        summary = "install the RDMA exporter" if puts or start else "remove the RDMA exporter"
        yield Step("monitoring", script, summary=summary)


class SetExporter(Script, template="monitoring/converge"):
    """Write the exporter's files and start ``services``, or remove files and stop units; all or nothing."""

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
    """Return the exporter's files, path -> content; none if it is off."""
    mode, directory = spec.monitoring.rdma_exporter, spec.monitoring.textfile_directory
    if mode == "off":
        return {}
    found = {SCRIPT: resources.script("monitoring/rdma-exporter", sysfs="/sys", limit=LIMIT)}
    if mode == "service":
        socket = resources.document("monitoring/rdma-exporter.socket", listen=spec.monitoring.listen)
        service = resources.document("monitoring/rdma-exporter.service", script=SCRIPT, directory="")
        return found | {f"{_UNITS}/{SOCKET}": socket, f"{_UNITS}/{NAME}@.service": service}
    timer = resources.document("monitoring/rdma-exporter.timer", interval=INTERVAL)
    service = resources.document("monitoring/rdma-exporter.service", script=SCRIPT, directory=directory)
    return found | {f"{_UNITS}/{TIMER}": timer, f"{_UNITS}/{WRITER}": service}


def scrape(spec: NodeSpec) -> tuple[str, ...]:
    """Return the command that prints the metrics on the node; empty if the exporter is off."""
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
    for name in (SOCKET, TIMER):
        on = f"{_UNITS}/{name}" in files
        want |= {f"monitoring.{name}.enabled": on, f"monitoring.{name}.active": on}
    want["monitoring.listens"] = spec.monitoring.listen if spec.monitoring.rdma_exporter == "service" else None
    return want | {"monitoring.units.loaded": True}


def _key(path: str) -> str:
    return f"monitoring.files.{path}"


def _keys(name: str) -> tuple[str, ...]:
    """Return the keys that starting the unit closes."""
    own = (_key(f"{_UNITS}/{name}"), f"monitoring.{name}.enabled", f"monitoring.{name}.active")
    return (*own, "monitoring.listens") if name == SOCKET else own


def _there(state: NodeState) -> bool:
    return any(path in state.files for path in FILES)


def _file(state: NodeState, path: str, content: str | None) -> Value:
    if path not in state.files:
        return None
    if content is None:
        return "present"
    return "current" if state.files[path].text == content else "different"


def listens(state: NodeState) -> Value:
    """Return where the active socket listens. systemd reports ``127.0.0.1:9879 (Stream)``."""
    socket = state.unit(SOCKET)
    return socket.listen.removesuffix(" (Stream)") if socket.active == "active" else None


def _textfile(state: NodeState) -> str:
    """Return the path of the file that the timer's service writes."""
    file = state.files.get(f"{_UNITS}/{WRITER}")
    found = re.search(r"^ExecStart=.* textfile (\S+)$", file.text, re.M) if file else None
    return f"{found[1]}/rdma.prom" if found else ""


def _reloads(diff: tuple[Change, ...], state: NodeState) -> bool:
    """Tell whether systemd needs a daemon-reload: only for units that it has already loaded."""
    changed = {c.key for c in diff if c.expected == "current"}
    return any(c.key == "monitoring.units.loaded" for c in diff) or any(
        state.unit(name).load == "loaded" and _key(f"{_UNITS}/{name}") in changed for name in (SOCKET, TIMER, WRITER)
    )

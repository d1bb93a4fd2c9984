"""RDMA counters for node_exporter: every counter of every device, including devices of containers.

node_exporter has the counters of a few drivers, and loses all of them if one device cannot be read. This exporter is
one POSIX sh script that reads all of sysfs. A timer runs it and writes a file for node_exporter's textfile collector;
the node needs no Python. New unit files need no daemon-reload, which could take GPUs away from containers (class
*recreate*); changed ones do.
Sources: Documentation/ABI/stable/sysfs-class-infiniband, systemd.timer(5), systemd.exec(5), node_exporter's README.
"""

import re

from gpuready.base import resources
from gpuready.base.step import Script, Step, Steps
from gpuready.contract import ignored_containers, ledger, need
from gpuready.contract.component import Applies, Change, Component, Disruption, NotComparable, Value, Values
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

NAME = "gpuready-rdma-exporter"
SCRIPT = f"/usr/local/lib/{NAME}"
TIMER, WRITER = f"{NAME}.timer", f"{NAME}.service"
_UNITS = "/etc/systemd/system"
FILES = (SCRIPT, f"{_UNITS}/{TIMER}", f"{_UNITS}/{WRITER}")
#: The link that starts the timer at boot. systemd itself reports the link as it was when it loaded the unit.
LINK = f"{_UNITS}/timers.target.wants/{TIMER}"
#: Seconds between two files, and the limit for reading one device.
INTERVAL, LIMIT = 15, 5


class Monitoring(Component):
    """The RDMA exporter for node_exporter: its script and units, installed and running."""

    name = "monitoring"
    needs_boot = True

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
        content = files(spec)
        old = [name for name in (TIMER, WRITER) if state.unit(name).need_daemon_reload]
        return {_key(path): _file(state, path, content.get(path)) for path in FILES} | {
            f"monitoring.{TIMER}.enabled": LINK in state.files,
            f"monitoring.{TIMER}.active": state.unit(TIMER).active == "active",
            "monitoring.units.loaded": not (content and old),
        }

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        return _expected(NodeSpec()) if _there(state) else {}

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.recreate if _reloads(diff, state) else Disruption.none

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        if spec.monitoring.rdma_exporter == "off":
            yield from self.restore(diff, spec, state)
            return
        content, changed = files(spec), {c.key for c in diff}
        directory, textfile = spec.monitoring.textfile_directory, _textfile(state)
        script = InstallExporter(
            puts=tuple(ledger.put(state, path, content[path]) for path in FILES if _key(path) in changed),
            directory=directory,
            left="" if textfile == f"{directory}/{_PROM}" else textfile,
            reload=_reloads(diff, state),
            work=ignored_containers.words(spec),
        )
        yield Step("monitoring", script, timeout=180, summary="install the RDMA exporter")

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        keys = {c.key for c in diff}
        removed = tuple(ledger.Putback(path, state.sha256(path), False) for path in FILES if _key(path) in keys)
        yield Step("monitoring", RemoveExporter(removed, _textfile(state)), summary="remove the RDMA exporter")


class InstallExporter(Script, template="monitoring/install"):
    """Write the exporter's files, start its timer and run it once; all or nothing. ``left``: an earlier textfile."""

    puts: tuple[ledger.Put, ...]
    directory: str
    left: str
    reload: bool
    work: tuple[str, ...]


class RemoveExporter(Script, template="monitoring/remove"):
    """Stop the exporter and remove its files. ``left``: the textfile."""

    files: tuple[ledger.Putback, ...]
    left: str


def files(spec: NodeSpec) -> dict[str, str]:
    """Return the exporter's files, path -> content; none if it is off."""
    if spec.monitoring.rdma_exporter == "off":
        return {}
    directory = spec.monitoring.textfile_directory
    contents = (
        resources.script("monitoring/rdma-exporter", sysfs="/sys", limit=LIMIT),
        resources.document("monitoring/rdma-exporter.timer", interval=INTERVAL),
        resources.document("monitoring/rdma-exporter.service", script=SCRIPT, directory=directory),
    )
    return dict(zip(FILES, contents, strict=True))


def scrape(spec: NodeSpec) -> tuple[str, ...]:
    """Return the command that prints the metrics on the node; empty if the exporter is off."""
    if spec.monitoring.rdma_exporter == "off":
        return ()
    return ("cat", f"{spec.monitoring.textfile_directory}/{_PROM}")


_PROM = "rdma.prom"


def _expected(spec: NodeSpec) -> dict[str, Value]:
    on = spec.monitoring.rdma_exporter != "off"
    want: dict[str, Value] = {_key(path): "current" if on else None for path in FILES}
    return want | {
        f"monitoring.{TIMER}.enabled": on,
        f"monitoring.{TIMER}.active": on,
        "monitoring.units.loaded": True,
    }


def _key(path: str) -> str:
    return f"monitoring.files.{path}"


def _there(state: NodeState) -> bool:
    return any(path in state.files for path in FILES)


def _file(state: NodeState, path: str, content: str | None) -> Value:
    if path not in state.files:
        return None
    if content is None:
        return "present"
    return "current" if state.files[path].text == content else "different"


def _textfile(state: NodeState) -> str:
    """Return the path of the file that the timer's service writes."""
    file = state.files.get(f"{_UNITS}/{WRITER}")
    found = re.search(r"^ExecStart=.* textfile (\S+)$", file.text, re.M) if file else None
    return f"{found[1]}/{_PROM}" if found else ""


def _reloads(diff: tuple[Change, ...], state: NodeState) -> bool:
    """Tell whether systemd needs a daemon-reload: only for units that it has already loaded."""
    changed = {c.key for c in diff if c.expected == "current"}
    return any(c.key == "monitoring.units.loaded" for c in diff) or any(
        state.unit(name).load == "loaded" and _key(f"{_UNITS}/{name}") in changed for name in (TIMER, WRITER)
    )

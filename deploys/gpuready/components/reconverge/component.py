"""The run on the node itself: after a driver update and at every boot, without a controller.

Hooks of apt and dnf start a service if the driver's files changed since its last run; that costs a transaction a few
milliseconds. The service waits for the package manager to end, and checks what an update makes stale. ``report``
reports it. ``mend`` repairs it with the same scripts as the components (linker cache, device nodes and their links, CDI
spec). Nothing is installed, restarted or rebooted. The node needs no Python for this.
Sources: apt.conf(5) (DPkg::Post-Invoke), dnf-post-transaction-actions(8), libdnf5-actions(8), systemd.unit(5).
"""

from typing import Any

from gpuready.base import resources
from gpuready.base.documents import read_json
from gpuready.base.step import Script, Step, Steps
from gpuready.components.cdi import state as cdi
from gpuready.contract import ledger, owners
from gpuready.contract.component import Applies, Change, Component, NotComparable, Value, Values
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

NAME = "gpuready-reconverge"
SCRIPT = f"/usr/local/lib/{NAME}"
UNIT = f"{NAME}.service"
_SERVICE = f"/etc/systemd/system/{UNIT}"
LINK = f"/etc/systemd/system/multi-user.target.wants/{UNIT}"
_APT = f"/etc/apt/apt.conf.d/90{NAME}"
_DNF4 = "/etc/dnf/plugins/post-transaction-actions.d/gpuready.action"
_DNF5 = "/etc/dnf/libdnf5-plugins/actions.d/gpuready.actions"
FILES = (SCRIPT, _SERVICE, _APT, _DNF4, _DNF5)
#: Seconds after a boot in which the service may still start.
BOOT = 600
#: The file with its last result.
RESULT = "/var/lib/gpuready/reconverge.json"


class Reconverge(Component):
    """The service and hooks on the node that find or repair what a driver update left stale."""

    name = "reconverge"
    owned_as = "driver"
    needs_boot = True

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        mode = spec.reconverge.on_driver_change
        if mode == "off":
            still = ", but it is still installed" if _there(state) else ""
            return Applies(_there(state), f"on_driver_change: off{still}")
        if not state.systemd:
            return Applies(False, "no systemd runs here to start it")
        if not state.driver.loaded and not _there(state):
            return Applies(False, "no NVIDIA driver is loaded")
        return Applies(True, f"on_driver_change: {mode}")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        if spec.reconverge.on_driver_change == "off":
            return self.original(spec, state)
        if state.unit(UNIT).load == "masked":
            raise NotComparable(f"{UNIT} is masked: systemctl unmask {UNIT}, or say on_driver_change: off")
        want: dict[str, Value] = {_key(path): "current" for path in wanted(spec, state)}
        want["reconverge.enabled"] = True
        if state.driver.loaded and not begins(state):
            want["reconverge.last"] = "since"
        return want

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        want = wanted(spec, state)
        found: dict[str, Value] = {_key(path): _file(state, path, want.get(path)) for path in FILES}
        last = missed(state)
        return {
            **found,
            "reconverge.enabled": True if LINK in state.files else None,
            "reconverge.last": f"not since {last}" if last else "since",
        }

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        if not _there(state):
            return {}
        return {**{_key(path): None for path in FILES}, "reconverge.enabled": None}

    def remarks(self, spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        return self.remark_if_unused(spec, state) if spec.reconverge.on_driver_change == "mend" else ()

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        if spec.reconverge.on_driver_change == "off":
            yield from self.restore(diff, spec, state)
            return
        keys = {c.key for c in diff}
        puts = tuple(ledger.put(state, path, text) for path, text in wanted(spec, state).items() if _key(path) in keys)
        script = InstallRun(puts, (), run=True, left=_textfile(spec))
        # A step runs in a unit of its own name, which must differ from that of the service.
        yield Step("reconverge-install", script, timeout=360, summary="install the run on the node itself")

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        keys = {c.key for c in diff}
        files = tuple(ledger.Putback(path, state.sha256(path), False) for path in FILES if _key(path) in keys)
        script = InstallRun((), files, run=False, left=_textfile(spec))
        yield Step("reconverge-install", script, timeout=360, summary="take the run on the node itself away")


class InstallRun(Script, template="reconverge/install"):
    """Write the service and its hooks, enable it and run it once; without ``run``, remove all of it."""

    puts: tuple[ledger.Put, ...]
    files: tuple[ledger.Putback, ...]
    run: bool
    left: str
    unit: str = UNIT
    script: str = SCRIPT


def last_run(state: NodeState) -> dict[str, Any] | None:
    """Return the last result; None if there is none, or if it cannot be parsed."""
    file = state.files.get(RESULT)
    try:
        said = read_json(file.text) if file else None
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def missed(state: NodeState) -> str:
    """Return since when a run is missing; empty if none is."""
    said = last_run(state)
    if said is None:
        return "it was installed"
    if said.get("boot_id") != state.boot_id:
        return "the boot"
    idle = said.get("outcome") == "idle"  # the module was loaded only after the boot: no driver change
    return "" if idle or said.get("driver") == state.driver.loaded else "the driver changed"


def begins(state: NodeState) -> bool:
    """Tell whether the service is running, or still to start at this boot."""
    booting = missed(state) == "the boot" and state.uptime < BOOT
    return LINK in state.files and (booting or state.unit(UNIT).active == "activating")


def wanted(spec: NodeSpec, state: NodeState) -> dict[str, str]:
    """Return its files, path -> content, with hooks for the node's package managers."""
    ours = not owners.observed("toolkit", spec, state, "cdi")
    writer = cdi.writer(spec.toolkit.version, state.unit(cdi.UNIT), state.systemd)
    script = resources.script(
        "reconverge/reconverge",
        mode=spec.reconverge.on_driver_change,
        directory=spec.monitoring.textfile_directory,
        target=cdi.target(writer, state.text(cdi.ENVIRONMENT)) if ours else "",
        unit=writer if ours else "",
        settings=cdi.ENVIRONMENT,
        make=True,
        shadows=(),
    )
    return {
        SCRIPT: script,
        _SERVICE: resources.document("reconverge/reconverge.service", script=SCRIPT),
        **_hooks(state),
    }


def _hooks(state: NodeState) -> dict[str, str]:
    """Return the hooks of the node's package managers. dnf needs a plugin, which brings the directory."""
    hooks = {
        "apt-get": (_APT, resources.document("reconverge/reconverge.apt", script=SCRIPT)),
        "dnf4-actions": (_DNF4, resources.document("reconverge/reconverge.dnf4", script=SCRIPT)),
        "dnf5-actions": (_DNF5, resources.document("reconverge/reconverge.dnf5", script=SCRIPT)),
    }
    return dict(hook for have, hook in hooks.items() if have in state.have)


def _textfile(spec: NodeSpec) -> str:
    return f"{spec.monitoring.textfile_directory}/gpuready.prom"


def _key(path: str) -> str:
    return f"reconverge.files.{path}"


def _there(state: NodeState) -> bool:
    return any(path in state.files for path in (*FILES, LINK))


def _file(state: NodeState, path: str, content: str | None) -> Value:
    if path not in state.files:
        return None
    return "current" if state.files[path].text == content else "different"

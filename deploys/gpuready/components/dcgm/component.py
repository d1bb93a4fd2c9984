"""NVIDIA's Data Center GPU Manager (DCGM), on request: its packages and its service nvidia-dcgm.

The packages come from NVIDIA's CUDA repository, which the node must have. The diagnostic's plugins are built
for one CUDA major. The driver and the oldest GPU decide which one: a driver of CUDA 13 runs a V100, but CUDA 13 has no
code for it. A package's script may run ``systemctl daemon-reload``, so an installation is class *recreate*. ``remove``
purges what gpuready installed, and stops or disables the service if it was so before.
Sources: NVIDIA's DCGM documentation, "Install DCGM"; config-files/systemd/nvidia-dcgm.service.in in NVIDIA/DCGM;
components/install_dcgm.sh in Azure/azhpc-images, which installs the plugins of CUDA 12 for a V100.
"""

from gpuready.base.facts import KEPT
from gpuready.base.step import Script, Step, Steps
from gpuready.base.versions import numbers
from gpuready.contract import ignored_containers, need
from gpuready.contract.component import Applies, Change, Component, Disruption, NotComparable, Value, Values
from gpuready.contract.package_manager import manager, refuse_to_install
from gpuready.cuda import tables
from gpuready.gpu.compat_host import gpus_of
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown

SERVICE = "nvidia-dcgm.service"
#: What was there before: ``dcgm.enabled`` and ``dcgm.active``, if the service was; and the packages that came.
RECORD = f"{KEPT}/dcgm.installed"
_PREFIX, _PLUGINS = "datacenter-gpu-manager", "datacenter-gpu-manager-4-cuda"
_ENABLED, _ACTIVE, _INSTALLED = "dcgm.enabled", "dcgm.active", "installed"
_NO_SOURCE = (
    "add NVIDIA's CUDA repository to the node (for apt, its package cuda-keyring does that), or leave out dcgm.install"
)


class Dcgm(Component):
    """NVIDIA's Data Center GPU Manager (DCGM), installed on request, with its service."""

    name = "dcgm"
    needs_boot = True

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if not spec.dcgm.install:
            return Applies(False, "dcgm.install: false")
        if not state.driver.loaded:
            return Applies(False, "no NVIDIA driver is loaded")
        return Applies(True, "the spec asks for DCGM")

    def installs(self, spec: NodeSpec) -> str:
        return "DCGM" if spec.dcgm.install else ""

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        if not state.systemd:
            raise NotComparable("systemd does not run on this node, so it cannot start nvidia-dcgm: leave out "
                                "dcgm.install")  # fmt: skip
        refuse_to_install(state, "dcgm.install")
        for part in (state.packages, state.units, state.driver.smi):
            need.value(part)
        if not _plugins(state):
            raise NotComparable(f"driver {state.driver.loaded} is too old for DCGM 4: leave out dcgm.install")
        return {f"dcgm.{_plugins(state)}": _INSTALLED, _ENABLED: True, _ACTIVE: True}

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        service = state.unit(SERVICE)
        found: dict[str, Value] = {_ENABLED: service.enabled == "enabled", _ACTIVE: service.active == "active"}
        if isinstance(state.units, Unknown):
            found = dict.fromkeys(found, state.units)
        if isinstance(state.packages, Unknown):
            return found | {f"dcgm.{name}": state.packages for name in _came(state)}
        dcgm = {name: package for name, package in state.packages.items() if name.startswith(_PREFIX)}
        return found | {
            f"dcgm.{name}": _INSTALLED if package.configured else "not configured" for name, package in dcgm.items()
        }

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        if RECORD not in state.files:
            return {}
        stops = {key: False for key in (_ENABLED, _ACTIVE) if key not in _before(state)}
        return {f"dcgm.{name}": None for name in _came(state)} | stops

    def remarks(self, spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        return self.remark_if_unused(spec, state) if spec.dcgm.install else ()

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.recreate if _packages(diff) else Disruption.none

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        packages = _packages(diff)
        summary = f"install {packages[0]}" if packages else "start nvidia-dcgm"
        fixes = (("apt has no", _NO_SOURCE), ("dnf has no", _NO_SOURCE))
        install = DcgmInstall("".join(packages), ignored_containers.words(spec), manager(state).dnf)
        yield Step("dcgm", install, timeout=1800, summary=summary, fixes=fixes)

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        before = _before(state)
        remove = DcgmRemove(_ENABLED in before, _ACTIVE in before, ignored_containers.words(spec), manager(state).dnf)
        yield Step("dcgm", remove, timeout=1800, summary="purge DCGM" if _packages(diff) else "stop nvidia-dcgm")


class DcgmInstall(Script, template="dcgm/install"):
    """Install ``package`` with its dependencies, unless it is empty; enable and start the service."""

    package: str
    work: tuple[str, ...]
    dnf: int = 0


class DcgmRemove(Script, template="dcgm/remove"):
    """Purge the packages that came with gpuready, and leave the service as it was."""

    enabled: bool
    active: bool
    work: tuple[str, ...]
    dnf: int = 0


def _packages(diff: tuple[Change, ...]) -> tuple[str, ...]:
    return tuple(c.key.removeprefix("dcgm.") for c in diff if c.key not in (_ENABLED, _ACTIVE))


def _before(state: NodeState) -> list[str]:
    """Return the words of the record: keys of the service that were true, and names of packages."""
    return state.text(RECORD).split()


def _came(state: NodeState) -> tuple[str, ...]:
    return tuple(name for name in _before(state) if name.startswith(_PREFIX))


def _plugins(state: NodeState) -> str:
    """Return the package with the diagnostic's plugins for this driver and these GPUs; empty for an old driver."""
    try:
        major = tables.newest_cuda(numbers(state.driver.loaded))[0]
    except (KeyError, ValueError):
        return ""
    return f"{_PLUGINS}{min(major, *(gpu.newest_toolkit for gpu in gpus_of(state)))}"

"""Checks of the node itself: packages are configured, the first boot is over, no reboot or drain is left pending.

Sources: dpkg(1) (a package that is unpacked and not configured), cloud-init's status.json and result.json.
"""

from gpuready.base.words import count
from gpuready.contract import need
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, warn
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

DRAINED = "/var/lib/gpuready/drained"
_STATUS = "/run/cloud-init/status.json"


def _packages(spec: NodeSpec, state: NodeState) -> Verdict:
    broken = sorted(name for name, package in need.value(state.packages).items() if not package.configured)
    if broken:
        return fail(f"not configured: {', '.join(broken[:6])}", evidence=f"{count(len(broken), 'package')}")
    return passed("the packages of driver, toolkit and container engines are configured")


def _first_boot(spec: NodeSpec, state: NodeState) -> Verdict:
    if state.cloud_init == "running" and _STATUS in state.files:
        return warn("cloud-init is still running: it may install, restart or reboot", "cloud-init status --wait")
    if state.cloud_init == "done":
        return passed("cloud-init has finished")
    return skip("cloud-init does not run in this boot")


def _reboot(spec: NodeSpec, state: NodeState) -> Verdict:
    if state.reboot_required:
        return warn("a reboot is required (/run/reboot-required)", "drain the node and reboot it")
    return passed("no reboot is required")


def _drained(spec: NodeSpec, state: NodeState) -> Verdict:
    marker = state.files.get(DRAINED)
    if marker is None:
        return passed("gpuready has not drained this node")
    return fail(f"gpuready drained this node and has not brought it back yet ({marker.text.strip()})")


CHECKS = (
    Check(
        "node.packages",
        "no package is half installed",
        Level.config,
        "A package update of the driver, the toolkit or a container engine was interrupted: packages are unpacked but "
        "not configured. The files are new, but nothing was built, registered or restarted.",
        "dpkg --audit",
        "dpkg --configure -a, then apt-get -f install",
        _packages,
    ),
    Check(
        "node.firstboot",
        "cloud-init has finished",
        Level.config,
        "cloud-init is still running and may change the node after the check.",
        "cloud-init status --long",
        "cloud-init status --wait, then run gpuready verify again",
        _first_boot,
    ),
    Check(
        "node.reboot",
        "no update waits for a reboot",
        Level.config,
        "A kernel or library update is installed but not yet in use. A new kernel may have no NVIDIA module.",
        "cat /run/reboot-required.pkgs; dkms status",
        "drain the node and reboot it",
        _reboot,
    ),
    Check(
        "node.drained",
        "the node is back from gpuready's drain",
        Level.config,
        "gpuready drained the node for maintenance, and then was interrupted or could not bring it back into service.",
        f"cat {DRAINED}",
        "bring the node back into service (scontrol update State=RESUME, kubectl uncordon or "
        f"maintenance.drain.after); rm {DRAINED}",
        _drained,
    ),
)

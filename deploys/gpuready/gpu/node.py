"""The node itself, before anything of NVIDIA's: packages whole, first boot over, no reboot asked for, work let back.

Sources: dpkg(1) (a package that is unpacked and not configured), cloud-init's status.json and result.json.
"""

from __future__ import annotations

from gpuready.core.check import Check, Level, Verdict, fail, passed, skip, unread, warn
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Unknown

DRAINED = "/var/lib/gpuready/drained"
_STATUS = "/run/cloud-init/status.json"


def _packages(spec: NodeSpec, state: NodeState) -> Verdict:
    if isinstance(state.packages, Unknown):
        return unread(state.packages)
    broken = sorted(name for name, package in state.packages.items() if not package.configured)
    if broken:
        return fail(f"not configured: {', '.join(broken[:6])}", evidence=f"{len(broken)} packages")
    return passed("the packages of driver, toolkit and engines are whole")


def _first_boot(spec: NodeSpec, state: NodeState) -> Verdict:
    if state.cloud_init == "running" and _STATUS in state.files:
        return warn("cloud-init has not ended: it may still install, restart or reboot", "cloud-init status --wait")
    return passed("cloud-init has ended") if state.cloud_init == "done" else skip("no cloud-init in this boot")


def _reboot(spec: NodeSpec, state: NodeState) -> Verdict:
    if state.reboot_required:
        return warn("the node asks for a reboot (/run/reboot-required)", "reboot it when it is drained")
    return passed("no reboot is asked for")


def _drained(spec: NodeSpec, state: NodeState) -> Verdict:
    how = state.files.get(DRAINED)
    return passed("gpuready keeps no work away") if how is None else fail(f"gpuready drained it ({how.text.strip()})")


CHECKS = (
    Check(
        "node.packages",
        Level.config,
        "An update of the driver, the toolkit or an engine was cut off: packages are unpacked and not configured, so "
        "files are of the new version and nothing was built, registered or restarted.",
        "dpkg --audit",
        "dpkg --configure -a, then apt-get -f install",
        _packages,
    ),
    Check(
        "node.firstboot",
        Level.config,
        "cloud-init still runs: what is seen now is not what it will be.",
        "cloud-init status --long",
        "cloud-init status --wait, then verify again",
        _first_boot,
    ),
    Check(
        "node.reboot",
        Level.config,
        "A kernel or library update is installed and not in use yet; a new kernel may have no NVIDIA module.",
        "cat /run/reboot-required.pkgs; dkms status",
        "drain the node and reboot it",
        _reboot,
    ),
    Check(
        "node.drained",
        Level.config,
        "gpuready moved the work away for a maintenance, and was cut off, or the way back failed.",
        f"cat {DRAINED}",
        f"let the work back (scontrol update State=RESUME, or maintenance.drain.after), and rm {DRAINED}",
        _drained,
    ),
)

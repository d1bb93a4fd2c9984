"""Checks for leftovers of a driver update on a running node.

Sources: the driver's README (GSP firmware, device nodes), NVIDIA's documentation of Fabric Manager and IMEX (both of
the driver's full version), nvidia-container-toolkit issue 48 (/dev/char), nvidia-persistenced(1), proc(5).
"""

import re

from gpuready.base.words import count
from gpuready.components.devices.state import PERSISTENCED, persistence
from gpuready.contract import need
from gpuready.contract.check import Verdict, fail, passed, skip, unknown, warn
from gpuready.gpu.gpus import check, companions, of_version
from gpuready.model.leftovers import Holder
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Docker, NodeState, Unknown

_COMPANION = re.compile(r"(nvidia-imex|libnvidia-nscq|libnvsdm)(-[0-9]+)?(:\w+)?")


def _processes(spec: NodeSpec, state: NodeState) -> Verdict:
    need.driver(state)
    held = state.leftovers
    if held.unread:
        return unknown(held.unread, "the maps of a process in state D cannot be read: look at dmesg")
    if not held.holders:
        return passed("no process uses the libraries of a replaced driver")
    evidence = "; ".join(f"{who}: {what}" for who, what in _grouped(held.holders, _names(state)).items())
    found = ("at least " if len(held.holders) == 64 else "") + count(len(held.holders), "process uses", "processes use")
    return warn(f"{found} the libraries of the previous driver", _RESTART, evidence[:2000])


_RESTART = "restart these programs and containers when they may stop; in Kubernetes, delete the pods"


def _names(state: NodeState) -> dict[str, str]:
    """Map the first 12 digits of each Docker container's id to its name and image."""
    found = {} if state.docker is None or isinstance(state.docker, Unknown) else state.docker.containers
    return {c.id[:12]: f"container {c.name} ({c.image})" for c in found}


def _grouped(holders: tuple[Holder, ...], names: dict[str, str]) -> dict[str, str]:
    """Map each process to its library. A container counts once, however many processes run in it."""
    return {
        names.get(h.container, f"container {h.container}") if h.container else f"{h.name} (pid {h.pid})": h.library
        for h in holders
    }


def _links(spec: NodeSpec, state: NodeState) -> Verdict:
    need.driver(state)
    missing = state.leftovers.unlinked
    cgroups = state.docker.cgroup_driver if isinstance(state.docker, Docker) else ""
    if cgroups != "systemd" and state.containerd is None:
        return skip("no container engine on this node lets systemd manage devices")
    if missing:
        return warn(
            f"{count(len(missing), 'device node has', 'device nodes have')} no link in /dev/char",
            evidence=", ".join(missing[:8]),
        )
    return passed("each device node of the driver has its link in /dev/char")


def _firmware(spec: NodeSpec, state: NodeState) -> Verdict:
    driver = need.driver(state)
    cells = re.findall(r"<gsp_firmware_version>([^<]*)<", need.value(state.driver.smi) or "")
    runs = {cell.strip() for cell in cells if re.fullmatch(r"[0-9.]+", cell.strip())}
    if not runs:
        return skip("no GPU runs GSP firmware")
    if runs != {driver}:
        return fail(f"the driver is {driver}, but its GPUs run GSP firmware {', '.join(sorted(runs - {driver}))}")
    disk, files = state.driver.on_disk_version, state.leftovers.firmware
    if disk and files and disk not in files:
        return warn(
            f"the next boot loads driver {disk}, but /lib/firmware has no firmware for it",
            f"install the firmware package of driver {disk}",
            f"firmware in /lib/firmware: {', '.join(files)}",
        )
    return passed(f"driver and GSP firmware are {driver}")


def _persistenced(spec: NodeSpec, state: NodeState) -> Verdict:
    need.driver(state)
    need.value(state.units)
    unit, held = state.unit(PERSISTENCED), state.leftovers
    now, enabled = persistence(unit, held.persistenced_old, held.persistenced_no_socket), unit.enabled
    if enabled not in ("enabled", "static"):
        return skip(f"{PERSISTENCED} is {'not installed' if now == 'not installed' else enabled or 'not enabled'}")
    return passed(f"{PERSISTENCED} is {now}") if now == "active" else warn(f"{PERSISTENCED} is {now}")


def _companions(spec: NodeSpec, state: NodeState) -> Verdict:
    driver = need.driver(state)
    found = companions(state, _COMPANION)
    if not found:
        return skip("neither IMEX nor NSCQ is installed as a package")
    wrong = [f"{name} {version}" for name, version in sorted(found.items()) if not of_version(version, driver)]
    if wrong:
        return fail(f"the driver is {driver}, but these packages differ: {', '.join(wrong)}")
    return passed(f"of the driver's version: {', '.join(sorted(found))}")


def _peers(spec: NodeSpec, state: NodeState) -> Verdict:
    need.driver(state)
    missing = state.leftovers.peers
    if missing:
        return warn(f"installed, but not loaded: {', '.join(missing)}")
    return passed("modules of GDRCopy and GPUDirect Storage: loaded, or not installed")


CHECKS = (
    check(
        "driver.firmware",
        "the GPU's firmware fits the driver",
        "GPUs since Turing run a firmware that the driver reads from /lib/firmware/nvidia/VERSION. Without the files "
        "of its own version, the GPU does not come up, or still runs the firmware that was loaded before.",
        "nvidia-smi -q | grep 'GSP Firmware'; ls /lib/firmware/nvidia; cat /proc/driver/nvidia/version",
        "install the firmware package of the driver's version, then reload the modules or reboot",
        _firmware,
    ),
    check(
        "driver.charlinks",
        "links in /dev/char exist, so containers keep their GPUs after a daemon-reload",
        "systemd finds a device by its link in /dev/char. Without the link, containers in legacy mode with the systemd "
        "cgroup driver lose their GPU at the next daemon-reload: 'Failed to initialize NVML: Unknown Error'.",
        "ls -l /dev/nvidia* /dev/char",
        "set reconverge: {on_driver_change: mend} to create the links at every boot; by hand: nvidia-ctk system "
        "create-dev-char-symlinks",
        _links,
        after=("driver.loaded",),
    ),
    check(
        "driver.persistenced",
        "nvidia-persistenced runs, with the driver's version",
        "nvidia-persistenced stopped, because its library and the module had different versions; or the process from "
        "before the update still runs; or its socket was removed: then containers by a CDI spec that names it fail.",
        "systemctl status nvidia-persistenced; ls -l /proc/$(pidof nvidia-persistenced)/exe /run/nvidia-persistenced",
        "gpuready apply restarts nvidia-persistenced; by hand: systemctl restart nvidia-persistenced",
        _persistenced,
        after=("driver.loaded", "driver.match"),
    ),
    check(
        "driver.companions",
        "IMEX and NSCQ have the driver's version",
        "IMEX (NVL72) and the NVSwitch library NSCQ must have exactly the driver's version. Otherwise GPUs cannot "
        "share memory across nodes, or DCGM sees no NVSwitch.",
        "dpkg -l 'nvidia-imex*' 'libnvidia-nscq*'; cat /proc/driver/nvidia/version",
        "install these packages at the driver's full version, then restart nvidia-imex and nvidia-dcgm",
        _companions,
        after=("driver.loaded",),
    ),
    check(
        "driver.peers",
        "GDRCopy and GPUDirect Storage are loaded",
        "GDRCopy and GPUDirect Storage each have a kernel module that is built for one driver version. It is "
        "installed, but not loaded, often because it was not rebuilt after a driver update.",
        "ls -d /usr/src/gdrdrv-* /usr/src/nvidia-fs-*; dkms status; lsmod | grep -E 'gdrdrv|nvidia_fs'",
        "dkms autoinstall, then modprobe gdrdrv or modprobe nvidia-fs; dmesg shows why the kernel refuses a module",
        _peers,
        after=("driver.loaded",),
    ),
    check(
        "driver.processes",
        "no program uses the libraries of an old driver",
        "Programs and containers that started before the update (also DCGM's nv-hostengine) still use the deleted "
        "libraries. They fail once the module changes: 'Driver/library version mismatch', error 803.",
        "grep -l 'lib\\(cuda\\|nvidia-ml\\).*(deleted)' /proc/[0-9]*/maps; grep '//deleted' /proc/PID/mountinfo",
        "restart the programs and containers that the check lists; gpuready does not restart them",
        _processes,
        after=("driver.loaded",),
    ),
)

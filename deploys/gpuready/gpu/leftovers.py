"""What an update of the driver leaves behind: each thing that goes stale, by name, and what is done about it.

Sources: the driver's README (GSP firmware, device nodes), NVIDIA's documentation of Fabric Manager and IMEX (both of
the driver's full version), nvidia-container-toolkit issue 48 (/dev/char), nvidia-persistenced(1), proc(5).
"""

from __future__ import annotations

import re

from gpuready.core.check import Check, Level, Verdict, fail, passed, skip, unknown, unread, warn
from gpuready.gpu.facts.leftovers import Holder
from gpuready.spec.model import NodeSpec
from gpuready.state.model import Docker, NodeState, Unknown
from gpuready.state.persistenced import PERSISTENCED, persistence

_NO_MODULE = "no nvidia module is loaded"
_COMPANION = re.compile(r"(nvidia-imex|libnvidia-nscq|libnvsdm)(-[0-9]+)?(:\w+)?")


def _processes(spec: NodeSpec, state: NodeState) -> Verdict:
    if not state.driver.loaded:
        return skip(_NO_MODULE)
    held = state.leftovers
    if held.unread:
        return unknown(held.unread, "a process that hangs in state D keeps its maps from everybody: look at dmesg")
    if not held.holders:
        return passed("nothing runs on libraries of a driver that was replaced")
    told = "; ".join(f"{who}: {what}" for who, what in _grouped(held.holders, _names(state)).items())
    count = f"at least {len(held.holders)}" if len(held.holders) == 64 else str(len(held.holders))
    return warn(f"{count} processes run on libraries of the driver before", _AGAIN, told[:2000])


_AGAIN = "start these programs and containers anew when they may stop; in Kubernetes delete the pods"


def _names(state: NodeState) -> dict[str, str]:
    """Docker's containers: the first digits of the id -> the name."""
    found = {} if state.docker is None or isinstance(state.docker, Unknown) else state.docker.containers
    return {c.id[:12]: f"container {c.name} ({c.image})" for c in found}


def _grouped(holders: tuple[Holder, ...], names: dict[str, str]) -> dict[str, str]:
    """Who -> which library; a container once, whatever runs in it."""
    return {
        names.get(h.container, f"container {h.container}") if h.container else f"{h.name} (pid {h.pid})": h.library
        for h in holders
    }


def _links(spec: NodeSpec, state: NodeState) -> Verdict:
    if not state.driver.loaded:
        return skip(_NO_MODULE)
    missing = state.leftovers.unlinked
    cgroups = state.docker.cgroup_driver if isinstance(state.docker, Docker) else ""
    if cgroups != "systemd" and state.containerd is None:
        return skip("no engine here leaves devices to systemd")
    if missing:
        return warn(f"{len(missing)} device nodes have no link in /dev/char", evidence=", ".join(missing[:8]))
    return passed("every device node of the driver has its link in /dev/char")


def _firmware(spec: NodeSpec, state: NodeState) -> Verdict:
    driver = state.driver.loaded
    if not driver:
        return skip(_NO_MODULE)
    if isinstance(state.driver.smi, Unknown):
        return unread(state.driver.smi)
    said = {v.strip() for v in re.findall(r"<gsp_firmware_version>([^<]*)<", state.driver.smi or "")}
    runs = {v for v in said if re.fullmatch(r"[0-9.]+", v)}
    if not runs:
        return skip("no GPU runs GSP firmware")
    if runs != {driver}:
        return fail(f"the driver is {driver}, its GPUs run GSP firmware {', '.join(sorted(runs - {driver}))}")
    disk, files = state.driver.on_disk_version, state.leftovers.firmware
    if disk and files and disk not in files:
        return warn(
            f"the next boot loads {disk}, and /lib/firmware has none for it",
            f"install the firmware package of {disk}",
            f"there: {', '.join(files)}",
        )
    return passed(f"driver and GSP firmware are {driver}")


def _persistenced(spec: NodeSpec, state: NodeState) -> Verdict:
    if not state.driver.loaded:
        return skip(_NO_MODULE)
    if isinstance(state.units, Unknown):
        return unread(state.units)
    unit = state.units.get(PERSISTENCED)
    if unit is None or unit.enabled not in ("enabled", "static"):
        return skip(f"{PERSISTENCED} is {'not installed' if unit is None else unit.enabled or 'not enabled'}")
    now = persistence(state)
    return passed(f"{PERSISTENCED} is {now}") if now == "active" else warn(f"{PERSISTENCED} is {now}")


def _companions(spec: NodeSpec, state: NodeState) -> Verdict:
    driver = state.driver.loaded
    if not driver:
        return skip(_NO_MODULE)
    if isinstance(state.packages, Unknown):
        return unread(state.packages)
    found = {name: package.version for name, package in state.packages.items() if _COMPANION.fullmatch(name)}
    if not found:
        return skip("neither IMEX nor NSCQ is installed as a package")
    wrong = {n: v for n, v in found.items() if not re.match(rf"(\d+:)?{re.escape(driver)}(?![0-9.])", v)}
    if wrong:
        said = ", ".join(f"{name} {version}" for name, version in sorted(wrong.items()))
        return fail(f"the driver is {driver}, and not so: {', '.join(sorted(wrong))}", evidence=said)
    return passed(f"of the driver's version: {', '.join(sorted(found))}")


def _peers(spec: NodeSpec, state: NodeState) -> Verdict:
    if not state.driver.loaded:
        return skip(_NO_MODULE)
    missing = state.leftovers.peers
    if missing:
        return warn(f"installed, and not loaded: {', '.join(missing)}")
    return passed("the modules beside the driver are loaded, or not installed")


CHECKS = (
    Check(
        "driver.firmware",
        Level.effective,
        "GPUs since Turing run a firmware that is read from /lib/firmware/nvidia/VERSION; without that of the very "
        "driver the GPU does not come up, or runs what an earlier boot has loaded.",
        "nvidia-smi -q | grep 'GSP Firmware'; ls /lib/firmware/nvidia; cat /proc/driver/nvidia/version",
        "install the firmware package of the driver's version, then reload the modules or reboot",
        _firmware,
        gpu=True,
        after=("driver.loaded", "driver.match", "gpu.answers"),
    ),
    Check(
        "driver.charlinks",
        Level.effective,
        "systemd knows a device by its link in /dev/char: without it, containers started the old way (mode legacy, "
        "cgroups by systemd) lose their GPU at the next daemon-reload: 'Failed to initialize NVML: Unknown Error'.",
        "ls -l /dev/nvidia* /dev/char",
        "reconverge: {on_driver_change: mend} makes them at every boot; by hand: nvidia-ctk system "
        "create-dev-char-symlinks",
        _links,
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "driver.persistenced",
        Level.effective,
        "nvidia-persistenced ended (its library was of another version than the module), or is still the one from "
        "before the update.",
        "systemctl status nvidia-persistenced; ls -l /proc/$(pidof nvidia-persistenced)/exe",
        "gpuready apply restarts it; by hand: systemctl restart nvidia-persistenced",
        _persistenced,
        gpu=True,
        after=("driver.loaded", "driver.match"),
    ),
    Check(
        "driver.companions",
        Level.effective,
        "IMEX (NVL72) and the NVSwitch library NSCQ have to be of exactly the driver's version: a node that was "
        "updated by halves has no memory across nodes, or DCGM sees no NVSwitch.",
        "dpkg -l 'nvidia-imex*' 'libnvidia-nscq*'; cat /proc/driver/nvidia/version",
        "install them at the driver's full version, then restart nvidia-imex and nvidia-dcgm",
        _companions,
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "driver.peers",
        Level.effective,
        "GDRCopy and GPUDirect Storage have a module that is built for one driver: it is installed, and was not "
        "loaded, often because it was not built anew.",
        "ls -d /usr/src/gdrdrv-* /usr/src/nvidia-fs-*; dkms status; lsmod | grep -E 'gdrdrv|nvidia_fs'",
        "dkms autoinstall, then modprobe gdrdrv or modprobe nvidia-fs; dmesg says why one is refused",
        _peers,
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "driver.processes",
        Level.effective,
        "Programs and containers that were there before the update keep the deleted libraries (DCGM's nv-hostengine "
        "too): they run on until the module changes, and then fail: 'Driver/library version mismatch', error 803.",
        "grep -l 'lib\\(cuda\\|nvidia-ml\\).*(deleted)' /proc/[0-9]*/maps; grep '//deleted' /proc/PID/mountinfo",
        "start the programs and containers that are named anew; gpuready does not",
        _processes,
        gpu=True,
        after=("driver.loaded",),
    ),
)

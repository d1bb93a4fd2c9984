"""Checks of CDI: is there a spec of the node's GPUs, does it fit the loaded driver, and does another spec hide it?

Sources: the CDI specification (directories, conflicts), nvidia-cdi-refresh's units at each tag, podman-run(1).
Looked up on 2026-11-23.
"""

import re

from gpuready.base.versions import dotted, leading
from gpuready.base.words import count
from gpuready.components.cdi.engines import without_gids_field
from gpuready.components.cdi.spec_files import (
    KIND,
    CdiSpec,
    collisions,
    missing,
    place,
    seen_devices,
    specs,
    wanted_devices,
)
from gpuready.components.cdi.state import UNIT
from gpuready.components.docker.state import CDI_SINCE, daemon_json, engine_version
from gpuready.contract import need, owners
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, unknown, warn
from gpuready.cuda import tables
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Cri, NodeState, Unknown

#: Versions of the toolkit whose unit may do nothing, and why.
_IDLE = {
    "1.18.1": "its unit does not recognize a compressed kernel module (.ko.zst, .ko.xz)",
    "1.19.0": "its unit starts only after multi-user.target and does not try again",
}

#: How rootless engines get GPUs, by the mark of each. Tried with podman 4.3 and 5.4; Docker's documentation of CDI.
_ROOTLESS = {
    "rootless_podman": f"rootless podman: podman run --device {KIND}=all",
    "rootless_docker": f"rootless Docker 25 or newer: docker run --device {KIND}=all; before 28.2, its user sets "
    '{"features": {"cdi": true}} in ~/.config/docker/daemon.json and restarts it',
}


def _gpu_specs(state: NodeState) -> list[CdiSpec]:
    return [s for s in specs(state) if s.kind == KIND]


def _spec(spec: NodeSpec, state: NodeState) -> Verdict:
    broken = [f"{s.path}: {s.error}" for s in specs(state) if s.error]
    found = _gpu_specs(state)
    whose = owners.observed("toolkit", spec, state)
    if not state.driver.loaded and not found and not broken:
        return skip("no NVIDIA driver is loaded, and there is no CDI spec")
    if not found:
        if whose and not broken:  # the owner of the toolkit decides whether the node needs one
            return skip(f"{whose}: no CDI spec")
        if broken:
            unreadable = "no CDI spec of nvidia.com/gpu can be read"
            told = "; ".join(broken)
            return warn(unreadable, _there(whose), told) if whose else fail(unreadable, evidence=told)
        return fail("there is no CDI spec of nvidia.com/gpu", evidence=f"expected: {place(spec, state)}")
    hidden = [s.path for s in found if not state.files[s.path].mode & 0o004]
    if broken or hidden:
        told = "; ".join([*broken, *(f"{p}: only root may read it" for p in hidden)])
        return warn("some CDI specs cannot be used", "fix or remove them (chmod 644 if only root may read one)", told)
    base = state.installed.get("nvidia-container-toolkit-base")
    version = next((v for v in _IDLE if base and base.version.startswith(v)), "")
    if version:
        return warn(f"{UNIT} of {version} may not update the spec", "upgrade the toolkit", _IDLE[version])
    if base and leading(base.version, 3) < tables.since("ucodes_since") and _brings_ucodes(state):
        return warn(
            f"toolkit {base.version} leaves the driver's ucodes_*.bin out of the spec",
            f"set toolkit.version to {dotted(tables.since('ucodes_since'))} or newer, and apply",
            f"driver {state.driver.loaded} has this firmware; which programs need it in a container is not documented",
        )
    return passed("; ".join(f"{s.path}: {', '.join(s.devices)}" for s in found))


def _brings_ucodes(state: NodeState) -> bool:
    return leading(state.driver.loaded, 1) >= tables.since("ucodes_branch")


def _there(whose: str) -> str:
    return f"change it there: {whose}" if whose else ""


def _stale(spec: NodeSpec, state: NodeState) -> Verdict:
    found = _gpu_specs(state)
    if not found:
        return skip("there is no CDI spec of nvidia.com/gpu")
    files = [line for s in found for line in _misfits(s, state)]
    others = [line for s in found for line in _other_devices(s, state)]
    told = [*files, *(line for line, _ in others)]
    if not told:
        need.value(state.driver.smi)
        if state.driver.loaded:
            return passed(f"matches the driver: {', '.join(s.path for s in found)}")
        return passed("all its files exist")
    if not state.driver.loaded:
        return warn("a CDI spec names missing files; no NVIDIA driver is loaded", evidence="; ".join(told))
    remedy = _there(owners.observed("toolkit", spec, state))
    because = "gpu.count" if not files and all(fewer for _, fewer in others) else ""
    return fail("a CDI spec does not fit the loaded driver", remedy, "; ".join(told), because=because)


def _misfits(one: CdiSpec, state: NodeState) -> list[str]:
    told, gone, version = [], missing(state, one), state.driver.loaded
    if gone:
        told.append(f"{one.path} names {count(len(gone), 'missing file')}, such as {gone[0]}")
    other = [v for v in one.drivers if version and v != version]
    if other:
        told.append(f"{one.path} is for driver {', '.join(other)}, but {version} is loaded")
    return told


def _other_devices(one: CdiSpec, state: NodeState) -> list[tuple[str, bool]]:
    """Return how the spec's devices differ from the node's, and whether the node has a part of them (a lost GPU)."""
    want, seen = wanted_devices(state, one), seen_devices(state, one)
    if isinstance(want, tuple) and state.driver.loaded and want != seen:
        text = f"{one.path} has the devices {', '.join(seen)}, but the node has {', '.join(want)}"
        return [(text, {*want} < {*seen})]
    return []


def _shadow(spec: NodeSpec, state: NodeState) -> Verdict:
    pairs = collisions(state)
    if not pairs:
        return passed("no device is defined twice") if _gpu_specs(state) else skip("no CDI spec of nvidia.com/gpu")
    gone = [
        f"{pair.first.path} and {pair.last.path}: {', '.join(pair.devices)}"
        for pair in pairs
        if pair.first.directory == pair.last.directory
    ]
    if gone:
        told = "two specs in one directory define the same device, so engines ignore both"
        return fail(told, evidence="; ".join(gone))
    told = "; ".join(f"{pair.last.path} hides {', '.join(pair.devices)} of {pair.first.path}" for pair in pairs)
    made = any(s.made and s.path != place(spec, state) for p in pairs for s in (p.first, p.last))
    whose = owners.observed("toolkit", spec, state)
    mend = _there(whose) or ("gpuready apply moves the older one aside" if made else "keep one of them")
    return warn("devices are defined twice, and the later directory silently wins", mend, told)


def _podman(spec: NodeSpec, state: NodeState) -> Verdict:
    if spec.runtimes.podman == "absent":
        return skip("runtimes.podman: absent")
    podman = need.value(state.packages).get("podman")
    if podman is None:
        return skip("no podman on this node")
    if not state.driver.loaded:
        return skip("no NVIDIA driver is loaded")
    numbers = re.match(r"(?:\d+:)?(\d+)\.(\d+)", podman.version)
    if not numbers:
        return unknown(f"podman's version {podman.version} is not understood")
    if (int(numbers[1]), int(numbers[2])) < (4, 1):
        return fail(f"podman {podman.version} does not support CDI devices; 4.1 or newer does", "upgrade podman")
    if "oci_hook" in state.marks:
        return fail(
            "an old OCI hook gives containers their GPUs a second time, against CDI",
            "remove /usr/share/containers/oci/hooks.d/oci-nvidia-hook.json",
        )
    refuses = any(engine.startswith("podman ") for engine in without_gids_field(spec, state))
    if refuses and any(s.gids for s in _gpu_specs(state)):
        return fail(f"podman {podman.version} refuses the CDI spec: it does not know the field additionalGids")
    return passed(f"podman run --device {KIND}=all")


def _rootless(spec: NodeSpec, state: NodeState) -> Verdict:
    ways = [way for mark, way in _ROOTLESS.items() if mark in state.marks]
    if not ways:
        return skip("no user's rootless Docker or podman was found")
    if not state.driver.loaded:
        return skip("no NVIDIA driver is loaded")
    if not _gpu_specs(state):
        return warn(f"rootless containers get GPUs only by CDI, and there is no CDI spec of {KIND}")
    return passed("; ".join(ways))


def _docker(spec: NodeSpec, state: NodeState) -> Verdict:
    if spec.runtimes.docker == "absent" or state.docker is None:
        return skip("no Docker runs here" if state.docker is None else "runtimes.docker: absent")
    docker = need.value(state.docker)
    if engine_version(state.docker, state.installed) < CDI_SINCE:
        return skip(f"Docker {docker.version} does not support CDI devices; 25.0 or newer does")
    if docker.cdi_spec_dirs:
        lost = _elsewhere(state, "Docker", docker.cdi_spec_dirs)
        if lost:
            return warn(lost)
        return passed(f"docker run --device {KIND}=all, specs from {', '.join(docker.cdi_spec_dirs)}")
    features = daemon_json(state.files).get("features")
    if isinstance(features, dict) and features.get("cdi") is True:
        wish = "" if spec.runtimes.docker_settings.cdi is True else "set runtimes.docker.cdi: true in the spec, then "
        return warn(
            "features.cdi is set in daemon.json, but Docker was not restarted since then",
            f"{wish}gpuready apply restarts Docker as soon as maintenance permits it",
        )
    return passed("CDI devices are off in Docker; runtimes.docker.cdi: true turns them on")


def _containerd(spec: NodeSpec, state: NodeState) -> Verdict:
    return _pods(state, "containerd", state.cri if spec.runtimes.containerd != "absent" else None)


def _crio(spec: NodeSpec, state: NodeState) -> Verdict:
    return _pods(state, "CRI-O", state.crio if spec.runtimes.crio != "absent" else None)


def _pods(state: NodeState, engine: str, answer: Cri | Unknown | None) -> Verdict:
    """Judge where a CRI engine looks for CDI specs, by its own answer."""
    running = need.value(answer)
    if running is None:
        return skip(f"{engine} was not asked")
    if running.enable_cdi is False:
        return passed(f"CDI devices are off in {engine}")
    lost = _elsewhere(state, engine, running.cdi_spec_dirs)
    return warn(lost) if lost else passed(f"{engine} reads CDI specs from {', '.join(running.cdi_spec_dirs)}")


def _elsewhere(state: NodeState, engine: str, directories: tuple[str, ...]) -> str:
    """Return that an engine reads no directory with a GPU spec; empty if it does, or if there is no such spec."""
    read = {_real(d) for d in directories}
    found = _gpu_specs(state)
    if not found or any(_real(s.directory) in read for s in found):
        return ""
    places = ", ".join(sorted({s.path for s in found}))
    return f"{engine} reads CDI specs from {', '.join(directories) or 'nowhere'}, but the GPU spec is {places}"


def _real(directory: str) -> str:
    """Resolve /var/run, a link to /run."""
    return re.sub(r"^/var/run(/|$)", r"/run\1", directory).rstrip("/")


CHECKS = (
    Check(
        "cdi.spec",
        "a CDI spec exists",
        Level.config,
        "Without a readable CDI spec, --device nvidia.com/gpu=all, podman, and Docker from 29.2 on have no GPUs: it "
        "was never generated, is in another directory, or nvidia-cdi-refresh was skipped.",
        "ls -l /etc/cdi /var/run/cdi; systemctl status nvidia-cdi-refresh.service; nvidia-ctk cdi list",
        "gpuready apply; by hand: systemctl restart nvidia-cdi-refresh, or nvidia-ctk cdi generate",
        _spec,
        component="cdi",
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "cdi.stale",
        "the CDI spec fits the driver",
        Level.config,
        "The spec was made for another driver, or before GPUs or MIG changed: containers fail with 'no such file or "
        "directory', or miss a GPU.",
        "grep hostPath /var/run/cdi/nvidia.yaml; cat /proc/driver/nvidia/version; nvidia-smi -L",
        "gpuready apply, or systemctl restart nvidia-cdi-refresh; then recreate failing containers",
        _stale,
        component="cdi",
        gpu=True,
        after=("cdi.spec", "driver.match"),
    ),
    Check(
        "cdi.shadow",
        "each CDI device is defined once",
        Level.config,
        "Two CDI specs define the same device. In one directory, both are ignored. In two directories, the later one "
        "wins, even if it is stale.",
        "grep -l nvidia.com/gpu /etc/cdi/* /var/run/cdi/*; nvidia-ctk cdi list",
        "keep one spec: gpuready apply moves specs of nvidia-ctk aside; remove others by hand",
        _shadow,
        component="cdi",
        gpu=True,
    ),
    Check(
        "cdi.podman",
        "podman can use CDI",
        Level.config,
        "podman gets GPUs only through CDI. That needs podman 4.1, an up-to-date spec, and no OCI hook of an older "
        "toolkit.",
        "podman --version; podman run --rm --device nvidia.com/gpu=all IMAGE ls /dev",
        "gpuready apply makes a spec that podman can read; on SELinux hosts add --security-opt=label=disable",
        _podman,
        component="cdi",
        gpu=True,
        after=("cdi.spec", "cdi.stale"),
    ),
    Check(
        "cdi.rootless",
        "rootless Docker and podman can use CDI",
        Level.config,
        "A rootless engine belongs to its user, and gpuready does not configure it. The runtime nvidia needs "
        "no-cgroups there.",
        "ls -d /run/user/*/docker.sock /run/user/*/libpod; nvidia-ctk cdi list",
        "gpuready apply makes the CDI spec",
        _rootless,
        component="cdi",
        gpu=True,
        after=("cdi.spec", "cdi.stale"),
    ),
    Check(
        "docker.cdi",
        "Docker offers CDI devices",
        Level.effective,
        "Docker 25.0 to 28.1 has CDI devices only with features.cdi, which takes effect after a restart, not a reload.",
        "docker info -f '{{json .CDISpecDirs}}'; grep -A3 features /etc/docker/daemon.json",
        "set runtimes.docker.cdi: true and apply; with cdi-spec-dirs, name /etc/cdi and /var/run/cdi, too",
        _docker,
        component="docker",
    ),
    Check(
        "containerd.cdi",
        "containerd reads the CDI directories",
        Level.effective,
        "Pods get CDI devices only from the directories that containerd reads (cdi_spec_dirs).",
        "crictl info | grep -iA5 cdi",
        "remove cdi_spec_dirs from containerd's CRI section, or name /etc/cdi and /var/run/cdi there; then restart it",
        _containerd,
        component="containerd",
        gpu=True,
    ),
    Check(
        "crio.cdi",
        "CRI-O reads the CDI directories",
        Level.effective,
        "Pods get CDI devices only from the directories that CRI-O reads (cdi_spec_dirs).",
        "crio status config | grep cdi_spec_dirs",
        "remove cdi_spec_dirs from CRI-O's files, or name /etc/cdi and /var/run/cdi there; then systemctl restart crio",
        _crio,
        component="crio",
        gpu=True,
    ),
)

"""Checks of the driver and the GPUs: the module is loaded, the libraries match it, and all GPUs are present.

Sources: /proc/driver/nvidia (the driver's README, "proc interface"), nvidia-smi -q -x, modinfo(8).
"""

from __future__ import annotations

import re

from gpuready.core import need
from gpuready.core.check import Check, Level, Verdict, fail, gpu_count, has_gpu, passed, skip, unknown, warn
from gpuready.spec.model import NodeSpec
from gpuready.state.linker import library_version
from gpuready.state.model import NodeState


def _loaded(spec: NodeSpec, state: NodeState) -> Verdict:
    version = state.driver.loaded
    if version:
        return passed(f"the nvidia module {version} is loaded", f"owner: {state.driver.owner or 'not known'}")
    if has_gpu(state):
        seen = ", ".join(line.split()[0] for line in state.driver.pci) or "in /proc"
        return fail("a GPU is on the bus, but no nvidia module is loaded", evidence=f"PCI: {seen}")
    return skip("no NVIDIA GPU on this node")


def _match(spec: NodeSpec, state: NodeState) -> Verdict:
    loaded = need.driver(state)
    linker = need.value(state.linker)
    wrong = [
        f"{soname} -> {path} is {version}"
        for soname in ("libcuda.so.1", "libnvidia-ml.so.1")
        for path in linker.cache.get(soname, ())[:1]
        if (version := library_version(linker.libs.get(path, path))) and version != loaded
    ]
    if wrong:
        return fail(f"the module is {loaded}, but libraries have another version", evidence="; ".join(wrong))
    on_disk = state.driver.on_disk_version
    if on_disk and on_disk != loaded:
        return warn(
            f"the next boot loads {on_disk}, but {loaded} is loaded now: an update needs a reload or a reboot",
            "drain the node, then reboot it",
        )
    return passed(f"module and libraries are {loaded}")


def _nodes(spec: NodeSpec, state: NodeState) -> Verdict:
    need.driver(state)
    missing = [node for node in ("/dev/nvidiactl", "/dev/nvidia-uvm") if node not in state.driver.nodes]
    numbered = len(state.driver.gpu_nodes)
    if numbered < len(state.driver.gpus):
        missing.append(f"{len(state.driver.gpus) - numbered} of /dev/nvidia0 to {len(state.driver.gpus) - 1}")
    missing += [f"{node} (its major number is not the module's)" for node in state.leftovers.misnumbered]
    if missing:
        return warn(
            f"missing: {', '.join(missing)}",
            "gpuready apply; or nvidia-modprobe -c with each GPU's number, and nvidia-modprobe -u -c 0",
        )
    return passed(f"device nodes of {gpu_count(numbered)}, nvidiactl and nvidia-uvm")


def _count(spec: NodeSpec, state: NodeState) -> Verdict:
    want, smi = spec.hardware.expected_gpus, need.value(state.driver.smi)
    seen = len(re.findall(r"<gpu id=", smi)) if smi else len(state.driver.gpus)
    if want is None:
        if seen:
            return warn(f"{seen} seen, but the spec does not say how many to expect", f"set hardware: {{gpus: {seen}}}")
        return unknown(
            "no GPU found; a GPU that fell off the bus is not listed",
            "set hardware: {gpus: none}, or how many there are",
        )
    if seen != want:
        more = f"set hardware: {{gpus: {seen}}}" if seen > want else ""
        return fail(f"{seen} of {gpu_count(want)} seen", more, evidence=", ".join(state.driver.gpus))
    return passed(f"GPUs seen: {seen}")


def _model(spec: NodeSpec, state: NodeState) -> Verdict:
    want = spec.hardware.model
    if want is None:
        return skip("hardware.model is not set")
    seen = re.findall(r"<product_name>([^<]*)</product_name>", need.value(state.driver.smi) or "")
    if not seen:
        return unknown("nvidia-smi lists no GPU", "see driver.loaded and gpu.count")
    wrong = sorted({name for name in seen if want.lower() not in name.lower()})
    if wrong:
        return fail(f"expected {want}, found {', '.join(wrong)}")
    return passed(f"{want}: {seen[0]}")


CHECKS = (
    Check(
        "driver.loaded",
        Level.effective,
        "The GPU is on the PCI bus, but the kernel module is not loaded: not built for this kernel, refused by Secure "
        "Boot, or nouveau holds the device.",
        "cat /proc/driver/nvidia/version; dmesg | grep -iE 'nvrm|nouveau|lockdown'",
        "run modprobe nvidia and read dmesg; build the module for this kernel (dkms status)",
        _loaded,
        gpu=True,
    ),
    Check(
        "driver.match",
        Level.effective,
        "The libraries have another version than the loaded module: an update without a reboot, or two drivers on one "
        "node. NVML fails with 'Driver/library version mismatch', CUDA with 803 or 804.",
        "cat /proc/driver/nvidia/version; ldconfig -p | grep -E 'libcuda|libnvidia-ml'; modinfo -F version nvidia",
        "drain the node and reboot it (or reload the modules); remove leftovers of another driver and run ldconfig",
        _match,
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "driver.nodes",
        Level.effective,
        "The device nodes do not exist yet. A program that runs as root creates them. A program in a container cannot, "
        "and CUDA fails there with error 100 or 999.",
        "ls -l /dev/nvidia*; grep nvidia /proc/devices",
        "gpuready apply; by hand: nvidia-modprobe -c 0 (each GPU's number), then nvidia-modprobe -u -c 0",
        _nodes,
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "gpu.count",
        Level.effective,
        "A GPU that fell off the bus is not listed. Only the number in the spec shows that one is missing.",
        "nvidia-smi -L; ls /proc/driver/nvidia/gpus; lspci -d 10de:",
        "look for XID 79 in dmesg; power-cycle the node; if the GPU does not come back, replace it",
        _count,
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "gpu.model",
        Level.effective,
        "The node has another GPU than the spec says: a wrong machine type, or an outdated inventory.",
        "nvidia-smi -L",
        "use the right machine type, or correct hardware.model in the spec",
        _model,
        gpu=True,
        after=("driver.loaded",),
    ),
)

"""Read the predictor's view of a node from a NodeState: driver, GPUs, and what its container toolkit does. Pure.

This holds for a container with ``--runtime=nvidia``, as gpuready itself starts one.
Sources: api/config/v1, internal/info/auto.go, internal/modifier/gated.go and the runtime hook's hook_config.go of the
container toolkit.
"""

import re

from gpuready.base import toml_document
from gpuready.base.toml_document import TomlError, read
from gpuready.base.versions import Version, numbers
from gpuready.components.toolkit.state import toolkit_version
from gpuready.components.toolkit_config.state import COMPAT, CONFIG, MODE, Document, given
from gpuready.cuda import tables
from gpuready.cuda.facts import Host, stack_of
from gpuready.cuda.tables import Device, Gpu
from gpuready.model.state import NodeState


def hosts_of(state: NodeState, driver: str = "", gpu: str = "") -> tuple[tuple[Host, ...], str]:
    """Return the node once for each GPU model; or none, and the reason why nothing can be predicted.

    ``driver`` and ``gpu`` replace the node's own: what if it had these?
    """
    driver = driver or state.driver.loaded
    if not re.fullmatch(r"[0-9]{3,4}(\.[0-9]+){1,2}", driver) or numbers(driver)[0] < min(tables.branches()):
        return (), f"driver {driver} is unknown" if driver else "no nvidia driver is loaded"
    if not (version := toolkit_version(state.installed, state.commands)):
        return (), "the NVIDIA Container Toolkit is not installed"
    toolkit = numbers(version)
    try:
        document = read(state.files[CONFIG].text) if CONFIG in state.files else {}
    except TomlError as e:
        return (), f"{CONFIG}: {e}"
    mode = str(given(document, MODE) or "auto")
    if mode == "csv":
        return (), "mode csv (Tegra) cannot be predicted"
    legacy = mode == "legacy" or (mode == "auto" and toolkit < tables.since("jit_cdi_since"))
    stack = _stack(document, toolkit, legacy)
    models = (tables.gpu(gpu),) if gpu else gpus_of(state)
    drives = None if gpu or driver != state.driver.loaded else numbers(driver)
    return tuple(Host(numbers(driver), model, stack, toolkit, legacy, drives) for model in models), ""


def gpus_of(state: NodeState) -> tuple[Gpu, ...]:
    """Return the distinct GPU models that nvidia-smi lists; one unknown model if it lists none."""
    smi = state.driver.smi
    blocks = smi.split("<gpu id=")[1:] if isinstance(smi, str) else []
    found = [tables.gpu(_cell(block, "product_name"), _cell(block, "product_brand")) for block in blocks]
    return tuple(dict.fromkeys(found)) or (tables.gpu(""),)


def devices_of(state: NodeState) -> list[Device]:
    """Return each GPU on the bus, by its PCI device id."""
    ids = [line.split()[2] for line in state.driver.pci_gpus if len(line.split()) > 2]
    return [tables.device(int(each, 16)) for each in ids if re.fullmatch(r"0x[0-9a-f]{4}", each)]


def nvlink5(state: NodeState) -> str:
    """Return where the NVLink 5 switches between the GPUs are, ``baseboard`` or ``rack``; empty if there are none.

    A single GPU has none: it is passed through to a virtual machine, or built into a workstation.
    """
    places = [device.nvlink5 for device in devices_of(state)]
    return next((place for place in ("baseboard", "rack") if places.count(place) > 1), "")


def _cell(block: str, tag: str) -> str:
    m = re.search(rf"<{tag}>([^<]*)</{tag}>", block)
    return m[1].strip() if m else ""


def _stack(document: Document, toolkit: Version, legacy: bool) -> str:
    """Return what the toolkit does with an image's libcuda, by its mode and version."""
    if not legacy:
        off = toolkit < tables.since("hook_since") or _feature(document, "disable-cuda-compat-lib-hook")
        return "disabled" if off else "hook"
    if toolkit >= tables.since("mode_since"):
        setting = str(given(document, COMPAT) or "ldconfig")
        if setting == "hook" and _feature(document, "disable-cuda-compat-lib-hook"):
            return "disabled"
        return setting if setting in ("ldconfig", "mount", "hook", "disabled") else "disabled"
    if toolkit >= tables.since("mount_by_default_before") and _feature(
        document, "allow-cuda-compat-libs-from-container"
    ):
        return "mount"
    return stack_of(toolkit)


def _feature(document: Document, name: str) -> bool:
    return toml_document.at(document, ("features", name)) is True

"""Parse ``nvidia-smi -q -x`` into typed values for each GPU. Pure; no text raises an error.

Sources: nvidia-smi(1), the output of driver 580 (nvsmi_device_v13.dtd) and the element names of drivers before it:
``clocks_throttle_reasons`` (until 535), one ``sram_uncorrectable`` (until 535), ``double_bit`` (before Ampere),
``pending_blacklist`` (until 450). A cell without a value has several forms (``N/A``, ``Not Supported``, ``Requested
functionality has been deprecated``): its value is None. A cell that nvidia-smi could not read (``ERR!``, ``Unknown
Error``, ``GPU is lost``) or whose text is unknown is None, too, and is listed by its path.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuready.base.documents import DocumentError, read_xml
from gpuready.base.facts import Unknown

if TYPE_CHECKING:
    import xml.etree.ElementTree as ET

_NONE = re.compile(r"\[?(n/?a|none|not (supported|found|available)|.*deprecated)?\]?", re.I)
_ERROR = re.compile(r"err!|unknown error|requires reset|is lost|insufficient permissions", re.I)
_NUMBER = re.compile(r"(-?[0-9]{1,15})(?:\.[0-9]+)?(?: ?(?:[A-Za-z%/]+|bank\(s\)))?", re.A)
_YES = {"yes": True, "enabled": True, "active": True, "true": True, "pending": True}
_NO = {"no": False, "disabled": False, "not active": False, "false": False}

THROTTLES = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
"""The reasons for lower clocks that mean a problem. Idle, application clocks and power caps do not."""


@dataclass
class Gpu:
    """One GPU. None: the GPU has no such value, or the value is in ``errors`` or ``unread``.

    Temperatures are in degrees Celsius; ``margin`` is the distance to the temperature at which the GPU slows down.
    ``ecc`` counts errors, by names such as ``volatile.sram_uncorrectable``. ``errors`` (cells that show an error) and
    ``unread`` (cells with an unknown text) map the element's path to its text. Pairs are (current, pending) for modes,
    (current, maximum) for ``width``, and (maximum of the link, newest that both ends support) for ``generation``.
    """

    bus: str
    name: str = ""
    vbios: str = ""
    recovery: str | None = None
    persistence: bool | None = None
    mig: tuple[bool | None, bool | None] = (None, None)
    mig_devices: int = 0
    ecc_mode: tuple[bool | None, bool | None] = (None, None)
    ecc: dict[str, int] = field(default_factory=dict)
    repairs: dict[str, bool] = field(default_factory=dict)
    remapped: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    retired: int | None = None
    retire_pending: bool | None = None
    width: tuple[int | None, int | None] = (None, None)
    generation: tuple[int | None, int | None] = (None, None)
    throttled: tuple[str, ...] = ()
    temperature: int | None = None
    margin: int | None = None
    fabric_state: str | None = None
    fabric_status: str | None = None
    clique: tuple[str, str] | None = None
    fabric_health: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)


class _Cells:
    """Reads the elements of one ``<gpu>`` and records those that it could not read."""

    def __init__(self, gpu: ET.Element) -> None:
        self.gpu = gpu
        self.errors: dict[str, str] = {}
        self.unread: dict[str, str] = {}

    def text(self, path: str) -> str | None:
        """Return the text, or None if the cell has no value."""
        text = " ".join((self.gpu.findtext(path) or "").split())[:200]
        if _ERROR.search(text):
            self.errors[path] = text
            return None
        return None if _NONE.fullmatch(text) else text

    def flag(self, path: str) -> bool | None:
        text = self.text(path)
        value = {**_YES, **_NO}.get(text.lower()) if text is not None else None
        if text is not None and value is None:
            self.unread[path] = text
        return value

    def number(self, path: str) -> int | None:
        text = self.text(path)
        found = _NUMBER.fullmatch(text) if text is not None else None
        if text is not None and found is None:
            self.unread[path] = text
        return int(found[1]) if found else None

    def total(self, *paths: str) -> int | None:
        """Return the sum of the cells that have a value; None if none has one."""
        known = [value for path in paths if (value := self.number(path)) is not None]
        return sum(known) if known else None


def lean(text: str) -> str:
    """Remove the lists of supported clocks: two thirds of the text, and nothing reads them."""
    kept: list[str] = []
    while True:
        before, opened, rest = text.partition("<supported_clocks>")
        _, closed, after = rest.partition("</supported_clocks>")
        if not opened or not closed:
            return "".join((*kept, text))
        kept.append(f"{before}<supported_clocks/>")
        text = after


@functools.lru_cache(maxsize=4)
def gpus(text: str) -> tuple[Gpu, ...] | Unknown:
    """Return the GPUs in the order of the output; Unknown if it is not nvidia-smi's XML."""
    try:
        root = read_xml(text)
    except DocumentError as e:
        return Unknown(unknown=f"nvidia-smi -q -x: {e}")
    if root.tag != "nvidia_smi_log":
        return Unknown(unknown=f"nvidia-smi -q -x: <{root.tag[:40]}>, expected <nvidia_smi_log>")
    return tuple(_gpu(one) for one in root.iterfind("gpu"))


def _gpu(element: ET.Element) -> Gpu:
    cells = _Cells(element)
    link = "pci/pci_gpu_link_info"
    found = Gpu(
        bus=str(element.get("id", ""))[:32],
        name=cells.text("product_name") or "",
        vbios=cells.text("vbios_version") or "",
        recovery=_recovery(cells),
        persistence=cells.flag("persistence_mode"),
        mig=(cells.flag("mig_mode/current_mig"), cells.flag("mig_mode/pending_mig")),
        mig_devices=len(element.findall("mig_devices/mig_device")),
        ecc_mode=(cells.flag("ecc_mode/current_ecc"), cells.flag("ecc_mode/pending_ecc")),
        ecc=dict(_ecc(cells)),
        repairs=dict(_repairs(cells)),
        remapped=cells.number("remapped_rows/remapped_row_unc"),
        remap_pending=cells.flag("remapped_rows/remapped_row_pending"),
        remap_failed=cells.flag("remapped_rows/remapped_row_failure"),
        retired=cells.total(
            "retired_pages/multiple_single_bit_retirement/retired_count",
            "retired_pages/double_bit_retirement/retired_count",
        ),
        retire_pending=_either(
            cells.flag("retired_pages/pending_retirement"), cells.flag("retired_pages/pending_blacklist")
        ),
        width=(
            cells.number(f"{link}/link_widths/current_link_width"),
            cells.number(f"{link}/link_widths/max_link_width"),
        ),
        generation=(cells.number(f"{link}/pcie_gen/max_link_gen"), _newest_generation(cells, f"{link}/pcie_gen")),
        throttled=tuple(_throttled(cells)),
        temperature=cells.number("temperature/gpu_temp"),
        margin=_margin(cells),
        fabric_state=cells.text("fabric/state"),
        fabric_status=cells.text("fabric/status"),
        clique=_clique(cells),
        fabric_health=dict(_health(cells)),
    )
    found.errors, found.unread = cells.errors, cells.unread
    return found


def _recovery(cells: _Cells) -> str | None:
    """``None`` is a value here: no action is needed. A driver before 555 has no such element."""
    text = (cells.gpu.findtext("gpu_recovery_action") or "").strip()
    return "None" if text == "None" else cells.text("gpu_recovery_action")


def _either(*values: bool | None) -> bool | None:
    known = [value for value in values if value is not None]
    return any(known) if known else None


def _ecc(cells: _Cells) -> Iterator[tuple[str, int]]:
    for span in ("volatile", "aggregate"):
        for name, elements in (
            ("sram_corrected", ("sram_correctable",)),
            ("dram_corrected", ("dram_correctable", "single_bit/device_memory")),
            ("sram_uncorrectable", ("sram_uncorrectable_parity", "sram_uncorrectable_secded", "sram_uncorrectable")),
            ("dram_uncorrectable", ("dram_uncorrectable",)),
            ("double_bit", ("double_bit/total",)),
        ):
            total = cells.total(*(f"ecc_errors/{span}/{element}" for element in elements))
            if total is not None:
                yield f"{span}.{name}", total


def _repairs(cells: _Cells) -> Iterator[tuple[str, bool]]:
    for name, path in (
        ("SRAM threshold exceeded", "ecc_errors/aggregate/sram_threshold_exceeded"),
        ("unrepairable memory", "ecc_errors/unrepairable_memory"),
        ("channel repair pending", "ecc_errors/channel_repair_pending"),
        ("TPC repair pending", "ecc_errors/tpc_repair_pending"),
    ):
        value = cells.flag(path)
        if value is not None:
            yield name, value


def _newest_generation(cells: _Cells, path: str) -> int | None:
    """The newest PCIe generation that both ends support."""
    ends = [cells.number(f"{path}/{end}") for end in ("max_device_link_gen", "max_host_link_gen")]
    return min((end for end in ends if end is not None), default=None)


def _throttled(cells: _Cells) -> Iterator[str]:
    for reason in THROTTLES:
        for word in ("event", "throttle"):
            if cells.flag(f"clocks_{word}_reasons/clocks_{word}_reason_{reason}"):
                yield reason


def _margin(cells: _Cells) -> int | None:
    """Since Hopper, nvidia-smi prints the distance to a limit; before, the temperatures themselves."""
    left, slows = (cells.number(f"temperature/gpu_temp_{name}") for name in ("tlimit", "slow_tlimit_threshold"))
    if left is not None:
        return left - (slows or 0)
    now, at = cells.number("temperature/gpu_temp"), cells.number("temperature/gpu_temp_slow_threshold")
    return at - now if now is not None and at is not None else None


def _clique(cells: _Cells) -> tuple[str, str] | None:
    uuid, number = cells.text("fabric/clusterUuid"), cells.text("fabric/cliqueId")
    return None if uuid is None or number is None else (uuid, number)


def _health(cells: _Cells) -> Iterator[tuple[str, str]]:
    for name in ("bandwidth", "route_unhealthy", "access_timeout_recovery", "incorrect_configuration", "summary"):
        value = cells.text(f"fabric/health/{name}")
        if value is not None:
            yield name, value

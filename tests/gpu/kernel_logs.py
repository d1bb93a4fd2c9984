"""Kernel logs of which the gate's awk and the probe with its checks must say the same: is there a fatal Xid or SXid?

The lines of SXids are those of NVIDIA's Fabric Manager guide and of leptonai/gpud's tests.
"""

import subprocess
from datetime import date

from gpuready.catalogue import BY_ID
from gpuready.contract.check import run_checks
from gpuready.model import probe
from gpuready.model.kernel_log import kernel_log
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Driver, NodeState

BOOT = "[    0.000000] Linux version 6.12.0\n"
_LOADING = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build"
_XID = "NVRM: Xid (PCI:0000:05:00): "
_SXID = "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): "
_ASKED = f"{_XID}154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
_SETTLED = f"{_XID}154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
_NETIR = f"{_XID}149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)"
#: Name -> the lines after the driver was loaded, and what is fatal: the number with its kind, or nothing.
LOGS: dict[str, tuple[list[str], str]] = {
    "nothing": ([], ""),
    "off the bus": ([f"{_XID}79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."], "Xid 79"),
    "off the bus, without a number": (["NVRM: GPU 0000:05:00.0: GPU has fallen off the bus."], "Xid 79"),
    "off the bus, when the driver is loaded": (
        ["NVRM: The NVIDIA GPU 0000:05:00.0", "NVRM: (PCI ID: 10de:2330) installed in this system has",
         "NVRM: fallen off the bus and is not responding to commands."], "Xid 79"),
    "memory": ([f"{_XID}48, pid=1, name=python"], "Xid 48"),
    "before 352, without PCI": (["NVRM: Xid (0000:05:00): 48, 0000"], "Xid 48"),
    "with the printing thread": (["[  T123] NVRM: Xid (PCI:0000:05:00): 95, x"], "Xid 95"),
    "of the table's last rows": ([f"{_XID}173, C2C fatal link failure"], "Xid 173"),
    "a program's own fault": ([f"{_XID}31, pid=7, name=python, Ch 8"], ""),
    "unknown to the table": ([f"{_XID}999, pid=7, name=python"], ""),
    "recovery asked for": ([_ASKED], "Xid 154"),
    "recovery no longer asked for": ([_ASKED, _SETTLED], ""),
    "recovery of another GPU": ([_ASKED, _SETTLED.replace("05:00", "06:00")], "Xid 154"),
    "NVLink 5": ([_NETIR], "Xid 149"),
    "NVLink 5, not fatal": ([_NETIR.replace(" Fatal ", " Nonfatal ")], ""),
    "before the driver was loaded anew": ([f"{_XID}79, pid=1", _LOADING], ""),
    "a program's name in another's line": ([f"PCI:[77]: segfault at 0 ip 0 sp 0 error 4 in {_XID}79,"], ""),
    "a device's name": ([f"usb 1-1: Product: {_XID}79, y", "usb 1-1: Product: NVRM: fallen off the bus"], ""),
    "a device's name, of a switch": ([f"usb 1-1: Product: {_SXID}24007, Fatal, Link 30"], ""),
    "NVSwitch": (
        [f"{_SXID}24007, Fatal, Link 30 sourcetrack timeout error",
         f"{_SXID}24007, Severity 1 Engine instance 30 Sub-engine instance 00",
         f"{_SXID}24007, Data {{0x00000001, 0x00000000}}"], "SXid 24007"),
    "NVSwitch, not fatal": (
        [f"{_SXID}28006, Non-fatal, Link 46 MC TS crumbstore MCTO (First)",
         f"{_SXID}28006, Severity 0 Engine instance 46 Sub-engine instance 00",
         f"{_SXID}28006, Data {{0x00140004, 0x00100000}}"], ""),
}  # fmt: skip


def log_of(lines: list[str]) -> str:
    """The whole log, as dmesg prints it."""
    return BOOT + "".join(f"[{n:12.6f}] {line}\n" for n, line in enumerate([_LOADING, *lines], 3))


def ask(log: str) -> str:
    """What the probe's own awk makes of a kernel's log."""
    script = probe.script()
    start = script.index("xids() {")
    body = script[start : script.index("\n}\n", start) + 3].replace("dmesg |", "", 1)
    done = subprocess.run(["sh", "-c", f"{body}\nxids"], input=log, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout if not done.returncode else f"exit {done.returncode}"


def judged(log: str) -> str:
    """What of it is fatal for verify, by its probe and its checks."""
    state = NodeState(driver=Driver(module_version="580.159.04", log=kernel_log(ask(log))))
    asked = (BY_ID["gpu.xid"], BY_ID["gpu.sxid"])
    results = run_checks(asked, NodeSpec(), state, "n", active=False, today=date(2026, 11, 24))
    failed = [result.verdict.summary for result in results if result.verdict.status == "fail"]
    return " ".join(failed[0].replace(":", " ").split()[:2]) if failed else ""

"""The verdicts of the checks of GPUs and of the node, for test_checks.py: the recorded H200, and copies that differ in
one element."""

from __future__ import annotations

from typing import Any

from gpuready.gpu.facts.kernel_log import kernel_log
from gpuready.state.model import Driver, File, NodeState, Package, Unit, Unknown
from tests.state.probe_answers import DRIVER, h200, recorded

Row = tuple[str, str, NodeState, dict[str, Any], str]
XML = recorded("nvidia-smi-q-x.xml")
SWITCH = "0000:c1:00.0 0x068000 0x22a3"
GPU = "0000:00:06.0 0x030200 0x2335"
BOOT = "[    0.000000] Linux version 6.12.0"


def smi(xml: str, **fields: Any) -> NodeState:
    """The recorded machine with another answer of nvidia-smi."""
    node = h200()
    driver = node.driver.model_copy(update={"smi": xml, **fields.pop("driver", {})})
    return node.model_copy(update={"driver": driver, **fields})


def said(*changes: tuple[str, str]) -> NodeState:
    """The recorded answer with other texts in elements, by their name or ``parent/name``."""
    xml = XML
    for path, text in changes:
        parent, _, name = path.rpartition("/")
        start = xml.index(f"<{parent}>") if parent else 0
        a = xml.index(f"<{name}>", start) + len(name) + 2
        xml = xml[:a] + text + xml[xml.index(f"</{name}>", a) :]
    return smi(xml)


def without(*elements: str) -> NodeState:
    """The recorded answer as a driver or GPU that lacks these elements would give it."""
    xml = XML
    for name in elements:
        a, end = xml.index(f"<{name}>"), f"</{name}>"
        xml = xml[:a] + xml[xml.index(end, a) + len(end) :]
    return smi(xml)


def twice(old: str, new: str) -> NodeState:
    """The recorded machine with a second GPU that differs in one text."""
    a, b = XML.index("\t<gpu id"), XML.index("</gpu>") + len("</gpu>\n")
    assert old in XML[a:b]
    return smi(XML[:b] + XML[a:b].replace("00:06.0", "00:07.0").replace(old, new) + XML[b:])


def logged(*lines: str, first: str = BOOT) -> NodeState:
    """The recorded machine with these lines in the kernel's log, as the probe counts them."""
    text = "".join(f"{line}\n" for line in (first, *(f"1\t[  812.345678] {line}" for line in lines)))
    return smi(XML, driver={"log": kernel_log(text)})


def unlogged(why: str, **fields: Any) -> NodeState:
    return smi(XML, driver={"log": Unknown(unknown=why)}, **fields)


def switched(state: NodeState, unit: str = "active", version: str = f"{DRIVER}-1", **fields: Any) -> NodeState:
    """The same on a board with an NVSwitch."""
    return state.model_copy(
        update={
            "driver": state.driver.model_copy(update={"pci": (GPU, SWITCH)}),
            "units": {"nvidia-fabricmanager.service": Unit(load="loaded", active=unit)} if unit else {},
            "packages": {"nvidia-fabricmanager-580": Package(version=version, arch="amd64")} if version else {},
            "systemd": True,
            **fields,
        }
    )


def xid(number: int, rest: str = "pid=1, name=python3", bus: str = "PCI:0000:00:06") -> str:
    return f"NVRM: Xid ({bus}): {number}, {rest}"


COMPLETE = (("fabric/state", "Completed"), ("fabric/status", "Success"))
IN_PROGRESS = (("fabric/state", "In Progress"), ("fabric/status", "N/A"))
STATUS = File(text="{}", mode=0o644, uid=0, gid=0, mtime=0)
FALLEN = "NVRM: GPU 0000:00:06.0: GPU has fallen off the bus."
ASKED = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
SETTLED = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
STUCK = Unknown(unknown="smi: no answer within the probe's limit, abandoned (pid 7 in state D)")
NO_GPU = '<?xml version="1.0" ?><nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>'
OLD_REASONS = XML.replace("clocks_event_reason", "clocks_throttle_reason")
V100 = XML.replace("NVIDIA H200", "Tesla V100-SXM2-32GB")
OLD_ECC = "<ecc_errors><volatile><double_bit><total>2</total></double_bit></volatile></ecc_errors>"


def retired(xml: str, count: int, pending: str = "No") -> str:
    return xml.replace("<retired_count>N/A</retired_count>", f"<retired_count>{count}</retired_count>", 1).replace(
        "<pending_retirement>N/A", f"<pending_retirement>{pending}"
    )


def limits(**values: int) -> dict[str, Any]:
    return {"verify": {"thresholds": values}}


def nodes(*names: str, gpus: int = 1) -> NodeState:
    ids = tuple(f"0000:00:0{n}.0" for n in range(gpus))
    return NodeState(driver=Driver(module_version=DRIVER, nodes=names, gpus=ids))


def packages(**configured: bool) -> NodeState:
    return NodeState(packages={n: Package(version="1", arch="amd64", configured=c) for n, c in configured.items()})


NODE: list[Row] = [
    ("node.packages", "pass", packages(runc=True), {}, "are configured"),
    ("node.packages", "fail", packages(runc=True, nvidia=False), {}, "not configured: nvidia"),
    ("node.packages", "unknown", NodeState(packages=STUCK), {}, "no answer"),
    ("node.firstboot", "pass", NodeState(cloud_init="done"), {}, "has finished"),
    ("node.firstboot", "skip", NodeState(), {}, "cloud-init does not run"),
    ("node.firstboot", "skip", NodeState(cloud_init="running"), {}, "cloud-init does not run in this boot"),
    (
        "node.firstboot",
        "warn",
        NodeState(
            cloud_init="running",
            files={"/run/cloud-init/status.json": File(text="{}", mode=0o644, uid=0, gid=0, mtime=0)},
        ),
        {},
        "still running",
    ),
    ("driver.nodes", "pass", h200(), {}, "device nodes of 1 GPUs"),
    ("driver.nodes", "skip", NodeState(), {}, "no nvidia module"),
    ("driver.nodes", "warn", nodes("/dev/nvidia0", "/dev/nvidiactl"), {}, "missing: /dev/nvidia-uvm"),
    ("driver.nodes", "warn", nodes("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", gpus=2), {}, "1 of /dev"),
]
ANSWERS: list[Row] = [
    ("gpu.answers", "pass", h200(), {}, "answers for 1 GPUs"),
    ("gpu.answers", "skip", NodeState(), {}, "no driver is loaded"),
    (
        "gpu.answers",
        "skip",
        NodeState(driver=Driver(proc_version="1", gpus=("a",), owner="operator")),
        {},
        "nvidia-smi is not",
    ),
    ("gpu.answers", "unknown", NodeState(driver=Driver(proc_version="1", gpus=("a",))), {}, "not in root's PATH"),
    ("gpu.answers", "unknown", NodeState(driver=Driver(smi=STUCK)), {}, "in state D"),
    ("gpu.answers", "unknown", smi("No devices were found\n"), {}, "not XML"),
    ("gpu.answers", "unknown", smi("<html/>"), {}, "<html>, expected <nvidia_smi_log>"),
    ("gpu.answers", "unknown", smi('<!DOCTYPE a [<!ENTITY b "c">]><nvidia_smi_log/>'), {}, "entities"),
    ("gpu.answers", "unknown", smi(NO_GPU), {}, "lists no GPU"),
    ("gpu.answers", "skip", NodeState(driver=Driver(smi=NO_GPU)), {}, "lists no GPU"),
    ("gpu.answers", "fail", smi(XML, driver={"smi": Unknown(unknown="smi: exit 14: x")}), {}, "14: a GPU's infoROM"),
    ("gpu.answers", "fail", smi(XML, driver={"smi": Unknown(unknown="smi: exit 255: x")}), {}, "255: it failed"),
    ("gpu.answers", "fail", said(("gpu_temp", "ERR!")), {}, "cannot read 1 values"),
    ("gpu.answers", "fail", said(("persistence_mode", "[Unknown Error]")), {}, "cannot read 1"),
    ("gpu.answers", "fail", said(("current_ecc", "[GPU requires reset]")), {}, "cannot read 1"),
    ("gpu.answers", "fail", said(("gpu_recovery_action", "GPU is lost")), {}, "cannot read 1"),
    ("gpu.answers", "unknown", said(("remapped_row_pending", "Perhaps")), {}, "remapped_row_pending is 'Perhaps'"),
    ("gpu.answers", "unknown", said(("current_link_width", "wide")), {}, "'wide'"),
]
XIDS: list[Row] = [
    ("gpu.xid", "pass", logged(), {}, "no Xid"),
    ("gpu.xid", "pass", logged(first="[86461.000000] eth0: link up"), {}, "since 86461 s after boot"),
    ("gpu.xid", "skip", NodeState(), {}, "no nvidia module"),
    ("gpu.xid", "unknown", unlogged("xids: exit 1: x"), {}, "exit 1"),
    ("gpu.xid", "unknown", unlogged("xids: exit 1: x", capabilities="000001ffffffffff"), {}, "exit 1"),
    ("gpu.xid", "skip", unlogged("xids: exit 1: x", capabilities="00000000a80425fb"), {}, "no CAP_SYSLOG"),
    ("gpu.xid", "fail", logged(xid(79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")), {}, "off the"),
    ("gpu.xid", "fail", logged(FALLEN), {}, "Xid 79 on 0000:00:06: the GPU is off the bus"),
    ("gpu.xid", "fail", logged(xid(31), xid(48), xid(63)), {}, "Xid 48"),
    ("gpu.xid", "fail", logged(xid(119)), {}, "needs a reset"),
    ("gpu.xid", "fail", logged(xid(149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6)")), {}, "NVLink"),
    ("gpu.xid", "warn", logged(xid(149, "NETIR_LINK_EVT Nonfatal XC0 i0 Link 08 (0x004505c6)")), {}, "NVLink"),
    ("gpu.xid", "fail", logged(xid(154, ASKED)), {}, "asks for a recovery action"),
    ("gpu.xid", "pass", logged(xid(154, SETTLED)), {}, "more than a restart"),
    ("gpu.xid", "warn", logged(xid(63)), {}, "contained"),
    ("gpu.xid", "warn", logged(xid(999)), {}, "knows no action"),
    ("gpu.xid", "pass", logged(xid(31), xid(13), xid(43), xid(45)), {}, "more than a restart"),
    ("gpu.xid", "pass", logged(xid(14, "Channel 00000001", bus="0000:03:00")), {}, "more than a restart"),
    ("gpu.sxid", "pass", logged(xid(79)), {}, "no SXid"),
    ("gpu.sxid", "skip", NodeState(), {}, "no nvidia module"),
    (
        "gpu.sxid",
        "fail",
        logged("nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 30 sourcetrack timeout error"),
        {},
        "SXid 24007 on 0000:c3:00: a fatal NVSwitch error",
    ),
    (
        "gpu.sxid",
        "warn",
        logged("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20009, Non-fatal, Link 28 RX Short Error Rate"),
        {},
        "SXid 20009",
    ),
]
MEMORY: list[Row] = [
    ("gpu.recovery", "pass", h200(), {}, "no recovery"),
    ("gpu.recovery", "skip", without("gpu_recovery_action"), {}, "reports no recovery action"),
    ("gpu.recovery", "fail", said(("gpu_recovery_action", "Reset")), {}, "asks for: Reset"),
    ("gpu.recovery", "fail", said(("gpu_recovery_action", "Drain P2P")), {}, "asks for: Drain P2P"),
    ("gpu.remap", "pass", h200(), {}, "no row remapping"),
    ("gpu.remap", "skip", without("remapped_rows"), {}, "does not remap"),
    ("gpu.remap", "fail", said(("remapped_row_pending", "Yes")), {}, "a row remapping is pending"),
    ("gpu.remap", "fail", said(("remapped_row_failure", "Yes")), {}, "could not be remapped"),
    ("gpu.retired", "skip", h200(), {}, "does not retire"),
    ("gpu.retired", "pass", smi(retired(XML, 63)), {}, "no page retirement"),
    ("gpu.retired", "fail", smi(retired(XML, 64)), {}, "64 pages are retired (limit: 64)"),
    ("gpu.retired", "fail", smi(retired(V100, 62)), {}, "(limit: 62)"),
    ("gpu.retired", "pass", smi(retired(V100, 62)), limits(retired_pages=63), "no page retirement"),
    ("gpu.retired", "fail", smi(retired(XML, 1, "Yes")), {}, "a page retirement is pending"),
    ("gpu.ecc", "pass", h200(), {}, "memory errors are within"),
    ("gpu.ecc", "skip", without("ecc_errors"), {}, "no ECC counters"),
    ("gpu.ecc", "fail", said(("volatile/dram_uncorrectable", "1")), {}, "1 uncorrectable memory errors"),
    ("gpu.ecc", "fail", said(("volatile/sram_uncorrectable_parity", "2")), {}, "2 uncorrectable memory errors"),
    ("gpu.ecc", "fail", smi(f'<nvidia_smi_log><gpu id="0">{OLD_ECC}</gpu></nvidia_smi_log>'), {}, "double_bit"),
    ("gpu.ecc", "warn", said(("aggregate/sram_uncorrectable_secded", "1")), {}, "over its life"),
    ("gpu.ecc", "fail", said(("sram_threshold_exceeded", "Yes")), {}, "threshold"),
    ("gpu.ecc", "fail", said(("unrepairable_memory", "Yes")), {}, "unrepairable"),
    ("gpu.ecc", "warn", said(("channel_repair_pending", "Yes")), {}, "channel repair"),
    ("gpu.ecc", "fail", said(("aggregate/sram_correctable", "10001")), {}, "limit 10000"),
    (
        "gpu.ecc",
        "pass",
        said(("aggregate/sram_correctable", "10001")),
        limits(sram_corrected=20000),
        "within their limits",
    ),
    ("gpu.ecc", "fail", said(("aggregate/dram_correctable", "5")), limits(dram_corrected=4), "limit 4"),
    ("gpu.eccmode", "pass", h200(), {}, "ECC is on"),
    ("gpu.eccmode", "skip", without("ecc_mode"), {}, "no ECC"),
    ("gpu.eccmode", "warn", said(("current_ecc", "Disabled"), ("pending_ecc", "Disabled")), {}, "ECC is off"),
    ("gpu.eccmode", "warn", said(("pending_ecc", "Disabled")), {}, "off after the next reset"),
]
SWITCHES: list[Row] = [
    ("gpu.nvswitch", "skip", h200(), {}, "no NVSwitch"),
    ("gpu.nvswitch", "pass", switched(h200()), {}, "1 on the PCI bus"),
    ("gpu.nvswitch", "pass", said(*COMPLETE), {"hardware": {"nvswitch": True}}, "part of a fabric"),
    ("gpu.nvswitch", "pass", h200(), {"hardware": {"nvswitch": False}}, "as the spec says"),
    ("gpu.nvswitch", "fail", h200(), {"hardware": {"nvswitch": True}}, "no NVSwitch"),
    ("gpu.nvswitch", "fail", switched(h200()), {"hardware": {"nvswitch": False}}, "1 on the PCI bus"),
    ("gpu.nvswitch", "unknown", smi(XML, driver={"smi": STUCK}), {"hardware": {"nvswitch": True}}, "no answer"),
    ("driver.fabricmanager", "skip", h200(), {}, "no NVSwitch"),
    ("driver.fabricmanager", "pass", switched(h200()), {}, DRIVER),
    ("driver.fabricmanager", "pass", switched(h200(), version=f"1:{DRIVER}-0ubuntu0.24.04.1"), {}, DRIVER),
    ("driver.fabricmanager", "fail", switched(h200(), version="580.95.05-1"), {}, "the fabric manager is nvidia"),
    ("driver.fabricmanager", "fail", switched(h200(), version=f"{DRIVER}1-1"), {}, "but the fabric manager is"),
    ("driver.fabricmanager", "unknown", switched(h200(), version=""), {}, "no fabric manager package"),
    ("driver.fabricmanager", "unknown", switched(h200(), packages=STUCK), {}, "no answer"),
    ("gpu.fabric", "skip", h200(), {}, "no NVSwitch"),
    ("gpu.fabric", "pass", switched(h200()), {}, "is active"),
    ("gpu.fabric", "pass", switched(said(*COMPLETE)), {}, "complete for 1 GPUs"),
    ("gpu.fabric", "pass", said(*COMPLETE), {}, "complete for 1 GPUs"),
    ("gpu.fabric", "fail", switched(h200(), unit="failed"), {}, "is failed"),
    ("gpu.fabric", "fail", switched(h200(), unit=""), {}, "not installed"),
    ("gpu.fabric", "fail", said(*IN_PROGRESS), {}, "state is In Progress"),
    ("gpu.fabric", "fail", said(("fabric/state", "Completed"), ("fabric/status", "N/A")), {}, "status is missing"),
    ("gpu.fabric", "warn", said(*COMPLETE, ("health/bandwidth", "Degraded")), {}, "is degraded"),
    ("gpu.fabric", "unknown", switched(h200(), units=STUCK), {}, "no answer"),
]
SETTINGS: list[Row] = [
    ("gpu.pcie", "pass", h200(), {}, "all PCIe lanes"),
    ("gpu.pcie", "skip", without("link_widths"), {}, "no PCIe link width"),
    ("gpu.pcie", "fail", said(("current_link_width", "8x")), {}, "PCIe x8 of x16"),
    ("gpu.pcie", "pass", said(("current_link_gen", "1")), {}, "all PCIe lanes"),
    ("gpu.pcie", "warn", said(("max_link_gen", "4")), {}, "generation 4 of 5"),
    ("gpu.pcie", "pass", said(("max_link_gen", "4"), ("max_host_link_gen", "4")), {}, "all PCIe lanes"),
    ("gpu.throttle", "pass", h200(), {}, "no slowdown"),
    ("gpu.throttle", "pass", said(("clocks_event_reason_sw_power_cap", "Active")), {}, "no slowdown"),
    ("gpu.throttle", "warn", said(("clocks_event_reason_hw_thermal_slowdown", "Active")), {}, "hw thermal slowdown"),
    (
        "gpu.throttle",
        "warn",
        smi(OLD_REASONS.replace("hw_slowdown>Not Active", "hw_slowdown>Active")),
        {},
        "hw slowdown",
    ),
    ("gpu.temperature", "pass", h200(), {}, "are below the limit"),
    ("gpu.temperature", "warn", said(("gpu_temp_tlimit", "0 C")), {}, "slowdown temperature is 2 C"),
    ("gpu.temperature", "warn", h200(), limits(temperature_margin=51), "is 51 C"),
    ("gpu.temperature", "skip", without("temperature"), {}, "no temperature limit"),
    (
        "gpu.temperature",
        "warn",
        smi(
            '<nvidia_smi_log><gpu id="0"><temperature><gpu_temp>86 C</gpu_temp><gpu_temp_slow_threshold>87 C'
            "</gpu_temp_slow_threshold></temperature></gpu></nvidia_smi_log>"
        ),
        {},
        "86 C; the margin to the slowdown temperature is 1 C",
    ),
    ("gpu.uniform", "skip", h200(), {}, "one GPU"),
    ("gpu.uniform", "pass", twice("NVIDIA H200", "NVIDIA H200"), {}, "2 GPUs NVIDIA H200"),
    ("gpu.uniform", "warn", twice("NVIDIA H200", "NVIDIA H100"), {}, "different GPU models"),
    ("gpu.uniform", "warn", twice("96.00.A5.00.1A", "96.00.A5.00.1B"), {}, "VBIOS versions differ"),
    ("gpu.mig", "pass", h200(), {}, "no change is pending"),
    ("gpu.mig", "skip", without("mig_mode"), {}, "no MIG"),
    ("gpu.mig", "warn", said(("pending_mig", "Enabled")), {}, "off, but on after"),
    ("gpu.mig", "fail", said(("current_mig", "Enabled"), ("pending_mig", "Enabled")), {}, "no instance"),
    (
        "gpu.mig",
        "pass",
        said(("current_mig", "Enabled"), ("pending_mig", "Enabled"), ("mig_devices", "<mig_device/>")),
        {},
        "no change is pending",
    ),
    ("gpu.persistence", "pass", h200(), {}, "is on"),
    ("gpu.persistence", "skip", without("persistence_mode"), {}, "no persistence mode"),
    ("gpu.persistence", "warn", said(("persistence_mode", "Disabled")), {}, "is off"),
    (
        "gpu.persistence",
        "warn",
        twice("<persistence_mode>Enabled", "<persistence_mode>Disabled"),
        {},
        "1 of 2 GPUs: persistence mode is off",
    ),
]
VERDICTS = [*NODE, *ANSWERS, *XIDS, *MEMORY, *SWITCHES, *SETTINGS]

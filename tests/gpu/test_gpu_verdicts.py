"""Verdicts of the checks of GPUs and of the node: the recorded H200, and copies that differ in one element."""

from typing import Any

from gpuready.gpu.imex import NODES
from gpuready.model.kernel_log import kernel_log
from gpuready.model.network import NetDevice, Network
from gpuready.model.state import Driver, NodeState, Package, Unit, Unknown
from tests.model.probe_answers import DRIVER, h200, recorded
from tests.verdicts import (
    GPU,
    Row,
    fails,
    held,
    holding,
    is_unknown,
    passes,
    root_files,
    skips,
    state,
    warns,
)

XML = recorded("nvidia-smi-q-x.xml")
SWITCH = "0000:c1:00.0 0x068000 0x22a3"
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


B200, GB300 = "0x2901", "0x31c2"
PARTS = ("nvidia-fabricmanager-580", "nvlsm")


def board(
    state: NodeState,
    id: str = B200,
    parts: tuple[str, ...] = PARTS,
    unit: str = "active",
    enabled: str = "enabled",
    **fields: Any,
) -> NodeState:
    """The same with eight GPUs of this PCI device id, and these packages; ``marks`` are as on a node that works."""
    return state.model_copy(
        update={
            "driver": state.driver.model_copy(update={"pci": tuple(f"0000:{n}8:00.0 0x030200 {id}" for n in range(8))}),
            "units": {"nvidia-fabricmanager.service": Unit(load="loaded", active=unit, enabled=enabled)}
            if unit
            else {},
            "packages": {
                name: Package(version="2025.10.14-1" if name == "nvlsm" else f"{DRIVER}-1", arch="amd64")
                for name in parts
            },
            "systemd": True,
            "marks": ("ib_umad",),
            **fields,
        }
    )


def rack(state: NodeState, imex: str = "active", enabled: str = "enabled", **fields: Any) -> NodeState:
    """A node of a GB300 rack; ``imex`` is the state of its service, if that is installed. The list names two nodes."""
    given = {"parts": ("nvidia-imex-580",) if imex else (), "marks": ("imex_channel0",)} | fields
    units = {"nvidia-imex.service": Unit(load="loaded", active=imex, enabled=enabled)} if imex else {}
    files = root_files({NODES: "10.0.0.1\n10.0.0.2\n"})
    network = Network(devices={"eth0": NetDevice(addresses=("10.0.0.1/24",))})
    return board(state, GB300, **{"units": units, "files": files, "network": network, **given})


def xid(number: int, rest: str = "pid=1, name=python3", bus: str = "PCI:0000:00:06") -> str:
    return f"NVRM: Xid ({bus}): {number}, {rest}"


COMPLETE = (("fabric/state", "Completed"), ("fabric/status", "Success"))
IN_PROGRESS = (("fabric/state", "In Progress"), ("fabric/status", "N/A"))
STATUS = root_files({"/run/cloud-init/status.json": "{}"})
FATAL_SXID = "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 30 sourcetrack timeout error"
SXID = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20009, Non-fatal, Link 28 RX Short Error Rate"
FALLEN = "NVRM: GPU 0000:00:06.0: GPU has fallen off the bus."
ASKED = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
SETTLED = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
STUCK = Unknown(unknown="smi: no answer within the probe's limit, abandoned (pid 7 in state D)")
NO_GPU = '<?xml version="1.0" ?><nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>'
OLD_REASONS = XML.replace("clocks_event_reason", "clocks_throttle_reason")
V100 = XML.replace("NVIDIA H200", "Tesla V100-SXM2-32GB")
OLD_ECC = "<ecc_errors><volatile><double_bit><total>2</total></double_bit></volatile></ecc_errors>"
OLD_LIMIT = (
    "<temperature><gpu_temp>86 C</gpu_temp><gpu_temp_slow_threshold>87 C</gpu_temp_slow_threshold></temperature>"
)
MIG = (("current_mig", "Enabled"), ("pending_mig", "Enabled"))
PERSISTENT = "<persistence_mode>Enabled"


def only(elements: str) -> NodeState:
    """A GPU of which nvidia-smi says no more than this."""
    return smi(f'<nvidia_smi_log><gpu id="0">{elements}</gpu></nvidia_smi_log>')


def silent(**driver: Any) -> NodeState:
    """A node with a GPU and without nvidia-smi."""
    return NodeState(driver=Driver(proc_version="1", gpus=("a",), **driver))


def retired(xml: str, count: int, pending: str = "No") -> str:
    xml = xml.replace("<retired_count>N/A", f"<retired_count>{count}", 1)
    return xml.replace("<pending_retirement>N/A", f"<pending_retirement>{pending}")


def limits(**values: int) -> dict[str, Any]:
    return {"verify": {"thresholds": values}}


def nodes(*names: str, gpus: int = 1) -> NodeState:
    ids = tuple(f"0000:00:0{n}.0" for n in range(gpus))
    return NodeState(driver=Driver(module_version=DRIVER, nodes=names, gpus=ids))


def packages(**configured: bool) -> NodeState:
    return NodeState(packages={n: Package(version="1", arch="amd64", configured=c) for n, c in configured.items()})


NODE: list[Row] = [
    # node.reboot
    passes("node.reboot", "no reboot"),
    warns("node.reboot", "/run/reboot-required", state(reboot_required=True)),
    # node.drained
    passes("node.drained", "has not drained"),
    fails(
        "node.drained",
        "brought it back yet (in Slurm, as n1)",
        holding("in Slurm, as n1\n", "/var/lib/gpuready/drained"),
    ),
    passes("node.packages", "are configured", packages(runc=True)),
    fails("node.packages", "not configured: nvidia", packages(runc=True, nvidia=False)),
    is_unknown("node.packages", "no answer", NodeState(packages=STUCK)),
    passes("node.firstboot", "has finished", NodeState(cloud_init="done")),
    skips("node.firstboot", "cloud-init does not run"),
    skips("node.firstboot", "cloud-init does not run in this boot", NodeState(cloud_init="running")),
    warns("node.firstboot", "still running", NodeState(cloud_init="running", files=STATUS)),
    passes("driver.nodes", "device nodes of 1 GPU", h200()),
    skips("driver.nodes", "no nvidia module"),
    warns("driver.nodes", "missing: /dev/nvidia-uvm", nodes("/dev/nvidia0", "/dev/nvidiactl")),
    warns("driver.nodes", "1 of /dev", nodes("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", gpus=2)),
]
ANSWERS: list[Row] = [
    passes("gpu.answers", "answers for 1 GPU", h200()),
    skips("gpu.answers", "no driver is loaded"),
    skips("gpu.answers", "nvidia-smi is not", silent(owner="operator")),
    is_unknown("gpu.answers", "not in root's PATH", silent()),
    is_unknown("gpu.answers", "in state D", NodeState(driver=Driver(smi=STUCK))),
    is_unknown("gpu.answers", "not XML", smi("No devices were found\n")),
    is_unknown("gpu.answers", "<html>, expected <nvidia_smi_log>", smi("<html/>")),
    is_unknown("gpu.answers", "entities", smi('<!DOCTYPE a [<!ENTITY b "c">]><nvidia_smi_log/>')),
    is_unknown("gpu.answers", "lists no GPU", smi(NO_GPU)),
    skips("gpu.answers", "lists no GPU", NodeState(driver=Driver(smi=NO_GPU))),
    fails("gpu.answers", "14: a GPU's infoROM", smi(XML, driver={"smi": Unknown(unknown="smi: exit 14: x")})),
    fails("gpu.answers", "255: it failed", smi(XML, driver={"smi": Unknown(unknown="smi: exit 255: x")})),
    fails("gpu.answers", "cannot read 1 value", said(("gpu_temp", "ERR!"))),
    fails("gpu.answers", "cannot read 1", said(("gpu_recovery_action", "GPU is lost"))),
    is_unknown("gpu.answers", "remapped_row_pending is 'Perhaps'", said(("remapped_row_pending", "Perhaps"))),
    is_unknown("gpu.answers", "'wide'", said(("current_link_width", "wide"))),
]
XIDS: list[Row] = [
    passes("gpu.xid", "no Xid", logged()),
    passes("gpu.xid", "since 86461 s after boot", logged(first="[86461.000000] eth0: link up")),
    skips("gpu.xid", "no nvidia module"),
    is_unknown("gpu.xid", "exit 1", unlogged("xids: exit 1: x")),
    is_unknown("gpu.xid", "exit 1", unlogged("xids: exit 1: x", capabilities="000001ffffffffff")),
    skips("gpu.xid", "no CAP_SYSLOG", unlogged("xids: exit 1: x", capabilities="00000000a80425fb")),
    fails("gpu.xid", "off the", logged(xid(79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus."))),
    fails("gpu.xid", "Xid 79 on 0000:00:06: the GPU is off the bus", logged(FALLEN)),
    fails("gpu.xid", "Xid 48", logged(xid(31), xid(48), xid(63))),
    fails("gpu.xid", "needs a reset", logged(xid(119))),
    fails("gpu.xid", "its signal was bad", logged(xid(149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6)"))),
    warns("gpu.xid", "NVLink", logged(xid(149, "NETIR_LINK_EVT Nonfatal XC0 i0 Link 08 (0x004505c6)"))),
    fails(
        "gpu.xid",
        "at the other end",
        logged(
            xid(149, "NETIR_LINK_EVT Nonfatal XC0 i0 Link 08 (0x00000000 0x00000000)"),
            xid(149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x025005c6 0x00000000)"),
        ),
    ),
    passes("gpu.xid", "more than a restart", logged(xid(145, "RLW_RXPIPE Nonfatal XC0 i0 Link 3 (0x0409a0c2 0x8)"))),
    fails("gpu.xid", "asks for a recovery action", logged(xid(154, ASKED))),
    passes("gpu.xid", "more than a restart", logged(xid(154, SETTLED))),
    warns("gpu.xid", "contained", logged(xid(63))),
    warns("gpu.xid", "knows no action", logged(xid(999))),
    passes("gpu.xid", "more than a restart", logged(xid(31), xid(13), xid(43), xid(45))),
    passes("gpu.xid", "more than a restart", logged(xid(14, "Channel 00000001", bus="0000:03:00"))),
    passes("gpu.sxid", "no SXid", logged(xid(79))),
    skips("gpu.sxid", "no nvidia module"),
    fails("gpu.sxid", "SXid 24007 on 0000:c3:00: a fatal NVSwitch error", logged(FATAL_SXID)),
    warns("gpu.sxid", "SXid 20009", logged(SXID)),
]
MEMORY: list[Row] = [
    passes("gpu.recovery", "no recovery", h200()),
    skips("gpu.recovery", "reports no recovery action", without("gpu_recovery_action")),
    fails("gpu.recovery", "asks for: Reset", said(("gpu_recovery_action", "Reset"))),
    fails("gpu.recovery", "asks for: Drain P2P", said(("gpu_recovery_action", "Drain P2P"))),
    passes("gpu.remap", "no row remapping", h200()),
    skips("gpu.remap", "does not remap", without("remapped_rows")),
    fails("gpu.remap", "a row remapping is pending", said(("remapped_row_pending", "Yes"))),
    fails("gpu.remap", "could not be remapped", said(("remapped_row_failure", "Yes"))),
    skips("gpu.retired", "does not retire", h200()),
    passes("gpu.retired", "no page retirement", smi(retired(XML, 63))),
    fails("gpu.retired", "64 pages retired (limit: 64)", smi(retired(XML, 64))),
    fails("gpu.retired", "(limit: 62)", smi(retired(V100, 62))),
    passes("gpu.retired", "no page retirement", smi(retired(V100, 62)), limits(retired_pages=63)),
    fails("gpu.retired", "a page retirement is pending", smi(retired(XML, 1, "Yes"))),
    passes("gpu.ecc", "memory errors are within", h200()),
    skips("gpu.ecc", "no ECC counters", without("ecc_errors")),
    fails("gpu.ecc", "1 uncorrectable memory error", said(("volatile/dram_uncorrectable", "1"))),
    fails("gpu.ecc", "2 uncorrectable memory errors", said(("volatile/sram_uncorrectable_parity", "2"))),
    fails("gpu.ecc", "double_bit", only(OLD_ECC)),
    warns("gpu.ecc", "over its life", said(("aggregate/sram_uncorrectable_secded", "1"))),
    fails("gpu.ecc", "threshold", said(("sram_threshold_exceeded", "Yes"))),
    fails("gpu.ecc", "unrepairable", said(("unrepairable_memory", "Yes"))),
    warns("gpu.ecc", "channel repair", said(("channel_repair_pending", "Yes"))),
    fails("gpu.ecc", "limit 10000", said(("aggregate/sram_correctable", "10001"))),
    passes("gpu.ecc", "within", said(("aggregate/sram_correctable", "10001")), limits(sram_corrected=20000)),
    fails("gpu.ecc", "limit 4", said(("aggregate/dram_correctable", "5")), limits(dram_corrected=4)),
    passes("gpu.eccmode", "ECC is on", h200()),
    skips("gpu.eccmode", "no ECC", without("ecc_mode")),
    warns("gpu.eccmode", "ECC is off", said(("current_ecc", "Disabled"), ("pending_ecc", "Disabled"))),
    warns("gpu.eccmode", "off after the next reset", said(("pending_ecc", "Disabled"))),
]
SWITCHES: list[Row] = [
    skips("gpu.nvswitch", "no NVSwitch", h200()),
    passes("gpu.nvswitch", "1 on the PCI bus", switched(h200())),
    passes("gpu.nvswitch", "part of a fabric", said(*COMPLETE), {"hardware": {"nvswitch": True}}),
    passes("gpu.nvswitch", "NVLink 5, on the board", board(h200())),
    passes("gpu.nvswitch", "NVLink 5, in the switch trays", rack(smi(XML, driver={"smi": STUCK}))),
    passes("gpu.nvswitch", "as the spec says", board(h200()), {"hardware": {"nvswitch": False}}),
    passes("gpu.nvswitch", "as the spec says", h200(), {"hardware": {"nvswitch": False}}),
    fails("gpu.nvswitch", "no NVSwitch", h200(), {"hardware": {"nvswitch": True}}),
    fails("gpu.nvswitch", "1 on the PCI bus", switched(h200()), {"hardware": {"nvswitch": False}}),
    is_unknown("gpu.nvswitch", "no answer", smi(XML, driver={"smi": STUCK}), {"hardware": {"nvswitch": True}}),
    skips("driver.fabricmanager", "no NVSwitch", h200()),
    passes("driver.fabricmanager", DRIVER, switched(h200())),
    passes("driver.fabricmanager", DRIVER, switched(h200(), version=f"1:{DRIVER}-0ubuntu0.24.04.1")),
    fails("driver.fabricmanager", "the fabric manager is nvidia", switched(h200(), version="580.95.05-1")),
    fails("driver.fabricmanager", "but the fabric manager is", switched(h200(), version=f"{DRIVER}1-1")),
    is_unknown("driver.fabricmanager", "no fabric manager package", switched(h200(), version="")),
    is_unknown("driver.fabricmanager", "no answer", switched(h200(), packages=STUCK)),
    passes("driver.fabricmanager", DRIVER, board(said(*COMPLETE))),
    passes("driver.fabricmanager", DRIVER, board(said(*IN_PROGRESS))),  # it only has to finish
    passes("driver.fabricmanager", DRIVER, board(said(*COMPLETE), parts=PARTS[:1], marks=())),
    fails("driver.fabricmanager", "NVLSM (package nvlsm) is not installed", board(said(*IN_PROGRESS), parts=PARTS[:1])),
    fails("driver.fabricmanager", "work: the kernel module ib_umad is not", board(said(*IN_PROGRESS), marks=())),
    fails("driver.fabricmanager", "and the kernel", board(said(*IN_PROGRESS), parts=PARTS[:1], marks=())),
    fails("driver.fabricmanager", "no fabric manager package", board(said(*IN_PROGRESS), "0x3182", parts=())),
    skips("driver.fabricmanager", "not a package of this node", board(said(*COMPLETE), "0x2909", parts=())),
    skips(
        "driver.fabricmanager", "no NVSwitch", board(said(*IN_PROGRESS), parts=()), {"hardware": {"nvswitch": False}}
    ),
    skips("driver.fabricmanager", "no NVSwitch", smi(XML, driver={"pci": (f"0000:18:00.0 0x030200 {B200}",)})),
    is_unknown("driver.fabricmanager", "no answer", board(smi(XML, driver={"smi": STUCK}), parts=())),
    skips("driver.fabricmanager", "switch trays of the rack", rack(said(*COMPLETE))),
    skips("driver.fabricmanager", "switch trays of the rack", board(said(*COMPLETE), "0x2941", parts=())),
    skips("gpu.fabric", "no NVSwitch", h200()),
    passes("gpu.fabric", "is active", switched(h200())),
    passes("gpu.fabric", "complete for 1 GPU", switched(said(*COMPLETE))),
    passes("gpu.fabric", "complete for 1 GPU", said(*COMPLETE)),
    fails("gpu.fabric", "is failed", switched(h200(), unit="failed")),
    fails("gpu.fabric", "not installed", switched(h200(), unit="")),
    fails("gpu.fabric", "state is In Progress", said(*IN_PROGRESS)),
    fails("gpu.fabric", "status is missing", said(("fabric/state", "Completed"), ("fabric/status", "N/A"))),
    warns("gpu.fabric", "bandwidth Degraded", said(*COMPLETE, ("health/bandwidth", "Degraded"))),
    is_unknown("gpu.fabric", "no answer", switched(h200(), units=STUCK)),
    passes("gpu.fabric", "complete for 1 GPU", board(said(*COMPLETE))),
    passes("gpu.fabric", "complete for 1 GPU", board(said(*COMPLETE), unit="", parts=())),
    fails("gpu.fabric", "is inactive", board(said(*COMPLETE), unit="inactive")),
    passes("gpu.fabric", "complete for 1 GPU", board(said(*COMPLETE), unit="inactive", enabled="disabled")),
    passes("gpu.fabric", "complete for 1 GPU", rack(said(*COMPLETE))),
    passes("gpu.fabric", "is active", board(h200())),
    fails("gpu.fabric", "is failed", board(said(*IN_PROGRESS), unit="failed")),
    fails("gpu.fabric", "not installed", board(said(*IN_PROGRESS), unit="")),
    fails("gpu.fabric", "not installed", board(h200(), unit="")),
    fails("gpu.fabric", "state is In Progress", board(said(*IN_PROGRESS))),
    fails("gpu.fabric", "state is In Progress", rack(said(*IN_PROGRESS))),
    skips("gpu.fabric", "no NVSwitch", rack(h200())),
]
SETTINGS: list[Row] = [
    passes("gpu.pcie", "all PCIe lanes", h200()),
    skips("gpu.pcie", "no PCIe link width", without("link_widths")),
    fails("gpu.pcie", "PCIe x8 of x16", said(("current_link_width", "8x"))),
    passes("gpu.pcie", "all PCIe lanes", said(("current_link_gen", "1"))),
    warns("gpu.pcie", "generation 4 of 5", said(("max_link_gen", "4"))),
    passes("gpu.pcie", "all PCIe lanes", said(("max_link_gen", "4"), ("max_host_link_gen", "4"))),
    passes("gpu.throttle", "no slowdown", h200()),
    passes("gpu.throttle", "no slowdown", said(("clocks_event_reason_sw_power_cap", "Active"))),
    warns("gpu.throttle", "hw thermal slowdown", said(("clocks_event_reason_hw_thermal_slowdown", "Active"))),
    warns("gpu.throttle", "hw slowdown", smi(OLD_REASONS.replace("hw_slowdown>Not Active", "hw_slowdown>Active"))),
    passes("gpu.temperature", "are below the limit", h200()),
    warns("gpu.temperature", "slowdown temperature is 2 C", said(("gpu_temp_tlimit", "0 C"))),
    warns("gpu.temperature", "is 51 C", h200(), limits(temperature_margin=51)),
    skips("gpu.temperature", "no temperature limit", without("temperature")),
    warns("gpu.temperature", "86 C; the margin to the slowdown temperature is 1 C", only(OLD_LIMIT)),
    skips("gpu.uniform", "one GPU", h200()),
    passes("gpu.uniform", "2 GPUs NVIDIA H200", twice("NVIDIA H200", "NVIDIA H200")),
    warns("gpu.uniform", "different GPU models", twice("NVIDIA H200", "NVIDIA H100")),
    warns("gpu.uniform", "VBIOS versions differ", twice("96.00.A5.00.1A", "96.00.A5.00.1B")),
    passes("gpu.mig", "no change is pending", h200()),
    skips("gpu.mig", "no MIG", without("mig_mode")),
    warns("gpu.mig", "off, but on after", said(("pending_mig", "Enabled"))),
    fails("gpu.mig", "no instance", said(*MIG)),
    passes("gpu.mig", "no change is pending", said(*MIG, ("mig_devices", "<mig_device/>"))),
    passes("gpu.persistence", "is on", h200()),
    skips("gpu.persistence", "no persistence mode", without("persistence_mode")),
    warns("gpu.persistence", "is off", said(("persistence_mode", "Disabled"))),
    warns("gpu.persistence", "1 of 2 GPUs: persistence mode is off", twice(PERSISTENT, "<persistence_mode>Disabled")),
]
VERDICTS = [*NODE, *ANSWERS, *XIDS, *MEMORY, *SWITCHES, *SETTINGS]
test_verdict = held(VERDICTS)

"""Which GPUs on the bus nvidia-smi should list: the rule, the check gpu.count and the gate's number, by the same cases.

Two H100 (2330), which the driver drives, and whatever a case adds. nvidia-smi's answer has the form of the recorded
one: a bus id has eight digits of domain there, and four in sysfs.
"""

import datetime
from typing import Any, NamedTuple

import pytest

from gpuready.catalogue import BY_ID
from gpuready.components.gate.component import wanted
from gpuready.contract.check import Verdict, run_checks
from gpuready.gpu import bus
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Driver, NodeState, Unit

DRIVEN = ("0000:1b:00.0", "0000:43:00.0")
TWO = tuple(f"{address} 0x030200 0x2330 nvidia" for address in DRIVEN)


class Case(NamedTuple):
    """The lines of further NVIDIA devices, what the driver says, and the GPUs that are lost or left out (why)."""

    pci: tuple[str, ...]
    lost: tuple[str, ...] = ()
    left_out: str = ""
    driver: dict[str, Any] = {}


CASES = {
    "all are listed": Case(()),
    "the driver holds one that nvidia-smi does not list": Case(
        ("0000:52:00.0 0x030200 0x2330 nvidia",), ("0000:52:00.0",), driver={"gpus": (*DRIVEN, "0000:52:00.0")}
    ),
    "the driver could not take one": Case(("0000:52:00.0 0x030200 0x2330 none",), ("0000:52:00.0",)),
    "a domain of five digits": Case(("10000:01:00.0 0x030200 0x2330 none",), ("10000:01:00.0",)),
    "handed to a virtual machine": Case(("0000:52:00.0 0x030200 0x2330 vfio-pci",), (), "vfio-pci holds it"),
    "the same on Grace Hopper": Case(
        ("0000:52:00.0 0x030200 0x2342 nvgrace-gpu-vfio-pci",), (), "nvgrace-gpu-vfio-pci holds it"
    ),
    "nouveau": Case(("0000:52:00.0 0x030000 0x1b80 nouveau",), (), "nouveau holds it"),
    "excluded by NVreg_ExcludedGpus": Case(
        ("0000:52:00.0 0x030200 0x2330 nvidia",),
        (),
        "an option of the nvidia module excludes it",
        {"gpus": (*DRIVEN, "0000:52:00.0"), "excluded": ("0000:52:00.0",)},
    ),
    "a display adapter that is too old (Kepler)": Case(
        ("0000:0a:00.0 0x030000 0x1287 none",), (), "driver 580.95.05 does not support Kepler any more"
    ),
    "the same under its last driver": Case(
        ("0000:0a:00.0 0x030000 0x1287 none",), ("0000:0a:00.0",), driver={"proc_version": "470.256.02"}
    ),
    "a display adapter that the open module leaves (Pascal)": Case(
        ("0000:0a:00.0 0x030000 0x1d01 none",),
        (),
        "the open kernel module does not support Pascal",
        {"open_module": True},
    ),
    "a model that is not known": Case(
        ("0000:0a:00.0 0x030000 0x06dd none",), (), "no driver holds it, and its device id 0x06dd is not known"
    ),
    "sound, bridge and switch are no GPUs": Case(
        (
            "0000:1b:00.1 0x040300 0x22ba none",
            "0000:c1:00.0 0x068000 0x22a3 nvidia-nvswitch",
        )
    ),
    "recorded before the driver was": Case(("0000:52:00.0 0x030200 0x2330",)),
}


def smi(*addresses: str) -> str:
    """The frame of nvidia-smi -q -x, in which MIG devices do not count."""
    gpus = (f'<gpu id="0000{a}"><mig_devices><mig_device></mig_device></mig_devices></gpu>' for a in addresses)
    return f"<nvidia_smi_log>{''.join(gpus)}</nvidia_smi_log>"


def node(case: Case, **fields: Any) -> NodeState:
    driver = {"proc_version": "580.95.05", "gpus": DRIVEN, "smi": smi(*DRIVEN), "pci": (*TWO, *case.pci), **case.driver}
    return NodeState(driver=Driver(**{**driver, **fields}))


def count(state: NodeState, **hardware: Any) -> Verdict:
    spec = NodeSpec.model_validate({"hardware": hardware})
    (judged,) = run_checks((BY_ID["gpu.count"],), spec, state, "n", active=False, today=datetime.date(2026, 11, 24))
    return judged.verdict


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


def test_the_rule(case: Case) -> None:
    found = bus.unlisted(node(case), [f"0000{address}" for address in DRIVEN])
    assert tuple(each.address for each in found if each.lost) == case.lost
    assert "; ".join(each.why for each in found if not each.lost) == case.left_out


def test_without_a_number_only_lost_gpus_fail(case: Case) -> None:
    verdict = count(node(case))
    assert verdict.status == ("fail" if case.lost else "warn")
    assert all(address in verdict.summary for address in case.lost)
    assert case.left_out in verdict.evidence


def test_the_number_in_the_spec_decides(case: Case) -> None:
    assert count(node(case), gpus=2).status == "pass"
    short = count(node(case), gpus=3)
    assert short.status == "fail" and short.summary.startswith("2 of 3 GPUs seen")
    assert all(address in short.summary for address in case.lost) and case.left_out in short.evidence


def test_the_gate_expects_those_that_are_lost(case: Case) -> None:
    state, gate = node(case), {"gate": True}
    assert bus.expected(state) == 2 + len(case.lost)
    assert f"\nGPUS={2 + len(case.lost)}\n" in wanted(NodeSpec.model_validate(gate), state)
    assert "\nGPUS=2\n" in wanted(NodeSpec.model_validate({**gate, "hardware": {"gpus": 2}}), state)


def test_without_nvidia_smi_the_drivers_own_list_counts() -> None:
    """It lists what is excluded, too."""
    case = CASES["excluded by NVreg_ExcludedGpus"]
    assert count(node(case, smi=None)).summary.startswith("2 GPUs seen")


def test_before_a_driver_is_loaded_the_gate_expects_those_that_it_may_get() -> None:
    holders = ("none", "nouveau", "vfio-pci", "")
    pci = tuple(f"0000:0{n}:00.0 0x030200 0x2330 {holder}".strip() for n, holder in enumerate(holders))
    assert bus.expected(NodeState(driver=Driver(pci=pci))) == 3


def test_no_gpu_at_all_is_unknown_and_says_who_holds_them() -> None:
    held = NodeState(driver=Driver(proc_version="580.95.05", pci=("0000:52:00.0 0x030200 0x2330 vfio-pci",)))
    verdict = count(held)
    assert verdict.status == "unknown" and "0000:52:00.0: vfio-pci holds it" in verdict.summary


@pytest.mark.parametrize("version", ["", "x", "580"])
def test_a_version_that_is_none_breaks_nothing(version: str) -> None:
    bus.unlisted(NodeState(driver=Driver(proc_version=version, pci=("a 0x030200 0x1287 none", "b 0x0302 zz none"))), ())


def test_the_fabric_needs_its_manager_where_switches_are_on_the_bus() -> None:
    switch = ("0000:c1:00.0 0x068000 0x22a3 nvidia-nvswitch",)
    for pci, systemd, units in ((switch, True, "nvidia-fabricmanager.service"), (switch, False, ""), (TWO, True, "")):
        state = NodeState(systemd=systemd, driver=Driver(proc_version="580.95.05", gpus=DRIVEN, pci=pci))
        assert " ".join(bus.fabric_services(state)) == units
        assert f"\nUNITS={units or repr('')}\n" in wanted(NodeSpec(gate=True), state)


@pytest.mark.parametrize(("enabled", "units"), [("enabled", ("nvidia-fabricmanager.service",)), ("disabled", ())])
def test_a_board_of_nvlink5_needs_its_manager_where_that_is_enabled(enabled: str, units: tuple[str, ...]) -> None:
    """A virtual machine has such GPUs and no fabric manager, although its image may bring the package."""
    b200 = tuple(f"0000:{n}8:00.0 0x030200 0x2901 nvidia" for n in range(8))
    known = {"nvidia-fabricmanager.service": Unit(load="loaded", active="inactive", enabled=enabled)}
    assert bus.fabric_services(NodeState(systemd=True, driver=Driver(pci=b200), units=known)) == units

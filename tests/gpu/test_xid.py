"""Xids: the forms of the kernel's lines, the probe's own count of them, and the table of what they ask for."""

import subprocess
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.gpu.facts.kernel_log import Event, kernel_log
from gpuready.gpu.thresholds import limit, load, xid_action
from gpuready.spec.verify import Thresholds
from gpuready.state import probe

BOOT = "[    0.000000] Linux version 6.12.0\n"
OFF = "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
OLD = "NVRM: Xid (0000:03:00): 14, Channel 00000001"
NETIR = "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)"
NONFATAL = NETIR.replace(" Fatal ", " Nonfatal ")
FALLEN = "NVRM: GPU 0000:05:00.0: GPU has fallen off the bus."
SWITCH = "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 30 sourcetrack timeout error"
LOADING = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build"


def counted(*lines: str) -> list[Event]:
    return list(kernel_log(BOOT + "".join(f"1\t[  100.5] {line}\n" for line in lines)).events)


def test_the_forms_of_the_lines() -> None:
    told = counted(OFF, OLD, NETIR, NONFATAL, SWITCH)
    assert [(e.number, e.device, e.switch, e.nonfatal) for e in told] == [
        (14, "0000:03:00", False, False),
        (79, "0000:05:00", False, False),
        (149, "0018:01:00", False, False),
        (149, "0018:01:00", False, True),
        (24007, "0000:c3:00", True, False),
    ]
    assert {e.seconds for e in told} == {100}
    assert told[1].text == OFF


@pytest.mark.parametrize(
    "line", [FALLEN, "NVRM: (PCI ID: 10de:1db5) installed in this system has fallen off the bus and does not respond"]
)
def test_fallen_off_the_bus_without_a_number_is_79(line: str) -> None:
    (event,) = counted(line)
    assert (event.number, event.switch) == (79, False)


def test_the_two_forms_of_79_are_one() -> None:
    (event,) = counted(OFF, FALLEN)
    assert (event.number, event.device) == (79, "0000:05:00")


def test_a_line_without_a_number_is_no_xid() -> None:
    assert counted("NVRM: Xid (PCI:0000:66:00): abc, pid=2280636: 5", "NVRM: Xid 79", "usb: fallen on the bus") == []


def test_how_far_back_the_log_reaches() -> None:
    assert kernel_log("[86461.123456] eth0: link up\n").since == 86461
    assert kernel_log(BOOT).since == 0
    assert kernel_log("eth0: link up\n").since is None


@given(st.text(st.characters(exclude_categories=[]), max_size=300))
def test_no_text_raises(text: str) -> None:
    for line in (text, f"1\t[ 1.5] NVRM: Xid (PCI:0000:05:00): {text}", f"{text}\tNVRM: Xid ({text}): 79, {text}"):
        for event in kernel_log(f"{text}\n{line}\n").events:
            assert event.number >= 0 and len(event.text) <= 300


# --- the probe's part -----------------------------------------------------------------------------------------


def ask(log: str) -> str:
    """What the probe's own awk makes of a kernel's log."""
    script = probe.script()
    start = script.index("xids() {")
    body = script[start : script.index("\n}\n", start) + 3].replace("dmesg |", "", 1)
    done = subprocess.run(["sh", "-c", f"{body}\nxids"], input=log, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout if not done.returncode else f"exit {done.returncode}"


def test_the_probe_counts_each_kind_once_and_forgets_what_came_before_the_driver_was_loaded() -> None:
    said = [OFF, LOADING, "usb 1-1: new device", OLD, OLD, OLD, NETIR, NONFATAL, SWITCH, FALLEN, "Xid is no word"]
    log = BOOT + "".join(f"[{n:12.6f}] {line}\n" for n, line in enumerate(said, 1))
    found = {(e.number, e.nonfatal): (e.count, e.seconds) for e in kernel_log(ask(log)).events}
    assert found == {(14, False): (3, 6), (149, False): (1, 7), (149, True): (1, 8), (24007, False): (1, 9),
                     (79, False): (1, 10)}  # fmt: skip


def test_the_log_of_a_healthy_h200() -> None:
    """The lines of the driver in the kernel's log of the recorded machine, which has no Xid."""
    real = (
        "[    0.430457] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)\n"
        "[    0.927488] NVRM: gpuClearFbhubPoisonIntrForBug2924523_GA100: FBHUB Interrupt detected. Clearing it.\n"
        "[    3.453238] NVRM: Persistence mode is deprecated and will be removed in a future release. Please use "
        "nvidia-persistenced instead.\n"
    )
    assert ask(BOOT + real) == BOOT


def test_a_storm_stays_small() -> None:
    log = BOOT + "".join(f"[{n}.000000] {OFF} {'x' * 400} {n}\n" for n in range(1, 20_000))
    answer = ask(log)
    (event,) = kernel_log(answer).events
    assert (event.count, event.seconds) == (19_999, 19_999) and len(answer) < 600


def test_a_log_that_may_not_be_read_is_a_failure() -> None:
    assert ask("") == "exit 1"
    assert kernel_log(ask(BOOT)).events == ()


# --- the tables -----------------------------------------------------------------------------------------------


def test_each_xid_stands_once_with_what_to_do() -> None:
    actions = load("xids")["actions"]
    assert [n for n, times in Counter(n for a in actions.values() for n in a["xids"]).items() if times > 1] == []
    for action in actions.values():
        assert action["status"] in ("pass", "warn", "fail") and action["means"]
        assert bool(action["remedy"]) == (action["status"] != "pass")


def test_what_takes_a_node_out() -> None:
    gate = {n for n in range(1, 173) if xid_action(n).status == "fail"}
    resets = {46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158}
    assert gate == resets | {48, 54, 74, 79, 151, 154, 171, 172} | set(range(144, 151))
    assert {n for n in (13, 31, 43, 45) if xid_action(n).status != "pass"} == set()
    assert {xid_action(n).status for n in (63, 94)} == {"warn"}
    assert xid_action(100_000).means == "this gpuready knows no action for it"


def test_the_actions_of_todays_catalogue() -> None:
    said = {n: (xid_action(n).status, xid_action(n).means, xid_action(n).remedy) for n in (64, *range(162, 173))}
    assert said[64][0] == "fail" and said[64][2].endswith("send the report to NVIDIA support")
    assert [said[n][0] for n in range(162, 173)] == ["pass", *["warn"] * 8, "fail", "fail"]
    assert [n for n in range(162, 173) if "power smoothing" in said[n][1]] == [163, 164, 165]
    assert [n for n in range(162, 173) if said[n][1] == "NVIDIA publishes no action for it"] == [166, 167, 169, 170]
    assert "gpu.remap" in said[171][2] and "SRAM threshold" in said[172][2] and "ECC on" in said[168][2]


def test_limits_are_the_specs_the_models_or_the_default() -> None:
    assert limit("retired_pages", Thresholds(), "NVIDIA H200") == 64
    assert limit("retired_pages", Thresholds(), "Tesla V100-SXM2-32GB") == 62
    assert limit("retired_pages", Thresholds(retired_pages=5), "Tesla V100-SXM2-32GB") == 5
    for name in load("thresholds")["default"]:
        assert getattr(Thresholds(), name) is None
    named = {name for entry in load("thresholds")["models"] for name in entry}
    assert named <= {"match", *load("thresholds")["default"]}

"""Xids: the forms of the kernel's lines, the probe's own count of them, and the table of what they ask for."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.gpu.thresholds import NVLINK5, action, action_name, fatal_xids, limit, load, xid_action
from gpuready.model.kernel_log import Event, kernel_log
from gpuready.model.verify import Thresholds
from tests.gpu.kernel_logs import BOOT, ask

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


def test_the_probe_counts_each_kind_once_and_forgets_what_came_before_the_driver_was_loaded() -> None:
    said = [OFF, LOADING, "usb 1-1: new device", OLD, OLD, OLD, NETIR, NONFATAL, SWITCH, FALLEN, "Xid is no word"]
    log = BOOT + "".join(f"[{n:12.6f}] {line}\n" for n, line in enumerate(said, 1))
    found = {(e.number, e.nonfatal): (e.count, e.seconds) for e in kernel_log(ask(log)).events}
    assert found == {(14, False): (3, 6), (149, False): (1, 7), (149, True): (1, 8), (24007, False): (1, 9),
                     (79, False): (1, 10)}  # fmt: skip


def test_events_of_one_nvlink5_xid_that_ask_for_different_actions_are_all_shown() -> None:
    """And events that differ only in their link are one kind."""
    peer, link9 = NETIR.replace("0x0045", "0x0255"), NETIR.replace("Link 08 (0x004505c6", "Link 09 (0x004605c6")
    rlw = NETIR.replace("149, NETIR_LINK_EVT Fatal", "145, RLW_REMAP Nonfatal").replace("0x0045", "0x0005")
    said = [NETIR, peer, link9, rlw, rlw.replace("0x00000000", "0x00000100"), NETIR.replace("0000)", "0000 0x1)")]
    log = BOOT + "".join(f"[{n:12.6f}] {line}\n" for n, line in enumerate(said, 1))
    found = {(e.number, action_name(e.number, e.text), e.count) for e in kernel_log(ask(log)).events}
    other = {(145, "nvlink_nonfatal", 1), (145, "ignore", 1)}
    assert found == {(149, "nvlink_signal", 3), (149, "nvlink_peer", 1), *other}


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
    for entry in actions.values():
        assert entry["status"] in ("pass", "warn", "fail") and entry["means"]
        assert bool(entry["remedy"]) == (entry["status"] != "pass")


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


#: Lines of Xids 144 to 150, as leptonai/gpud (nvlink_logs_test.go, #1160, #1174) and NVIDIA's catalogue have them, and
#: the action that the catalogue names.
LINES = [
    ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x0)", "nvlink_signal"),
    ("149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x00000000)", "nvlink_peer"),
    ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x00000000)", "nvlink_peer"),
    ("149, NETIR_LINK_DOWN Fatal XC0 i0 Link 14 (0x00f00011 0x00000000)", "nvlink_stopped"),
    ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000)", "nvlink_unsure"),
    ("149, pid='<unknown>', name=<unknown>, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)", "nvlink_follows"),
    ("149, NETIR_LINK_EVT Fatal XC 1 i 2 Link 01 [0x0000000a]", "nvlink5"),  # no form that the catalogue knows
    ("149, NETIR_LINK_DOWN Fatal XC0 i0 Link 14 (0x00100011 0x00000000)", "nvlink5"),  # a subcode without a reason
    ("149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 00 (0x00000013 0x00000002)", "nvlink_cables"),
    ("149, NETIR_MFDE_EVENT Fatal XC0 i0 Link 00 (0x00000014 0x00000001)", "nvlink5"),
    ("149, NETIR_MFDE_EVENT Nonfatal XC0 i0 Link 00 (0x00000014 0x00000003)", "ignore"),
    ("144, SAW_MVB Nonfatal XC0 i0 Link 0 (0x00000001 0x00000008 0x00000000)", "ignore"),
    ("144, SAW_MVB Nonfatal XC0 i0 Link 0 (0x00000001 0x00000002 0x00000000)", "nvlink_nonfatal"),  # fatal in the table
    ("144, SAW_MVB Fatal XC0 i0 Link 0 (0x00000001 0x00000002 0x00000000)", "nvlink5"),
    ("145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001)", "ignore"),
    ("145, RLW_REMAP Nonfatal XC0 i0 Link 13 (0x00000004 0x00000010)", "nvlink_restart"),
    ("145, RLW_SRC_TRACK Nonfatal XC0 i0 Link 13 (0x00000007 0x00000002)", "ignore"),
    ("146, TLW_RX_PIPE1 Nonfatal XC0 i0 Link 03 (0x0000000b 0x80000000 0x0 0x0)", "ignore"),
    ("146, TLW_RX_PIPE1 Nonfatal XC0 i0 Link 03 (0x0010000b 0x80000000 0x0 0x0)", "nvlink_nonfatal"),  # with a subcode
    ("148, NVLPW Nonfatal XC0 i0 Link 03 (0x0000000f 0x80000000)", "ignore"),
    ("150, MSE_WATCHDOG Fatal XC0 i0 Link -1 (0x00000000 0x00000000)", "nvlink5"),
    ("150, NEW_UNIT Nonfatal XC0 i0 Link -1 (0x00000000 0x00000000)", "nvlink_nonfatal"),
    ("149, an error that is non-fatal", "nvlink_nonfatal"),
    ("149, an error", "nvlink5"),
    ("74, NVLink: NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)", "nvlink"),
]


@pytest.mark.parametrize(("line", "name"), LINES)
def test_the_line_of_an_nvlink5_xid_chooses_its_action(line: str, name: str) -> None:
    text = f"NVRM: Xid (PCI:0018:01:00): {line}"
    assert action_name(int(line.partition(",")[0]), text) == name
    (event,) = counted(text)
    assert xid_action(event.number, event.text) == xid_action(event.number, text.lower()) == action(name)


def test_the_gate_and_the_table_agree_on_nvlink5() -> None:
    """The gate's script knows only the words Fatal and Nonfatal: each fatal row must fail, and no other."""
    assert set(NVLINK5) <= set(fatal_xids()) and action("nvlink5").status == "fail"
    for row in load("xids")["nvlink5"]:
        assert (action(row["action"]).status == "fail") == row["fatal"], row
    assert action("nvlink_nonfatal").status == "warn"


def test_limits_are_the_specs_the_models_or_the_default() -> None:
    assert limit("retired_pages", Thresholds(), "NVIDIA H200") == 64
    assert limit("retired_pages", Thresholds(), "Tesla V100-SXM2-32GB") == 62
    assert limit("retired_pages", Thresholds(retired_pages=5), "Tesla V100-SXM2-32GB") == 5
    for name in load("thresholds")["default"]:
        assert getattr(Thresholds(), name) is None
    named = {name for entry in load("thresholds")["models"] for name in entry}
    assert named <= {"match", *load("thresholds")["default"]}

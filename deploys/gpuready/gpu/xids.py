"""Xids and SXids since the driver was loaded, by what they ask for (checks/data/xids.yaml)."""

from __future__ import annotations

from gpuready.core.check import Check, Level, Verdict, fail, passed, skip, unread, warn
from gpuready.gpu.facts.kernel_log import Event, KernelLog
from gpuready.gpu.thresholds import Action, xid_action
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Unknown

_NVLINK5 = range(144, 151)
_RECOVERY = 154
_SYSLOG = 1 << 34
"""CAP_SYSLOG, capabilities(7)."""
_SEVERITY = {"fail": 0, "warn": 1, "pass": 2}


def _log(state: NodeState) -> KernelLog | Verdict:
    log = state.driver.log
    if log is None:
        return skip("no nvidia module is loaded")
    if isinstance(log, Unknown):
        if state.capabilities and not int(state.capabilities, 16) & _SYSLOG:
            return skip("the kernel's log is the host's: root of this container may not read it (no CAP_SYSLOG)")
        return unread(log)
    return log


def _xids(spec: NodeSpec, state: NodeState) -> Verdict:
    log = _log(state)
    if isinstance(log, Verdict):
        return log
    told = [(event, _asks(event)) for event in log.events if not event.switch]
    told.sort(key=lambda one: _SEVERITY[one[1][0]])
    if not told:
        return passed(f"no Xid{_reach(log)}")
    lines = "; ".join(_line(event) for event, _ in told[:8])
    event, (status, action) = told[0]
    if status == "pass":
        return passed(f"no Xid that asks for more than a new start of the program{_reach(log)}", lines)
    summary = f"Xid {event.number} on {event.device or 'a GPU'}: {action.means}"
    return (fail if status == "fail" else warn)(summary, action.remedy, lines)


def _asks(event: Event) -> tuple[str, Action]:
    """The verdict's status, and the action. What the line itself says comes before the table."""
    action = xid_action(event.number)
    if event.number == _RECOVERY and event.text.rstrip(" .").endswith("(None)"):
        return "pass", action
    if event.number in _NVLINK5 and event.nonfatal:
        return "warn", action
    return action.status, action


def _switches(spec: NodeSpec, state: NodeState) -> Verdict:
    log = _log(state)
    if isinstance(log, Verdict):
        return log
    told = sorted((event for event in log.events if event.switch), key=lambda event: event.nonfatal)
    if not told:
        return passed(f"no SXid{_reach(log)}")
    lines = "; ".join(map(_line, told[:8]))
    if told[0].nonfatal:
        return warn(f"SXid {told[0].number} on {told[0].device}: not fatal", "look whether it comes again", lines)
    return fail(f"SXid {told[0].number} on {told[0].device}: a fatal error of an NVSwitch", evidence=lines)


def _line(event: Event) -> str:
    _, at, said = event.text.partition("Xid ")
    return (f"{event.count} times, last: " if event.count > 1 else "") + (f"Xid {said}" if at else event.text)[:160]


def _reach(log: KernelLog) -> str:
    """Where the kernel's log does not go back to the boot, from when on it does."""
    return f" since {log.since} s after the boot (what was before has left dmesg)" if (log.since or 0) > 60 else ""


CHECKS = (
    Check(
        "gpu.xid",
        Level.effective,
        "The driver reported an error of a GPU. Xid 79: it fell off the bus; 48, 63, 64, 94, 95: memory; 74, "
        "144 to 150: NVLink; 119, 120: its firmware hangs; 13, 31, 43, 45: the program's own fault, only told.",
        "dmesg | grep -E 'NVRM: Xid|fallen off the bus'; journalctl -k -b | grep Xid",
        "drain the node and reset the GPU or reboot; have a GPU replaced on which the same comes again",
        _xids,
        gpu=True,
    ),
    Check(
        "gpu.sxid",
        Level.effective,
        "An NVSwitch reported an error: after a fatal one the fabric does not carry traffic until it is reset.",
        "dmesg | grep SXid; journalctl -u nvidia-fabricmanager; /var/log/fabricmanager.log",
        "drain the node, reset all GPUs (which resets the switches) or reboot, restart nvidia-fabricmanager",
        _switches,
        gpu=True,
    ),
)

"""Checks of Xids and SXids since the driver was loaded, by what they ask for (gpu/data/xids.yaml)."""

from gpuready.contract import need
from gpuready.contract.check import EndCheck, Verdict, fail, passed, skip, warn
from gpuready.gpu.gpus import check
from gpuready.gpu.thresholds import Action, xid_action
from gpuready.model.kernel_log import Event, KernelLog
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown

_RECOVERY = 154
_SYSLOG = 1 << 34
"""CAP_SYSLOG, capabilities(7)."""
_SEVERITY = {"fail": 0, "warn": 1, "pass": 2}


def _log(state: NodeState) -> KernelLog:
    log = state.driver.log
    if log is None:
        raise EndCheck(skip("no nvidia module is loaded"))
    if isinstance(log, Unknown) and state.capabilities and not int(state.capabilities, 16) & _SYSLOG:
        raise EndCheck(skip("this container may not read the host's kernel log (no CAP_SYSLOG)"))
    return need.value(log)


def _xids(spec: NodeSpec, state: NodeState) -> Verdict:
    log = _log(state)
    xids = [(event, _asks(event)) for event in log.events if not event.switch]
    xids.sort(key=lambda xid: _SEVERITY[xid[1][0]])
    if not xids:
        return passed(f"no Xid{_reach(log)}")
    lines = "; ".join(_line(event) for event, _ in xids[:8])
    event, (status, action) = xids[0]
    if status == "pass":
        return passed(f"no Xid that needs more than a restart of the program{_reach(log)}", lines)
    summary = f"Xid {event.number} on {event.device or 'a GPU'}: {action.means}"
    return (fail if status == "fail" else warn)(summary, action.remedy, lines)


def _asks(event: Event) -> tuple[str, Action]:
    """Return the verdict's status and the action. The text of the line takes precedence over the table."""
    action = xid_action(event.number, event.text)
    if event.number == _RECOVERY and event.text.rstrip(" .").endswith("(None)"):
        return "pass", action
    return action.status, action


def _switches(spec: NodeSpec, state: NodeState) -> Verdict:
    log = _log(state)
    sxids = sorted((event for event in log.events if event.switch), key=lambda event: event.nonfatal)
    if not sxids:
        return passed(f"no SXid{_reach(log)}")
    lines = "; ".join(map(_line, sxids[:8]))
    name = f"SXid {sxids[0].number} on {sxids[0].device}"
    if sxids[0].nonfatal:
        return warn(f"{name}: a non-fatal NVSwitch error", "check whether it returns", lines)
    return fail(f"{name}: a fatal NVSwitch error", evidence=lines)


def _line(event: Event) -> str:
    _, found, text = event.text.partition("Xid ")
    return (f"{event.count} times, last: " if event.count > 1 else "") + (f"Xid {text}" if found else event.text)[:160]


def _reach(log: KernelLog) -> str:
    """Say from when on the kernel log is complete, if it does not reach back to the boot."""
    return f" since {log.since} s after boot (older lines have left dmesg)" if (log.since or 0) > 60 else ""


CHECKS = (
    check(
        "gpu.xid",
        "the driver reported no GPU error (Xid)",
        "The driver reported a GPU error. Xid 79: the GPU fell off the bus; 48, 63, 64, 94, 95, 171, 172: memory; 74, "
        "144 to 150: NVLink; 119, 120: the GPU's firmware hangs; 163 to 165: power smoothing; 13, 31, 43, 45: the "
        "program's own fault, only shown.",
        "dmesg | grep -E 'NVRM: Xid|fallen off the bus'; journalctl -k -b | grep Xid",
        "drain the node and reset the GPU or reboot; replace a GPU on which the same Xid returns",
        _xids,
        after=(),
    ),
    check(
        "gpu.sxid",
        "no NVSwitch reported an error (SXid)",
        "An NVSwitch reported an error. After a fatal one, the fabric carries no traffic until it is reset.",
        "dmesg | grep SXid; journalctl -u nvidia-fabricmanager; /var/log/fabricmanager.log",
        "drain the node, reset all GPUs (which resets the switches) or reboot, restart nvidia-fabricmanager",
        _switches,
        after=(),
    ),
)

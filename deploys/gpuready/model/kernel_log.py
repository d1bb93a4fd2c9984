"""Parse Xids of GPUs and SXids of NVSwitches from the kernel log. Pure; no text raises an error.

The probe sends the first line of the log and, for each kind of event, the last line and the number of events since the
driver was loaded. Formats: the driver's ``NVRM: Xid (PCI:0000:05:00): 79, ...`` (before 352 without ``PCI:``) and
``nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 30 ...``; ``NVRM: GPU 0000:05:00.0: GPU has fallen off
the bus.`` is an Xid 79 that has no such line of its own.
"""

import re

from gpuready.base.facts import Facts


class Event(Facts):
    """One kind of event. ``number`` is an SXid if ``switch``, else an Xid.

    ``seconds``: when the last of the ``count`` events occurred, in seconds after boot.
    """

    number: int
    device: str
    switch: bool = False
    nonfatal: bool = False
    count: int = 1
    seconds: int | None = None
    text: str = ""


class KernelLog(Facts):
    """``since``: from when on the log is complete, in seconds after boot; None if it has no times."""

    since: int | None = None
    events: tuple[Event, ...] = ()


_LINE = re.compile(r"([0-9]{1,9})\t(?:<[0-9]+>)?(?:\[ *([0-9]{1,12})[.0-9]*\])?(.*)", re.A)
_TIME = re.compile(r"(?:<[0-9]+>)?\[ *([0-9]{1,12})\.", re.A)
_XID = re.compile(r"(S?)Xid \((?:PCI:)?([0-9a-fA-F:.]{1,20})\)[^:]*: ?0*([0-9]{1,6})\b", re.A)
_BUS = re.compile(r"\b[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\b", re.A)
_FALLEN = "fallen off the bus"
_NONFATAL = re.compile(r"\bnon-?fatal\b", re.I)
_OFF_THE_BUS = 79


def kernel_log(text: str) -> KernelLog:
    """Parse what the probe sent."""
    first, _, rest = text.partition("\n")
    began = _TIME.match(first)
    found: dict[tuple[int, str, bool, str], Event] = {}
    for line in rest.splitlines():
        event = _event(line)
        if event is not None:  # the driver logs 79 twice, in two forms, of which the first one counts
            kind = "" if event.number == _OFF_THE_BUS else event.text
            found.setdefault((event.number, event.device, event.switch, kind), event)
    ordered = sorted(found.values(), key=lambda e: (e.switch, e.number, e.device, e.nonfatal))
    return KernelLog(since=int(began[1]) if began else None, events=tuple(ordered))


def _event(line: str) -> Event | None:
    parts = _LINE.match(line)
    if parts is None:
        return None
    text = parts[3].strip()[:300]
    xid, bus = _XID.search(text), _BUS.search(text)
    if xid is None and _FALLEN not in text:
        return None
    return Event(
        number=int(xid[3]) if xid else _OFF_THE_BUS,
        device=_device(xid[2] if xid else bus[0] if bus else ""),
        switch=bool(xid and xid[1]),
        nonfatal=bool(_NONFATAL.search(text)),
        count=int(parts[1]),
        seconds=int(parts[2]) if parts[2] else None,
        text=text,
    )


def _device(bus: str) -> str:
    """Cut the function off a bus id: only one of the two forms has it."""
    return bus.lower().partition(".")[0]

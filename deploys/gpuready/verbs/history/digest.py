"""What the history needs of a result document, in a form that repeats itself: hosts and runs share most of it.

Anybody may have written a document: its size, its time, its names and its lists are bounded, and anything else is
refused with a reason. Only the keys that are named here are read, so those of a newer release do no harm.
"""

import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from gpuready.base.documents import read_json
from gpuready.base.errors import brief
from gpuready.contract.node_record import seconds
from gpuready.result.blocks import shown
from gpuready.result.model import LOOKED, OUTCOMES, SCHEMA, Value, utc

#: Bytes of one document: thousands of hosts.
MOST = 100_000_000
_TEXT, _VALUE = 200, 80
Name = Annotated[str, Field(max_length=300)]
Id = Annotated[str, Field(max_length=100, pattern=r"^[a-z0-9_.-]+$")]
#: A whole number that SQLite and a float can hold.
Number = Annotated[int, Field(ge=0, lt=2**53)]
#: Verbs that compare nodes with their spec.
_COMPARING = ("plan", "verify", "apply")
REACHABLE, UNREACHABLE = "reachable", "unreachable"


@dataclass
class _Change:
    key: Name
    actual: Value
    expected: Value
    done: bool = False


@dataclass
class _Component:
    name: Id
    applies: bool
    diff: Annotated[list[_Change], Field(max_length=1000)]
    changed: bool = False
    pending: bool = False
    blocked: bool = False
    error: dict[str, Any] | None = None


@dataclass
class _Check:
    id: Id
    status: str
    summary: str


@dataclass
class _Event:
    number: Number
    device: Annotated[str, Field(max_length=40)]
    count: Number
    seconds: Number | None = None
    time: Annotated[str, Field(max_length=40)] | None = None


@dataclass
class _Xids:
    boot_id: Annotated[str, Field(max_length=100)]
    events: Annotated[list[_Event], Field(max_length=1000)]


@dataclass
class _Host:
    outcome: str
    components: Annotated[list[_Component], Field(max_length=200)]
    checks: Annotated[list[_Check], Field(max_length=2000)]
    error: dict[str, Any] | None = None
    spec: Annotated[str, Field(max_length=64)] | None = None
    xids: _Xids | None = None
    attached: Any = None
    earlier: Any = None


@dataclass
class _Document:
    schema: Literal["gpuready/result/1"]
    verb: Annotated[str, Field(max_length=40)]
    ended: str
    exit_code: Number
    hosts: dict[Name, _Host]


@dataclass
class _Head:
    schema: str
    ended: str | None = None


@dataclass(frozen=True)
class Digest:
    """A result: when it ended (UTC), its verb and exit code, and each host's :class:`Seen` as text."""

    ended: str
    verb: str
    exit_code: int
    hosts: dict[str, str]


@dataclass
class Seen:
    """What one result says of one host.

    ``statuses``: by kind and name, what is so after the run. ``texts``: why, of what is not good. ``differences``: of
    each component that was compared, what it has and what the spec wants, by key. ``converged``: the components that an
    apply left as the spec wants them. ``removed``: those that a remove took back, without those that failed or wait.
    ``events``: of the Xids, by number and GPU, how many, and when the last one was (in seconds after the boot, and as a
    time).
    """

    statuses: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    differences: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    converged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    spec: str = ""
    boot: str = ""
    events: list[tuple[int, str, int, int | None, str | None]] = field(default_factory=list)
    key: str = ""
    """The statuses as text, by which equal ones are counted together."""

    @classmethod
    def read(cls, text: str) -> "Seen":
        """Raises ValueError or TypeError if this is no such text."""
        made = cls(**read_json(text))
        made.key = json.dumps(made.statuses)
        return made


class Refused(ValueError):
    """This file is no result that can be read; the message says why."""


_DOCUMENT, _HEAD = TypeAdapter(_Document), TypeAdapter(_Head)


def digest(data: bytes) -> Digest:
    """Read one file. Raises :class:`Refused`."""
    try:
        found = _DOCUMENT.validate_json(data)
        if utc(seconds(found.ended)) != found.ended:
            raise ValueError
    except ValidationError as e:
        raise Refused(_why(data, e)) from None
    except ValueError:
        raise Refused(f"it ended at {found.ended[:40]!r}, which is not a time such as 2026-11-22T21:00:00Z") from None
    hosts = {
        name: json.dumps(vars(_seen(found.verb, host)), separators=(",", ":"))
        for name, host in found.hosts.items()
        # apply --resume: an earlier result has it, and this run did not look; or its turn never came
        if host.earlier is None and host.outcome != "not_attempted"
    }
    return Digest(found.ended, found.verb, found.exit_code, hosts)


def _why(data: bytes, error: ValidationError) -> str:
    """Why the document is refused: what it is, if it is none of ours."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return "not JSON"
    try:
        head = _HEAD.validate_json(data)
    except ValidationError:
        return "not a result of gpuready"
    if head.schema != SCHEMA:
        return f"the schema is {head.schema[:60]!r}; this release reads {SCHEMA!r}"
    if head.ended is None:
        return "it does not say when it ended"
    return brief(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 160)


def _seen(verb: str, host: _Host) -> Seen:
    made = Seen(spec=host.spec or "")
    if host.outcome in OUTCOMES and host.outcome != "skipped":
        made.statuses["host"] = UNREACHABLE if host.outcome == "unreachable" else REACHABLE
        if host.error is not None:
            made.texts["host"] = brief(str(host.error.get("message", "")), _TEXT)
    for check in host.checks:
        if check.status in (*LOOKED, "unknown"):
            made.statuses[f"check {check.id}"] = check.status
            if check.status != "pass":
                made.texts[f"check {check.id}"] = brief(check.summary, _TEXT)
    if verb in _COMPARING and host.attached is None:
        for item in host.components:
            if item.applies or item.error is not None:
                _compare(made, verb, host, item)
    if verb == "remove":
        made.removed = [item.name for item in host.components if _closed(item) or not (item.diff or item.error)]
    if host.xids is not None:
        made.boot = host.xids.boot_id
        made.events = [(e.number, e.device, e.count, e.seconds, e.time) for e in host.xids.events]
    return made


def _closed(item: _Component) -> bool:
    """Whether the run closed the whole difference."""
    return item.changed and not item.pending and item.error is None


def _compare(made: Seen, verb: str, host: _Host, item: _Component) -> None:
    """What a component is like after the run."""
    subject = f"component {item.name}"
    left = [] if verb == "apply" and _closed(item) else [each for each in item.diff if not each.done]
    if item.blocked:
        made.statuses[subject] = "blocked"
    elif left or item.error is not None:
        made.statuses[subject] = "pending" if item.pending and verb == "apply" else "differs"
    else:
        made.statuses[subject] = "matches"
        if verb == "apply" and host.outcome in ("ok", "changed"):
            made.converged.append(item.name)
    if item.blocked:
        return
    made.differences[item.name] = {
        each.key: (brief(shown(each.key, each.actual), _VALUE), brief(shown(each.key, each.expected), _VALUE))
        for each in left
    }
    if left:
        made.texts[subject] = brief(", ".join(each.key for each in left), _TEXT)

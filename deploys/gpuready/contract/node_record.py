"""The record on the node of the last apply that changed it: when, by whom, which release and spec, and the outcome.

``apply`` writes it with the exec of the active checks, which it runs on each host that it changed
(templates/probe/active.sh.j2). The probe reads it with gpuready's other records, and ``remove`` deletes it with them.
What a record says is the node's word: it is bounded, and parsed strictly.
"""

import hashlib
import json
import re
import time
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from gpuready.base.documents import read_json
from gpuready.base.errors import brief
from gpuready.base.facts import Facts
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

PATH = "/var/lib/gpuready/last-apply.json"
#: Characters of a record, and of a text in it.
_MOST, _LONGEST = 20_000, 200
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def _time(text: str) -> str:
    if not re.fullmatch("[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}Z", text):
        raise ValueError("not a time such as 2026-11-23T02:40:00Z")
    seconds(text)
    return text


Text = Annotated[str, StringConstraints(max_length=_LONGEST, pattern=r"^[^\x00-\x1f\x7f]*$")]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,40}$")]
Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Outcome = Literal["ok", "changed", "pending", "failed", "skipped"]


class Record(Facts):
    """The last apply that changed the node."""

    format: Literal[1] = Field(1, description="The form of this record.")
    verb: Literal["apply"] = Field("apply", description="The command.")
    time: Annotated[str, AfterValidator(_time)] = Field(description="When it ended, UTC, by the node's clock.")
    gpuready: Text = Field(description="The release of gpuready.")
    spec: Hash = Field(description="The SHA-256 of the values of the merged spec that differ from the defaults.")
    by: Text = Field(description="The user and the host of the controller.")
    boot_id: Text = Field("", description="The boot of the node.")
    driver: Text = Field("", description="The loaded driver; empty: none.")
    partial: bool = Field(False, description="--only or --skip left some components out.")
    components: dict[Name, Outcome] = Field(
        description="What became of each component that was selected; skipped: it does not apply."
    )

    @property
    def outcome(self) -> Literal["failed", "pending", "converged"]:
        """``failed`` or ``pending`` if a component is, else ``converged``."""
        found = self.components.values()
        return "failed" if "failed" in found else "pending" if "pending" in found else "converged"


def spec_hash(spec: NodeSpec) -> str:
    """Return the SHA-256, in hex, of the values of the merged spec that differ from the defaults.

    They are hashed as JSON with sorted keys. So the hash depends neither on the order of keys nor on which file of the
    inventory sets a value. A release that adds a setting does not change it. Secrets are in it as references only.
    """
    values = spec.model_dump(mode="json", exclude_defaults=True)
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def seconds(text: str) -> float:
    """Return the seconds since 1970 of a record's time. Raises ValueError."""
    return datetime.strptime(text, _TIME).replace(tzinfo=timezone.utc).timestamp()


def outcome(applies: bool, *, changed: bool, pending: bool, failed: bool) -> Outcome:
    """Return what became of a component."""
    if failed or pending:
        return "failed" if failed else "pending"
    return "changed" if changed else "ok" if applies else "skipped"


def record(
    spec: NodeSpec,
    state: NodeState,
    components: Iterable[tuple[str, Outcome]],
    *,
    by: str,
    gpuready: str,
    partial: bool,
) -> str:
    """Return the record of an apply as the text of its file. ``state``: the node after it."""
    made = Record(
        time=_now(state),
        gpuready=gpuready,
        spec=spec_hash(spec),
        by=_short(by),
        boot_id=_short(state.boot_id),
        driver=_short(state.driver.loaded),
        partial=partial,
        components=dict(components),
    )
    return made.model_dump_json(indent=1) + "\n"


def _now(state: NodeState) -> str:
    """The node's time, or the controller's if the node printed no valid time."""
    clock = state.clock if 0 < state.clock < 2**36 else time.time()
    return datetime.fromtimestamp(clock, timezone.utc).strftime(_TIME)


def _short(text: str) -> str:
    """The text of a node, short and printable, so that a record can hold it."""
    return "".join(c if c.isprintable() else "?" for c in brief(text, _LONGEST - 10))


def last_record(state: NodeState) -> Record | str | None:
    """Return the node's record, None if it has none, or why it cannot be read."""
    file = state.files.get(PATH)
    if file is None:
        return None
    try:
        return Record.model_validate(read_json(file.text, _MOST), strict=True)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        key = first["loc"][0] if first["loc"] and first["loc"][0] in Record.model_fields else "its keys"
        return f"{PATH} is damaged, or another gpuready release wrote it: {key}: {first['msg'][:100]}"
    except ValueError as e:
        return f"{PATH} is damaged: {brief(str(e), 100)}"

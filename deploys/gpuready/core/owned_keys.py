"""What gpuready wrote into files that it shares with the user, key by key: all else that stands there is theirs.

A record lies in /var/lib/gpuready and says of each file which values a key may have from us. Before the file is
replaced these are the last ones and the new ones, afterwards the new ones alone: so a step that fails or is cut in
between forgets nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuready.core.component import NotComparable
from gpuready.core.documents import read_json
from gpuready.state.model import NodeState

#: File -> key -> values, as JSON has them.
Record = dict[str, dict[str, list[Any]]]


def read(state: NodeState, path: str) -> Record:
    """The record that lies at ``path``, {} without it; raises NotComparable."""
    try:
        found = read_json(state.files[path].text) if path in state.files else {}
        return {file: {key: list(values) for key, values in keys.items()} for file, keys in found.items()}
    except (ValueError, TypeError, AttributeError):
        raise NotComparable(
            f"{path}, the record of gpuready's changes, cannot be read; undo them by hand, then remove {path}"
        ) from None


@dataclass(frozen=True)
class Texts:
    """The record while a step replaces the file, and after that; empty: no record."""

    between: str
    after: str


def texts(old: Record, file: str, stays: Mapping[str, list[Any]], new: Mapping[str, Any]) -> Texts:
    """The record for a step after which a file has ``new`` from us besides what ``stays``."""
    last = old.get(file, {})
    both = {key: [*last.get(key, []), *([new[key]] if key in new else [])] for key in (*last, *new)}
    then = {**stays, **{key: [value] for key, value in new.items()}}
    return Texts(_text(old | {file: both}), _text(old | {file: then}))


def _text(record: Record) -> str:
    kept = {file: keys for file, keys in record.items() if keys}
    return json.dumps(kept) + "\n" if kept else ""

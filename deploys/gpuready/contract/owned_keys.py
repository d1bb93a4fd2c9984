"""Record which keys gpuready wrote into files that it shares with the user. All other keys are the user's.

The record is in /var/lib/gpuready. It lists, for each file and key, the values that gpuready may have written. Before a
step replaces the file, it records the previous and the new values; afterwards, only the new ones. So the record is
right even if the step fails or is interrupted.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuready.base.documents import read_json
from gpuready.contract.component import NotComparable
from gpuready.model.state import NodeState

#: File -> key -> JSON values.
Record = dict[str, dict[str, list[Any]]]


def read(state: NodeState, path: str) -> Record:
    """Read the record at ``path``; {} if there is none. Raises NotComparable."""
    try:
        found = read_json(state.files[path].text) if path in state.files else {}
        return {file: {key: list(values) for key, values in keys.items()} for file, keys in found.items()}
    except (ValueError, TypeError, AttributeError):
        raise NotComparable(
            f"{path}, the record of gpuready's changes, cannot be read; undo them by hand, then remove {path}"
        ) from None


@dataclass(frozen=True)
class Texts:
    """The record's text before the file is replaced, and after that; empty: no record."""

    between: str
    after: str


def texts(old: Record, file: str, stays: Mapping[str, list[Any]], new: Mapping[str, Any]) -> Texts:
    """Return the record's texts for a step that writes ``new`` to ``file``.

    ``stays``: recorded values that it leaves there.
    """
    last = old.get(file, {})
    both = {key: [*last.get(key, []), *([new[key]] if key in new else [])] for key in (*last, *new)}
    then = {**stays, **{key: [value] for key, value in new.items()}}
    return Texts(_text(old | {file: both}), _text(old | {file: then}))


def _text(record: Record) -> str:
    kept = {file: keys for file, keys in record.items() if keys}
    return json.dumps(kept) + "\n" if kept else ""

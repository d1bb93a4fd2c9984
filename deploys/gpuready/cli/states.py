"""Recorded states: what ``gpuready record`` printed, or one bare NodeState."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from gpuready.base.errors import GpureadyError
from gpuready.cli.documents import read_json
from gpuready.model.state import NodeState
from gpuready.result.model import SCHEMA


class StateError(GpureadyError):
    """A file that holds no states which this release can read."""

    kind = "state"
    exit_code = 5


_REMEDY = "record it again: gpuready record -i INVENTORY > FILE"
_FORMAT = int(NodeState.model_fields["format"].default)


def read_states(path: str, names: Sequence[str]) -> dict[str, NodeState]:
    """States by host name; a bare state belongs to the only host in ``names``. Raises :class:`StateError`."""
    found = read_json(path, StateError, _REMEDY)
    if not isinstance(found, dict):
        raise StateError(f"{path}: a state document is a mapping", remedy=_REMEDY)
    if "schema" not in found:
        if len(names) != 1:
            raise StateError(
                f"{path}: a bare state names no host, and {len(names)} hosts are chosen",
                remedy="choose one: --limit NAME",
            )
        return {names[0]: _state(path, found)}
    if found["schema"] != SCHEMA:
        raise StateError(f"{path}: it is {found['schema']!r}; this gpuready reads {SCHEMA!r}", remedy=_REMEDY)
    hosts = found.get("hosts")
    recorded = {
        name: host["state"]
        for name, host in (hosts.items() if isinstance(hosts, dict) else ())
        if isinstance(host, dict) and "state" in host
    }
    if not recorded:
        raise StateError(f"{path}: contains no state (gpuready record writes states)", remedy=_REMEDY)
    return {name: _state(f"{path}: {name}", state) for name, state in recorded.items() if name in names}


def _state(where: str, value: Any) -> NodeState:
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        given = value.get("format", "none") if isinstance(value, dict) else "none"
        raise StateError(f"{where}: state format {given}; this gpuready reads format {_FORMAT}", remedy=_REMEDY)
    try:
        return NodeState.model_validate(value)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the state"
        raise StateError(f"{where}: {place}: {first['msg']}; another release wrote it", remedy=_REMEDY) from None

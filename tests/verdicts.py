"""Rows of the table of verdicts in tests/contract/test_checks.py: what one check says about one node."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from gpuready.model.state import File, NodeState


class Row(NamedTuple):
    """The check by its id, its status, the node, the ``gpuready:`` block, and a part of the summary."""

    check: str
    status: str
    node: NodeState
    spec: Mapping[str, Any]
    says: str


def row(
    status: str, check: str, says: str, node: NodeState | None = None, spec: Mapping[str, Any] | None = None
) -> Row:
    """A row; without a node, one on which there is nothing; without a spec, its defaults."""
    return Row(check, status, node or NodeState(), spec or {}, says)


passes, warns, fails = partial(row, "pass"), partial(row, "warn"), partial(row, "fail")
skips, is_unknown = partial(row, "skip"), partial(row, "unknown")


def root_file(text: str, mode: int = 0o644) -> File:
    """A file of root's."""
    return File(text=text, mode=mode, uid=0, gid=0, mtime=1)


def root_files(texts: Mapping[str, str]) -> dict[str, File]:
    """Files of root's by their path."""
    return {path: root_file(text) for path, text in texts.items()}

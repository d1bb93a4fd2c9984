"""Rows of verdicts, what one check says about one node, and the nodes that several of them need.

A file ``test_*_verdicts.py`` has its rows in ``VERDICTS``, and ends with ``test_verdict = held(VERDICTS)``;
tests/test_catalogue.py wants each check to pass and to fail in one of them.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any, NamedTuple

import pytest

from gpuready.catalogue import BY_ID
from gpuready.contract.check import Verdict, run_checks
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Driver, File, NodeState, Package, Tool, Unknown
from tests.model.probe_answers import DRIVER

TODAY = date(2026, 11, 21)
GPU = "0000:00:06.0 0x030200 0x2335"
LOADED = {"module_version": DRIVER, "proc_version": DRIVER}
UNREADABLE = Unknown(unknown="it could not be read")
WITHOUT_GPUS = {"hardware": {"gpus": "none"}}
SMOKE = {"verify": {"image": "debian:13"}}


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


def one(id: str, node: NodeState, spec: Mapping[str, Any] | None = None) -> Verdict:
    """The verdict of one check alone, as ``run_checks`` gives it."""
    wanted = NodeSpec.model_validate(spec or {})
    (judged,) = run_checks((BY_ID[id],), wanted, node, "n1", active=True, today=TODAY)
    return judged.verdict


def held(rows: Sequence[Row]) -> Callable[[Row], None]:
    """A test of each row."""

    @pytest.mark.parametrize("row", rows, ids=[f"{row.check}-{row.status}-{n}" for n, row in enumerate(rows)])
    def test_verdict(row: Row) -> None:
        verdict = one(row.check, row.node, row.spec)
        assert (verdict.status, row.says in verdict.summary) == (row.status, True), verdict
        assert "\n" not in verdict.summary
        if row.status == "fail":
            assert verdict.remedy, "a failure without a remedy"

    return test_verdict


def state(driver: Mapping[str, Any] | None = None, **fields: Any) -> NodeState:
    return NodeState(driver=Driver(**(driver or {})), **fields)


def holding(text: str, path: str, driver: Mapping[str, Any] | None = None, **fields: Any) -> NodeState:
    """A node with this one file."""
    return state(driver, files={path: root_file(text)}, **fields)


def having(*commands: str, says: str = "") -> NodeState:
    """A node with these commands, which print this version."""
    return state(tools={name: Tool(path=f"/usr/bin/{name}", version_line=says) for name in commands})


def answered(question: str, out: str, rc: int = 0) -> dict[str, Any]:
    """What one question of the second exec printed."""
    return {question: {"rc": rc, "out": out}}


def package(version: str) -> Package:
    return Package(version=version, arch="amd64")

"""A plugin for pytest: ``pytest --gpuready-inventory hosts.yaml`` runs ``verify``; each check of a host is a test case.

The cases are those of JUnit (:mod:`gpuready.result.junit`): the host itself, its components and its checks. Without the
option, the plugin does nothing, and imports nothing else of gpuready. With xdist, the hosts are verified once: the
workers get the result document.
"""

from __future__ import annotations

import json
import shlex
import warnings
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gpuready.result.cases import Case

_DOCUMENT = pytest.StashKey[str]()
#: Where xdist's workers find the document, which also begins the name of each case.
_NAME = "gpuready"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup(_NAME, "GPU nodes")
    group.addoption(
        "--gpuready-inventory", action="append", default=[], metavar="INVENTORY",
        help="Run gpuready verify on this inventory; each check is a test case. Can be given again.",
    )  # fmt: skip
    group.addoption(
        "--gpuready-arguments", default="", metavar="WORDS",
        help="More arguments of gpuready verify, with =: --gpuready-arguments='--limit train --passive'.",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpuready: a check of a GPU node, which --gpuready-inventory adds.")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand xdist's worker the result."""
    if node.config.option.gpuready_inventory:
        node.workerinput[_NAME] = _document(node.config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the cases, before -k, -m and others choose among the items."""
    if not config.option.gpuready_inventory:
        return
    from gpuready.cli.parts import parts
    from gpuready.result.document import read
    from gpuready.result.junit import suites

    run, _ = read(json.loads(_document(config)), parts())
    for suite in suites(run):
        parent = _Suite.from_parent(session, name=suite.name, nodeid=f"{_NAME}::{suite.name}")
        added = [_Item.from_parent(parent, name=case.name, case=case) for case in suite.cases]
        config.hook.pytest_collectreport(report=pytest.CollectReport(parent.nodeid, "passed", None, [*added]))
        items += added


def _document(config: pytest.Config) -> str:
    """The result of ``verify``, which runs once. UsageError if it could not be done."""
    worker = getattr(config, "workerinput", {})
    if _NAME in worker:
        return str(worker[_NAME])
    if _DOCUMENT not in config.stash:
        from gpuready.api import DocumentError, document_of

        chosen = [word for inventory in config.option.gpuready_inventory for word in ("-i", inventory)]
        try:
            found = document_of("verify", *chosen, *shlex.split(config.option.gpuready_arguments))
        except (ValueError, DocumentError) as e:
            raise pytest.UsageError(f"gpuready verify: {e}") from None
        if error := found["error"]:
            fix = f"; fix: {error['remedy']}" if error["remedy"] else ""
            raise pytest.UsageError(f"gpuready verify: {error['message']}{fix}")
        config.stash[_DOCUMENT] = json.dumps(found)
    return config.stash[_DOCUMENT]


class _Suite(pytest.Collector):
    """A host."""

    def collect(self) -> list[pytest.Item]:
        return []


class _Wrong(Exception):
    """The case failed; the text says why."""


class _Item(pytest.Item):
    """A case, whose result is known before pytest runs it."""

    def __init__(self, *, case: Case, **given: Any) -> None:
        super().__init__(**given)
        self.case = case
        self.add_marker(_NAME)

    def runtest(self) -> None:
        case = self.case
        if case.kind == "skipped":
            pytest.skip(case.message)
        if case.kind:
            lines = (case.text or case.message).splitlines()
            more = (line for line in case.output.splitlines() if not line.endswith(f": {case.message}"))
            raise _Wrong("\n".join(dict.fromkeys((*lines, *more))))
        if case.message:
            warnings.warn(pytest.PytestWarning(case.message), stacklevel=1)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, _Wrong) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, None, str]:
        assert self.parent is not None
        return self.path, None, f"{self.parent.name}: {self.name}"  # as the end of its nodeid, -v would change the dots

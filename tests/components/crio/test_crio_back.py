"""What ``gpuready remove`` makes of CRI-O's drop-in, by the record of it."""

from __future__ import annotations

from typing import Any

from gpuready.components.crio.component import Crio
from gpuready.components.crio.files import DROP_IN
from gpuready.core.compare import Comparison, compare
from gpuready.core.ledger import KEPT
from tests.components.cases import Case, spec_of, state_of

OURS = '[crio.runtime.runtimes.nvidia]\nruntime_path = "/usr/bin/nvidia-container-runtime"\n'


def back(**files: Any) -> Comparison:
    named = {"drop_in": DROP_IN, "absent": f"{KEPT}{DROP_IN}.absent", "ours": f"{KEPT}{DROP_IN}.ours"}
    state = {"files": {named[name]: text for name, text in files.items()}}
    case = Case("crio", "here", "", {"state": state})
    return compare(Crio(), spec_of(case), state_of(case), original=True)


def recorded(text: str) -> str:
    case = Case("crio", "here", "", {"state": {"files": {DROP_IN: text}}})
    return f"{state_of(case).files[DROP_IN].sha256}\n"


def test_ours_goes() -> None:
    found = back(drop_in=OURS, absent="", ours=recorded(OURS))
    assert [(c.key, c.actual, c.expected) for c in found.diff] == [(f"crio.files.{DROP_IN}", "gpuready's", None)]


def test_one_that_was_never_ours_stays() -> None:
    assert not back(drop_in=OURS).applies


def test_one_that_was_edited_since_holds_the_toolkit_back_while_it_names_the_runtime() -> None:
    edited = back(drop_in=f"{OURS}x = 1\n", absent="", ours=recorded(OURS))
    assert "was edited after gpuready wrote it; take the runtime nvidia out of it first" in edited.error
    assert not back(drop_in="[crio.runtime]\npids_limit = 1\n", absent="", ours=recorded(OURS)).error

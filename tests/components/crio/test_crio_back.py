"""What ``gpuready remove`` makes of CRI-O's drop-in, by the record of it."""

from typing import Any

from gpuready.base.facts import KEPT
from gpuready.components.crio.component import Crio
from gpuready.components.crio.files import DROP_IN
from gpuready.contract.compare import Comparison, compare
from gpuready.contract.removal import Removal
from tests.components.cases import node_of

OURS = '[crio.runtime.runtimes.nvidia]\nruntime_path = "/usr/bin/nvidia-container-runtime"\n'


def back(**files: Any) -> Comparison:
    named = {"drop_in": DROP_IN, "absent": f"{KEPT}{DROP_IN}.absent", "ours": f"{KEPT}{DROP_IN}.ours"}
    state = {"files": {named[name]: text for name, text in files.items()}}
    return compare(Removal(Crio()), *node_of("crio", {}, state))


def recorded(text: str) -> str:
    return f"{node_of('crio', {}, {'files': {DROP_IN: text}})[1].files[DROP_IN].sha256}\n"


def test_remove_deletes_our_drop_in() -> None:
    found = back(drop_in=OURS, absent="", ours=recorded(OURS))
    assert [(c.key, c.actual, c.expected) for c in found.diff] == [(f"crio.files.{DROP_IN}", "gpuready's", None)]


def test_remove_keeps_a_drop_in_that_is_not_ours() -> None:
    assert not back(drop_in=OURS).applies


def test_an_edited_drop_in_blocks_remove_while_it_names_the_runtime() -> None:
    edited = back(drop_in=f"{OURS}x = 1\n", absent="", ours=recorded(OURS))
    assert "was edited after gpuready wrote it; remove the runtime nvidia from it first" in edited.error
    assert not back(drop_in="[crio.runtime]\npids_limit = 1\n", absent="", ours=recorded(OURS)).error

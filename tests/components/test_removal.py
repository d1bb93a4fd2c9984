"""``remove`` after ``apply``, in every case of every folder, on the model of the node (closing.py).

What was there before is there again, what the user wrote since stays, and a run that was cut is continued.
"""

import pytest

from gpuready.base.facts import KEPT
from gpuready.contract.compare import Comparison, compare
from gpuready.contract.component import Component
from gpuready.contract.removal import Removal
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from tests.components.cases import KEYS, Case, cases, spec_of, state_of
from tests.components.closing import after, close, taken_back, with_text
from tests.components.test_components import COMPONENTS

#: gpuready's own records, which the component ``ledger`` removes in the end.
RECORDS = "/var/lib/gpuready/"
#: Cases whose change remove does not undo in one run, and why.
OPEN = {
    "docker/default-runtime: asked for, instead of another one": "dockerd would not start with the one from before",
    "docker/default-runtime: a value that is no text is shown as it stands there": "dockerd would not start with it",
    "docker/cdi: a stopped engine gets the file alone": "nobody can ask the engine",
    "docker/engine: a stopped engine gets the file alone": "nobody can ask the engine",
    "docker/shm-size: a number of bytes, instead of a size that dockerd would not take": "nobody can ask the engine",
    "rdma/cmdline: a command line that says otherwise is overruled, because it beats every file": "the running mode",
    "rdma/cmdline: boot entries that differ are brought together": "the running mode",
}
#: Parts of titles of cases with files that do not become what they were, and why.
STAY = {
    "cdi/spec": "a toolkit that was there before needs a spec",
    "so that CRI is not served": "the runtime runc, without which there is no CRI",
    "as before the package is there": "config.toml, which becomes empty",
    "whose path is no text": "dockerd does not start with it",
    "null is no runtime": "an entry of null is no entry",
    "nvidia itself without a path": "dockerd does not start with it",
    "a number, which equals true": "it becomes a text",
}
CASES = [
    case
    for case in cases()
    if case.data.get("diff") and not {"error", "stays_open"} & set(case.data) and str(case) not in OPEN
]


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUREADY_TEST_PROXY", "http://user:hunter2@proxy.example:3128")
    monkeypatch.setenv("GPUREADY_TEST_PLAIN_PROXY", "http://proxy.example:3128")


def removal(component: Component, spec: NodeSpec, state: NodeState) -> Comparison:
    return compare(Removal(component), spec, state)


def applied(case: Case) -> tuple[Component, NodeSpec, NodeState, NodeState]:
    """The component, its spec, and the node before and after ``apply``."""
    component, spec, before = COMPONENTS[case.component], spec_of(case), state_of(case)
    key = (KEYS / case.data["fetches"]).read_bytes() if "fetches" in case.data else b""
    diff = compare(component, spec, before).diff
    closed = close(component, spec, before, diff, case.data.get("staged", ""), key)
    return component, spec, before, after(component, spec, before, closed)


def theirs(state: NodeState) -> dict[str, str]:
    """The files but for gpuready's records, without lines that are empty."""
    files = {path: file.text for path, file in state.files.items() if not path.startswith(RECORDS)}
    return {path: "\n".join(filter(None, text.split("\n"))) for path, text in files.items()}


def untouched(case: Case) -> bool:
    """Whether nothing on the case's node is gpuready's yet."""
    return not any("gpuready" in f"{path} {file.text}" for path, file in state_of(case).files.items())


def test_no_case_is_named_that_is_not_there() -> None:
    assert set(OPEN) <= set(map(str, cases()))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_remove_comes_to_an_end_and_touches_only_what_apply_wrote(case: Case) -> None:
    component, spec, before, done = applied(case)
    found = removal(component, spec, done)
    assert found.error == ""
    left = taken_back(component, spec, done)[0] if found.diff else done
    again = removal(component, spec, left)
    assert (again.diff, again.error) == ((), ""), "a second run would find something to remove"
    was, now, then = theirs(before), theirs(done), theirs(left)
    for path in {*now, *then}:
        ours = was.get(path) != now.get(path) or f"{KEPT}{path}.ours" in done.files or "gpuready" in path
        assert now.get(path) == then.get(path) or ours, f"{path} is not gpuready's"
    if untouched(case) and not any(part in str(case) for part in STAY):
        assert theirs(left) == theirs(before)


@pytest.mark.parametrize("case", [case for case in cases() if untouched(case)], ids=str)
def test_remove_finds_nothing_on_a_node_that_gpuready_never_changed(case: Case) -> None:
    component = COMPONENTS[case.component]
    found = removal(component, spec_of(case), state_of(case))
    assert (found.applies, found.diff, found.error) == (False, (), "")


@pytest.mark.parametrize("case", [case for case in CASES if untouched(case)], ids=str)
def test_remove_keeps_what_somebody_added_to_a_file_since(case: Case) -> None:
    """A file that is gpuready's by its name goes nevertheless, and a refusal changes nothing."""
    component, spec, _, done = applied(case)
    for path, file in done.files.items():
        shared = f"{KEPT}{path}.ours" in done.files and "gpuready" not in path and not path.endswith(".json")
        if shared:
            edited = with_text(done, path, f"# mine\n{file.text}")
            found = removal(component, spec, edited)
            left = taken_back(component, spec, edited)[0] if found.diff and not found.error else edited
            assert left.text(path).startswith("# mine\n"), path


@pytest.mark.parametrize("case", CASES, ids=str)
def test_remove_continues_where_the_files_are_back_and_the_records_are_not_gone(case: Case) -> None:
    component, spec, _, done = applied(case)
    if removal(component, spec, done).diff:
        left, _ = taken_back(component, spec, done)
        records = {path: file for path, file in done.files.items() if path.startswith(RECORDS)}
        cut = left.model_copy(update={"files": left.files | records})
        found = removal(component, spec, cut)
        assert found.error == ""
        again = taken_back(component, spec, cut)[0] if found.diff else cut
        assert theirs(again) == theirs(left)
        found = removal(component, spec, again)
        assert (found.diff, found.error) == ((), "")

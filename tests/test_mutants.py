"""The list of ./dev mutants is about the code as it is."""

import shlex

import pytest

from tests import mutants

TABLE = mutants.table()


@pytest.mark.parametrize("name", TABLE.changes)
def test_a_change_of_the_list_fits_the_code_and_names_a_test(name: str) -> None:
    change = TABLE.changes[name]
    place = mutants.ROOT / change.file.replace("src/", "deploys/", 1)
    assert place.read_text("utf-8").count(change.old) == 1 and change.old != change.new
    file, _, words = shlex.split(change.test)
    assert "def test_" in (text := (mutants.ROOT / file).read_text("utf-8")) and words in text


def test_modules_and_their_tests_are_there_and_survivors_belong_to_a_target() -> None:
    for module, tests in TABLE.modules.items():
        assert (mutants.ROOT / "deploys/gpuready" / module).is_file()
        assert all((mutants.ROOT / file).is_file() for file in shlex.split(tests) if file.endswith(".py"))
    assert {*TABLE.survivors} <= {*TABLE.targets([])}
    assert all(means for survivors in TABLE.survivors.values() for means in survivors.values())


def test_a_survivor_is_described_by_what_it_changes() -> None:
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n def f():\n-    return 1\n+    return 2\n"
    assert mutants.description("gpuready.x.x__f__mutmut_12", diff) == "_f: return 1 -> return 2"
    assert mutants.description("gpuready.x.xǁKǁ_f__mutmut_1", diff) == "K._f: return 1 -> return 2"

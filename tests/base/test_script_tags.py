"""The tags of script templates."""

import jinja2
import pytest

from gpuready.base import resources
from gpuready.contract.ledger import Put


def rendered(source: str, **values: object) -> str:
    return resources._environment(script=True).from_string(source).render(**values)


def test_arguments_are_variables_of_the_shell() -> None:
    values = {"path": "/a b", "write": True, "content": b"x\n", "limit": 5, "none": ""}
    text = rendered("begin\n{% arguments path write content limit none %}\nend", **values)
    assert text == "begin\nPATH='/a b'\nWRITE=1\nCONTENT=eAo=\nLIMIT=5\nNONE=''\nend"


def test_a_function_is_called_for_each_item() -> None:
    puts = [Put("/a b", "absent", b"x\n"), Put("/$c", "hash", b"")]
    assert rendered("{% each puts put path before content %}\n", puts=puts) == (
        "put '/a b' absent eAo=\nput '/$c' hash ''\n"
    )
    assert rendered("{% each puts put path %}\nend", puts=()) == "end"


@pytest.mark.parametrize("source", ["{% arguments path %}", "{% each path same before %}"])
def test_a_missing_value_is_an_error(source: str) -> None:
    with pytest.raises(jinja2.UndefinedError):
        rendered(source)

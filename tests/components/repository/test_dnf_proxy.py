"""The proxy in dnf's .repo file: what dnf would read as something else is refused, in the plan alone."""

import pytest

from gpuready.components.repository.source import DnfSource
from gpuready.contract.component import NotComparable
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState


def spec(proxy: str) -> NodeSpec:
    return NodeSpec.model_validate({"toolkit": {"repo": {"proxy": proxy}}})


@pytest.mark.parametrize("password", ["a$b", "a%24b", "%20a", "a%20", "a%5Cb", "a%0Ab", "None", "_none_"])
def test_a_value_that_dnf_reads_otherwise_is_refused_in_the_plan_alone(
    monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setenv("GPUREADY_TEST_ODD", f"http://user:{password}@proxy.example:3128")
    odd = spec("env:GPUREADY_TEST_ODD")
    with pytest.raises(NotComparable, match=r"toolkit\.repo\.proxy: dnf cannot use"):
        DnfSource().expected(odd)
    assert DnfSource().actual(odd, NodeState())["repository.proxy"] is None


@pytest.mark.parametrize(
    ("proxy", "written"),
    [
        ("http://proxy.example", "http://proxy.example:80"),
        ("https://proxy.example/", "https://proxy.example:443"),
        ("http://[fd00::1]", "http://[fd00::1]:80"),
        ("http://proxy.example:3128/", "http://proxy.example:3128"),
    ],
)
def test_the_port_is_written_out(proxy: str, written: str) -> None:
    assert DnfSource().expected(spec(proxy))["repository.proxy"] == f"proxy={written}"
    assert DnfSource().setting(spec(proxy), "") == f'proxy = "{written}"'

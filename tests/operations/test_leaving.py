"""What a drain reads of kubectl's output: who is still there, and why it failed."""

from pathlib import Path

import pytest

from gpuready.operations.drain import Leaving

#: What kubectl 1.20, 1.32 and 1.36 print, each by the Debian that has it; tests/kubernetes/test_drain.py records it.
RECORDED = Path(__file__).parents[1] / "data/kubectl"


def test_output_of_any_size_and_kind_stays_bounded() -> None:
    leaving = Leaving()
    for n in range(5000):
        leaving.read(f"evicting pod ns/pod-{n}")
    leaving.read("evicting pod ns/\x1b[31mred")
    leaving.read("x" * 100_000)
    assert len(leaving._pods) == 1000 and "\x1b" not in str(leaving)
    assert str(leaving).endswith("ns/pod-4, 995 more")
    assert all(len(line) <= 320 for line in leaving.messages)


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.txt")), ids=lambda path: path.stem)
def test_what_kubectl_prints(path: Path) -> None:
    """In a drain that a budget holds until the time is over, and in one that ends well."""
    held, over = path.read_text("utf-8").split("exit 1\n")
    leaving = Leaving()
    for line in held.splitlines():
        leaving.read(line)
    assert str(leaving) == "default/web-x7k2p (its disruption budget)"
    assert all(line.startswith("error") for line in leaving.messages), leaving.messages
    assert "global timeout reached" in leaving.messages[-1]
    leaving = Leaving()
    for line in over.removesuffix("exit 0\n").splitlines():
        leaving.read(line)
    assert (str(leaving), [*leaving.messages]) == ("", [])


def test_the_output_of_a_kubectl_without_namespaces() -> None:
    leaving = Leaving()
    refused = 'error when evicting pod "b" (will retry after 5s): it would violate the disruption budget'
    for line in ('evicting pod "a"', 'evicting pod "b"', refused, "pod/a evicted"):
        leaving.read(line)
    assert str(leaving) == "b (its disruption budget)"

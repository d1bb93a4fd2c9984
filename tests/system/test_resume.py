"""A controller that is killed in the middle of a rollout, and the run that does the rest of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab, Machine
from tests.system.faults import hold_dpkg, idle, installations, let_go, lock_is_free, until
from tests.system.harness import Gpuready, Inventories, Result, Sessions

BOOK = "/var/tmp/book"
MAINTENANCE = {
    "restart": "drained",
    "drain": {"before": f"echo before >>{BOOK}", "after": f"echo after >>{BOOK}"},
}


@pytest.fixture(scope="module")
def three(lab: Lab) -> Iterator[list[Machine]]:
    with lab.machine("debian13") as a, lab.machine("debian12") as b, lab.machine() as c:
        yield [a, b, c]


def outcomes(result: Result) -> list[str]:
    return [host["outcome"] for host in result.document["hosts"].values()]


def book(machine: Machine) -> list[str]:
    return (machine.root / BOOK.lstrip("/")).read_text("utf-8").split()


@pytest.mark.promise
@pytest.mark.fault("controller-killed")
def test_resume_does_the_rest_and_brings_back_what_was_left_drained(
    three: list[Machine], gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    a, b, c = three
    where, state = inventory(three, maintenance=MAINTENANCE), tmp_path / "state"
    words = ("apply", "--yes", "--batch", "1", "--state-dir", str(state))
    held = hold_dpkg(b)
    process = gpuready.start(*words, inventory=where)
    until(held.exists, 120)
    process.kill()
    process.communicate()
    let_go(b)
    until(lambda: idle(b) and lock_is_free(b), 60)
    assert (book(a), book(b)) == (["before", "after"], ["before"])
    b.run("test -e /var/lib/gpuready/drained")
    lines: list[dict[str, Any]] = [json.loads(line) for line in (state / "apply.jsonl").read_text("utf-8").splitlines()]
    assert [(line["host"], line["begun"]) for line in lines] == [(a.name, True), (a.name, False), (b.name, True)]

    sessions = Sessions(a)
    result = gpuready(*words, "--resume", inventory=where, code=0)
    assert outcomes(result) == ["changed"] * 3, result.explain()
    assert result.host(a.name)["earlier"] == lines[1]["time"] and "toolkit" in result.changed(a.name)
    assert sessions.count() == 0
    assert (book(a), book(b)[-1], book(c)) == (["before", "after"], "after", ["before", "after"])
    assert [installations(machine) for machine in three] == [1, 1, 1]
    assert "node.drained" in result.checks("pass", host=b.name)

    again = gpuready(*words, "--resume", inventory=where, code=0)
    assert outcomes(again) == ["changed"] * 3 and all(host["earlier"] for host in again.document["hosts"].values())
    fresh = gpuready(*words, inventory=where, code=0)
    assert outcomes(fresh) == ["ok"] * 3, fresh.explain()

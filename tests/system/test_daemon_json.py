"""Every daemon.json that a user may have: taken over whole and given back as it was, or left alone with one clear
message.

Several machines of both distributions go through the table side by side, a row each, converged by one run; so one
host's broken file also meets other hosts' good ones in the same run. What becomes of a file is seldom a matter of the
engine, so the rows take turns with both engines; one that only one of them starts with meets both. Each row's test
then judges what was recorded.
"""

import copy
import itertools
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab
from tests.system import daemon_json_cases
from tests.system.daemon_json_cases import BOTH, Case
from tests.system.daemon_json_shapes import SHAPES
from tests.system.docker_node import ALIASES, DAEMON_JSON, DOCKERD, VERSIONS, DockerNode, Seen, exec_start
from tests.system.faults import extended
from tests.system.harness import Gpuready, Inventories, Result

Row = tuple[Case, str]


def _rows(cases: Iterable[Case]) -> list[Row]:
    """Each with its engine, by the distribution that has it."""
    turns = itertools.cycle(BOTH)
    return [(case, distro) for case in cases for distro in ([next(turns)] if case.starts == BOTH else BOTH)]


CONVERGED, ERRORS = _rows((*daemon_json_cases.CONVERGED, *SHAPES)), _rows(daemon_json_cases.ERRORS)
#: Machines of each distribution; so many cases are converged at a time.
WIDTH = 2
# Hosts one after another are what other tests are about.
_APPLY = ("apply", "--yes", "--batch", "100%")
_REMOVE = ("remove", "--yes", "--batch", "100%", "--only", "docker")
#: What a case goes through, one run of the command line each; one that is refused sees the first only.
ROUND = (_APPLY, _APPLY, _REMOVE, _REMOVE)


@dataclass(frozen=True)
class Record:
    """One case on one engine: what was there before, then each run and what it left."""

    host: str
    before: Seen
    runs: tuple[Result, ...]
    seen: tuple[Seen, ...]


class Table:
    """Runs the rows in groups, when the first of a group is asked for, and keeps what was seen."""

    def __init__(self, nodes: dict[str, list[DockerNode]], gpuready: Gpuready, inventory: Inventories) -> None:
        self.nodes, self.gpuready, self.inventory = nodes, gpuready, inventory
        self.records: dict[tuple[str, str], Record] = {}

    def record(self, case: Case, distro: str) -> Record:
        """That case on that engine."""
        if (case.name, distro) not in self.records:
            self._run(ERRORS if case.error else CONVERGED)
        return self.records[case.name, distro]

    def _run(self, rows: list[Row]) -> None:
        """The next ones of each engine."""
        left = {
            at: [case for case, distro in rows if distro == at and (case.name, at) not in self.records] for at in BOTH
        }
        pairs = [(case, node) for distro in BOTH for case, node in zip(left[distro], self.nodes[distro], strict=False)]
        inventory = self._inventory(pairs)
        with ThreadPoolExecutor() as pool:
            before = list(pool.map(self._prepare, pairs))
            runs, seen = [], []
            for words in ROUND[:1] if rows is ERRORS else ROUND:
                runs.append(self.gpuready(*words, inventory=inventory))
                seen.append(list(pool.map(lambda pair: pair[1].look(), pairs)))
        for (case, node), was, *left in zip(pairs, before, *seen, strict=True):
            self.records[case.name, node.distro] = Record(node.name, was, tuple(runs), tuple(left))

    @staticmethod
    def _prepare(pair: tuple[Case, DockerNode]) -> Seen:
        case, node = pair
        command = f"{case.dockerd} {case.flags}".strip()
        drop_in = exec_start(command) if command != DOCKERD else ""
        node.prepare(case.content, case.arrange, drop_in, node.distro in case.starts, reuse=bool(case.error))
        return node.look()

    def _inventory(self, pairs: list[tuple[Case, DockerNode]]) -> Path:
        path = self.inventory([node.machine for _, node in pairs])
        return extended(path, {node.name: {"gpuready": dict(case.spec)} for case, node in pairs})


@pytest.fixture(scope="module")
def table(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Table]:
    """The machines, with all but Docker converged."""
    with ExitStack() as stack:
        made = [(distro, stack.enter_context(lab.machine(distro))) for distro in BOTH for _ in range(WIDTH)]
        nodes = {distro: [DockerNode(machine) for d, machine in made if d == distro] for distro in BOTH}
        done = gpuready(*_APPLY, "--skip", "docker", inventory=inventory([machine for _, machine in made]))
        assert not any(done.host(machine.name)["error"] for _, machine in made), done.explain()
        yield Table(nodes, gpuready, inventory)


def each(rows: list[Row]) -> pytest.MarkDecorator:
    names = [f"{case.name}-docker-{VERSIONS[distro]}" for case, distro in rows]
    return pytest.mark.parametrize(("case", "distro"), rows, ids=names)


def _with(document: Any, ours: dict[str, object]) -> Any:
    """The user's document with our keys: the expectation, made without gpuready's own merge."""
    want = copy.deepcopy(document)
    for key, value in ours.items():
        at, path = want, key.split(".")
        for name in path[:-1]:
            at[name] = at.get(name) or {}
            at = at[name]
        at[path[-1]] = value
    return want


def _undisturbed(record: Record, seen: Seen) -> None:
    """The engine was not restarted, it answers, and the container from before runs on."""
    assert seen.unit == record.before.unit
    assert seen.before == record.before.before
    assert seen.before["Running"]
    assert seen.info["Containers"] == record.before.info["Containers"], "a container of ours was left behind"


@pytest.mark.fault("daemon-json-link")
@each(CONVERGED)
def test_converged(table: Table, case: Case, distro: str) -> None:
    record = table.record(case, distro)
    before, (after, again, *_) = record.before, record.seen
    applied, settled, *_ = record.runs
    first, second = applied.host(record.host), settled.host(record.host)
    starts = distro in case.starts
    assert first["error"] is None, applied.explain()
    assert first["outcome"] == ("changed" if case.ours or not starts else "ok"), applied.explain()

    assert after.document == _with(before.document, dict(case.ours))
    assert list(after.document)[: len(before.document)] == list(before.document), "the user's order of keys"
    assert (after.link, after.path) == (before.link, before.path or DAEMON_JSON)
    assert after.mode == (before.mode or ["644", "root:root"])
    if before.content and b"\r\n" in before.content and b"\r" not in before.content.replace(b"\r\n", b""):
        assert after.content and after.content.count(b"\n") == after.content.count(b"\r\n")
    assert after.beside.split() == sorted({*before.beside.split(), after.path.rpartition("/")[2]}), "leftovers"
    if not case.ours:
        assert after.file == before.file
        assert after.backup == {}
    else:
        kept = {"absent": b""} if before.content is None else {"original": before.content, "last": before.content}
        assert after.backup == kept

    assert "nvidia" in after.info["Runtimes"]
    if starts:
        assert after.differs(before) <= _managed(case)
    if first["outcome"] == "changed":
        assert {"docker.runtime", "docker.smoke"} <= applied.checks("pass", host=record.host)
    _undisturbed(record, after)

    assert (second["outcome"], second["execs"]) == ("ok", 1), settled.explain()
    assert again.file == after.file
    assert again.differs(after) == set()
    _undisturbed(record, again)


@pytest.mark.fault("daemon-json-link")
@each(CONVERGED)
def test_given_back(table: Table, case: Case, distro: str) -> None:
    record = table.record(case, distro)
    before, (_, converged, left, settled) = record.before, record.seen
    *_, removed, again = record.runs
    assert removed.code == 0, removed.explain()
    assert removed.host(record.host)["outcome"] == ("changed" if case.ours else "ok"), removed.explain()

    assert left.content == before.content
    assert left.mode == before.mode
    assert (left.link, left.path, left.beside) == (before.link, before.path or DAEMON_JSON, before.beside)
    assert left.backup == {}
    if not case.ours:
        assert left.file == before.file
        assert left.differs(converged) == set()
    else:
        # What the user had written and the engine never read came in with the first apply, and stays.
        theirs = set() if distro in case.starts else converged.differs(before) - _managed(case)
        assert left.differs(before) <= theirs | (ALIASES if distro == "debian12" else set())
    _undisturbed(record, left)

    second = again.host(record.host)
    assert (again.code, second["outcome"], second["execs"]) == (0, "ok", 1), again.explain()
    assert settled.file == left.file
    assert settled.differs(left) == set()
    _undisturbed(record, settled)


def _managed(case: Case) -> set[str]:
    """What `docker info` may say anew; of the size of /dev/shm it says nothing."""
    names = {"live-restore": "LiveRestoreEnabled", "default-runtime": "DefaultRuntime"}
    return {"Runtimes.nvidia"} | ALIASES | {names[key] for key in case.ours if key in names}


@pytest.mark.parametrize("entry", ['"default-runtime": "nvidia", "runtimes": {}', '"runtimes": {"nvidia": {}}'])
def test_a_docker_that_did_not_start_does_so_after_remove(table: Table, entry: str) -> None:
    """The node was configured by half; the plan of remove names what does not come back."""
    node = table.nodes["debian13"][0]
    content = f'{{"debug": true, {entry}}}'.encode()
    node.prepare(content, "systemctl restart docker.service || true", starts=False, run=False)
    assert "active" not in node.look().unit.split()
    inventory = table.inventory([node.machine])
    applied = table.gpuready(*_APPLY, inventory=inventory)
    assert applied.host(node.name)["outcome"] == "changed", applied.explain()
    restart = "systemctl reset-failed docker.service docker.socket; systemctl restart docker.service"
    node.sh(restart)
    assert "nvidia" in node.look().info["Runtimes"]
    removed = table.gpuready(*_REMOVE, inventory=inventory)
    assert removed.code == 0, removed.explain()
    said = " ".join(removed.component("docker", node.name)["notes"])
    assert ("default-runtime: nvidia is removed, too" if "default" in entry else "runtimes.nvidia had no path") in said
    node.sh(restart)
    seen = node.look()
    assert seen.document == {"debug": True}
    assert (seen.info["DefaultRuntime"], "nvidia" in seen.info["Runtimes"]) == ("runc", False)


@each(ERRORS)
def test_refused(table: Table, case: Case, distro: str) -> None:
    record = table.record(case, distro)
    (result,), before, (after,) = record.runs, record.before, record.seen
    assert result.code == 1
    assert result.host(record.host)["outcome"] == "failed", result.explain()
    message = result.component("docker", record.host)["error"]["message"]
    assert re.search(case.error, message), message
    assert "/etc/docker/daemon.json" in message
    assert "\n" not in message
    assert len(message) < 800
    assert after.file == before.file
    assert after.differs(before) == set()
    assert after.backup == {}
    _undisturbed(record, after)

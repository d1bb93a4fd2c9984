"""The verbs around nodes that only play back: asking before apply, options, interrupts, signals."""

import contextlib
import io
import itertools
import json
import shlex
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import click
import pytest

from gpuready.base.errors import ConvergeError, LockedError
from gpuready.cli.app import run
from gpuready.cli.request import request
from gpuready.contract.check import Level, passed, skip
from gpuready.contract.rollout import Share
from gpuready.operations.events import Event
from gpuready.result.model import CheckResult, Error, HostResult, Run
from tests.command import Exits, write_hosts
from tests.lab import scale
from tests.report.test_report_runs import DOCKER, LDCACHE, SAME, STATE, STUB, check, component, host
from tests.report.test_report_runs import run as run_of

Play = Callable[[str], Run]
#: What is observed: scripts of two hosts at the same time.
EVENTS = (
    Event("lab1", "connect", 0.1),
    Event("lab1", "probe", 0.25, 20_000, 3_000),
    Event("laboratory2", "probe", 0.5, 20_000, 4_000),
    Event("lab1", "lock", 1.0, 10, 20),
    Event("lab1", "step docker", 2.0, 500, 60),
)


class Nodes:
    """Stands for a fleet and what is done with it: remembers what it was asked, and gives what ``play`` says."""

    def __init__(self, play: Play) -> None:
        self.asked: list[Any] = []
        self._play = play

    def fleet(self, entries: object, access: Any, progress: Callable[[str, str], None]) -> Any:
        """As run.fleet.Fleet."""
        progress("lab1", "connect")
        if access.observer is not None:
            for event in EVENTS:
                access.observer(event)
        return types.SimpleNamespace(**vars(access))

    def work(self, verb: str) -> Callable[..., Run]:
        """As a function of run.converge."""

        def done(fleet: Any, **options: Any) -> Run:
            self.asked.append(types.SimpleNamespace(**{**vars(fleet), "verb": verb, **options}))
            return self._play(self.asked[-1].verb)

        return done


Played = Callable[[Play], Nodes]


@pytest.fixture
def hosts(tmp_path: Path) -> str:
    return write_hosts(tmp_path, "all: {hosts: {lab1: {gpuready: {}}}}\n")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    """Install nodes that play back."""

    def install(play: Play) -> Nodes:
        nodes = Nodes(play)
        fleet, converge = types.ModuleType("gpuready.run.fleet"), types.ModuleType("gpuready.run.converge")
        vars(fleet).update(Access=types.SimpleNamespace, Fleet=nodes.fleet)
        vars(converge).update({verb: nodes.work(verb) for verb in ("plan", "apply", "verify")})
        for module in (fleet, converge):
            monkeypatch.setitem(sys.modules, module.__name__, module)
            monkeypatch.setattr(module.__name__, module, raising=False)
        return nodes

    return install


def differing(verb: str) -> Run:
    """What plan finds on lab1, and what apply makes of it."""
    if verb == "apply":
        return run_of("apply", host("lab1", "changed", component(DOCKER, changed=True)))
    return run_of(verb, host("lab1", "would_change", component(DOCKER), checks=(LDCACHE, STUB)))


Answer = Callable[[bool | type[Exception]], None]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """A terminal at which somebody gives this answer."""

    def give(what: bool | type[Exception]) -> None:
        monkeypatch.setattr("gpuready.cli.change._terminal", lambda: True)
        monkeypatch.setattr(click, "confirm", Mock(side_effect=itertools.repeat(what)))

    return give


def test_apply_shows_the_plan_and_goes_on_after_yes(hosts: str, played: Played, answer: Answer, exits: Exits) -> None:
    nodes = played(differing)
    answer(True)
    told = exits(0, "apply", "-i", hosts, "--allow-disruption", "reload")
    assert [asked.verb for asked in nodes.asked] == ["plan", "apply"]
    assert nodes.asked[1].allowed.name == "reload"
    assert "docker: would change on lab1" in told.err
    assert "docker: changed on lab1" in told.out and "would change" not in told.out


def test_a_shard_may_use_its_part_of_a_budget(played: Played, exits: Exits, tmp_path: Path) -> None:
    nodes = played(differing)
    hosts = write_hosts(tmp_path, "all: {hosts: {lab1: {gpuready: {}}, lab2: {gpuready: {}}}}\n")
    for shard in ("1/2", "2/2"):
        exits(0, "apply", "-i", hosts, "--yes", "--shard", shard)
    assert [asked.share for asked in nodes.asked] == [Share(0, 2), Share(1, 2)]


def test_apply_changes_nothing_after_no(hosts: str, played: Played, answer: Answer, exits: Exits) -> None:
    nodes = played(differing)
    answer(False)
    found = exits(7, "apply", "-i", hosts, "--output", "json").document
    assert [asked.verb for asked in nodes.asked] == ["plan"]
    component = found["hosts"]["lab1"]["components"][0]
    assert (found["verb"], component["pending"], component["changed"]) == ("apply", True, False)
    assert component["pending_reason"] == "you answered no"


def test_what_was_shown_before_the_question_is_not_shown_again(
    hosts: str, played: Played, answer: Answer, exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the result goes somewhere else, where it has to stand alone."""
    played(differing)
    answer(False)
    for terminal in (True, False):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)  # noqa: B023
        told = exits(7, "apply", "-i", hosts, "--color", "never")
        assert told.err.count("docker.live-restore: ") == 1
        assert told.out.count("docker.live-restore: ") == (0 if terminal else 1)
        last = "nothing was changed: you answered no; 1 host: 1 declined; exit 7\n"
        assert told.out == last if terminal else told.out.endswith(f"\n{last}")
        assert told.err.count("nothing was changed") == 0 and "next:" not in told.err


def test_remove_speaks_of_removing(
    hosts: str, played: Played, answer: Answer, exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(differing)
    answer(False)
    asked = Mock(return_value=False)
    monkeypatch.setattr(click, "confirm", asked)
    told = exits(7, "remove", "-i", hosts, "--color", "never")
    assert asked.call_args.args == ("Remove gpuready's changes from 1 host?",)
    assert "\nplan of remove: 1 host" in told.err
    dry = exits(0, "remove", "-i", hosts, "--dry-run", "--color", "never").out
    assert dry.startswith("plan of remove: 1 host") and f"next:    gpuready remove -i {hosts}\n" in dry
    allowed = ("--allow-disruption", "reload", "--batch", "1")
    dry = exits(0, "remove", "-i", hosts, "--dry-run", "--color", "never", *allowed).out
    assert f"next:    gpuready remove -i {hosts} {shlex.join(allowed)}\n" in dry


def test_ctrl_c_at_the_question(hosts: str, played: Played, answer: Answer, exits: Exits) -> None:
    played(differing)
    answer(click.Abort)
    found = exits(130, "apply", "-i", hosts, "--output", "json").document
    assert found["error"]["kind"] == "interrupted" and "lab1" in found["hosts"]


def test_nothing_to_change_asks_nothing(hosts: str, played: Played, answer: Answer) -> None:
    nodes = played(lambda verb: run_of(verb, host("lab1", "ok", component(SAME))))
    answer(RuntimeError)
    assert run(["apply", "-i", hosts]) == 0
    assert [asked.verb for asked in nodes.asked] == ["plan"]


@pytest.mark.parametrize(("looks", "last"), [(1, "apply"), (99, "apply"), (0, "record")])
def test_wait_lock_only_looks_while_another_run_changes_the_node(
    looks: int, last: str, hosts: str, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it has ended, or the time is up: then the run says who it is. Ctrl-C while it looks is the end (0)."""
    seen = itertools.count(1)

    def play(verb: str) -> Run:
        if verb != "record":
            return differing(verb)
        made = host("lab1", "ok", checks=())
        made.read(STATE.model_copy(update={"lock": "ada@laptop run=1" if next(seen) <= looks else ""}))
        return run_of(verb, made, interrupted=not looks)

    nodes = played(play)
    slow = types.SimpleNamespace(monotonic=itertools.count(0, 30).__next__, sleep=lambda seconds: None)
    monkeypatch.setattr("gpuready.cli.change.time", slow)
    assert run(["apply", "-i", hosts, "--yes", "--wait-lock", "2m"]) == (0 if looks else 130)
    assert [asked.verb for asked in nodes.asked][-1] == last
    assert len(nodes.asked) == {1: 3, 99: 4, 0: 1}[looks]


def test_hosts_that_another_run_took_first_are_done_when_it_has_ended(
    played: Played, exits: Exits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where two runs begin at the same time. Only those hosts and what was not attempted are done again."""
    hosts = write_hosts(tmp_path, "all: {hosts: {lab1: {gpuready: {}}, lab2: {gpuready: {}}, lab3: {gpuready: {}}}}\n")
    monkeypatch.setattr("gpuready.cli.change._PAUSE", 0)
    locked = host("lab1", "failed", component(DOCKER), error=LockedError("another run", remedy="wait"))
    first = [locked, host("lab2", "changed", component(DOCKER, changed=True)), host("lab3", "not_attempted")]
    second = [host(name, "changed", component(DOCKER, changed=True)) for name in ("lab1", "lab3")]
    tries = itertools.chain([first], itertools.repeat(second))

    def play(verb: str) -> Run:
        if verb == "record":
            return run_of(verb, *(host(name, checks=()) for name in ("lab1", "lab3")))
        made = run_of(verb, *next(tries))
        made.batches = [tuple(each.name for each in made.hosts)]
        return made

    nodes = played(play)
    found = exits(0, "apply", "-i", hosts, "--yes", "--wait-lock", "5m", "--output", "json").document
    assert [asked.verb for asked in nodes.asked] == ["record", "apply", "record", "apply"]
    assert {name: each["outcome"] for name, each in found["hosts"].items()} == dict.fromkeys(found["hosts"], "changed")
    assert found["batches"] == [["lab2"], ["lab1", "lab3"]]
    tries = iter([first])
    exits(1, "apply", "-i", hosts, "--yes")

    broken = host("lab2", "failed", component(DOCKER), error=ConvergeError("broken"))
    for bad, error in (([locked, broken, first[2]], None), (first, Error.of(ConvergeError("--after-batch failed")))):

        def ends(verb: str, bad: list[HostResult] = bad, error: Error | None = error) -> Run:
            return replace(run_of(verb, *([] if verb == "record" else bad)), error=error)

        nodes = played(ends)
        exits(1, "apply", "-i", hosts, "--yes", "--wait-lock", "5m")  # what stopped the run stops it still
        assert [asked.verb for asked in nodes.asked] == ["record", "apply"]
    told = exits(64, "apply", "-i", hosts, "--yes", "--wait-lock", "5m", "--workers", "2").err
    assert "leave it out" in told

    def stopped(verb: str) -> Run:
        """Ctrl-C while it waits: the result still has what was done before."""
        made = run_of(verb, *first, interrupted=verb == "record" and bool(nodes.asked[1:]))
        return made if verb == "apply" else replace(made, hosts=[])

    nodes = played(stopped)
    found = exits(130, "apply", "-i", hosts, "--yes", "--wait-lock", "5m", "--output", "json").document
    assert [asked.verb for asked in nodes.asked] == ["record", "apply", "record"]
    assert found["error"]["kind"] == "interrupted" and found["hosts"]["lab2"]["outcome"] == "changed"


@pytest.mark.parametrize("way", ["--dry-run", "--yes"])
def test_remove_speaks_of_what_was_chosen(way: str, hosts: str, played: Played, exits: Exits) -> None:
    nodes = played(lambda verb: run_of(verb, host("lab1", "ok", checks=())))
    told = exits(0, "remove", "-i", hosts, "--only", "wheels", way)
    assert nodes.asked[0].removing
    assert told.out.splitlines()[-1] == "OK: 1 host without gpuready's wheels"


def test_known_hosts_that_the_run_creates_is_not_called_missing(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yaml"
    reach = f"{{gpuready: {{}}, ansible_ssh_common_args: -o UserKnownHostsFile={tmp_path}/known_hosts}}"
    inventory.write_text(f"all: {{hosts: {{lab1: {reach}}}}}\n")
    given: dict[str, Any] = {
        "inventory": [str(inventory)],
        "limit": [],
        "allow_exec": False,
        "allow_read": [],
        "color": "never",
    }
    for policy, missing in (("strict", True), ("accept-new", False)):
        (entry,) = request("plan", host_keys=policy, **given).entries
        assert any("not there" in note for note in entry.notes) == missing


@pytest.mark.parametrize(
    ("words", "again"),
    [
        (
            "apply -i {0} -y --limit 'lab[1-2]' --batch 1 -vv --output json:{1} --output human",
            "apply -i {0} --yes --batch 1 --verbose --verbose",
        ),
        ("apply -i {0} --shard 1/1 --yes --only docker,toolkit", "apply -i {0} --yes --only docker,toolkit"),
        ("verify -i {0} --level smoke -e hardware.gpus=8", "verify -i {0} --level smoke -e hardware.gpus=8"),
    ],
)
def test_the_command_for_the_failed_hosts_is_whole(words: str, again: str, tmp_path: Path, played: Played) -> None:
    inventory, file = (
        write_hosts(tmp_path, "all: {hosts: {lab1: {gpuready: {}}, lab2: {gpuready: {}}}}"),
        tmp_path / "r",
    )
    error = ConvergeError("broken")
    played(lambda verb: run_of(verb, host("lab1", "ok", checks=()), host("lab2", "failed", error=error, checks=())))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run(shlex.split(words.format(inventory, file))) == 1
    assert f"\nagain:   gpuready {again.format(inventory)} --limit lab2\n" in out.getvalue()


def test_yes_applies_at_once(hosts: str, played: Played) -> None:
    nodes = played(differing)
    assert run(["apply", "-i", hosts, "--yes", "--only", "docker", "--host-keys", "accept-new", "--parallel", "3"]) == 0
    asked = nodes.asked[0]
    assert (asked.verb, asked.selected, asked.host_keys, asked.parallel) == ("apply", {"docker"}, "accept-new", 3)
    assert (asked.allowed.name, asked.batch, asked.max_fail) == ("restart", "", "0")
    assert not asked.removing
    assert run(["apply", "-i", hosts, "--yes", "--batch", "1,25%", "--max-fail", "10%"]) == 0
    assert (nodes.asked[1].batch, nodes.asked[1].max_fail) == ("1,25%", "10%")


SMOKE = check("docker.smoke", passed("a new container runs"), level=Level.smoke)
UNTOUCHED = check("docker.smoke", skip("no Docker on this node"), level=Level.smoke)


@pytest.mark.parametrize(
    ("checks", "words", "note"),
    [
        ([UNTOUCHED], ["--level", "smoke"], "no container was started, because the spec names no verify.image"),
        ([UNTOUCHED], ["--level", "smoke", "-e", "verify.image=app:1"], "no Docker on this node"),
        ([], ["--level", "smoke", "-e", "verify.image=app:1"], "its checks need the second script"),
        ([SMOKE], ["--level", "smoke"], ""),
        ([UNTOUCHED], [], ""),
    ],
)
def test_a_level_at_which_nothing_was_tested_is_a_note(
    checks: list[CheckResult], words: list[str], note: str, hosts: str, played: Played, exits: Exits
) -> None:
    played(lambda verb: run_of(verb, host("lab1", checks=(LDCACHE, *checks))))
    notes = exits(0, "verify", "-i", hosts, *words, "--output", "json").document["hosts"]["lab1"]["notes"]
    assert len(notes) == bool(note)
    assert all(text.startswith(f"nothing was tested at level smoke: {note}") for text in notes)


def test_options_reach_the_fleet(hosts: str, played: Played) -> None:
    nodes = played(lambda verb: run_of(verb, host("lab1")))
    assert run(["verify", "-i", hosts, "--passive"]) == 0
    assert run(["verify", "-i", hosts]) == 0
    assert [asked.passive for asked in nodes.asked] == [True, False]
    assert run(["plan", "-i", hosts, "--skip", "docker"]) == 0
    assert "docker" not in nodes.asked[-1].selected and "toolkit" in nodes.asked[-1].selected


@pytest.mark.parametrize("flags", [["-v"], ["-vv"], ["--verbose", "--parallel", "2"]])
def test_verbose_names_scripts_on_stderr(flags: list[str], hosts: str, played: Played, exits: Exits) -> None:
    played(lambda verb: run_of(verb, host("lab1")))
    Path(hosts).write_text("all: {hosts: {lab1: {gpuready: {}}, laboratory2: {gpuready: {}}}}\n")
    told = exits(0, "plan", "-i", hosts, *flags, "--output", "json")
    json.loads(told.out)
    rows = [line.partition("] ")[2] for line in told.err.splitlines()]
    if flags == ["-vv"]:
        assert rows[1] == "lab1         connect: 0.10 s"
        assert rows[2] == "lab1         probe: 0.25 s, 20000 bytes sent, 3000 received"
        assert rows[-2] == "lab1         in all 2 scripts: 2.25 s, 20510 bytes sent, 3080 received"
    else:
        assert rows[1:] == [
            "lab1         probe: 0.25 s",
            "laboratory2  probe: 0.50 s",
            "lab1         step docker: 2.00 s",
            "lab1         in all 2 scripts: 2.25 s",
            "laboratory2  in all 1 script: 0.50 s",
        ]


def test_without_verbose_nothing_observes(hosts: str, played: Played) -> None:
    nodes = played(lambda verb: run_of(verb, host("lab1")))
    assert run(["plan", "-i", hosts]) == 0
    assert nodes.asked[0].observer is None


def test_detailed_exitcode(hosts: str, played: Played) -> None:
    played(differing)
    assert run(["plan", "-i", hosts]) == 0
    assert run(["plan", "-i", hosts, "--detailed-exitcode"]) == 2


def test_probe_is_json_and_judges_nothing(hosts: str, played: Played, exits: Exits) -> None:
    played(differing)
    one = json.loads(exits(0, "record", "-i", hosts).out)["hosts"]["lab1"]
    assert (one["outcome"], one["components"], one["checks"]) == ("ok", [], [])
    assert one["state"]["masked"] and one["state"]["kernel"] == STATE.kernel


def test_an_interrupt_before_the_work_begins(hosts: str, played: Played, exits: Exits) -> None:
    played(Mock(side_effect=KeyboardInterrupt))
    assert exits(130, "plan", "-i", hosts, "--output", "json").document["hosts"]["lab1"]["outcome"] == "not_attempted"


@pytest.mark.fault("interrupt")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_in_a_document(number: int, hosts: str, tmp_path: Path) -> None:
    """A real process, with a node that hangs."""
    code = (
        "import sys, time, types\n"
        "import gpuready.run\n"
        "def hang(entries, access, progress):\n"
        "    progress('lab1', 'hangs')\n    for _ in range(600): time.sleep(0.1)\n"
        "for name in ('fleet', 'converge'):\n"
        "    module = types.ModuleType(f'gpuready.run.{name}')\n"
        "    module.Access, module.Fleet, module.apply = types.SimpleNamespace, hang, hang\n"
        "    module.components = None\n"
        "    sys.modules[module.__name__] = module\n"
        "    setattr(gpuready.run, name, module)\n"
        "from gpuready.cli.main import main\nmain()\n"
    )
    argv = [sys.executable, "-c", code, "apply", "--yes", "-i", hosts]
    argv += ["--output", "json", "--output", f"junit:{tmp_path}/r.xml"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "hangs" in process.stderr.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=scale.seconds(30))
    assert process.returncode == 130
    assert json.loads(out)["error"]["kind"] == "interrupted" and "Traceback" not in err
    assert "interrupted" in (tmp_path / "r.xml").read_text()

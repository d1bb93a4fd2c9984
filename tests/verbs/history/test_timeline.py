"""What ``gpuready history`` finds in results that the model of runs made: since when, how often, drift, Xids."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuready.base.errors import ConvergeError
from gpuready.base.places import Directory
from gpuready.contract.check import skip, unknown
from gpuready.contract.compare import Comparison
from gpuready.contract.node_record import seconds
from gpuready.result.model import HostResult
from gpuready.verbs.history.html import page
from gpuready.verbs.history.index import read
from gpuready.verbs.history.show import document, human
from gpuready.verbs.history.timeline import Timeline, Track, fold
from tests.command import VALIDATOR
from tests.report.test_report_runs import DOCKER, check, component
from tests.verbs.history.kept import BAD, GOOD, NOW, OTHER_SPEC, at, keep, lost, node, xids


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def timeline(folder: Path, days: float = 30) -> Timeline:
    found, skipped = read(Directory(folder), lambda number: None, lambda r: fold(r, days * 86400, NOW.timestamp()))
    assert not skipped
    return found


def track(folder: Path, name: str = "docker.runtime", host: str = "gpu01", days: float = 30) -> Any:
    """One track as the document has it."""
    found = document(timeline(folder, days), "there", {})
    (made,) = (each for each in found["tracks"] if (each["name"], each["host"]) == (name, host))
    return made


def test_a_check_is_as_it_is_since_its_status_was_first_seen(tmp_path: Path) -> None:
    for day, verdict in enumerate([GOOD, BAD, BAD, GOOD, BAD, BAD]):
        keep(tmp_path, day, "verify", node("gpu01", verdict))
    found = track(tmp_path)
    assert (found["status"], found["since"], found["since_first_result"]) == ("fail", at(4), False)
    assert (found["bad"], found["results"], found["times_bad"], found["changes"]) == (4, 6, 2, 3)
    assert found["text"] == "docker info lists runc only" and found["flapping"]
    assert [each["status"] for each in found["spans"]] == ["pass", "fail", "pass", "fail"]


def test_two_changes_are_not_flapping(tmp_path: Path) -> None:
    for day, verdict in enumerate([GOOD, BAD, GOOD]):
        keep(tmp_path, day, "verify", node("gpu01", verdict))
    found = track(tmp_path)
    assert (found["changes"], found["flapping"], found["text"]) == (2, False, "")


def test_what_was_so_in_the_first_result_may_be_older(tmp_path: Path) -> None:
    keep(tmp_path, 0, "verify", node("gpu01", BAD))
    keep(tmp_path, 1, "verify", node("gpu01", BAD))
    found = track(tmp_path)
    assert (found["since"], found["since_first_result"]) == (at(0), True)


def test_a_skipped_check_and_a_host_that_is_away_say_nothing(tmp_path: Path) -> None:
    aside = check("docker.runtime", skip("left out"))
    for day, host in enumerate([node("gpu01", BAD), node("gpu01", aside), lost("gpu01"), node("gpu01", BAD)]):
        keep(tmp_path, day, "verify", host)
    keep(tmp_path, 4, "apply", HostResult("gpu01"))  # not attempted
    found = track(tmp_path)
    assert (found["since"], found["results"], found["changes"]) == (at(0), 2, 0)
    reached = track(tmp_path, "reachable")
    assert (reached["status"], reached["since"], reached["bad"], reached["results"]) == ("reachable", at(3), 1, 4)


def test_unknown_is_bad_and_a_status_of_its_own(tmp_path: Path) -> None:
    for day, verdict in enumerate([BAD, check("docker.runtime", unknown("no answer"))]):
        keep(tmp_path, day, "verify", node("gpu01", verdict))
    found = track(tmp_path)
    assert (found["status"], found["since"], found["bad"], found["times_bad"]) == ("unknown", at(1), 2, 1)


def test_the_period_bounds_what_is_counted_but_not_since_when_it_is_so(tmp_path: Path) -> None:
    for day, verdict in enumerate([GOOD, BAD, GOOD, BAD, BAD, BAD]):
        keep(tmp_path, day, "verify", node("gpu01", verdict))
    found = track(tmp_path, days=16.5)  # from day 3.5 on
    assert (found["since"], found["results"], found["bad"]) == (at(3), 2, 2)
    assert (found["changes"], found["times_bad"], found["flapping"]) == (0, 1, False)
    assert timeline(tmp_path, 16.5).runs == {"verify": 2}


def test_the_time_in_a_result_counts_and_not_the_name_of_its_file(tmp_path: Path) -> None:
    keep(tmp_path, 1, "verify", node("gpu01", BAD)).rename(tmp_path / "a.json")
    keep(tmp_path, 0, "verify", node("gpu01", GOOD)).rename(tmp_path / "b.json")
    assert track(tmp_path)["status"] == "fail"


def test_a_result_from_the_future_is_no_news(tmp_path: Path) -> None:
    keep(tmp_path, 0, "verify", node("gpu01", GOOD))
    keep(tmp_path, 400, "verify", node("gpu01", BAD))
    assert timeline(tmp_path).ahead == 1 and track(tmp_path)["status"] == "pass"


def test_drift_is_a_difference_that_came_after_an_apply(tmp_path: Path) -> None:
    keep(tmp_path, 0, "plan", node(differs=True))
    assert timeline(tmp_path).drifts == [], "nobody has applied it yet"
    keep(tmp_path, 1, "apply", node(changed=True))
    keep(tmp_path, 2, "verify", node())
    assert timeline(tmp_path).drifts == []
    keep(tmp_path, 3, "verify", node(differs=True))
    keep(tmp_path, 4, "plan", node(differs=True))
    found = document(timeline(tmp_path), "there", {})["drift"]
    assert [each["key"] for each in found] == ["docker.runtimes.nvidia.path", "docker.live-restore"]
    assert {(each["component"], each["since"], each["applied"], each["spec_changed"]) for each in found} == {
        ("docker", at(3), at(1), False)
    }
    assert (found[1]["actual"], found[1]["expected"]) == ("false", "true")
    keep(tmp_path, 5, "apply", node(changed=True))
    assert timeline(tmp_path).drifts == [] and track(tmp_path, "docker")["times_bad"] == 2
    (host,) = timeline(tmp_path).hosts
    assert host.applied is not None and document(timeline(tmp_path), "", {})["hosts"][0]["applied"] == at(5)


def test_a_new_spec_is_named_as_a_possible_cause(tmp_path: Path) -> None:
    keep(tmp_path, 1, "apply", node(changed=True))
    keep(tmp_path, 2, "verify", node(differs=True, spec=OTHER_SPEC))
    assert {drift.spec_changed for drift in timeline(tmp_path).drifts} == {True}


@pytest.mark.parametrize("outcome", ["failed", "unreachable", "not_attempted", "pending"])
def test_a_remove_that_did_not_end_well_keeps_the_drift(outcome: str, tmp_path: Path) -> None:
    keep(tmp_path, 1, "apply", node(changed=True))
    keep(tmp_path, 2, "verify", node(differs=True))
    left = node(differs=True)
    left.outcome = outcome
    keep(tmp_path, 3, "remove", left)
    assert {drift.since for drift in timeline(tmp_path).drifts} == {seconds(at(2))}


def test_a_remove_that_failed_keeps_the_drift_of_what_it_did_not_remove(tmp_path: Path) -> None:
    cdi = component(Comparison("cdi", True, "it differs", DOCKER.diff), changed=True)
    for day, verb in ((1, "apply"), (2, "verify"), (3, "remove")):
        made = node(changed=True) if verb == "apply" else node(differs=True)
        made.components.append(replace(cdi, changed=verb != "verify"))
        if verb == "remove":
            made.fail(ConvergeError("docker: not removed"))
        keep(tmp_path, day, verb, made)
    assert {drift.component for drift in timeline(tmp_path).drifts} == {"docker"}


def test_a_host_whose_turn_never_came_has_no_result(tmp_path: Path) -> None:
    keep(tmp_path, 1, "verify", node(differs=True))
    left = node(differs=True)
    left.leave_out("not begun: gpu01 failed")
    keep(tmp_path, 2, "apply", left)
    (found,) = timeline(tmp_path).hosts
    assert (found.last, found.verb, found.results) == (seconds(at(1)), "verify", 1)


def test_a_remove_of_chosen_components_keeps_the_drift_of_others(tmp_path: Path) -> None:
    keep(tmp_path, 1, "apply", node(changed=True))
    keep(tmp_path, 2, "verify", node(differs=True))
    other = node(changed=True)
    other.components = [component(Comparison("cdi", True, "changed by gpuready"), changed=True)]
    keep(tmp_path, 3, "remove", other)
    assert {drift.component for drift in timeline(tmp_path).drifts} == {"docker"}


def test_a_host_that_a_resumed_run_did_not_connect_to_says_nothing(tmp_path: Path) -> None:
    keep(tmp_path, 1, "apply", node(changed=True))
    keep(tmp_path, 2, "verify", node(differs=True))
    done = node(changed=True)
    done.earlier = at(1)
    keep(tmp_path, 3, "apply", done, node("gpu02", changed=True))
    found = timeline(tmp_path)
    assert {(drift.host, drift.since) for drift in found.drifts} == {("gpu01", seconds(at(2)))}
    assert [(each.name, each.last, each.results) for each in found.hosts] == [
        ("gpu01", seconds(at(2)), 2), ("gpu02", seconds(at(3)), 1)
    ]  # fmt: skip


class Read(list[Track]):
    """Counts how often it is read."""

    times = 0

    def __iter__(self) -> Iterator[Track]:
        self.times += 1
        return super().__iter__()


def test_what_is_wrong_is_counted_once_for_all_hosts(tmp_path: Path) -> None:
    names = [f"gpu{number:02}" for number in range(50)]
    keep(tmp_path, 1, "apply", *(node(name, changed=True) for name in names))
    keep(tmp_path, 2, "verify", *(node(name, BAD, differs=True) for name in names))
    keep(tmp_path, 3, "verify", lost("gpu00"))
    found = timeline(tmp_path)
    found.tracks = tracks = Read(found.tracks)
    told = human(found, "there", {})
    assert tracks.times < 10
    assert (
        "unreachable since 2026-11-04 12:00; 2 wrong; 2 drifted keys" in told and "\n  gpu[01-49]  2026-11-03 " in told
    )
    made = document(found, "there", {})
    assert [(each["wrong"], each["drifted"]) for each in made["hosts"][:2]] == [(3, 2), (2, 2)]
    made["hosts"][0] |= {"wrong": 7777, "drifted": 8888}
    text = page(made)
    assert ">7777<" in text and ">8888<" in text, "the page takes the counts of the document"


@pytest.mark.parametrize("how", ["pending", "failed", "remove"])
def test_no_drift_from_what_an_apply_did_not_reach(how: str, tmp_path: Path) -> None:
    if how == "remove":
        keep(tmp_path, 0, "apply", node(changed=True))
        keep(tmp_path, 1, "remove", node(changed=True))
    else:
        left = node(pending="until idle") if how == "pending" else _failed()
        keep(tmp_path, 1, "apply", left)
    keep(tmp_path, 2, "verify", node(differs=True))
    assert timeline(tmp_path).drifts == []
    assert track(tmp_path, "docker")["status"] == "differs"


def _failed() -> HostResult:
    made = node(changed=True)  # and another component failed
    made.outcome = "failed"
    return made


def test_an_xid_counts_once_however_many_results_repeat_it(tmp_path: Path) -> None:
    keep(tmp_path, 1, "verify", xids((79, 1, 100)))
    keep(tmp_path, 2, "verify", xids((79, 1, 100)))
    keep(tmp_path, 3, "verify", xids((79, 3, 900)))
    keep(tmp_path, 5, "verify", xids((79, 3, 900)))
    (found,) = timeline(tmp_path).xids
    assert (found.number, found.devices, found.events, found.earlier) == (79, ("0000:17:00",), 2, 1)
    assert found.mean == 4 * 86400 / 2, "the time from the first result to the last, for each new event"
    assert found.last == "2026-11-01T12:15:00Z"


def test_an_xid_of_another_boot_is_another_one(tmp_path: Path) -> None:
    keep(tmp_path, 1, "verify", xids((79, 1, 100)))
    keep(tmp_path, 2, "verify", xids((79, 1, 100), boot="two"))
    (found,) = timeline(tmp_path).xids
    assert (found.events, found.earlier) == (1, 1)


def test_a_log_that_lost_lines_still_shows_that_there_was_a_new_one(tmp_path: Path) -> None:
    keep(tmp_path, 1, "verify", xids((31, 40, 100)))
    keep(tmp_path, 2, "verify", xids((31, 2, 9000)))
    keep(tmp_path, 3, "verify", xids((31, 2, 9000)))
    (found,) = timeline(tmp_path).xids
    assert found.events == 1


def test_xids_of_several_numbers_are_told_apart(tmp_path: Path) -> None:
    keep(tmp_path, 1, "verify", node())
    keep(tmp_path, 2, "verify", xids((31, 2, 50), (79, 1, 100)))
    assert [(each.number, each.events) for each in timeline(tmp_path).xids] == [(31, 2), (79, 1)]


def test_a_result_says_which_xids_there_were_and_by_which_spec(tmp_path: Path) -> None:
    found = json.loads(keep(tmp_path, 1, "verify", xids((79, 2, 3600))).read_text())
    VALIDATOR.validate(found)
    (host,) = found["hosts"].values()
    assert host["xids"] == {"boot_id": "one", "events": [
        {"number": 79, "device": "0000:17:00", "count": 2, "seconds": 3600, "time": "2026-11-01T13:00:00Z"}
    ]}  # fmt: skip
    assert len(host["spec"]) == 64
    plain = json.loads(keep(tmp_path, 1, "verify", node()).read_text())
    assert "xids" not in plain["hosts"]["gpu01"]


def test_times_bad_counts_a_time_that_began_before_the_period() -> None:
    made = Track("a", "check", "x", [(0, "fail"), (10, "pass"), (20, "fail"), (30, "unknown"), (40, "pass")])
    assert [made.times_bad(start) for start in (0, 5, 15, 25, 45)] == [2, 2, 1, 1, 0]

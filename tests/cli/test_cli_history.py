"""``--history DIR_OR_URL``: each result is kept as a new file, whole, on every exit; and the places that there are."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from gpuready.base import places
from gpuready.base.errors import UsageError
from gpuready.base.places import Directory, place
from gpuready.cli.output import Target, deliver, kept
from gpuready.model.state import NodeState
from gpuready.result.model import Run
from tests.command import VALIDATOR, Exits, gpuready, imported, write_hosts, write_states
from tests.report.test_report_runs import host, sample

GONE = "all: {hosts: {a: {ansible_host: 127.0.0.1, ansible_port: 1, gpuready: {}}}}\n"


def documents(folder: Path) -> list[Any]:
    """What is kept, each of it valid."""
    found = [json.loads(path.read_text()) for path in sorted(folder.iterdir())]
    for each in found:
        VALIDATOR.validate(each)
    return found


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def test_a_result_is_kept_as_it_is_printed(tmp_path: Path) -> None:
    """An online run, which has patched this process for gevent; the place is new."""
    done = gpuready("plan", "-i", write_hosts(tmp_path, GONE), "--history", tmp_path / "new", "--output", "json")
    assert done.returncode == 4, done.stderr
    assert documents(tmp_path / "new") == [json.loads(done.stdout)]
    (path,) = (tmp_path / "new").iterdir()
    assert path.name.startswith(json.loads(done.stdout)["ended"].replace("-", "").replace(":", "") + "-plan-")


@pytest.mark.parametrize("way", ["option", "environment"])
def test_a_run_that_never_began_is_kept_too(
    way: str, tmp_path: Path, exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUREADY_HISTORY", str(tmp_path / ("no" if way == "option" else "kept")))
    option = ["--history", tmp_path / "kept"] if way == "option" else []
    exits(5, "verify", "-i", tmp_path / "none.yaml", *option)
    exits(64, "verify", *option)
    exits(64, "explain", "no such thing at all")
    found = sorted((each["verb"], each["exit_code"]) for each in documents(tmp_path / "kept"))
    assert found == [("verify", 5), ("verify", 64)]
    assert not (tmp_path / "no").exists()


def test_two_runs_of_one_second_do_not_collide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda *given: "2026-11-22T21:00:00Z")
    for _ in range(5):
        deliver(Run("rdma attach"), kept(str(tmp_path)))
    names = [path.name for path in tmp_path.iterdir()]
    assert len(names) == 5 and all(name.startswith("20261122T210000Z-rdma-attach-") for name in names)


def test_a_place_that_vanished_loses_no_other_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = (Target("json"), *kept(str(tmp_path / "kept")))
    (tmp_path / "kept").rmdir()
    assert deliver(Run("plan", [host("a")]), targets) == 74
    told = capsys.readouterr()
    assert json.loads(told.out)["exit_code"] == 0
    assert f"the result was not written to {tmp_path}/kept/" in told.err


def test_nothing_is_left_of_a_file_that_was_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert deliver(sample("converged"), kept(str(tmp_path))) == 74
    assert list(tmp_path.iterdir()) == []


def test_a_result_of_recorded_states_is_not_kept(tmp_path: Path, exits: Exits) -> None:
    states = write_states(tmp_path / "states.json", {"a": NodeState()})
    exits(0, "plan", "-i", write_hosts(tmp_path), "--state", states, "--history", tmp_path / "kept")
    assert documents(tmp_path / "kept") == []


def test_a_dry_run_of_remove_is_not_kept(tmp_path: Path) -> None:
    """It compares nodes with what was there before gpuready, which is no drift."""
    run = sample("would-change")
    run.removing = True
    deliver(run, kept(str(tmp_path)))
    assert documents(tmp_path) == []
    run.verb = "remove"
    deliver(run, kept(str(tmp_path)))
    assert [each["verb"] for each in documents(tmp_path)] == ["remove"]


def test_a_place_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path, exits: Exits) -> None:
    hosts = write_hosts(tmp_path)
    (tmp_path / "file").touch()
    for where, why in ((tmp_path / "no" / "such", "No such file or directory"), (tmp_path / "file", "File exists")):
        told = exits(64, "plan", "-i", hosts, "--history", where).err
        assert f"--history: cannot write to {where}: {why}\n" in told
    assert "results are not kept over https" in exits(64, "plan", "-i", hosts, "--history", "https://a/b").err


def test_a_url_without_fsspec_is_one_clear_error(tmp_path: Path, exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places.importlib.util, "find_spec", lambda name: None)
    for argv in (
        ("plan", "-i", write_hosts(tmp_path), "--history", "s3://bucket/fleet"),
        ("history", "s3://bucket/fleet"),
    ):
        told = exits(64, *argv).err
        assert " s3://bucket/fleet: a URL needs fsspec, which is not installed\n" in told
        assert "fix:     pip install fsspec beside gpuready, or pipx inject gpuready fsspec\n" in told


def test_a_local_place_never_loads_fsspec(tmp_path: Path) -> None:
    assert "fsspec" not in imported("plan", "-i", write_hosts(tmp_path, GONE), "--history", tmp_path / "kept")


def test_a_url_takes_the_results_of_an_online_run(tmp_path: Path) -> None:
    """fsspec's own loop fails in a process that is patched for gevent; a path is a URL here, too."""
    (tmp_path / "kept").mkdir()
    url = f"file://{tmp_path}/kept"
    done = gpuready("plan", "-i", write_hosts(tmp_path, GONE), "--history", url, "--output", "json")
    assert done.returncode == 4, done.stderr
    assert documents(tmp_path / "kept") == [json.loads(done.stdout)]
    told = gpuready("history", url)
    assert (told.returncode, told.stderr) == (0, "") and "reachable           a      unreachable" in told.stdout


def test_a_url_that_does_not_work_is_refused_before_the_run(tmp_path: Path, exits: Exits) -> None:
    hosts = write_hosts(tmp_path)
    assert "cannot write to nosuch://a: " in exits(64, "plan", "-i", hosts, "--history", "nosuch://a").err
    assert "nosuch://a: cannot be read: " in exits(5, "history", "nosuch://a").err


def test_a_url_is_read_with_the_same_bounds() -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe_file("/fleet/a.json", b"12345")
    memory.pipe_file("/fleet/.hidden", b"")
    memory.pipe_file("/fleet/inner/b.json", b"")
    there = place("memory://fleet", "history")
    assert {(each.name, each.problem) for each in there.entries()} == {("a.json", ""), ("inner", "not a regular file")}
    before = [each.stamp for each in there.entries()]
    assert there.read("a.json", 5) == b"12345"
    with pytest.raises(OSError, match="larger than"):
        there.read("a.json", 4)
    with pytest.raises(OSError, match="FileNotFoundError"):
        there.read("no.json", 4)
    memory.pipe_file("/fleet/a.json", b"54321")
    assert [each.stamp for each in there.entries()] != before


@pytest.mark.parametrize("text", ["results", "./s3:/x", "~/results", "a::b"])
def test_a_path_is_a_directory(text: str) -> None:
    assert isinstance(place(text, "history"), Directory)


def test_the_option_for_a_url_names_itself() -> None:
    with pytest.raises(UsageError, match="--history http://x"):
        place("http://x", "--history")

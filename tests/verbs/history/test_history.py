"""``gpuready history``: what it shows, what it skips, and an index that nobody has to trust."""

import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from gpuready.base.errors import UnreachableError
from gpuready.base.places import Directory, Entry
from gpuready.contract.check import fail
from gpuready.result.model import HostResult
from gpuready.verbs.history import digest
from gpuready.verbs.history.index import read
from tests.command import Exits, imported
from tests.report.test_report_runs import check, host
from tests.verbs.history.kept import BAD, GOOD, fleet, keep, node

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    return Path(os.environ["XDG_CACHE_HOME"]) / "gpuready"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    fleet(tmp_path / "results")
    return tmp_path / "results"


def index_of(cache: Path) -> Path:
    (found,) = cache.glob("history-*.sqlite")
    return found


def test_it_shows_what_is_wrong_and_since_when(place: Path, exits: Exits) -> None:
    told = exits(0, "history", place, "--since", "5000w")
    assert not told.err
    assert "4 hosts, 2026-11-01 12:00 to 2026-11-10 12:00 UTC: 10 verify, 1 apply\n" in told.out
    lines = [" ".join(line.split()) for line in told.out.splitlines()]
    assert "reachable gpu04 unreachable 2026-11-09 12:00 2 of 10 1 10.0.0.4: no route to host" in lines
    assert (
        "docker.runtime gpu02 fail 2026-11-10 12:00 5 of 11, 5 times 9, flapping docker info lists runc only" in lines
    )
    drift = "docker gpu01 2026-11-07 12:00 2026-11-04 00:00 docker.live-restore: false (expected true)"
    assert drift in lines
    assert "79 gpu03 2, and 1 before 2026-11-03 12:01 4.5 d" in lines
    assert "gpu04 2026-11-10 12:00 verify 10 - unreachable since 2026-11-09 12:00" in lines


def test_unreachable_hosts_share_a_row_and_hide_no_finding(tmp_path: Path, exits: Exits) -> None:
    """Also if they became unreachable at different times, and if there are more findings than lines of other tables."""
    found = [check(f"gpu.c{n:02}", fail(f"finding {n}")) for n in range(50)]

    def gone(name: str) -> HostResult:
        return host(name, "unreachable", error=UnreachableError(f"{name}: connection refused"))

    names = [f"gpu{n:02}" for n in range(1, 61)]
    keep(tmp_path, 0, "verify", node("gpu99", *found), *map(gone, names[:30]), *map(node, names[30:]))
    keep(tmp_path, 1, "verify", node("gpu99", *found), *map(gone, names))
    out = exits(0, "history", tmp_path, "--since", "5000w").out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    (row,) = [line for line in lines if line.startswith("reachable ")]
    since = "2026-11-01 12:00 or before to 2026-11-02 12:00"
    assert row == f"reachable gpu[01-60] unreachable {since} 90 of 120 1 connection refused"
    assert all(any(f"gpu.c{n:02} gpu99 fail" in line for line in lines) for n in range(50))
    assert out.index("gpu.c49") < out.index("\n  reachable") and "more: --output json" not in out
    hosts = lines[lines.index("hosts") + 2 :]
    assert [line.split()[0] for line in hosts[:3]] == ["gpu99", "gpu[01-30]", "gpu[31-60]"] and len(hosts) == 3


def test_the_guide_shows_what_it_prints(place: Path, exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.parent)
    page = (ROOT / "docs" / "guides" / "history.md").read_text("utf-8")
    shown = page.partition("```text\n")[2].partition("```")[0].splitlines()
    told = exits(0, "history", "results", "--since", "5000w").out.splitlines()
    assert len(shown) > 10 and not [line for line in shown if line not in (*told, "...")]


def test_hosts_and_checks_can_be_chosen(place: Path, exits: Exits) -> None:
    found = json.loads(exits(0, "history", place, "--limit", "gpu[02:03]", "--output", "json").out)
    assert [each["name"] for each in found["hosts"]] == ["gpu02", "gpu03"]
    assert {each["host"] for each in found["tracks"]} == {"gpu02", "gpu03"} and not found["drift"]
    told = exits(0, "history", place, "--check", "docker.*", "--limit", "gpu01").out
    assert "docker.runtime" in told and "pass" in told and "reachable" not in told
    assert "Xids" not in told
    told = exits(0, "history", place, "--check", "gpu.*").out
    assert "Xids" in told and "docker.runtime" not in told and "drift" not in told
    assert "did you mean 'docker.runtime'" in exits(64, "history", place, "--check", "docker.runtim").err
    assert "no host matches" in exits(5, "history", place, "--limit", "gpu9").err
    assert "days or weeks, such as 30m, 12h, 30d, 8w\n" in exits(64, "history", place, "--since", "3x").err


def test_a_place_that_is_not_there_is_one_clear_error(tmp_path: Path, exits: Exits) -> None:
    assert f"{tmp_path}/no: cannot be read: No such file or directory\n" in exits(5, "history", tmp_path / "no").err
    assert f"no result in {tmp_path}; a run keeps" in exits(0, "history", tmp_path).out


HOSTILE: dict[str, tuple[Any, str]] = {
    "list.json": (b"[1, 2]", "not a result of gpuready"),
    "half.json": (b'{"schema": "gpuready/result/1", "hos', "not JSON"),
    "latin.json": (b'{"a": "caf\xe9"}', "not JSON"),
    "deep.json": (b"[" * 100_000, "not JSON"),
    "other.json": (b'{"name": "other", "version": 3}', "not a result of gpuready"),
    "newer.json": (b'{"schema": "gpuready/result/2", "ended": "x"}', "the schema is 'gpuready/result/2'"),
    "timeless.json": (b'{"schema": "gpuready/result/1", "hosts": {}}', "it does not say when it ended"),
    "notes.txt": (b"", "not a .json file"),
    "o\x1b[2Jdd\n.json": (b"", "not JSON"),
    "caf\udce9.json": (b"", "not JSON"),
}


def spoil(place: Path) -> None:
    """Put all kinds of other files into a place."""
    for name, (data, _) in HOSTILE.items():
        (place / name).write_bytes(data)
    (place / "link.json").symlink_to("/etc/passwd")
    (place / "loop.json").symlink_to("loop.json")
    (place / "folder.json").mkdir()
    os.mkfifo(place / "pipe.json")
    with (place / "huge.json").open("wb") as huge:
        huge.truncate(digest.MOST + 1)
    base = json.loads(next(place.glob("verify-*.json")).read_text())
    xid = {"number": 79, "device": "0000:17:00", "count": 1, "seconds": 1}
    for name, changed in {
        "when.json": {"ended": "yesterday"},
        "ancient.json": {"ended": "1960-01-01T00:00:00Z"},
        "short.json": {"ended": "2026-11-2T12:00:00Z"},
        "code.json": {"exit_code": 10**30},
        **{f"{key}.json": {"hosts": {"a": {**base["hosts"]["gpu01"], "xids": {"boot_id": "", "events": [
            {**xid, key: 10**400}]}}}} for key in ("number", "count", "seconds")},
        "many.json": {"hosts": {"a": {**base["hosts"]["gpu01"], "checks": base["hosts"]["gpu01"]["checks"] * 3000}}},
        "id.json": {"hosts": {"a": {**base["hosts"]["gpu01"], "checks": [
            {**base["hosts"]["gpu01"]["checks"][0], "id": "\x1b[2J"}]}}},
    }.items():  # fmt: skip
        (place / name).write_text(json.dumps({**base, **changed}))


def test_other_files_are_skipped_and_named(place: Path, exits: Exits) -> None:
    before = json.loads(exits(0, "history", place, "--output", "json").out)
    spoil(place)
    told = exits(0, "history", place, "--output", "json")
    after = json.loads(told.out)
    skipped = {each["file"]: each["problem"] for each in after.pop("skipped")}
    assert before.pop("skipped") == [] and after == before
    for name, (_, why) in HOSTILE.items():
        shown = name.replace("\udce9", "\\xe9")
        assert skipped.pop(shown).startswith(why), name
    assert skipped.pop("when.json") == "it ended at 'yesterday', which is not a time such as 2026-11-22T21:00:00Z"
    assert skipped.pop("ancient.json").startswith("it ended at '1960-01-01T00:00:00Z', which is not a time")
    assert skipped.pop("short.json").startswith("it ended at '2026-11-2T12:00:00Z', which is not a time")
    assert skipped.pop("code.json") == "exit_code: Input should be less than 9007199254740992"
    for key in ("number", "count", "seconds"):
        assert skipped.pop(f"{key}.json").startswith(f"hosts.a.xids.events.0.{key}: Input should be less than")
    assert "at most 2000 items" in skipped.pop("many.json") and "hosts.a.checks.0.id" in skipped.pop("id.json")
    assert skipped == {
        "link.json": "a symlink", "loop.json": "a symlink", "folder.json": "not a regular file",
        "pipe.json": "not a regular file", "huge.json": "cannot be read: larger than 100 MB",
    }  # fmt: skip


def test_people_see_a_few_of_the_skipped_files(place: Path, exits: Exits) -> None:
    spoil(place)
    told = exits(0, "history", place).out
    assert told.count("skipped  ") == 6 and "19 more files: --output json" in told
    assert "\x1b" not in told


def test_a_link_is_not_followed_even_if_it_comes_late(place: Path) -> None:
    (place / "link.json").symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="symbolic links"):
        Directory(place).read("link.json", 1000)
    os.mkfifo(place / "pipe.json")
    with pytest.raises(OSError, match="not a regular file"):
        Directory(place).read("pipe.json", 1000)


def damage(kind: str, index: Path) -> None:
    if kind == "deleted":
        index.unlink()
    elif kind == "garbage":
        index.write_bytes(os.urandom(20_000))
    elif kind == "cut":
        index.write_bytes(index.read_bytes()[:9000])
    elif kind == "a directory":
        index.unlink()
        index.mkdir()
    else:
        with sqlite3.connect(index) as found:
            found.executescript(
                {
                    "older": "UPDATE made SET form = '0 0.0.1'; UPDATE file SET verb = 'probe'",
                    "tables": "DROP TABLE seen",
                    "content": "UPDATE seen SET content = substr(content, 2) || id",
                    "keys": """UPDATE seen SET content = '{"a": ' || id || '}'""",
                    "numbers": "UPDATE file SET hosts = replace(hosts, ': ', ': 9')",
                }[kind]
            )
        found.close()


KINDS = ["deleted", "garbage", "cut", "a directory", "older", "tables", "content", "keys", "numbers"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_index_is_made_anew(kind: str, place: Path, cache: Path, exits: Exits) -> None:
    before = exits(0, "history", place, "--output", "json")
    damage(kind, index_of(cache))
    assert exits(0, "history", place, "--output", "json") == before


@pytest.mark.parametrize("why", ["a file", "no room"])
def test_it_answers_without_an_index(why: str, place: Path, monkeypatch: pytest.MonkeyPatch, exits: Exits) -> None:
    before = exits(0, "history", place, "--output", "json")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null" if why == "a file" else "/proc")
    assert exits(0, "history", place, "--output", "json") == before


def test_it_answers_without_a_home(place: Path, monkeypatch: pytest.MonkeyPatch, exits: Exits) -> None:
    """As in a container with a user that has no entry."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    before = exits(0, "history", place, "--output", "json")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert exits(0, "history", place, "--output", "json") == before


def test_a_result_of_long_ago_does_not_stop_the_page(place: Path, exits: Exits) -> None:
    path = keep(place, 0, "verify", node("old", BAD))
    path.write_text(json.dumps({**json.loads(path.read_text()), "ended": "1960-01-01T00:00:00Z"}))
    text = exits(0, "history", place, "--output", "html").out
    assert path.name in text and ">old<" not in text


class Name(bytes):
    """The name of a file; counts how often it is compared."""

    compared = 0
    __hash__ = bytes.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return bytes.__eq__(self, other)


def test_names_of_replaced_files_are_not_compared_with_each_other(tmp_path: Path) -> None:
    class Place(Directory):
        stamp = "1"

        def entries(self) -> Any:
            return [Entry(Name(b"%d.json" % number), self.stamp) for number in range(100)]  # type: ignore[arg-type]

        def read(self, name: str, most: int) -> bytes:
            return b""

    place = Place(tmp_path)
    read(place, lambda number: None, list)
    place.stamp, Name.compared = "2", 0
    found: list[int] = []
    read(place, found.append, list)
    assert found == [100] and Name.compared < 2000


def test_a_file_is_read_once(place: Path, monkeypatch: pytest.MonkeyPatch, exits: Exits) -> None:
    read: list[str] = []
    reads = Directory.read

    def counted(self: Directory, name: str, most: int) -> bytes:
        read.append(name)
        return reads(self, name, most)

    monkeypatch.setattr(Directory, "read", counted)
    exits(0, "history", place)
    assert len(read) == 11
    exits(0, "history", place)
    assert len(read) == 11
    keep(place, 11, "verify", node("gpu02", GOOD))
    exits(0, "history", place)
    assert read[11:] == ["verify-11.json"]


def test_an_index_that_nobody_uses_goes(place: Path, cache: Path, exits: Exits) -> None:
    exits(0, "history", place)
    (used,) = cache.iterdir()
    (old := cache / "history-0.sqlite").touch()
    for path, days in ((used, 400), (old, 31)):
        os.utime(path, times=(0, time.time() - days * 86400))
    exits(0, "history", place)
    assert [*cache.iterdir()] == [used]


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path, exits: Exits) -> None:
    """As when a CI job writes ``--output json:PATH`` each night."""
    keep(tmp_path, 0, "verify", node("gpu01", BAD))
    assert "wrong now" in exits(0, "history", tmp_path).out
    keep(tmp_path, 0, "verify", node("gpu01", GOOD, GOOD))
    assert "wrong now" not in exits(0, "history", tmp_path).out


def test_a_file_that_was_deleted_is_forgotten(tmp_path: Path, cache: Path, exits: Exits) -> None:
    old = keep(tmp_path, 0, "verify", node("gpu01", BAD), node("gone"))
    keep(tmp_path, 1, "verify", node("gpu01", GOOD))
    assert "gone" in exits(0, "history", tmp_path, "--output", "json").out
    with sqlite3.connect(index_of(cache)) as index:
        (before,) = index.execute("SELECT count(*) FROM seen").fetchone()
    old.unlink()
    found = json.loads(exits(0, "history", tmp_path, "--output", "json").out)
    assert [each["name"] for each in found["hosts"]] == ["gpu01"]
    (track,) = (each for each in found["tracks"] if each["name"] == "docker.runtime")
    assert track["spans"] == [{"since": "2026-11-02T12:00:00Z", "status": "pass"}]
    with sqlite3.connect(index_of(cache)) as index:
        (after,) = index.execute("SELECT count(*) FROM seen").fetchone()
    assert after < before


def test_a_file_that_could_not_be_read_is_tried_again(
    place: Path, monkeypatch: pytest.MonkeyPatch, exits: Exits
) -> None:
    def fails(self: Directory, name: str, most: int) -> bytes:
        raise OSError("the network is down")

    with monkeypatch.context() as patched:
        patched.setattr(Directory, "read", fails)
        told = exits(0, "history", place).out
        assert "no result in" in told and "cannot be read: the network is down" in told
    assert "4 hosts" in exits(0, "history", place).out


def test_another_release_or_a_copy_adds_no_risk(place: Path, exits: Exits) -> None:
    """Unknown keys are ignored, and a document that an older release wrote has neither spec nor Xids."""
    path = next(place.glob("verify-9*.json"))
    found = json.loads(path.read_text())
    found["new"] = {"a": 1}
    for of_host in found["hosts"].values():
        of_host.pop("spec", None)
        of_host.pop("xids", None)
        of_host["newer"] = [1]
    path.write_text(json.dumps(found))
    assert "skipped" not in exits(0, "history", place).out


def test_it_loads_neither_pyinfra_nor_fsspec(place: Path) -> None:
    assert not {"pyinfra", "gevent", "paramiko", "fsspec"} & imported("history", place)


def test_the_page_escapes_every_text_and_loads_nothing(tmp_path: Path, exits: Exits) -> None:
    evil = "\"'><script>alert(1)</script>"
    keep(tmp_path, 0, "verify", node(f"gpu{evil}", BAD))
    text = exits(0, "history", tmp_path, "--output", "html").out
    assert "<script" not in text and "&lt;script&gt;alert(1)" in text
    assert "script-src" not in text
    assert "default-src &#39;none&#39;" in text
    assert "http:" not in text and "https:" not in text


def test_the_page_draws_each_status_over_the_period(place: Path, exits: Exits) -> None:
    text = exits(0, "history", place, "--since", "5000w", "--output", "html").out
    row = next(line for line in text.splitlines() if ">docker.runtime</th><td>gpu02<" in line)
    assert row.count("<rect ") == 10 and row.count('<rect class="b"') == 5
    assert "<title>fail since 2026-11-10T12:00:00Z</title>" in row and "flapping" in row
    assert "Nothing was wrong" not in text and "Drift since the last apply" in text

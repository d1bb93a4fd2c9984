"""Files that are relied on (templates/lib.sh.j2), cut at each call that writes, and with each such call failing.

Whatever happens, the file is the old one or the new one, the original on record is the true one or none while the file
is untouched, and the next run mends the rest.
"""

from __future__ import annotations

import base64
import errno
import multiprocessing
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuready import resources
from tests import cut

#: Where a sync costs nothing: what counts is that it is asked for.
_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
FIRST, SECOND, THIRD = "theirs\n" * 60000, "ours\n", "ours, too\n"


def in_ci_or_skip(why: str | None) -> None:
    """A machine that cannot show it skips, but not CI."""
    if why and os.environ.get("CI") == "true":
        pytest.fail(why)
    if why:
        pytest.skip(why)


@dataclass(frozen=True)
class Case:
    """``before`` and ``body`` are shell; ``true`` is the file's content before all, ``may`` what it may be after a cut."""

    body: str
    before: str = ""
    true: str | None = FIRST
    may: tuple[str | None, ...] = (FIRST, SECOND)
    new: str | None = SECOND
    #: What comes after the next run, to see that all is as it was.
    back: str = 'restore "$F" "$THERE"'
    linked: bool = False
    #: How the last line of a run that failed begins.
    words: str = r"^(cannot |what is in |\S+ cannot be written)"


def _put(text: str) -> str:
    return f'put "$F" "$(sha "$F")" {base64.b64encode(text.encode()).decode()}'


def _again(body: str) -> str:
    """The same in a transaction that fails."""
    return f'UNDO=1; {body}; undone "$F"'


#: Where a transaction was undone nothing need be on record.
_IF_RECORDED = 'at "$F"; ! recorded || restore "$F" "$THERE"'
#: Who calls these says what is wrong.
_ANY = "."


_OURS = f"{_put(SECOND)}\n"
CASES = {
    "put": Case(_put(SECOND)),
    "put through a linked parent": Case(_put(SECOND), linked=True),
    "put where nothing was": Case(_put(SECOND), true=None, may=(None, SECOND)),
    "put over ours": Case(_put(THIRD), _OURS, may=(SECOND, THIRD), new=THIRD),
    "put, settled": Case(f'UNDO=1; {_put(SECOND)}; settled "$F"', words=_ANY),
    "put, undone": Case(_again(_put(SECOND)), new=FIRST, back=_IF_RECORDED, words=_ANY),
    "put over ours, undone": Case(_again(_put(THIRD)), _OURS, may=(SECOND, THIRD), new=SECOND, words=_ANY),
    "put where nothing was, undone": Case(
        _again(_put(SECOND)), true=None, may=(None, SECOND), new=None, back=_IF_RECORDED, words=_ANY
    ),
    "drop": Case('drop "$F" "$(sha "$F")"', may=(FIRST, None), new=None),
    "keep": Case('keep "$F"', may=(FIRST,), new=FIRST),
    "lend": Case('lend "$F"', may=(FIRST,), new=FIRST),
    "rewrite": Case(f'at "$F"; rewrite "$F" {base64.b64encode(SECOND.encode()).decode()}', back=":", words=_ANY),
    "putback": Case('putback "$F" 1', _OURS, may=(SECOND, FIRST), new=FIRST),
    "putback of nothing": Case('putback "$F" ""', _OURS, true=None, may=(SECOND, None), new=None),
    "forget": Case('forget "$F"', f'{_OURS} putback "$F" 1\n', may=(FIRST,), new=FIRST, back=":", words=_ANY),
    "record": Case(f'record "$F" {base64.b64encode(SECOND.encode()).decode()}', back=":", words=_ANY),
    "record of nothing": Case('record "$F" ""', may=(FIRST, None), new=None, back=":", words=_ANY),
}


class Place:
    """A scratch directory that stands for a node: the file, the record, and the script's head."""

    def __init__(self, root: Path, case: Case) -> None:
        self.root, self.case = root, case
        self.kept = root / "var/lib/gpuready/backup"
        self.folder = root / ("disk" if case.linked else "etc/docker")
        self.folder.mkdir(parents=True)
        self.kept.parent.mkdir(parents=True)
        if case.linked:
            (root / "etc").mkdir()
            (root / "etc/docker").symlink_to(self.folder)
        self.file = root / "etc/docker/daemon.json"
        if case.true is not None:
            self.file.write_text(case.true)
            self.file.chmod(0o640)
        head = resources.script("lib")
        assert "KEPT=/var/lib/gpuready/backup\n" in head
        self.head = head.replace("KEPT=/var/lib", f"KEPT={root}/var/lib") + (
            f"F={self.file}; THERE={'' if case.true is None else 1}\n"
        )

    def content(self) -> str | None:
        return self.file.read_text() if self.file.exists() else None

    def sh(self, body: str, shell: str = "sh") -> subprocess.CompletedProcess[str]:
        return subprocess.run([shell, "-c", self.head + body], capture_output=True, text=True, check=False)

    def untrue(self) -> list[str]:
        """What is not as it may be at any time."""
        found, now = [], self.content()
        if now not in self.case.may:
            found.append(f"the file is {'not there' if now is None else repr(now[:40])}")
        original, absent = (Path(f"{self.kept}{self.file}.{kind}") for kind in ("original", "absent"))
        if original.exists() and original.read_text() != self.case.true:
            found.append("the original is not the true one")
        if absent.exists() and self.case.true is not None:
            found.append("on record there was no file")
        recorded = "record" not in self.case.body and "rewrite" not in self.case.body
        if recorded and now != self.case.true and not (absent if self.case.true is None else original).exists():
            found.append("the file is ours, and its original is not on record")
        return found

    def unmended(self) -> list[str]:
        """The next run, and the way back: what of them fails or leaves something behind."""
        found = []
        ran = self.sh(self.case.body)
        if ran.returncode or ran.stderr:
            found.append(f"the next run: exit {ran.returncode}, {ran.stderr}")
        if self.content() != self.case.new and "undone" not in self.case.body:
            found.append("the next run did not bring the new file")
        found += self.untrue()
        back = self.sh(self.case.back)
        if back.returncode or back.stderr:
            found.append(f"the way back: exit {back.returncode}, {back.stderr}")
        if self.case.back != ":":
            if self.content() != self.case.true:
                found.append("the way back did not bring the original")
            elif self.case.true is not None and self.file.stat().st_mode & 0o777 != 0o640:
                found.append(f"its mode is {self.file.stat().st_mode:o}")
            if left := [str(path) for path in self.kept.rglob("*") if path.is_file()]:
                found.append(f"left on record: {left}")
        if left := [p.name for folder in (self.folder, self.kept) for p in folder.rglob(".gpuready*")]:
            found.append(f"left: {left}")
        return found


def _tells(call: str) -> bool:
    """Leave out what `put` alone shows for all: how a new file comes to be before it has its name."""
    return not re.search(r"/\.gpuready-|^mkdir |^fsync .*/backup", call)


def attempt(name: str, nth: int, error: int) -> tuple[bool, list[str]]:
    """One cut, or one failure: was there an nth call, and what is wrong afterwards?"""
    case = CASES[name]
    with tempfile.TemporaryDirectory(prefix="gpuready-cut-", dir=_MEMORY) as scratch:
        place = Place(Path(scratch), case)
        if case.before:
            assert place.sh(case.before).returncode == 0
        done = cut.run(["sh", "-c", place.head + case.body], [scratch], nth, error, bool if name == "put" else _tells)
        if not done.reached:
            assert (done.code, done.said) == (0, ""), done
            return False, place.untrue()
        found = place.untrue()
        if error:
            if done.code == 0 and place.content() != case.new:
                found.append("it says that it is done")
            if done.code and not re.search(case.words, done.said.splitlines()[-1]):
                found.append("it does not say what is wrong")
        if error in (0, errno.ENOSPC):
            found += place.unmended()
        how = errno.errorcode[error] if error else "killed"
        return True, [f"{name}, {how} at {nth} ({done.calls[nth - 1]}): {each}; it said {done.said!r}" for each in found]


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Two processes without threads, which is what a tracer needs."""
    in_ci_or_skip(cut.unavailable())
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as made:
        yield made


@pytest.mark.fault("D4", "kill-inside-backup")
@pytest.mark.parametrize("name", CASES)
def test_a_cut_or_a_failure_at_each_call_that_writes(name: str, pool: ProcessPoolExecutor) -> None:
    errors = (0, *cut.ERRORS) if name == "put" else (0, errno.ENOSPC)
    complaints: list[str] = []
    for error in errors:
        nth, ends = 1, False
        while not ends:
            for reached, found in pool.map(attempt, *zip(*((name, n, error) for n in range(nth, nth + 8)), strict=True)):
                ends = ends or not reached
                complaints += found
            nth += 8
        assert nth > 8 or not ends
    assert not complaints, "\n".join(complaints)

"""Files that are relied on (templates/lib/lib.sh.j2), cut at each call that writes, and with each such call failing.

Whatever happens, the file is the old one or the new one, the original on record is the true one or none while the file
is untouched, and the next run mends the rest.
"""

import base64
import errno
import hashlib
import multiprocessing
import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuready.base import resources
from tests import cut

pytestmark = pytest.mark.long

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
    """``before`` and ``body`` are shell; ``true`` is the file's first content, ``may`` what it may be after a cut."""

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
    return f'TENTATIVE=1; {body}; roll_back "$F"'


#: Where a transaction was rolled back nothing need be on record.
_IF_RECORDED = 'at "$F"; ! recorded || restore "$F" "$THERE"'
#: Who calls these says what is wrong.
_ANY = "."


_OURS = f"{_put(SECOND)}\n"
CASES = {
    "put": Case(_put(SECOND)),
    "put through a linked parent": Case(_put(SECOND), linked=True),
    "put where nothing was": Case(_put(SECOND), true=None, may=(None, SECOND)),
    "put over ours": Case(_put(THIRD), _OURS, may=(SECOND, THIRD), new=THIRD),
    "put, confirmed": Case(f'TENTATIVE=1; {_put(SECOND)}; confirm "$F"', words=_ANY),
    "put, rolled back": Case(_again(_put(SECOND)), new=FIRST, back=_IF_RECORDED, words=_ANY),
    "put over ours, rolled back": Case(_again(_put(THIRD)), _OURS, may=(SECOND, THIRD), new=SECOND, words=_ANY),
    "put where nothing was, rolled back": Case(
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
        head = resources.script("lib/lib")
        assert "KEPT=/var/lib/gpuready/backup\n" in head
        self.head = head.replace("KEPT=/var/lib", f"KEPT={root}/var/lib") + (
            f"F={self.file}; THERE={'' if case.true is None else 1}\n"
        )

    def content(self) -> str | None:
        return self.file.read_text() if self.file.exists() else None

    def sh(self, body: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", "-c", self.head + body], capture_output=True, text=True, check=False)

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
        if self.content() != self.case.new and "roll_back" not in self.case.body:
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
        return True, [
            f"{name}, {how} at {nth} ({done.calls[nth - 1]}): {each}; it said {done.said!r}" for each in found
        ]


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Two processes without threads, which is what a tracer needs."""
    in_ci_or_skip(cut.unavailable())
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as made:
        yield made


@pytest.mark.fault("D4", "kill-inside-backup")
@pytest.mark.parametrize("name", CASES)
def test_a_cut_or_a_failure_at_each_call_that_writes(name: str, pool: ProcessPoolExecutor) -> None:
    errors: tuple[int, ...] = (0, *cut.ERRORS) if name == "put" else (0, errno.ENOSPC)
    if name in ("put through a linked parent", "put, confirmed"):  # they fail as put does
        errors = (0,)
    complaints: list[str] = []
    for error in errors:
        nth, ends = 1, False
        while not ends:
            for reached, found in pool.map(
                attempt, *zip(*((name, n, error) for n in range(nth, nth + 8)), strict=True)
            ):
                ends = ends or not reached
                complaints += found
            nth += 8
        assert nth > 8 or not ends
    assert not complaints, "\n".join(complaints)


# --- what a loss of power leaves ---


@pytest.mark.fault("D4", "power-cut-unsynced-backup")
@pytest.mark.parametrize("name", CASES)
def test_content_and_names_are_synced_before_the_next_rename(
    name: str, tmp_path: Path, pool: ProcessPoolExecutor
) -> None:
    """Content is synced before the rename, and the directory before the next rename: no order is left to the kernel."""
    case = CASES[name]
    place = Place(tmp_path, case)
    assert not case.before or place.sh(case.before).returncode == 0
    calls = pool.submit(cut.run, ["sh", "-c", place.head + case.body], [str(tmp_path)]).result().calls
    pending: set[str] = set()  # directories of which a name is not on disk
    unsynced: set[str] = set()  # files whose content is not on disk
    renamed = [
        n for n, call in enumerate(calls) if call.startswith("rename") and not call.endswith("/.gpuready.before")
    ]
    for n, call in enumerate(calls):
        what, path = call.split(" ", 1)
        if what == "fsync":
            unsynced.discard(path)
            pending.discard(path)
        elif what in ("write", "copy_file_range"):
            unsynced.add(path)
        elif n in renamed:
            assert not unsynced, f"{call}: {unsynced} may be empty after it"
            # mv tries renameat2 first, and again renameat where something has the name.
            assert pending <= {str(Path(path).parent)}, f"{call}: the name before it may be lost"
            pending = {str(Path(path).parent)}
    assert not pending and not unsynced, (pending, unsynced)


# --- the original is the true one ---


@pytest.fixture
def node(tmp_path: Path) -> Place:
    """A node with the user's file, where ``put`` is to write ours."""
    return Place(tmp_path, Case(_put(SECOND)))


@pytest.mark.fault("D4")
def test_a_damaged_original_is_refused_in_words(node: Place) -> None:
    assert node.sh(node.case.body).returncode == 0
    original = Path(f"{node.kept}{node.file}.original")
    original.write_text(FIRST[:20])
    done = node.sh('putback "$F" 1')
    assert done.returncode == 1 and "is damaged (its hash is not the one on record)" in done.stderr
    assert str(original) in done.stderr and node.content() == SECOND


@pytest.mark.fault("D4", "kill-inside-backup")
@pytest.mark.parametrize("body", [_put(THIRD), 'putback "$F" 1'])
def test_a_copy_that_lacks_bytes_is_never_kept_and_never_put_back(node: Place, body: str) -> None:
    """A cp that ends well says nothing about what it wrote. Here it writes 20 bytes."""
    if "putback" in body:
        assert node.sh(node.case.body).returncode == 0

    def copies() -> dict[Path, str]:
        return {path: path.read_text() for end in ("original", "last") for path in node.kept.rglob(f"*.{end}")}

    before, kept = node.content(), copies()
    short = 'cp() { for last; do :; done; shift; head -c 20 "$1" >"$last"; }'
    done = node.sh(f"{short}; {body}")
    assert (done.returncode, node.content()) == (1, before)
    assert re.search(r"^cannot (keep a copy|write in) .*it was not changed|was not changed$", done.stderr), done
    assert copies() == kept
    assert [path.name for path in node.folder.iterdir()] == [node.file.name]


@pytest.mark.fault("D4")
def test_an_edit_after_a_run_that_failed_is_the_original(node: Place) -> None:
    node.folder.joinpath(".gpuready.before").mkdir()  # the last step of `put` fails
    assert node.sh(f"TENTATIVE=1; {node.case.body}").returncode == 1
    node.folder.joinpath(".gpuready.before").rmdir()
    assert node.content() == FIRST
    node.file.write_text("theirs, since\n")
    done = node.sh(f'{node.case.body}; restore "$F" 1')
    assert (done.returncode, done.stderr, node.content()) == (0, "", "theirs, since\n")


@pytest.mark.fault("D4")
def test_the_original_outlives_a_cut_between_two_writes_of_one_transaction(node: Place) -> None:
    """Docker's writes the file several times before it is confirmed; what a cut leaves there is none of the user's."""
    between = base64.b64encode(THIRD.encode()).decode()
    assert node.sh(f'TENTATIVE=1; {node.case.body}; rewrite "$AT_FILE" {between}; exit 9').returncode == 9
    assert node.content() == THIRD
    done = node.sh(f'{node.case.body}; restore "$F" 1')
    assert (done.returncode, done.stderr, node.content()) == (0, "", FIRST)


@pytest.mark.fault("D6", "linked-parent-directory")
def test_a_link_that_leads_elsewhere_since_hides_no_record(tmp_path: Path) -> None:
    node = Place(tmp_path, Case(_put(SECOND), linked=True))
    assert node.sh(node.case.body).returncode == 0
    moved = node.folder.rename(tmp_path / "moved")
    (tmp_path / "etc/docker").unlink()
    (tmp_path / "etc/docker").symlink_to(moved)
    done = node.sh('is_ours "$F" || exit 9; restore "$F" 1')
    assert (done.returncode, done.stderr, node.content()) == (0, "", FIRST)


# --- kept, or refused before anything is touched ---


def test_a_file_that_changed_since_the_plan_is_refused(node: Place) -> None:
    done = node.sh(f'put "$F" {hashlib.sha256(b"of the plan").hexdigest()} {base64.b64encode(b"ours").decode()}')
    assert done.returncode == 1 and "changed since the plan was made; it was not touched" in done.stderr
    assert node.content() == FIRST and not list(node.kept.rglob("*.original"))


def test_a_secret_is_for_root_alone_and_its_hash_is_not_kept(node: Place) -> None:
    node.file.unlink()
    assert node.sh(f'umask 0; SECRET=$F; {_put(SECOND)}; is_ours "$F" || exit 9').returncode == 0
    record = Path(f"{node.kept}{node.file}.ours")
    assert (node.file.stat().st_mode & 0o777, record.read_text()) == (0o600, "(secret)\n")
    folders = [path.stat().st_mode & 0o777 for path in (node.kept, record.parent)]
    assert folders == [0o700, 0o700]


def as_root() -> None:
    in_ci_or_skip(None if os.geteuid() == 0 else "it takes root")


def _entry(tag: int, allowed: int, who: int = 0xFFFFFFFF) -> bytes:
    return struct.pack("<HHI", tag, allowed, who)


_ACL = struct.pack("<I", 2) + _entry(1, 6) + _entry(2, 4, 12345) + _entry(4, 4) + _entry(16, 4) + _entry(32, 0)


@pytest.mark.fault("D13", "xattrs-hard-links", "selinux-label")
def test_attributes_stay_and_come_back(node: Place) -> None:
    """Mode, owner, ACL, extended attributes. A kernel without SELinux shows its label as the attribute that it is."""
    as_root()
    label = b"system_u:object_r:container_config_t:s0\0"
    attributes = {"user.site": b"gpu rack 7", "system.posix_acl_access": _ACL}
    if not Path("/sys/fs/selinux/enforce").exists():
        attributes["security.selinux"] = label
    os.chown(node.file, 12, 34)
    for name, value in attributes.items():
        os.setxattr(node.file, name, value)
    before = node.file.stat()

    def seen() -> dict[str, bytes]:
        now = node.file.stat()
        assert (now.st_mode, now.st_uid, now.st_gid) == (before.st_mode, 12, 34)
        return {name: os.getxattr(node.file, name) for name in attributes}

    assert node.sh(node.case.body).returncode == 0
    assert (node.content(), seen()) == (SECOND, attributes)
    assert node.sh('drop "$F" "$(sha "$F")"').returncode == 0 and node.content() is None
    assert node.sh('restore "$F" 1').returncode == 0
    assert (node.content(), seen(), node.file.stat().st_mtime) == (FIRST, attributes, before.st_mtime)


@pytest.mark.fault("D13", "xattrs-hard-links")
def test_a_hard_link_is_refused(node: Place, tmp_path: Path) -> None:
    """All files are asked before the first is touched; nothing of the file or beside it is another."""
    os.link(node.file, tmp_path / "second")
    other = node.file.with_name("other.json")
    other.write_text("other\n")
    before = {path: path.stat().st_mtime_ns for path in node.folder.iterdir()}
    done = node.sh(f'G={other}; same "$G" "$(sha "$G")"; same "$F" "$(sha "$F")"; {node.case.body}')
    refusal = r"has another name \(a hard link\).*it was not touched"
    assert done.returncode == 1 and re.search(refusal, done.stderr.splitlines()[-1]), done
    assert {path: path.stat().st_mtime_ns for path in node.folder.iterdir()} == before
    assert node.content() == FIRST and not Path(f"{node.kept}{node.file}.original").exists()
    (tmp_path / "second").unlink()
    assert node.sh(node.case.body).returncode == 0


@pytest.mark.fault("D13", "immutable-file")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_an_immutable_file_or_directory_is_refused(
    node: Place, tmp_path: Path, what: str, pool: ProcessPoolExecutor
) -> None:
    """By the error that the flag gives (EPERM) everywhere, and by the flag itself where the file system has flags."""
    opens = {"file": r"^openat \S+/daemon\.json$", "folder": r"^openat \S+/docker/\.gpuready-"}[what]
    script = ["sh", "-c", f'{node.head}same "$F" "$(sha "$F")"']
    done = pool.submit(cut.run, script, [str(tmp_path)], 1, errno.EPERM, re.compile(opens).search).result()
    refusals = [(done.code, done.said)]
    flagged = os.geteuid() == 0 and _mark(getattr(node, what), "+i")
    try:
        if flagged:
            ran = node.sh(node.case.body)
            refusals.append((ran.returncode, ran.stderr))
    finally:
        _mark(getattr(node, what), "-i")
    for code, said in refusals:
        assert code == 1 and re.search("immutable.*it was not touched|immutable.*was not changed", said), said
    assert node.content() == FIRST
    assert node.sh(node.case.body).returncode == 0


def _mark(path: Path, flag: str) -> bool:
    """Set or take a file's flag; False where its file system has none."""
    return subprocess.run(["chattr", flag, str(path)], capture_output=True, check=False).returncode == 0


@pytest.mark.fault("D13", "read-only-filesystem", "inode-exhaustion")
@pytest.mark.parametrize("where", ["etc/docker", "var/lib/gpuready"])
@pytest.mark.parametrize(
    ("options", "then", "why", "room"),
    [
        ("mode=755", "mount -o remount,ro .", "read-only", ""),
        (
            "mode=755,nr_inodes=9",
            "for n in $(seq 20); do true 2>/dev/null >$n || break; done",
            "out of inodes",
            "has 0 inodes free, 64 are needed; nothing was changed",
        ),
    ],
    ids=["read-only", "no inodes left"],
)
def test_a_file_system_that_takes_no_file_is_refused(
    node: Place, where: str, options: str, then: str, why: str, room: str
) -> None:
    """It is a file system of its own, in a mount namespace that ends with the script."""
    as_root()
    folder = node.root / where
    script = f"""set -e
    cp -a {folder} {folder}.copy; mount -t tmpfs -o {options} tmpfs {folder}; cp -a {folder}.copy/. {folder}
    ( cd {folder}; {then} )
    set +e
    {node.head}
    ( room 1 {folder} ); ( same "$F" "$(sha "$F")" ); echo "exit $?" >&2; ( {node.case.body} ); echo "exit $?" >&2
    sha "$F" >&2
    """
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False)
    said = done.stderr.splitlines()
    assert [line for line in said if line.startswith("exit")] == ["exit 1", "exit 1"], done
    assert len([line for line in said if why in line and re.search("was not (changed|touched)", line)]) == 2, done
    assert room in done.stderr, done
    assert said[-1] == hashlib.sha256(FIRST.encode()).hexdigest()

"""What was on the node before gpuready's first touch: the way back of ``gpuready remove``.

The scripts keep it (``keep``, ``put`` and ``drop`` in templates/lib/lib.sh.j2): under :data:`KEPT` and the path by
which the file is called lie its original with its hash (or the word that there was none) and the hash of what gpuready
wrote last; the probe reads them. Where a link in the path leads elsewhere later, the record is still found.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from gpuready.base.facts import KEPT
from gpuready.base.step import Script, Step, Steps
from gpuready.contract.component import Change, NotComparable, Value
from gpuready.model.state import File, NodeState

#: Where `gpuready remove` leaves originals that it did not put back.
LEFT = "/var/lib/gpuready/left"
#: Stands for the hash of a file with a secret: of a hash the secret can be guessed.
SECRET = "(secret)"


@dataclass(frozen=True)
class Kept:
    """A file that gpuready changed: what it was (None: there was no file), the hash of that, and of what is gpuready's.

    ``ours`` has two hashes where a run was cut: that of the last version and that of the next.
    """

    path: str
    copy: File | None
    sha256: str
    ours: tuple[str, ...]

    @property
    def original(self) -> bytes | None:
        """The content from before; raises :class:`NotComparable` where the copy is not what was copied."""
        if damage := self.damage:
            raise NotComparable(damage)
        return self.copy.data if self.copy else None

    @property
    def damage(self) -> str:
        """Why the original cannot be put back, and what to do; empty where it can."""
        if self.copy is None or self.copy.sha256 == self.sha256:
            return ""
        return (
            f"the original of {self.path} in {KEPT} is damaged (its hash is not the one on record): "
            f"put the file back by hand, and remove {KEPT}{self.path}.*"
        )


def kept(state: NodeState, path: str) -> Kept | None:
    """The record of one file; None when gpuready never touched it."""
    original, absent, sha256, *ours = (state.files.get(f"{KEPT}{path}.{kind}") for kind in _RECORD)
    if not original and not absent:
        return None
    hashes = tuple(file.text.strip() for file in ours if file)
    known = "absent" if original is None else sha256.text.strip() if sha256 else original.sha256
    return Kept(path, original, known, hashes)


_RECORD = ("original", "absent", "sha256", "ours", "next")


def paths(state: NodeState, folder: str) -> tuple[str, ...]:
    """All files below a folder that gpuready changed."""
    found = {path.removeprefix(KEPT).rpartition(".")[0] for path in state.glob(f"{KEPT}{folder}/")}
    return tuple(sorted(path for path in found if kept(state, path)))


def damaged(state: NodeState) -> list[str]:
    """Notes on originals that `gpuready remove` could not put back, while there is time to look for them."""
    return [damage for path in paths(state, "") if (record := kept(state, path)) and (damage := record.damage)]


def whole(name: str, state: NodeState, touched: Collection[str]) -> dict[str, Value]:
    """Keys of files that go back as a whole; one that somebody else has changed since is left to them."""
    records = {path: record for path in touched if (record := kept(state, path)) and _goes_back(state, path, record)}
    return {f"{name}.files.{path}": None if r.original is None else "original" for path, r in records.items()}


def left(state: NodeState, touched: Collection[str]) -> tuple[str, ...]:
    """Notes on the files that :func:`whole` leaves alone."""
    return tuple(
        f"{path} was edited after gpuready changed it: it stays, and its original goes to {LEFT}{path}.original"
        for path in touched
        if path in state.files and (record := kept(state, path)) and not _goes_back(state, path, record)
    )


def _goes_back(state: NodeState, path: str, record: Kept) -> bool:
    """Is the file ours by its name, as we left it, or back already, because a run was cut?"""
    named = "gpuready" in path.rpartition("/")[2]
    return named or state.sha256(path) in (*record.ours, record.sha256)


def actual(name: str, state: NodeState, touched: Collection[str]) -> dict[str, Value]:
    """What the keys of :func:`whole` are now."""
    return {f"{name}.files.{path}": _now(state, path) for path in touched}


def _now(state: NodeState, path: str) -> Value:
    file, record = state.files.get(path), kept(state, path)
    if record is None:
        return None
    if state.sha256(path) == record.sha256:  # what hangs on it may be undone yet: the record says so
        return "original, on record"
    if file is None:
        return "removed"
    return "gpuready's" if {SECRET, file.sha256} & {*record.ours} else "gpuready's, edited since"


def restore(name: str, diff: tuple[Change, ...], state: NodeState, *, ldconfig: bool = False) -> Steps:
    """The step that closes keys of :func:`whole`."""
    yield Step(name, Restore(to_restore(diff, state), ldconfig), summary=f"take back {name}")


class Put(NamedTuple):
    """A file to write: its path, its hash before (or ``absent``), and its new content."""

    path: str
    before: str
    content: bytes


class Drop(NamedTuple):
    """A file to remove: its path, and its hash before."""

    path: str
    before: str


class Putback(NamedTuple):
    """A file to put back as it was: its path, its hash now (or ``absent``), and whether there was a file."""

    path: str
    before: str
    there: bool


class WriteFiles(Script, template="lib/files"):
    """Write and remove whole files, all or none.

    ``secret``: the path of the one that only root may read. ``program``: that of one to make executable.
    """

    puts: tuple[Put, ...]
    drops: tuple[Drop, ...] = ()
    secret: str = ""
    program: str = ""


class Restore(Script, template="ledger/restore"):
    """Put files back as they were before gpuready's first change, and run ldconfig if that is asked for."""

    files: tuple[Putback, ...]
    ldconfig: bool = False


def put(state: NodeState, path: str, content: str | bytes) -> Put:
    """The file with that content, in place of what the plan saw."""
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    return Put(path, state.sha256(path), data)


def to_restore(diff: tuple[Change, ...], state: NodeState) -> tuple[Putback, ...]:
    """The files that keys of :func:`whole` name."""
    back = {c.key.partition(".files.")[2]: c.expected for c in diff if ".files." in c.key}
    return tuple(Putback(path, state.sha256(path), then is not None) for path, then in back.items())

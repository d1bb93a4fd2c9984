"""What became of each host of an apply, written to a file as the run goes, so that a later run does only the rest.

``DIR/apply.jsonl`` has a line when a host's change begins and one when the host ends; the last line of a host counts.
Each is synced before the run goes on, so a run that is killed loses no host. Which node is still drained is no part of
it: the marks on the node, in Slurm and in Kubernetes tell, and cannot be outdated (operations/drain.py).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gpuready import __version__
from gpuready.base.errors import OutputError, UsageError, brief
from gpuready.base.facts import Facts
from gpuready.base.files import open_file, reason, replace_file
from gpuready.contract.node_record import spec_hash
from gpuready.inventory.hosts import HostEntry
from gpuready.model.spec import NodeSpec
from gpuready.result.document import DocumentError, host_document, read_host
from gpuready.result.exitcode import exit_code
from gpuready.result.model import EARLIER, Error, HostResult, Run

FILE = "apply.jsonl"
#: Exit codes of hosts that need no other attempt because something went wrong there.
_NOT_FAILED = (0, 6, 7)
_AGAIN = "this run checks it again, and brings it back into service if gpuready drained it"


class Asked(Facts):
    """What a run asks of a host. A host is done only for the run that asks the same."""

    spec: str
    components: tuple[str, ...]
    gpuready: str
    address: str

    def changed(self, now: Asked) -> str:
        """Say what differs now; empty if nothing does."""
        words = {
            "spec": "its spec",
            "components": "the components that --only and --skip choose",
            "gpuready": "the release of gpuready",
            "address": "its address",
        }
        return ", ".join(word for name, word in words.items() if getattr(self, name) != getattr(now, name))


class Entry(Facts):
    """A line: a host whose change began (``result`` is None), or one that ended.

    ``begun``: its change began and has not ended well, in this run or an earlier one.
    """

    host: str
    time: str
    asked: Asked
    begun: bool
    result: dict[str, Any] | None = None


class Journal:
    """The file of one run. ``entries``: the hosts that are left to do, as ``earlier`` has the others.

    ``again``: hosts whose change began earlier and did not end well. Without ``resume`` or ``failed_only``, all hosts
    are done anew. The directory is locked until the process ends.
    """

    def __init__(
        self,
        folder: Path,
        entries: Sequence[HostEntry],
        selected: frozenset[str] | None,
        *,
        resume: bool = False,
        failed_only: bool = False,
    ) -> None:
        self._path, self._names = folder / FILE, [entry.name for entry in entries]
        self._asked = {entry.name: _asked(entry, selected) for entry in entries}
        self.trouble = ""
        """Why a line could not be written."""
        self.earlier: dict[str, HostResult] = {}
        self._well = set[str]()
        self._again = f"the same command with --resume{' instead of --failed-only' if failed_only else ''}"
        try:
            self._lock(folder)
            found = _read(self._path)
            if not resume and not failed_only:
                found = {name: entry for name, entry in found.items() if entry.begun}
            lines = "".join(f"{entry.model_dump_json()}\n" for entry in found.values())
            replace_file(self._path, lines.encode(), 0o600)
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            os.fsync(self._folder)
        except OSError as e:
            raise UsageError(
                f"--state-dir {folder}: {reason(e)}", remedy="name a directory that gpuready can write to"
            ) from None
        self.again = frozenset(name for name in self._names if name in found and found[name].begun)
        self.entries = tuple(
            rest
            for entry in entries
            if (rest := self._rest(entry, found.get(entry.name), resume=resume, failed_only=failed_only))
        )
        self._known = {entry.name: entry.notes for entry in self.entries}

    def _lock(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"--state-dir {folder}: another gpuready run uses it", remedy="wait for its end, or name another one"
            ) from None

    def _rest(self, entry: HostEntry, before: Entry | None, *, resume: bool, failed_only: bool) -> HostEntry | None:
        """Return the host, with notes, if it is left to do. Else store what it was, and return None."""
        notes: list[str] = []
        result = read_host(entry.name, before.result) if before is not None and before.result is not None else None
        if before is not None and before.begun:
            changed_it = result is not None and any(item.changed for item in result.components)
            how = "did not finish this node" if result is None else "did not end well on this node"
            how = "changed this node, but did not end well there" if changed_it else how
            notes = [f"an earlier run {how}; {_AGAIN}"]
        if before is not None and (resume or failed_only):
            changed = before.asked.changed(self._asked[entry.name])
            failed = result is None or exit_code(Run("apply", [result])) not in _NOT_FAILED
            if failed_only and not failed and changed:
                self._leave_out(entry, f"{changed} changed since {before.time}; --resume does it")
                return None
            if result is not None and not changed and (_ended_well(result) or (failed_only and not failed)):
                result.earlier = before.time
                result.notes = [
                    *entry.notes,
                    *(f"in an earlier run: {note}" for note in result.notes),
                    EARLIER,
                ]
                self.earlier[entry.name] = result
                self._well |= {entry.name} if _ended_well(result) else set()
                return None
            if changed:
                notes.append(f"done anew: {changed} changed since an earlier run")
        elif failed_only:
            self._leave_out(entry, "no earlier run began it")
            return None
        return replace(entry, notes=(*entry.notes, *notes))

    def _leave_out(self, entry: HostEntry, why: str) -> None:
        self.earlier[entry.name] = HostResult(entry.name, notes=[f"not chosen by --failed-only: {why}"])

    def complete(self, run: Run) -> None:
        """Add the hosts that were done earlier to the result, in the order of the inventory."""
        by_name = {host.name: host for host in run.hosts} | self.earlier
        run.hosts = [by_name[name] for name in self._names]
        if any(host.outcome != "skipped" and host.name not in self._well for host in run.hosts):
            run.for_the_rest = self._again
        if self.trouble and run.error is None:
            run.error = Error.of(OutputError(self.trouble, remedy="free disk space, then run again with --resume"))

    def begin(self, names: Iterable[str]) -> None:
        """Write that the change of these hosts begins."""
        self._write(Entry(host=name, time=_now(), asked=self._asked[name], begun=True) for name in names)
        self.again |= frozenset(names)

    def end(self, host: HostResult) -> None:
        """Write what became of a host, unless its turn is still to come. Notes from before the run are left out."""
        if host.outcome in ("would_change", "not_attempted"):
            return
        well = _ended_well(host)
        self._well |= {host.name} if well else set()
        begun = host.name in self.again and not well
        entry = Entry(host=host.name, time=_now(), asked=self._asked[host.name], begun=begun)
        seen = [note for note in host.notes if note not in self._known[host.name]]
        self._write([entry.model_copy(update={"result": host_document(Run("apply"), replace(host, notes=seen))})])

    def _write(self, entries: Iterable[Entry]) -> None:
        data = "".join(f"{entry.model_dump_json()}\n" for entry in entries).encode()
        try:
            while data and not self.trouble:  # a line that was cut off must stay the last one
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as e:
            self.trouble = f"the state of this run cannot be written to {self._path}: {reason(e)}"


def _asked(entry: HostEntry, selected: frozenset[str] | None) -> Asked:
    at = entry.connection
    return Asked(
        spec=spec_hash(entry.spec.model_copy(update={"maintenance": NodeSpec().maintenance})),
        components=tuple(sorted(selected or ())),
        gpuready=__version__,
        address=f"{at.address}:{at.port or ''}",
    )


def _ended_well(host: HostResult) -> bool:
    """Ask for what verify asks: a check that is unknown is open, although apply does not fail by it."""
    return host.outcome in ("ok", "changed") and exit_code(Run("verify", [host])) == 0


def _read(path: Path) -> dict[str, Entry]:
    """Return the last entry of each host. A run that was killed may have left half a line at the end."""
    found: dict[str, Entry] = {}
    if not path.exists():
        return found
    with open_file(path) as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                entry = Entry.model_validate_json(line)
            except ValidationError as e:
                why = e.errors(include_url=False, include_input=False)[0]["msg"]
                raise DocumentError(
                    f"{path}:{number}: damaged, or written by another release: {brief(why, 100)}",
                    remedy="name another --state-dir and leave out --resume; all hosts are done again",
                ) from None
            found[entry.host] = entry
    return found


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

"""The repository of the NVIDIA container toolkit: one file for the package manager, and one verified key.

The two most common causes of failed installations are an unverified key and an old entry beside the new one. gpuready
fetches the key, checks its full fingerprint on the controller, and only then writes anything.
Sources: the toolkit's installation guide and its troubleshooting page.
"""

import base64
from collections.abc import Generator

from gpuready.base.errors import ConvergeError
from gpuready.base.files import read_file, reason
from gpuready.base.step import Reply, Script, Step, Steps
from gpuready.components.repository import apt_sources
from gpuready.components.repository.key import accepted
from gpuready.components.repository.openpgp import LIMIT, KeyFileError, certificate
from gpuready.components.repository.source import source
from gpuready.components.toolkit.spec import REACH_REPOSITORY
from gpuready.components.toolkit.state import PACKAGES
from gpuready.contract import ledger
from gpuready.contract.component import Applies, Change, Value, Values
from gpuready.contract.package_manager import manager, refuse_to_install
from gpuready.contract.removal import WholeFiles
from gpuready.model.spec import NodeSpec
from gpuready.model.state import File, NodeState


class Repository(WholeFiles):
    """The toolkit's repository: one entry, its verified key, and its proxy."""

    name = "repository"
    owned_as = "toolkit"

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        return Applies(True, "the toolkit comes from here")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        refuse_to_install(state)
        own: Values = {"repository.key": (spec.toolkit.repo.fingerprint,), "repository.conflicts": ()}
        return {**source(state).expected(spec), **own}

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        from_node = source(state)
        return {
            **from_node.actual(spec, state),
            "repository.key": _key(state.files.get(from_node.keyring), state.clock),
            "repository.conflicts": tuple(_conflicts(spec, state)),
            **ledger.actual("repository", state, self.touched(state)),
        }

    def touched(self, state: NodeState) -> tuple[str, ...]:
        """Return the files that this component changed; other components also have files below /etc."""
        own = source(state)
        return tuple(
            path
            for path in ledger.paths(state, "/etc")
            if path in (own.keyring, own.path, own.proxy) or path.startswith(own.lists)
        )

    def notes_on_removal(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        return ledger.left(state, self.touched(state))

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        if not any(c.key == "repository.conflicts" for c in diff):
            return ()
        return tuple(
            f"{p}: its entries for this repository go; a copy stays on the node" for p in _conflicts(spec, state)
        )

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        key = None
        if any(c.key == "repository.key" for c in diff):
            key = yield from self._fetch(spec, state)
        own = source(state)
        if _only_here(diff, spec, state):
            yield self._read(key or b"", spec, state)
        puts = [ledger.put(state, own.keyring, key)] if key is not None else []
        drops, secret = [], ""
        for path, text, is_secret in own.files(spec):
            secret = path if is_secret else secret
            if text is not None:
                puts.append(ledger.put(state, path, text))
            elif path in state.files:
                drops.append(path)
        for path, kept in _conflicts(spec, state).items():
            if apt_sources.is_bare(kept) and path != own.lists:
                drops.append(path)
            else:
                puts.append(ledger.put(state, path, kept))
        script = ledger.WriteFiles(
            tuple(put for put in puts if not _is_there(state, put, put.path == secret)),
            tuple(ledger.Drop(path, state.sha256(path)) for path in drops),
            secret,
        )
        yield Step("repository", script, summary="write the source")

    def _read(self, key: bytes, spec: NodeSpec, state: NodeState) -> Step:
        own = source(state)
        texts = {each.path: each.content or "" for each in own.files(spec)}
        proxy = "" if own.proxy == own.path else texts[own.proxy]
        script = ReadRepository(texts[own.path], proxy, own.keyring, key.decode("ascii"), manager(state).dnf)
        fixes = (("the repository cannot be read", REACH_REPOSITORY),)
        return Step("repository-list", script, timeout=600, survives=False, summary="read the new source", fixes=fixes)

    def _fetch(self, spec: NodeSpec, state: NodeState) -> Generator[Step, Reply, bytes]:
        """Get the key file, check it, and return its one key in the form that gpuready writes."""
        repo = spec.toolkit.repo
        if "://" in repo.key:
            reply = yield Step(
                "repository-key",
                FetchKey(repo.key, source(state).setting(spec, repo.key) or "", manager(state).dnf),
                timeout=120,
                survives=False,
                summary=f"fetch {repo.key}",
                fixes=(("cannot fetch the key", REACH_REPOSITORY),),
            )
            data = _decoded(reply.out)
        else:
            try:
                data = read_file(repo.key, LIMIT)
            except (OSError, ValueError) as e:
                raise ConvergeError(
                    f"{repo.key} cannot be read: {reason(e)}; nothing was written",
                    remedy="toolkit.repo.key is a file on the machine that runs gpuready, or a URL",
                ) from None
        return accepted(data, repo, state.clock).armored


class FetchKey(Script, template="repository/fetch-key"):
    """Fetch a key. ``proxy``: a line of the downloader's configuration, or empty. ``dnf``: not apt's, but curl."""

    url: str
    proxy: str
    dnf: int = 0


class ReadRepository(Script, template="repository/read"):
    """Read the repository with its new ``source`` and ``key``. The others: see :class:`FetchKey`."""

    source: str
    proxy: str
    keyring: str
    key: str
    dnf: int = 0


def _only_here(diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> bool:
    """Tell whether the source changes and the toolkit does not: its installation would read the repository."""
    changes = any(c.key != "repository.conflicts" for c in diff)
    found = [state.installed.get(name) for name in PACKAGES]
    return changes and all(each is not None and each.version == f"{spec.toolkit.version}-1" for each in found)


def _decoded(answer: str) -> bytes:
    try:
        return base64.b64decode(answer, validate=True)
    except ValueError:
        raise ConvergeError("the node's answer is not the key file in base64; nothing was written") from None


def _key(file: File | None, now: float) -> Value:
    """Return the fingerprint, plus a reason if apt refuses the key or the file is not as gpuready writes it."""
    if file is None:
        return ()
    try:
        found = certificate(file.data)
    except KeyFileError as e:
        return (f"unusable: {e}",)
    why = found.unusable(now) or ("" if file.data == found.armored else "not in the form that gpuready writes")
    return (f"{found.fingerprint}, {why}" if why else found.fingerprint,)


def _conflicts(spec: NodeSpec, state: NodeState) -> dict[str, str]:
    """Return path -> content without the entries for the repository, for each file that has such entries."""
    found: dict[str, str] = {}
    own = source(state)
    for path, file in state.glob(own.lists).items():
        if path != own.path:
            kept = own.without(path, file.text, spec)
            if kept is not None:
                found[path] = kept
    return found


def _is_there(state: NodeState, put: ledger.Put, secret: bool) -> bool:
    file = state.files.get(put.path)
    return file is not None and file.data == put.content and (not secret or not file.mode & 0o077)

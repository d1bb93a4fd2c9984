"""The apt repository of the NVIDIA container toolkit: one deb822 file with Signed-By, and one verified key.

The two most common causes of failed installations are an unverified key and an old entry beside the new one. gpuready
fetches the key, checks its full fingerprint on the controller, and only then writes anything.
Sources: sources.list(5), apt.conf(5), the toolkit's installation guide and its troubleshooting page.
"""

import base64
from collections.abc import Generator

from gpuready.base import resources
from gpuready.base.errors import ConvergeError
from gpuready.base.files import read_file, reason
from gpuready.base.step import Reply, Script, Step, Steps
from gpuready.components.repository import apt_sources
from gpuready.components.repository.openpgp import LIMIT, KeyFileError, certificate
from gpuready.contract import ledger
from gpuready.contract.component import Applies, Change, NotComparable, Value, Values
from gpuready.contract.removal import WholeFiles
from gpuready.inventory.secrets import is_reference, resolve
from gpuready.model.spec import REACH_REPOSITORY, NodeSpec
from gpuready.model.state import File, NodeState

SOURCE = "/etc/apt/sources.list.d/gpuready-nvidia-container-toolkit.sources"
KEYRING = "/etc/apt/keyrings/gpuready-nvidia-container-toolkit.asc"
PROXY = "/etc/apt/apt.conf.d/90gpuready-proxy"
#: The fields of gpuready's stanza. Any other field is an option; Trusted and Allow-Insecure would bypass the key.
_FIELDS = ("Types", "Uris", "Suites", "Signed-By", "Enabled")


class Repository(WholeFiles):
    """The toolkit's apt repository: one entry, its verified key, and its proxy."""

    name = "repository"
    part = "toolkit"

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        return Applies(True, "the toolkit comes from here")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        if "apt-get" not in state.have:
            raise NotComparable(
                f"{state.os.name or 'this node'} has no apt: gpuready installs on Debian and Ubuntu so far"
            )
        repo = spec.toolkit.repo
        proxy = _proxy_line(spec, repo.url)
        return {
            "repository.uri": repo.url,
            "repository.suite": "/",
            "repository.signed_by": KEYRING,
            "repository.options": (),
            "repository.entries": 1,
            "repository.key": (repo.fingerprint,),
            "repository.conflicts": (),
            "repository.proxy": "(secret)" if _is_secret(proxy, spec) else proxy,
        }

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        entries = apt_sources.stanzas(state.text(SOURCE))
        first = entries[0] if entries else {}
        on = first.get("Types") == "deb" and first.get("Enabled", "yes").lower() in ("yes", "true")
        return {
            "repository.uri": first.get("Uris") if on else None,
            "repository.suite": first.get("Suites"),
            "repository.signed_by": first.get("Signed-By"),
            "repository.options": tuple(f"{k}: {v}" for k, v in sorted(first.items()) if k not in _FIELDS),
            "repository.entries": len(entries),
            "repository.key": _key(state.files.get(KEYRING), state.clock),
            "repository.conflicts": tuple(_conflicts(spec, state)),
            "repository.proxy": _proxy_there(spec, state),
            **ledger.actual("repository", state, self.touched(state)),
        }

    def touched(self, state: NodeState) -> tuple[str, ...]:
        """Return the files that this component changed; other components also have files below /etc/apt."""
        return tuple(
            path
            for path in ledger.paths(state, "/etc/apt")
            if path in (KEYRING, SOURCE, PROXY) or path.startswith("/etc/apt/sources.list")
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
            key = yield from self._fetch(spec, state.clock)
        repo = spec.toolkit.repo
        source = resources.document("repository/toolkit.sources", url=repo.url, keyring=KEYRING)
        proxy = _proxy_line(spec, repo.url)
        puts = [ledger.put(state, KEYRING, key)] if key is not None else []
        puts.append(ledger.put(state, SOURCE, source))
        if proxy is not None:
            puts.append(ledger.put(state, PROXY, f"{proxy}\n"))
        drops = [PROXY] if proxy is None and PROXY in state.files else []
        for path, kept in _conflicts(spec, state).items():
            if apt_sources.is_bare(kept) and path != "/etc/apt/sources.list":
                drops.append(path)
            else:
                puts.append(ledger.put(state, path, kept))
        secret = PROXY if _is_secret(proxy, spec) else ""
        script = ledger.WriteFiles(
            tuple(put for put in puts if not _is_there(state, put, put.path == secret)),
            tuple(ledger.Drop(path, state.sha256(path)) for path in drops),
            secret,
        )
        yield Step("repository", script, summary="write the source")

    def _fetch(self, spec: NodeSpec, now: float) -> Generator[Step, Reply, bytes]:
        """Get the key file, check it, and return its one key in the form that gpuready writes."""
        repo = spec.toolkit.repo
        if "://" in repo.key:
            reply = yield Step(
                "repository-key",
                FetchKey(repo.key, _proxy_line(spec, repo.key) or ""),
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
        try:
            found = certificate(data)
        except KeyFileError as e:
            raise ConvergeError(
                f"{repo.key} is not a usable key: {e}; nothing was written",
                remedy="the file must hold one key and nothing else, as `gpg --armor --export FINGERPRINT` writes it",
            ) from None
        if found.fingerprint != repo.fingerprint:
            raise ConvergeError(
                f"{repo.key} holds the key {found.fingerprint}, the spec asks for {repo.fingerprint}; "
                "nothing was written",
                remedy="check the fingerprint with NVIDIA's documentation; then set toolkit.repo.fingerprint",
            )
        if why := found.unusable(now):
            raise ConvergeError(
                f"{repo.key}: the key {found.fingerprint} is {why}; nothing was written",
                remedy="set toolkit.repo.key to a file with the renewed key; for another key also "
                "toolkit.repo.fingerprint",
            )
        return found.armored


class FetchKey(Script, template="repository/fetch-key"):
    """Fetch a key with apt's downloader. ``proxy``: a line of apt's configuration, or empty."""

    url: str
    proxy: str


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
    for path, file in state.glob("/etc/apt/sources.list").items():
        if path != SOURCE:
            kept = apt_sources.without_repository(path, file.text, spec.toolkit.repo.url)
            if kept is not None:
                found[path] = kept
    return found


def _proxy_line(spec: NodeSpec, url: str) -> str | None:
    """Return apt's setting of the proxy for the host of ``url`` only."""
    if not spec.toolkit.repo.proxy:
        return None
    scheme, _, rest = url.partition("://")
    host = rest.split("/")[0].split(":")[0]
    return f'Acquire::{scheme}::Proxy::{host} "{resolve(spec.toolkit.repo.proxy).reveal()}";'


def _proxy_there(spec: NodeSpec, state: NodeState) -> str | None:
    """Return the setting on the node; for a secret, only whether it is the expected one."""
    file, wanted = state.files.get(PROXY), _proxy_line(spec, spec.toolkit.repo.url)
    line = file.text.strip() if file else None
    if file is None or not _is_secret(line, spec):
        return line
    if line != wanted:
        return "(another secret)"
    return "(secret), readable by others" if file.mode & 0o077 else "(secret)"


def _is_secret(line: str | None, spec: NodeSpec) -> bool:
    """Tell whether the line has a password or comes from a reference. Its hash stays hidden, too: it can be cracked."""
    return line is not None and ("@" in line or is_reference(spec.toolkit.repo.proxy or ""))


def _is_there(state: NodeState, put: ledger.Put, secret: bool) -> bool:
    file = state.files.get(put.path)
    return file is not None and file.data == put.content and (not secret or not file.mode & 0o077)

"""An inventory that is fetched and checked before it is read: over HTTPS, or from a git repository.

``https://HOST/hosts.yaml#sha256=HEX`` has this content. ``https://HOST/hosts.yaml#signers=FILE`` has a signature beside
it (``hosts.yaml.sig``, as ``ssh-keygen -Y sign -n gpuready`` writes it), by a key in this file of allowed signers.
``git+https://HOST/REPO@REF#path=FILE`` and ``git+ssh://...`` are a file of a commit or branch; with ``signers=FILE``,
the commit is signed by such a key. Sources: ssh-keygen(1), git-verify-commit(1), git-config(1) on gpg.ssh.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gpuready.base import https
from gpuready.base.child import environment
from gpuready.base.errors import InventoryError, UsageError, brief
from gpuready.inventory.programs import run
from gpuready.inventory.signatures import SPEC, SignatureError, Signers, sign_command, signer

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_HTTPS, _GIT = "https://", ("git+https://", "git+ssh://")
_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
#: The server would take it for the name of a branch.
_SHORT = re.compile(r"[0-9a-f]{7,39}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
FORMS = "https://HOST/FILE#sha256=HEX, https://HOST/FILE#signers=FILE or git+https://HOST/REPO@REF#path=FILE"


@dataclass(frozen=True)
class Source:
    """What is fetched, and how it is checked. ``name``: the URL without the check. ``ref``, ``path``: of git."""

    name: str
    url: str
    sha256: str = ""
    signers: str = ""
    ref: str = ""
    path: str = ""


def is_url(text: str) -> bool:
    """Whether ``-i`` names a URL."""
    return _URL.match(text) is not None


def source(text: str) -> Source:
    """Read the URL. Raises UsageError, which says what is wrong with it."""
    name, _, fragment = text.partition("#")
    given = {key: value for key, _, value in (part.partition("=") for part in fragment.split("&") if part)}
    git = name.startswith(_GIT)
    allowed = {"signers", "path"} if git else {"sha256", "signers"}
    url, _, ref = name.removeprefix("git+").rpartition("@") if git else (name, "", "")
    bare = git and _wrong_url(url) == "" and not urlsplit(url).path.strip("/")
    problems = (
        (not git and not name.startswith(_HTTPS), "not supported"),
        (git and (not _REF.fullmatch(ref) or ".." in ref or bare), "the commit or branch is missing"),
        (_SHORT.fullmatch(ref), "a commit has 40 digits: give all of them"),
        (not allowed.issuperset(given), f"after #, only {' and '.join(sorted(allowed))} are allowed"),
        (git and not given.get("path"), "the path of the file is missing"),
        (not git and len(given) != 1, "exactly one of sha256 and signers is required"),
        ("sha256" in given and not _SHA256.fullmatch(given["sha256"]), "a SHA-256 has 64 digits 0-9a-f"),
        ("signers" in given and not given["signers"], "the file of allowed signers is missing"),
    )
    wrong = next((why for bad, why in problems if bad), "") or _wrong_url(url)
    if wrong:
        raise UsageError(f"-i {text}: {wrong}", remedy=FORMS)
    name = f"{name}#path={given['path']}" if git else name
    return Source(name, url, given.get("sha256", ""), given.get("signers", ""), ref, given.get("path", ""))


def _wrong_url(url: str) -> str:
    """ssh needs a user name, such as git@HOST."""
    return https.problem(re.sub(r"^ssh://[A-Za-z0-9_.-]+@", _HTTPS, url))


def fetched(wanted: Source) -> bytes:
    """Return the content, after its check. Raises InventoryError."""
    try:
        signers = Signers.read(wanted.signers) if wanted.signers else None
    except ValueError as e:
        raise InventoryError(
            f"{wanted.name}: {wanted.signers}: {e}", remedy="name the file of allowed signers"
        ) from None
    with tempfile.TemporaryDirectory(prefix="gpuready-") as folder:
        if wanted.ref:
            return _from_git(wanted, signers, folder)
        data = _get(wanted.url, folder)
        if wanted.sha256 and (sha256 := hashlib.sha256(data).hexdigest()) != wanted.sha256:
            raise InventoryError(
                f"{wanted.name}: the SHA-256 is {sha256}, expected {wanted.sha256}",
                remedy="if the new content is correct, give its SHA-256 to -i",
            )
        if signers:
            _check_signature(wanted, data, signers, folder)
        return data


def _get(url: str, folder: str) -> bytes:
    asked = Path(folder, "url")
    asked.write_text(url)  # the URL may hold a signature, and all users see words
    code, data, err = run(https.get(), url, environment(), asked)
    if code:
        raise InventoryError(f"{url}: cannot be fetched: {brief(err) or f'exit {code}'}")
    return data


def _check_signature(wanted: Source, data: bytes, signers: Signers, folder: str) -> None:
    signature = _get(_signature(wanted.url), folder)
    try:
        signer(data, signature, signers, SPEC)
    except SignatureError as e:
        raise InventoryError(
            f"{wanted.name}: expected a signature by a key in {wanted.signers}, got: {e}",
            remedy=f"sign it: {sign_command(SPEC)}",
        ) from None


def _signature(url: str) -> str:
    path, question, query = url.partition("?")
    return f"{path}.sig{question}{query}"


def _from_git(wanted: Source, signers: Signers | None, folder: str) -> bytes:
    if shutil.which("git") is None:
        raise InventoryError(f"{wanted.name}: git is not installed")
    _git(wanted, folder, "init", "--quiet", "--bare", "--template=")
    # A full commit is fetched by its hash, never as the name of a branch, and git checks that hash.
    _git(wanted, folder, "fetch", "--quiet", "--depth=1", "--no-tags", wanted.url, wanted.ref)
    commit = _git(wanted, folder, "rev-parse", "FETCH_HEAD^{commit}").decode().strip()
    if signers:
        # A commit may be signed with OpenPGP or X.509 instead: those keys are not the allowed signers.
        (file := Path(folder, "allowed_signers")).write_bytes(signers.content)
        allowed = f"gpg.ssh.allowedSignersFile={file}"
        others = ("-c", "gpg.program=false", "-c", "gpg.x509.program=false", "-c", "gpg.ssh.program=ssh-keygen")
        code, _, err = _run_git(folder, "-c", allowed, *others, "verify-commit", commit)
        if code:
            said = brief(err) or "the commit is not signed with SSH"
            raise InventoryError(
                f"{wanted.name}: expected commit {commit} to be signed by a key in {wanted.signers}, got: {said}",
                remedy="sign it: git -c gpg.format=ssh commit -S",
            )
    return _git(wanted, folder, "cat-file", "blob", f"{commit}:{wanted.path}")


def _git(wanted: Source, folder: str, *words: str) -> bytes:
    code, out, err = _run_git(folder, *words)
    if code:
        raise InventoryError(f"{wanted.name}: git {words[0]}: {brief(err) or f'exit {code}'}")
    return out


#: What the caller's environment may say to git: about the connection, its own configuration and its log. Other
#: variables, such as GIT_OBJECT_DIRECTORY in a hook, are about another repository.
_CALLERS = re.compile(r"GIT_(?:ASKPASS|CONFIG_|CURL_|EXEC_PATH|HTTP_|PROXY_|SSH|SSL_|TRACE)")


def _run_git(folder: str, *words: str) -> tuple[int, bytes, str]:
    """Run git in the repository in ``folder``, without prompts for a password.

    GIT_DIR names it: with safe.bareRepository=explicit, git does not look for it.
    """
    given: Mapping[str, str] = {
        **{name: value for name, value in os.environ.items() if name[:4] != "GIT_" or _CALLERS.match(name)},
        "GIT_DIR": folder,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "https:ssh",
        "GIT_SSH_COMMAND": os.environ.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
        "LC_ALL": "C",
    }
    return run(["git", *words], "git", given)

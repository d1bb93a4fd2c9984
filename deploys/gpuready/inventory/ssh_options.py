"""The ssh settings that an inventory may make: one by ``-o``, or a whole file by ``-F``.

The author of an inventory is often not the person who runs gpuready. Without --allow-exec, neither an inventory nor a
file that it names may run a command on this machine. So gpuready copies only the keywords that it uses, with plain
values. This includes HostName, User and Port: they become arguments of a ProxyCommand in the user's own configuration,
which is trusted and read unchanged.

Sources: ssh_config(5); its readers here, paramiko's SSHConfig and pyinfra's sshuserclient.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from gpuready.base.errors import GpureadyError
from gpuready.inventory import own_ssh_config
from gpuready.inventory.host_names import is_host, split_port
from gpuready.inventory.source_values import Refused
from gpuready.inventory.yaml_positions import read_text

USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9]{0,63})(?:\s*=\s*|\s+)(\S.*)", re.ASCII)
_RUN_CODE = {
    "proxycommand", "localcommand", "permitlocalcommand", "knownhostscommand", "remotecommand",
    "pkcs11provider", "securitykeyprovider", "xauthlocation",
}  # fmt: skip
_CRITERIA = {"host", "originalhost", "user", "localuser"}
_ALONE = {"all", "canonical", "final"}
JUMP_ALLOWED = "[USER@]HOST[:PORT], several separated by commas"


def check_jump(text: str) -> str:
    """``text`` if it is a list of jump hosts as for ``-J``; else :class:`Refused`."""
    for hop in text.split(","):
        user, at, rest = hop.rpartition("@")
        host, port = split_port(rest)
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not is_host(bare) or (at and not USER.fullmatch(user)) or (port is not None and not 1 <= port <= 65535):
            raise Refused(f"{hop!r} is not a jump host", JUMP_ALLOWED)
    return text


def _form(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text, re.ASCII | re.IGNORECASE) is not None


_ANY = _form(r".+")
#: The keywords that have an effect here, and the test of their values.
_USED: dict[str, Callable[[str], bool]] = {
    "hostname": lambda text: is_host(text.replace("%h", "h")),
    "user": _form(USER.pattern),
    "port": _form(r"[0-9]{1,5}"),
    "proxyjump": lambda text: bool(check_jump(text)),  # also "none"
    "identityfile": _ANY,
    "certificatefile": _ANY,
    "identityagent": _ANY,
    # accept-new and trust append to this file: it must not be a start-up file, which would run the line.
    "userknownhostsfile": lambda text: all(map(_form(r"(.*/)?[^/]*known[^/]*|/dev/null|none"), text.split())),
    "serveraliveinterval": _form(r"[0-9]{1,9}"),
    "addressfamily": _form(r"any|inet6?"),
    "canonicalizehostname": _form(r"yes|no|always"),
    "canonicaldomains": lambda text: all(map(is_host, text.split())),
    "canonicalizemaxdots": _form(r"[0-9]{1,3}"),
    "canonicalizefallbacklocal": _form(r"yes|no"),
}


def setting(text: str, *, allow_exec: bool) -> tuple[str, str] | None:
    """Keyword and value of ``Keyword=value``; None if it has no effect here; :class:`Refused`."""
    match = _SETTING.fullmatch(text)
    if match is None or not text.isprintable() or match[1].lower() in ("host", "match", "include"):
        raise Refused(f"{text!r} is not supported", "Keyword=value of ssh_config")
    keyword, value = match[1], match[2].strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    if keyword.lower() in _RUN_CODE and value.lower() != "none":
        if allow_exec:
            return keyword, value
        raise Refused(f"{keyword} runs a command on this machine", "-J for a jump host, or --allow-exec")
    if keyword.lower() not in _USED:
        return None
    if not _USED[keyword.lower()](value):
        known = keyword.lower() == "userknownhostsfile"
        allowed = "a file whose name contains known, such as known_hosts" if known else "a plain value"
        raise Refused(f"{keyword} {value!r} is not accepted", allowed)
    return keyword, value


class ConfigFiles:
    """Reads the files that inventories name with ``-F``, each once."""

    def __init__(self, *, allow_exec: bool) -> None:
        self._allow_exec = allow_exec
        self._texts: dict[str, str | None] = {}

    def text(self, name: str) -> str | None:
        """The settings in the file, None for the user's own configuration; :class:`Refused` for a forbidden one."""
        if name not in self._texts:
            self._texts[name] = self._read(name)
        return self._texts[name]

    def _read(self, name: str) -> str | None:
        if name.lower() == "none":
            return ""
        try:
            path, own = Path(name).expanduser(), own_ssh_config.path()
            if own.exists() and path.exists() and path.samefile(own):
                return None
            text = read_text(str(path))
        except (GpureadyError, OSError, RuntimeError, ValueError) as e:
            raise Refused(f"-F {name}: {e}", "a file that can be read") from None
        if self._allow_exec:
            return text
        found = []
        for number, line in enumerate(re.split("\r\n|\r|\n", text), 1):
            try:
                found += list(_lines(line.strip()))
            except Refused as e:
                raise Refused(f"{name}:{number}: {e}", e.allowed) from None
        return "".join(f"{line}\n" for line in found)


def _lines(line: str) -> Iterator[str]:
    """The line for the copied configuration, or nothing if it has no effect here."""
    line = re.sub(r"\s#[^\"']*$", "", line)
    if not line or line.startswith("#"):
        return
    match = _SETTING.fullmatch(line)
    keyword = match and match[1].lower()
    if match and keyword == "include":
        raise Refused("Include reads another file, which may run commands", "everything in one file, or --allow-exec")
    if match and keyword in ("host", "match") and line.isprintable():
        yield f"{keyword} {_block(keyword, match[2])}"
        return
    found = setting(line, allow_exec=False)
    if found is not None:
        yield "  {} {}".format(*found)


def _block(keyword: str, text: str) -> str:
    """The patterns of a Host line, or the criteria of a Match line; any other criterion is refused."""
    try:
        words = shlex.split(text)
    except ValueError as e:
        raise Refused(str(e).lower(), "plain patterns") from None
    rest = list(words) if keyword == "match" else []
    while rest:
        kind = rest.pop(0).removeprefix("!")
        if kind.lower().startswith("exec"):
            raise Refused("Match exec runs a command on this machine", "other criteria, or --allow-exec")
        if kind not in _ALONE and (kind not in _CRITERIA or not rest):
            raise Refused(f"Match {kind} is not supported", f"Match {', '.join(sorted(_ALONE | _CRITERIA))}")
        if kind in _CRITERIA:
            rest.pop(0)
    return shlex.join(words)

"""Translate gpuready's connection settings to pyinfra's, and pyinfra's connection errors to messages.

Host keys are checked strictly by default, also those of jump hosts. pyinfra by default trusts any new key, and prompts
for a jump host's. So gpuready writes an ssh_config(5) for each host. The first value wins there: first gpuready's
policy, then the inventory's options, then the user's own configuration.
"""

import atexit
import functools
import hashlib
import itertools
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paramiko import ChannelException, SSHException
from paramiko.ssh_exception import NoValidConnectionsError
from pyinfra.api.exceptions import PyinfraError
from pyinfra.connectors.ssh_util import load_key_with_certificate

from gpuready.base.errors import GpureadyError, UnreachableError
from gpuready.inventory import own_ssh_config
from gpuready.inventory.connection import LOCAL, known_hosts_file
from gpuready.inventory.host_names import split_port
from gpuready.inventory.hosts import Connection, HostEntry
from gpuready.operations.knownhosts import Status, stored
from gpuready.operations.ssh import BOUNDS, HostKeyRefused, ProxyFailure
from gpuready.operations.transport import BECOME

_POLICY = {"strict": "yes", "accept-new": "accept-new"}


def host_data(connection: Connection, host_keys: str = "strict") -> dict[str, Any]:
    """Return pyinfra's ``ssh_*`` data for a host; none for this machine. ``host_keys`` is strict or accept-new."""
    become = {BECOME: connection.become_password} if connection.become_password is not None else {}
    if connection.address == LOCAL:
        return become
    extra: dict[str, Any] = dict(BOUNDS)
    if connection.timeout is not None:
        extra["timeout"] = connection.timeout
    data: dict[str, Any] = become | {
        "ssh_hostname": connection.address,
        "ssh_strict_host_key_checking": _POLICY[host_keys],
        "ssh_config_file": _config(connection, host_keys),
        "ssh_paramiko_connect_kwargs": extra,
    }
    if files := _known_hosts(connection):
        stored(files.split())  # an inventory's error, even if no host answers
    key = str(Path(connection.key).expanduser()) if connection.key else None
    if key is not None and _encrypted(key):
        # pyinfra would prompt for the passphrase; the agent may have the key
        key, data["ssh_look_for_keys"] = None, False
    found = {"ssh_user": connection.user, "ssh_port": connection.port, "ssh_key": key}
    return data | {name: value for name, value in found.items() if value is not None}


@functools.cache
def _encrypted(key: str) -> bool:
    try:
        load_key_with_certificate(key, allow_prompt=False)
    except PyinfraError as e:
        return "is encrypted" in str(e)
    except (OSError, ValueError, SSHException):  # reported when the key is used
        return False
    return False


def _known_hosts(connection: Connection) -> str:
    """Return the inventory's UserKnownHostsFile; empty if it sets none."""
    return next((value for key, value in connection.options if key.lower() == "userknownhostsfile"), "")


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="gpuready-ssh-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _config(connection: Connection, host_keys: str) -> str:
    lines = ["Host *", f"  StrictHostKeyChecking {_POLICY[host_keys]}"]
    options = [(key, value) for key, value in connection.options if key.lower() != "stricthostkeychecking"]
    lines += [f"Host {connection.address}"] + [f"  {key} {value}" for key, value in options]
    if hops := _hops(connection):
        lines.append(f"  ProxyJump {','.join(hops)}")
    if known := _known_hosts(connection):
        lines += ["Host *", f"  UserKnownHostsFile {known}"]
    if connection.config is not None:
        lines += ["Host *", connection.config]
    elif own := own_ssh_config.text():
        lines += ["Host *", own]
    text = "\n".join(lines) + "\n"
    path = _folder() / hashlib.sha256(text.encode()).hexdigest()[:16]
    if not path.exists():
        path.write_text(text, encoding="utf-8")
    return str(path)


def _hops(connection: Connection) -> list[str]:
    """Return the jump hosts before this host. A jump host may be in the group that uses it; it does not use itself."""
    hops = connection.jump.split(",") if connection.jump else []
    return list(itertools.takewhile(lambda hop: split_port(hop.rpartition("@")[2])[0] != connection.address, hops))


def explain(entry: HostEntry, error: Exception) -> UnreachableError:
    """Turn a connection error into a message and a remedy. Often only the error's text names the host that failed."""
    text = str(error) or type(error).__name__
    to, hops = entry.connection, _hops(entry.connection)
    where = to.address + (f":{to.port}" if to.port else "")
    if isinstance(error, GpureadyError):
        return UnreachableError(str(error), remedy=error.remedy)
    if refused := next((e for e in _chain(error) if isinstance(e, HostKeyRefused)), None):
        return _refusal(to, refused, hop=bool(hops) and refused.name not in (to.address, _known_name(to)))
    if failure := next((e for e in _chain(error) if isinstance(e, ProxyFailure)), None):
        place = _proxy_place(to)
        return UnreachableError(
            f"{where}: the ProxyCommand in {place}: {failure}",
            remedy=f"run the command by itself, then install the program or correct {place}",
        )
    way = f" (through {', '.join(hops)})" if hops else ""
    if isinstance(error, RecursionError):
        return UnreachableError(f"{where}: its jump hosts form a loop", remedy="look at ProxyJump in ~/.ssh/config")
    if re.search("Authentication|authentication|private key", text):
        return UnreachableError(f"login at {where}{way} as {to.user or 'you'} was refused: {_cause(text)}",
                                remedy=_login_remedy(to, hops))  # fmt: skip
    return UnreachableError(f"{where}{way}: {obstacle(error)}", remedy="is it up, and is the address right?")


def _proxy_place(to: Connection) -> str:
    """Return which file sets the ProxyCommand that takes effect, in ssh's order."""
    if any(key.lower() == "proxycommand" for key, _ in to.options):
        return "the inventory"
    return "~/.ssh/config" if to.config is None else "the file that -F names"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes: pyinfra's message omits the system's."""
    while error is not None:
        yield error
        error = error.__context__


def _refusal(to: Connection, refused: HostKeyRefused, *, hop: bool) -> UnreachableError:
    """Say what known_hosts has against the key of a host. Another folder may have a file of the same name."""
    name, trust = refused.name, f"gpuready trust -i {refused.name + ',' if hop else 'INVENTORY'}"
    where = f"{'the jump host ' if hop else ''}{name}"
    attack = "otherwise this is a possible man-in-the-middle attack"
    file, here = "" if hop else known_hosts_file(to).partition(" ")[0], Path.cwd()
    at = f" in {file}" + (f" (run it in {here})" if Path(file).is_relative_to(here) else "") if file else ""
    return {
        Status.new: UnreachableError(
            f"the host key of {where} is not known",
            remedy=f"{trust} shows and stores it{at}; in CI: --host-keys accept-new",
        ),
        Status.changed: UnreachableError(
            f"the host key of {where} has changed",
            remedy=f"if the machine was rebuilt: {trust} --replace stores the new key{at} "
            f"(or ssh-keygen -R '{name}'{f' -f {file}' if file else ''}); {attack}",
        ),
        Status.revoked: UnreachableError(
            f"the host key of {where} is marked @revoked in known_hosts",
            remedy="do not use this key: someone else may have it. Make a new host key on the machine",
        ),
        Status.invalid: UnreachableError(
            f"the host certificate of {where} does not prove its name: {refused.judgement.why}",
            remedy=f"renew the certificate; {trust} --replace stores the host's own key{at}; {attack}",
        ),
    }[refused.judgement.status]


def obstacle(error: Exception) -> str:
    """Return why a connection failed, in a few words."""
    for e in _chain(error):
        if isinstance(e, NoValidConnectionsError):
            return ", ".join(sorted({(getattr(one, "strerror", "") or str(one)).lower() for one in e.errors.values()}))
        if isinstance(e, ChannelException):
            return f"the jump host cannot connect to it ({e.text.lower()})"
        if isinstance(e, socket.gaierror):
            return f"its name cannot be resolved ({(e.strerror or str(e)).lower()})"
        if isinstance(e, TimeoutError):
            return "the connection timed out"
        if re.search("No existing session|protocol banner|protocol version|Invalid packet", str(e)):
            return "the port is open, but no SSH server answered"
        if "more data than allowed" in str(e):
            return "the host sent more data than allowed before the login"
    return _cause(getattr(error, "strerror", None) or str(error) or type(error).__name__)


def _cause(text: str) -> str:
    """Remove pyinfra's list of arguments: ``Authentication error (username=...) (Authentication failed.)``."""
    wrapped = re.match("(Authentication|SSH|EOF) error|Could not connect", text)
    return (text.removesuffix(")").rpartition("(")[2] if wrapped else text).rstrip(".")


def _login_remedy(to: Connection, hops: list[str]) -> str:
    if to.key and _encrypted(str(Path(to.key).expanduser())):
        return f"{to.key} is encrypted, and gpuready does not ask for passphrases: run ssh-add {to.key}"
    if hops:
        return "a jump host takes its user and key from ~/.ssh/config, or from the file that -F names"
    login = f"{to.user}@{to.address}" if to.user else to.address
    return f"check ansible_user and ansible_ssh_private_key_file; ssh -v {login} shows details"


def _known_name(to: Connection) -> str:
    return to.address if (to.port or 22) == 22 else f"[{to.address}]:{to.port}"

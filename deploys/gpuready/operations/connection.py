"""From our connection settings to pyinfra's, and from its connection errors to sentences.

Host keys are strict unless asked otherwise, those of jump hosts too: pyinfra's own default trusts any key at first
sight, and asks on the terminal for a jump host's. Both are steered through an ssh_config(5) made for each host, in
which the first value wins: our policy, the inventory's options, then the user's own configuration.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from gpuready.errors import UnreachableError
from gpuready.spec.inventory import Connection, HostEntry

_POLICY = {"strict": "yes", "accept-new": "accept-new"}


def host_data(connection: Connection, host_keys: str = "strict") -> dict[str, Any]:
    """pyinfra's ``ssh_*`` data for a host; ``host_keys`` is strict or accept-new."""
    data: dict[str, Any] = {
        "ssh_hostname": connection.address,
        "ssh_strict_host_key_checking": _POLICY[host_keys],
        "ssh_config_file": _config(connection, host_keys),
        "ssh_paramiko_connect_kwargs": {"banner_timeout": 15, "auth_timeout": 15, "channel_timeout": 15},
    }
    found = {
        "ssh_user": connection.user,
        "ssh_port": connection.port,
        "ssh_key": str(Path(connection.key).expanduser()) if connection.key else None,
    }
    return data | {key: value for key, value in found.items() if value is not None}


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="gpuready-ssh-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _config(connection: Connection, host_keys: str) -> str:
    lines = ["Host *", f"  StrictHostKeyChecking {_POLICY[host_keys]}"]
    options = [(key, value) for key, value in connection.options if key.lower() != "stricthostkeychecking"]
    lines += [f"Host {connection.address}"] + [f"  {key} {value}" for key, value in options]
    if connection.jump:
        lines.append(f"  ProxyJump {connection.jump}")
    known = [value for key, value in options if key.lower() == "userknownhostsfile"]
    if known:
        lines += ["Host *", f"  UserKnownHostsFile {known[0]}"]
    own = Path(connection.config_file or "~/.ssh/config").expanduser()
    if own.is_file():
        lines += ["Host *", own.read_text(encoding="utf-8", errors="replace")]
    text = "\n".join(lines) + "\n"
    path = _folder() / hashlib.sha256(text.encode()).hexdigest()[:16]
    if not path.exists():
        path.write_text(text, encoding="utf-8")
    return str(path)


def explain(entry: HostEntry, error: Exception) -> UnreachableError:
    """One sentence for a connection that failed, and what to do."""
    text = str(error) or type(error).__name__
    where = entry.connection.address + (f":{entry.connection.port}" if entry.connection.port else "")
    if "does not match" in text or "host key error" in text:
        return UnreachableError(
            f"the host key of {where} has changed",
            remedy=f"if the machine was rebuilt, remove the old key (ssh-keygen -R '{_known_name(entry)}'); "
            "otherwise somebody may be in between",
        )
    if re.search(r"known_hosts|No host key|Host key verification", text, re.I):
        return UnreachableError(
            f"the host key of {where} is not known",
            remedy="gpuready trust -i INVENTORY shows and stores it; in CI: --host-keys accept-new",
        )
    if "Authentication" in text:
        return UnreachableError(f"login at {where} as {entry.connection.user or 'you'} was refused ({text})")
    return UnreachableError(f"{where}: {text}", remedy="is it up, and is the address right?")


def _known_name(entry: HostEntry) -> str:
    port = entry.connection.port or 22
    return entry.connection.address if port == 22 else f"[{entry.connection.address}]:{port}"

"""Types of facts that several parts of a node share: a value that could not be read, files, packages, units."""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic import BaseModel, ConfigDict


class Facts(BaseModel):
    """Base of all facts: frozen, and closed to fields that it does not name.

    pydantic builds the validator of a model when the first value needs it, because most verbs read no node. So that a
    default value needs none, it is ``Model.model_construct()``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Unknown(Facts):
    """A value that could not be read, and why. Never equal to any expected value."""

    unknown: str


class File(Facts):
    """A configuration file. ``text`` holds UTF-8 with surrogateescape; ``realpath`` is set for a symbolic link."""

    text: str
    mode: int
    uid: int
    gid: int
    mtime: int
    realpath: str = ""

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.text.encode("utf-8", "surrogateescape")

    @property
    def sha256(self) -> str:
        """Hex digest of the bytes, as ``sha256sum`` prints it on the node."""
        return hashlib.sha256(self.data).hexdigest()


class Package(Facts):
    """An installed package: full version, whether apt holds it, and who made it (dpkg's Maintainer, rpm's Vendor).

    ``transitional``: it is empty and only demands the package that took its place; so its summary says (dpkg alone).
    """

    version: str
    arch: str
    held: bool = False
    configured: bool = True
    maker: str = ""
    transitional: bool = False


class Unit(Facts):
    """Properties of a systemd unit, from ``systemctl show`` (systemd.unit(5), org.freedesktop.systemd1(5)).

    ``takes_along``: units that a restart of this one restarts, too. ``changed_us``: its last start, end or reload.
    ``starting``: systemd has a job that starts it, which waits or runs.
    """

    load: str
    active: str
    enabled: str = ""
    main_pid: int = 0
    invocation: str = ""
    need_daemon_reload: bool = False
    exec_start: tuple[str, ...] = ()
    drop_ins: tuple[str, ...] = ()
    started_us: int = 0
    changed_us: int = 0
    limit_memlock: str = ""
    process_memlock: str = ""
    kill_mode: str = ""
    takes_along: tuple[str, ...] = ()
    listen: str = ""
    starting: bool = False


class Cri(Facts):
    """What the containerd or CRI-O that runs answers; ``enable_cdi`` is None where it says nothing of it."""

    default_runtime: str
    runtimes: dict[str, dict[str, Any]]
    enable_cdi: bool | None = None
    cdi_spec_dirs: tuple[str, ...] = ()


class Tool(Facts):
    """A command on root's PATH: where, and the first line of its ``--version``."""

    path: str
    version_line: str = ""

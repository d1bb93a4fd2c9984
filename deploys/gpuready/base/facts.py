"""Fact types that several components share: unknown values, files, packages, units."""

import hashlib
from typing import Any

from pydantic import BaseModel, ConfigDict

#: Where the scripts keep originals and records on a node.
KEPT = "/var/lib/gpuready/backup"


class Facts(BaseModel):
    """Base of all facts: frozen, without unknown fields.

    pydantic builds the validator of a model when the first value needs it, because most verbs read no node. So that a
    default value needs none, it is ``Model.model_construct()``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Unknown(Facts):
    """A value that could not be read, with the reason. It never equals an expected value."""

    unknown: str


class Answer(Facts):
    """What a question of the second exec got: exit code, and stdout."""

    rc: int = 0
    out: str = ""


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
        return self.text.encode("utf-8", "surrogateescape")

    @property
    def sha256(self) -> str:
        """Hex digest of the bytes, as ``sha256sum`` prints it on the node."""
        return hashlib.sha256(self.data).hexdigest()


class Package(Facts):
    """An installed package. ``held``: apt holds it. ``maker``: dpkg's Maintainer or rpm's Vendor.

    ``transitional``: its summary says that it is empty and only requires the package that replaces it (dpkg only).
    """

    version: str
    arch: str
    held: bool = False
    configured: bool = True
    maker: str = ""
    transitional: bool = False


class Unit(Facts):
    """Properties of a systemd unit, from ``systemctl show`` (systemd.unit(5), org.freedesktop.systemd1(5)).

    ``takes_along``: units that restart together with this one. ``changed_us``: its last start, end or reload.
    ``starting``: systemd has a waiting or running job that starts it.
    """

    load: str
    active: str
    enabled: str = ""
    main_pid: int = 0
    need_daemon_reload: bool = False
    exec_start: tuple[str, ...] = ()
    started_us: int = 0
    changed_us: int = 0
    limit_memlock: str = ""
    process_memlock: str = ""
    kill_mode: str = ""
    takes_along: tuple[str, ...] = ()
    starting: bool = False


class Cri(Facts):
    """What the running containerd or CRI-O reports. ``enable_cdi`` is None if it does not report it."""

    default_runtime: str
    runtimes: dict[str, dict[str, Any]]
    enable_cdi: bool | None = None
    cdi_spec_dirs: tuple[str, ...] = ()


class Tool(Facts):
    """A command in root's PATH: its path and the first line of its ``--version``."""

    path: str
    version_line: str = ""

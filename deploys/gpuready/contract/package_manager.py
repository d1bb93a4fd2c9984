"""The node's package manager: apt, dnf 4 or dnf 5. What they do differently is here, or in the scripts. Pure.

apt holds packages. With dnf 4, the plugin versionlock does, with a list. Each line is NAME-EPOCH:VERSION-RELEASE.ARCH,
where ARCH may be ``*``. A line that starts with ``!`` excludes a version and holds nothing.
dnf 5 has it built in, with tables in a TOML file. A lock is a table whose only condition is ``evr = VERSION``. dnf 5
allows what one of the package's tables allows. So beside a table with another condition, or a lock of another version,
a lock holds nothing. gpuready edits only locks, in lines as dnf writes them, and refuses what it does not know.
Sources: apt-mark(8), dnf-versionlock(8), dnf5-versionlock(8) and libdnf5's package_sack.cpp; os-release(5), and the ID
of each distribution in its own file.
"""

import configparser
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from gpuready.base import toml_document
from gpuready.contract.component import NotComparable
from gpuready.model.state import NodeState, Package

LOCKS = "/etc/dnf/plugins/versionlock.list"
PLUGIN = "/etc/dnf/plugins/versionlock.conf"
LOCKS5 = "/etc/dnf/versionlock.toml"
#: ID of os-release -> the oldest release on which gpuready installs with dnf.
DNF_RELEASES = {
    "rhel": 8, "rocky": 8, "almalinux": 8, "ol": 8, "centos": 8, "fedora": 40, "amzn": 2023,
}  # fmt: skip


@dataclass(frozen=True)
class PackageManager:
    """apt. ``dnf``: its major version, for scripts, which have a part for each package manager; 0 is apt."""

    dnf: int = 0

    def held(self, name: str, package: Package, state: NodeState) -> bool:
        """Tell whether an installed package is held at its version."""
        return package.held

    def refuse_to_hold(self, state: NodeState, names: Iterable[str]) -> None:
        """Raise :class:`NotComparable` if nothing on this node can hold these packages."""
        if "apt-get" not in state.have:
            raise NotComparable("gpuready can hold packages with apt and dnf only")


class Dnf(PackageManager):
    """dnf 4."""

    def held(self, name: str, package: Package, state: NodeState) -> bool:
        if LOCKS not in state.files:
            return package.held
        wanted = re.compile(rf"{re.escape(name)}-(?:\d+:)?{re.escape(package.version)}(?:\.(?:\*|\w+))?")
        return any(wanted.fullmatch(line.strip()) for line in state.text(LOCKS).splitlines())

    def refuse_to_hold(self, state: NodeState, names: Iterable[str]) -> None:
        if PLUGIN not in state.files:
            raise NotComparable(
                "dnf holds packages with its plugin versionlock: install python3-dnf-plugin-versionlock first"
            )
        if not _reads_locks(state.text(PLUGIN)):
            raise NotComparable(
                f"dnf's plugin versionlock is off, or has another list: set enabled = 1 and locklist = {LOCKS} "
                f"in {PLUGIN}"
            )


class Dnf5(PackageManager):
    """dnf 5."""

    def held(self, name: str, package: Package, state: NodeState) -> bool:
        try:
            locks = {_locked(table) for table in _tables(state.text(LOCKS5)) if _concerns(table, name)}
        except toml_document.TomlError:
            return False
        installed = {other.version for key, other in state.installed.items() if key.partition(":")[0] == name}
        return package.version in locks and locks <= {package.version, *installed}

    def refuse_to_hold(self, state: NodeState, names: Iterable[str]) -> None:
        text = state.text(LOCKS5)
        try:
            tables = _tables(text)
        except toml_document.TomlError as e:
            raise NotComparable(f"{LOCKS5}: {e}; mend it first") from None
        for number, line in enumerate(text.split("\n"), 1):
            if not _EDITABLE.fullmatch(line):
                raise NotComparable(
                    f"{LOCKS5}: gpuready cannot edit line {number} ({line.strip()[:80]}): write the entries as "
                    "dnf5-versionlock(8) shows them"
                )
        for name in names:
            for table in tables:
                if _concerns(table, name) and not (table["name"] == name and _locked(table)):
                    raise NotComparable(
                        f'{LOCKS5}: the entry "{table["name"]}" can allow other versions of {name} beside a lock: '
                        "remove that entry"
                    )


#: A line that ``entries`` of lib/holds.sh.j2 reads.
_EDITABLE = re.compile(
    r"""
    [ \t]*((
        version[ \t]*=[ \t]*["']1\.0["']
        | packages[ \t]*=[ \t]*\[[ \t]*\]
        | \[\[[ \t]*packages(\.conditions)?[ \t]*\]\]
        | (name|comment|key|comparator|value)[ \t]*=[ \t]*("[^"\\]*"|'[^']*')
    )[ \t]*)?(\#.*)?
    """,
    re.VERBOSE,
)


def _tables(text: str) -> list[dict[str, Any]]:
    """Return the tables of dnf 5's file. Raises TomlError for a file that dnf 5 does not read."""
    document = toml_document.read(text)
    if document and document.get("version") != "1.0":
        raise toml_document.TomlError('it has no version = "1.0", so dnf ignores it')
    found = document.get("packages", [])
    return [table for table in found if isinstance(table, dict)] if isinstance(found, list) else []


def _concerns(table: dict[str, Any], name: str) -> bool:
    """Tell whether dnf applies a table to the package. It passes over one without conditions."""
    return bool(table.get("conditions")) and fnmatchcase(name, str(table.get("name")))


def _locked(table: dict[str, Any]) -> str:
    """Return the VERSION-RELEASE that a table locks; empty if it is not a lock."""
    match table.get("conditions"):
        case [{"key": "evr", "comparator": "=" | "==", "value": str(version)}]:
            return version.rpartition(":")[2]
    return ""


def _reads_locks(conf: str) -> bool:
    """Tell whether the plugin is on, and reads the list that gpuready writes."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(conf)
        return parser.getboolean("main", "enabled", fallback=True) and (
            parser.get("main", "locklist", fallback=LOCKS) == LOCKS
        )
    except (configparser.Error, ValueError):
        return False


APT, DNF, DNF5 = PackageManager(), Dnf(dnf=4), Dnf5(dnf=5)


def manager(state: NodeState) -> PackageManager:
    """Return dnf where the distribution installs with it, or where there is no apt; otherwise apt.

    Rocky with apt from EPEL is still Rocky. ``by_dnf`` of lib/reader.sh.j2 says the same on the node.
    """
    ours = {state.os.id, *state.os.id_like} & DNF_RELEASES.keys()
    if "dnf" not in state.have or not (ours or "apt-get" not in state.have):
        return APT
    return DNF5 if "dnf5" in state.have else DNF


def refuse_to_install(state: NodeState, key: str = "") -> None:
    """Raise :class:`NotComparable` if gpuready cannot install packages here, as ``key`` of the spec asks for."""
    if "apt-get" in state.have and not manager(state).dnf:
        return
    of = f"{key}: " if key else ""
    name = state.os.name or "this node"
    if "zypper" in state.have or {"suse", "sles", "opensuse"} & {state.os.id, *state.os.id_like}:
        raise NotComparable(f"{of}{name}: gpuready does not install packages on SUSE")
    if "dnf" not in state.have:
        raise NotComparable(f"{of}{name} has neither apt nor dnf: gpuready installs packages only with these")
    oldest = DNF_RELEASES.get(state.os.id)
    release = re.match(r"\d{1,6}", state.os.version_id)
    if oldest is None or not release or int(release[0]) < oldest:
        known = ", ".join(f"{id} {oldest}" for id, oldest in DNF_RELEASES.items())
        raise NotComparable(f"{of}gpuready does not support {name}; with dnf, it supports {known}, or newer")

"""The part of inventory, what one says: its hosts, their groups, and where each value of their specs comes from."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuready.base.host_list import folded
from gpuready.base.words import count
from gpuready.inventory.connection import LOCAL
from gpuready.inventory.listing import Listed, Setting
from gpuready.result.blocks import note_lines, skipped_lines
from gpuready.result.formats import LISTING_FORMATS
from gpuready.result.mask import mask_value
from gpuready.result.model import HostResult, Run, VerbPart
from gpuready.result.text import Painter, columns, grouped

#: Columns of a value; the place of a longer one is on the next line.
_WIDEST = 32
#: Columns of the names of hosts that share a spec.
_WIDEST_NAMES = 100
#: Columns of a host's groups; the result document has all of them.
_WIDEST_GROUPS = 40


class InventoryPart(VerbPart):
    """A value of each host."""

    def whole(self, run: Run, paint: Painter) -> list[list[str]]:
        """A line per host, then the values of each set of hosts that share them."""
        notes = note_lines(replace(run, verbose=True))
        return [_table(run, paint), *_values(run, paint), notes, skipped_lines(run, paint), [_ending(run)]]


PART = InventoryPart(
    verb="inventory",
    of_host={"inventory": (Listed, "inventory: what it says of this host.")},
    formats=LISTING_FORMATS,
    judges=False,
)


def _table(run: Run, paint: Painter) -> list[str]:
    rows = [
        (host.name, _address(listed), _groups(listed.groups), listed.where)
        for host in run.hosts
        if (listed := _listed(host)) is not None
    ]
    head, *lines = columns([("HOST", "ADDRESS", "GROUPS", "FROM"), *rows])
    return [paint("bold", head), *lines]


def _listed(host: HostResult) -> Listed | None:
    found: Listed | None = host.parts.get("inventory")
    return found


def _address(host: Listed) -> str:
    if host.address == LOCAL:
        return "this machine"
    address = f"[{host.address}]" if ":" in host.address and host.port else host.address
    login = (f"{host.user}@" if host.user else "") + address + (f":{host.port}" if host.port else "")
    return f"{login} ({host.hostname})" if host.hostname else login


def _groups(names: Sequence[str]) -> str:
    """As many names as fit, at least one, and the number of the others."""
    shown = list(names[:1])
    for name in names[1:]:
        if len(", ".join([*shown, name])) > _WIDEST_GROUPS:
            return f"{', '.join(shown)} and {len(names) - len(shown)} more"
        shown.append(name)
    return ", ".join(shown)


def _values(run: Run, paint: Painter) -> Iterator[list[str]]:
    found = ((host.name, listed.settings if (listed := _listed(host)) else ()) for host in run.hosts)
    sharing = grouped((tuple((each.key, _shown(each), each.where) for each in of), name) for name, of in found)
    for rows, names in sharing.items():
        *above, last = (paint("bold", line) for line in _names(names))
        if not rows:
            yield [*above, f"{last}: all defaults"]
            continue
        width = max(len(row[0]) for row in rows)
        values = min(_WIDEST, max(len(row[1]) for row in rows))
        lines = [*above, f"{last}: defaults, and"]
        for name, value, where in rows:
            if len(value) > values:
                lines.append(f"    {name:<{width}}  {value}")
                name = value = ""
            lines.append(f"    {name:<{width}}  {value:<{values}}  {where}")
        yield lines


def _names(hosts: Sequence[str]) -> list[str]:
    """The hosts in one line, or in several if they are many that do not fold."""
    lines = [""]
    for name in folded(hosts):
        if lines[-1].strip() and len(lines[-1]) + len(name) > _WIDEST_NAMES:
            lines.append("  ")
        lines[-1] += f"{name},"
    return [*lines[:-1], lines[-1].removesuffix(",")]


def _shown(setting: Setting) -> str:
    value = mask_value(setting.key, setting.value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _ending(run: Run) -> str:
    shard = f" ({run.shard})" if run.shard is not None else ""
    return f"{count(len(run.hosts), 'host')} chosen, {len(run.unmanaged)} skipped{shard}"

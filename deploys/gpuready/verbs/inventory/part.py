"""The part of inventory, what one says: its hosts, their groups, and where each value of their specs comes from."""

import json
from collections.abc import Iterator, Sequence

from gpuready.base.host_list import hostlist
from gpuready.inventory.connection import LOCAL
from gpuready.inventory.listing import Listed, Setting
from gpuready.result.formats import LISTING_FORMATS
from gpuready.result.human import note_lines, skipped_lines
from gpuready.result.mask import mask_value
from gpuready.result.model import HostResult, Run, VerbPart
from gpuready.result.text import Painter, columns, count, grouped

#: Columns of a value; a longer one pushes its place to the right.
_WIDEST = 32
#: Columns of a host's groups; the result document has all of them.
_WIDEST_GROUPS = 40


class InventoryPart(VerbPart):
    """A value of each host."""

    def whole(self, run: Run, paint: Painter) -> list[list[str]]:
        """A line per host, then the values of each set of hosts that share them."""
        return [_table(run, paint), *_values(run, paint), note_lines(run), skipped_lines(run, paint), [_ending(run)]]


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
    return (f"{host.user}@" if host.user else "") + address + (f":{host.port}" if host.port else "")


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
        head = paint("bold", hostlist(names))
        if not rows:
            yield [f"{head}: all defaults"]
            continue
        widths = [max(len(row[0]) for row in rows), min(_WIDEST, max(len(row[1]) for row in rows))]
        yield [
            f"{head}: defaults, and",
            *(f"    {name:<{widths[0]}}  {value:<{widths[1]}}  {where}" for name, value, where in rows),
        ]


def _shown(setting: Setting) -> str:
    value = mask_value(setting.key, setting.value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _ending(run: Run) -> str:
    shard = f" ({run.shard})" if run.shard is not None else ""
    return f"{count(len(run.hosts), 'host')} chosen, {len(run.unmanaged)} skipped{shard}"

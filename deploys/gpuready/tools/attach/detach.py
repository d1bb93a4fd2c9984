"""The way back onto the host, from the records; also when the container, and its namespace with it, has ended. Pure."""

from __future__ import annotations

from gpuready.core.component import Change, Value
from gpuready.core.errors import RefusedError
from gpuready.tools.attach import notes
from gpuready.tools.attach.facts import Look, Space
from gpuready.tools.attach.move_plan import HOST, Asked, Deed, config, difference
from gpuready.tools.attach.netdev import Interface
from gpuready.tools.attach.place import same, same_here
from gpuready.tools.attach.record import Record, path


def detach(look: Look, asked: Asked) -> tuple[Deed, ...]:
    """One deed for each record that is meant."""
    return tuple(_back(look, record) for record in look.records.values() if _meant(record, asked))


def nothing_on_record(look: Look, asked: Asked) -> None:
    """All is well if it is on the host; else :class:`RefusedError` says where it is."""
    for name, here in ((asked.device, look.here.devices), (asked.netdev, look.here.netdevs)):
        if name and name not in here:
            inodes = [each.inode for each in look.others.values() if name in (*each.devices, *each.netdevs)]
            where = f"it is in {look.named.get(inodes[0], 'another namespace')}" if inodes else "it is not on this node"
            raise RefusedError(
                f"gpuready has no record of {name}; {where}", remedy="gpuready rdma list shows what is on record"
            )


def _meant(record: Record, asked: Asked) -> bool:
    name = asked.container
    names = (record.container, record.id, record.pod, record.pod.partition("/")[2])
    called = not name or name in names or (len(name) >= 6 and record.id.startswith(name))
    return called and asked.device in ("", record.device) and asked.netdev in ("", record.netdev)


def _back(look: Look, record: Record) -> Deed:
    values: dict[str, object] = {
        "device": "", "netdev": "", "netdev_now": "", "path": "", "inode": record.netns, "where": record.where,
        "record": path(record.key), "back": "", "settings_back": [],
    }  # fmt: skip
    done = Change("detach.record", f"{record.key} in {record.where}", None)
    if record.boot != look.boot:
        return Deed((done,), (), (notes.booted(record),), values)
    want: dict[str, Value] = {}
    seen: dict[str, Value] = {}
    told: tuple[str, ...] = ()
    space = look.others.get(record.netns)
    if record.netns in look.paths and (space is None or not space.links):  # at least lo is in each
        raise RefusedError(f"the network namespace of {record.where} is there and cannot be read", remedy="run again")
    away = space is not None and record.device in space.devices and record.device not in look.here.devices
    if record.device:
        want[f"detach.{record.device}.device"] = HOST
        seen[f"detach.{record.device}.device"] = record.where if away else HOST
        values["device"] = record.device if away else ""
    inside = ""
    if record.before is not None:
        inside = same(space, record.before) if space is not None else ""
        here = "" if inside else same_here(look, record.before)
        if inside or here:
            want |= {f"detach.{record.netdev}.netdev": HOST, **config("detach", record.before, record.before)}
            seen |= _seen(look.here, record, here)
            values |= {
                "netdev": record.netdev, "netdev_now": inside or here,
                "back": record.before.commands(), "settings_back": record.before.settings(),
            }  # fmt: skip
        else:
            told = (notes.destroyed(record),)
    moves = away or bool(inside)
    values["path"] = look.paths[record.netns] if moves else ""
    return Deed((*difference(want, seen), done), (record.where,) if moves else (), told, values)


def _seen(host: Space, record: Record, here: str) -> dict[str, Value]:
    """The interface as the host has it now, under whatever name; else it is still away."""
    before: Interface | None = record.before
    assert before is not None
    place = HOST if here == before.name else f"{HOST}, as {here}" if here else record.where
    return {f"detach.{before.name}.netdev": place, **config("detach", before, host.interface(here))}

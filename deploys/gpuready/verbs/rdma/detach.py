"""Plan how a device and its interface move back to the host, also if the container has ended. Pure."""

from dataclasses import replace

from gpuready.base.errors import RefusedError
from gpuready.contract.component import Change
from gpuready.verbs.rdma import notes
from gpuready.verbs.rdma.facts import Look
from gpuready.verbs.rdma.move_plan import HOST, Asked, DetachArgs, MovePlan, configured, differing
from gpuready.verbs.rdma.place import same, same_here
from gpuready.verbs.rdma.record import Record, goes_by, path


def detach(look: Look, asked: Asked) -> tuple[MovePlan[DetachArgs], ...]:
    """Return one plan for each record that the request selects."""
    return tuple(_back(look, record) for record in look.records.values() if _selects(record, asked))


def nothing_on_record(look: Look, asked: Asked) -> None:
    """Accept a request without a record if the device is on the host. Raises :class:`RefusedError` if it is not."""
    for name, here in ((asked.device, look.here.devices), (asked.netdev, look.here.netdevs)):
        if name and name not in here:
            inodes = [each.inode for each in look.others.values() if name in (*each.devices, *each.netdevs)]
            where = f"it is in {look.named.get(inodes[0], 'another namespace')}" if inodes else "it is not on this node"
            raise RefusedError(
                f"gpuready has no record of {name}; {where}", remedy="gpuready rdma list shows all records"
            )


def _selects(record: Record, asked: Asked) -> bool:
    called = not asked.container or goes_by(asked.container, record.pod, record.container, record.id)
    return called and asked.device in ("", record.device) and asked.netdev in ("", record.netdev)


def _back(look: Look, record: Record) -> MovePlan[DetachArgs]:
    args = DetachArgs(inode=record.netns, where=record.where, record=path(record.key))
    done = Change("detach.record", f"{record.key} in {record.where}", None)
    if record.boot != look.boot:
        return MovePlan((done,), args, notes=(notes.booted(record),))
    changes: list[Change] = []
    remarks: tuple[str, ...] = ()
    space = look.others.get(record.netns)
    if record.netns in look.paths and (space is None or not space.links):  # each has at least lo
        raise RefusedError(f"cannot read the network namespace of {record.where}", remedy="run again")
    away = space is not None and record.device in space.devices and record.device not in look.here.devices
    if record.device:
        changes.append(Change(f"detach.{record.device}.device", record.where if away else HOST, HOST))
        args = replace(args, device=record.device if away else "")
    inside = ""
    if record.before is not None:
        inside = same(space, record.before) if space is not None else ""
        here = "" if inside else same_here(look, record.before)
        if inside or here:
            place = HOST if here == record.netdev else f"{HOST}, as {here}" if here else record.where
            changes.append(Change(f"detach.{record.netdev}.netdev", place, HOST))
            changes += configured("detach", record.before, look.here.interface(here))
            args = replace(
                args,
                netdev=record.netdev,
                netdev_now=inside or here,
                back=record.before.commands(),
                settings_back=record.before.settings(),
            )
        else:
            remarks = (notes.destroyed(record),)
    diff = (*differing(changes), done)
    if not away and not inside:
        return MovePlan(diff, args, notes=remarks)
    return MovePlan(diff, replace(args, path=look.paths[record.netns]), (record.where,), remarks)

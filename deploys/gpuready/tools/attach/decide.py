"""Plan how a device and its interface move into a container, or refuse. Pure."""

from __future__ import annotations

from gpuready.core.component import Change, Value
from gpuready.core.errors import RefusedError
from gpuready.tools.attach import notes, place, refusals
from gpuready.tools.attach.facts import Found, Look, Space
from gpuready.tools.attach.move_plan import HOST, Asked, AttachArgs, MovePlan, config, difference
from gpuready.tools.attach.netdev import Interface
from gpuready.tools.attach.record import Record, path
from gpuready.tools.attach.target import target


def attach(look: Look, asked: Asked) -> MovePlan[AttachArgs]:
    """Return the plan; its diff is empty if all is attached. Raises :class:`RefusedError` if it must not move."""
    found = target(look, asked.container, asked.engine)
    space = look.space(found.netns)
    if space is None:
        raise RefusedError(f"cannot enter the network namespace of {found.where}", remedy="run again")
    device, record = asked.device, place.record_of(look, asked.device, asked.netdev)
    device_in = netdev_in = ""
    if record is not None and device and record.device != device:
        raise RefusedError(
            f"{record.key} is already attached to {record.where}",
            remedy=f"first run gpuready rdma detach HOST --netdev {record.netdev}",
        )
    if device:
        refusals.exclusive(look, device, found)
        device_in = place.device_place(look, device, found, record)
    netdev = asked.netdev or place.netdev_of(look, space, device, record, device_in)
    if netdev:
        netdev_in = place.netdev_place(look, space, netdev, found, record)
    if device_in == HOST:
        refusals.not_in_use(look, device)
    if netdev_in == HOST:
        refusals.not_management(look, netdev)
        refusals.stands_alone(look, space, netdev, found)
    before = _before(look, space, netdev, netdev_in, record)
    diff = _difference(device, device_in, before, netdev_in, space, found)
    remarks = [*notes.of_container(look, found, device), *notes.of_interface(look, before)] if diff else []
    if record is None and HOST not in (device_in, netdev_in):
        remarks.insert(0, "gpuready did not move it, so there is no record of its configuration on the host")
    made = Record(
        device=device, before=before, engine=found.engine, container=found.name, id=found.id, pod=found.pod,
        netns=found.netns, boot=look.boot, clock=look.clock,
    )  # fmt: skip
    return MovePlan(diff, _args(look, found, made, device_in, netdev_in), notes=tuple(remarks))


def _before(look: Look, space: Space, netdev: str, netdev_in: str, record: Record | None) -> Interface | None:
    """Return the interface as it was on the host: from the record, unless the host has it with its addresses."""
    if not netdev:
        return None
    known = record.before if record is not None and record.netdev == netdev else None
    if netdev_in != HOST:
        return known or space.interface(netdev)
    now = look.here.interface(netdev)
    return known if known and now is not None and not now.plain else now


def _difference(
    device: str, device_in: str, before: Interface | None, netdev_in: str, space: Space, found: Found
) -> tuple[Change, ...]:
    want: dict[str, Value] = {f"attach.{device}.device": found.where} if device else {}
    seen: dict[str, Value] = {f"attach.{device}.device": device_in}
    if before is not None:
        inside = before.inside()
        now = None if netdev_in == HOST else space.interface(place.same(space, before))
        want |= {f"attach.{before.name}.netdev": found.where, **config("attach", inside, inside)}
        seen |= {f"attach.{before.name}.netdev": netdev_in, **config("attach", inside, now)}
    return difference(want, seen)


def _args(look: Look, found: Found, made: Record, device_in: str, netdev_in: str) -> AttachArgs:
    before, inside = made.before, made.before.inside() if made.before else None
    space = look.others[found.netns]
    name = made.netdev if netdev_in == HOST or before is None else place.same(space, before)
    if inside is not None:
        inside = inside.model_copy(update={"name": name})
    return AttachArgs(
        device=made.device if device_in == HOST else "",
        netdev=made.netdev if netdev_in == HOST else "",
        interface=name,
        path=look.paths[found.netns],
        inode=found.netns,
        where=found.where,
        record=path(made.key),
        content=made.model_dump_json(),
        back=before.commands() if before else "",
        settings_back=before.settings() if before else (),
        commands=inside.commands() if inside else "",
        settings_inside=inside.settings() if inside else (),
    )

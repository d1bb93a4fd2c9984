"""Plan how a device and its interface move into a container, or refuse. Pure."""

from gpuready.base.errors import RefusedError
from gpuready.contract.component import Change
from gpuready.verbs.rdma import notes, place, refusals
from gpuready.verbs.rdma.facts import Found, Look, Space
from gpuready.verbs.rdma.move_plan import HOST, Asked, AttachArgs, MovePlan, configured, differing
from gpuready.verbs.rdma.netdev import Interface
from gpuready.verbs.rdma.record import Record, goes_by, path


def attach(look: Look, asked: Asked) -> MovePlan[AttachArgs]:
    """Return the plan; its diff is empty if all is attached. Raises :class:`RefusedError` if it must not move."""
    found = _target(look, asked.container, asked.engine)
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


def _target(look: Look, name: str, engine: str) -> Found:
    """Return the container of that name (for a pod, its sandbox), which must have a network namespace of its own.

    Containers of a pod share one. Raises :class:`RefusedError` if the name is ambiguous.
    """
    for command in ("ip", "nsenter", "unshare"):
        if command not in look.have:
            raise RefusedError(f"there is no `{command}` on this node", remedy="install iproute2 and util-linux")
    named = [found for found in look.containers if goes_by(name, found.pod, found.name, found.id)]
    running = [found for found in named if found.netns]
    if not named:
        of_engine = "" if engine == "auto" else f" of {engine}"
        raise RefusedError(
            f"no container or pod {name}{of_engine} runs on this node", remedy="give its name, its id, or NAMESPACE/POD"
        )
    if not running:
        state = named[0].state or "not running"
        raise RefusedError(f"{named[0].where} is {state}: it has no network namespace",
                           remedy="start it first")  # fmt: skip
    if len({found.netns for found in running}) > 1:
        where = ", ".join(dict.fromkeys(f"{found.where} {found.id[:12]}" for found in running))
        raise RefusedError(
            f"several containers have the name {name}: {where}", remedy="give --engine, NAMESPACE/POD, or an id"
        )
    # Prefer the pod's sandbox: it lives as long as the pod.
    chosen = min(running, key=lambda found: bool(found.pod and found.name))
    if chosen.netns == look.here.inode:
        raise RefusedError(
            f"{chosen.where} uses the host network, so it already sees all devices",
            remedy="start it with --device=/dev/infiniband and --ulimit memlock=-1",
        )
    return chosen


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
    changes = [Change(f"attach.{device}.device", device_in, found.where)] if device else []
    if before is not None:
        now = None if netdev_in == HOST else space.interface(place.same(space, before))
        changes.append(Change(f"attach.{before.name}.netdev", netdev_in, found.where))
        changes += configured("attach", before.inside(), now)
    return differing(changes)


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

"""Notes for the user about a move: what the container lacks, and what happens to the interface later."""

from collections.abc import Iterator

from gpuready.verbs.rdma.facts import Found, Look
from gpuready.verbs.rdma.netdev import Interface
from gpuready.verbs.rdma.record import Record


def missing(look: Look, found: Found, device: str) -> list[str]:
    """List what a verbs program in the container lacks, besides the device itself."""
    spaces = (look.here, *look.others.values())
    node = next((name for each in spaces if (name := each.node_of(device))), "")
    wanted = [name for name in (node, "rdma_cm") if name and name not in found.nodes]
    lacks = [f"/dev/infiniband/{name}" for name in wanted]
    if found.memlock not in ("unlimited", ""):
        lacks.append(f"unlimited locked memory (its limit is {found.memlock} bytes)")
    return lacks


def of_container(look: Look, found: Found, device: str) -> Iterator[str]:
    """Yield what only a restart of the container can fix."""
    lacks = missing(look, found, device) if device else []
    if lacks:
        yield (
            f"{found.where} lacks {', '.join(lacks)}: restart it with --device=/dev/infiniband --ulimit memlock=-1 "
            "(a pod: privileged, or with a device plugin)"
        )


def of_interface(look: Look, before: Interface | None) -> Iterator[str]:
    """Yield what does not move with the interface, and what happens when the container ends."""
    if before is None:
        return
    soft = [name for name in look.here.devices if look.here.parent(name) == before.name]
    if soft:
        yield f"the kernel deletes {', '.join(soft)} when {before.name} moves, because it is built on {before.name}"
    if not before.up:
        yield f"{before.name} is down on the host, and stays down in the container"
    if before.leased:
        yield f"{', '.join(before.leased)} of {before.name} is leased (DHCP, SLAAC): nothing renews it in the container"
    if before.lost:
        yield f"routes through {before.name} lose attributes that gpuready does not know: {', '.join(before.lost)}"
    tables = {words.split(" table ")[1].split(" ")[0] for words in before.routes if " table " in words}
    rules = [str(rule["table"]) for rule in look.here.rules if str(rule.get("table")) in tables]
    if rules:
        yield f"policy rules (ip rule) for table {', '.join(dict.fromkeys(rules))} stay on the host"
    if before.kind:
        yield f"{before.name} is a {before.kind}: the kernel destroys it when the container ends"
    else:
        yield (
            f"when the container ends, the kernel returns {before.name} to the host without its addresses: "
            "gpuready rdma detach restores them, gpuready rdma attach moves it to the next container"
        )


def booted(record: Record) -> str:
    """Return the note about a record from before the last boot."""
    return f"the node rebooted after {record.key} was attached, which ends every attachment: only the record is removed"


def destroyed(record: Record) -> str:
    """Return the note about an interface that no longer exists."""
    kind = record.before.kind if record.before else ""
    if kind:
        return f"{record.netdev} is gone: the kernel destroyed the {kind} together with {record.where}"
    return f"{record.netdev} is neither on the host nor in {record.where}: it cannot be restored"

"""What the user should know about what is attached: what the container lacks, and what becomes of it later."""

from __future__ import annotations

from collections.abc import Iterator

from gpuready.tools.attach.facts import Found, Look
from gpuready.tools.attach.netdev import Interface
from gpuready.tools.attach.record import Record


def missing(look: Look, found: Found, device: str) -> list[str]:
    """What a verbs program in the container would not find, whoever has the device."""
    spaces = (look.here, *look.others.values())
    node = next((name for each in spaces if (name := each.node_of(device))), "")
    wanted = [name for name in (node, "rdma_cm") if name and name not in found.nodes]
    lacks = [f"/dev/infiniband/{name}" for name in wanted]
    if found.memlock not in ("unlimited", ""):
        lacks.append(f"locked memory without a limit (it has {found.memlock} bytes)")
    return lacks


def of_container(look: Look, found: Found, device: str) -> Iterator[str]:
    """What only a new start of the container can mend."""
    lacks = missing(look, found, device) if device else []
    if lacks:
        yield (
            f"{found.where} lacks {', '.join(lacks)}: start it with --device=/dev/infiniband --ulimit memlock=-1 "
            "(a pod: privileged, or a device plugin), which cannot be given to one that runs"
        )


def of_interface(look: Look, before: Interface | None) -> Iterator[str]:
    """What does not go along, and what happens when the container ends."""
    if before is None:
        return
    soft = [name for name in look.here.devices if look.here.parent(name) == before.name]
    if soft:
        yield f"{', '.join(soft)} stands on {before.name}, and is deleted by the kernel when that is moved"
    if not before.up:
        yield f"{before.name} is down on the host, and stays so in the container"
    if before.leased:
        yield f"{', '.join(before.leased)} of {before.name} is leased (DHCP, SLAAC): in the container nobody renews it"
    if before.lost:
        yield f"routes through {before.name} lose what gpuready does not know: {', '.join(before.lost)}"
    tables = {words.split(" table ")[1].split(" ")[0] for words in before.routes if " table " in words}
    rules = [str(rule["table"]) for rule in look.here.rules if str(rule.get("table")) in tables]
    if rules:
        yield f"policy rules (ip rule) that lead to table {', '.join(dict.fromkeys(rules))} stay on the host"
    if before.kind:
        yield f"{before.name} is a {before.kind}: the kernel destroys it together with the container's namespace"
    else:
        yield (
            f"when the container ends, the kernel gives {before.name} back without its addresses: "
            "gpuready rdma detach puts them back, gpuready rdma attach gives it to the next container"
        )


def booted(record: Record) -> str:
    """Of a record from before the last boot."""
    return f"the node was booted since {record.key} was attached, which made all anew: only the record goes"


def destroyed(record: Record) -> str:
    """Of an interface that is nowhere any more."""
    kind = record.before.kind if record.before else ""
    if kind:
        return f"{record.netdev} is gone: a {kind} is destroyed with the namespace that it is in ({record.where})"
    return f"{record.netdev} is neither on the host nor in {record.where}: nothing of it can be put back"

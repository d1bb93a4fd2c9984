"""Which container is meant: exactly one network namespace, not the host's. Containers of one pod share theirs."""

from __future__ import annotations

from gpuready.core.errors import RefusedError
from gpuready.tools.attach.facts import Found, Look


def target(look: Look, name: str, engine: str) -> Found:
    """The container of that name (of a pod: its sandbox); :class:`RefusedError` when it is unclear."""
    for command in ("ip", "nsenter", "unshare"):
        if command not in look.have:
            raise RefusedError(f"there is no `{command}` on this node", remedy="install iproute2 and util-linux")
    named = [found for found in look.containers if _meant(found, name)]
    running = [found for found in named if found.netns]
    if not named:
        asked = "" if engine == "auto" else f" that {engine} knows"
        raise RefusedError(f"there is no container and no pod {name}{asked} on this node",
                           remedy="its name, its id, or NAMESPACE/POD; it must run")  # fmt: skip
    if not running:
        state = named[0].state or "not running"
        raise RefusedError(f"{named[0].where} is {state}: there is no network namespace to move anything into",
                           remedy="start it first")  # fmt: skip
    if len({found.netns for found in running}) > 1:
        where = ", ".join(dict.fromkeys(f"{found.where} {found.id[:12]}" for found in running))
        raise RefusedError(f"{name} is the name of several: {where}", remedy="say --engine, NAMESPACE/POD, or an id")
    # A pod's own container comes before those that live in it, and lives as long as the pod.
    chosen = min(running, key=lambda found: bool(found.pod and found.name))
    if chosen.netns == look.here.inode:
        raise RefusedError(
            f"{chosen.where} uses the network of the host: it sees all devices already, and nothing is to be moved",
            remedy="it needs --device=/dev/infiniband and --ulimit memlock=-1 at its start",
        )
    return chosen


def _meant(found: Found, name: str) -> bool:
    if "/" in name:
        return found.pod == name
    pod = found.pod.partition("/")[2]
    return name in (found.name, pod, found.id) or (len(name) >= 6 and found.id.startswith(name))

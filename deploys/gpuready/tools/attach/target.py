"""Find the container of that name: it must have one network namespace of its own. Containers of a pod share one."""

from __future__ import annotations

from gpuready.core.errors import RefusedError
from gpuready.tools.attach.facts import Found, Look
from gpuready.tools.attach.record import goes_by


def target(look: Look, name: str, engine: str) -> Found:
    """Return the container of that name (for a pod, its sandbox). Raises :class:`RefusedError` if it is ambiguous."""
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

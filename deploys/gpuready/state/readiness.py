"""What on a node is still starting, or gave the probe no answer: a state that will be another one soon.

plan and verify call it unknown; a run that changes the node waits for it and asks again, once. Pure.
Source: org.freedesktop.systemd1(5) for a unit's Job.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuready.state.model import NodeState, Unit, Unknown

#: As templates/probe/probe.sh.j2 waits for them.
ENGINES = ("docker.service", "containerd.service", "crio.service")


def not_yet(units: Mapping[str, Unit] | Unknown, name: str) -> Unknown | None:
    """Why a unit cannot be asked now, if systemd is still starting it."""
    if isinstance(units, Unknown) or name not in units or not units[name].starting:
        return None
    return Unknown(unknown=f"{name} is still starting")


def unsettled(state: NodeState) -> tuple[str, ...]:
    """What is worth waiting for and asking again, each as a sentence without its full stop; empty for most nodes."""
    found = [why.unknown for name in ENGINES if (why := not_yet(state.units, name))]
    silent = dict.fromkeys((*(["docker"] if isinstance(state.docker, Unknown) else []), *state.abandoned))
    if found:  # a Docker that starts is unknown for that reason
        silent.pop("docker", None)
    return (*found, *(f"{name} gave no answer" for name in silent))

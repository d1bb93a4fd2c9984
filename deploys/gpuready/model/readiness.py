"""Find what is still starting on a node or did not answer the probe, and so may change soon. Pure.

plan and verify report it as unknown. A run that acts on the node (apply, fabric) waits and probes once more.
Source: org.freedesktop.systemd1(5) for a unit's Job.
"""

from collections.abc import Mapping

from gpuready.model.state import NodeState, Unit, Unknown

#: The units that templates/probe/probe.sh.j2 waits for.
ENGINES = ("docker.service", "containerd.service", "crio.service")


def not_yet(units: Mapping[str, Unit] | Unknown, name: str) -> Unknown | None:
    """Return an Unknown with the reason if systemd is still starting the unit, else None."""
    if isinstance(units, Unknown) or name not in units or not units[name].starting:
        return None
    return Unknown(unknown=f"{name} is still starting")


def unsettled(state: NodeState) -> tuple[str, ...]:
    """List what is worth waiting for, each as a phrase; empty for most nodes."""
    found = [why.unknown for name in ENGINES if (why := not_yet(state.units, name))]
    if not isinstance(state.units, Unknown) and "docker.service" in state.units and not found:
        # Between two tries of systemd, it has no job. A Docker that comes up after the probe would miss the reload.
        found += ["docker.service restarts"] if state.units["docker.service"].active == "activating" else []
    silent = dict.fromkeys((*(["docker"] if isinstance(state.docker, Unknown) else []), *state.abandoned))
    if found:  # a Docker that is starting is unknown for that reason
        silent.pop("docker", None)
    return (*found, *(f"{name} gave no answer" for name in silent))

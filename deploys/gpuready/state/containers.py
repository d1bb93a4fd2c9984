"""Containers that a disruption would affect."""

from __future__ import annotations

from gpuready.state.model import NodeState, Unknown


def gpu_containers(state: NodeState, runtime: str = "") -> tuple[str, ...]:
    """Return running containers that use a GPU or run under ``runtime``, as ``name (image)``. Docker only, so far."""
    docker = state.docker
    if docker is None or isinstance(docker, Unknown):
        return ()
    return tuple(f"{c.name} ({c.image})" for c in docker.containers if c.gpu or (runtime and c.runtime == runtime))

"""Containers that a disruption would affect."""

from collections.abc import Iterable

from gpuready.model.state import Container, Docker, NodeState


def gpu_containers(state: NodeState) -> tuple[str, ...]:
    """Return running containers that use a GPU or run under nvidia, as ``name (image)``. Docker only, so far."""
    return _named(c for c in _running(state) if c.gpu)


def all_containers(state: NodeState) -> tuple[str, ...]:
    """Return all running containers of Docker, as ``name (image)``."""
    return _named(_running(state))


def _running(state: NodeState) -> tuple[Container, ...]:
    return state.docker.containers if isinstance(state.docker, Docker) else ()


def _named(containers: Iterable[Container]) -> tuple[str, ...]:
    return tuple(f"{c.name} ({c.image})" for c in containers)

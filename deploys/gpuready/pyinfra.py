"""Deploys for your own pyinfra code: ``from gpuready.pyinfra import converge, docker, ldso, verify``.

Each component is a deploy of its name; ``converge`` runs them all in order, and ``verify`` fails if a check fails. The
spec is the host's data ``gpuready``: a mapping as in an inventory, from pyinfra's inventory or group data; or that of
gpuready's own inventory (:func:`gpuready.run.door.hosts`). Deploys that follow each other share one exec that
reads the node; after somebody else's operation they read it again. ``verify`` always does.
"""

from collections.abc import Callable
from datetime import date

from pyinfra.api.exceptions import PyinfraError
from pyinfra.context import host

from gpuready.base.errors import SpecErrors, Where
from gpuready.catalogue import BY_ID
from gpuready.contract.component import Component, Disruption
from gpuready.inventory.build import build
from gpuready.inventory.source_values import located
from gpuready.model.spec import NodeSpec
from gpuready.node import NODE
from gpuready.operations.component import component
from gpuready.operations.context import Context, begin, has_begun
from gpuready.operations.reboot import reboot as _reboot
from gpuready.run import door

_BY_NAME = {item.name: item for item in NODE}
__all__ = ["converge", "reboot", "verify"]


def converge() -> None:
    """Converge all components of the host. Raises PyinfraError if its spec is invalid, as the others do."""
    _read_spec()
    door.converge()


def verify() -> None:
    """Probe the host anew and judge it; the operation fails if a check fails or is unknown."""
    _read_spec()
    door.judge(name="verify")


def reboot() -> None:
    """Reboot the host if a component before needs it and the spec permits it."""
    _read_spec()
    _reboot(name="reboot")


def __getattr__(name: str) -> Callable[[], None]:
    if name not in _BY_NAME:
        raise AttributeError(f"gpuready has no component {name!r}: {', '.join(_BY_NAME)}")
    return _deploy(_BY_NAME[name])


def __dir__() -> list[str]:
    return sorted([*__all__, *_BY_NAME])


def _deploy(item: Component) -> Callable[[], None]:
    def deploy() -> None:
        _read_spec()
        component(item=item, order=(item,), name=item.name)

    deploy.__name__ = item.name
    deploy.__doc__ = f"Converge the component {item.name}."
    return deploy


def _read_spec() -> None:
    if has_begun(host):
        return
    if not hasattr(host.data, "gpuready"):
        way = "give it a mapping (an empty one will do), or leave the host out with --limit"
        raise PyinfraError(f"{host.name} has no data gpuready: {way}")
    spec = host.data.gpuready
    if not isinstance(spec, NodeSpec):
        given = located(spec, Where(f"host.data.gpuready of {host.name}"))
        try:
            spec = build(given, today=date.today(), allow_exec=True, check_ids=lambda: BY_ID)
        except SpecErrors as e:
            raise PyinfraError(str(e)) from None
    begin(host, Context(spec, allowed=Disruption.reboot))  # the spec alone is the limit

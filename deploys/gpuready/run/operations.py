"""The pyinfra operations of a run, in order."""

from gpuready.components.ledger.component import Ledger
from gpuready.contract.component import Component
from gpuready.node import NODE
from gpuready.operations.component import component
from gpuready.operations.reboot import reboot


def operations(order: tuple[Component, ...] = NODE) -> None:
    """Converge these components of the host, or their removals: one operation for each, and one that reboots."""
    early = [item for item in order if item.name != Ledger.name]
    for item in early:
        component(item=item, order=order, name=item.name)
    reboot(name="reboot")
    for item in order[len(early) :]:  # it deletes gpuready's records, so everything else must be restored first
        component(item=item, order=order, name=item.name)

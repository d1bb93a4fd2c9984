"""The driver's tools, which make device nodes and links."""

from typing import Any

from gpuready.components.devices.component import MakeNodes
from gpuready.model.state import NodeState
from tests.components.closing import Closed, units_of


def closed(state: NodeState, steps: Closed) -> NodeState:
    """The driver's tools make the nodes that are asked for, and links for all; systemd starts what is enabled."""
    args = steps.args(MakeNodes)
    nodes = tuple(dict.fromkeys((*state.driver.nodes, *args.nodes)))
    update: dict[str, Any] = {"misnumbered": ()}
    if args.links:
        update["unlinked"] = ()
    units = units_of(state)
    if args.persistenced:
        update |= {"persistenced_old": False, "persistenced_no_socket": False}
        units[args.persistenced] = units[args.persistenced].model_copy(update={"active": "active"})
    driver = state.driver.model_copy(update={"nodes": nodes})
    leftovers = state.leftovers.model_copy(update=update)
    return state.model_copy(update={"driver": driver, "leftovers": leftovers, "units": units})

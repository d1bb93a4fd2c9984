"""apt: the toolkit's packages."""

from gpuready.components.toolkit.component import ToolkitInstall
from gpuready.components.toolkit.state import PACKAGES
from gpuready.model.state import NodeState, Package
from tests.components.closing import Closed


def closed(state: NodeState, steps: Closed) -> NodeState:
    """apt-get installs what is pinned; apt-mark holds or unholds."""
    args = steps.args(ToolkitInstall)
    assert {*args.hold, *args.unhold, *args.purge} == set(PACKAGES)
    packages = dict(state.installed)
    for name, _, version in (pin.partition("=") for pin in args.pins):
        packages[name] = Package(version=version, arch="amd64")
    for name in args.old:
        assert args.pins, "they go in the transaction that installs the new ones"
        packages.pop(name)
    for name in PACKAGES:
        if name in args.purge:
            packages.pop(name, None)
        elif name in packages:
            packages[name] = packages[name].model_copy(update={"held": name in args.hold})
    return state.model_copy(update={"packages": packages})

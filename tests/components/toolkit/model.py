"""apt: the toolkit's packages."""

from gpuready.components.toolkit.component import ToolkitInstall
from gpuready.components.toolkit.state import BEFORE, PACKAGES
from gpuready.model.state import NodeState, Package
from tests.components.closing import Closed, file_of


def closed(state: NodeState, steps: Closed) -> NodeState:
    """apt-get installs what is pinned; apt-mark holds or unholds; what was installed before is on record."""
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
    rows = [f"{p} {was.version} {'hi' if was.held else 'ii'}" for p, was in state.installed.items() if p in PACKAGES]
    files = {BEFORE: file_of("\n".join(rows), state)} | dict(state.files)
    if args.purge:
        files.pop(BEFORE)
    return state.model_copy(update={"packages": packages, "files": files})

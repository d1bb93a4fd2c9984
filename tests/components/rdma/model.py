"""The kernel, apt and GRUB: RDMA's namespace mode and packages."""

from typing import Any

from gpuready.components.rdma.component import SetOption, SetPackages, SwitchMode
from gpuready.components.rdma.state import CONF, GRUB
from gpuready.model.state import NodeState, Package, Unknown
from tests.components.closing import Closed


def closed(state: NodeState, steps: Closed) -> NodeState:
    update: dict[str, Any] = {}
    for step in steps.steps:
        args = step.args
        if isinstance(args, SetOption):
            update["initramfs_old"] = ()
            written = [put.path for put in args.puts]
            if args.update_grub or args.grubby:
                assert GRUB in written or "grubby" in state.have
                update["boot_options"] = tuple(f"{entry} {args.option}" for entry in state.boot_options or ("",))
            if CONF in written:
                assert step.script.index(f"put {CONF}") < step.script.index("\n  build_initramfs ")
        elif isinstance(args, SetPackages) and not isinstance(state.packages, Unknown):
            new = {name: Package(version="1-1", arch="amd64") for name in args.packages}
            update["packages"] = {**state.packages, **new}
        elif isinstance(args, SwitchMode):
            update["ib_netns_mode"] = {"shared": "Y", "exclusive": "N"}[args.mode]
    return state.model_copy(update=update)

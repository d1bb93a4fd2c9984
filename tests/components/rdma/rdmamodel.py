"""What the rdma component's steps leave behind, for closing.py: the kernel, apt and GRUB in as few words as will do."""

from collections.abc import Sequence
from typing import Any

from gpuready.base.step import Step
from gpuready.components.rdma.component import SetOption, SetPackages, SwitchMode
from gpuready.components.rdma.state import CONF, GRUB
from gpuready.model.state import NodeState, Package, Unknown


def after(state: NodeState, steps: Sequence[Step]) -> NodeState:
    """The state after those steps, but for the files that they wrote."""
    update: dict[str, Any] = {}
    for step in steps:
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

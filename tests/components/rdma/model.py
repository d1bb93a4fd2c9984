"""The kernel, apt and GRUB: RDMA's namespace mode and packages."""

import re
from typing import Any

from gpuready.components.rdma.component import CAME, SetOption, SetPackages, SwitchMode
from gpuready.components.rdma.state import CONF, GRUB
from gpuready.model.state import NodeState, Package, Unknown
from tests.components.closing import Closed, file_of

OPTION = re.compile(r"\bib_core\.netns_mode=\S*")


def closed(state: NodeState, steps: Closed) -> NodeState:
    update: dict[str, Any] = {}
    files = dict(state.files)
    for step in steps.steps:
        args = step.args
        if isinstance(args, SetOption):
            update["initramfs_old"] = ()
            written = [put.path for put in args.puts]
            if args.back:
                options = state.boot_options
                if args.grubby:  # it removes the option wherever it is, and adds the one from before
                    was = files.pop(args.grubby).text.strip()
                    options = tuple(f"{OPTION.sub('', entry)} {was}".strip() for entry in options)
                elif args.update_grub:  # our file has the last one
                    options = tuple(entry.rpartition(" ib_core.netns_mode=")[0] for entry in options)
                update["boot_options"] = options
                continue
            files[args.ours] = file_of(args.option, state)
            if args.grubby and args.grubby not in files:
                said = OPTION.search(" ".join(state.boot_options))
                files[args.grubby] = file_of(said[0] if said else "", state)
            if args.update_grub or args.grubby:
                assert GRUB in written or "grubby" in state.have
                update["boot_options"] = tuple(f"{entry} {args.option}" for entry in state.boot_options or ("",))
            if CONF in written:
                assert step.script.index(f"put {CONF}") < step.script.index("\n  build_initramfs ")
        elif isinstance(args, SetPackages) and not isinstance(state.packages, Unknown):
            new = {name: Package(version="1-1", arch="amd64") for name in args.packages}
            update["packages"] = {**state.packages, **new}
            if args.packages:
                files[CAME] = file_of("".join(f"asked:{name}\n" for name in sorted(new)), state)
            else:
                came = [line.removeprefix("asked:") for line in files.pop(CAME).text.split()]
                update["packages"] = {name: p for name, p in state.packages.items() if name not in came}
        elif isinstance(args, SwitchMode):
            update["ib_netns_mode"] = {"shared": "Y", "exclusive": "N"}[args.mode]
    return state.model_copy(update=update | {"files": files})

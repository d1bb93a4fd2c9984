"""What the rdma component's steps leave behind, for closing.py: the kernel, apt and GRUB in as few words as will do."""

from __future__ import annotations

import re
import shlex
from typing import Any

from gpuready.components.rdma.state import CONF, GRUB
from gpuready.state.model import NodeState, Package, Unknown


def after(state: NodeState, scripts: dict[str, str], writes: dict[str, str]) -> NodeState:
    """The state after those scripts, which wrote those files."""
    update: dict[str, Any] = {}
    if "rdma" in scripts:
        update["initramfs_old"] = ()
        option = re.findall(r"^OPTION=(\S+)$", scripts["rdma"], re.M)[0]
        if re.search(r"^(UPDATE_GRUB=1|GRUBBY=/\S+)$", scripts["rdma"], re.M):
            assert GRUB in writes or "grubby" in state.have
            update["boot_options"] = tuple(f"{entry} {option}" for entry in state.boot_options or ("",))
        if CONF in writes:
            assert scripts["rdma"].index(f"put {CONF}") < scripts["rdma"].index("\n  build_initramfs ")
    if "rdma-packages" in scripts and not isinstance(state.packages, Unknown):
        names = shlex.split(re.findall(r"^install\(\) .* install (.*); }$", scripts["rdma-packages"], re.M)[0])
        update["packages"] = {**state.packages, **{name: Package(version="1-1", arch="amd64") for name in names}}
    if "rdma-mode" in scripts:
        mode = re.findall(r"^MODE=(\w+)$", scripts["rdma-mode"], re.M)[0]
        update["ib_netns_mode"] = {"shared": "Y", "exclusive": "N"}[mode]
    return state.model_copy(update=update)

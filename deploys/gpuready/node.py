"""The whole tool in one list: what a GPU node is made of, in the order in which it is built.

Read next: any file in ``components/``. Each states what should be, what is, and how to mend the difference.
"""

from __future__ import annotations

from gpuready.components.base import Component
from gpuready.components.cdi import Cdi
from gpuready.components.config import Config
from gpuready.components.containerd import Containerd
from gpuready.components.crio import Crio
from gpuready.components.devices import Devices
from gpuready.components.docker import Docker
from gpuready.components.driver import Driver
from gpuready.components.engine import Engine
from gpuready.components.ldso import Ldso
from gpuready.components.ledger import Ledger
from gpuready.components.legacy import Legacy
from gpuready.components.memlock import Memlock
from gpuready.components.monitoring import Monitoring
from gpuready.components.nccl import Nccl
from gpuready.components.rdma import Rdma
from gpuready.components.reconverge import Reconverge
from gpuready.components.repository import Repository
from gpuready.components.toolkit import Toolkit
from gpuready.components.wheels import Wheels

NODE: tuple[Component, ...] = (
    Driver(),
    Repository(),
    Toolkit(),
    Legacy(),
    Config(),
    Ldso(),
    Devices(),
    Cdi(),
    Memlock(),
    Rdma(),
    Nccl(),
    Engine(),
    Docker(),
    Containerd(),
    Crio(),
    Monitoring(),
    Wheels(),
    Reconverge(),
)

#: The way back: last in, first out; then what is known about it is forgotten.
BACK: tuple[Component, ...] = (*reversed(NODE), Ledger())


def converge() -> None:
    """Bring the host to its spec: one pyinfra operation for each component (both doors call this)."""
    from gpuready.operations.component import component
    from gpuready.operations.reboot import reboot

    for item in NODE:
        component(item=item, name=item.name)
    reboot(name="reboot")


def withdraw() -> None:
    """Take out of the host what gpuready put in."""
    from gpuready.operations.component import component
    from gpuready.operations.reboot import reboot

    for item in BACK:
        if isinstance(item, Ledger):  # it forgets, so all else must be back by then
            reboot(name="reboot")
        component(item=item, original=True, name=f"remove {item.name}")


def verify() -> None:
    """Judge the host by its spec: one pyinfra operation, which fails when a check does."""
    from gpuready.operations.judge import judge

    judge(name="verify")

"""The components of a GPU node, in the order in which gpuready converges them.

Read next: component.py in any folder of ``components/``. It declares the expected state, reads the actual state, and
lists the steps that close the difference.
"""

from gpuready.components.cdi.component import Cdi
from gpuready.components.containerd.component import Containerd
from gpuready.components.crio.component import Crio
from gpuready.components.dcgm.component import Dcgm
from gpuready.components.devices.component import Devices
from gpuready.components.docker.component import Docker
from gpuready.components.docker_package.component import DockerPackage
from gpuready.components.driver.component import Driver
from gpuready.components.gate.component import Gate
from gpuready.components.ldso.component import Ldso
from gpuready.components.ledger.component import Ledger
from gpuready.components.legacy.component import Legacy
from gpuready.components.memlock.component import Memlock
from gpuready.components.monitoring.component import Monitoring
from gpuready.components.nccl.component import Nccl
from gpuready.components.rdma.component import Rdma
from gpuready.components.reconverge.component import Reconverge
from gpuready.components.repository.component import Repository
from gpuready.components.toolkit.component import Toolkit
from gpuready.components.toolkit_config.component import Config
from gpuready.components.wheels.component import Wheels
from gpuready.contract.component import Component
from gpuready.contract.removal import removals

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
    DockerPackage(),
    Docker(),
    Containerd(),
    Crio(),
    Dcgm(),
    Monitoring(),
    Wheels(),
    Reconverge(),
    Gate(),
)

#: What ``remove`` converges: the reverse, and finally the ledger, which deletes gpuready's own records.
REMOVALS: tuple[Component, ...] = removals((Ledger(), *NODE))

"""/etc/nccl.conf comes and goes on a real node; what stands in it for RDMA is test_nccl_rdma.py's."""

from __future__ import annotations

import pytest

from tests.lab.fixtures import MachineFactory
from tests.system.harness import Gpuready, Inventories

pytestmark = pytest.mark.promise

CONF = "/etc/nccl.conf"


@pytest.mark.parametrize("kind", ["absent", "link", "edited"])
def test_the_file_comes_back_as_it_was(
    kind: str, module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories
) -> None:
    node = module_machine()
    node.run(f"rm -f {CONF} /srv/nccl.conf")
    if kind == "link":
        node.run(f"echo NCCL_IB_TC=106 >/srv/nccl.conf; ln -s /srv/nccl.conf {CONF}")
    hosts = inventory(node, nccl={"extra": {"NCCL_CROSS_NIC": 0}})
    assert gpuready("apply", "--yes", "--only", "nccl", inventory=hosts).code == 0
    assert "NCCL_CROSS_NIC=0\n" in node.run(f"cat {CONF}").stdout
    if kind == "edited":
        node.run(f"echo NCCL_IB_SL=3 >>{CONF}")
    assert gpuready("remove", "--yes", "--only", "nccl", inventory=hosts).code == 0
    found = node.run(
        f"readlink {CONF}; cat {CONF}; find /var/lib/gpuready/backup -name 'nccl.conf*'", check=False
    ).stdout
    kept = "/var/lib/gpuready/backup/etc/nccl.conf"
    if kind == "edited":
        assert found.startswith("NCCL_IB_SL=3\n") and kept in found
        node.run(f"rm -f {kept}.*")
    else:
        assert found == {"absent": "", "link": "/srv/nccl.conf\nNCCL_IB_TC=106\n"}[kind]

"""/etc/nccl.conf comes and goes on a real node; what stands in it for RDMA is test_nccl_rdma.py's."""

import pytest

from tests.system.host import Hosts

pytestmark = pytest.mark.promise

CONF = "/etc/nccl.conf"


@pytest.mark.parametrize("kind", ["absent", "link", "edited"])
def test_the_file_comes_back_as_it_was(kind: str, shared: Hosts) -> None:
    node = shared()
    node.run(f"rm -f {CONF} /srv/nccl.conf")
    if kind == "link":
        node.run(f"echo NCCL_IB_TC=106 >/srv/nccl.conf; ln -s /srv/nccl.conf {CONF}")
    wanted = node.with_spec(nccl={"extra": {"NCCL_CROSS_NIC": 0}})
    wanted.apply("--only", "nccl")
    assert "NCCL_CROSS_NIC=0\n" in node.run(f"cat {CONF}").stdout
    if kind == "edited":
        node.run(f"echo NCCL_IB_SL=3 >>{CONF}")
    wanted.remove("--only", "nccl")
    found = node.run(
        f"readlink {CONF}; cat {CONF}; find /var/lib/gpuready/backup -name 'nccl.conf*'", check=False
    ).stdout
    kept = "/var/lib/gpuready/backup/etc/nccl.conf"
    if kind == "edited":
        assert found.startswith("NCCL_IB_SL=3\n") and kept in found
        node.run(f"rm -f {kept}.*")
    else:
        assert found == {"absent": "", "link": "/srv/nccl.conf\nNCCL_IB_TC=106\n"}[kind]

"""CDI specs and podman's own parser: which versions read the field additionalGids, and that a spec without it works.

No GPU is there, so the device of the spec is /dev/null under another name. podman is Debian's.
"""

import pytest

from gpuready.components.cdi.engines import without_gids_field
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Package
from tests.lab import cri
from tests.lab.image import DOCKER_IMAGE
from tests.system.host import Hosts

pytestmark = pytest.mark.lab
#: As nvidia-ctk writes them: the lowest version that has all fields of the spec.
_SPEC = """cdiVersion: {version}
kind: nvidia.com/gpu
devices:
    - name: "0"
      containerEdits:
        deviceNodes:
            - {{path: /dev/gpuready0, hostPath: /dev/null, type: c, major: 1, minor: 3, permissions: rwm}}
{gids}"""
_GIDS = "        additionalGids: [44]\n"
_RUN = (
    "podman --cgroup-manager cgroupfs run --rm --network none --pids-limit 0 "
    f"--device nvidia.com/gpu=0 {DOCKER_IMAGE} ls /dev/gpuready0"
)


@pytest.mark.parametrize("distro", ["debian12", "debian13"])
def test_podman_reads_the_spec_that_is_made_for_it(distro: str, fresh: Hosts) -> None:
    node = fresh(distro)
    node.put(cri.podman(distro), "/")
    node.run(f"docker save {DOCKER_IMAGE} | podman load -q && mkdir -p /etc/cdi")
    version = node.run("podman --version").stdout.split()[-1]
    package = {"podman": Package(version=version, arch="amd64")}
    refuses = bool(without_gids_field(NodeSpec(), NodeState(packages=package)))
    for gids, works in ((_GIDS, not refuses), ("", True)):
        text = _SPEC.format(version="0.7.0" if gids else "0.5.0", gids=gids)
        (node.root / "etc/cdi/nvidia.yaml").write_text(text)
        done = node.run(_RUN, check=False)
        assert (done.returncode == 0) == works, (version, gids, done.stdout, done.stderr)
    assert (distro == "debian12") == refuses, version

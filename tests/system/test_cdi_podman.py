"""CDI specs that the real nvidia-ctk generates, and podman's own parser, for root and for a user without root.

No GPU is there, so nvidia-ctk gets a device file like those in /dev/dri: /dev/null under another name, and not for
everybody. For such a file it writes the field additionalGids. podman is Debian's.
"""

import json

import pytest

from gpuready.components.cdi.engines import without_gids_field
from gpuready.components.cdi.state import without_gids
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Package
from tests.lab import cri
from tests.lab.image import DOCKER_IMAGE
from tests.system.host import Hosts

pytestmark = pytest.mark.lab
_PREPARE = f"""
mknod /dev/gpuready0 c 1 3; chgrp video /dev/gpuready0; chmod 660 /dev/gpuready0
echo 'dev, /dev/gpuready0' >/run/devices.csv
docker save -o /run/image.tar {DOCKER_IMAGE}; chmod 644 /run/image.tar; podman load -q -i /run/image.tar
install -d -m 700 -o gpu /run/user/1000
"""
_GENERATE = "nvidia-ctk --quiet cdi generate --mode=csv --csv.file=/run/devices.csv --output=/etc/cdi/nvidia.yaml"
_RUN = (
    "--cgroup-manager cgroupfs run --rm --network none --pids-limit 0 "
    f"--device nvidia.com/gpu=0 {DOCKER_IMAGE} ls /dev/gpuready0"
)
# A user's images lie in the home directory, which is on an overlay here. Without logind, nobody else sets the variable.
_PODMAN = {"root": "podman", "gpu": "XDG_RUNTIME_DIR=/run/user/1000 podman --storage-driver vfs"}


@pytest.mark.parametrize("distro", ["debian12", "debian13"])
def test_podman_reads_the_spec_that_is_made_for_it(distro: str, fresh: Hosts) -> None:
    node = fresh(distro)
    node.put(cri.podman(distro), "/")
    node.only("repository", "toolkit").apply()
    node.sh(_PREPARE)
    node.run(f"{_PODMAN['gpu']} load -q -i /run/image.tar", user="gpu")
    version = node.run("podman --version").stdout.split()[-1]
    package = {"podman": Package(version=version, arch="amd64")}
    refuses = bool(without_gids_field(NodeSpec(), NodeState(packages=package)))
    for settings, gids in (("", True), (without_gids(""), False)):
        node.sh(f"set -a; {settings}\n{_GENERATE}")
        assert ("additionalGids" in node.sh("cat /etc/cdi/nvidia.yaml")) == gids
        for user, podman in _PODMAN.items():
            done = node.run(f"{podman} {_RUN}", user=user, check=False)
            assert (done.returncode == 0) == (not gids or not refuses), (version, user, gids, done.stdout, done.stderr)
    assert (distro == "debian12") == refuses, version
    assert json.loads(node.call("record").stdout)["hosts"][node.name]["state"]["marks"] == ["rootless_podman"]

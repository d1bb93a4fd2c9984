"""Verdicts on CDI specs, and the engines that read them."""

import pytest

from gpuready.catalogue import BY_ID
from gpuready.components.cdi.state import ENVIRONMENT
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Cri, Docker, Package
from tests.components.containerd.test_containerd_verdicts import running
from tests.components.docker.test_docker_verdicts import DAEMON, docker
from tests.model.probe_answers import recorded
from tests.verdicts import (
    LOADED,
    UNREADABLE,
    Row,
    fails,
    held,
    holding,
    is_unknown,
    one,
    package,
    passes,
    skips,
    state,
    warns,
)
from tests.verdicts import root_file as file


def base(version: str) -> dict[str, Package]:
    """The package with nvidia-ctk and the unit that writes CDI specs."""
    return {"nvidia-container-toolkit-base": package(version)}


def reading(directory: str, enable_cdi: bool | None = True) -> Cri:
    """As :func:`running`, with the directory of its CDI specs."""
    return running(enable_cdi=enable_cdi, cdi_spec_dirs=(directory,))


OLD_TOOLKIT = {"nvidia-container-toolkit": package("1.17.8-1")}
TO_SRV = "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/srv/x.yaml"
NOT_UPDATING = base("1.18.1-1")
R615 = {"module_version": "615.71.09", "proc_version": "615.71.09"}
IMAGE = {"owners": {"toolkit": "image"}}
CDI = "/var/run/cdi/nvidia.yaml"
ELSEWHERE = f" reads CDI specs from /srv/cdi, but the GPU spec is {CDI}"
H200_CDI = recorded("nvidia-ctk-cdi-generate.yaml")
SPEC = {CDI: file(H200_CDI)}
PODMAN = {"podman": package("5.4.2+ds1-2")}
DOCKER25 = Docker(version="25.0.6", cdi_spec_dirs=("/etc/cdi",))
PODMAN4 = {"podman": package("4.3.1+ds1-8+deb12u1")}
GIDS = """kind: nvidia.com/gpu
devices: [{name: "0", containerEdits: {deviceNodes: [{path: /dev/nvidia0, additionalGids: [44]}]}}]
"""

VERDICTS: list[Row] = [
    # cdi
    skips("cdi.spec", "no NVIDIA driver is loaded"),
    fails("cdi.spec", "there is no CDI spec", state(LOADED)),
    fails("cdi.spec", "can be read", state(LOADED, files={CDI: file("- 1")})),
    passes("cdi.spec", f"{CDI}: 0, GPU-00000000", state(LOADED, files=SPEC)),
    warns("cdi.spec", "cannot be used", state(LOADED, files={**SPEC, "/etc/cdi/x.json": file("{")})),
    warns("cdi.spec", "cannot be used", state(LOADED, files={CDI: file(H200_CDI).model_copy(update={"mode": 0o600})})),
    warns("cdi.spec", "1.18.1 may not update the spec", state(LOADED, files=SPEC, packages=NOT_UPDATING)),
    warns("cdi.spec", "leaves the driver's ucodes_*.bin out", state(R615, files=SPEC, packages=base("1.20.0-1"))),
    passes("cdi.spec", CDI, state(R615, files=SPEC, packages=base("1.20.1-1"))),
    passes("cdi.spec", CDI, state(LOADED, files=SPEC, packages=base("1.20.0-1"))),
    passes("cdi.spec", CDI, state(R615, files=SPEC)),
    # An image that brings its toolkit may well do without a spec, and apply would make none.
    skips("cdi.spec", "the AWS Deep Learning AMI owns", state(LOADED, marks=("dlami",), packages=OLD_TOOLKIT)),
    warns("cdi.spec", "can be read", state(LOADED, files={CDI: file("- 1")}), IMAGE),
    skips("cdi.stale", "there is no CDI spec", state(LOADED)),
    is_unknown("cdi.stale", "could not be read", state({**LOADED, "smi": UNREADABLE}, files=SPEC)),
    passes("cdi.stale", f"matches the driver: {CDI}", state(LOADED, files=SPEC)),
    fails("cdi.stale", "does not fit", state({"proc_version": "590.1.2"}, files=SPEC)),
    fails("cdi.stale", "does not fit", state(LOADED, files=SPEC, cdi_missing=("/dev/nvidiactl",))),
    fails("cdi.stale", "does not fit", state({**LOADED, "smi": "<x/>"}, files=SPEC)),
    passes("cdi.stale", "all its files exist", state(files=SPEC)),
    warns("cdi.stale", "no NVIDIA driver", state(files=SPEC, cdi_missing=("/dev/nvidiactl",))),
    skips("cdi.shadow", "no CDI spec"),
    passes("cdi.shadow", "no device is defined twice", state(files=SPEC)),
    warns("cdi.shadow", "silently wins", state(files={**SPEC, "/etc/cdi/x.yaml": file(H200_CDI)})),
    fails("cdi.shadow", "engines ignore both", state(files={**SPEC, "/var/run/cdi/x.yaml": file(H200_CDI)})),
    skips("cdi.podman", "no podman", state(LOADED)),
    skips("cdi.podman", "absent", state(LOADED), {"runtimes": {"podman": "absent"}}),
    skips("cdi.podman", "no NVIDIA driver", state(packages=PODMAN)),
    is_unknown("cdi.podman", "could not be read", state(packages=UNREADABLE)),
    passes("cdi.podman", "--device nvidia.com/gpu=all", state(LOADED, packages=PODMAN)),
    fails("cdi.podman", "old OCI hook", state(LOADED, packages=PODMAN, marks=("oci_hook",))),
    fails("cdi.podman", "refuses the CDI spec", holding(GIDS, "/etc/cdi/nvidia.yaml", LOADED, packages=PODMAN4)),
    passes("cdi.podman", "--device nvidia.com/gpu=all", holding(GIDS, "/etc/cdi/nvidia.yaml", LOADED, packages=PODMAN)),
    passes(  # an old Docker beside it is none of podman's
        "cdi.podman",
        "--device nvidia.com/gpu=all",
        holding(GIDS, "/etc/cdi/nvidia.yaml", LOADED, packages=PODMAN, docker=DOCKER25),
    ),
    fails("cdi.podman", "does not support CDI devices", state(LOADED, packages={"podman": package("3.0.1+dfsg1-3")})),
    skips("cdi.rootless", "no user's rootless", state(LOADED)),
    skips("cdi.rootless", "no NVIDIA driver", state(marks=("rootless_podman",))),
    warns("cdi.rootless", "only by CDI", state(LOADED, marks=("rootless_podman",))),
    passes("cdi.rootless", "podman run --device", state(LOADED, files=SPEC, marks=("rootless_podman",))),
    passes("cdi.rootless", "docker run --device", state(LOADED, files=SPEC, marks=("rootless_docker",))),
    skips("docker.cdi", "no Docker runs"),
    skips("docker.cdi", "absent", state(docker=docker()), {"runtimes": {"docker": "absent"}}),
    skips("docker.cdi", "does not support CDI devices", state(docker=docker(version="20.10.24+dfsg1"))),
    is_unknown("docker.cdi", "could not be read", state(docker=UNREADABLE)),
    passes("docker.cdi", "are off in Docker", state(docker=docker())),
    passes("docker.cdi", "specs from /etc/cdi", state(docker=docker(cdi_spec_dirs=("/etc/cdi",)))),
    warns("docker.cdi", "not restarted since", holding('{"features": {"cdi": true}}', DAEMON, docker=docker())),
    warns("docker.cdi", f"Docker{ELSEWHERE}", state(docker=docker(cdi_spec_dirs=("/srv/cdi",)), files=SPEC)),
    passes("docker.cdi", "from /run/cdi/", state(docker=docker(cdi_spec_dirs=("/run/cdi/",)), files=SPEC)),
    skips("containerd.cdi", "containerd was not asked"),
    skips("containerd.cdi", "was not asked", state(cri=running()), {"runtimes": {"containerd": "absent"}}),
    is_unknown("containerd.cdi", "could not be read", state(cri=UNREADABLE)),
    passes("containerd.cdi", "are off in containerd", state(cri=running(enable_cdi=False))),
    passes("containerd.cdi", "containerd reads CDI specs from /srv/cdi", state(cri=reading("/srv/cdi"))),
    warns("containerd.cdi", f"containerd{ELSEWHERE}", state(cri=reading("/srv/cdi"), files=SPEC)),
    skips("crio.cdi", "CRI-O was not asked"),
    is_unknown("crio.cdi", "could not be read", state(crio=UNREADABLE)),
    passes("crio.cdi", "from /var/run/cdi", state(crio=reading("/var/run/cdi", enable_cdi=None))),
    warns("crio.cdi", f"CRI-O{ELSEWHERE}", state(crio=reading("/srv/cdi", enable_cdi=None), files=SPEC)),
    skips("cdi.config", "no NVIDIA driver is loaded"),
    is_unknown("cdi.config", "where no engine looks", holding(TO_SRV, ENVIRONMENT, LOADED, systemd=True)),
    fails("cdi.config", "cdi.spec", state(LOADED)),
    passes("cdi.config", "as the spec says", state(LOADED, systemd=True, files=SPEC)),
]
test_verdict = held(VERDICTS)


def test_the_fix_for_what_others_own_points_to_them() -> None:
    stale = one("cdi.stale", state({"proc_version": "590.1.2"}, files=SPEC), IMAGE)
    twice = one("cdi.shadow", state(files={**SPEC, "/etc/cdi/x.yaml": file(H200_CDI)}), IMAGE)
    assert [found.remedy.partition(":")[0] for found in (stale, twice)] == ["change it there"] * 2


@pytest.mark.parametrize(("cdi", "begin"), [("auto", "set runtimes.docker.cdi:"), (True, "gpuready apply restarts")])
def test_a_setting_that_the_spec_has_is_not_asked_for_again(cdi: object, begin: str) -> None:
    spec = NodeSpec.model_validate({"runtimes": {"docker": {"cdi": cdi}}})
    of = holding('{"features": {"cdi": true}}', DAEMON, docker=docker())
    assert BY_ID["docker.cdi"].verdict(spec, of).remedy.startswith(begin)

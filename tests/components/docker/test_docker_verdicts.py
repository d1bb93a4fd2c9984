"""Verdicts on Docker by its own answers: its runtimes, and a new container."""

from typing import Any

import pytest

from gpuready.catalogue import BY_ID
from gpuready.components.docker import keys
from gpuready.components.docker.keys import CONFIG
from gpuready.contract.component import NotComparable
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Docker, File, NodeState
from tests.verdicts import (
    GPU,
    SMOKE,
    UNREADABLE,
    WITHOUT_GPUS,
    Row,
    answered,
    fails,
    having,
    held,
    holding,
    is_unknown,
    one,
    passes,
    skips,
    state,
)


def test_a_file_that_lost_its_keys_does_not_contain_them() -> None:
    node = state()
    broken = node.model_copy(
        update={"files": {**node.files, CONFIG: File(mode=0o644, uid=0, gid=0, mtime=0, text="{")}}
    )
    with pytest.raises(NotComparable, match="; gpuready had put keys into it"):
        keys._legible(broken, {})


def smoked(out: str, rc: int = 0, pci: tuple[str, ...] = ()) -> NodeState:
    """A node whose Docker ran the smoke container."""
    return state({"pci": pci}, docker=NVIDIA, active=answered("smoke", out, rc))


DEFAULT = {"runtimes": {"docker": {"default_runtime": True}}}


def docker(**fields: Any) -> Docker:
    return Docker(**{"version": "26.1.5", "runtimes": {"runc": "runc"}, "default_runtime": "runc", **fields})


CAUSE = "failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=all"
_WHERE = f"open /run/containerd/io.containerd.runtime.v2.task/moby/{'0123456789abcdef' * 4}/log.json: no such file"
NESTED = {
    "rc": 125,
    "out": "docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI "
    f"runtime create failed: unable to retrieve OCI runtime error ({_WHERE}): nvidia-container-runtime did not "
    f"terminate successfully: exit status 1: {CAUSE}\n\nRun 'docker run --help' for more information\n",
}
BOTH = {"runc": "runc", "nvidia": "nvidia-container-runtime"}
NVIDIA = docker(runtimes=BOTH)
DAEMON = "/etc/docker/daemon.json"
REGISTERED = '{"live-restore": true, "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'
RUNNING = {"runtimes": BOTH, "live_restore": True}

VERDICTS: list[Row] = [
    # docker.runtime
    skips("docker.runtime", "absent", state(docker=NVIDIA), {"runtimes": {"docker": "absent"}}),
    skips("docker.runtime", "no Docker"),
    is_unknown("docker.runtime", "it is not installed", spec={"runtimes": {"docker": {}}}),
    is_unknown("docker.runtime", "does not run", having("dockerd")),
    is_unknown("docker.runtime", "could not be read", state(docker=UNREADABLE)),
    fails("docker.runtime", "lists runc, not nvidia", state(docker=docker())),
    passes("docker.runtime", "nvidia-container-runtime", state(docker=NVIDIA)),
    fails("docker.runtime", "the spec says nvidia", state(docker=NVIDIA), DEFAULT),
    passes("docker.runtime", "the default", state(docker=docker(runtimes=BOTH, default_runtime="nvidia")), DEFAULT),
    # docker.smoke
    skips("docker.smoke", "no image", state(docker=NVIDIA), {"verify": {"level": "smoke"}}),
    skips("docker.smoke", "deeper than", state(docker=NVIDIA)),
    skips("docker.smoke", "no Docker", spec=SMOKE),
    is_unknown("docker.smoke", "no container was started", state(docker=NVIDIA), SMOKE),
    is_unknown("docker.smoke", "lost", state(docker=NVIDIA, active={"smoke": {"unknown": "lost"}}), SMOKE),
    passes("docker.smoke", "no GPU on this node", smoked("gpus=0"), SMOKE),
    fails("docker.smoke", "unknown runtime", smoked("a\nunknown runtime", 125), SMOKE),
    fails("docker.smoke", "exit 125", smoked("", 125), SMOKE),
    fails("docker.smoke", CAUSE, state(docker=NVIDIA, active={"smoke": NESTED}), SMOKE),
    fails("docker.smoke", "0 of 1", smoked("gpus=0", pci=(GPU,)), SMOKE),
    passes("docker.smoke", "1", smoked("gpus=1", pci=(GPU,)), SMOKE),
    fails("docker.smoke", "7 of 8", smoked("gpus=7 memlock=64", pci=(GPU,)), SMOKE | {"hardware": {"gpus": 8}}),
    passes("docker.smoke", "runs under the runtime nvidia", smoked("gpus=0", pci=(GPU,)), SMOKE | WITHOUT_GPUS),
    skips("docker.config", "no Docker"),
    is_unknown("docker.config", "could not be read", state(docker=UNREADABLE)),
    fails("docker.config", "docker.runtimes.nvidia.path", state(docker=docker())),
    passes("docker.config", "as the spec says", holding(REGISTERED, DAEMON, docker=docker(**RUNNING))),
]
test_verdict = held(VERDICTS)


def test_a_long_error_is_shortened_and_kept_whole_as_evidence() -> None:
    found = one("docker.smoke", state(docker=NVIDIA, active={"smoke": NESTED}), SMOKE)
    assert "debian:13: docker: Error response from daemon: failed to create" in found.summary
    assert found.summary.endswith(CAUSE) and _WHERE not in found.summary and len(found.summary) < 400
    assert found.evidence == str(NESTED["out"]).strip()
    assert one("docker.smoke", state(docker=NVIDIA, active=answered("smoke", "no", 1)), SMOKE).evidence == ""


@pytest.mark.parametrize(
    ("of", "spec", "fix"),
    [(having("dockerd"), {}, "systemctl start docker"), (state(), {"runtimes": {"docker": {}}}, "install: distro")],
)
def test_a_docker_that_does_not_answer_has_a_fix(of: NodeState, spec: dict[str, Any], fix: str) -> None:
    assert fix in BY_ID["docker.runtime"].verdict(NodeSpec.model_validate(spec), of).remedy

"""Verdicts on containerd by its dump and by CRI: its runtimes, and a new pod."""

from typing import Any

from gpuready.model.state import Cri, NodeState, Tool, Unit
from tests.components.containerd.containerdmodel import cri, dump
from tests.components.docker.test_docker_verdicts import CAUSE, NESTED
from tests.verdicts import SMOKE, UNREADABLE, Row, fails, held, is_unknown, one, passes, skips, state, warns
from tests.verdicts import root_file as file

CONFIG = "/etc/containerd/config.toml"
NO_RUNC = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
"""
POD_RUNTIME = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
options = {BinaryName = "/usr/bin/nvidia-container-runtime"}
"""
NO_POD = {"pod": {"rc": 1, "out": "x\nno runtime"}}


def containerd(active: str = "active", active_: dict[str, Any] | None = None, **fields: Any) -> NodeState:
    known: dict[str, Any] = {
        "containerd": dump("1.7", {CONFIG: POD_RUNTIME}),
        "files": {CONFIG: file(POD_RUNTIME)},
        "tools": {"containerd": Tool(path="/usr/bin/containerd")},
        "units": {"containerd.service": Unit(load="loaded", active=active, kill_mode="process")},
        "active": active_ or {},
    }
    return state(**{**known, **fields})


def running(**fields: Any) -> Cri:
    """What the containerd of those files answers, or a CRI-O."""
    return Cri.model_validate({**cri(dump("1.7", {CONFIG: POD_RUNTIME})), **fields})


VERDICTS: list[Row] = [
    # containerd.runtime
    skips("containerd.runtime", "no containerd"),
    is_unknown("containerd.runtime", "could not be read", containerd(containerd=UNREADABLE)),
    fails("containerd.runtime", "its runtimes: runc", containerd(containerd=dump("1.7", {}))),
    is_unknown("containerd.runtime", "containerd.service does not run", containerd(active="failed")),
    fails("containerd.runtime", "config.toml changed since it started", containerd(unloaded=(CONFIG,))),
    fails("containerd.runtime", "default runtime runc is", containerd(containerd=dump("1.7", {CONFIG: NO_RUNC}))),
    passes("containerd.runtime", "crictl is missing, so CRI was not checked", containerd()),
    passes("containerd.runtime", "as CRI confirms", containerd(unloaded=(CONFIG,), cri=running())),
    is_unknown("containerd.runtime", "could not be read", containerd(cri=UNREADABLE)),
    fails("containerd.runtime", "default, but the files say runc", containerd(cri=running(default_runtime="default"))),
    # containerd.config
    skips("containerd.config", "no containerd"),
    is_unknown("containerd.config", "could not be read", containerd(containerd=UNREADABLE)),
    fails("containerd.config", "runtimes.nvidia.options.BinaryName", containerd(containerd=dump("1.7", {}))),
    passes("containerd.config", "as the spec says", containerd()),
    # containerd.smoke
    skips("containerd.smoke", "no image", containerd(), {"verify": {"level": "smoke"}}),
    skips("containerd.smoke", "no containerd", spec=SMOKE),
    skips("containerd.smoke", "no crictl", containerd(), SMOKE),
    is_unknown("containerd.smoke", "lost", containerd(active_={"pod": {"unknown": "lost"}}), SMOKE),
    fails("containerd.smoke", "no runtime", containerd(active_={"pod": {"rc": 1, "out": "x\nno runtime"}}), SMOKE),
    # Beside k3s the host's containerd is left alone; what it lacks is nobody's fault.
    skips("containerd.runtime", "k3s owns", containerd(containerd=dump("1.7", {}), marks=("k3s",))),
    skips("containerd.runtime", "k3s owns", containerd(active="failed", marks=("k3s",))),
    warns("containerd.runtime", "config.toml changed", containerd(unloaded=(CONFIG,), marks=("k3s",))),
    passes("containerd.runtime", "nvidia (/usr/bin", containerd(marks=("k3s",))),
    skips("containerd.smoke", "k3s", containerd(containerd=dump("1.7", {}), marks=("k3s",), active_=NO_POD), SMOKE),
    fails("containerd.smoke", "no runtime", containerd(marks=("k3s",), active_=NO_POD), SMOKE),
    passes("containerd.smoke", "a pod runs", containerd(active_={"pod": {"rc": 0, "out": "gpus=0"}}), SMOKE),
    fails("containerd.smoke", CAUSE, containerd(active_={"pod": NESTED}), SMOKE),
]
test_verdict = held(VERDICTS)


def test_the_fix_for_what_others_own_points_to_them() -> None:
    old = one("containerd.runtime", containerd(unloaded=(CONFIG,), marks=("k3s",)))
    assert old.remedy.startswith("change it there:")

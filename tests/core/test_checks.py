"""Every check with every verdict that it can give, the recorded machine, waivers, and failures told once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from gpuready.catalogue import BY_ID, CATALOGUE
from gpuready.core.check import Check, Judged, Level, Verdict, fail, has_gpu, passed, run_checks, skip, unknown, warn
from gpuready.node import NODE
from gpuready.spec.model import NodeSpec
from gpuready.state.model import Cri, Docker, Driver, File, Linker, NodeState, Package, Tool, Unit, Unknown
from tests.components.containerd.containerdmodel import cri, dump
from tests.components.driver import driver_verdicts
from tests.components.monitoring import monitoring_verdicts
from tests.components.nccl import nccl_verdicts
from tests.components.rdma import rdma_verdicts
from tests.components.reconverge import reconverge_verdicts
from tests.components.wheels import wheel_verdicts
from tests.gpu import gpu_verdicts, leftover_verdicts, nvlink_verdicts, torch_verdicts, visible_verdicts
from tests.state.probe_answers import DRIVER, LIB64, h200, recorded
from tests.tools.compat import image_verdicts

TODAY = date(2026, 11, 21)
GPU = "0000:00:06.0 0x030200 0x2335"
LIB = f"{LIB64}/libcuda.so.1"
REAL = f"{LIB64}/libcuda.so.{DRIVER}"
UNREADABLE = Unknown(unknown="it could not be read")
STATUSES = {"pass", "warn", "fail", "skip", "unknown"}
IDS = [check.id for check in CATALOGUE]


def spec(**blocks: Any) -> NodeSpec:
    return NodeSpec.model_validate(blocks)


def state(driver: Mapping[str, Any] | None = None, **fields: Any) -> NodeState:
    return NodeState(driver=Driver(**(driver or {})), **fields)


def file(text: str) -> File:
    return File(text=text, mode=0o644, uid=0, gid=0, mtime=1)


def one(id: str, node: NodeState, node_spec: NodeSpec | None = None) -> Verdict:
    """The verdict of one check alone, as ``run_checks`` gives it."""
    judged = run_checks((BY_ID[id],), node_spec or spec(), node, "n1", active=True, today=TODAY)
    return judged[0].verdict


# --- the catalogue --------------------------------------------------------------------------------------------


def test_ids_are_unique_and_found_by_id() -> None:
    assert len(set(IDS)) == len(IDS)
    assert [BY_ID[id] for id in IDS] == list(CATALOGUE)


@pytest.mark.parametrize("check", CATALOGUE, ids=lambda c: c.id)
def test_each_check_explains_itself(check: Check) -> None:
    for text in (check.cause, check.confirm, check.fix):
        assert text.strip() == text
        assert len(text) > 5
    assert check.cause.endswith(".")
    area, _, name = check.id.partition(".")
    assert area.isidentifier() and name.isidentifier()
    assert check.level in (Level.config, Level.effective, Level.smoke)


@pytest.mark.parametrize("check", CATALOGUE, ids=lambda c: c.id)
def test_roots_exist_and_come_before(check: Check) -> None:
    for root in check.after:
        assert IDS.index(root) < IDS.index(check.id)


def test_every_component_has_its_check() -> None:
    assert {f"{component.name}.config" for component in NODE} <= set(IDS)
    assert {check.component for check in CATALOGUE} <= {c.name for c in NODE} | {"node", "driver", "gpu", "image"}


def test_what_the_first_release_promises() -> None:
    wanted = {"driver.loaded", "driver.match", "libcuda.ldcache", "libcuda.stub", "gpu.count", "docker.runtime"}
    assert wanted | {"libcuda.init", "docker.smoke"} <= set(IDS)
    assert {check.id for check in CATALOGUE if check.active} >= {"libcuda.init", "docker.smoke"}


# --- each verdict ---------------------------------------------------------------------------------------------

CONF = "/etc/ld.so.conf.d/x.conf"
DISTRO = {"runtimes": {"docker": {"install": "distro"}}}
CRIO = {
    "/etc/crio/crio.conf": file('[crio.runtime.runtimes.nvidia]\nruntime_path = "/usr/bin/nvidia-container-runtime"\n')
}
STUB = "/usr/local/cuda/lib64/stubs/libcuda.so"


def linker(*cached: str, libs: Mapping[str, str] | None = None, loader: str = "") -> Linker:
    return Linker(cache={"libcuda.so.1": cached} if cached else {}, libs=dict(libs or {}), loader=loader)


def docker(**fields: Any) -> Docker:
    return Docker(**{"version": "26.1.5", "runtimes": {"runc": "runc"}, "default_runtime": "runc", **fields})


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
CAUSE = "failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=all"
_WHERE = f"open /run/containerd/io.containerd.runtime.v2.task/moby/{'0123456789abcdef' * 4}/log.json: no such file"
NESTED = {
    "rc": 125,
    "out": "docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI "
    f"runtime create failed: unable to retrieve OCI runtime error ({_WHERE}): nvidia-container-runtime did not "
    f"terminate successfully: exit status 1: {CAUSE}\n\nRun 'docker run --help' for more information\n",
}


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


NVIDIA = docker(runtimes={"runc": "runc", "nvidia": "nvidia-container-runtime"})
LOADED = {"module_version": DRIVER, "proc_version": DRIVER}
SMOKE = {"verify": {"image": "debian:13"}}
LOCK = {"memlock": "unlimited"}


def ulimits(default: str, *flags: str) -> NodeState:
    """A Docker whose daemon.json has these default-ulimits, started with these flags."""
    document = file(f'{{"default-ulimits": {default}}}')
    return state(docker=NVIDIA, files={"/etc/docker/daemon.json": document}, dockerd_command=("dockerd", *flags))


APT_KNOWS = (
    "nvidia-container-toolkit:\n  Installed: (none)\n  Candidate: 1.20.0-1\n  Version table:\n     1.20.0-1 500\n"
    "        500 https://nvidia.github.io/libnvidia-container/stable/deb/amd64  Packages\n"
)

OLD_TOOLKIT = {"nvidia-container-toolkit": Package(version="1.17.8-1", arch="amd64")}
IMAGE = {"owners": {"toolkit": "image"}}

TOML = "/etc/nvidia-container-runtime/config.toml"
CDI = "/var/run/cdi/nvidia.yaml"
H200_CDI = (Path(__file__).parents[1] / "data" / "h200" / "nvidia-ctk-cdi-generate.yaml").read_text("utf-8")
PODMAN = {"podman": Package(version="5.4.2+ds1-2", arch="amd64")}

VERDICTS: list[tuple[str, str, NodeState, dict[str, Any], str]] = [
    *rdma_verdicts.VERDICTS,
    # node.reboot
    ("node.reboot", "pass", state(), {}, "no reboot"),
    ("node.reboot", "warn", state(reboot_required=True), {}, "/run/reboot-required"),
    # driver.loaded
    ("driver.loaded", "pass", state(LOADED), {}, DRIVER),
    ("driver.loaded", "pass", state({"proc_version": "570.86.15"}), {}, "570.86.15"),
    ("driver.loaded", "fail", state({"pci": (GPU,)}), {}, "no nvidia module"),
    ("driver.loaded", "fail", state({"pci": ("0000:01:00.0 0x030000 0x1234",)}), {}, "no nvidia module"),
    ("driver.loaded", "skip", state(), {}, "no NVIDIA GPU"),
    ("driver.loaded", "skip", state({"pci": ("0000:07:00.0 0x068000 0x22a3",)}), {}, "no NVIDIA GPU"),
    ("driver.loaded", "skip", state({"pci": (GPU,)}), {"hardware": {"gpus": "none"}}, "hardware.gpus: none"),
    # driver.match
    ("driver.match", "skip", state(), {}, "no nvidia module"),
    ("driver.match", "unknown", state(LOADED, linker=UNREADABLE), {}, "could not be read"),
    ("driver.match", "pass", state(LOADED, linker=linker(LIB, libs={LIB: REAL})), {}, DRIVER),
    ("driver.match", "pass", state(LOADED, linker=linker()), {}, DRIVER),
    (
        "driver.match",
        "fail",
        state(LOADED, linker=linker(LIB, libs={LIB: "/x/libcuda.so.535.1.2"})),
        {},
        "libraries are not",
    ),
    (
        "driver.match",
        "fail",
        state(LOADED, linker=Linker(cache={"libnvidia-ml.so.1": ("/l/libnvidia-ml.so.550.54.15",)})),
        {},
        "libraries are not",
    ),
    (
        "driver.match",
        "warn",
        state(LOADED | {"on_disk_version": "590.1.2"}, linker=linker()),
        {},
        "next boot loads 590.1.2",
    ),
    # gpu.count
    ("gpu.count", "pass", state({"gpus": ("a", "b")}), {"hardware": {"gpus": 2}}, "2"),
    ("gpu.count", "fail", state({"gpus": ("a", "b")}), {"hardware": {"gpus": 8}}, "2 of 8"),
    ("gpu.count", "fail", state(), {"hardware": {"gpus": 1}}, "0 of 1"),
    ("gpu.count", "fail", state({"smi": '<gpu id="a">', "gpus": ("a", "b")}), {"hardware": {"gpus": 2}}, "1 of 2"),
    ("gpu.count", "warn", state({"gpus": ("a",)}), {}, "does not say how many"),
    ("gpu.count", "unknown", state(), {}, "is not listed"),
    (
        "gpu.count",
        "unknown",
        state({"smi": UNREADABLE, "gpus": ("a",)}),
        {"hardware": {"gpus": 1}},
        "could not be read",
    ),
    ("gpu.count", "skip", state({"gpus": ("a",)}), {"hardware": {"gpus": "none"}}, "hardware.gpus: none"),
    # gpu.model
    ("gpu.model", "skip", h200(), {}, "not set"),
    ("gpu.model", "pass", h200(), {"hardware": {"model": "h200"}}, "NVIDIA H200"),
    ("gpu.model", "fail", h200(), {"hardware": {"model": "B200"}}, "expected B200, found NVIDIA H200"),
    ("gpu.model", "unknown", state({"smi": UNREADABLE}), {"hardware": {"model": "H200"}}, "could not be read"),
    ("gpu.model", "unknown", state(), {"hardware": {"model": "H200"}}, "lists no GPU"),
    # libcuda.stub
    ("libcuda.stub", "pass", h200(), {}, "no stub"),
    ("libcuda.stub", "pass", state(files={CONF: file("# /usr/local/cuda/lib64/stubs\n")}), {}, "no stub"),
    ("libcuda.stub", "pass", state(files={CONF: file("/opt/compat-tools/lib\n")}), {}, "no stub"),
    ("libcuda.stub", "fail", state(files={CONF: file("/usr/local/cuda/lib64/stubs\n")}), {}, "stubs or compat"),
    ("libcuda.stub", "fail", state(files={CONF: file("/usr/local/cuda-13.0/compat # x\n")}), {}, "stubs or compat"),
    (
        "libcuda.stub",
        "fail",
        state(files={"/etc/ld.so.conf": file("/usr/local/cuda/compat/\n")}),
        {},
        "stubs or compat",
    ),
    (
        "libcuda.stub",
        "fail",
        state(linker=linker("/l/libcuda.so.1", libs={"/l/libcuda.so.1": STUB})),
        {},
        "stubs or compat",
    ),
    ("libcuda.stub", "fail", state(linker=linker("/usr/local/cuda/compat/libcuda.so.1")), {}, "stubs or compat"),
    ("libcuda.stub", "unknown", state(linker=UNREADABLE), {}, "could not be read"),
    # libcuda.ldcache
    ("libcuda.ldcache", "pass", h200(), {}, LIB),
    ("libcuda.ldcache", "skip", state(), {}, "no NVIDIA driver"),
    ("libcuda.ldcache", "unknown", state(linker=UNREADABLE), {}, "could not be read"),
    ("libcuda.ldcache", "fail", state({"pci": (GPU,)}), {}, "does not list"),
    ("libcuda.ldcache", "fail", state(linker=linker(libs={LIB: REAL})), {}, "does not list"),
    ("libcuda.ldcache", "fail", state(), {"ldso": ["/opt/lib"]}, "does not list"),
    ("libcuda.ldcache", "fail", state({"pci": (GPU,)}, linker=linker(LIB)), {}, "does not exist"),
    (
        "libcuda.ldcache",
        "fail",
        state(LOADED, linker=linker("/l/libcuda.so.1", libs={"/l/libcuda.so.1": "/l/libcuda.so.535.1.2"})),
        {},
        "535.1.2",
    ),
    (
        "libcuda.ldcache",
        "fail",
        state({"module_version": "9.9"}, linker=linker(LIB, libs={LIB: REAL})),
        {},
        "module is 9.9",
    ),
    ("libcuda.ldcache", "pass", state(linker=linker(LIB, libs={LIB: REAL})), {}, LIB),
    # libcuda.loader
    ("libcuda.loader", "pass", h200(), {}, LIB),
    ("libcuda.loader", "skip", state(), {}, "no NVIDIA driver"),
    ("libcuda.loader", "unknown", state(linker=UNREADABLE), {}, "could not be read"),
    ("libcuda.loader", "fail", state({"pci": (GPU,)}, linker=linker(LIB)), {}, "loader does not find"),
    # libcuda.init
    ("libcuda.init", "skip", state(), {}, "no nvidia module"),
    ("libcuda.init", "unknown", state(LOADED), {}, "was not called"),
    ("libcuda.init", "unknown", state(LOADED, active={"cuda": {"unknown": "lost"}}), {}, "lost"),
    ("libcuda.init", "unknown", state(LOADED, active={"cuda": {"rc": 1, "out": "no python3\n"}}), {}, "no python3"),
    ("libcuda.init", "unknown", state(LOADED, active={"cuda": {"rc": 124, "out": ""}}), {}, "no answer"),
    (
        "libcuda.init",
        "pass",
        state(LOADED, active={"cuda": {"rc": 0, "out": "cuInit=0 count=1 version=13000\n"}}),
        {},
        "13.0",
    ),
    (
        "libcuda.init",
        "fail",
        state(LOADED, active={"cuda": {"rc": 0, "out": "cuInit=803 count=-1 version=0\n"}}),
        {},
        "803",
    ),
    (
        "libcuda.init",
        "fail",
        state(LOADED, active={"cuda": {"rc": 0, "out": "cuInit=5 count=-1 version=0\n"}}),
        {},
        "returns 5",
    ),
    (
        "libcuda.init",
        "fail",
        state(LOADED, active={"cuda": {"rc": 0, "out": "cuInit=0 count=0 version=13000\n"}}),
        {},
        "0 of",
    ),
    (
        "libcuda.init",
        "fail",
        state(LOADED, active={"cuda": {"rc": 0, "out": "cuInit=0 count=7 version=13000\n"}}),
        {"hardware": {"gpus": 8}},
        "7 of 8",
    ),
    # toolkit.floor
    ("toolkit.floor", "unknown", state(packages=UNREADABLE), {}, "could not be read"),
    ("toolkit.floor", "skip", state(), {}, "no toolkit package"),
    *(
        ("toolkit.floor", status, state(packages={"nvidia-container-toolkit": Package(version=v, arch="amd64")}), {}, v)
        for v, status in (
            ("1.19.1-1", "pass"),
            ("1.20.0~rc.1-1", "pass"),
            ("1.100.0-1", "pass"),
            ("1.19.0-1", "warn"),
            ("1.9.9-1", "warn"),
        )
    ),
    # toolkit.version
    ("toolkit.version", "unknown", state(tools=UNREADABLE), {}, "could not be read"),
    ("toolkit.version", "fail", state(), {}, "no nvidia-ctk"),
    *(
        (
            "toolkit.version",
            status,
            state(tools={"nvidia-ctk": Tool(path="/p/nvidia-ctk", version_line=v)}),
            {},
            "/p/nvidia-ctk",
        )
        for v, status in (
            ("NVIDIA Container Toolkit CLI version 1.20.0", "pass"),
            ("NVIDIA Container Toolkit CLI version 1.19.1", "fail"),
            ("NVIDIA Container Toolkit CLI version 11.20.0", "fail"),
            ("Segmentation fault", "fail"),
            ("", "fail"),
        )
    ),
    # node.drained
    ("node.drained", "pass", state(), {}, "has not drained"),
    (
        "node.drained",
        "fail",
        state(files={"/var/lib/gpuready/drained": File(text="in Slurm, as n1\n", mode=0o644, uid=0, gid=0, mtime=1)}),
        {},
        "did not bring it back (in Slurm, as n1)",
    ),
    # repository.candidate
    ("repository.candidate", "unknown", state(), {}, "apt was not asked"),
    ("repository.candidate", "unknown", state(active={"apt": {"unknown": "lost"}}), {}, "lost"),
    (
        "repository.candidate",
        "unknown",
        state(active={"apt": {"rc": 124, "out": "no answer within 20 s"}}),
        {},
        "no answer",
    ),
    (
        "repository.candidate",
        "fail",
        state(active={"apt": {"rc": 100, "out": "E: Malformed entry 1"}}),
        {},
        "does not know",
    ),
    ("repository.candidate", "pass", state(active={"apt": {"rc": 0, "out": APT_KNOWS}}), {}, "apt has 1.20.0-1"),
    ("repository.candidate", "unknown", state(active={"apt": {"rc": 0, "out": ""}}), {}, "no package list from"),
    (
        "repository.candidate",
        "fail",
        state(active={"apt": {"rc": 0, "out": APT_KNOWS}}),
        {"toolkit": {"version": "1.19.1"}},
        "does not know 1.19.1-1",
    ),
    (
        "repository.candidate",
        "unknown",
        state(active={"apt": {"rc": 0, "out": APT_KNOWS}}),
        {"toolkit": {"repo": {"url": "https://mirror.example/deb"}}},
        "from https://mirror.example/deb",
    ),
    # docker.runtime
    ("docker.runtime", "skip", state(docker=NVIDIA), {"runtimes": {"docker": "absent"}}, "absent"),
    ("docker.runtime", "skip", state(), {}, "no Docker"),
    ("docker.runtime", "unknown", state(), {"runtimes": {"docker": {}}}, "there is none"),
    ("docker.runtime", "unknown", state(tools={"dockerd": Tool(path="/d")}), {}, "does not run"),
    ("docker.runtime", "unknown", state(docker=UNREADABLE), {}, "could not be read"),
    ("docker.runtime", "fail", state(docker=docker()), {}, "lists runc, not nvidia"),
    ("docker.runtime", "pass", state(docker=NVIDIA), {}, "nvidia-container-runtime"),
    (
        "docker.runtime",
        "fail",
        state(docker=NVIDIA),
        {"runtimes": {"docker": {"default_runtime": True}}},
        "asks for nvidia",
    ),
    (
        "docker.runtime",
        "pass",
        state(docker=NVIDIA.model_copy(update={"default_runtime": "nvidia"})),
        {"runtimes": {"docker": {"default_runtime": True}}},
        "the default",
    ),
    # engine.config
    ("engine.config", "skip", state(), {}, "no engine is to be installed"),
    ("engine.config", "fail", state(have=("apt-get",)), DISTRO, "engine.docker"),
    ("engine.config", "pass", state(tools={"dockerd": Tool(path="/d")}), DISTRO, "as the spec says"),
    # crio.config
    ("crio.config", "skip", state(), {}, "no CRI-O"),
    ("crio.config", "fail", state(tools={"crio": Tool(path="/usr/bin/crio")}), {}, "crio.runtimes.nvidia.runtime_path"),
    ("crio.config", "pass", state(tools={"crio": Tool(path="/usr/bin/crio")}, files=CRIO), {}, "as the spec says"),
    # crio.lowlevel
    ("crio.lowlevel", "skip", state(), {}, "no CRI-O"),
    ("crio.lowlevel", "unknown", state(tools=UNREADABLE), {}, "could not be read"),
    ("crio.lowlevel", "warn", state(tools={"crio": Tool(path="/usr/bin/crio")}), {}, "neither runc nor crun"),
    (
        "crio.lowlevel",
        "pass",
        state(tools={name: Tool(path=f"/usr/bin/{name}") for name in ("crio", "crun")}),
        {},
        "calls crun",
    ),
    # containerd.runtime
    ("containerd.runtime", "skip", state(), {}, "no containerd"),
    ("containerd.runtime", "unknown", containerd(containerd=UNREADABLE), {}, "could not be read"),
    ("containerd.runtime", "fail", containerd(containerd=dump("1.7", {})), {}, "runtimes are runc, not nvidia"),
    ("containerd.runtime", "unknown", containerd(active="failed"), {}, "containerd.service does not run"),
    ("containerd.runtime", "fail", containerd(unloaded=(CONFIG,)), {}, "config.toml changed since it started"),
    (
        "containerd.runtime",
        "fail",
        containerd(containerd=dump("1.7", {CONFIG: NO_RUNC})),
        {},
        "default runtime runc is",
    ),
    ("containerd.runtime", "pass", containerd(), {}, "CRI was not asked, because crictl is missing"),
    ("containerd.runtime", "pass", containerd(unloaded=(CONFIG,), cri=running()), {}, "as CRI confirms"),
    ("containerd.runtime", "unknown", containerd(cri=UNREADABLE), {}, "could not be read"),
    (
        "containerd.runtime",
        "fail",
        containerd(cri=running(default_runtime="default")),
        {},
        "CRI runs with the default runtime default, the files say runc",
    ),
    # containerd.config
    ("containerd.config", "skip", state(), {}, "no containerd"),
    ("containerd.config", "unknown", containerd(containerd=UNREADABLE), {}, "could not be read"),
    ("containerd.config", "fail", containerd(containerd=dump("1.7", {})), {}, "runtimes.nvidia.options.BinaryName"),
    ("containerd.config", "pass", containerd(), {}, "as the spec says"),
    # containerd.smoke
    ("containerd.smoke", "skip", containerd(), {"verify": {"level": "smoke"}}, "no image"),
    ("containerd.smoke", "skip", state(), SMOKE, "no containerd"),
    ("containerd.smoke", "skip", containerd(), SMOKE, "no crictl"),
    ("containerd.smoke", "unknown", containerd(active_={"pod": {"unknown": "lost"}}), SMOKE, "lost"),
    ("containerd.smoke", "fail", containerd(active_={"pod": {"rc": 1, "out": "x\nno runtime"}}), SMOKE, "no runtime"),
    # Beside k3s the host's containerd is left alone; what it lacks is nobody's fault.
    ("containerd.runtime", "skip", containerd(containerd=dump("1.7", {}), marks=("k3s",)), {}, "k3s owns"),
    ("containerd.runtime", "skip", containerd(active="failed", marks=("k3s",)), {}, "k3s owns"),
    ("containerd.runtime", "warn", containerd(unloaded=(CONFIG,), marks=("k3s",)), {}, "config.toml changed"),
    ("containerd.runtime", "pass", containerd(marks=("k3s",)), {}, "nvidia (/usr/bin"),
    ("containerd.smoke", "skip", containerd(containerd=dump("1.7", {}), marks=("k3s",), active_=NO_POD), SMOKE, "k3s"),
    ("containerd.smoke", "fail", containerd(marks=("k3s",), active_=NO_POD), SMOKE, "no runtime"),
    ("containerd.smoke", "pass", containerd(active_={"pod": {"rc": 0, "out": "gpus=0"}}), SMOKE, "a pod runs"),
    # docker.smoke
    ("docker.smoke", "skip", state(docker=NVIDIA), {"verify": {"level": "smoke"}}, "no image"),
    ("docker.smoke", "skip", state(docker=NVIDIA), {}, "deeper than"),
    ("docker.smoke", "skip", state(), SMOKE, "no Docker"),
    ("docker.smoke", "unknown", state(docker=NVIDIA), SMOKE, "no container was started"),
    ("docker.smoke", "unknown", state(docker=NVIDIA, active={"smoke": {"unknown": "lost"}}), SMOKE, "lost"),
    (
        "docker.smoke",
        "pass",
        state(docker=NVIDIA, active={"smoke": {"rc": 0, "out": "gpus=0"}}),
        SMOKE,
        "no GPU on this node",
    ),
    (
        "docker.smoke",
        "fail",
        state(docker=NVIDIA, active={"smoke": {"rc": 125, "out": "a\nunknown runtime"}}),
        SMOKE,
        "unknown runtime",
    ),
    ("docker.smoke", "fail", state(docker=NVIDIA, active={"smoke": {"rc": 125, "out": ""}}), SMOKE, "exit 125"),
    ("docker.smoke", "fail", state(docker=NVIDIA, active={"smoke": NESTED}), SMOKE, CAUSE),
    ("containerd.smoke", "fail", containerd(active_={"pod": NESTED}), SMOKE, CAUSE),
    (
        "docker.smoke",
        "fail",
        state({"pci": (GPU,)}, docker=NVIDIA, active={"smoke": {"rc": 0, "out": "gpus=0"}}),
        SMOKE,
        "0 of 1",
    ),
    (
        "docker.smoke",
        "pass",
        state({"pci": (GPU,)}, docker=NVIDIA, active={"smoke": {"rc": 0, "out": "gpus=1"}}),
        SMOKE,
        "1",
    ),
    (
        "docker.smoke",
        "fail",
        state({"pci": (GPU,)}, docker=NVIDIA, active={"smoke": {"rc": 0, "out": "gpus=7 memlock=64"}}),
        SMOKE | {"hardware": {"gpus": 8}},
        "7 of 8",
    ),
    (
        "docker.smoke",
        "pass",
        state({"pci": (GPU,)}, docker=NVIDIA, active={"smoke": {"rc": 0, "out": "gpus=0"}}),
        SMOKE | {"hardware": {"gpus": "none"}},
        "runs under the runtime nvidia",
    ),
    # config.toml
    ("config.readable", "skip", state(), {}, "there is no"),
    ("config.readable", "pass", state(files={TOML: file("")}), {}, "can be read"),
    ("config.readable", "fail", state(files={TOML: file("[x")}), {}, "is not valid TOML"),
    ("config.readable", "fail", state(files={TOML: file("a = 1\na = 2\n")}), {}, "is not valid TOML"),
    (
        "config.cgroups",
        "pass",
        state(files={TOML: file("[nvidia-container-cli]\n#no-cgroups = true\n")}),
        {},
        "not set",
    ),
    (
        "config.cgroups",
        "fail",
        state(files={TOML: file("[nvidia-container-cli]\nno-cgroups = true\n")}),
        {},
        "rootless",
    ),
    ("config.escape", "pass", state(files={TOML: file("[features]\nx = true\n")}), {}, "nothing in it"),
    (
        "config.escape",
        "warn",
        state(files={TOML: file("[features]\nallow-ldconfig-from-container = true\n")}),
        {},
        "a container can get out",
    ),
    (
        "config.escape",
        "warn",
        state(files={TOML: file('[nvidia-container-runtime.modes.legacy]\ncuda-compat-mode = "mount"\n')}),
        {},
        "a container can get out",
    ),
    # cdi
    ("cdi.spec", "skip", state(), {}, "no NVIDIA driver is loaded"),
    ("cdi.spec", "fail", state(LOADED), {}, "there is no CDI spec"),
    ("cdi.spec", "fail", state(LOADED, files={CDI: file("- 1")}), {}, "can be read"),
    ("cdi.spec", "pass", state(LOADED, files={CDI: file(H200_CDI)}), {}, f"{CDI}: 0, GPU-00000000"),
    (
        "cdi.spec",
        "warn",
        state(LOADED, files={CDI: file(H200_CDI), "/etc/cdi/x.json": file("{")}),
        {},
        "cannot be used",
    ),
    (
        "cdi.spec",
        "warn",
        state(LOADED, files={CDI: file(H200_CDI).model_copy(update={"mode": 0o600})}),
        {},
        "cannot be used",
    ),
    (
        "cdi.spec",
        "warn",
        state(
            LOADED,
            files={CDI: file(H200_CDI)},
            packages={"nvidia-container-toolkit-base": Package(version="1.18.1-1", arch="amd64")},
        ),
        {},
        "1.18.1 may leave the spec",
    ),
    # An image that brings its toolkit may well do without a spec, and apply would make none.
    ("cdi.spec", "skip", state(LOADED, marks=("dlami",), packages=OLD_TOOLKIT), {}, "the AWS Deep Learning AMI owns"),
    ("cdi.spec", "warn", state(LOADED, files={CDI: file("- 1")}), IMAGE, "can be read"),
    ("cdi.stale", "skip", state(LOADED), {}, "there is no CDI spec"),
    (
        "cdi.stale",
        "unknown",
        state({**LOADED, "smi": UNREADABLE}, files={CDI: file(H200_CDI)}),
        {},
        "could not be read",
    ),
    ("cdi.stale", "pass", state(LOADED, files={CDI: file(H200_CDI)}), {}, f"as the driver: {CDI}"),
    ("cdi.stale", "fail", state({"proc_version": "590.1.2"}, files={CDI: file(H200_CDI)}), {}, "does not fit"),
    (
        "cdi.stale",
        "fail",
        state(LOADED, files={CDI: file(H200_CDI)}, cdi_missing=("/dev/nvidiactl",)),
        {},
        "does not fit",
    ),
    ("cdi.stale", "fail", state({**LOADED, "smi": "<x/>"}, files={CDI: file(H200_CDI)}), {}, "does not fit"),
    ("cdi.stale", "pass", state(files={CDI: file(H200_CDI)}), {}, "all its files are here"),
    ("cdi.stale", "warn", state(files={CDI: file(H200_CDI)}, cdi_missing=("/dev/nvidiactl",)), {}, "no NVIDIA driver"),
    ("cdi.shadow", "skip", state(), {}, "no CDI spec"),
    ("cdi.shadow", "pass", state(files={CDI: file(H200_CDI)}), {}, "no device is defined twice"),
    ("cdi.shadow", "warn", state(files={CDI: file(H200_CDI), "/etc/cdi/x.yaml": file(H200_CDI)}), {}, "silently wins"),
    (
        "cdi.shadow",
        "fail",
        state(files={CDI: file(H200_CDI), "/var/run/cdi/x.yaml": file(H200_CDI)}),
        {},
        "engines ignore both",
    ),
    ("cdi.podman", "skip", state(LOADED), {}, "no podman"),
    ("cdi.podman", "skip", state(LOADED), {"runtimes": {"podman": "absent"}}, "absent"),
    ("cdi.podman", "skip", state(packages=PODMAN), {}, "no NVIDIA driver"),
    ("cdi.podman", "unknown", state(packages=UNREADABLE), {}, "could not be read"),
    ("cdi.podman", "pass", state(LOADED, packages=PODMAN), {}, "--device nvidia.com/gpu=all"),
    ("cdi.podman", "fail", state(LOADED, packages=PODMAN, marks=("oci_hook",)), {}, "old OCI hook"),
    (
        "cdi.podman",
        "fail",
        state(LOADED, packages={"podman": Package(version="3.0.1+dfsg1-3", arch="amd64")}),
        {},
        "does not support CDI devices",
    ),
    ("docker.cdi", "skip", state(), {}, "no Docker runs"),
    ("docker.cdi", "skip", state(docker=docker()), {"runtimes": {"docker": "absent"}}, "absent"),
    ("docker.cdi", "skip", state(docker=docker(version="20.10.24+dfsg1")), {}, "does not support CDI devices"),
    ("docker.cdi", "unknown", state(docker=UNREADABLE), {}, "could not be read"),
    ("docker.cdi", "pass", state(docker=docker()), {}, "are off in Docker"),
    ("docker.cdi", "pass", state(docker=docker(cdi_spec_dirs=("/etc/cdi",))), {}, "specs from /etc/cdi"),
    (
        "docker.cdi",
        "warn",
        state(docker=docker(), files={"/etc/docker/daemon.json": file('{"features": {"cdi": true}}')}),
        {},
        "was not restarted since",
    ),
    (
        "docker.cdi",
        "warn",
        state(docker=docker(cdi_spec_dirs=("/srv/cdi",)), files={CDI: file(H200_CDI)}),
        {},
        f"Docker reads CDI specs from /srv/cdi, and the GPUs' is {CDI}",
    ),
    (
        "docker.cdi",
        "pass",
        state(docker=docker(cdi_spec_dirs=("/run/cdi/",)), files={CDI: file(H200_CDI)}),
        {},
        "from /run/cdi/",
    ),
    ("containerd.cdi", "skip", state(), {}, "containerd was not asked"),
    ("containerd.cdi", "skip", state(cri=running()), {"runtimes": {"containerd": "absent"}}, "was not asked"),
    ("containerd.cdi", "unknown", state(cri=UNREADABLE), {}, "could not be read"),
    ("containerd.cdi", "pass", state(cri=running(enable_cdi=False)), {}, "are off in containerd"),
    (
        "containerd.cdi",
        "pass",
        state(cri=running(enable_cdi=True, cdi_spec_dirs=("/etc/cdi",))),
        {},
        "containerd reads CDI specs from /etc/cdi",
    ),
    (
        "containerd.cdi",
        "warn",
        state(cri=running(enable_cdi=True, cdi_spec_dirs=("/etc/cdi",)), files={CDI: file(H200_CDI)}),
        {},
        f"containerd reads CDI specs from /etc/cdi, and the GPUs' is {CDI}",
    ),
    ("crio.cdi", "skip", state(), {}, "CRI-O was not asked"),
    ("crio.cdi", "unknown", state(crio=UNREADABLE), {}, "could not be read"),
    (
        "crio.cdi",
        "pass",
        state(crio=running(enable_cdi=None, cdi_spec_dirs=("/var/run/cdi",))),
        {},
        "from /var/run/cdi",
    ),
    (
        "crio.cdi",
        "warn",
        state(crio=running(enable_cdi=None, cdi_spec_dirs=("/srv/cdi",)), files={CDI: file(H200_CDI)}),
        {},
        "CRI-O reads CDI specs from /srv/cdi",
    ),
    # NAME.config: the component's own comparison
    ("config.config", "skip", state(), {}, "the spec has no toolkit.mode"),
    ("config.config", "unknown", state(files={TOML: file("[x")}), {"toolkit": {"mode": "cdi"}}, "is not valid TOML"),
    ("config.config", "fail", state(), {"toolkit": {"mode": "cdi"}}, "nvidia-container-runtime.mode"),
    ("config.config", "pass", state(), {"toolkit": {"mode": "auto"}}, "as the spec says"),
    ("cdi.config", "skip", state(), {}, "no NVIDIA driver is loaded"),
    (
        "cdi.config",
        "unknown",
        state(
            LOADED,
            systemd=True,
            files={
                "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env": file(
                    "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/srv/x.yaml"
                )
            },
        ),
        {},
        "where no engine looks",
    ),
    ("cdi.config", "fail", state(LOADED), {}, "cdi.spec"),
    ("cdi.config", "pass", state(LOADED, systemd=True, files={CDI: file(H200_CDI)}), {}, "as the spec says"),
    ("ldso.config", "skip", state(), {"ldso": "off"}, "ldso: off"),
    ("ldso.config", "unknown", state(linker=UNREADABLE), {}, "could not be read"),
    ("ldso.config", "fail", state(), {"ldso": ["/opt/lib"]}, "ldso.conf"),
    (
        "ldso.config",
        "pass",
        state(files={"/etc/ld.so.conf.d/gpuready-nvidia.conf": file("/opt/lib\n")}),
        {"ldso": ["/opt/lib"]},
        "as the spec says",
    ),
    ("toolkit.config", "unknown", state(packages=UNREADABLE), {}, "could not be read"),
    ("toolkit.config", "fail", state(), {}, "8 differences"),
    (
        "legacy.config",
        "fail",
        state(files={"/etc/crio/conf.d/99-nvidia.toml": file('"nvidia-container-runtime"')}),
        {},
        "legacy./etc/crio",
    ),
    ("memlock.config", "skip", state(), {}, "no RDMA port"),
    ("memlock.config", "unknown", state(units=UNREADABLE), LOCK, "could not be read"),
    ("memlock.config", "fail", state(), LOCK, "memlock.login.root"),
    (
        "memlock.config",
        "pass",
        state(files={"/etc/security/limits.conf": file("* - memlock unlimited\nroot - memlock unlimited\n")}),
        LOCK,
        "as the spec says",
    ),
    ("memlock.login", "skip", state(), {}, "no limit of locked memory"),
    ("memlock.login", "pass", state(memlock="unlimited"), LOCK, "may lock all memory"),
    ("memlock.login", "warn", state(memlock="8192"), LOCK, "8192 KiB"),
    ("memlock.login", "warn", state(), LOCK, "an unknown number"),
    ("memlock.docker", "skip", state(docker=NVIDIA), {}, "no limit of locked memory"),
    ("memlock.docker", "skip", state(), LOCK, "no Docker"),
    ("memlock.docker", "pass", state(docker=NVIDIA), LOCK, "inherit containerd's"),
    ("memlock.docker", "pass", ulimits('{"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}}'), LOCK, "no limit"),
    ("memlock.docker", "pass", ulimits('{"nofile": {"Name": "nofile", "Hard": 64, "Soft": 64}}'), LOCK, "no limit"),
    ("memlock.docker", "pass", ulimits("null", "--default-ulimit", "memlock=-1:-1", "--debug"), LOCK, "no limit"),
    ("memlock.docker", "fail", ulimits('{"memlock": {"Name": "memlock", "Hard": 65536, "Soft": -1}}'), LOCK, "65536"),
    ("memlock.docker", "fail", ulimits('{"memlock": {"Name": "memlock"}}'), LOCK, "memlock 0 bytes"),
    ("memlock.docker", "fail", ulimits("{}", "--default-ulimit=memlock=1024"), LOCK, "memlock=1024"),
    ("memlock.container", "skip", state(), SMOKE, "no limit of locked memory"),
    ("memlock.container", "skip", state(), LOCK | {"verify": {"level": "smoke"}}, "no image"),
    ("memlock.container", "unknown", state(), LOCK | SMOKE, "no container reported"),
    (
        "memlock.container",
        "fail",
        state(active={"smoke": {"rc": 0, "out": "gpus=0 memlock=8192 shm=1"}}),
        LOCK | SMOKE,
        "8192 KiB",
    ),
    (
        "memlock.container",
        "pass",
        state(active={"smoke": {"rc": 0, "out": "gpus=0 memlock=unlimited"}}),
        LOCK | SMOKE,
        "all memory",
    ),
    ("legacy.config", "skip", state(), {}, "no stale file"),
    ("repository.config", "unknown", state(), {}, "has no apt"),
    ("repository.config", "fail", state(have=("apt-get",)), {}, "repository.uri"),
    ("docker.config", "skip", state(), {}, "no Docker"),
    ("docker.config", "unknown", state(docker=UNREADABLE), {}, "could not be read"),
    ("docker.config", "fail", state(docker=docker()), {}, "docker.runtimes.nvidia.path"),
    (
        "docker.config",
        "pass",
        state(
            docker=NVIDIA.model_copy(update={"live_restore": True}),
            files={
                "/etc/docker/daemon.json": file(
                    '{"live-restore": true, "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'
                )
            },
        ),
        {},
        "as the spec says",
    ),
    *driver_verdicts.VERDICTS,
    *gpu_verdicts.VERDICTS,
    *image_verdicts.VERDICTS,
    *leftover_verdicts.VERDICTS,
    *monitoring_verdicts.VERDICTS,
    *nccl_verdicts.VERDICTS,
    *nvlink_verdicts.VERDICTS,
    *visible_verdicts.VERDICTS,
    *reconverge_verdicts.VERDICTS,
    *torch_verdicts.VERDICTS,
    *wheel_verdicts.VERDICTS,
]


@pytest.mark.parametrize(
    ("id", "status", "node", "blocks", "part"), VERDICTS, ids=[f"{v[0]}-{v[1]}-{n}" for n, v in enumerate(VERDICTS)]
)
def test_verdict(id: str, status: str, node: NodeState, blocks: dict[str, Any], part: str) -> None:
    verdict = one(id, node, spec(**blocks))
    assert (verdict.status, part in verdict.summary) == (status, True), verdict
    assert "\n" not in verdict.summary
    if status == "fail":
        assert verdict.remedy, "a failure without a remedy"


def test_every_check_is_seen_passing_and_failing() -> None:
    seen: dict[str, set[str]] = {}
    for id, status, *_ in VERDICTS:
        seen.setdefault(id, set()).add(status)
    assert set(seen) == set(IDS)
    # Their whole node stands in tests/components; a node without stale files does not need the last.
    without_pass = {"toolkit.config", "repository.config", "legacy.config"}
    assert {id for id, statuses in seen.items() if "pass" not in statuses} == without_pass
    assert {id for id, statuses in seen.items() if not statuses & {"fail", "warn"}} == set()


def test_evidence_of_failures() -> None:
    assert one("driver.loaded", state({"pci": (GPU,)})).evidence == "PCI: 0000:00:06.0"
    lies = one("libcuda.ldcache", state(linker=linker(libs={LIB: REAL}))).evidence
    assert lies == f"libcuda is in {LIB64}"
    wrong = one("driver.match", state(LOADED, linker=linker(LIB, libs={LIB: "/x/libcuda.so.535.1.2"}))).evidence
    assert wrong == f"libcuda.so.1 -> {LIB} is 535.1.2"
    assert STUB not in one("libcuda.stub", h200()).evidence
    assert CONF in one("libcuda.stub", state(files={CONF: file("/x/stubs\n")})).evidence


def test_what_others_own_is_seen_to_there() -> None:
    stale = one("cdi.stale", state({"proc_version": "590.1.2"}, files={CDI: file(H200_CDI)}), spec(**IMAGE))
    twice = one("cdi.shadow", state(files={CDI: file(H200_CDI), "/etc/cdi/x.yaml": file(H200_CDI)}), spec(**IMAGE))
    old = one("containerd.runtime", containerd(unloaded=(CONFIG,), marks=("k3s",)))
    assert [v.remedy.partition(":")[0] for v in (stale, twice, old)] == ["see to it there"] * 3


# --- the recorded machine -------------------------------------------------------------------------------------


def test_the_recorded_machine_passes_what_concerns_driver_and_libcuda() -> None:
    node = h200().model_copy(update={"active": {"cuda": {"rc": 0, "out": "cuInit=0 count=1 version=13000\n"}}})
    judged = run_checks(CATALOGUE, spec(hardware={"gpus": 1, "model": "H200"}), node, "n1", active=True, today=TODAY)
    wanted = [j for j in judged if j.check.id.startswith(("driver.", "libcuda.", "gpu."))]
    judged_as = {j.check.id: j.verdict.status for j in wanted}
    # No switch, one GPU, a GPU that remaps rows: what does not concern it. The recording has no kernel log.
    absent = {
        "gpu.nvlink",
        "gpu.nvlink_errors",
        "gpu.p2p",
        "gpu.python",
        "gpu.torch",
        "libcuda.container",
        "libcuda.container_triton",
        "gpu.nvswitch",
        "gpu.fabric",
        "driver.charlinks",
        "driver.companions",
        "driver.fabricmanager",
        "driver.persistenced",
        "gpu.uniform",
        "gpu.retired",
        "gpu.xid",
        "gpu.sxid",
        "driver.owner",
        "driver.packages",
        "driver.held",
        "driver.config",
        "driver.nextboot",
        "driver.nouveau",
        "driver.secureboot",
        "driver.initramfs",
    }
    assert {id for id, status in judged_as.items() if status == "skip"} == absent
    assert {status for id, status in judged_as.items() if id not in absent} == {"pass"}
    assert len(judged_as) == 49


ONE_WRONG = [
    row
    for row in (*gpu_verdicts.XIDS, *gpu_verdicts.MEMORY, *gpu_verdicts.SWITCHES, *gpu_verdicts.SETTINGS)
    if row[1] in ("warn", "fail")
]


@pytest.mark.parametrize(
    ("id", "status", "node", "blocks", "part"), ONE_WRONG, ids=[f"{v[0]}-{n}" for n, v in enumerate(ONE_WRONG)]
)
def test_one_thing_wrong_with_a_gpu_is_told_by_one_check(
    id: str, status: str, node: NodeState, blocks: dict[str, Any], part: str
) -> None:
    found = run_checks(CATALOGUE, spec(**blocks), node, "n1", active=False, today=TODAY)
    concerned = {j.check.id: j.verdict.status for j in found if j.check.id.startswith(("gpu.", "driver."))}
    concerned.pop("gpu.count")  # the spec does not say how many there are
    assert {each: s for each, s in concerned.items() if s not in ("pass", "skip")} == {id: status}


def test_a_dead_gpu_is_told_once_and_its_other_values_are_not_judged() -> None:
    node = gpu_verdicts.said(("remapped_row_pending", "[GPU is lost]"), ("persistence_mode", "Disabled"))
    found = {j.check.id: j.verdict for j in run_checks(CATALOGUE, spec(), node, "n", active=False, today=TODAY)}
    assert found["gpu.answers"].evidence == "00000000:00:06.0: remapped_rows/remapped_row_pending is [GPU is lost]"
    assert found["gpu.remap"] == found["gpu.persistence"] == skip("see gpu.answers")


@pytest.mark.parametrize(
    ("why", "root", "status"),
    [
        ("smi: exit 18: Failed to initialize NVML: Driver/library version mismatch", "driver.match", "fail"),
        ("smi: exit 15: Unable to determine the device handle", "gpu.answers", "fail"),
        ("smi: no answer within the probe's limit, abandoned (pid 7 in state D)", "gpu.answers", "unknown"),
    ],
)
def test_that_nvidia_smi_does_not_answer_is_told_once(why: str, root: str, status: str) -> None:
    node = gpu_verdicts.smi("", driver={"smi": Unknown(unknown=why)})
    if root == "driver.match":
        node = node.model_copy(update={"linker": linker(LIB, libs={LIB: "/x/libcuda.so.535.1.2"})})
    judged = run_checks(CATALOGUE, spec(hardware={"nvswitch": True}), node, "n", active=False, today=TODAY)
    found = {j.check.id: j.verdict for j in judged if j.check.id.startswith(("gpu.", "driver."))}
    assert {id: v.status for id, v in found.items() if v.status not in ("pass", "skip")} == {
        root: status,
        "gpu.count": "unknown",
    }
    assert found["gpu.remap"] == found["gpu.nvswitch"] == found["gpu.fabric"] == skip(f"see {root}")


def test_the_recorded_machine_misses_the_rest_and_none_crashes() -> None:
    judged = run_checks(CATALOGUE, spec(), h200(), "n1", active=True, today=TODAY)
    assert [j.check.id for j in judged] == IDS
    assert all(j.verdict.status in STATUSES for j in judged)


def test_no_check_crashes_on_an_empty_node_or_one_of_which_nothing_is_known() -> None:
    blind = NodeState(
        packages=UNREADABLE,
        units=UNREADABLE,
        docker=UNREADABLE,
        containerd=UNREADABLE,
        tools=UNREADABLE,
        linker=UNREADABLE,
        driver=Driver(smi=UNREADABLE),
    )
    for node in (NodeState(), blind):
        judged = run_checks(CATALOGUE, spec(**SMOKE), node, "n1", active=True, today=TODAY)
        assert len(judged) == len(CATALOGUE)
    assert not [
        j.check.id for j in judged if j.verdict.status == "pass" and j.check.id not in ("node.reboot", "node.drained")
    ]


@pytest.mark.parametrize(
    ("pci", "gpus", "expected"),
    [
        ((GPU,), (), True),
        (("0000:01:00.0 0x030000 0x2684",), (), True),
        (("0000:01:00.0 0x040300 0x22ba", "0000:05:00.0 0x068000 0x22a3"), (), False),
        (("broken",), (), False),
        ((), ("0000:00:06.0",), True),
        ((), (), False),
    ],
)
def test_what_a_gpu_is(pci: tuple[str, ...], gpus: tuple[str, ...], expected: bool) -> None:
    assert has_gpu(state({"pci": pci, "gpus": gpus})) is expected


def test_the_count_of_the_recorded_nvidia_smi() -> None:
    smi = recorded("nvidia-smi-q-x.xml")
    assert smi.count("<gpu id=") == 1
    assert one("gpu.count", state({"smi": smi, "gpus": ("a", "b")}), spec(hardware={"gpus": 1})).status == "pass"


# --- how they are run -----------------------------------------------------------------------------------------


def made(id: str, verdict: Verdict, **fields: Any) -> Check:
    return Check(id, fields.pop("level", Level.config), "cause.", "confirm", "the fix", lambda *_: verdict, **fields)


def judged(*checks: Check, active: bool = True, **blocks: Any) -> dict[str, Verdict]:
    found = run_checks(checks, spec(**blocks), NodeState(), "gpu01.rack-b", active=active, today=TODAY)
    assert all(isinstance(j, Judged) for j in found)
    return {j.check.id: j.verdict for j in found}


@pytest.mark.parametrize(("root", "judged_too"), [(fail("x"), False), (unknown("x"), False), (passed("x"), True)])
def test_a_failure_is_told_once_at_its_root(root: Verdict, judged_too: bool) -> None:
    effect = made("b.effect", fail("because of a"), after=("a.root",))
    found = judged(made("a.root", root), effect)
    assert found["a.root"].status == root.status
    assert found["b.effect"] == (fail("because of a", "the fix") if judged_too else skip("see a.root"))


@pytest.mark.parametrize("root", [warn("x"), skip("x")])
def test_a_warning_or_a_skip_hides_no_effect(root: Verdict) -> None:
    found = judged(made("a.root", root), made("b.effect", fail("y"), after=("a.root",)))
    assert found["b.effect"].status == "fail"


def test_a_root_that_was_not_judged_hides_nothing() -> None:
    assert judged(made("b.effect", fail("y"), after=("a.root",)))["b.effect"].status == "fail"


def test_active_checks_need_the_second_exec() -> None:
    checks = (made("a.one", passed("x")), made("b.two", passed("x"), active=True))
    assert list(judged(*checks, active=False)) == ["a.one"]
    assert list(judged(*checks, active=True)) == ["a.one", "b.two"]


@pytest.mark.parametrize(
    ("level", "run"),
    [
        ("config", {"config"}),
        ("effective", {"config", "effective"}),
        ("smoke", {"config", "effective", "smoke"}),
    ],
)
def test_levels(level: str, run: set[str]) -> None:
    checks = [made(f"a.{name}", passed("x"), level=Level[name]) for name in ("config", "effective", "smoke", "fabric")]
    found = judged(*checks, verify={"level": level})
    assert {id.partition(".")[2] for id, verdict in found.items() if verdict.status == "pass"} == run
    assert all(f"verify.level: {level}" in v.summary for v in found.values() if v.status == "skip")


def test_of_a_long_error_its_beginning_and_its_end_are_shown_and_all_of_it_is_evidence() -> None:
    found = BY_ID["docker.smoke"].judge(spec(**SMOKE), state(docker=NVIDIA, active={"smoke": NESTED}))
    assert "debian:13: docker: Error response from daemon: failed to create" in found.summary
    assert found.summary.endswith(CAUSE) and _WHERE not in found.summary and len(found.summary) < 400
    assert found.evidence == str(NESTED["out"]).strip()
    short = BY_ID["docker.smoke"].judge(spec(**SMOKE), state(docker=NVIDIA, active={"smoke": {"rc": 1, "out": "no"}}))
    assert short.evidence == ""


def test_a_named_image_asks_for_the_smoke_container() -> None:
    found = judged(made("a.smoke", passed("x"), level=Level.smoke), verify={"image": "debian:13"})
    assert found["a.smoke"].status == "pass"


def test_without_gpus_by_the_spec_gpu_checks_are_skipped() -> None:
    check = made("a.gpu", fail("x"), gpu=True)
    assert judged(check, hardware={"gpus": "none"})["a.gpu"] == skip("hardware.gpus: none")
    assert judged(check, hardware={"gpus": 1})["a.gpu"].status == "fail"


def test_which_checks_say_nothing_without_a_gpu() -> None:
    found = run_checks(CATALOGUE, spec(hardware={"gpus": "none"}), h200(), "n", active=True, today=TODAY)
    skipped = {j.check.id for j in found if j.verdict == skip("hardware.gpus: none")}
    assert skipped == {
        *("driver.loaded", "driver.match", "driver.nodes", "driver.fabricmanager", "libcuda.init"),
        *(id for id in IDS if id.startswith("gpu.")),
        *(f"driver.{n}" for n in ("firmware", "charlinks", "persistenced", "companions", "peers", "processes")),
        *("cdi.spec", "cdi.stale", "cdi.shadow", "cdi.podman", "containerd.cdi", "crio.cdi"),
        *("image.compat", "rdma.gdr", "reconverge.last"),
    }


def test_components_that_were_not_chosen_are_not_judged() -> None:
    checks = (made("docker.x", fail("x")), made("libcuda.x", fail("x")), made("node.x", fail("x")))
    found = run_checks(checks, spec(), NodeState(), "n", active=True, today=TODAY, left_out={"docker", "ldso"})
    assert {j.check.id: j.verdict.status for j in found} == {"docker.x": "skip", "libcuda.x": "skip", "node.x": "fail"}


def test_a_failure_has_the_checks_fix_unless_it_has_its_own() -> None:
    assert judged(made("a.x", fail("x")))["a.x"].remedy == "the fix"
    assert judged(made("a.x", fail("x", "my own")))["a.x"].remedy == "my own"


# --- waivers --------------------------------------------------------------------------------------------------


def waiver(**fields: Any) -> dict[str, Any]:
    return {"check": "a.x", "reason": "spare part ordered", "until": "2026-12-31", **fields}


@pytest.mark.parametrize("verdict", [fail("broken", "r", "e"), unknown("broken", "r")])
@pytest.mark.parametrize("host", ["*", "gpu*", "gpu01.rack-?", "gpu01.rack-b"])
def test_a_waiver_makes_a_failure_a_warning(verdict: Verdict, host: str) -> None:
    found = judged(made("a.x", verdict), verify={"waive": [waiver(host=host)]})["a.x"]
    assert found.status == "warn"
    for part in ("waived until 2026-12-31", "spare part ordered", "broken"):
        assert part in found.summary
    assert (found.remedy, found.evidence) == (verdict.remedy, verdict.evidence)


@pytest.mark.parametrize(
    "fields", [{"host": "gpu02*"}, {"host": "gpu01"}, {"host": "GPU*"}, {"check": "a.y"}, {"check": "a.*"}]
)
def test_a_waiver_of_something_else_changes_nothing(fields: dict[str, str]) -> None:
    found = judged(made("a.x", fail("broken")), verify={"waive": [waiver(**fields)]})["a.x"]
    assert found == fail("broken", "the fix")


@pytest.mark.parametrize("verdict", [passed("x"), warn("x"), skip("x")])
def test_a_waiver_changes_no_verdict_that_is_not_bad(verdict: Verdict) -> None:
    assert judged(made("a.x", verdict), verify={"waive": [waiver()]})["a.x"] == verdict


def test_a_waiver_holds_on_its_last_day_and_not_after() -> None:
    def at(until: str) -> Verdict:
        return judged(made("a.x", fail("broken")), verify={"waive": [waiver(until=until)]})["a.x"]

    assert at("2026-11-21").status == "warn"
    ended = at("2026-11-20")
    assert ended.status == "fail"
    assert ended.summary == "broken (its waiver expired on 2026-11-20)"


def test_of_several_waivers_the_one_that_holds_counts() -> None:
    waivers = [waiver(until="2026-01-01"), waiver(host="gpu02"), waiver(until="2027-01-01", reason="again")]
    found = judged(made("a.x", fail("broken")), verify={"waive": waivers})["a.x"]
    assert found.status == "warn"
    assert "again" in found.summary

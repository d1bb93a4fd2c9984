"""Every check with every verdict that it can give, the recorded machine, waivers, and failures told once."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from gpuready.base.facts import Answer
from gpuready.catalogue import BY_ID, CATALOGUE
from gpuready.components.cdi.state import ENVIRONMENT
from gpuready.contract.check import (
    Check,
    Judged,
    Level,
    Verdict,
    fail,
    has_gpu,
    passed,
    run_checks,
    skip,
    unknown,
    warn,
)
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Cri, Docker, Driver, Linker, NodeState, Package, Tool, Unit, Unknown
from gpuready.node import NODE
from tests.components.containerd.containerdmodel import cri, dump
from tests.components.driver import driver_verdicts
from tests.components.gate import gate_verdicts
from tests.components.monitoring import monitoring_verdicts
from tests.components.nccl import nccl_verdicts
from tests.components.rdma import rdma_verdicts
from tests.components.reconverge import reconverge_verdicts
from tests.components.wheels import wheel_verdicts
from tests.gpu import gpu_verdicts, leftover_verdicts, nvlink_verdicts, torch_verdicts, visible_verdicts
from tests.model.probe_answers import DRIVER, LIB64, h200, recorded
from tests.tools.compat import image_verdicts
from tests.verdicts import Row, fails, is_unknown, passes, skips, warns
from tests.verdicts import root_file as file

TODAY = date(2026, 11, 21)
GPU = "0000:00:06.0 0x030200 0x2335"
LIB = f"{LIB64}/libcuda.so.1"
REAL = f"{LIB64}/libcuda.so.{DRIVER}"
LOADED = {"module_version": DRIVER, "proc_version": DRIVER}
UNREADABLE = Unknown(unknown="it could not be read")
STATUSES = {"pass", "warn", "fail", "skip", "unknown"}
IDS = [check.id for check in CATALOGUE]


def spec(**blocks: Any) -> NodeSpec:
    return NodeSpec.model_validate(blocks)


def state(driver: Mapping[str, Any] | None = None, **fields: Any) -> NodeState:
    return NodeState(driver=Driver(**(driver or {})), **fields)


def holding(text: str, path: str, driver: Mapping[str, Any] | None = None, **fields: Any) -> NodeState:
    """A node with this one file."""
    return state(driver, files={path: file(text)}, **fields)


def package(version: str) -> Package:
    return Package(version=version, arch="amd64")


def toolkit(version: str) -> NodeState:
    """A node with this version of the toolkit's package."""
    return state(packages={"nvidia-container-toolkit": package(version)})


def base(version: str) -> dict[str, Package]:
    """The package with nvidia-ctk and the unit that writes CDI specs."""
    return {"nvidia-container-toolkit-base": package(version)}


def having(*commands: str, says: str = "") -> NodeState:
    """A node with these commands, which print this version."""
    return state(tools={name: Tool(path=f"/usr/bin/{name}", version_line=says) for name in commands})


def answered(question: str, out: str, rc: int = 0) -> dict[str, Any]:
    """What one question of the second exec printed."""
    return {question: {"rc": rc, "out": out}}


def cuda(out: str, rc: int = 0) -> NodeState:
    """A node with its driver loaded, after cuInit was called."""
    return state(LOADED, active=answered("cuda", out, rc))


def apt(out: str, rc: int = 0) -> NodeState:
    """A node whose apt was asked for the toolkit's candidate."""
    return state(active=answered("apt", out, rc))


def smoked(out: str, rc: int = 0, pci: tuple[str, ...] = ()) -> NodeState:
    """A node whose Docker ran the smoke container."""
    return state({"pci": pci}, docker=NVIDIA, active=answered("smoke", out, rc))


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
    for text in (check.title, check.cause, check.confirm, check.fix):
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
    assert {check.component for check in CATALOGUE} <= {c.name for c in NODE} | {""}


def test_what_the_first_release_promises() -> None:
    wanted = {"driver.loaded", "driver.match", "libcuda.ldcache", "libcuda.stub", "gpu.count", "docker.runtime"}
    assert wanted | {"libcuda.init", "docker.smoke"} <= set(IDS)
    assert {check.id for check in CATALOGUE if check.active} >= {"libcuda.init", "docker.smoke"}


# --- each verdict ---------------------------------------------------------------------------------------------

CONF, OUR_CONF = "/etc/ld.so.conf.d/x.conf", "/etc/ld.so.conf.d/gpuready-nvidia.conf"
DEFAULT = {"runtimes": {"docker": {"default_runtime": True}}}
MIRROR = {"toolkit": {"repo": {"url": "https://mirror.example/deb"}}}
DISTRO = {"runtimes": {"docker": {"install": "distro"}}}
CRIO = {
    "/etc/crio/crio.conf": file('[crio.runtime.runtimes.nvidia]\nruntime_path = "/usr/bin/nvidia-container-runtime"\n')
}
OLD_NVML = {"libnvidia-ml.so.1": ("/l/libnvidia-ml.so.550.54.15",)}
OLD_DROP_IN = "/etc/crio/conf.d/99-nvidia.toml"
STUB = "/usr/local/cuda/lib64/stubs/libcuda.so"


def linker(*cached: str, libs: Mapping[str, str] | None = None) -> Linker:
    return Linker(cache={"libcuda.so.1": cached} if cached else {}, libs=dict(libs or {}))


def leading(real: str, driver: Mapping[str, Any] | None = LOADED) -> NodeState:
    """A node whose cached libcuda leads to this file."""
    return state(driver, linker=linker(LIB, libs={LIB: real}))


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


def reading(directory: str, enable_cdi: bool | None = True) -> Cri:
    """As :func:`running`, with the directory of its CDI specs."""
    return running(enable_cdi=enable_cdi, cdi_spec_dirs=(directory,))


BOTH = {"runc": "runc", "nvidia": "nvidia-container-runtime"}
NVIDIA = docker(runtimes=BOTH)
WITHOUT_GPUS = {"hardware": {"gpus": "none"}}
SMOKE = {"verify": {"image": "debian:13"}}
LOCK, UNLIMITED = {"memlock": "unlimited"}, "* - memlock unlimited\nroot - memlock unlimited\n"


def ulimits(default: str, *flags: str) -> NodeState:
    """A Docker whose daemon.json has these default-ulimits, started with these flags."""
    document = file(f'{{"default-ulimits": {default}}}')
    return state(docker=NVIDIA, files={"/etc/docker/daemon.json": document}, dockerd_command=("dockerd", *flags))


APT_KNOWS = (
    "nvidia-container-toolkit:\n  Installed: (none)\n  Candidate: 1.20.1-1\n  Version table:\n     1.20.1-1 500\n"
    "        500 https://nvidia.github.io/libnvidia-container/stable/deb/amd64  Packages\n"
)

CTK = "NVIDIA Container Toolkit CLI version"
OLD_TOOLKIT = {"nvidia-container-toolkit": package("1.17.8-1")}
TO_SRV = "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/srv/x.yaml"
NOT_UPDATING = base("1.18.1-1")
R615 = {"module_version": "615.71.09", "proc_version": "615.71.09"}
IMAGE = {"owners": {"toolkit": "image"}}

TOML = "/etc/nvidia-container-runtime/config.toml"
DAEMON = "/etc/docker/daemon.json"
REGISTERED = '{"live-restore": true, "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'
RUNNING = {"runtimes": BOTH, "live_restore": True}
FOR_DCGM: dict[str, Any] = {"driver": {"module_version": "550.54.15"}, "systemd": True, "have": ("apt-get",)}
DCGM = {"datacenter-gpu-manager-4-cuda12": package("1:4.5.2-1")}
DCGM_RUNS = {"nvidia-dcgm.service": Unit(load="loaded", active="active", enabled="enabled")}
WITH_DCGM = {"dcgm": {"install": True}}
CDI = "/var/run/cdi/nvidia.yaml"
ELSEWHERE = f" reads CDI specs from /srv/cdi, but the GPU spec is {CDI}"
H200_CDI = (Path(__file__).parents[1] / "data" / "h200" / "nvidia-ctk-cdi-generate.yaml").read_text("utf-8")
SPEC = {CDI: file(H200_CDI)}
PODMAN = {"podman": package("5.4.2+ds1-2")}
DOCKER25 = Docker(version="25.0.6", cdi_spec_dirs=("/etc/cdi",))
PODMAN4 = {"podman": package("4.3.1+ds1-8+deb12u1")}
GIDS = """kind: nvidia.com/gpu
devices: [{name: "0", containerEdits: {deviceNodes: [{path: /dev/nvidia0, additionalGids: [44]}]}}]
"""

VERDICTS: list[Row] = [
    *rdma_verdicts.VERDICTS,
    # node.reboot
    passes("node.reboot", "no reboot"),
    warns("node.reboot", "/run/reboot-required", state(reboot_required=True)),
    # driver.loaded
    passes("driver.loaded", DRIVER, state(LOADED)),
    passes("driver.loaded", "570.86.15", state({"proc_version": "570.86.15"})),
    fails("driver.loaded", "no nvidia module", state({"pci": (GPU,)})),
    fails("driver.loaded", "no nvidia module", state({"pci": ("0000:01:00.0 0x030000 0x1234",)})),
    skips("driver.loaded", "no NVIDIA GPU"),
    skips("driver.loaded", "no NVIDIA GPU", state({"pci": ("0000:07:00.0 0x068000 0x22a3",)})),
    skips("driver.loaded", "hardware.gpus: none", state({"pci": (GPU,)}), WITHOUT_GPUS),
    # driver.floor
    passes("driver.floor", "580.178.04 has all fixes", state({"proc_version": "580.178.04"})),
    passes("driver.floor", "580.179 has all fixes", state({"proc_version": "580.179"})),
    warns("driver.floor", "580.178.04 fixes them", state({"proc_version": "580.159.04"})),
    warns("driver.floor", "branch 570 gets no security updates", state({"proc_version": "570.211.01"})),
    warns("driver.floor", "fixes them, but branch 535 gets no security", state({"proc_version": "535.261.03"})),
    warns("driver.floor", "branch 550 gets no security updates", state({"proc_version": "550.163.01"})),
    warns("driver.floor", "branch 535 gets no security updates", state({"proc_version": "535.309.01"})),
    passes("driver.floor", "615.71.09 has all fixes", state({"proc_version": "615.71.09"})),
    warns("driver.floor", "610.57.04 fixes them", state({"proc_version": "610.43.02"})),
    skips("driver.floor", "no security bulletin for branch 620", state({"proc_version": "620.10"})),
    skips("driver.floor", "no nvidia module"),
    # driver.match
    skips("driver.match", "no nvidia module"),
    is_unknown("driver.match", "could not be read", state(LOADED, linker=UNREADABLE)),
    passes("driver.match", DRIVER, leading(REAL)),
    passes("driver.match", DRIVER, state(LOADED, linker=linker())),
    fails("driver.match", "libraries have another version", leading("/x/libcuda.so.535.1.2")),
    fails("driver.match", "libraries have another version", state(LOADED, linker=Linker(cache=OLD_NVML))),
    warns("driver.match", "next boot loads 590.1.2", state(LOADED | {"on_disk_version": "590.1.2"}, linker=linker())),
    # gpu.count
    passes("gpu.count", "2", state({"gpus": ("a", "b")}), {"hardware": {"gpus": 2}}),
    fails("gpu.count", "2 of 8", state({"gpus": ("a", "b")}), {"hardware": {"gpus": 8}}),
    fails("gpu.count", "0 of 1", spec={"hardware": {"gpus": 1}}),
    fails("gpu.count", "1 of 2", state({"smi": '<gpu id="a">', "gpus": ("a", "b")}), {"hardware": {"gpus": 2}}),
    warns("gpu.count", "does not say how many", state({"gpus": ("a",)})),
    is_unknown("gpu.count", "is not listed"),
    is_unknown("gpu.count", "could not be read", state({"smi": UNREADABLE, "gpus": ("a",)}), {"hardware": {"gpus": 1}}),
    skips("gpu.count", "hardware.gpus: none", state({"gpus": ("a",)}), WITHOUT_GPUS),
    # gpu.model
    skips("gpu.model", "not set", h200()),
    passes("gpu.model", "NVIDIA H200", h200(), {"hardware": {"model": "h200"}}),
    fails("gpu.model", "expected B200, found NVIDIA H200", h200(), {"hardware": {"model": "B200"}}),
    is_unknown("gpu.model", "could not be read", state({"smi": UNREADABLE}), {"hardware": {"model": "H200"}}),
    is_unknown("gpu.model", "lists no GPU", spec={"hardware": {"model": "H200"}}),
    # libcuda.stub
    passes("libcuda.stub", "no stub", h200()),
    passes("libcuda.stub", "no stub", holding("# /usr/local/cuda/lib64/stubs\n", CONF)),
    passes("libcuda.stub", "no stub", holding("/opt/compat-tools/lib\n", CONF)),
    fails("libcuda.stub", "stubs or compat", holding("/usr/local/cuda/lib64/stubs\n", CONF)),
    fails("libcuda.stub", "stubs or compat", holding("/usr/local/cuda-13.0/compat # x\n", CONF)),
    fails("libcuda.stub", "stubs or compat", holding("/usr/local/cuda/compat/\n", "/etc/ld.so.conf")),
    fails("libcuda.stub", "stubs or compat", state(linker=linker("/l/libcuda.so.1", libs={"/l/libcuda.so.1": STUB}))),
    fails("libcuda.stub", "stubs or compat", state(linker=linker("/usr/local/cuda/compat/libcuda.so.1"))),
    is_unknown("libcuda.stub", "could not be read", state(linker=UNREADABLE)),
    # libcuda.ldcache
    passes("libcuda.ldcache", LIB, h200()),
    skips("libcuda.ldcache", "no NVIDIA driver"),
    is_unknown("libcuda.ldcache", "could not be read", state(linker=UNREADABLE)),
    fails("libcuda.ldcache", "does not list", state({"pci": (GPU,)})),
    fails("libcuda.ldcache", "does not list", state(linker=linker(libs={LIB: REAL}))),
    fails("libcuda.ldcache", "does not list", spec={"ldso": ["/opt/lib"]}),
    fails("libcuda.ldcache", "does not exist", state({"pci": (GPU,)}, linker=linker(LIB))),
    fails("libcuda.ldcache", "535.1.2", leading("/l/libcuda.so.535.1.2")),
    fails("libcuda.ldcache", "module is 9.9", leading(REAL, {"module_version": "9.9"})),
    passes("libcuda.ldcache", LIB, leading(REAL, None)),
    # libcuda.loader
    passes("libcuda.loader", LIB, h200()),
    skips("libcuda.loader", "no NVIDIA driver"),
    is_unknown("libcuda.loader", "could not be read", state(linker=UNREADABLE)),
    fails("libcuda.loader", "loader does not find", state({"pci": (GPU,)}, linker=linker(LIB))),
    # libcuda.init
    skips("libcuda.init", "no nvidia module"),
    is_unknown("libcuda.init", "was not called", state(LOADED)),
    is_unknown("libcuda.init", "lost", state(LOADED, active={"cuda": {"unknown": "lost"}})),
    is_unknown("libcuda.init", "no python3", cuda("no python3\n", 1)),
    is_unknown("libcuda.init", "no answer", cuda("", 124)),
    passes("libcuda.init", "13.0", cuda("cuInit=0 count=1 version=13000\n")),
    fails("libcuda.init", "803", cuda("cuInit=803 count=-1 version=0\n")),
    fails("libcuda.init", "returns 5", cuda("cuInit=5 count=-1 version=0\n")),
    fails("libcuda.init", "0 of", cuda("cuInit=0 count=0 version=13000\n")),
    fails("libcuda.init", "7 of 8", cuda("cuInit=0 count=7 version=13000\n"), {"hardware": {"gpus": 8}}),
    # toolkit.floor
    is_unknown("toolkit.floor", "could not be read", state(packages=UNREADABLE)),
    skips("toolkit.floor", "no toolkit package"),
    *(passes("toolkit.floor", version, toolkit(version)) for version in ("1.19.1-1", "1.20.0~rc.1-1", "1.100.0-1")),
    *(warns("toolkit.floor", version, toolkit(version)) for version in ("1.19.0-1", "1.9.9-1")),
    # toolkit.version
    is_unknown("toolkit.version", "could not be read", state(tools=UNREADABLE)),
    fails("toolkit.version", "no nvidia-ctk"),
    passes("toolkit.version", "nvidia-ctk", having("nvidia-ctk", says=f"{CTK} 1.20.1")),
    *(
        fails("toolkit.version", "/usr/bin/nvidia-ctk", having("nvidia-ctk", says=line))
        for line in (f"{CTK} 1.19.1", f"{CTK} 11.20.1", "Segmentation fault", "")
    ),
    # node.drained
    passes("node.drained", "has not drained"),
    fails("node.drained", "bring it back (in Slurm, as n1)", holding("in Slurm, as n1\n", "/var/lib/gpuready/drained")),
    # repository.candidate
    is_unknown("repository.candidate", "apt was not asked"),
    is_unknown("repository.candidate", "lost", state(active={"apt": {"unknown": "lost"}})),
    is_unknown("repository.candidate", "no answer", apt("no answer within 20 s", 124)),
    fails("repository.candidate", "does not know", apt("E: Malformed entry 1", 100)),
    passes("repository.candidate", "apt has 1.20.1-1", apt(APT_KNOWS)),
    is_unknown("repository.candidate", "no package list from", apt("")),
    fails("repository.candidate", "does not know 1.19.1-1", apt(APT_KNOWS), {"toolkit": {"version": "1.19.1"}}),
    is_unknown("repository.candidate", "from https://mirror.example/deb", apt(APT_KNOWS), MIRROR),
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
    # engine.config
    skips("engine.config", "no engine is to be installed"),
    fails("engine.config", "engine.docker", state(have=("apt-get",)), DISTRO),
    passes("engine.config", "as the spec says", having("dockerd"), DISTRO),
    # crio.config
    skips("crio.config", "no CRI-O"),
    fails("crio.config", "crio.runtimes.nvidia.runtime_path", having("crio")),
    passes("crio.config", "as the spec says", state(tools={"crio": Tool(path="/usr/bin/crio")}, files=CRIO)),
    # crio.lowlevel
    skips("crio.lowlevel", "no CRI-O"),
    is_unknown("crio.lowlevel", "could not be read", state(tools=UNREADABLE)),
    warns("crio.lowlevel", "neither runc nor crun", having("crio")),
    passes("crio.lowlevel", "calls crun", having("crio", "crun")),
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
    fails("containerd.smoke", CAUSE, containerd(active_={"pod": NESTED}), SMOKE),
    fails("docker.smoke", "0 of 1", smoked("gpus=0", pci=(GPU,)), SMOKE),
    passes("docker.smoke", "1", smoked("gpus=1", pci=(GPU,)), SMOKE),
    fails("docker.smoke", "7 of 8", smoked("gpus=7 memlock=64", pci=(GPU,)), SMOKE | {"hardware": {"gpus": 8}}),
    passes("docker.smoke", "runs under the runtime nvidia", smoked("gpus=0", pci=(GPU,)), SMOKE | WITHOUT_GPUS),
    # config.toml
    skips("config.readable", "there is no"),
    passes("config.readable", "can be read", holding("", TOML)),
    fails("config.readable", "is not valid TOML", holding("[x", TOML)),
    fails("config.readable", "is not valid TOML", holding("a = 1\na = 2\n", TOML)),
    passes("config.cgroups", "not set", holding("[nvidia-container-cli]\n#no-cgroups = true\n", TOML)),
    fails("config.cgroups", "rootless", holding("[nvidia-container-cli]\nno-cgroups = true\n", TOML)),
    passes("config.escape", "nothing in it", holding("[features]\nx = true\n", TOML)),
    warns("config.escape", "can get out", holding("[features]\nallow-ldconfig-from-container = true\n", TOML)),
    warns(
        "config.escape",
        "can get out",
        holding('nvidia-container-runtime.modes.legacy.cuda-compat-mode = "mount"', TOML),
    ),
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
    # NAME.config: the component's own comparison
    skips("config.config", "the spec has no toolkit.mode"),
    is_unknown("config.config", "is not valid TOML", holding("[x", TOML), {"toolkit": {"mode": "cdi"}}),
    fails("config.config", "nvidia-container-runtime.mode", spec={"toolkit": {"mode": "cdi"}}),
    passes("config.config", "as the spec says", spec={"toolkit": {"mode": "auto"}}),
    skips("cdi.config", "no NVIDIA driver is loaded"),
    is_unknown("cdi.config", "where no engine looks", holding(TO_SRV, ENVIRONMENT, LOADED, systemd=True)),
    fails("cdi.config", "cdi.spec", state(LOADED)),
    passes("cdi.config", "as the spec says", state(LOADED, systemd=True, files=SPEC)),
    skips("ldso.config", "ldso: off", spec={"ldso": "off"}),
    is_unknown("ldso.config", "could not be read", state(linker=UNREADABLE)),
    fails("ldso.config", "ldso.conf", spec={"ldso": ["/opt/lib"]}),
    passes("ldso.config", "as the spec says", holding("/opt/lib\n", OUR_CONF), {"ldso": ["/opt/lib"]}),
    is_unknown("toolkit.config", "could not be read", state(packages=UNREADABLE)),
    fails("toolkit.config", "8 differences"),
    fails("legacy.config", "legacy./etc/crio", holding('"nvidia-container-runtime"', OLD_DROP_IN)),
    skips("memlock.config", "no RDMA port"),
    is_unknown("memlock.config", "could not be read", state(units=UNREADABLE), LOCK),
    fails("memlock.config", "memlock.login.root", spec=LOCK),
    passes("memlock.config", "as the spec says", holding(UNLIMITED, "/etc/security/limits.conf"), LOCK),
    skips("memlock.login", "no limit of locked memory"),
    passes("memlock.login", "may lock all memory", state(memlock="unlimited"), LOCK),
    warns("memlock.login", "8192 KiB", state(memlock="8192"), LOCK),
    warns("memlock.login", "an unknown number", spec=LOCK),
    skips("memlock.docker", "no limit of locked memory", state(docker=NVIDIA)),
    skips("memlock.docker", "no Docker", spec=LOCK),
    passes("memlock.docker", "inherit containerd's", state(docker=NVIDIA), LOCK),
    passes("memlock.docker", "no limit", ulimits('{"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}}'), LOCK),
    passes("memlock.docker", "no limit", ulimits('{"nofile": {"Name": "nofile", "Hard": 64, "Soft": 64}}'), LOCK),
    passes("memlock.docker", "no limit", ulimits("null", "--default-ulimit", "memlock=-1:-1", "--debug"), LOCK),
    fails("memlock.docker", "65536", ulimits('{"memlock": {"Name": "memlock", "Hard": 65536, "Soft": -1}}'), LOCK),
    fails("memlock.docker", "memlock 0 bytes", ulimits('{"memlock": {"Name": "memlock"}}'), LOCK),
    fails("memlock.docker", "memlock=1024", ulimits("{}", "--default-ulimit=memlock=1024"), LOCK),
    skips("memlock.container", "no limit of locked memory", spec=SMOKE),
    skips("memlock.container", "no image", spec=LOCK | {"verify": {"level": "smoke"}}),
    is_unknown("memlock.container", "no container reported", spec=LOCK | SMOKE),
    fails("memlock.container", "8192 KiB", smoked("gpus=0 memlock=8192 shm=1"), LOCK | SMOKE),
    passes("memlock.container", "all memory", smoked("gpus=0 memlock=unlimited"), LOCK | SMOKE),
    skips("legacy.config", "no stale file"),
    is_unknown("repository.config", "has no apt"),
    fails("repository.config", "repository.uri", state(have=("apt-get",))),
    skips("docker.config", "no Docker"),
    is_unknown("docker.config", "could not be read", state(docker=UNREADABLE)),
    fails("docker.config", "docker.runtimes.nvidia.path", state(docker=docker())),
    passes("docker.config", "as the spec says", holding(REGISTERED, DAEMON, docker=docker(**RUNNING))),
    passes("dcgm.config", "as the spec says", state(**FOR_DCGM, packages=DCGM, units=DCGM_RUNS), WITH_DCGM),
    fails("dcgm.config", "3 differences", state(**FOR_DCGM), WITH_DCGM),
    *driver_verdicts.VERDICTS,
    *gate_verdicts.VERDICTS,
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
    wrong = one("driver.match", leading("/x/libcuda.so.535.1.2")).evidence
    assert wrong == f"libcuda.so.1 -> {LIB} is 535.1.2"
    assert STUB not in one("libcuda.stub", h200()).evidence
    assert CONF in one("libcuda.stub", holding("/x/stubs\n", CONF)).evidence


def test_the_fix_for_what_others_own_points_to_them() -> None:
    stale = one("cdi.stale", state({"proc_version": "590.1.2"}, files=SPEC), spec(**IMAGE))
    twice = one("cdi.shadow", state(files={**SPEC, "/etc/cdi/x.yaml": file(H200_CDI)}), spec(**IMAGE))
    old = one("containerd.runtime", containerd(unloaded=(CONFIG,), marks=("k3s",)))
    assert [v.remedy.partition(":")[0] for v in (stale, twice, old)] == ["change it there"] * 3


# --- the recorded machine -------------------------------------------------------------------------------------


def test_the_recorded_machine_passes_what_concerns_driver_and_libcuda() -> None:
    node = h200().model_copy(update={"active": {"cuda": Answer(out="cuInit=0 count=1 version=13000\n")}})
    judged = run_checks(CATALOGUE, spec(hardware={"gpus": 1, "model": "H200"}), node, "n1", active=True, today=TODAY)
    wanted = [j for j in judged if j.check.id.startswith(("driver.", "libcuda.", "gpu."))]
    judged_as = {j.check.id: j.verdict.status for j in wanted}
    # No switch, one GPU, a GPU that remaps rows: what does not concern it. The recording has no kernel log.
    gpu = ("nvlink", "nvlink_errors", "p2p", "python", "torch", "nvswitch", "fabric", "uniform", "retired")
    driver = ("charlinks", "companions", "fabricmanager", "imex", "persistenced", "owner", "packages", "held", "config")
    boot = ("nextboot", "nouveau", "secureboot", "initramfs")
    absent = {f"gpu.{name}" for name in gpu} | {f"driver.{name}" for name in (*driver, *boot)}
    absent |= {"gpu.xid", "gpu.sxid", "libcuda.container", "libcuda.container_triton"}
    assert {id for id, status in judged_as.items() if status == "skip"} == absent
    assert judged_as.pop("driver.floor") == "warn"  # the recorded driver is old
    assert {status for id, status in judged_as.items() if id not in absent} == {"pass"}
    assert len(judged_as) == 50


ONE_WRONG = [
    row
    for row in (*gpu_verdicts.XIDS, *gpu_verdicts.MEMORY, *gpu_verdicts.SWITCHES, *gpu_verdicts.SETTINGS)
    if row[1] in ("warn", "fail")
]


@pytest.mark.parametrize(
    ("id", "status", "node", "blocks", "part"), ONE_WRONG, ids=[f"{v[0]}-{n}" for n, v in enumerate(ONE_WRONG)]
)
def test_one_fault_of_a_gpu_fails_one_check(
    id: str, status: str, node: NodeState, blocks: dict[str, Any], part: str
) -> None:
    found = run_checks(CATALOGUE, spec(**blocks), node, "n1", active=False, today=TODAY)
    concerned = {j.check.id: j.verdict.status for j in found if j.check.id.startswith(("gpu.", "driver."))}
    concerned.pop("gpu.count")  # the spec does not say how many there are
    concerned.pop("driver.floor")  # the recorded driver is old
    assert {each: s for each, s in concerned.items() if s not in ("pass", "skip")} == {id: status}


def test_a_dead_gpu_fails_one_check_only() -> None:
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
def test_a_silent_nvidia_smi_fails_one_check(why: str, root: str, status: str) -> None:
    node = gpu_verdicts.smi("", driver={"smi": Unknown(unknown=why)})
    if root == "driver.match":
        node = node.model_copy(update={"linker": linker(LIB, libs={LIB: "/x/libcuda.so.535.1.2"})})
    judged = run_checks(CATALOGUE, spec(hardware={"nvswitch": True}), node, "n", active=False, today=TODAY)
    found = {j.check.id: j.verdict for j in judged if j.check.id.startswith(("gpu.", "driver."))}
    assert found.pop("driver.floor").status == "warn"  # the recorded driver is old
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
    level = fields.pop("level", Level.config)
    return Check(id, "title", level, "cause.", "confirm", "the fix", lambda *_: verdict, **fields)


def judged(*checks: Check, active: bool = True, **blocks: Any) -> dict[str, Verdict]:
    found = run_checks(checks, spec(**blocks), NodeState(), "gpu01.rack-b", active=active, today=TODAY)
    assert all(isinstance(j, Judged) for j in found)
    return {j.check.id: j.verdict for j in found}


@pytest.mark.parametrize("root", [fail("x"), unknown("x"), passed("x"), warn("x"), skip("x"), None], ids=repr)
def test_a_failure_is_reported_once_at_its_root(root: Verdict | None) -> None:
    effect = made("b.effect", fail("because of a"), after=("a.root",))
    found = judged(*([made("a.root", root)] if root else []), effect)
    hidden = root is not None and root.status in ("fail", "unknown")
    assert found["b.effect"] == (skip("see a.root") if hidden else fail("because of a", "the fix"))
    assert root is None or found["a.root"].status == root.status


def test_active_checks_need_the_second_exec() -> None:
    checks = (made("a.one", passed("x")), made("b.two", passed("x"), active=True))
    assert list(judged(*checks, active=False)) == ["a.one"]
    assert list(judged(*checks, active=True)) == ["a.one", "b.two"]


@pytest.mark.parametrize(
    ("level", "run"),
    [("config", {"config"}), ("effective", {"config", "effective"}), ("smoke", {"config", "effective", "smoke"})],
)
def test_levels(level: str, run: set[str]) -> None:
    checks = [made(f"a.{name}", passed("x"), level=Level[name]) for name in ("config", "effective", "smoke", "fabric")]
    found = judged(*checks, verify={"level": level})
    assert {id.partition(".")[2] for id, verdict in found.items() if verdict.status == "pass"} == run
    assert all(f"verify.level: {level}" in v.summary for v in found.values() if v.status == "skip")


def test_a_long_error_is_shortened_and_kept_whole_as_evidence() -> None:
    found = BY_ID["docker.smoke"].verdict(spec(**SMOKE), state(docker=NVIDIA, active={"smoke": NESTED}))
    assert "debian:13: docker: Error response from daemon: failed to create" in found.summary
    assert found.summary.endswith(CAUSE) and _WHERE not in found.summary and len(found.summary) < 400
    assert found.evidence == str(NESTED["out"]).strip()
    short = BY_ID["docker.smoke"].verdict(spec(**SMOKE), state(docker=NVIDIA, active=answered("smoke", "no", 1)))
    assert short.evidence == ""


def test_a_named_image_asks_for_the_smoke_container() -> None:
    found = judged(made("a.smoke", passed("x"), level=Level.smoke), verify={"image": "debian:13"})
    assert found["a.smoke"].status == "pass"


def test_without_gpus_by_the_spec_gpu_checks_are_skipped() -> None:
    check = made("a.gpu", fail("x"), gpu=True)
    assert judged(check, hardware={"gpus": "none"})["a.gpu"] == skip("hardware.gpus: none")
    assert judged(check, hardware={"gpus": 1})["a.gpu"].status == "fail"


def test_which_checks_are_skipped_without_a_gpu() -> None:
    found = run_checks(CATALOGUE, spec(hardware={"gpus": "none"}), h200(), "n", active=True, today=TODAY)
    skipped = {j.check.id for j in found if j.verdict == skip("hardware.gpus: none")}
    assert skipped == {
        *("driver.loaded", "driver.match", "driver.floor", "driver.nodes", "driver.fabricmanager", "libcuda.init"),
        *(id for id in IDS if id.startswith("gpu.")),
        *(f"driver.{n}" for n in ("firmware", "charlinks", "persistenced", "companions", "peers", "processes", "imex")),
        *("cdi.spec", "cdi.stale", "cdi.shadow", "cdi.podman", "containerd.cdi", "crio.cdi"),
        *("image.compat", "rdma.gdr", "reconverge.last"),
    }


def test_components_that_were_not_chosen_are_not_judged() -> None:
    of = {"docker.x": "docker", "libcuda.x": "ldso", "node.x": ""}
    checks = tuple(made(id, fail("x"), component=name) for id, name in of.items())
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


def test_of_several_waivers_the_valid_one_counts() -> None:
    waivers = [waiver(until="2026-01-01"), waiver(host="gpu02"), waiver(until="2027-01-01", reason="again")]
    found = judged(made("a.x", fail("broken")), verify={"waive": waivers})["a.x"]
    assert found.status == "warn"
    assert "again" in found.summary

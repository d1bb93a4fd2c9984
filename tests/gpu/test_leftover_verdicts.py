"""Verdicts on what an update of the driver leaves behind."""

from typing import Any

from gpuready.model.state import NodeState
from tests.model.probe_answers import DRIVER, h200
from tests.verdicts import Row, fails, held, is_unknown, passes, skips, warns

RUNS = {"module_version": DRIVER, "gpus": ["0000:00:06.0"]}
HOLDER = {"pid": 7, "name": "python3", "cgroup": "/user.slice", "library": "libcuda.so.570.86.15"}
INSIDE = HOLDER | {"pid": 8, "cgroup": f"/system.slice/docker-{'ab' * 32}.scope"}


def node(driver: Any = RUNS, **fields: Any) -> NodeState:
    return NodeState.model_validate({"systemd": True, "driver": driver, **fields})


def left(**fields: Any) -> NodeState:
    return node(leftovers=fields)


def nvidia(active: str, enabled: str = "enabled", **fields: Any) -> NodeState:
    unit = {"load": "loaded", "active": active, "enabled": enabled}
    return node(units={"nvidia-persistenced.service": unit}, **fields)


def packages(**versions: str) -> NodeState:
    found = {name.replace("_", "-"): {"version": version, "arch": "amd64"} for name, version in versions.items()}
    return node(packages=found)


def firmware(runs: str, disk: str = "", files: tuple[str, ...] = ()) -> NodeState:
    said = f"<gpu><gsp_firmware_version>{runs}</gsp_firmware_version></gpu>"
    return node(RUNS | {"smi": said, "on_disk_version": disk}, leftovers={"firmware": files})


NONE = node({})
OF_THE_DRIVER = ("firmware", "charlinks", "persistenced", "companions", "peers", "processes")
SYSTEMD, UNLINKED = {"cgroup_driver": "systemd"}, {"unlinked": ["/dev/nvidia0"]}
READY = RUNS | {"nodes": ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"]}

VERDICTS: list[Row] = [
    skips("devices.config", "no NVIDIA driver is loaded", NONE),
    passes("devices.config", "as the spec says", node(READY)),
    fails("devices.config", "devices.missing", node()),
    warns("driver.nodes", "major number", node(READY, leftovers={"misnumbered": ["/dev/nvidia-uvm"]})),
    *(skips(f"driver.{name}", "no nvidia module", NONE) for name in OF_THE_DRIVER),
    passes("driver.firmware", f"driver and GSP firmware are {DRIVER}", h200()),
    fails("driver.firmware", "but its GPUs run GSP firmware 570.86.15", firmware("570.86.15")),
    skips("driver.firmware", "no GPU runs GSP firmware", firmware("N/A")),
    is_unknown("driver.firmware", "no answer", node(RUNS | {"smi": {"unknown": "no answer"}})),
    warns("driver.firmware", "the next boot loads driver 590.1.2", firmware(DRIVER, "590.1.2", (DRIVER,))),
    passes("driver.firmware", "driver and GSP", firmware(DRIVER, "590.1.2", ("590.1.2",))),
    passes("driver.firmware", "driver and GSP", firmware(DRIVER, "590.1.2")),
    passes("driver.charlinks", "has its link", node(containerd="")),
    warns("driver.charlinks", "1 device node has no link", node(docker=SYSTEMD, leftovers=UNLINKED)),
    skips("driver.charlinks", "lets systemd", node(docker={"cgroup_driver": "cgroupfs"}, leftovers=UNLINKED)),
    passes("driver.persistenced", "is active", nvidia("active")),
    warns("driver.persistenced", "is failed", nvidia("failed")),
    warns("driver.persistenced", "of before the update", nvidia("active", leftovers={"persistenced_old": True})),
    warns("driver.persistenced", "is without its socket", nvidia("active", leftovers={"persistenced_no_socket": True})),
    warns("driver.persistenced", "is failed", nvidia("failed", leftovers={"persistenced_no_socket": True})),
    skips("driver.persistenced", "is disabled", nvidia("inactive", "disabled")),
    skips("driver.persistenced", "not installed", node()),
    is_unknown("driver.persistenced", "no bus", node(units={"unknown": "no bus"})),
    skips("driver.companions", "neither IMEX nor NSCQ", node()),
    passes("driver.companions", "nvidia-imex-580", packages(nvidia_imex_580=f"{DRIVER}-1", nvidia_driver="1")),
    fails("driver.companions", "libnvidia-nscq-580", packages(libnvidia_nscq_580="580.159.041-1")),
    is_unknown("driver.companions", "dpkg hangs", node(packages={"unknown": "dpkg hangs"})),
    passes("driver.peers", "loaded, or not installed", node()),
    warns("driver.peers", "not loaded: gdrdrv", left(peers=["gdrdrv"])),
    passes("driver.processes", "no process uses the libraries", node()),
    warns("driver.processes", "2 processes use the libraries", left(holders=[HOLDER, INSIDE])),
    is_unknown("driver.processes", "no answer", left(unread="holders: no answer")),
]
test_verdict = held(VERDICTS)

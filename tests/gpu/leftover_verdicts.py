"""Rows of test_checks.py for what an update of the driver leaves behind."""

from __future__ import annotations

from typing import Any

from gpuready.state.model import NodeState
from tests.state.probe_answers import DRIVER, h200

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
SYSTEMD, UNLINKED = {"cgroup_driver": "systemd"}, {"unlinked": ["/dev/nvidia0"]}
READY = RUNS | {"nodes": ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"]}

VERDICTS: list[tuple[str, str, NodeState, dict[str, Any], str]] = [
    ("devices.config", "skip", NONE, {}, "no NVIDIA driver is loaded"),
    ("devices.config", "pass", node(READY), {}, "as the spec says"),
    ("devices.config", "fail", node(), {}, "devices.missing"),
    ("driver.nodes", "warn", node(READY, leftovers={"misnumbered": ["/dev/nvidia-uvm"]}), {}, "major number"),
    *((id, "skip", NONE, {}, "no nvidia module") for id in (
        "driver.firmware", "driver.charlinks", "driver.persistenced", "driver.companions", "driver.peers",
        "driver.processes",
    )),
    ("driver.firmware", "pass", h200(), {}, f"driver and GSP firmware are {DRIVER}"),
    ("driver.firmware", "fail", firmware("570.86.15"), {}, "but its GPUs run GSP firmware 570.86.15"),
    ("driver.firmware", "skip", firmware("N/A"), {}, "no GPU runs GSP firmware"),
    ("driver.firmware", "unknown", node(RUNS | {"smi": {"unknown": "no answer"}}), {}, "no answer"),
    ("driver.firmware", "warn", firmware(DRIVER, "590.1.2", (DRIVER,)), {}, "the next boot loads driver 590.1.2"),
    ("driver.firmware", "pass", firmware(DRIVER, "590.1.2", ("590.1.2",)), {}, "driver and GSP"),
    ("driver.firmware", "pass", firmware(DRIVER, "590.1.2"), {}, "driver and GSP"),
    ("driver.charlinks", "pass", node(containerd=""), {}, "has its link"),
    ("driver.charlinks", "warn", node(docker=SYSTEMD, leftovers=UNLINKED), {}, "1 device nodes have no link"),
    ("driver.charlinks", "skip", node(docker={"cgroup_driver": "cgroupfs"}, leftovers=UNLINKED), {}, "lets systemd"),
    ("driver.persistenced", "pass", nvidia("active"), {}, "is active"),
    ("driver.persistenced", "warn", nvidia("failed"), {}, "is failed"),
    ("driver.persistenced", "warn", nvidia("active", leftovers={"persistenced_old": True}), {}, "of before the update"),
    ("driver.persistenced", "skip", nvidia("inactive", "disabled"), {}, "is disabled"),
    ("driver.persistenced", "skip", node(), {}, "not installed"),
    ("driver.persistenced", "unknown", node(units={"unknown": "no bus"}), {}, "no bus"),
    ("driver.companions", "skip", node(), {}, "neither IMEX nor NSCQ"),
    ("driver.companions", "pass", packages(nvidia_imex_580=f"{DRIVER}-1", nvidia_driver="1"), {}, "nvidia-imex-580"),
    ("driver.companions", "fail", packages(libnvidia_nscq_580="580.159.041-1"), {}, "libnvidia-nscq-580"),
    ("driver.companions", "unknown", node(packages={"unknown": "dpkg hangs"}), {}, "dpkg hangs"),
    ("driver.peers", "pass", node(), {}, "loaded, or not installed"),
    ("driver.peers", "warn", left(peers=["gdrdrv"]), {}, "not loaded: gdrdrv"),
    ("driver.processes", "pass", node(), {}, "no process uses the libraries"),
    ("driver.processes", "warn", left(holders=[HOLDER, INSIDE]), {}, "2 processes use the libraries"),
    ("driver.processes", "unknown", left(unread="holders: no answer"), {}, "no answer"),
]  # fmt: skip

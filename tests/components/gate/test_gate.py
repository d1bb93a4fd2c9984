"""The gate: which number of GPUs it contains, and the script itself over a node's files, logs and commands.

The script's absolute paths lead to a directory of the test, whose files are those of a node with two GPUs. What a GPU
says is a recorded nvidia-smi; dmesg and nvidia-smi that hang or fail are shell scripts.
"""

import datetime
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuready.base import resources
from gpuready.catalogue import BY_ID
from gpuready.components.gate.component import SCRIPT, Gate, wanted
from gpuready.contract.check import run_checks
from gpuready.contract.compare import compare
from gpuready.gpu.thresholds import FABRIC_COMPLETE, fatal_xids
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from tests.components.cases import node_of
from tests.gpu import test_gpu_verdicts as gpu_verdicts
from tests.gpu.kernel_logs import LOGS, judged, log_of
from tests.lab import scale
from tests.lab.processes import matching, wait_gone
from tests.node_files import DRIVER, NodeFiles
from tests.system.faults import until

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
LISTED = "00000000:00:00.0, N/A, N/A\n00000000:01:00.0, Completed, Success\n"
QUERY = "--query-gpu=pci.bus_id,fabric.state,fabric.status"
XID = "[   93.1] NVRM: Xid (PCI:0000:05:00): {}\n"


# --- the number of GPUs


def gated(spec: dict[str, Any], *gpus: str, **script: Any) -> tuple[NodeSpec, NodeState]:
    """A node that wants the gate, with these GPUs; ``script``: the fields of the file that is installed."""
    files = {SCRIPT: {"mode": 0o755, **script}} if script else {}
    return node_of("gate", {"gate": True, **spec}, {"module": DRIVER, "driver": {"gpus": gpus}, "files": files})


def test_a_gpu_that_is_gone_is_still_expected() -> None:
    """By default the number is what was seen; a second apply with fewer GPUs must not hide the loss."""
    text = wanted(*gated({}, "0000:01:00.0", "0000:02:00.0"))
    assert "\nGPUS=2\n" in text
    assert compare(Gate(), *gated({}, "0000:01:00.0", text=text)).diff == ()
    for said, number in ((1, 1), ("none", 0)):
        assert f"\nGPUS={number}\n" in wanted(*gated({"hardware": {"gpus": said}}, "0000:01:00.0", text=text))


@pytest.mark.parametrize("changed", [{"mode": 0o644}, {"uid": 1000}])
def test_a_script_that_root_cannot_start_is_a_difference(changed: dict[str, int]) -> None:
    two = {"hardware": {"gpus": 2}}
    (change,) = compare(Gate(), *gated(two, text=wanted(*gated(two)), **changed)).diff
    assert (change.actual, change.expected) == ("not executable", "current")


# --- the script


class Node(NodeFiles):
    """A node that is ready, and the gate on it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.program("nvidia-smi", f"[ $1 = {QUERY} ] && cat {root}/smi")
        self.write("smi", LISTED)
        self.program("dmesg", f"cat {root}/log")
        self.log("[    0.0] Linux\n[    3.2] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64\n")
        self.values: dict[str, object] = {"gpus": 2, "ports": 0, "target": "", "docker": "", "units": "", "limit": 20}

    def log(self, text: str) -> None:
        with (self.root / "log").open("a") as file:
            file.write(text)

    def script(self) -> Path:
        fixed = {"xids": " ".join(map(str, fatal_xids())), "fabric": ",".join(FABRIC_COMPLETE)}
        text = resources.script("gate/verify", **fixed, **self.values)
        return self.write("gpuready-verify", self.below(text))

    def ask(self, *words: str, shell: str = "sh") -> tuple[int, str]:
        """The exit code, and the one line on stdout."""
        done = subprocess.run(
            [shell, self.script(), *words], capture_output=True, text=True, check=False, timeout=scale.seconds(60)
        )
        assert done.stderr == ""
        assert done.stdout.count("\n") <= 1
        assert [p.name for p in (self.root / "run").iterdir() if not p.name.endswith(".lock")] == []
        return done.returncode, done.stdout.removesuffix("\n")


pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the gate is root's")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_node_that_is_ready(node: Node, shell: str) -> None:
    began = os.times()
    assert node.ask(shell=shell) == (0, f"gpuready: ok: GPUs: 2, driver {DRIVER}")
    ended = os.times()
    assert ended.children_user + ended.children_system - began.children_user - began.children_system < 2
    assert node.ask("--slurm", shell=shell) == (0, "")
    assert node.ask("--node-problem-detector", shell=shell) == (0, f"ok: GPUs: 2, driver {DRIVER}")


Break = Callable[[Node], object]
BROKEN: list[tuple[str, Break]] = [
    ("driver.loaded: no nvidia module is loaded", lambda n: (n.root / "proc/driver/nvidia/version").unlink()),
    ("libcuda.ldcache: ldconfig -p does not list libcuda.so.1", lambda n: n.write("cache", "0 libs\n")),
    ("libcuda.ldcache: the cache lists ", lambda n: (n.root / "usr/lib/libcuda.so.1").unlink()),
    (f"driver.match: the module is {DRIVER}, ", lambda n: n.library("libnvidia-ml", "570.1.2")),
    ("libcuda.ldcache: ", lambda n: (n.library("libcuda", "570.1"), n.write(f"usr/lib/libcuda.so.{DRIVER}", ""))),
    ("gpu.xid: Xid 48 of PCI:0000:05:00 in the", lambda n: n.log("NVRM: Xid (PCI:0000:05:00): 48, no printk.time")),
    ("gpu.xid: Xid 79 of 0000:05:00.0 ", lambda n: n.log("[9.1] NVRM: GPU 0000:05:00.0: GPU has fallen off the bus\n")),
    ("gpu.sxid: SXid 24007 of PCI:0000:c3:00.0",
     lambda n: n.log("[9.1] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 30\n")),
    ("gpu.count: 1 of 2 GPUs answer, 0000:00:00.0 does not",
     lambda n: n.write("smi", "00000000:01:00.0, N/A, N/A\nNo devices were found\n")),
    ("gpu.count: 0 of 2 GPUs answer, 0000:00:00.0 does not, 0000:01:00.0 does not", lambda n: n.write("smi", "")),
    ("gpu.fabric: the fabric of GPU 00000000:01:00.0 is: Completed, Unknown Error",
     lambda n: n.write("smi", LISTED.replace("Success", "Unknown Error"))),
    ("gpu.answers: nvidia-smi exits with 15: Unable to determine",
     lambda n: n.program("nvidia-smi", "echo Unable to determine the device handle; exit 15")),
    ("driver.nodes: there is no ", lambda n: (n.root / "dev/nvidia-uvm").unlink()),
    ("driver.nodes: there is no ", lambda n: (n.root / "dev/nvidia1").unlink()),
]  # fmt: skip


@pytest.mark.parametrize(("line", "broken"), BROKEN, ids=[line for line, _ in BROKEN])
def test_a_node_that_is_not_ready(node: Node, line: str, broken: Break) -> None:
    broken(node)
    code, said = node.ask()
    assert (code, said[: len("gpuready: " + line)]) == (1, f"gpuready: {line}")


@pytest.mark.parametrize(("lines", "fatal"), LOGS.values(), ids=LOGS)
def test_a_fatal_xid_for_the_gate_is_one_for_verify(node: Node, lines: list[str], fatal: str) -> None:
    """The names of programs and devices are in the kernel log, too, and whoever has a program can choose one."""
    log = log_of(lines)
    node.log(log)
    code, line = node.ask()
    assert (code, " ".join(line.split()[2:4]) if code else "") == (int(bool(fatal)), fatal)
    assert judged(log) == fatal


#: State and status as nvidia-smi prints them, and what both gate and gpu.fabric make of them.
CELLS = [
    ("Completed", "Success", "pass"),
    ("N/A", "N/A", "skip"),
    ("[N/A]", "[N/A]", "skip"),
    ("[Not Supported]", "[Not Supported]", "skip"),
    ("Not Started", "N/A", "fail"),
    ("In Progress", "N/A", "fail"),
    ("In Progress", "Success", "fail"),
    ("Completed", "N/A", "fail"),
    ("Completed", "Unknown Error", "fail"),
    ("[GPU is lost]", "[GPU is lost]", "fail"),
    ("Completely", "Success", "fail"),
]


@pytest.mark.parametrize(("state", "status", "expected"), CELLS)
def test_the_fabric_of_a_gpu_as_the_check_judges_it(node: Node, state: str, status: str, expected: str) -> None:
    node.write("smi", f"00000000:00:00.0, Completed, Success\n00000000:01:00.0, {state}, {status}\n")
    code, line = node.ask()
    assert code == (expected == "fail")
    said = f"gpu.fabric: the fabric of GPU 00000000:01:00.0 is: {state}, {status}" if code else "ok: GPUs: 2"
    assert line.startswith(f"gpuready: {said}")
    smi = gpu_verdicts.said(("fabric/state", state), ("fabric/status", status))
    # In verify, gpu.answers fails for a cell that nvidia-smi could not read.
    asked = (BY_ID["gpu.answers"], BY_ID["gpu.fabric"])
    judged = run_checks(asked, NodeSpec(), smi, "n", active=False, today=datetime.date(2026, 11, 24))
    answers, fabric = (each.verdict.status for each in judged)
    assert (fabric if answers == "pass" else answers) == expected


def test_a_driver_that_does_not_know_the_fabric(node: Node) -> None:
    """The answer of an older nvidia-smi to an unknown field: CoHDI/composable-resource-operator#37."""
    no = 'echo "Field \\"fabric.state\\" is not a valid field to query."; echo; exit 2'
    knows = f"[ $1 = --query-gpu=pci.bus_id ] && exec cut -d, -f1 {node.root}/smi"
    node.program("nvidia-smi", f"{knows}\n{no}")
    assert node.ask() == (0, f"gpuready: ok: GPUs: 2, driver {DRIVER}")
    node.write("smi", "00000000:01:00.0\n")
    assert node.ask() == (1, "gpuready: gpu.count: 1 of 2 GPUs answer, 0000:00:00.0 does not")
    node.program("nvidia-smi", no)
    assert node.ask()[1].startswith("gpuready: gpu.answers: nvidia-smi exits with 2: Field ")


def test_the_services_of_the_fabric(node: Node) -> None:
    """Up to Ampere, only the service shows that the fabric manager is down (NVIDIA/NVSentinel#883)."""
    node.values["units"] = "nvidia-fabricmanager.service other.service"
    node.program("systemctl", f"[ $1 = is-active ] && cat {node.root}/$2")
    node.write("nvidia-fabricmanager.service", "active\n")
    node.write("other.service", "active\n")
    assert node.ask()[0] == 0
    node.write("other.service", "failed\n")
    assert node.ask() == (1, "gpuready: gpu.fabric: other.service is failed")
    (node.root / "nvidia-fabricmanager.service").unlink()
    assert node.ask() == (1, "gpuready: gpu.fabric: nvidia-fabricmanager.service is unknown to systemd")


def test_it_starts_nvidia_smi_once(node: Node) -> None:
    """It runs before each job. The fabric costs no process on a node without NVSwitch."""
    node.program("nvidia-smi", f"echo >>{node.root}/calls; cat {node.root}/smi")
    node.program("systemctl", f"echo >>{node.root}/calls")
    assert node.ask()[0] == 0
    assert (node.root / "calls").read_text() == "\n"


def test_what_a_device_says_is_one_plain_line(node: Node) -> None:
    node.program(
        "nvidia-smi", "printf '\\033[31mred\\t$(reboot) \"quoted\" `x` \\377%s'; head -c 99999 /dev/zero; exit 9"
    )
    code, line = node.ask()
    assert (code, line[:72]) == (1, 'gpuready: gpu.answers: nvidia-smi exits with 9: [31mred $(reboot) "quote')
    assert line.isascii() and line.isprintable() and len(line) < 450
    code, line = node.ask("--slurm")
    assert code == 1 and not {'"', "'", "\\"} & set(line) and len(line) < 250
    code, line = node.ask("--node-problem-detector")
    assert code == 1 and len(line) <= 80 and line.startswith("gpu.answers: nvidia-smi")


def test_a_long_log_costs_little(node: Node) -> None:
    node.log((XID.format("31, " + "x" * 900) * 9000) + XID.format("79, the last"))
    began = time.monotonic()
    assert node.ask()[1].startswith("gpuready: gpu.xid: Xid 79")
    assert time.monotonic() - began < scale.seconds(2)


#: Seconds of sleep that no other run of the tests asks for.
HANGS = str(86400 + os.getpid())


def hanging(node: Node) -> list[int]:
    return matching(lambda argv: argv == ["sleep", HANGS])


@pytest.fixture
def sleepers(node: Node) -> Iterator[None]:
    yield
    for pid in hanging(node):
        os.kill(pid, 9)


@pytest.mark.fault("process-in-d")
@pytest.mark.parametrize("shell", SHELLS)
def test_nvidia_smi_that_hangs_is_a_failure_and_is_left(node: Node, sleepers: None, shell: str) -> None:
    limit = node.values["limit"] = round(scale.seconds(3))
    node.program("nvidia-smi", f"trap '' TERM HUP INT; exec sleep {HANGS}")
    assert node.ask(shell=shell) == (1, f"gpuready: gpu.answers: nvidia-smi did not answer within {limit * 3 // 4} s")
    wait_gone(hanging(node), 5)


def test_one_that_survives_sigkill_gets_no_second_one(node: Node, sleepers: None) -> None:
    """In state D it keeps the lock; here another process keeps it as such a one would."""
    node.values["limit"] = round(scale.seconds(6))
    holder = subprocess.Popen(["flock", node.root / "run/gpuready-verify.lock", "sleep", HANGS])
    try:
        until(lambda: hanging(node), 10)
        assert node.ask() == (1, "gpuready: gpu.answers: an earlier nvidia-smi still hangs")
    finally:
        for pid in hanging(node):
            os.kill(pid, 9)
        holder.wait()
    assert node.ask()[0] == 0


def test_whatever_hangs_is_named(node: Node, sleepers: None) -> None:
    limit = node.values["limit"] = round(scale.seconds(5))
    node.program("dmesg", f"exec sleep {HANGS}")
    assert node.ask() == (1, f"gpuready: gpu.xid: no answer within {limit} s")
    wait_gone(hanging(node), 5)


def test_unknown_is_not_ready(node: Node) -> None:
    node.program("dmesg", "exit 1")
    line = "gpu.xid: the kernel log cannot be read (dmesg)"
    assert node.ask() == (1, f"gpuready: {line}")
    assert node.ask("--node-problem-detector") == (2, line)


def test_a_driver_that_the_platform_mounts(node: Node) -> None:
    mounted = node.root / "usr/local/nvidia/bin"
    mounted.mkdir(parents=True)
    (node.root / "bin/nvidia-smi").rename(mounted / "nvidia-smi")
    assert node.ask()[0] == 0
    (mounted / "nvidia-smi").unlink()
    assert node.ask("--node-problem-detector") == (2, "gpu.answers: nvidia-smi is not in the PATH of root")


def test_the_cdi_spec(node: Node) -> None:
    node.program("nvidia-ctk", "true")
    spec = node.root / "var/lib/nvidia.yaml"
    node.values["target"] = str(spec)
    assert node.ask()[1] == f"gpuready: cdi.spec: there is no {spec}"
    library = f"{node.root}/usr/lib/libcuda.so.{DRIVER}"
    node.write("var/lib/nvidia.yaml", f"mounts:\n- hostPath: {library}\n")
    assert node.ask()[0] == 0
    node.write("var/lib/nvidia.yaml", "mounts:\n- hostPath: /usr/lib/libcuda.so.570.1.2\n")
    assert node.ask()[1].startswith(f"gpuready: cdi.stale: {spec} is for driver 570.1.2")
    assert len(node.ask("--node-problem-detector")[1]) == 80
    node.write("var/lib/nvidia.yaml", f"mounts:\n- hostPath: {node.root}/gone\n")
    assert node.ask()[1].startswith(f"gpuready: cdi.stale: {spec} names {node.root}/gone")


def test_the_engines(node: Node) -> None:
    node.values |= {"docker": "1", "gpus": 0}
    assert node.ask() == (0, "gpuready: ok: no GPUs are expected"), "there is no dockerd"
    node.program("dockerd", "true")
    assert node.ask()[1].startswith("gpuready: docker.config: ")
    node.write("etc/docker/daemon.json", '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}')
    assert node.ask()[0] == 0
    config = node.write("etc/containerd/config.toml", "[plugins.cri.containerd.runtimes.nvidia]\n")
    node.write("var/lib/gpuready/containerd.ours", f'{{"{config}": {{"containerd.runtimes.nvidia.x": ["/a"]}}}}')
    assert node.ask()[0] == 0
    config.write_text("version = 2\n")
    assert node.ask() == (1, f"gpuready: containerd.config: {config} does not name the runtime nvidia any more")


def test_rdma_ports(node: Node) -> None:
    node.values |= {"ports": 2, "gpus": 0}
    for n, state in enumerate(["4: ACTIVE", "5: ACTIVE_DEFER", "1: DOWN"]):
        node.write(f"sys/class/infiniband/mlx5_{n}/ports/1/state", f"{state}\n")
        node.write(f"sys/class/infiniband_verbs/uverbs{n}/ibdev", f"mlx5_{n}\n")
    assert node.ask() == (1, "gpuready: rdma.ports: 1 of 2 RDMA ports are active")
    node.write("sys/class/infiniband_verbs/uverbs9/ibdev", "mlx5_9\n")  # a container has it (mode exclusive)
    assert node.ask()[0] == 0


@pytest.mark.parametrize("words", [["--help"], ["--slurm", "x"], [""], ["--", "--slurm"]])
def test_other_words_print_the_usage(node: Node, words: list[str]) -> None:
    done = subprocess.run(["sh", node.script(), *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("usage: ")

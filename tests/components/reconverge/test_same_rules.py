"""What a driver update leaves stale, as the run on the node itself finds it and as verify judges it, from one table.

Both read the same files: the run with its shell functions, verify with the probe, its parser and the checks.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.base.records import unmarked
from gpuready.catalogue import BY_ID
from gpuready.contract.check import run_checks
from gpuready.model import probe
from gpuready.model.parse import parse
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from tests.lab import scale
from tests.node_files import CACHE, DRIVER, NodeFiles

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the run on the node itself is root's")
RULES = ("libcuda.ldcache", "driver.match", "cdi.spec", "cdi.stale", "driver.nodes", "driver.charlinks",
         "driver.persistenced", "driver.processes")  # fmt: skip
SPEC = "var/run/cdi/nvidia.yaml"
OLD = "570.1.2"
PERSISTENCED = "Id=nvidia-persistenced.service\nLoadState=loaded\nActiveState={}\nUnitFileState=enabled"


class Node(NodeFiles):
    """A node with systemd, containerd and a CDI spec, after an update that left nothing behind."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        (root / "run/systemd/system").mkdir(parents=True)
        (root / "var/lib/gpuready").mkdir(parents=True)
        (root / "dev/char").mkdir()
        (root / "dev/char/0:0").symlink_to("/dev/null")  # the number of the links to it
        (root / "run/nvidia-persistenced").mkdir()
        self.program("nvidia-ctk", "echo NVIDIA Container Toolkit CLI version 1.20.1")
        self.program("containerd", "echo version = 2")
        self.program("systemctl", f"cat {root}/units")
        self.write("units", "")
        self.spec("/usr/lib/libcuda.so." + DRIVER)

    def spec(self, *paths: str) -> None:
        """Write a CDI spec that mounts these files of the node."""
        mounts = "".join(f"  - {{hostPath: {self.root}{path}, containerPath: {path}}}\n" for path in paths)
        devices = "devices:\n- {name: '0', containerEdits: {}}\n"
        self.write(SPEC, f"cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n{devices}containerEdits:\n  mounts:\n{mounts}")

    def persistenced(self, active: str, program: Path) -> None:
        """The service, whose process is this one, and the program that its package has now."""
        self.write("units", PERSISTENCED.format(active) + "\n")
        self.write("run/nvidia-persistenced/nvidia-persistenced.pid", f"{os.getpid()}\n")
        (self.root / "usr/bin").mkdir()
        with socket.socket(socket.AF_UNIX) as listener:
            os.chdir(self.root / "run/nvidia-persistenced")  # the path of a socket may have 107 bytes
            listener.bind("socket")
        (self.root / "usr/bin/nvidia-persistenced").symlink_to(program)

    def process(self, *mapped: str) -> None:
        """A process, with the files that it has mapped."""
        self.write("proc/77/maps", "".join(f"7f00 r-xp 0000 08:01 1 {path}\n" for path in mapped))
        self.write("proc/77/cgroup", "0::/user.slice\n")
        self.write("proc/77/comm", "python3\n")

    def run(self, script: str, *words: str) -> str:
        done = subprocess.run(
            ["sh", self.write("script", self.below(script)), *words],
            capture_output=True, text=True, check=False, timeout=scale.seconds(60),
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def found(self) -> set[str]:
        """What the run on the node itself finds, which only reports."""
        script = resources.script(
            "reconverge/reconverge", mode="report", directory="", target=f"/{SPEC}", unit="", settings="", make="1",
            shadows=(),
        )  # fmt: skip
        self.run(script, "now")
        return {
            row["check"] for row in json.loads((self.root / "var/lib/gpuready/reconverge.json").read_text())["left"]
        }

    def judged(self) -> set[str]:
        """What verify does not let pass."""
        text = parse(unmarked(self.run(probe.script()))).model_dump_json()
        state = NodeState.model_validate_json(text.replace(str(self.root), ""))
        rules = tuple(BY_ID[rule] for rule in RULES)
        results = run_checks(rules, NodeSpec(), state, "n", active=False, today=date(2026, 11, 24))
        return {result.check.id for result in results if result.verdict.status not in ("pass", "skip")}


def beside(node: Node, name: str) -> None:
    """The link of a library leads to the last version, and the present one lies beside it."""
    node.library(name, OLD)
    node.write(f"usr/lib/{name}.so.{DRIVER}", "")


def another_libcuda(node: Node) -> None:
    node.library("libcuda", OLD)
    node.spec(f"/usr/lib/libnvidia-ml.so.{DRIVER}")


def unlink(path: str) -> Callable[[Node], None]:
    return lambda node: (node.root / path).unlink()


#: Rule, case -> how the node differs, and what both find.
CASES: dict[str, tuple[Callable[[Node], object], set[str]]] = {
    "nothing is stale": (lambda n: None, set()),
    "ldcache: not listed": (lambda n: n.write("cache", "0 libs\n"), {"libcuda.ldcache"}),
    "ldcache: a library that is gone": (unlink("usr/lib/libcuda.so.1"), {"libcuda.ldcache"}),
    "ldcache: NVML that is gone": (unlink("usr/lib/libnvidia-ml.so.1"), {"libcuda.ldcache"}),
    "ldcache: the last version, this one lies beside": (lambda n: beside(n, "libcuda"), {"libcuda.ldcache"}),
    "ldcache: NVML of the last version, this one lies beside": (
        lambda n: beside(n, "libnvidia-ml"),
        {"libcuda.ldcache"},
    ),
    "ldcache: so in a directory that ld.so.conf does not name, as /usr/lib64 of RHEL": (
        lambda n: (n.write("etc/ld.so.conf", ""), beside(n, "libcuda")),
        {"libcuda.ldcache"},
    ),
    "ldcache: the second entry is gone": (
        lambda n: n.write("cache", CACHE.format(n.root) + "\tlibcuda.so.1 (libc6,x86-64) => /gone/libcuda.so.1\n"),
        {"libcuda.ldcache"},
    ),
    "ldcache: a 32-bit library is gone": (
        lambda n: n.write("cache", "\tlibcuda.so.1 (libc6) => /gone/libcuda.so.1\n" + CACHE.format(n.root)),
        set(),
    ),
    "match: another NVML": (lambda n: n.library("libnvidia-ml", OLD), {"driver.match"}),
    "cdi: no spec": (unlink(SPEC), {"cdi.spec"}),
    "cdi: an empty spec": (lambda n: n.write(SPEC, ""), {"cdi.spec"}),
    "cdi: of another driver": (
        lambda n: (n.write(f"usr/lib/libcuda.so.{OLD}", ""), n.spec(f"/usr/lib/libcuda.so.{OLD}")),
        {"cdi.stale"},
    ),
    "cdi: firmware of another driver": (
        lambda n: (n.write(f"lib/firmware/nvidia/{OLD}/gsp.bin", ""), n.spec(f"/lib/firmware/nvidia/{OLD}/gsp.bin")),
        {"cdi.stale"},
    ),
    "cdi: a library with a version of its own": (
        lambda n: (
            n.write("usr/lib/libnvidia-egl-wayland.so.1.1.13", ""),
            n.spec("/usr/lib/libnvidia-egl-wayland.so.1.1.13"),
        ),
        set(),
    ),
    "cdi: a file that is gone": (lambda n: n.spec("/usr/lib/gone.so"), {"cdi.stale"}),
    "nodes: no nvidia-uvm": (unlink("dev/nvidia-uvm"), {"driver.nodes"}),
    "nodes: one GPU's": (unlink("dev/nvidia1"), {"driver.nodes"}),
    "nodes: numbers with a gap": (lambda n: (unlink("dev/nvidia1")(n), n.node("nvidia7")), set()),
    "nodes: another number": (lambda n: n.write("proc/devices", "507 nvidia-uvm\n"), {"driver.nodes"}),
    "charlinks: none": (unlink("dev/char/0:0"), {"driver.charlinks"}),
    "charlinks: no /dev/char": (lambda n: shutil.rmtree(n.root / "dev/char"), set()),
    "persistenced: runs": (lambda n: n.persistenced("active", Path(sys.executable)), set()),
    "persistenced: from before the update": (
        lambda n: n.persistenced("active", Path("/bin/true")),
        {"driver.persistenced"},
    ),
    "processes: with the present library": (lambda n: n.process(f"/usr/lib/libcuda.so.{DRIVER}"), set()),
    "processes: with a deleted library": (
        lambda n: n.process("/bin/python3", f"/usr/lib/libcuda.so.{OLD} (deleted)"),
        {"driver.processes"},
    ),
    "processes: with a deleted library of another": (lambda n: n.process("/usr/lib/libcudart.so.12 (deleted)"), set()),
}
#: Where they differ on purpose: what the run finds, what verify does not let pass, and why.
APART: dict[str, tuple[Callable[[Node], object], set[str], set[str]]] = {
    # verify also says that the first libcuda in the cache does not fit: an entry of ldso may put another one first.
    "another libcuda": (another_libcuda, {"driver.match"}, {"driver.match", "libcuda.ldcache"}),
    # The run looks for what an update leaves running; verify also for what it stopped.
    "persistenced: stopped": (
        lambda n: n.persistenced("failed", Path(sys.executable)), set(), {"driver.persistenced"}),
    # The run needs nvidia-ctk to make links and a spec.
    "charlinks: no nvidia-ctk": (
        lambda n: (unlink("dev/char/0:0")(n), unlink("bin/nvidia-ctk")(n)), set(), {"driver.charlinks"}),
    # Without an engine nothing needs the links; in mode mend, the run makes them at each boot nevertheless.
    "charlinks: no engine": (
        lambda n: (unlink("dev/char/0:0")(n), unlink("bin/containerd")(n)), {"driver.charlinks"}, set()),
}  # fmt: skip


@pytest.mark.parametrize(
    ("differs", "run", "verify"),
    [*((differs, stale, stale) for differs, stale in CASES.values()), *APART.values()], ids=[*CASES, *APART],
)  # fmt: skip
def test_the_run_on_the_node_finds_what_verify_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, differs: Callable[[Node], object], run: set[str], verify: set[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    node = Node(tmp_path)
    differs(node)
    assert (node.found(), node.judged()) == (run, verify)

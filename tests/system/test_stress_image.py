"""``verify --level stress`` in a container of ``verify.image``: real Docker, real CDI, real signals, and no GPU.

The image has a real Python. Its torch is a stand-in that answers with what two H200 printed (tests/data/stress/torch);
the machine's nvidia-smi prints their recorded rows.
"""

import json
import shlex
import shutil
import signal
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuready.base import resources
from gpuready.base.records import Records
from gpuready.base.records import unmarked as records
from gpuready.gpu.stress import node
from tests.lab import module, scale
from tests.system.faults import until
from tests.system.harness import Result
from tests.system.host import Host, Hosts

DATA = Path(__file__).parents[1] / "data/stress"
SECOND = "GPU 1 (GPU-00000000-0000-4000-8000-000000000002, 0000:00:07.0)"
CDI = """cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- {name: all, containerEdits: {env: [LAB_GPUS=all]}}
"""
SMI = "#!/bin/sh\ncase $* in *compute-apps*) cat /run/working ;; *--query-gpu=index*) cat /etc/cards.csv ;; esac\n"
#: Images of one root: the recorded answers; a torch without CUDA; one that hangs; and none.
_IMPORT = """
tar -C /var/lib/image -c . >/var/tmp/image.tar
for kind in plain slow cpu hang; do
  docker import -c 'ENV PYTHONPATH=/recorded' -c "ENV STAND_IN=$kind" -c 'VOLUME /data' \
    /var/tmp/image.tar "trainer:$kind" >/dev/null
done
docker import /var/tmp/image.tar trainer:bare >/dev/null
rm -r /var/tmp/image.tar /var/lib/image
"""
_SCRIPT = "/var/tmp/stress.sh"
#: The script with its stdin open, and the leader of a process group, as under a session.
_RUN = f"rm -f /run/stdin; mkfifo /run/stdin; exec 8<>/run/stdin; setsid -w sh {_SCRIPT} <&8"

_BEGIN = f"systemd-run -q --collect --unit=stress sh -c {shlex.quote(_RUN)}"
#: A program that only SIGKILL ends.
_STUBBORN = """import signal, time
for number in (signal.SIGTERM, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)
while True: time.sleep(60)
"""


def image(root: Path) -> None:
    """A root with this machine's Python, the libraries that it needs, and the stand-in for torch."""
    python = Path(sysconfig.get_config_var("BINDIR")) / f"python{sysconfig.get_python_version()}"
    library = Path(sysconfig.get_path("stdlib"))
    leave = shutil.ignore_patterns("test", "*-packages", "__pycache__", "idlelib", "config-*", "ensurepip", "*.a")
    shutil.copytree(library, root / str(library).lstrip("/"), ignore=leave)
    programs = [str(python), *map(str, (library / "lib-dynload").glob("*.so"))]
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    needed = {word for line in listed.splitlines() for word in line.split() if word.startswith("/") and ":" not in word}
    for path in {*needed, str(python)}:
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    (root / "bin").mkdir(exist_ok=True)
    (root / "bin/python3").symlink_to(python)
    shutil.copytree(DATA / "torch", root / "recorded/torch")
    for name in ("plain", "slow"):
        shutil.copy2(DATA / f"{name}.json", root / "recorded/torch")


@dataclass(frozen=True)
class Trainer:
    """A machine whose Docker has the images, and whose driver seems to be loaded."""

    machine: Host

    def verify(self, tag: str, **verify: str) -> Result:
        spec = {"image": tag, **verify}
        return self.machine.verify("--level", "stress", "--seconds", "1", verify=spec, code=None)

    def script(self, limit: int, program: str) -> None:
        """Store the script with that program, for an image whose torch hangs."""
        text = resources.script(
            "stress/stress", torch="", image="trainer:hang", ask=("-e", "NVIDIA_VISIBLE_DEVICES=all"), limit=limit,
            program=program, seconds=1, node="", ignore=(),
        )  # fmt: skip
        self.machine.run(f"cat >{_SCRIPT}", stdin=text)

    def containers(self) -> list[str]:
        return self.machine.run("docker ps --format '{{.Names}}'").stdout.split()

    def loaded(self, processes: int = 3) -> None:
        """Wait until the container has its processes: one for each GPU, and the one that directs them."""
        count = "docker top $(docker ps -q) -eo pid 2>/dev/null | tail -n +2 | wc -l"
        until(lambda: int(self.machine.run(count).stdout) == processes, 60)

    def left(self) -> str:
        """What a load left: containers, volumes, processes, files."""
        script = (
            "docker ps -aq; docker volume ls -q; pgrep -ax docker; ls -d /run/gpuready-* /tmp/gpuready-* 2>/dev/null"
        )
        return self.machine.run(script, check=False).stdout

    def gone(self) -> None:
        until(lambda: not self.left(), 60, self.left())


@pytest.fixture(scope="module", params=["debian13", "debian12"])
def trainer(request: pytest.FixtureRequest, shared: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    root = tmp_path_factory.mktemp("image")
    image(root)
    machine = shared(request.param)
    machine.apply(toolkit={"mode": "cdi"})
    machine.put(root, "/var/lib/image")
    machine.script("/usr/local/bin/nvidia-smi", SMI)
    machine.run("mkdir -p /etc/cdi; cat >/etc/cdi/nvidia.yaml", stdin=CDI)
    machine.put(DATA / "cards.csv", "/etc/cards.csv")
    machine.run(f"set -e; touch /run/working\n{_IMPORT}")
    module.load(machine, "580.159.04")
    return Trainer(machine.with_spec(hardware={"gpus": 2}))


def stress(result: Result) -> dict[str, dict[str, Any]]:
    return {check["id"]: check for check in result.host()["checks"] if check["id"].startswith("stress.")}


def test_the_figures_of_a_container_are_judged_and_a_slow_gpu_is_named(trainer: Trainer) -> None:
    plain = trainer.verify("trainer:plain")
    checks = stress(plain)
    assert {check["status"] for check in checks.values()} == {"pass"}, plain.explain()
    recorded = json.loads((DATA / "plain.json").read_text("utf-8"))["gpus"][1]["products"]["bf16"]["median"]
    assert plain.host()["stress"][1]["figures"]["bf16"]["median"] == recorded
    assert "torch 2.11.0+cu130, CUDA 13.0, NCCL 2.28.9" in checks["stress.run"]["summary"]
    slow = stress(trainer.verify("trainer:slow"))
    assert slow["stress.run"]["status"] == "pass" and slow["stress.memory"]["status"] == "fail"
    assert slow["stress.memory"]["summary"].startswith(f"{SECOND}: memory 1878 GB/s, limit 3120")
    assert not trainer.left()


def test_an_image_that_cannot_load_a_gpu_is_unknown_with_a_fix(trainer: Trainer) -> None:
    cases = {
        "trainer:bare": "no usable PyTorch in the image trainer:bare: ModuleNotFoundError: No module named 'torch'",
        "trainer:cpu": "no usable PyTorch in the image trainer:cpu: torch 2.11.0+cu130 is built without CUDA",
        "busybox:lab": "there is no python3 in the image busybox:lab",
        "trainer:none": "the image trainer:none is not on the node, and it is not pulled unasked",
    }
    fixes = {"trainer:none": "docker pull trainer:none"}
    for tag, says in cases.items():
        result = trainer.verify(tag)
        checks = stress(result)
        run = checks.pop("stress.run")
        assert (run["status"], run["summary"], result.code) == ("unknown", says, 3), result.explain()
        assert {check["status"] for check in checks.values()} == {"skip"}
        assert fixes.get(tag, "or set verify.torch") in run["remedy"]
        assert not trainer.left()


def test_an_error_of_docker_is_reported(trainer: Trainer) -> None:
    spec = "/etc/cdi/nvidia.yaml"
    trainer.machine.run(f"mv {spec} /root/")
    run = stress(trainer.verify("trainer:plain"))["stress.run"]
    trainer.machine.run(f"mv /root/nvidia.yaml {spec}")
    assert run["status"] == "unknown", run
    assert run["summary"].startswith("Docker did not start the image trainer:plain: "), run
    assert "nvidia.com/gpu" in run["summary"]
    assert "docker.smoke" in run["remedy"] and not trainer.left()


def test_a_busy_node_and_verify_torch_get_no_container(trainer: Trainer) -> None:
    began = trainer.machine.run("date +%s.%N; systemd-run -q --unit=working sleep 1000").stdout.strip()
    trainer.machine.run("systemctl show -p MainPID --value working >/run/working")
    busy = stress(trainer.verify("trainer:plain"))["stress.run"]
    assert busy["status"] == "unknown" and "in use by process sleep (pid " in busy["summary"]
    trainer.machine.run("systemctl stop working; : >/run/working")
    own = stress(trainer.verify("trainer:plain", torch="/opt/none/bin/python"))["stress.run"]
    assert own["summary"].startswith("there is no /opt/none/bin/python on this node")
    events = f"docker events --since {began} --until $(date +%s) --filter event=create"
    assert "gpuready-stress" not in trainer.machine.run(events).stdout


@pytest.mark.fault("stress-cut")
def test_a_cut_connection_and_ctrl_c_leave_no_container(trainer: Trainer) -> None:
    def cut(process: subprocess.Popen[str]) -> None:
        trainer.machine.run("pkill -KILL -f '^sshd[^ ]*: gpu'")

    for end in (cut, lambda process: process.send_signal(signal.SIGINT)):
        process = trainer.machine.begin("verify", "--level", "stress", verify={"image": "trainer:hang"})
        trainer.loaded()
        (name,) = trainer.containers()
        assert name.startswith("gpuready-stress-") and len(name) == len("gpuready-stress-") + 16
        end(process)
        trainer.machine.gpuready.finish(process, check_json=False)
        trainer.gone()


@pytest.mark.fault("stress-cut")
def test_signals_that_come_often_leave_no_container(trainer: Trainer) -> None:
    trainer.script(600, _STUBBORN)
    trainer.machine.run(_BEGIN)
    trainer.loaded(processes=1)
    # To the whole group, again and again, for as long as it exists.
    trainer.machine.run(
        f"g=$(pgrep -of 'sh {_SCRIPT}$'); for _ in $(seq 3000); do kill -TERM -- -$g || break; sleep 0.02; done"
    )
    trainer.gone()


def test_the_load_ends_at_its_limit(trainer: Trainer) -> None:
    trainer.script(5, _STUBBORN)
    found = Records(records(trainer.machine.run(_RUN).stdout)).runs
    assert node(found).unknown == "the program did not finish: no answer in time"
    assert not trainer.left()


def test_the_container_ends_at_its_limit_even_if_all_else_is_killed(trainer: Trainer) -> None:
    trainer.script(round(scale.seconds(20)), resources.document("stress/stress.py"))
    trainer.machine.run(_BEGIN)
    trainer.loaded()
    trainer.machine.run("systemctl kill --signal=KILL stress")
    assert len(trainer.containers()) == 1  # nobody is left but its own alarm
    until(lambda: not trainer.machine.run("docker ps -aq; docker volume ls -q").stdout, 60)
    trainer.machine.run("rm -rf /run/gpuready-stress.*")

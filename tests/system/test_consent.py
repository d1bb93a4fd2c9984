"""Consent on a real node: what waits, what is asked again just before it is done, and work that is moved away first.

The disturbance is the toolkit's: class recreate, because its package scripts reload systemd. crictl is a
stand-in; docker, dpkg and the processes are real. Slurm: test_slurm.py. Kubernetes: tests/kubernetes.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab
from tests.system.faults import Terminal, until
from tests.system.harness import Gpuready, Inventories, Result
from tests.system.host import Host

VERSIONS = ("1.19.1", "1.20.1")
TRAIN = "docker run -d --restart=no --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=void --name {} busybox:lab sleep 100000"
BOOK = "/var/tmp/drain"


class Node(Host):
    """A machine with one version of the toolkit and Docker converged, and runs that ask for the other."""

    version = VERSIONS[0]

    @property
    def other(self) -> str:
        """The version that is asked for."""
        return VERSIONS[1 - VERSIONS.index(self.version)]

    def wanted(self, **maintenance: object) -> Path:
        return self.where(toolkit={"version": self.other}, maintenance=maintenance)

    def ask(self, *args: str, env: dict[str, str] | None = None, **maintenance: object) -> Result:
        return self.call("apply", *args, inventory=self.wanted(**maintenance), env=env or {}, code=None)

    def toolkit(self) -> str:
        """The version that answers."""
        return self.sh("nvidia-ctk --version | sed -n 's/.* //;1p'").strip()

    def train(self, name: str = "train") -> str:
        """A container that holds a GPU, as far as anybody can tell; its pid."""
        self.sh(TRAIN.format(name))
        return self.sh(f"docker inspect -f '{{{{.State.Pid}}}}' {name}").strip()

    def waited(self, result: Result, *words: str) -> str:
        """The run waited, nothing was installed, and it says for what."""
        assert result.code == 7, result.explain()
        component = result.component("toolkit")
        assert component["pending"], result.explain()
        assert all(word in component["pending_reason"] for word in words), component["pending_reason"]
        assert self.toolkit() == self.version
        return str(component["pending_reason"])

    def done(self, result: Result) -> None:
        """The run did it."""
        assert (result.code, result.host()["outcome"]) == (0, "changed"), result.explain()
        self.version = self.other
        assert self.toolkit() == self.version

    def command(self, name: str, body: str) -> None:
        """A command on the machine."""
        self.script(f"/usr/local/bin/{name}", f"#!/bin/sh\n{body}\n")

    def book(self) -> list[str]:
        """What the hooks wrote down since the last look."""
        return self.sh(f"[ ! -e {BOOK} ] || cat {BOOK}; rm -f {BOOK}").splitlines()


@pytest.fixture(scope="module")
def converged(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Node]:
    with lab.machine("debian13") as machine:
        found = Node(machine, gpuready, inventory)
        found.apply(toolkit={"version": found.version})
        yield found


@pytest.fixture
def node(converged: Node) -> Iterator[Node]:
    """As it was at the beginning, whatever the test does to it."""
    yield converged
    converged.sh(
        "docker ps -aq | xargs -r docker rm -f >/dev/null\n"
        f"rm -rf /usr/local/bin/* {BOOK}* /etc/apt/apt.conf.d/99test /run/crictl\n"
        "umount /proc/driver 2>/dev/null && rm /dev/nvidia0 && systemctl stop watcher\n"
        "pkill -x kubelet || true"
    )
    assert converged.toolkit() == converged.version


@pytest.mark.promise
def test_a_container_with_a_gpu_is_named_and_waited_for(node: Node) -> None:
    pid = node.train()
    plan = node.plan(inventory=node.wanted())
    found = plan.component("toolkit")
    assert (found["disruption"], found["affected"]) == ("recreate", ["train (busybox:lab)"]), plan.explain()
    assert found["pending_reason"].startswith(
        "until idle: this change (class recreate) would affect train (busybox:lab)"
    ), plan.explain()
    shown = node.shown("plan", inventory=node.wanted())
    assert "impact:  recreate: " in shown and "affects: train (busybox:lab)" in shown and "waiting: until idle" in shown
    node.waited(node.ask(), "train (busybox:lab)")
    assert node.sh("docker inspect -f '{{.State.Running}} {{.State.Pid}}' train").split() == ["true", pid]
    node.waited(node.ask("--allow-disruption", "reload"), "use --allow-disruption recreate")
    node.done(node.ask(ignore=["busybox"]))


def test_a_container_that_appears_after_the_probe_counts(node: Node) -> None:
    """It starts while the packages are fetched; it stands in no plan, and is seen all the same."""
    (node.root / "etc/apt/apt.conf.d/99test").write_text(
        f'APT::Update::Pre-Invoke {{"docker inspect late >/dev/null 2>&1 || {TRAIN.format("late")} >/dev/null";}};\n'
    )
    assert not node.plan(inventory=node.wanted()).component("toolkit")["affected"]
    node.waited(node.ask(), "until idle", "container late (busybox:lab)")
    assert node.sh("docker inspect -f '{{.State.Running}}' late").strip() == "true"


DRIVER = """
mount -t tmpfs tmpfs /proc/driver
mkdir /proc/driver/nvidia
echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Mon Jan  1 2026' >/proc/driver/nvidia/version
touch /dev/nvidia0
cp /bin/sleep /usr/local/bin/nvidia-persistenced
systemd-run -q --unit=watcher --property=StandardInput=file:/dev/nvidia0 /usr/local/bin/nvidia-persistenced 1000
docker run -d --name job busybox:lab sleep 100000 >/dev/null
"""


def test_processes_on_a_gpu_count(node: Node) -> None:
    """As the driver tells, or else by who holds a device open. (Seen with a real driver on an H200.)"""
    node.sh(DRIVER)
    only = ("--only", "toolkit")  # of this driver nobody can make device nodes
    pid = node.sh("docker inspect -f '{{.State.Pid}}' job").strip()
    node.command("nvidia-smi", f'case "$*" in --query-compute-apps=*) echo {pid} ;; *) exit 9 ;; esac')
    node.waited(node.ask(*only), f"would affect process sleep (pid {pid}); ")
    node.command("nvidia-smi", "exit 9")
    node.sh("systemd-run -q --unit=holder --property=StandardInput=file:/dev/nvidia0 /bin/sleep 1000")
    holder = node.sh("systemctl show -p MainPID --value holder").strip()
    node.waited(node.ask(*only), f"would affect process sleep (pid {holder}); ")
    # What runs in a container that does not count, does not count.
    node.sh("systemctl stop holder")
    node.command("nvidia-smi", f'case "$*" in --query-compute-apps=*) echo {pid} ;; *) exit 9 ;; esac')
    result = node.ask(*only, ignore=["busybox"])
    assert "toolkit" in result.changed(), result.explain()
    node.version = node.other


CRICTL = """
D=/run/crictl
case $1 in
  ps) [ ! -e $D/down ] && cat $D/ids ;;
  inspect|inspectp) cat "$D/$2" ;;
  *) exit 1 ;;
esac
"""


def pod(name: str, image: str, env: str, **labels: str) -> dict[str, Any]:
    """A container and its pod, in the form in which crictl prints what containerd says."""
    said = {
        "status": {
            "id": name,
            "metadata": {"attempt": 0, "name": "main"},
            "image": {"annotations": {}, "image": image, "runtimeHandler": "", "userSpecifiedImage": ""},
            "labels": {"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": "ml"},
        },
        "info": {"sandboxID": f"{name}-pod", "runtimeSpec": {"process": {"env": ["PATH=/bin", env]}}},
    }
    return {name: said, f"{name}-pod": {"status": {"labels": {"app": "x", **labels}}}}


def test_pods_with_a_gpu_count_but_for_daemonsets(node: Node) -> None:
    gpu, none = "NVIDIA_VISIBLE_DEVICES=GPU-5e0a", "NVIDIA_VISIBLE_DEVICES=void"
    pods = {
        **pod("train-0", "nvcr.io/nvidia/pytorch:25.01-py3", gpu),
        **pod("web-1", "nginx", none),
        **pod("exporter-2", "dcgm-exporter:4", gpu, **{"pod-template-generation": "3"}),
        **pod("idle-3", "registry:5000/jupyter:1", gpu),
    }
    node.command("crictl", CRICTL)
    files = [f"cat >/run/crictl/{name} <<'X'\n{json.dumps(said, indent=2)}\nX\n" for name, said in pods.items()]
    ids = "\n".join(name for name in pods if not name.endswith("-pod"))
    node.sh(
        f"mkdir -p /run/crictl; cp /bin/sleep /usr/local/bin/kubelet\n{''.join(files)}echo '{ids}' >/run/crictl/ids"
    )
    told = node.waited(node.ask(ignore=["registry:5000/jupyter"]), "until idle")
    assert told.partition("would affect ")[2] == "pod ml/train-0; run again afterwards"
    node.sh("touch /run/crictl/down; cp /bin/sleep /usr/local/bin/kubelet; systemd-run -q /usr/local/bin/kubelet 1000")
    node.waited(node.ask(), "Kubernetes' pods (crictl gives no answer)")
    node.sh("rm /run/crictl/down /run/crictl/train*; sed -i /train/d /run/crictl/ids")
    node.done(node.ask(ignore=["registry:5000/jupyter"]))


#: What is noted down: the hook, and which toolkit it met.
NOTE = f"echo {{}} $(nvidia-ctk --version | sed -n 's/.* //;1p') >>{BOOK}"


def hooks(before: str = "true", after: str = "true") -> dict[str, Any]:
    commands = {"before": f"{NOTE.format('before')}; {before}", "after": f"{NOTE.format('after')}; {after}"}
    return {"restart": "drained", "drain": commands}


def test_own_commands_move_work_away_and_let_it_back(node: Node) -> None:
    node.train()
    old = node.version
    node.done(node.ask(**hooks("docker rm -f train")))
    new = node.version
    assert node.book() == [f"before {old}", f"after {new}"]

    # Work that stays is still work, and the node is let back.
    pid = node.train("stays")
    node.waited(node.ask(**hooks()), "until idle", "stays")
    assert node.book() == [f"before {new}", f"after {new}"]
    assert node.sh("docker inspect -f '{{.State.Pid}}' stays").strip() == pid
    node.sh("docker rm -f stays")

    # A hook that fails: nothing is disturbed, nobody is let back, because nobody was moved away.
    told = node.waited(node.ask(**hooks("echo no room for job 12 >&2; exit 3")), "until drained", "exit 3")
    assert "no room for job 12" in told and node.book() == [f"before {new}"]

    # The step fails: the work is let back all the same.
    (node.root / "etc/apt/apt.conf.d/99test").write_text('DPkg::Pre-Install-Pkgs {"exit 1";};\n')
    failed = node.ask(**hooks())
    assert failed.code == 1 and "apt-get install failed" in failed.host()["error"]["message"], failed.explain()
    assert node.book() == [f"before {new}", f"after {new}"]
    node.sh("rm /etc/apt/apt.conf.d/99test; test ! -e /var/lib/gpuready/drained")

    # The way back fails: said so, because the node is still out of service.
    failed = node.ask(**hooks(after="echo the controller is down >&2; exit 1"))
    node.version = old
    assert failed.code == 1 and node.toolkit() == old, failed.explain()
    told = failed.host()["error"]["message"]
    assert "the node is still drained" in told and "the controller is down" in told
    node.sh("rm /var/lib/gpuready/drained")


def test_the_diff_is_shown_once_when_the_answer_is_no(node: Node) -> None:
    terminal = Terminal(node.gpuready.home)
    process = terminal.start("apply", "-i", str(node.wanted()))
    until(lambda: terminal.says("Change 1 host?"), 60, terminal.shown)
    terminal.type("n\n")
    assert process.wait(30) == 7
    until(lambda: terminal.says("exit 7"), 5)
    assert terminal.shown.count("toolkit.nvidia-container-toolkit-base: ") == 1, terminal.shown
    assert node.toolkit() == node.version


def test_the_repository_alone(node: Node) -> None:
    """The toolkit is there already, so only this component reads the package list."""
    node.sh("rm -rf /etc/apt/sources.list.d/gpuready* /var/lib/apt/lists/*nvidia* /var/lib/apt/lists/*stable_deb*")
    result = node.apply("--only", "repository", toolkit={"version": node.version})
    assert result.changed() == {"repository"}, result.explain()
    assert "repository.candidate" in result.checks("pass"), result.explain()

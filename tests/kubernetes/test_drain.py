"""Kubernetes' own programs and Debian's kubectl: drain, idleness, cordon, budgets, and an API server that goes away.

One machine is the cluster and its node. Its pods are Kubernetes', made by its controllers and run by kubelet.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.node import (
    BUDGET,
    BY_KUBECTL,
    MARK,
    RIGHTS,
    Node,
    drain,
    killed_while_draining,
    meddled,
    on_the_node,
    several,
    single,
)
from tests.lab import cri
from tests.lab.kubectl import kubectl
from tests.system.harness import Result

DATA = Path(__file__).parents[1] / "data/kubectl"
GPU = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
SHM = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]


@pytest.mark.parametrize("suite", ["sid", "debian13", "debian12"])
def test_pods_leave_as_the_spec_allows_and_daemonsets_stay(node: Node, suite: str) -> None:
    node.suite = suite
    before = node.run_pods(several("Deployment", volumes=SHM), several("DaemonSet", "agent"))
    node.waited(node.ask(**BY_KUBECTL), "until drained: kubectl drain failed", "delete_emptydir: true}}} permits that")
    assert node.pods() == before
    node.done(node.ask(**drain(delete_emptydir=True)))
    node.cluster.until(lambda: "web" in node.pods(), "the evicted pod's successor")
    after = node.pods()
    assert after["agent"] == before["agent"] and after["web"] != before["web"]


def test_a_pod_without_a_controller(node: Node) -> None:
    before = node.run_pods(single("alone"))
    node.waited(node.ask(**BY_KUBECTL), "until drained: kubectl drain failed", "force: true}}} permits that")
    assert node.pods() == before
    node.done(node.ask(**drain(force=True, grace=1)))
    assert node.pods() == {}


@pytest.mark.fault("kubernetes-budget")
def test_a_budget_that_never_gives_way(node: Node) -> None:
    before = node.run_pods(several("Deployment"), BUDGET)
    reason = node.waited(node.ask(**drain("12s")), f"until drained: after 12 s there are still pods on {node.name}: ")
    assert re.search(r": default/web-\S+ \(its disruption budget\); ", reason), reason
    assert node.pods() == before


@pytest.mark.fault("kubernetes-others-cordon")
def test_a_node_that_somebody_else_cordoned_stays_so(node: Node) -> None:
    node.run_pods(several("Deployment"), BUDGET)
    node.cluster.ask("cordon", node.name)
    asked = node.ask(**drain("6s"))
    assert asked.code == 7 and "after 6 s" in asked.component("monitoring")["pending_reason"], asked.explain()
    assert (node.cordoned, node.get(MARK), node.marked) == (True, "", "")
    node.cluster.ask("delete", "pdb", "web")
    node.done_in_a_cordon(node.ask(**BY_KUBECTL))


@pytest.mark.fault("kubernetes-others-cordon")
@pytest.mark.parametrize("suite", ["sid", "debian13", "debian12"])
def test_a_cordon_after_a_drain_that_did_not_end_is_somebody_elses(node: Node, suite: str) -> None:
    node.suite = suite
    killed_while_draining(node)
    for verb in ("uncordon", "cordon"):
        node.cluster.ask(verb, node.name)
    node.done_in_a_cordon(node.ask(**BY_KUBECTL))


@pytest.mark.fault("controller-killed")
@pytest.mark.parametrize("suite", ["sid", "debian13", "debian12"])
def test_the_next_run_gives_back_what_a_killed_one_drained(node: Node, suite: str) -> None:
    node.suite = suite
    killed_while_draining(node)
    node.done(node.ask(**BY_KUBECTL))


@pytest.mark.fault("controller-killed")
def test_so_does_one_with_nothing_to_change(node: Node, tmp_path: Path) -> None:
    killed_while_draining(node, "--state-dir", str(tmp_path))
    node.place = node.other  # so that the next run asks for what is there
    again = node.ask("--state-dir", str(tmp_path), **BY_KUBECTL)
    node.place = node.other
    assert (again.code, again.changed()) == (0, set()), again.explain()
    node.given_back()


@pytest.mark.fault("kubernetes-api-down")
def test_an_api_server_that_goes_away(node: Node, tmp_path: Path) -> None:
    before = node.run_pods(several("Deployment"))
    stop = on_the_node(node, "systemctl stop kube-apiserver")

    def asked(at: str) -> Result:
        found = node.ask(env=meddled(node, tmp_path, at, stop), **BY_KUBECTL)
        node.run("systemctl start kube-apiserver")
        node.cluster.until_served()
        return found

    # Before: nothing is drained or changed.
    told = node.waited(asked("get*"), "until drained: kubectl get failed: ", "was refused")
    assert "still drained" not in told
    # At the drain: nothing is changed, and the run says that the node is still drained.
    node.left(asked("drain*"), "until drained: kubectl drain failed: ", "kubectl get failed: ", "was refused")
    assert node.pods() == before
    # After the change: the same, and the next run gives the node back.
    node.left(asked("*managedFields*"), "kubectl get failed: ", "was refused", changed=True)
    node.done(node.ask(**BY_KUBECTL))


@pytest.mark.fault("kubernetes-node-dies")
def test_a_kubelet_that_dies_in_a_drain(node: Node) -> None:
    """Its pods never end, as far as anybody knows; the node is given back as it is."""
    node.run_pods(several("Deployment"))
    node.run("systemctl stop kubelet")
    node.waited(node.ask(**drain("10s")), "after 10 s there are still pods on", "default/web-")


def test_a_node_that_the_cluster_does_not_know(node: Node) -> None:
    node.waited(node.ask(**BY_KUBECTL, node="other"), 'kubectl get failed: Error from server (NotFound): nodes "other"')


def test_work_that_the_selector_leaves_is_still_work(node: Node) -> None:
    before = node.run_pods(several("Deployment", "train", main=GPU), several("Deployment"))
    node.waited(node.ask(**drain(selector="app!=train")), "until idle", "would affect pod default/train-")
    assert node.pods()["train"] == before["train"]
    node.done(node.ask(**drain()))


def test_idle_is_a_node_without_gpu_pods_of_others_than_daemonsets(node: Node) -> None:
    static = single("static", main=GPU)
    folder = node.root / "etc/kubernetes/manifests"
    (folder / "static.yaml").write_text(yaml.safe_dump(static), "utf-8")
    objects = [several("DaemonSet", "agent", main=GPU), several("Deployment", "train", main=GPU), several("Deployment")]
    node.run_pods(*objects)
    node.cluster.until(lambda: f"static-{node.name}" in node.pods(), "the static pod")
    reason = node.waited(node.ask(restart="idle"), "until idle: ")
    assert re.search(r"would affect pod default/train-[^ ,]*; run again", reason), reason
    before = node.pods()
    node.cluster.ask("scale", "deployment", "train", "--replicas=0")
    node.cluster.until(lambda: "train" not in node.cluster.ask("get", "pods"), "the end of train")
    node.done(node.ask(restart="idle"))
    del before["train"]
    assert node.pods() == before


#: What a device plugin gives for a GPU, by its list strategy.
GIVEN: dict[str, dict[str, Any]] = {
    "envvar": {"envs": {"NVIDIA_VISIBLE_DEVICES": "GPU-0"}},
    "volume-mounts": {
        "envs": {"NVIDIA_VISIBLE_DEVICES": "/var/run/nvidia-container-devices"},
        "mounts": [{"hostPath": "/dev/null", "containerPath": "/var/run/nvidia-container-devices/GPU-0"}],
    },
    "cdi-annotations": {"annotations": {"nvidia.cdi.k8s.io/plugin": "nvidia.com/gpu=GPU-0"}},
    "cdi-cri": {"cdiDevices": [{"name": "k8s.device-plugin.nvidia.com/gpu=GPU-0"}]},
}
#: The device is not one that does anything.
CDI = {
    "cdiVersion": "0.6.0",
    "kind": "k8s.device-plugin.nvidia.com/gpu",
    "devices": [
        {
            "name": "GPU-0",
            "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0", "hostPath": "/dev/null", "type": "c"}]},
        }
    ],
}


def test_a_pod_that_requests_a_gpu_is_work_while_it_runs(node: Node) -> None:
    """kubelet asks a device plugin for what the pod gets."""
    node.put(cri.program("device_plugin"), "/usr/local/bin/device_plugin")
    answer = node.root / "var/lib/answer.json"
    node.sh("mkdir -p /etc/cdi; systemd-run -q --unit=plugin device_plugin /var/lib/answer.json")
    (node.root / "etc/cdi/lab.json").write_text(json.dumps(CDI), "utf-8")
    given = {name: single(name, main={"resources": {"limits": {"nvidia.com/gpu": "1"}}}) for name in GIVEN}
    node.cluster.until(lambda: node.get("{.status.allocatable.nvidia\\.com/gpu}") == "2", "the GPUs")
    for name, pod in given.items():
        answer.write_text(json.dumps(GIVEN[name]), "utf-8")
        node.run_pods(pod)
        node.waited(node.ask(restart="idle"), "until idle: ", f"would affect pod default/{name}; run again")
        node.cluster.ask("delete", "pod", name, "--grace-period=1")
    node.sh("systemctl stop plugin")
    node.done(node.ask(restart="idle"))


def test_the_rights_that_a_drain_needs(node: Node, tmp_path: Path) -> None:
    env = node.account(tmp_path / "kubeconfig")
    node.run_pods(several("Deployment"), several("DaemonSet", "agent"))
    node.permit({})
    node.waited(node.ask(env=env, **BY_KUBECTL), "until drained: kubectl get failed: ", "forbidden")
    node.permit(RIGHTS)
    node.done(node.ask(env=env, **BY_KUBECTL))


@pytest.mark.parametrize("suite", ["sid", "debian13", "debian12"])
def test_kubectl_prints_what_other_tests_read(node: Node, suite: str, tmp_path: Path) -> None:
    """Those of tests/operations/test_leaving.py; to record it anew, put the file that this names in its place."""

    def said() -> str:
        words = [kubectl(suite) / "kubectl", "drain", node.name, "--ignore-daemonsets", "--timeout=8s"]
        done = subprocess.run(words, env=node.cluster.env, stdout=-1, stderr=-2, text=True, timeout=120, check=False)
        lines = dict.fromkeys(done.stdout.splitlines())  # how often it tries again is a matter of time
        return "".join(f"{line}\n" for line in (*lines, f"exit {done.returncode}"))

    node.run_pods(several("Deployment"), several("DaemonSet", "agent"), BUDGET)
    text = said()
    node.cluster.ask("delete", "pdb", "web")
    text = (text + said()).replace(node.name, "n1")
    text = re.sub(r"\b(web-[a-z0-9]+|agent)-[a-z0-9]{5}\b", lambda match: f"{match[1].split('-')[0]}-x7k2p", text)
    new = tmp_path / f"{suite}.txt"
    new.write_text(text, "utf-8")
    recorded = DATA / new.name
    assert recorded.exists() and text == recorded.read_text("utf-8"), new

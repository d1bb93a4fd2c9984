"""Kubernetes' own programs and Debian's kubectl: drain, idleness, cordon, budgets, and an API server that goes away.

One machine is the cluster and its node. Its pods are Kubernetes', made by its controllers and run by kubelet.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab import Lab, access, cri, kubernetes
from tests.lab.kubernetes import Cluster, pod_spec
from tests.system.disturbed import Disturbed
from tests.system.faults import until
from tests.system.harness import Gpuready, Inventories, Result

DATA = Path(__file__).parents[1] / "data/kubectl"
BY_KUBECTL = {"restart": "drained", "drain": "kubectl"}
GPU = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
SHM = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
LABELS = {"app": "web"}
MARK = "{.metadata.annotations.gpuready}"
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}},
}


def several(kind: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    """A Deployment or a DaemonSet."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(terminationGracePeriodSeconds=5, **spec)}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def single(name: str, **spec: Any) -> dict[str, Any]:
    """A pod without a controller."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod_spec(**spec)}


def drain(timeout: str = "10m", **options: Any) -> dict[str, Any]:
    return {"restart": "drained", "drain": {"kubectl": options, "timeout": timeout}}


class Node(Disturbed):
    """A cluster of one machine with the exporter."""

    cluster: Cluster
    suite = "sid"

    def env(self, before: Path | None = None) -> dict[str, str]:
        path = [*([str(before)] if before else []), str(kubernetes.kubectl(self.suite)), os.environ["PATH"]]
        return {"KUBECONFIG": str(self.cluster.config), "PATH": ":".join(path)}

    def ask(self, *words: str, env: dict[str, str] | None = None, **maintenance: object) -> Result:
        return super().ask(*words, env=env or self.env(), **maintenance)

    def begin_asking(self, *words: str, **maintenance: object) -> subprocess.Popen[str]:
        """Begin the run that :meth:`ask` makes."""
        given = ["apply", "--yes", "--only", "monitoring", *words]
        where = self.where(**self.spec_of(**maintenance))
        return self.gpuready.start(*given, inventory=where, env=self.env())

    def get(self, path: str) -> str:
        return self.cluster.ask("get", "node", self.name, "-o", f"jsonpath={path}")

    @property
    def cordoned(self) -> bool:
        return self.get("{.spec.unschedulable}") == "true"

    def given_back(self) -> None:
        assert self.get("{.spec.unschedulable}" + MARK) == ""

    def done_in_a_cordon(self, result: Result) -> None:
        """The run did it, and the node is cordoned as before, and not by gpuready."""
        assert (result.code, result.changed()) == (0, {"monitoring"}), result.explain()
        self.place = self.other
        assert (self.cordoned, self.get(MARK)) == (True, "")

    def pods(self) -> dict[str, str]:
        """The uid of each pod that runs, by its app or name."""
        found = json.loads(self.cluster.ask("get", "pods", "-o", "json"))["items"]
        ready = [
            each["metadata"]
            for each in found
            if each["status"]["phase"] == "Running" and "deletionTimestamp" not in each["metadata"]
        ]
        return {each.get("labels", {}).get("app", each["name"]): each["uid"] for each in ready}

    def run_pods(self, *objects: dict[str, Any]) -> dict[str, str]:
        """Create these, and return the pods that run, when they do."""
        self.cluster.apply(*objects)
        names = {each["metadata"]["name"] for each in objects if "template" in each["spec"] or each["kind"] == "Pod"}
        self.cluster.until(lambda: set(self.pods()) >= names, f"pods {names}")
        return self.pods()


@pytest.fixture(scope="module")
def made(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Node]:
    with lab.machine() as machine:
        found = Node(machine, gpuready, inventory)
        found.cluster = Cluster(machine)
        found.cluster.start()
        found.first()
        yield found


@pytest.fixture
def node(made: Node) -> Node:
    """Schedulable and without a pod, whatever the test before did."""
    made.run("systemctl start containerd docker kube-apiserver kubelet; rm -f /etc/kubernetes/manifests/*")
    made.suite = "sid"
    cluster = made.cluster
    cluster.until_served()
    cluster.until(lambda: cluster.condition("Ready") == "True", "the node's readiness")
    cluster.ask("delete", "deployments,daemonsets,jobs,pdb", "--all", "--wait=false")
    cluster.ask("delete", "pods", "--all", "--grace-period=1", "--wait=false")
    cluster.ask("uncordon", made.name)
    cluster.ask("annotate", "node", made.name, "gpuready-")
    cluster.until(lambda: not cluster.ask("get", "pods", "-o", "name"), "the end of all pods")
    return made


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
    assert (node.cordoned, node.get(MARK)) == (True, "")
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


def killed_while_draining(node: Node, *words: str) -> None:
    """A run is killed while a budget holds its drain, which then gives way."""
    node.run_pods(several("Deployment"), BUDGET)
    process = node.begin_asking(*words, **drain())
    until(lambda: node.cordoned, 60)
    process.kill()
    process.communicate()
    assert (node.cordoned, node.get(MARK)) == (True, "drained")
    node.cluster.ask("delete", "pdb", "web")


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


def stops_at(node: Node, folder: Path, verb: str) -> dict[str, str]:
    """An environment whose kubectl is the real one, except that the API server goes before it gets this verb."""
    ssh, real = " ".join(access.ssh()), kubernetes.kubectl(node.suite)
    stop = f"{ssh} root@{node.address} systemctl stop kube-apiserver </dev/null"
    program = folder / "kubectl"
    program.write_text(f'#!/bin/sh\ncase "$*" in {verb}) {stop} ;; esac\nexec {real}/kubectl "$@"\n', "utf-8")
    program.chmod(0o755)
    return node.env(folder)


@pytest.mark.fault("kubernetes-api-down")
def test_an_api_server_that_goes_away(node: Node, tmp_path: Path) -> None:
    before = node.run_pods(several("Deployment"))
    refused = "was refused"
    # Before: nothing is drained or changed.
    asked = node.ask(env=stops_at(node, tmp_path, "get*"), **BY_KUBECTL)
    assert asked.code == 7 and refused in asked.component("monitoring")["pending_reason"], asked.explain()
    assert "still drained" not in asked.component("monitoring")["pending_reason"]
    node.run("systemctl start kube-apiserver")
    node.cluster.until_served()
    node.given_back()
    # At the drain: nothing is changed, and the run says that the node is still drained.
    asked = node.ask(env=stops_at(node, tmp_path, "drain*"), **BY_KUBECTL)
    told = asked.component("monitoring")["pending_reason"]
    assert asked.code == 7 and told.startswith("until drained: kubectl drain failed: "), asked.explain()
    assert "; the node is still drained: kubectl get failed: " in told and refused in told
    node.run("systemctl start kube-apiserver")
    node.cluster.until_served()
    assert node.cordoned and node.pods() == before
    # After the change: the same, and the next run gives the node back.
    asked = node.ask(env=stops_at(node, tmp_path, "*managedFields*"), **BY_KUBECTL)
    assert asked.code == 1 and asked.changed() == {"monitoring"}, asked.explain()
    told = asked.host()["error"]["message"]
    assert "the node is still drained: kubectl get failed" in told and refused in told
    node.place = node.other
    node.run("systemctl start kube-apiserver")
    node.cluster.until_served()
    assert node.cordoned
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


#: What docs/guides/disruption.md says that the account of gpuready needs.
RIGHTS = {
    "nodes": ("", ["get", "patch"]),
    "pods": ("", ["get", "list"]),
    "pods/eviction": ("", ["create"]),
    "daemonsets": ("apps", ["get"]),
}


def test_the_rights_that_a_drain_needs(node: Node, tmp_path: Path) -> None:
    rules = [{"apiGroups": [group], "resources": [kind], "verbs": verbs} for kind, (group, verbs) in RIGHTS.items()]
    role: dict[str, Any] = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    role["metadata"] = {"name": "drains"}
    cluster = node.cluster
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ops"}}, {**role, "rules": []})
    bound = ("clusterrolebinding", "drains", "--clusterrole=drains", "--serviceaccount=default:ops")
    cluster.ask("create", *bound)
    config = tmp_path / "kubeconfig"
    config.write_text(cluster.access(cluster.ask("create", "token", "ops")), "utf-8")
    env = {**node.env(), "KUBECONFIG": str(config)}
    node.run_pods(several("Deployment"), several("DaemonSet", "agent"))
    node.waited(node.ask(env=env, **BY_KUBECTL), "until drained: kubectl get failed: ", "forbidden")
    cluster.apply({**role, "rules": rules})
    node.done(node.ask(env=env, **BY_KUBECTL))


@pytest.mark.parametrize("suite", ["sid", "debian13", "debian12"])
def test_kubectl_prints_what_other_tests_read(node: Node, suite: str, tmp_path: Path) -> None:
    """Those of tests/operations/test_drain.py; to record it anew, put the file that this names in its place."""

    def said() -> str:
        words = [kubernetes.kubectl(suite) / "kubectl", "drain", node.name, "--ignore-daemonsets", "--timeout=8s"]
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

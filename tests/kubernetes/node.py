"""A machine that is a cluster and its node, with the exporter as what disturbs, and objects to run there."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from gpuready.gpu.node import DRAINED
from tests.lab import access
from tests.lab.kubectl import kubectl
from tests.lab.kubernetes import Cluster, pod_spec
from tests.system.disturbed import Disturbed
from tests.system.faults import lock_is_free, until
from tests.system.harness import Result

BY_KUBECTL = {"restart": "drained", "drain": "kubectl"}
LABELS = {"app": "web"}
MARK = "{.metadata.annotations.gpuready}"
#: What docs/guides/disruption.md says that the account of gpuready needs.
RIGHTS = {
    "nodes": ("", ["get", "patch"]),
    "pods": ("", ["get", "list"]),
    "pods/eviction": ("", ["create"]),
    "daemonsets": ("apps", ["get"]),
}
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
        path = [*([str(before)] if before else []), str(kubectl(self.suite)), os.environ["PATH"]]
        return {"KUBECONFIG": str(self.cluster.config), "PATH": ":".join(path)}

    @property
    def admin(self) -> str:
        """The command line of the administrator's kubectl."""
        return f"KUBECONFIG={self.cluster.config} {kubectl()}/kubectl"

    def account(self, config: Path) -> dict[str, str]:
        """The environment of an account that may do what :meth:`permit` says; its kubeconfig is written."""
        rbac = "rbac.authorization.k8s.io"
        ops = {"kind": "ServiceAccount", "name": "ops", "namespace": "default"}
        role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "drains"}
        binding = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "drains"}}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ops"}}
        self.cluster.apply(account, {**binding, "roleRef": role, "subjects": [ops]})
        self.permit(RIGHTS)
        config.write_text(self.cluster.access(self.cluster.ask("create", "token", "ops")), "utf-8")
        return {**self.env(), "KUBECONFIG": str(config)}

    def permit(self, rights: dict[str, tuple[str, list[str]]]) -> None:
        rules = [{"apiGroups": [group], "resources": [kind], "verbs": verbs} for kind, (group, verbs) in rights.items()]
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "drains"}}
        self.cluster.apply({**role, "rules": rules})

    def ask(self, *words: str, env: dict[str, str] | None = None, **maintenance: object) -> Result:
        return super().ask(*words, env=env or self.env(), **maintenance)

    def begin_asking(
        self, *words: str, env: dict[str, str] | None = None, **maintenance: object
    ) -> subprocess.Popen[str]:
        """Begin the run that :meth:`ask` makes."""
        given = ["apply", "--yes", "--only", "monitoring", *words]
        where = self.where(**self.spec_of(**maintenance))
        return self.gpuready.start(*given, inventory=where, env=env or self.env())

    def register(self) -> None:
        """Let kubelet make the node's object again, after it was deleted."""
        self.run("systemctl restart kubelet")
        self.cluster.until(lambda: self.cluster.condition("Ready") == "True", "the node's readiness")

    def get(self, path: str) -> str:
        return self.cluster.ask("get", "node", self.name, "-o", f"jsonpath={path}")

    @property
    def cordoned(self) -> bool:
        return self.get("{.spec.unschedulable}") == "true"

    @property
    def marked(self) -> str:
        """Where the node says that gpuready drained it."""
        mark = self.root / DRAINED.lstrip("/")
        return mark.read_text("utf-8").strip() if mark.exists() else ""

    def given_back(self) -> None:
        assert self.get("{.spec.unschedulable}" + MARK) == self.marked == ""

    def left(self, result: Result, *says: str, changed: bool = False) -> None:
        """The node is still cordoned, by gpuready. The run says so, and so does ``verify``."""
        told = result.component("monitoring")["pending_reason"] or result.host()["error"]["message"]
        assert result.code == (1 if changed else 7) and bool(result.changed()) == changed, result.explain()
        assert all(word in told for word in ("the node is still drained: ", *says)), told
        self.place = self.other if changed else self.place
        self.said_by_verify()

    def said_by_verify(self) -> None:
        """It is cordoned, and ``verify`` says who did that."""
        assert (self.cordoned, self.get(MARK), self.marked) == (True, "drained", f"in Kubernetes, as {self.name}")
        found = self.call("verify", "--level", "config", code=None)
        assert found.code != 0 and "node.drained" in found.checks("fail"), found.explain()

    def done_in_a_cordon(self, result: Result) -> None:
        """The run did it, and the node is cordoned as before, and not by gpuready."""
        assert (result.code, result.changed()) == (0, {"monitoring"}), result.explain()
        self.place = self.other
        assert (self.cordoned, self.get(MARK), self.marked) == (True, "", "")
        assert any("stays cordoned, because " in note for note in result.host()["notes"]), result.explain()

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


def killed_while_draining(node: Node, *words: str) -> None:
    """A run is killed while a budget holds its drain, which then gives way."""
    node.run_pods(several("Deployment"), BUDGET)
    process = node.begin_asking(*words, **drain())
    until(lambda: node.cordoned, 60)
    process.kill()
    process.communicate()
    until(lambda: lock_is_free(node), 60)
    assert (node.cordoned, node.get(MARK)) == (True, "drained")
    node.cluster.ask("delete", "pdb", "web")


def meddled(node: Node, folder: Path, at: str, what: str, said: str = "") -> dict[str, str]:
    """An environment whose kubectl is the real one, but ``what`` happens once: before it gets words as ``at``.

    With ``said``, it happens when kubectl has printed a line as that.
    """
    real = kubectl(node.suite) / "kubectl"
    once = f"if mkdir {folder}/once 2>/dev/null; then {what.replace('KUBECTL', node.admin)}; fi"
    if said:
        lines = f'while read -r line; do echo "$line"; case $line in {said}) {once} ;; esac; done'
        once = f'{{ {real} "$@"; echo $? >{folder}/code; }} 2>&1 | {lines}; exit "$(cat {folder}/code)"'
    shutil.rmtree(folder / "once", ignore_errors=True)
    program = folder / "kubectl"
    program.write_text(f'#!/bin/sh\ncase "$*" in {at}) {once} ;; esac\nexec {real} "$@"\n', "utf-8")
    program.chmod(0o755)
    return node.env(folder)


def on_the_node(node: Node, command: str) -> str:
    """The command line that runs this there."""
    return f"{' '.join(access.ssh())} root@{node.address} {command} </dev/null"

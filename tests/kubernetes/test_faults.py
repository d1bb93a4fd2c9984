"""What goes wrong around a drain: no pod is ended against the spec, and the node is given back, or the run says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.node import (
    BUDGET,
    BY_KUBECTL,
    MARK,
    RIGHTS,
    Node,
    drain,
    meddled,
    on_the_node,
    several,
)
from tests.system.faults import lock_is_free, until
from tests.system.warm import LIMITS

EVICTIONS = {"apiGroups": [""], "resources": ["pods/eviction"], "operations": ["CREATE"]}
IGNORES = "trap '' TERM; while :; do sleep 1; done"
NODES = {"apiGroups": [""], "resources": ["nodes"], "operations": ["UPDATE"]}


@pytest.mark.fault("kubernetes-forbidden")
@pytest.mark.parametrize(
    ("rule", "told"),
    [
        pytest.param(NODES, "kubectl patch failed: ", id="cordon"),
        pytest.param(EVICTIONS, "kubectl drain failed: ", id="eviction"),
    ],
)
def test_a_webhook_that_does_not_answer(node: Node, rule: dict[str, Any], told: str) -> None:
    before = node.run_pods(several("Deployment"))
    webhook = {
        "name": "lab.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{**rule, "apiVersions": ["v1"]}],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    node.cluster.apply({**kind, "metadata": {"name": "lab"}, "webhooks": [webhook]})
    probe = ("annotate", "node", node.name, "probe=1", "--overwrite", "--dry-run=server")
    if rule is NODES:  # the API server takes a moment to learn of it
        node.cluster.until(lambda: not node.cluster.ask(*probe, check=False), "the webhook")
    try:
        node.waited(node.ask(**BY_KUBECTL), f"until drained: {told}", "failed calling webhook")
        assert node.pods() == before
    finally:
        node.cluster.ask("delete", "validatingwebhookconfiguration", "lab")
    node.cluster.until(lambda: node.cluster.ask(*probe, check=False), "the end of the webhook")
    node.done(node.ask(**BY_KUBECTL))


@pytest.mark.fault("kubernetes-forbidden", "kubernetes-token")
def test_rights_and_a_token_that_end_in_the_middle(node: Node, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    account = {"KUBECONFIG": node.account(config)["KUBECONFIG"]}
    node.run_pods(several("Deployment"))
    # The right to change nodes ends after the change.
    only_get = json.dumps([{"op": "replace", "path": "/rules/0/verbs", "value": ["get"]}])
    meddle = f"KUBECTL patch clusterrole drains --type=json -p '{only_get}' >/dev/null"
    asked = node.ask(env=meddled(node, tmp_path, "*managedFields*", meddle) | account, **BY_KUBECTL)
    node.left(asked, "kubectl patch failed: ", "forbidden", changed=True)
    node.permit(RIGHTS)
    # The token ends in the drain.
    meddle = f'sed -i \'s/"token": "/&x/\' {config}'
    asked = node.ask(env=meddled(node, tmp_path, "drain*", meddle) | account, **BY_KUBECTL)
    node.left(asked, "until drained: kubectl drain failed: ", "Unauthorized")
    node.done(node.ask(**BY_KUBECTL))


@pytest.mark.fault("kubernetes-token")
def test_a_kubeconfig_with_another_certificate(node: Node, tmp_path: Path) -> None:
    before, config = node.run_pods(several("Deployment")), tmp_path / "kubeconfig"
    found = json.loads(node.cluster.config.read_text("utf-8"))
    server = found["clusters"][0]["cluster"]
    del server["certificate-authority"]
    config.write_text(json.dumps(found), "utf-8")
    env = {**node.env(), "KUBECONFIG": str(config)}
    node.waited(node.ask(env=env, **BY_KUBECTL), "until drained: kubectl get failed: ", "certificate")
    assert node.pods() == before


@pytest.mark.fault("kubernetes-pod-stays")
def test_pods_that_never_end(node: Node) -> None:
    """One has a finalizer that nobody removes, the other ignores SIGTERM and may take very long."""
    held, slow = several("Deployment"), several("Deployment", "slow", main={"command": ["sh", "-c", IGNORES]})
    held["spec"]["template"]["metadata"]["finalizers"] = ["example.com/held"]
    slow["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 3600
    before = node.run_pods(held, slow)

    def runs_since() -> str:
        path = "jsonpath={.items[0].status.containerStatuses[0].state.running.startedAt}"
        return node.cluster.ask("get", "pods", "-l", "app=slow", "--sort-by=.metadata.creationTimestamp", "-o", path)

    def end() -> bool:
        node.run("pkill -KILL -f 'while [:]; do sleep 1'", check=False)  # kubelet shortens no grace that has begun
        pods = node.cluster.ask("get", "pods", "-l", "app=web", "-o", "name").split()
        for pod in pods:
            node.cluster.ask("patch", pod, "--type=merge", '-p={"metadata":{"finalizers":null}}', check=False)
        return not node.cluster.ask("get", "pods", "-o", "name")

    since = runs_since()
    try:
        told = node.waited(node.ask(**drain("8s")), f"after 8 s there are still pods on {node.name}: ")
        assert "default/web-" in told and "default/slow-" in told
        assert since and since == runs_since()
        assert not set(node.pods().values()) & set(before.values()), "both were asked to end"
    finally:
        node.cluster.ask("delete", "deployments", "--all")
        node.cluster.ask("delete", "pods", "--all", "--grace-period=1", "--wait=false")
        node.cluster.until(end, "the end of all pods")
    node.done(node.ask(**BY_KUBECTL))


@pytest.mark.fault("kubernetes-node-deleted")
def test_a_node_that_is_deleted_in_a_drain(node: Node, tmp_path: Path) -> None:
    delete = f"KUBECTL delete node {node.name} >/dev/null"
    asked = node.ask(env=meddled(node, tmp_path, "drain*", delete), **BY_KUBECTL)
    told = asked.component("monitoring")["pending_reason"]
    assert asked.code == 7 and "not found" in told and "still drained" not in told, asked.explain()
    gone = f"{node.name} is not in the cluster any more; kubelet registers it again when it starts"
    assert gone in asked.host()["notes"] and not node.marked
    node.register()
    node.given_back()
    node.done(node.ask(**BY_KUBECTL))


@pytest.mark.fault("kubernetes-uncordoned")
def test_a_node_that_somebody_uncordons_in_a_drain(node: Node, tmp_path: Path) -> None:
    """Its pods leave, but others may come at any time, so nothing is changed."""
    node.run_pods(several("Deployment"), BUDGET)
    meddle = f"(KUBECTL uncordon {node.name}; KUBECTL delete pdb web) >/dev/null"
    env = meddled(node, tmp_path, "drain*", meddle, said="*disruption*budget*")
    node.waited(node.ask(env=env, **BY_KUBECTL), f"until drained: {node.name} was uncordoned while it was drained")
    node.done(node.ask(**BY_KUBECTL))


@pytest.mark.fault("kubernetes-lost-marks")
def test_managed_fields_that_somebody_removes(node: Node, tmp_path: Path) -> None:
    """From then on, Kubernetes shows nobody's fields of this node."""
    forget = json.dumps([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}])
    meddle = f"KUBECTL patch node {node.name} --type=json -p '{forget}' >/dev/null"
    node.done(node.ask(env=meddled(node, tmp_path, "*managedFields*", meddle), **BY_KUBECTL))
    node.done(node.ask(**BY_KUBECTL))
    node.cluster.ask("delete", "node", node.name)
    node.register()


@pytest.mark.fault("kubernetes-lost-marks")
def test_an_annotation_that_somebody_removes(node: Node, tmp_path: Path) -> None:
    meddle = f"KUBECTL annotate node {node.name} gpuready- >/dev/null"
    node.done(node.ask(env=meddled(node, tmp_path, "*managedFields*", meddle), **BY_KUBECTL))


@pytest.mark.fault("kubernetes-api-hangs")
@pytest.mark.parametrize(
    ("hang", "over"),
    [
        pytest.param("systemctl stop etcd", "systemctl start etcd", id="etcd"),
        pytest.param(
            "systemctl kill -s STOP kube-apiserver", "systemctl kill -s CONT kube-apiserver", id="kube-apiserver"
        ),
    ],
)
def test_an_api_server_without_an_answer(node: Node, tmp_path: Path, hang: str, over: str) -> None:
    before = node.run_pods(several("Deployment"))
    env = meddled(node, tmp_path, "drain*", on_the_node(node, hang)) | {LIMITS: "operations.drain.ANSWER=3"}
    try:
        asked = node.ask(env=env, **drain("5s"))
    finally:
        node.run(over)
    node.cluster.until_served()
    node.left(asked, "until drained: ", "kubectl get gave no answer within 3 s")
    assert node.pods() == before
    node.done(node.ask(**BY_KUBECTL))


@pytest.mark.fault("controller-killed")
@pytest.mark.parametrize("at", ["drain*", "*managedFields*"], ids=["between cordon and change", "after the change"])
def test_a_gpuready_that_is_killed(node: Node, tmp_path: Path, at: str) -> None:
    env = meddled(node, tmp_path, at, "kill -KILL $PPID; exit 1")
    process = node.begin_asking(env=env, **BY_KUBECTL)
    process.communicate(timeout=120)
    assert process.returncode == -9
    until(lambda: lock_is_free(node), 60)
    node.place = node.place if at == "drain*" else node.other
    node.said_by_verify()
    node.done(node.ask(**BY_KUBECTL))


@pytest.mark.fault("two-controllers")
def test_two_runs_at_once(node: Node, tmp_path: Path) -> None:
    """The second one neither changes the node nor uncordons it."""
    before = node.run_pods(several("Deployment"), BUDGET)
    first = node.begin_asking(**drain())
    until(lambda: node.cordoned, 60)
    second = node.ask(**BY_KUBECTL)
    told = second.component("monitoring")["pending_reason"]
    assert second.code == 7 and "another gpuready run is changing this node" in told, second.explain()
    assert (node.cordoned, node.get(MARK), node.pods()) == (True, "drained", before)
    node.cluster.ask("delete", "pdb", "web")
    node.done(node.gpuready.finish(first))

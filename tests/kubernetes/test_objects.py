"""What gpuready prints for Kubernetes, as its API server takes it, and a pod of the RuntimeClass on a node."""

import json
from typing import Any

from tests.kubernetes.node import Node
from tests.lab.kubernetes import pod_spec

#: As Multus installs it, as far as the API server asks.
NETWORKS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "network-attachment-definitions.k8s.cni.cncf.io"},
    "spec": {
        "group": "k8s.cni.cncf.io",
        "scope": "Namespaced",
        "names": {
            "plural": "network-attachment-definitions",
            "singular": "network-attachment-definition",
            "kind": "NetworkAttachmentDefinition",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"config": {"type": "string"}}}},
                    }
                },
            }
        ],
    },
}


def test_the_api_server_takes_what_render_prints(node: Node) -> None:
    cluster = node.cluster
    cluster.apply(NETWORKS)
    cluster.ask("wait", "--for=condition=Established", f"crd/{NETWORKS['metadata']['name']}")
    text = node.gpuready("render", "kubernetes", check_json=False, code=0).stdout
    made = ["runtimeclass.node.k8s.io/nvidia", "networkattachmentdefinition.k8s.cni.cncf.io/rdma-1", "pod/gpu-rdma"]
    strict = ("apply", "--validate=strict", "-f", "-")
    assert cluster.ask(*strict, stdin=text).splitlines() == [f"{each} created" for each in made]
    # kubectl takes the pod's number of GPUs and the API server's text of it for a difference.
    assert cluster.ask(*strict, stdin=text).splitlines()[:2] == [f"{each} unchanged" for each in made[:2]]
    # There is no GPU here, and the scheduler says so.
    why = "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}"
    cluster.until(lambda: cluster.ask("get", "pod", "gpu-rdma", "-o", why), "the scheduler's answer")
    said = cluster.ask("get", "pod", "gpu-rdma", "-o", why)
    assert "Insufficient nvidia.com/gpu" in said and "Insufficient rdma/rdma" in said, said
    cluster.ask("delete", "-f", "-", stdin=text)


def test_a_pod_of_the_runtime_class_runs_once_the_node_is_ready(node: Node) -> None:
    cluster = node.cluster
    text = node.gpuready("render", "kubernetes", check_json=False, code=0).stdout
    runtime_class = next(part for part in text.split("---\n") if "kind: RuntimeClass" in part)
    cluster.ask("apply", "-f", "-", stdin=runtime_class)
    spec = pod_spec(runtimeClassName="nvidia", main={"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]})
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gpu"}, "spec": spec})

    def events() -> str:
        found: list[dict[str, Any]] = json.loads(cluster.ask("get", "events", "-o", "json"))["items"]
        return "\n".join(each["message"] for each in found if each["involvedObject"]["name"] == "gpu")

    cluster.until(lambda: 'no runtime for "nvidia" is configured' in events(), "kubelet's refusal")
    node.apply(runtimes={"containerd": "auto"}, maintenance={"restart": "idle"})
    cluster.ask("wait", "--for=condition=Ready", "pod/gpu", "--timeout=100s")
    tasks = node.sh("grep -l nvidia-container-runtime /run/containerd/io.containerd.runtime.v2.task/k8s.io/*/runtime")
    assert len(tasks.split()) == 2  # the pod's own and its container
    # It has no GPU, which a node without crictl cannot tell: then the runtime is what counts.
    node.done(node.ask(restart="idle"))
    node.sh("mv /usr/local/bin/crictl /run")
    node.waited(node.ask(restart="idle"), "until idle: ", "would affect pod gpu; run again")
    cluster.ask("delete", "pod", "gpu", "--grace-period=1")
    node.done(node.ask(restart="idle"))
    node.sh("mv /run/crictl /usr/local/bin")

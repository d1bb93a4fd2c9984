"""What gpuready prints for Kubernetes, as its API server takes it."""

from collections.abc import Iterator

import pytest

from tests.lab import Lab
from tests.lab.kubernetes import Cluster
from tests.system.harness import Gpuready, Inventories
from tests.system.host import Host

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


class Node(Host):
    cluster: Cluster


@pytest.fixture(scope="module")
def node(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Node]:
    with lab.machine() as machine:
        found = Node(machine, gpuready, inventory)
        found.cluster = Cluster(machine)
        found.cluster.start()
        yield found


def test_the_api_server_takes_what_render_prints(node: Node) -> None:
    cluster = node.cluster
    cluster.apply(NETWORKS)
    cluster.ask("wait", "--for=condition=Established", "crd/network-attachment-definitions.k8s.cni.cncf.io")
    text = node.gpuready("render", "kubernetes", check_json=False, code=0).stdout
    runtime_class = next(part for part in text.split("---\n") if "kind: RuntimeClass" in part)
    cluster.ask("apply", "-f", "-", stdin=runtime_class)  # without it, the API server refuses a pod that names it
    dry = cluster.ask("apply", "--validate=strict", "--dry-run=server", "-f", "-", stdin=text).splitlines()
    assert dry == [
        "runtimeclass.node.k8s.io/nvidia unchanged (server dry run)",
        "networkattachmentdefinition.k8s.cni.cncf.io/rdma-1 created (server dry run)",
        "pod/gpu-rdma created (server dry run)",
    ]

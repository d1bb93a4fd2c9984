"""Fixtures of the tests with a cluster: the tier of ``./dev test --kubernetes``, because its build takes long."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuready.gpu.node import DRAINED
from tests.kubernetes.node import Node
from tests.lab import Lab
from tests.lab.fixtures import lab
from tests.lab.kubernetes import Cluster
from tests.system.conftest import gpuready, inventory
from tests.system.harness import Gpuready, Inventories

__all__ = ["gpuready", "inventory", "lab"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this directory need test machines."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.lab)


@pytest.fixture(scope="session")
def made(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Node]:
    with lab.machine() as machine:
        found = Node(machine, gpuready, inventory)
        found.cluster = Cluster(machine)
        found.cluster.start()
        found.first()
        yield found


def _pods_left(cluster: Cluster) -> str:
    """Tell all pods to end, and return those that are still there."""
    cluster.ask("delete", "pods", "--all", "--grace-period=1", "--wait=false")
    return cluster.ask("get", "pods", "-o", "name")


@pytest.fixture
def node(made: Node) -> Node:
    """Schedulable and without a pod, whatever the test before did."""
    made.run("systemctl kill -s CONT kube-apiserver", check=False)
    made.run("systemctl start containerd docker etcd kube-apiserver kubelet; rm -f /etc/kubernetes/manifests/*")
    made.suite = "sid"
    cluster = made.cluster
    cluster.until_served()
    cluster.until(lambda: cluster.condition("Ready") == "True", "the node's readiness")
    # By name, too: an API server that went away makes the garbage collector miss what it should delete.
    cluster.ask("delete", "deployments,daemonsets,jobs,replicasets,pdb", "--all", "--wait=false")
    cluster.ask("uncordon", made.name)
    cluster.ask("annotate", "node", made.name, "gpuready-")
    made.run(f"rm -f {DRAINED}")
    cluster.until(lambda: not _pods_left(cluster), "the end of all pods")
    return made

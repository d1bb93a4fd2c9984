"""What a run says of its nodes beside the figures."""

from __future__ import annotations

from fabric_samples import choices, chosen, down

from gpuready.pairwise import remarks
from gpuready.state.model import Container, Docker, NodeState


def test_a_node_without_a_port_says_why() -> None:
    assert remarks(NodeState(), choices()) == ["no port of the fabric: the node has no RDMA device"]
    assert remarks(NodeState(), choices(down("mlx5_0"))) == [
        "no port of the fabric: mlx5_0:1: its state is DOWN, not ACTIVE"
    ]


def test_work_on_the_gpus_is_told_because_both_disturb_each_other() -> None:
    containers = (Container(id="1", name="trainer", image="x", gpu=True), Container(id="2", name="web", image="y"))
    state = NodeState(docker=Docker(containers=containers))
    (note,) = remarks(state, choices(chosen("mlx5_0")))
    assert note == "GPU containers run here (trainer): figures may be low, and their traffic is slowed"
    assert remarks(NodeState(docker=Docker()), choices(chosen("mlx5_0"))) == []

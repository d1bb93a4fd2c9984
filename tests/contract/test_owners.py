"""Whose the parts of a node are, as told once a host, and what the checks make of somebody else's toolkit."""

from typing import Any

import pytest

from gpuready.catalogue import BY_ID
from gpuready.components.toolkit.state import OPERATOR_CTK
from gpuready.contract import owners
from gpuready.model.parse import MARKS
from gpuready.model.probe import script
from gpuready.model.spec import NodeSpec
from gpuready.model.state import OS, Docker, NodeState, Package, Tool, Unknown


def spec(**words: str) -> NodeSpec:
    return NodeSpec.model_validate({"owners": words})


def state(*marks: str, toolkit: str = "", **fields: Any) -> NodeState:
    packages = {"nvidia-container-toolkit": Package(version=toolkit, arch="amd64")} if toolkit else {}
    return NodeState(marks=marks, packages=packages, **fields)


def test_a_plain_host_owns_everything_and_there_is_no_note() -> None:
    assert owners.notes(spec(), state(toolkit="1.20.1-1")) == ()
    assert [owners.owner(part, spec(), state()) for part in owners.PARTS] == [None, None, None]


def test_the_parts_of_one_owner_are_told_in_one_sentence() -> None:
    assert owners.notes(spec(), state("operator_driver", "operator_toolkit")) == (
        "the GPU Operator owns the driver here (/run/nvidia/driver): observed only",
        "the GPU Operator owns the toolkit and the engines' configuration here (/usr/local/nvidia/toolkit): "
        "observed only",
    )
    assert owners.notes(spec(), state("dlami", toolkit="1.18.0-1")) == (
        "the AWS Deep Learning AMI owns the driver and the toolkit here (/opt/aws/dlami): observed only",
    )


def test_a_cluster_owns_its_own_containerd_only() -> None:
    assert owners.notes(spec(), state("k3s")) == (
        "k3s owns the configuration of containerd here (/var/lib/rancher/k3s): observed only",
    )
    assert owners.owner("runtime", spec(), state("k3s"), "docker") is None
    assert owners.owner("runtime", spec(), state("microk8s"), "containerd") is not None


@pytest.mark.parametrize(
    ("found", "price"),
    [
        (state("operator_toolkit"), "toolkit.enabled=false"),
        (state("dgx", toolkit="1.17.8-1"), "the image no longer updates them"),
        (state(os=OS(id="cos")), "its root is read-only"),
    ],
)
def test_the_word_host_overrides_and_says_what_that_means(found: NodeState, price: str) -> None:
    (note,) = [note for note in owners.notes(spec(toolkit="host"), found) if note.startswith("owners.toolkit: host:")]
    assert price in note
    assert owners.owner("toolkit", spec(toolkit="host"), found) is None


def test_every_mark_has_an_owner() -> None:
    for mark in MARKS - {"nvidia_installer", "docker_snap", "oci_hook", "rootless_docker", "rootless_podman"}:
        node = state(mark, toolkit="" if mark == "operator" else "1.20.1-1")
        assert owners.notes(spec(), node), mark


def test_packages_that_cannot_be_read_prove_no_owner() -> None:
    node = state("operator", "dlami").model_copy(update={"packages": Unknown(unknown="dpkg: exit 2")})
    assert [owners.owner(part, spec(), node) is not None for part in owners.PARTS] == [True, False, False]


@pytest.mark.parametrize("mark", sorted(MARKS))
def test_the_probe_looks_for_every_mark(mark: str) -> None:
    assert f"&& echo {mark}=1\n" in script()


# --- the checks still judge -----------------------------------------------------------------------------------


def verdict(id: str, node: NodeState, **blocks: Any) -> tuple[str, str]:
    judged = BY_ID[id].verdict(NodeSpec.model_validate(blocks), node)
    return judged.status, f"{judged.summary} {judged.remedy}"


def test_the_operators_toolkit_is_judged_where_it_lies() -> None:
    tools = {OPERATOR_CTK: Tool(path=OPERATOR_CTK, version_line="NVIDIA Container Toolkit CLI version 1.17.4")}
    node = state("operator_toolkit", tools=tools)
    assert verdict("toolkit.version", node) == ("pass", f"{OPERATOR_CTK} is 1.17.4 ")
    status, text = verdict("toolkit.floor", node)
    assert status == "warn" and "1.17.4" in text and "CVE" in text and "the GPU Operator owns the toolkit" in text
    assert verdict("repository.candidate", node)[0] == "skip"


@pytest.mark.parametrize(
    ("node", "says"),
    [
        (state("operator_toolkit"), OPERATOR_CTK),
        (state("operator", toolkit="1.20.1-1", tools={OPERATOR_CTK: Tool(path=OPERATOR_CTK)}), "no nvidia-ctk"),
        (state("dlvm", toolkit="1.18.0-1", tools={"nvidia-ctk": Tool(path="/c", version_line="Segmentation")}), "/c"),
    ],
    ids=["an owner without one", "the host owns its own, and lacks the command", "it cannot tell its version"],
)
def test_a_toolkit_that_fails(node: NodeState, says: str) -> None:
    status, text = verdict("toolkit.version", node)
    assert status == "fail" and says in text


def test_a_docker_that_the_operator_left_alone_is_no_failure() -> None:
    """It configures one engine, and that may be containerd."""
    engine = Docker(runtimes={"runc": "runc"}, default_runtime="runc")
    node = state("operator_toolkit", docker=engine)
    verify = {"image": "debian:13"}
    for id in ("docker.runtime", "docker.smoke"):
        status, text = verdict(id, node, verify=verify)
        assert status == "skip" and "Docker has no runtime nvidia" in text
        assert verdict(id, state(docker=engine), verify=verify)[0] in ("fail", "unknown")
    registered = engine.model_copy(
        update={"runtimes": {"nvidia": "/usr/local/nvidia/toolkit/nvidia-container-runtime"}}
    )
    node = node.model_copy(update={"docker": registered})
    assert verdict("docker.runtime", node)[0] == "pass"
    status, text = verdict("docker.runtime", node, runtimes={"docker": {"default_runtime": True}})
    assert status == "fail" and "change it there" in text
    assert verdict("docker.smoke", node, verify=verify)[0] == "unknown"

"""What a host consists of, read from its state, and the conditions that find hosts by it."""

import re
import shlex
from fnmatch import fnmatch
from pathlib import Path

import pytest

from gpuready.base.facts import Tool, Unknown
from gpuready.model import probe
from gpuready.model.state import OS, Docker, Driver, NodeState, Package
from gpuready.result.facts import NodeFacts, Where, values

STATES = Path(__file__).parents[1] / "data"
H200 = NodeFacts.of(NodeState.model_validate_json((STATES / "h200-mounted-driver" / "state.json").read_bytes()))


def packages(**versions: str) -> dict[str, Package]:
    return {name.replace("_", "-"): Package(version=text, arch="amd64") for name, text in versions.items()}


def test_the_facts_of_a_recorded_node() -> None:
    assert (H200.driver, H200.gpu, H200.gpus, H200.os) == ("580.159.04", "NVIDIA H200", 1, "Ubuntu 24.04.3 LTS")
    assert H200.cells[0] == "1 NVIDIA H200" and H200.toolkit == "1.20.0"


@pytest.mark.parametrize(
    ("docker", "installed", "shown"),
    [
        (Docker(version="28.0.1"), {}, "docker 28.0.1, containerd"),
        (None, packages(docker_ce="5:27.5.1-1~debian.12~bookworm"), "docker 27.5.1, containerd"),
        (Unknown(unknown="it hangs"), {"containerd.io": Package(version="1.7.27-1", arch="amd64")},
         "docker, containerd 1.7.27"),
    ],
)  # fmt: skip
def test_an_engine_has_the_version_that_runs_or_that_of_its_package(
    docker: Docker | Unknown | None, installed: dict[str, Package], shown: str
) -> None:
    commands = {name: Tool(path=f"/usr/bin/{name}") for name in ("dockerd", "containerd")}
    state = NodeState(docker=docker, packages=installed, tools=commands)
    assert NodeFacts.of(state).shown_engines == shown


def test_the_version_of_cri_o_is_that_of_its_package() -> None:
    """It runs no command for it, so the probe has to ask for the package."""
    tools = {"crio": Tool(path="/usr/bin/crio")}
    assert NodeFacts.of(NodeState(packages=packages(cri_o="1.34.2-1.1"), tools=tools)).engines == {"cri-o": "1.34.2"}
    patterns = re.search(r"^set -- (.*\\\n.*)$", probe.script(), re.M)
    assert patterns
    asked = shlex.split(patterns[1])
    for name in ("docker-ce", "docker.io", "containerd", "containerd.io", "cri-o"):
        assert any(fnmatch(name, pattern) for pattern in asked), name


def test_no_driver_and_no_answer_of_nvidia_smi() -> None:
    bus = tuple(f"0000:{at:02x}:00.0 0x030200 0x2335 none" for at in range(8))
    cold = NodeFacts.of(NodeState(os=OS(name="Debian"), kernel="6.12", driver=Driver(pci=bus)))
    assert cold.cells == ("8 GPUs", "none", "6.12", "Debian", "none", "none")
    silent = Driver(proc_version="580.95.05", gpus=bus[:7], pci=bus, smi=Unknown(unknown="it hangs"))
    assert NodeFacts.of(NodeState(driver=silent)).cells[:2] == ("7 GPUs", "580.95.05")
    mixed = "".join(f'<gpu id="{at}"><product_name>{name}</product_name></gpu>' for at, name in enumerate("ABA"))
    assert NodeFacts.of(NodeState(driver=Driver(smi=mixed))).shown_gpus == "3 A, B"


NODE = NodeFacts("580.95.05", "NVIDIA H200", 8, "6.8.0-85-generic", "Ubuntu 24.04.3 LTS", "1.20.1",
                 {"docker": "28.0.1", "containerd": ""})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("driver=580", True), ("driver=580.95", True), ("driver=58", False), ("driver!=580", False),
        ("driver!=570", True), ("gpu=h200", True), ("gpu=H20", False), ("gpus=8", True), ("gpus=80", False),
        ("toolkit=1.2", False), ("toolkit=1.20", True), ("os=ubuntu 24.04", True), ("docker=28", True),
        ("engine=containerd", True), ("engine=docker", True), ("cri-o=1", False), ("cri-o!=1", True),
        ("kernel=6.8.0-85", True), ("driver=.*", False),
    ],
)  # fmt: skip
def test_a_condition_compares_whole_words(text: str, found: bool) -> None:
    where = Where.of(text)
    assert where is not None and where.matches(NODE) is found and not where.matches(None)


def test_what_is_no_condition() -> None:
    assert [Where.of(text) for text in ("driver", "drivers=580", "driver=", "driver>580", "")] == [None] * 5
    assert values("driver", [NODE, H200, None, NodeFacts()]) == ["580.159.04", "580.95.05"]

"""One fault, one failed check: the recorded machine as it is, with one thing wrong, and with a silent nvidia-smi."""

from copy import deepcopy
from typing import Any

import pytest
import yaml

from gpuready.base.facts import Answer
from gpuready.catalogue import CATALOGUE
from gpuready.contract.check import Verdict, run_checks, skip
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Docker, NodeState, Unknown
from tests.gpu.test_gpu_verdicts import MEMORY, SETTINGS, SWITCHES, XIDS, said, smi
from tests.gpu.test_libcuda_verdicts import LIB, linker
from tests.model.probe_answers import h200, recorded
from tests.verdicts import TODAY, one, root_file, state


def test_the_recorded_machine_passes_what_concerns_driver_and_libcuda() -> None:
    node = h200().model_copy(update={"active": {"cuda": Answer(out="cuInit=0 count=1 version=13000\n")}})
    judged = run_checks(
        CATALOGUE,
        NodeSpec.model_validate({"hardware": {"gpus": 1, "model": "H200"}}),
        node,
        "n1",
        active=True,
        today=TODAY,
    )
    wanted = [j for j in judged if j.check.id.startswith(("driver.", "libcuda.", "gpu."))]
    judged_as = {j.check.id: j.verdict.status for j in wanted}
    # No switch, one GPU, a GPU that remaps rows: what does not concern it. The recording has no kernel log.
    gpu = ("nvlink", "nvlink_errors", "p2p", "python", "torch", "nvswitch", "fabric", "clique", "uniform", "retired")
    driver = ("charlinks", "companions", "fabricmanager", "imex", "persistenced", "owner", "packages", "held", "config")
    boot = ("nextboot", "nouveau", "secureboot", "initramfs", "imex_nodes", "imex_ready")
    absent = {f"gpu.{name}" for name in gpu} | {f"driver.{name}" for name in (*driver, *boot)}
    absent |= {"gpu.xid", "gpu.sxid", "libcuda.container", "libcuda.container_triton"}
    assert {id for id, status in judged_as.items() if status == "skip"} == absent
    assert judged_as.pop("driver.floor") == "warn"  # the recorded driver is old
    assert {status for id, status in judged_as.items() if id not in absent} == {"pass"}
    assert len(judged_as) == 53


ONE_WRONG = [
    row
    for row in (
        *XIDS,
        *MEMORY,
        *SWITCHES,
        *SETTINGS,
    )
    if row[1] in ("warn", "fail")
]


@pytest.mark.parametrize(
    ("id", "status", "node", "blocks", "part"), ONE_WRONG, ids=[f"{v[0]}-{n}" for n, v in enumerate(ONE_WRONG)]
)
def test_one_fault_of_a_gpu_fails_one_check(
    id: str, status: str, node: NodeState, blocks: dict[str, Any], part: str
) -> None:
    found = run_checks(CATALOGUE, NodeSpec.model_validate(blocks), node, "n1", active=False, today=TODAY)
    concerned = {j.check.id: j.verdict.status for j in found if j.check.id.startswith(("gpu.", "driver."))}
    concerned.pop("gpu.count")  # the spec does not say how many there are
    concerned.pop("driver.floor")  # the recorded driver is old
    assert {each: s for each, s in concerned.items() if s not in ("pass", "skip")} == {id: status}


def test_a_dead_gpu_fails_one_check_only() -> None:
    node = said(("remapped_row_pending", "[GPU is lost]"), ("persistence_mode", "Disabled"))
    found = {j.check.id: j.verdict for j in run_checks(CATALOGUE, NodeSpec(), node, "n", active=False, today=TODAY)}
    assert found["gpu.answers"].evidence == "00000000:00:06.0: remapped_rows/remapped_row_pending is [GPU is lost]"
    assert found["gpu.remap"] == found["gpu.persistence"] == skip("see gpu.answers")


@pytest.mark.parametrize(
    ("why", "root", "status"),
    [
        ("smi: exit 18: Failed to initialize NVML: Driver/library version mismatch", "driver.match", "fail"),
        ("smi: exit 15: Unable to determine the device handle", "gpu.answers", "fail"),
        ("smi: no answer within the probe's limit, abandoned (pid 7 in state D)", "gpu.answers", "unknown"),
    ],
)
def test_a_silent_nvidia_smi_fails_one_check(why: str, root: str, status: str) -> None:
    node = smi("", driver={"smi": Unknown(unknown=why)})
    if root == "driver.match":
        node = node.model_copy(update={"linker": linker(LIB, libs={LIB: "/x/libcuda.so.535.1.2"})})
    judged = run_checks(
        CATALOGUE, NodeSpec.model_validate({"hardware": {"nvswitch": True}}), node, "n", active=False, today=TODAY
    )
    found = {j.check.id: j.verdict for j in judged if j.check.id.startswith(("gpu.", "driver."))}
    assert found.pop("driver.floor").status == "warn"  # the recorded driver is old
    assert {id: v.status for id, v in found.items() if v.status not in ("pass", "skip")} == {
        root: status,
        "gpu.count": "unknown",
    }
    assert found["gpu.remap"] == found["gpu.nvswitch"] == found["gpu.fabric"] == skip(f"see {root}")


def test_what_follows_from_a_lost_gpu_names_the_count_as_its_cause() -> None:
    """The recorded machine with one GPU; the spec says 2, and so does the CDI spec, which was made before."""
    nvidia = Docker(runtimes={"nvidia": "nvidia-container-runtime"}, default_runtime="runc")
    one_left = {"cuda": Answer(out="cuInit=0 count=1 version=13000\n"), "smoke": Answer(out="gpus=1 memlock=64")}
    cdi = yaml.safe_load(recorded("nvidia-ctk-cdi-generate.yaml"))
    cdi["devices"].append({**deepcopy(cdi["devices"][0]), "name": "1"})
    files = {**h200().files, "/var/run/cdi/nvidia.yaml": root_file(yaml.safe_dump(cdi))}
    update = {"active": one_left, "docker": nvidia, "files": files}

    def judged(gpus: int, **more: Any) -> dict[str, Verdict]:
        blocks = {"hardware": {"gpus": gpus}, "verify": {"image": "debian:13"}}
        node = h200().model_copy(update={**update, **more})
        found = run_checks(CATALOGUE, NodeSpec.model_validate(blocks), node, "n", active=True, today=TODAY)
        return {each.check.id: each.verdict for each in found}

    found = judged(2)
    explained = {id: each.status for id, each in found.items() if each.because == "gpu.count"}
    assert explained == dict.fromkeys(("libcuda.init", "cdi.stale", "docker.smoke"), "fail")
    assert found["gpu.count"].status == "fail" and found["gpu.count"].remedy and not found["libcuda.init"].remedy
    none_seen = {"cuda": Answer(out="cuInit=100 count=0 version=0\n"), "smoke": Answer(out="gpus=0")}
    found = judged(1, active=none_seen)
    alone = [found["gpu.count"], found["libcuda.init"], found["docker.smoke"]]
    assert [each.status for each in alone] == ["pass", "fail", "fail"], "no GPU is lost"
    assert not any(each.because for each in found.values()) and all(each.remedy for each in alone[1:])
    fewer = {"cuda": Answer(out="cuInit=0 count=0 version=13000\n"), "smoke": Answer(out="gpus=0")}
    for cuda in ("=803 count=0", "=999 count=0", "=100 count=0"):
        found = judged(2, active={**fewer, "cuda": Answer(out=f"cuInit{cuda} version=0\n")})
        alone = [found["libcuda.init"], found["docker.smoke"]]
        assert [each.status for each in alone] == ["fail"] * 2 and all(each.remedy for each in alone), cuda
        assert not any(each.because for each in alone), "the driver lists one GPU"
    cdi["devices"].pop(0)
    found = judged(2, files={**files, "/var/run/cdi/nvidia.yaml": root_file(yaml.safe_dump(cdi))})
    assert found["cdi.stale"].status == "fail" and not found["cdi.stale"].because, "it lacks a device of the node"
    silent = h200().driver.model_copy(update={"smi": Unknown(unknown="smi: no answer")})
    found = judged(2, driver=silent)
    assert found["gpu.count"].status == "unknown" and not any(each.because for each in found.values())


def test_the_count_of_the_recorded_nvidia_smi() -> None:
    smi = recorded("nvidia-smi-q-x.xml")
    assert smi.count("<gpu id=") == 1
    assert one("gpu.count", state({"smi": smi, "gpus": ("a", "b")}), {"hardware": {"gpus": 1}}).status == "pass"

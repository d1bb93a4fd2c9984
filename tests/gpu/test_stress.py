"""``verify --level stress``: what two H200 printed, judged; and the comparison of many GPUs.

tests/data/stress/README.md says how each document was recorded.
"""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuready.base.errors import SpecErrors
from gpuready.cli.parts import parts
from gpuready.contract.check import Verdict
from gpuready.gpu.stress import CHECKS, NO_TORCH, Node, Nodes, node, summary
from gpuready.gpu.stress_figures import FORMATS, Figure, Gpu, Product, cards, floor, floor_of_node, measured, outliers
from gpuready.gpu.thresholds import load
from gpuready.inventory.extra import Extra
from gpuready.inventory.hosts import load as load_hosts
from gpuready.model.spec import NodeSpec
from gpuready.result.changes import changes, human
from gpuready.result.document import document, read, result_schema
from gpuready.result.model import CheckResult, HostResult, Run
from gpuready.verbs.verify.part import PART
from tests.command import Exits

DATA = Path(__file__).parents[1] / "data" / "stress"
CARDS = (DATA / "cards.csv").read_text("utf-8")
TODAY = date(2026, 11, 23)
SECOND = "GPU 1 (GPU-00000000-0000-4000-8000-000000000002, 0000:00:07.0)"


def recorded(name: str, **records: tuple[int, str]) -> Node:
    """A node that answered with a recorded document."""
    answer = (0, (DATA / f"{name}.json").read_text("utf-8"))
    return node({"before": (0, CARDS), "after": (0, CARDS), "xids": (0, ""), "stress": answer, **records})


def judged(found: Node, spec: NodeSpec | None = None, **others: Node) -> dict[str, Verdict]:
    """The verdicts of host n1, by check."""
    nodes = Nodes({"n1": found, **others})
    return {each.check.id: each.verdict for each in nodes.judge("n1", spec or NodeSpec(), TODAY)}


def statuses(verdicts: dict[str, Verdict]) -> str:
    return " ".join(verdict.status for verdict in verdicts.values())


def gpu(index: int, value: float, metric: str = "bf16", **fields: Any) -> Gpu:
    """A GPU with one figure."""
    unit = "TFLOP/s" if metric.startswith(("bf", "fp")) else "GB/s"
    given = {"model": "NVIDIA X9", "mig": False, "capped": False, **fields}
    figures = {metric: Figure(value, value * 0.95, value * 1.05, unit)}
    return Gpu(index, f"GPU-{index}", f"0000:{index:02x}:00.0", figures=figures, **given)


# --- what was recorded


def test_two_idle_h200_pass_and_their_figures_are_told() -> None:
    found = recorded("plain")
    verdicts = judged(found)
    assert statuses(verdicts) == "pass pass pass pass pass"
    assert verdicts["stress.run"].summary.endswith("2, without an error (torch 2.11.0+cu130, CUDA 13.0, NCCL 2.28.9)")
    assert "bf16 684 to 685 TFLOP/s" in verdicts["stress.compute"].summary
    assert verdicts["stress.copies"].summary == (
        "host to GPU 55.4 to 55.5 GB/s; GPU to host 55.3 to 55.4 GB/s; GPU to GPU 386 GB/s"
    )
    assert summary(found).startswith("under load: 2 NVIDIA H200: fp32 51.0 TFLOP/s; tf32 358 to 370 TFLOP/s; bf16 ")


def test_a_gpu_with_other_work_on_it_is_named_with_figure_and_limit() -> None:
    verdicts = judged(recorded("slow"))
    assert statuses(verdicts) == "pass fail fail fail pass"
    compute, memory = verdicts["stress.compute"], verdicts["stress.memory"]
    assert compute.summary.startswith(f"{SECOND}: bf16 332 TFLOP/s, limit 495 (peak of NVIDIA H200: 989.5) (and ")
    assert f"{SECOND}: bf16 332 TFLOP/s, 51 % below the other GPU (677.9)" in compute.evidence
    assert memory.summary.startswith(f"{SECOND}: memory 1878 GB/s, limit 3120 (peak of NVIDIA H200: 4800)")
    assert "GPU 0" not in compute.summary + compute.evidence + memory.summary + memory.evidence
    # The copies to the GPU at work are slow, and the message says to which one.
    assert "copies to GPU 1 111 GB/s, 71 % below the other GPU (385.9)" in verdicts["stress.copies"].summary


def test_one_flipped_bit_in_a_product_is_found_and_its_gpu_named() -> None:
    verdicts = judged(recorded("flip"))
    assert statuses(verdicts) == "pass fail pass pass pass"
    assert verdicts["stress.compute"].summary == f"{SECOND}: bf16: the product is wrong (error 0.034448, limit 0.02)"
    assert verdicts["stress.compute"].evidence == ""


def test_the_recorded_errors_of_rounding_are_within_the_limits() -> None:
    found = recorded("plain").gpus
    for name, product in ((name, product) for each in found for name, product in each.products.items()):
        assert 0 < product.residual < 0.85 * load("stress")["residual"][name], name


def loaded_host(found: Node) -> HostResult:
    return HostResult("n1", {"stress": tuple(found.gpus), "verify": {}}, outcome="ok")


def test_the_result_document_has_every_gpu_and_its_figures() -> None:
    found = recorded("plain")
    host = loaded_host(found)
    host.checks = list(map(CheckResult.of, Nodes({"n1": found}).judge("n1", NodeSpec(), TODAY)))
    result = document(Run("verify", [host]), 0)
    jsonschema.validate(result, result_schema(parts()))
    first, second = result["hosts"]["n1"]["stress"]
    assert (second["index"], second["slot"], second["model"]) == (1, "0000:00:07.0", "NVIDIA H200")
    assert first["figures"]["bf16"] == {"median": 684.288, "min": 603.113, "max": first["figures"]["bf16"]["max"],
                                        "unit": "TFLOP/s"}  # fmt: skip
    assert first["products"]["fp8"]["checksum"] == second["products"]["fp8"]["checksum"]
    assert first["errors"] == first["wrong"] == {}
    assert result["level"] == "stress" and result["gpu_checks"] == 5
    assert document(*read(json.loads(json.dumps(result)), parts())) == result


def test_the_drift_of_a_gpu_between_two_runs_is_reported() -> None:
    def slower(row: dict[str, Any]) -> None:
        for name, share in {"bf16": 0.93, "fp8": 0.97}.items():  # within the margin of 10 %; within the half of it
            row["products"][name] = {**row["products"][name], "median": row["products"][name]["median"] * share}

    runs = [(Run("verify", [loaded_host(node)], part=PART), 0)
            for node in (recorded("plain"), altered(slower))]  # fmt: skip
    (drift,) = changes(*runs).hosts["n1"]
    assert (drift.kind, drift.name, drift.detail) == ("figure", f"{SECOND}: bf16", "-7 %")
    assert f"GPUs under load\n  {SECOND}: bf16: {drift.before} -> {drift.after} on n1: -7 %\n" in human(changes(*runs))
    assert changes(runs[0], runs[0]).hosts == {}


# --- what did not run, or failed under load


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (node({"busy": (1, "process p (pid 12)\npod ns/train\n")}), "in use by process p (pid 12), pod ns/train"),
        (node({"refused": (1, "no nvidia module is loaded\n")}), "no nvidia module is loaded"),
        (recorded("plain", stress=(124, "")), "no answer in time"),
        (recorded("plain", stress=(1, "Traceback\nNoSuchModule: torch\n")), "NoSuchModule: torch"),
        (recorded("plain", stress=(0, "[]")), "the program did not finish: []"),
        (node({"before": (0, ""), "stress": (0, '{"gpus": []}')}), "nvidia-smi lists no GPU"),
        (node({}), "its output is incomplete"),
        (Node(unknown=NO_TORCH), "verify.torch"),
    ],
)
def test_what_did_not_run_is_unknown_with_the_reason(found: Node, says: str) -> None:
    verdicts = judged(found)
    assert says in verdicts["stress.run"].summary
    assert statuses(verdicts) == "unknown skip skip skip skip"


def test_with_mig_all_is_skipped() -> None:
    mig = CARDS.replace("Disabled", "Enabled", 1)
    assert "MIG is on" in judged(recorded("plain", before=(0, mig)))["stress.run"].summary


def test_errors_under_load_fail_and_name_the_gpu() -> None:
    after = CARDS.replace("700.00, 0\n", "700.00, 2\n").replace("700.00, 2\n", "700.00, 0\n", 1)
    verdicts = judged(recorded("plain", after=(0, after), xids=(0, "NVRM: Xid (PCI:0000:00:07): 48, pid=9\n")))
    assert statuses(verdicts) == "fail pass pass pass pass"
    assert verdicts["stress.run"].summary == f"{SECOND}: 2 uncorrected memory errors under load (and 1 more)"
    assert "1 new Xid in the kernel log: NVRM: Xid (PCI:0000:00:07): 48" in verdicts["stress.run"].evidence


def test_a_gpu_that_is_lost_under_load_fails() -> None:
    for after, why in (((0, CARDS.splitlines()[0]), "does not list it"), ((124, ""), "gives no answer")):
        run = judged(recorded("plain", after=after))["stress.run"]
        assert run.status == "fail" and f": nvidia-smi after the load: {why}" in run.summary, run


def altered(change: Any) -> Node:
    """The plain document, after ``change`` of its second GPU."""
    report = json.loads((DATA / "plain.json").read_text("utf-8"))
    change(report["gpus"][1])
    return recorded("plain", stress=(0, json.dumps(report)))


BAD = {"piece": 3, "expected": 0x55555555, "read": 0x55555557, "words": 1}


@pytest.mark.parametrize(
    ("id", "change", "says"),
    [
        ("run", lambda g: g.update(memory={"error": "RuntimeError: uncorrectable ECC error"}), "memory: Runtime"),
        ("compute", lambda g: g["products"]["tf32"].update(different=2), "different bits in 2 passes"),
        ("memory", lambda g: g["memory"].update(wrong=[BAD], pieces_wrong=1), "0x55555557 read where 0x55555555"),
        ("copies", lambda g: g["host"].update(wrong=True), "a copy to the GPU and back differs"),
        ("copies", lambda g: g["peers"]["0"].update(wrong=True), "a copy to GPU 0 differs"),
        ("reduce", lambda g: g["reduce"].update(sum=[3.0, 4.0]), "the sum is [3.0, 4.0], expected 3.0"),
    ],
)
def test_each_kind_of_wrong_result_has_its_check(id: str, change: Any, says: str) -> None:
    verdicts = judged(altered(change))
    (failed,) = ((name, verdict.summary) for name, verdict in verdicts.items() if verdict.status == "fail")
    assert failed[0] == f"stress.{id}" and failed[1].startswith(SECOND) and says in failed[1]


def test_one_slow_pass_is_a_warning() -> None:
    verdict = judged(altered(lambda g: g["products"]["bf16"].update(min=400.0)))["stress.compute"]
    assert verdict.status == "warn" and f"{SECOND}: bf16 fell to 400, median 685 TFLOP/s" in verdict.summary


def test_a_waiver_turns_a_failure_into_a_warning() -> None:
    waiver = {"check": "stress.compute", "host": "n1", "reason": "RMA", "until": "2026-12-01"}
    spec = NodeSpec.model_validate({"verify": {"waive": [waiver]}})
    assert judged(recorded("flip"), spec)["stress.compute"].status == "warn"


# --- limits


def test_a_power_cap_a_part_and_an_unlisted_model_have_no_limit() -> None:
    first = recorded("plain").gpus[0]
    assert limits(first) == {"bf16": 494.75, "fp8": pytest.approx(692.65), "memory": 3120.0}
    for other in (replace(first, capped=True), replace(first, mig=True), replace(first, model="NVIDIA H200-35C")):
        assert limits(other) == {} and floor_of_node([other] * 8, None) is None
    (capped, _) = cards(CARDS.replace("700.00, 700.00", "500.00, 700.00", 1))
    assert capped.capped and not first.capped


def limits(gpu: Gpu) -> dict[str, float]:
    found = {name: floor(gpu, name) for name in (*FORMATS, "memory", "peer", "reduce")}
    return {name: limit.least for name, limit in found.items() if limit is not None}


def test_the_table_of_limits_has_a_source_and_a_date_and_sane_values() -> None:
    table = load("stress")
    assert table["source"] and table["date"] <= date.today()
    for entry in table["models"]:
        peak = entry.get("bf16", entry.get("fp16"))
        assert ("bf16" in entry) + ("fp16" in entry) == ("fraction" in entry) and 250 < entry["memory"] < 10_000
        assert peak is None or 0 < entry["fraction"] < 0.7, entry
        # "With sparsity" is twice as much. fp8 has twice the rate of bf16.
        assert "fp8" not in entry or entry["fp8"] == pytest.approx(2 * peak, rel=0.02), entry
    assert 0 < table["fp8_fraction"] < 0.6 and table["memory_fraction"] < 0.7 and table["reduce_fraction"] < 0.6


#: Product name -> formats with a limit. A GPU is not asked for a format that its generation does not have.
MODELS = {
    **dict.fromkeys(("NVIDIA GB300", "NVIDIA B300 SXM6 AC", "NVIDIA GB200", "NVIDIA B200"), "bf16 fp8"),
    **dict.fromkeys(("NVIDIA GH200 480GB", "NVIDIA GH200 144G HBM3e", "NVIDIA H20", "NVIDIA H100 PCIe"), "bf16 fp8"),
    **dict.fromkeys(("NVIDIA L40S", "NVIDIA L40", "NVIDIA L4"), "bf16 fp8"),
    **dict.fromkeys(("NVIDIA A40", "NVIDIA A30", "NVIDIA A10", "NVIDIA A100-SXM4-40GB"), "bf16"),
    **dict.fromkeys(("Tesla V100-SXM2-32GB", "Tesla V100-PCIE-16GB", "Tesla V100S-PCIE-32GB", "Tesla T4"), "fp16"),
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "",
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": "",
}


@pytest.mark.parametrize("model", MODELS)
def test_each_model_has_limits_for_what_it_can_do(model: str) -> None:
    assert list(limits(gpu(0, 1, model=model))) == [*MODELS[model].split(), "memory"]


@pytest.mark.parametrize(
    ("model", "metric", "value"),  # most of zzc0721/torch-performance-test-data
    [
        ("NVIDIA B200", "bf16", 1696),
        ("NVIDIA B200", "memory", 7672),  # pytorch/ao#4002
        ("NVIDIA H100 80GB HBM3", "bf16", 690),  # and the next two: 15 s of stress.py, torch 2.11.0, 2026-11-24
        ("NVIDIA H100 80GB HBM3", "fp8", 1229),
        ("NVIDIA H100 80GB HBM3", "memory", 2987),
        ("NVIDIA H20", "bf16", 141),
        ("NVIDIA L40S", "bf16", 264),
        ("NVIDIA A100-SXM4-80GB", "bf16", 264),
        ("Tesla V100-SXM2-16GB", "fp16", 94.8),
        ("Tesla V100S-PCIE-32GB", "fp16", 88.9),
        ("Tesla T4", "fp16", 41.9),
    ],
)
def test_what_was_measured_on_healthy_gpus_passes_and_a_quarter_of_it_does_not(
    model: str, metric: str, value: float
) -> None:
    check = "stress.memory" if metric == "memory" else "stress.compute"
    assert judged(Node(gpus=[gpu(0, value, metric, model=model)]))[check].status == "pass"
    low = judged(Node(gpus=[gpu(0, value / 4, metric, model=model)]))[check]
    assert low.status == ("warn" if model == "NVIDIA H20" else "fail"), low


def test_an_unsure_limit_only_warns() -> None:
    verdict = judged(Node(gpus=[gpu(0, 60, model="NVIDIA H20")]))["stress.compute"]
    assert verdict.status == "warn" and verdict.summary == (
        "slow, but the limit is unsure: GPU 0 (GPU-0, 0000:00:00.0): bf16 60.0 TFLOP/s, "
        "limit 74 (peak of NVIDIA H20: 148)"
    )


def eight(value: float, model: str = "NVIDIA H100 80GB HBM3", count: int = 8, **fields: Any) -> Node:
    return Node(gpus=[gpu(i, value + i, "reduce", model=model, **fields) for i in range(count)])


def test_the_all_reduce_of_eight_gpus_on_nvswitch_has_a_limit() -> None:
    verdict = judged(eight(100))["stress.reduce"]
    assert verdict.status == "fail" and verdict.summary == (
        "all 8 GPUs: all-reduce, bus bandwidth 100 GB/s, limit 230 "
        "(Azure's for NVIDIA H100 80GB HBM3, with larger messages: 460)"
    )
    # Healthy H100 with 256 MB: 245 GB/s without NVLS, 392 with it.
    assert judged(eight(245))["stress.reduce"].status == "pass"


@pytest.mark.parametrize(
    "node", [eight(100, count=4), eight(100, "NVIDIA H100 NVL"), eight(100, "NVIDIA B200"), eight(100, capped=True)]
)
def test_nothing_else_than_what_was_measured_has_that_limit(node: Node) -> None:
    assert judged(node)["stress.reduce"].status == "pass"


def test_eight_gpus_of_two_models_have_no_limit_for_their_all_reduce() -> None:
    mixed = Node(gpus=[*eight(100).gpus[1:], *eight(100, "NVIDIA H200", 1).gpus])
    assert judged(mixed)["stress.reduce"].status == "pass"


def test_the_spec_overrides_the_limit_of_the_all_reduce() -> None:
    def spec(limit: float) -> NodeSpec:
        return NodeSpec.model_validate({"verify": {"thresholds": {"all_reduce": limit}}})

    assert judged(eight(100), spec(90))["stress.reduce"].status == "pass"
    verdict = judged(eight(250, count=2), spec(300))["stress.reduce"]
    assert verdict.status == "fail" and "250 GB/s, limit 300 (verify.thresholds.all_reduce)" in verdict.summary


# --- comparison


def test_the_outlier_of_a_fleet_is_named_and_only_it() -> None:
    nodes = {f"n{n}": [gpu(i, 700 + 5 * ((n + i) % 7)) for i in range(8)] for n in range(4)}
    assert outliers(nodes) == []
    nodes["n2"][5] = gpu(5, 600)
    (slow,) = outliers(nodes)
    assert (slow.host, slow.index, slow.metric, slow.value, slow.count) == ("n2", 5, "bf16", 600, 32)
    assert 700 <= slow.median <= 735 and 0 < slow.mad < 15


def test_a_wide_spread_has_no_outlier_and_a_small_lag_is_none() -> None:
    assert outliers({"n1": [gpu(i, value) for i, value in enumerate((500, 600, 700, 800, 900))]}) == []
    assert outliers({"n1": [gpu(i, 700.0) for i in range(7)] + [gpu(7, 640)]}) == []


def test_gpus_are_compared_with_their_own_kind() -> None:
    mixed = [gpu(0, 700), gpu(1, 700), gpu(2, 700), gpu(3, 300, model="NVIDIA Y1"), gpu(4, 500, capped=True)]
    assert outliers({"n1": mixed}) == []
    assert [slow.index for slow in outliers({"n1": [gpu(0, 700)], "n2": [gpu(3, 600)]})] == [3]


def test_an_all_reduce_is_compared_node_by_node_of_one_size() -> None:
    def whole(size: int, value: float) -> list[Gpu]:
        return [gpu(i, value, "reduce") for i in range(size)]

    nodes = {"n1": whole(8, 300), "n2": whole(8, 450), "n3": whole(8, 455), "n4": whole(2, 200)}
    (slow,) = outliers(nodes)
    assert (slow.host, slow.count) == ("n1", 3)
    first, *others = (Node(gpus=gpus) for gpus in nodes.values())
    said = judged(first, None, **dict(zip(("n2", "n3", "n4"), others, strict=True)))["stress.reduce"].summary
    assert "all 8 GPUs: all-reduce, bus bandwidth 300 GB/s, 33 % below the median of 3 nodes" in said


def test_other_bits_than_the_majority_are_wrong_and_without_one_all_are_in_doubt() -> None:
    def with_sum(index: int, checksum: str) -> Gpu:
        return replace(gpu(index, 700), products={"bf16": Product(checksum, 0, 0.016)}, software="torch 2")

    many = Node(gpus=[with_sum(i, "abcd" if i == 3 else "1234") for i in range(8)])
    verdict = judged(many)["stress.compute"]
    assert verdict.summary == "GPU 3 (GPU-3, 0000:03:00.0): bf16: wrong bits: 7 of 8 GPUs agree on another result"
    alone = judged(Node(gpus=[with_sum(0, "abcd")]), n2=Node(gpus=[with_sum(0, "1234")]))["stress.compute"]
    assert alone.status == "fail" and "2 different results on 2 GPUs" in alone.summary
    other = Node(gpus=[replace(with_sum(0, "1234"), software="torch 1")])
    assert judged(Node(gpus=[with_sum(0, "abcd")]), n2=other)["stress.compute"].status == "pass"


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=30), st.randoms())
def test_the_order_of_gpus_does_not_matter_and_the_fastest_is_no_outlier(values: list[float], random: Any) -> None:
    gpus = [gpu(i, value) for i, value in enumerate(values)]
    slow = {each.index for each in outliers({"n1": gpus})}
    assert all(values[i] < max(values) for i in slow) and 2 * len(slow) <= len(values)
    random.shuffle(gpus)
    assert {each.index for each in outliers({"n1": gpus})} == slow


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)
PHASES = ("begin", "products", "memory", "host", "peers", "reduce", "median", "fp8", "wrong", "sum")


@given(st.dictionaries(st.sampled_from(PHASES), JSON | st.dictionaries(st.sampled_from(PHASES), JSON)))
@settings(max_examples=40)
@pytest.mark.fault("hostile-node")
def test_no_answer_of_a_node_raises_an_error(row: dict[str, Any]) -> None:
    report = {"gpus": [{"uuid": "GPU-00000000-0000-4000-8000-000000000001", **row}, row]}
    text = json.dumps(report)
    assert len(measured(CARDS, text)) == 2
    found = recorded("plain", stress=(0, text))
    assert len(judged(found)) == len(CHECKS)
    document(Run("verify", [loaded_host(found)]), 0)


# --- the command line


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--level", "stress", "--passive"], "leave out --passive"),
        (["--level", "stress", "--state", "s.json"], "leave out --state"),
        (["--seconds", "5"], "--seconds is for --level stress"),
        (["--level", "stress", "--seconds", "0"], "'0' is not a number from 1 to 3600"),
    ],
)
def test_options_that_make_no_sense_are_refused(words: list[str], says: str, exits: Exits) -> None:
    assert says in exits(64, "verify", "-i", "a,", *words).err


def test_the_level_of_the_command_line_is_that_of_the_spec() -> None:
    (entry,) = load_hosts(["a,"], extra=[Extra("verify.level=smoke", "--level")]).chosen
    assert entry.spec.verify.level == "smoke"
    with pytest.raises(SpecErrors, match="gpuready verify -i INVENTORY --level stress"):
        load_hosts(["a,"], extra=[Extra("verify.level=stress", "-e")])

"""``dcgm.diag``: what ``dcgmi diag -j`` of DCGM 3 and 4 prints, judged.

No DCGM was run for these tests. The documents have the shapes that others published: DCGM 3.3.1 in issue 139 of
NVIDIA/DCGM, and DCGM 4.2.3 on a GB10 (with its finding about persistence mode); the table of ``dcgmi discovery -l`` is
that of NVIDIA's user guide. tests/data/stress/cards.csv was recorded on two H200.
"""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.base.errors import SpecErrors
from gpuready.components.dcgm.diag import Diagnosis, chosen_level, diagnosis, judge
from gpuready.contract.check import Verdict
from gpuready.inventory.extra import Extra
from gpuready.inventory.hosts import load as load_hosts
from gpuready.model.spec import NodeSpec

CARDS = (Path(__file__).parents[2] / "data" / "stress" / "cards.csv").read_text("utf-8")
UUIDS = [row.split(", ")[1] for row in CARDS.splitlines()]
FIRST, SECOND = f"GPU 0 ({UUIDS[0]}, 0000:00:06.0)", f"GPU 1 ({UUIDS[1]}, 0000:00:07.0)"
RULE = f"+--------+{'-' * 70}+\n"
ECC = "Detected a double bit error in GPU memory."
DISABLED = "Persistence Mode: Persistence mode for GPU 0 is disabled."
PERSISTENCE = {"error_category": 8, "error_id": 29, "error_severity": 5, "warning": DISABLED}
NO_SRAM = "Error getting the SRAM Threshold Count for GPU 0. SRAM Threshold checking was skipped."


def discovery(*uuids: str) -> str:
    """The table of GPUs, in the order of DCGM's ids."""
    rows = [
        f"| {id:<6} | {'Name: NVIDIA H200':<68} |\n|        | {f'Device UUID: {uuid}':<68} |\n"
        for id, uuid in enumerate(uuids)
    ]
    head = f"{len(uuids)} GPUs found.\n{RULE}| GPU ID | Device Information{' ' * 51}|\n{RULE}"
    return head + RULE.join(rows) + RULE + "0 NvSwitches found.\n+-----------+\n| Switch ID |\n"


def four(*tests: dict[str, Any]) -> dict[str, Any]:
    """A document of DCGM 4."""
    categories = [{"category": "Deployment", "tests": [each]} for each in tests]
    return {
        "DCGM Diagnostic": {"test_categories": categories},
        "entity_groups": [{"entities": [{"entity_id": 0, "serial_num": "<<<NOT_SUPPORTED>>>"}], "entity_group": "GPU"}],
        "metadata": {"Driver Version Detected": "580.82.09", "version": "4.2.3"},
    }


def test(name: str, *statuses: str, **fields: Any) -> dict[str, Any]:
    """A test of DCGM 4 with a result for each GPU; ``fields`` are those of the last one."""
    results: list[dict[str, Any]] = [
        {"entity_group": "GPU", "entity_group_id": 1, "entity_id": id, "status": status}
        for id, status in enumerate(statuses)
    ]
    results[-1] |= fields
    return {"name": name, "results": results, "test_summary": {"status": statuses[-1]}}


test.__test__ = False  # type: ignore[attr-defined]
PASSED = test("software", "Pass", "Pass")


def said(out: object, rc: int = 0, table: str = "", **more: tuple[int, str]) -> Diagnosis:
    """The diagnosis of a node where dcgmi printed this."""
    text = out if isinstance(out, str) else f"Successfully ran diagnostic for group.\n{json.dumps(out, indent=3)}\n"
    runs = {"before": (0, CARDS), "after": (0, CARDS), "gpus": (0, table or discovery(*UUIDS)), "xids": (0, "")}
    return diagnosis({**runs, "diag": (rc, text), **more})


def verdict(found: Diagnosis | None, **blocks: Any) -> Verdict:
    spec = NodeSpec.model_validate({"dcgm": {"diag": 2}, **blocks})
    return judge("n1", spec, found, date(2026, 11, 23)).verdict


def test_all_tests_of_dcgm_4_passed() -> None:
    found = verdict(said(four(PASSED, test("memory", "Pass", "Pass"))))
    assert found.summary == "dcgmi diag -r 2 passed on 2 GPUs (DCGM 4.2.3): software, memory"
    partly = verdict(said(four(PASSED, test("pcie", "Skip", "Skip"))))
    assert partly.summary.endswith("software; skipped by DCGM: pcie")
    mixed = verdict(said(four(PASSED, test("pcie", "Pass", "Skip"))))
    assert mixed.summary.endswith("software, pcie; skipped by DCGM: pcie on some GPUs")
    assert found.status == partly.status == mixed.status == "pass"


def test_a_failure_names_the_gpu_that_dcgm_means() -> None:
    warning = {"error_category": 3, "error_id": 49, "error_severity": 2, "warning": ECC}
    document = four(PASSED, test("memory", "Pass", "Fail", warnings=[warning]))
    found = verdict(said(document, rc=226))
    assert (found.status, found.summary) == ("fail", f"{SECOND}: memory: {ECC}") and "drain" in found.remedy
    # DCGM counts in its own order.
    assert verdict(said(document, table=discovery(*reversed(UUIDS)))).summary == f"{FIRST}: memory: {ECC}"
    assert verdict(said(document, table="Error")).summary == f"DCGM GPU 1: memory: {ECC}"


def test_a_setting_is_not_a_fault() -> None:
    software = test("software", "Pass", "Fail", warnings=[PERSISTENCE])
    software["test_summary"] |= {"info": [NO_SRAM]}
    memory, text = test("memory", "Pass", "Pass"), f"{SECOND}: software: {DISABLED}"
    found = verdict(said(four(software, memory), rc=226))
    assert (found.status, found.summary) == ("warn", text)
    alone = verdict(said(four(software), rc=226))
    assert (alone.status, alone.summary) == ("unknown", f"no test passed: {text}") and "setting" in alone.remedy
    software["results"][1]["warnings"].append({"warning": ECC, "error_severity": 2})
    both = verdict(said(four(software, memory), rc=226))
    assert (both.status, both.summary) == ("fail", f"{SECOND}: software: {ECC}")
    assert verdict(said(four(memory, test("pcie", "Pass", "Warn")))).summary == f"{SECOND}: pcie: status warn"


def test_documents_of_dcgm_3() -> None:
    deployment = {"name": "Denylist", "results": [{"status": "Pass"}]}
    pcie: dict[str, Any] = {"name": "PCIe", "results": [{"gpu_id": "0", "status": "PASS"}]}
    head = {"version": "3.3.1", "driver_version_detected": "545.23.08"}
    root = {**head, "test_categories": [{"category": "Deployment", "tests": [deployment, None, pcie]}]}
    found = verdict(said({"DCGM GPU Diagnostic": root}))
    assert found.status == "pass" and "(DCGM 3.3.1): Denylist, PCIe" in found.summary
    pcie["results"].append({"gpu_id": "1", "status": "Fail", "warnings": "Too many replays"})
    assert verdict(said({"DCGM GPU Diagnostic": root})).summary == f"{SECOND}: PCIe: Too many replays"
    pcie["results"] = [{"gpu_ids": "0,1", "status": "Fail", "warnings": ["A plain text"]}]
    assert verdict(said({"DCGM GPU Diagnostic": root})).summary == "DCGM GPU 0,1: PCIe: A plain text"


def test_what_only_the_summary_says_counts() -> None:
    failed = test("memory", "Pass", "Pass") | {"test_summary": {"status": "Fail", "warnings": [{"warning": "broken"}]}}
    assert verdict(said(four(failed))).summary == "memory: broken"
    switch = test("nvlink", "Pass", "Pass", entity_group="Switch", status="Fail", warnings=[{"warning": "down"}])
    assert verdict(said(four(switch, PASSED))).summary == "Switch 1: nvlink: down"


@pytest.mark.parametrize(
    ("out", "rc", "says"),
    [
        ({"DCGM Diagnostic": {"runtime_error": "Error: DCGM is paused.", "version": "4.5.2"}}, 213, "DCGM is paused"),
        ("Error: unable to establish a connection to the specified host: localhost", 1, "printed no result: Error: un"),
        ("", 1, "printed no result: nothing"),
        ({"something": "else"}, 0, "printed no result"),
        (four(PASSED), 124, "did not end in time"),
        (four(PASSED), 226, "exit 226, although no test failed"),
        (four(test("software", "Pass", "Not Run")), 0, f"{SECOND}: software: status not run"),
        (four(test("software", "Pass")), 0, f"{SECOND}: DCGM did not test it"),
        (four(test("software", "Skip", "Skip")), 0, f"{FIRST}: DCGM did not test it (and 1 more)"),
        (four(), 0, "DCGM did not test it"),
    ],
)
def test_no_verdict_is_not_a_pass(out: object, rc: int, says: str) -> None:
    found = verdict(said(out, rc))
    assert found.status == "unknown" and says in found.summary, found


def test_errors_that_the_driver_counted_meanwhile_fail() -> None:
    passed = four(test("memory", "Pass", "Pass"))
    found = verdict(said(passed, after=(0, CARDS[:-2] + "3\n"), xids=(0, "NVRM: Xid (PCI:0000:00:07): 48, pid=1\n")))
    assert found.evidence == "1 new Xid in the kernel log: NVRM: Xid (PCI:0000:00:07): 48, pid=1"
    assert found.status == "fail"
    assert found.summary == f"{SECOND}: 3 uncorrected memory errors during the diagnostic (and 1 more)"


def test_a_gpu_that_is_lost_meanwhile_fails() -> None:
    found = verdict(said(four(PASSED), after=(15, "")))
    assert (found.status, found.summary) == ("fail", f"{FIRST}: nvidia-smi after the load: exit 15 (and 1 more)")


def test_only_and_skip_hold_for_the_diagnostic() -> None:
    spec = NodeSpec.model_validate({"dcgm": {"diag": 3}})
    assert [chosen_level(spec, names) for names in (None, {"dcgm"}, {"docker"})] == [3, 3, None]


def test_why_it_did_not_run() -> None:
    assert verdict(None).summary == "dcgm.diag is not set" and verdict(None).status == "skip"
    mig = verdict(diagnosis({"before": (0, CARDS.replace("Disabled", "Enabled", 1))}))
    assert mig.status == "skip" and "MIG is on" in mig.summary
    busy = verdict(diagnosis({"busy": (1, "process python (pid 7)\nSlurm job 8\n")}))
    assert busy.status == "unknown" and busy.summary.endswith("in use by process python (pid 7), Slurm job 8")
    assert verdict(diagnosis({"refused": (1, "dcgmi is not on this node\n")})).status == "unknown"
    assert verdict(diagnosis({})).summary == "nvidia-smi lists no GPU"
    waiver = {"check": "dcgm.diag", "reason": "known", "until": "2099-01-01"}
    assert verdict(Diagnosis(unknown="x"), verify={"waive": [waiver]}).status == "warn"


WORDS = st.sampled_from(["Pass", "Fail", "Skip", "GPU"])
KEYS = st.sampled_from(["test_categories", "tests", "results", "name", "status", "warnings", "warning", "gpu_ids"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=30,
)


@given(JSON, st.text(max_size=200))
def test_no_answer_of_a_node_is_an_error(document: object, table: str) -> None:
    for out in (document, {"DCGM Diagnostic": document}, {"DCGM Diagnostic": {"test_categories": document}}):
        assert verdict(said(json.dumps(out), table=table)).status in ("fail", "warn", "unknown", "pass")


@pytest.mark.parametrize(
    "out", ["[" * 200_000, '{"DCGM Diagnostic": ' + "[" * 400 + "]" * 400 + "}", '{"a": ' + "9" * 500_000 + "}"]
)
def test_a_hostile_document_is_refused(out: str) -> None:
    assert verdict(said(out)).status == "unknown"


@pytest.mark.parametrize("level", ["0", "5", "high"])
def test_levels_are_1_to_4(level: str) -> None:
    with pytest.raises(SpecErrors, match=r"dcgm\.diag.*1 \(seconds\)"):
        load_hosts(["a,"], extra=[Extra(f"dcgm.diag={level}", "-e")])

"""JUnit: what CI servers read is well formed on every way out, and fails exactly where the exit code does."""

from pathlib import Path

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from gpuready.cli.parts import parts
from gpuready.result.document import document, read
from gpuready.result.junit import junit, suites
from tests.report.test_report_runs import CODES, COUNTED, LOST, host, run, sample
from tests.report.test_results_recorded import RECORDED, recorded


def parsed(name: str, tmp_path: Path) -> JUnitXml:
    """The sample's document as junitparser reads it from a file."""
    path = tmp_path / "report.xml"
    path.write_text(junit(sample(name), CODES[name]), "utf-8")
    return JUnitXml.fromfile(str(path))


def cases(xml: JUnitXml) -> list[TestCase]:
    """All cases of all suites."""
    return [case for suite in xml for case in suite]


def suite(xml: JUnitXml, name: str) -> dict[str, TestCase]:
    """The cases of one host by ``component docker`` or ``check libcuda.stub``."""
    found: TestSuite = next(s for s in xml if s.name == name)
    return {f"{case.classname.rpartition('.')[2]} {case.name}": case for case in found}


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_it_parses_and_agrees_with_the_exit_code(name: str, code: int, tmp_path: Path) -> None:
    xml = parsed(name, tmp_path)
    bad = [r for case in cases(xml) for r in case.result if isinstance(r, (Failure, Error))]
    assert bool(bad) == (code not in (0, 7))
    assert all(r.message for r in bad)
    assert xml.tests == len(cases(xml)) > 0
    assert xml.failures == sum(isinstance(r, Failure) for r in bad)
    assert xml.errors == sum(isinstance(r, Error) for r in bad)


@pytest.mark.parametrize("name", CODES)
def test_a_suite_for_each_host(name: str, tmp_path: Path) -> None:
    hosts = [host.name for host in sample(name).hosts]
    whole = ["gpuready"] if not hosts or name == "interrupted-late" else []
    assert [s.name for s in parsed(name, tmp_path)] == whole + hosts


def test_it_names_what_happened(tmp_path: Path) -> None:
    found = suite(parsed("failed", tmp_path), "gpu01")
    assert found["component toolkit"].is_passed
    failure = found["component docker"].result[0]
    assert isinstance(failure, Failure) and "the former daemon.json was put back" in failure.text
    assert "docker.live-restore: false -> true" in found["component docker"].system_out
    assert isinstance(suite(parsed("failed", tmp_path), "gpu02")["component docker"].result[0], Skipped)


def test_what_was_not_judged_is_skipped_with_a_reason(tmp_path: Path) -> None:
    found = suite(parsed("converged", tmp_path), "lab1")
    assert found["component docker"].result[0].message == "no Docker on this node"
    assert found["check driver.loaded"].result[0].message == "no NVIDIA GPU on this node"
    pending = suite(parsed("pending", tmp_path), "gpu01")["component docker"].result[0]
    assert isinstance(pending, Skipped) and pending.message.startswith("pending: until idle")


def test_unknown_is_an_error_and_fail_a_failure_in_verify(tmp_path: Path) -> None:
    found = suite(parsed("differs", tmp_path), "gpu01")
    assert isinstance(found["check gpu.count"].result[0], Error)
    assert isinstance(found["check libcuda.stub"].result[0], Failure)
    assert "/usr/local/cuda/lib64/stubs/libcuda.so" in found["check libcuda.stub"].system_out
    assert isinstance(found["component docker"].result[0], Failure)


def test_what_another_check_explains_does_not_fail_beside_it(tmp_path: Path) -> None:
    found = suite(parsed("lost", tmp_path), "gpu01")
    assert isinstance(found["check gpu.count"].result[0], Failure)
    for id, says in (("libcuda.init", "CUDA sees 7 of 8 GPUs"), ("docker.smoke", "a container has 7 of 8 GPU")):
        (result,) = found[f"check {id}"].result
        assert isinstance(result, Skipped) and result.message.startswith(f"because of gpu.count: {says}")


def test_unreachable_is_an_error_of_the_host(tmp_path: Path) -> None:
    error = suite(parsed("unreachable", tmp_path), "gpu04")["host host"].result[0]
    assert isinstance(error, Error) and error.type == "unreachable"
    left_out = suite(parsed("unreachable", tmp_path), "gpu05")["host host"].result[0]
    assert isinstance(left_out, Error) and left_out.message == "not attempted"


@pytest.mark.parametrize("name", [*CODES, *RECORDED])
def test_a_host_has_failed_exactly_if_a_case_of_it_fails(name: str) -> None:
    """The Ansible fact has both: ``failed``, and what is wrong in words."""
    made, code = (sample(name), CODES[name]) if name in CODES else read(recorded(name), parts())
    wrong = {each.name for each in suites(made) if any(case.kind in ("failure", "error") for case in each.cases)}
    hosts = document(made, code)["hosts"]
    assert {host for host, found in hosts.items() if found["failed"]} == wrong & hosts.keys()


def test_failed_includes_the_checks_and_outcome_does_not() -> None:
    lost = document(run("verify", host("gpu01", checks=(LOST,)), host("gpu02", checks=(COUNTED,))), 3)["hosts"]
    assert {name: (found["outcome"], found["failed"]) for name, found in lost.items()} == {
        "gpu01": ("ok", True), "gpu02": ("ok", False),
    }  # fmt: skip
    assert not document(run("plan", host("gpu01", checks=(LOST,))), 0)["hosts"]["gpu01"]["failed"]  # a plan only shows

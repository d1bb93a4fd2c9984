"""``pytest --gpuready-inventory``: each case of gpuready's JUnit report is one of pytest's, with the same result."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from gpuready.model.state import NodeState
from tests.command import gpuready, python, write_hosts, write_states
from tests.pages import ROOT

pytestmark = pytest.mark.long

RECORDED = ROOT / "tests/data/h200-mounted-driver/state.json"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with an inventory, whose host is recorded, and a test of somebody's own."""
    write_hosts(tmp_path, "all: {hosts: {gpu01: {gpuready: {hardware: {gpus: 8}}}, other: {}}}\n")
    write_states(tmp_path / "states.json", {"gpu01": NodeState.model_validate_json(RECORDED.read_bytes())})
    (tmp_path / "test_own.py").write_text("def test_own(): pass\n")
    return tmp_path


def ran(place: Path, *argv: str) -> CompletedProcess[str]:
    return python("-m", "pytest", "-p", "gpuready.pytest", "--rootdir", place, *argv, cwd=place)


def of_inventory(place: Path, *argv: str) -> CompletedProcess[str]:
    return ran(place, "--gpuready-inventory", "hosts.yaml", "--gpuready-arguments", "--state states.json", *argv)


def cases(path: Path) -> list[tuple[str, str, str]]:
    """Host, name and what is in the element, in order."""
    found = []
    for case in ET.parse(path).getroot().iter("testcase"):
        kind = next((each.tag for each in case if each.tag in ("failure", "error", "skipped")), "passed")
        host = case.attrib["classname"].removeprefix("gpuready.").split(".")[0]
        found.append((host, case.attrib["name"], kind.replace("error", "failure")))
    return found


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_cases_are_those_of_the_junit_report(workers: str, place: Path) -> None:
    done = of_inventory(place, "-m", "gpuready", "-n", workers, "--junitxml", "pytest.xml")
    assert gpuready(
        "verify", "-i", "hosts.yaml", "--state", "states.json", "--output", "junit:gpuready.xml", cwd=place
    ).returncode == 3  # fmt: skip
    wanted = cases(place / "gpuready.xml")
    assert done.returncode == 1 and sorted(cases(place / "pytest.xml")) == sorted(wanted)
    assert ("gpu01", "gpu.count", "failure") in wanted and ("other", "host", "skipped") in wanted
    # A warning passes, and its text is in pytest's summary.
    assert ("gpu01", "driver.floor", "passed") in wanted and " 1 warning" in done.stdout
    assert re.search(r"PytestWarning: \S+ has known security faults", done.stdout)
    # Summary, fix and evidence of a failure, each once.
    text = done.stdout.partition(" gpu01: gpu.count ")[2].partition("\n____")[0].splitlines()[-3:]
    assert [line[:16] for line in text] == ["1 of 8 GPUs seen", "look for XID 79 ", "00000000:00:06.0"]


def test_each_line_names_host_and_check(place: Path) -> None:
    lines = of_inventory(place, "-m", "gpuready", "-k", "gpu01 and docker.config", "-v").stdout.splitlines()
    assert [line.split()[0] for line in lines if "%]" in line] == ["gpuready::gpu01::docker.config"]


def test_options_choose_among_the_checks_and_other_tests(place: Path) -> None:
    for options, count in (
        (("-k", "gpu01 and docker.config"), 1),
        (("-m", "gpuready", "-k", "host"), 2),
        (("-m", "not gpuready"), 1),
    ):
        done = of_inventory(place, "--collect-only", "-q", *options)
        chosen = [line for line in done.stdout.splitlines() if "::" in line]
        assert (done.returncode, len(chosen)) == (0, count), done.stdout


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_that_could_not_be_done_is_a_usage_error(workers: str, place: Path) -> None:
    done = ran(place, "--gpuready-inventory", "absent.yaml", "-n", workers)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "gpuready verify: absent.yaml: no such inventory" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"), [("--limit 'gpu01", "No closing quotation"), ("--passive --help", "and no result document")]
)
def test_arguments_that_are_wrong_are_a_usage_error(words: str, message: str, place: Path) -> None:
    done = ran(place, "--gpuready-inventory", "hosts.yaml", "--gpuready-arguments", words)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert re.search(f"gpuready verify: .*{message}", done.stderr) and "Traceback" not in done.stderr, done.stderr


def test_an_unreachable_host_fails(place: Path) -> None:
    words = "-e ansible_host=127.0.0.1 -e ansible_port=1"
    done = ran(place, "--gpuready-inventory", "gpu01,", "--gpuready-arguments", words, "-m", "gpuready")
    assert done.returncode == 1 and "FAILED gpuready::gpu01::host" in done.stdout, done.stdout
    assert "127.0.0.1:1: connection refused" in done.stdout


def test_without_the_option_nothing_else_is_imported(place: Path) -> None:
    code = "import pytest, sys; pytest.main(['-p', 'gpuready.pytest'])\n"
    code += "print(*sorted(name for name in sys.modules if name.split('.')[0] == 'gpuready'))"
    assert python("-c", code, cwd=place).stdout.splitlines()[-1] == "gpuready gpuready.pytest"

"""The action for GitHub and the template for GitLab: their own scripts run, on the recorded state of an H200 node."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
STATE = ROOT / "tests/data/h200-mounted-driver/state.json"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with an inventory, and with gpuready where the scripts expect it."""
    (tmp_path / "hosts.yaml").write_text("all: {hosts: {h200: {gpuready: {hardware: {gpus: 2}}}}}\n")
    for name in ("gpuready", ".gpuready"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin/gpuready").symlink_to(Path(sys.executable).parent / "gpuready")
    return tmp_path


def run(place: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=place, env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_action_annotates_and_keeps_the_exit_code(place: Path) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    install, verify = action["runs"]["steps"]
    assert "$GITHUB_ACTION_PATH" in install["run"]
    assert verify["env"] == {"INVENTORY": "${{ inputs.inventory }}", "ARGUMENTS": "${{ inputs.arguments }}"}
    done = run(
        place, verify["run"], RUNNER_TEMP=str(place), GITHUB_OUTPUT=str(place / "output"),
        INVENTORY="hosts.yaml", ARGUMENTS=f"--state {STATE} --skip repository",
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    assert "::error " in done.stdout and "NOT OK: 1 host" in done.stdout
    report = Path((place / "output").read_text().removeprefix("report=").strip())
    assert report.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_the_gitlab_template_writes_what_it_declares(place: Path) -> None:
    job = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text("utf-8"))["gpuready-verify"]
    variables = job["variables"] | {"GPUREADY_ARGUMENTS": f"--state {STATE} --skip repository"}
    done = run(place, job["script"][-1], **variables)
    assert done.returncode == 3, done.stdout + done.stderr
    reports = job["artifacts"]["reports"]
    assert [entry["check_name"] for entry in json.loads((place / reports["codequality"]).read_text())]
    assert ET.parse(place / reports["junit"]).getroot().get("failures") != "0"
    assert (place / job["artifacts"]["paths"][0]).stat().st_size > 1000

"""The action for GitHub and the template for GitLab: their own scripts run, on the recorded state of an H200 node."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from gpuready.verbs.render import cloud_init

ROOT = Path(__file__).parents[2]
STATE = ROOT / "tests/data/h200-mounted-driver/state.json"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with an inventory, and with gpuready where the scripts expect it; its words and key are saved."""
    (tmp_path / "hosts.yaml").write_text("all: {hosts: {h200: {gpuready: {hardware: {gpus: 2}}}}}\n")
    for program, words in (("gpuready/bin/python", ""), (".gpuready/bin/gpuready", "-I -m gpuready")):
        (tmp_path / program).parent.mkdir(parents=True)
        saved = 'echo "$*" >words; [ ! -e gpuready.key ] || cp -p gpuready.key copied.key'
        (tmp_path / program).write_text(f'#!/bin/sh\n{saved}\nexec {sys.executable} {words} "$@"\n')
        (tmp_path / program).chmod(0o755)
    (tmp_path / "yaml.py").write_text("raise SystemExit('this is not the module yaml')\n")
    return tmp_path


def run(place: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=place, env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("key", ["", "-----BEGIN KEY-----\nx\n-----END KEY-----"], ids=["none", "key"])
def test_the_action_annotates_and_keeps_the_exit_code(key: str, place: Path) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    install, verify = action["runs"]["steps"]
    assert '--require-hashes -r "$GITHUB_ACTION_PATH/requirements.txt"' in install["run"]
    given = {name.upper().replace("-", "_"): f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}
    assert verify["env"] == given and {*given} == {"INVENTORY", "ARGUMENTS", "SSH_KEY"}
    variables = {"RUNNER_TEMP": place, "GITHUB_OUTPUT": place / "output", "GITHUB_STEP_SUMMARY": place / "summary"}
    variables |= {"INVENTORY": "hosts.yaml", "ARGUMENTS": f"--state {STATE} --skip repository", "SSH_KEY": key}
    done = run(place, verify["run"], **{name: str(value) for name, value in variables.items()})
    assert done.returncode == 3, done.stdout + done.stderr
    summary = (place / "summary").read_text().splitlines()
    assert all(line.startswith("    ") for line in summary) and "NOT OK: 1 host" in summary[-1]
    # The key is in a file of its own, which goes with the step.
    assert ((place / "copied.key").exists(), "ansible_ssh_private_key_file" in (place / "words").read_text()) == (
        (bool(key), bool(key))
    )
    if key:
        assert (place / "copied.key").read_text() == f"{key}\n"
        assert (place / "copied.key").stat().st_mode & 0o777 == 0o600 and not (place / "gpuready.key").exists()
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
    assert "ansible_ssh_private_key_file" not in (place / "words").read_text()
    run(place, job["script"][-1], **variables | {"GPUREADY_SSH_KEY": "/builds/a b/key"})
    assert "verify -e ansible_ssh_private_key_file=/builds/a b/key --state" in (place / "words").read_text()
    assert (place / job["artifacts"]["paths"][0]).stat().st_size > 1000


@pytest.mark.parametrize(
    ("package", "pinned"),
    [
        (f"https://x.example/gpuready-1-py3-none-any.whl#sha256={'a' * 64}", True),
        (f"https://x.example/gpuready-1-py3-none-any.whl?token=b#sha256={'a' * 64}", True),
        (f"git+https://user@x.example/gpuready.git@{'a' * 40}", True),
        ("", False),
        ("gpuready", False),
        ("gpuready==0.1.0", False),
        ("https://x.example/gpuready-1-py3-none-any.whl", False),
        (f"https://x.example/gpuready-1-py3-none-any.whl#sha256={'a' * 63}", False),
        (f"https://x.example/gpuready-1-py3-none-any.whl#md5={'a' * 64}", False),
        (f"http://x.example/gpuready-1-py3-none-any.whl#sha256={'a' * 64}", False),
        ("git+https://x.example/gpuready.git@v1", False),
        (f"git+https://x.example/gpuready.git@{'a' * 7}", False),
        (f"--index-url=https://x.example gpuready@{'a' * 40}", False),
    ],
)
@pytest.mark.fault("foreign-package")
def test_what_is_installed_is_named_by_its_content(package: str, pinned: bool, tmp_path: Path) -> None:
    """By ``render cloud-init``, and by the template, which else ends before it makes the environment."""
    assert cloud_init.is_pinned(package) is pinned
    install = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text("utf-8"))["gpuready-verify"]["script"][0]
    check, made, _ = install.partition("python3 -m venv")
    assert made
    done = run(tmp_path, f"{check}echo installs", GPUREADY_PACKAGE=package)
    assert (done.returncode, done.stdout) == ((0, "installs\n") if pinned else (64, "")), done.stderr
    assert pinned or f'GPUREADY_PACKAGE is "{package}"' in done.stderr


def test_the_templates_name_no_package_that_an_index_could_answer_for() -> None:
    job = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text("utf-8"))["gpuready-verify"]
    assert job["variables"]["GPUREADY_PACKAGE"] == "" and cloud_init.PINNED in job["script"][0]
    files = [path for part in ("docs", "templates", "deploys") for path in (ROOT / part).rglob("*.*")]
    files += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "action.yml", "ci/gitlab.yml")]
    texts = {str(path): path.read_text("utf-8") for path in files if path.suffix in (".j2", ".md", ".py", ".yml")}
    asked = re.compile(r"(pipx?|uv tool|uv pip) install (-\S+ )*[\"']?gpuready\b(?!/)")
    assert [name for name, text in texts.items() if asked.search(text)] == []


def test_the_workflow_pins_its_actions_and_may_only_read() -> None:
    text = (ROOT / ".github/workflows/test.yml").read_text("utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    uses = re.findall(r"uses: (.*)", text)
    assert uses and [line for line in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", line)] == []
    privileged = [job for job in workflow["jobs"].values() if "--privileged" in str(job)]
    own = "github.event_name == 'push' || github.event.pull_request.head.repo.full_name == github.repository"
    assert [job.get("if") for job in privileged] == [own]

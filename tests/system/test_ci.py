"""The action for GitHub on a test machine, with host keys in a file and the SSH key from a secret."""

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

from tests.command import gpuready
from tests.pages import ROOT, blocks, commands
from tests.secure import Signer
from tests.system.host import Hosts

PAGE = ROOT / "docs/guides/ci.md"


def test_the_action_verifies_with_pinned_host_keys_and_a_key(shared: Hosts, tmp_path: Path) -> None:
    node = shared()
    node.apply()
    (tmp_path / "gpuready/bin").mkdir(parents=True)
    (tmp_path / "gpuready/bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "gpuready/bin/python").chmod(0o755)
    inventory = yaml.safe_load(node.where().read_text("utf-8"))
    mine = inventory["all"]["vars"]
    key = Path(mine.pop("ansible_ssh_private_key_file")).read_text()
    (guide,) = (text for text in blocks(PAGE, "yaml") if "known_hosts" in text)
    mine["ansible_ssh_common_args"] = yaml.safe_load(guide)["all"]["vars"]["ansible_ssh_common_args"]
    (tmp_path / "hosts.yaml").write_text(yaml.safe_dump(inventory))
    (trust,) = (each for each in commands(PAGE) if each.argv[:1] == ["trust"])

    home = {**os.environ, "HOME": str(tmp_path / "home"), "SSH_AUTH_SOCK": ""}
    assert gpuready(*trust.argv, "--yes", cwd=tmp_path, env=home).returncode == 0
    assert node.address in (tmp_path / "known_hosts").read_text()
    step = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"][1]["run"]
    home |= {"RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "output")}
    home |= {"ARGUMENTS": "--output intoto:evidence.json"}
    home |= {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "INVENTORY": "hosts.yaml", "SSH_KEY": key}

    def run() -> subprocess.CompletedProcess[str]:
        words = ["bash", "-e", "-o", "pipefail", "-c", step]
        return subprocess.run(words, cwd=tmp_path, env=home, capture_output=True, text=True, check=False)

    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 GPU checks" in (tmp_path / "summary").read_text()

    signer = Signer(tmp_path, "ci")
    signer.beside(tmp_path / "evidence.json", "gpuready-result")
    report = ("report", "evidence.json", "--check-signature", signer.allowed, "-i", "hosts.yaml", "--max-age", "1d")
    done = gpuready(*report, cwd=tmp_path)
    assert done.returncode == 0 and "evidence.json: signed by ci@example.com" in done.stderr, done.stderr
    found = json.loads((tmp_path / "evidence.json").read_text())
    assert [each["name"] for each in found["subject"]] == [node.name] and found["predicate"]["result"] == "WARNED"
    assert f"{node.name}.component.docker" in found["predicate"]["passedTests"]
    inventory["all"]["vars"]["gpuready"] = {**mine["gpuready"], "hardware": {"gpus": 8}}
    (tmp_path / "hosts.yaml").write_text(yaml.safe_dump(inventory))
    done = gpuready(*report, cwd=tmp_path)
    assert done.returncode == 5 and f"{node.name} was verified with another spec" in done.stderr, done.stderr

    (tmp_path / "known_hosts").write_text("")
    done = run()
    assert done.returncode == 4 and "::error " in done.stdout, done.stdout + done.stderr

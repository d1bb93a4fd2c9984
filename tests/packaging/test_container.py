"""The image, the execution environment that is made of it, and AWX's job template, as their own tools read them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests import release
from tests.pages import ROOT, blocks
from tests.playbooks import PAGE

BIN = Path(sys.executable).parent
CONTAINERFILE = (ROOT / "Containerfile").read_text("utf-8")


def test_the_containerfile_has_no_findings() -> None:
    program = shutil.which(str(BIN / "hadolint")) or "hadolint"
    found = subprocess.run([program, "-"], input=CONTAINERFILE, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")
    assert re.findall(r"^USER .*", CONTAINERFILE, re.M) == ["USER 1000"]


@pytest.mark.parametrize(("base", "made", "code"), [((), False, 0), (("BASE",), True, 0), (("BASE",), False, 1)])
def test_a_release_without_its_image_fails(
    base: tuple[str, ...], made: bool, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ./dev release makes of its parts; none of them is made here."""

    def packages(source: Path, out: Path) -> None:
        source.mkdir()
        (source / "requirements.txt").touch()
        (out / "gpuready.whl").touch()

    monkeypatch.setattr(release, "packages", packages)
    for name, value in {
        "_git": "0",
        "install": None,
        "zipapp": None,
        "sbom": {},
        "index": None,
        "image": (made, ""),
    }.items():
        monkeypatch.setattr(release, name, lambda *_, value=value: value)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "")
    monkeypatch.setattr(os, "umask", lambda _: None)
    assert release.main([str(tmp_path / "dist"), *base]) == code
    assert "gpuready.whl" in (tmp_path / "dist" / "SHA256SUMS").read_text()


def test_ansible_builder_makes_an_execution_environment_of_the_image(tmp_path: Path) -> None:
    words = ("create", "-f", ROOT / "execution-environment.yml", "-c", tmp_path, "--output-filename", "Containerfile")
    done = subprocess.run([BIN / "ansible-builder", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    made = (tmp_path / "Containerfile").read_text()
    python = re.search(r'^ARG PYCMD="(.*)"$', made, re.M)
    assert python and f"python3 -m venv {Path(python[1]).parents[1]}" in CONTAINERFILE
    assert "\nUSER 1000\n" in made and '\nARG PKGMGR_PRESERVE_CACHE="always"\n' in made
    (collection,) = yaml.safe_load((tmp_path / "_build/requirements.yml").read_text())["collections"]
    named = yaml.safe_load((tmp_path / "_build" / collection["source"] / "galaxy.yml").read_text())
    assert collection["type"] == "dir" and (named["namespace"], named["name"]) == ("gpuready", "node")


def test_the_job_template_fits_its_playbook() -> None:
    """The guide's playbooks: one that sets AWX up, and the one that its job template runs."""
    plays = [play for text in blocks(PAGE, "yml") for play in yaml.safe_load(text)]
    (setup,) = (play for play in plays if any("awx.awx.job_template" in task for task in play.get("tasks", ())))
    tasks = {module: task[module] for task in setup["tasks"] for module in task if module.startswith("awx.awx.")}
    template = tasks["awx.awx.job_template"]
    assert template["execution_environment"] == tasks["awx.awx.execution_environment"]["name"]
    assert template["inventory"] == tasks["awx.awx.inventory_source"]["inventory"] == tasks["awx.awx.inventory"]["name"]
    assert template["playbook"] in PAGE.read_text("utf-8") and template["job_type"] == "run"
    (verify,) = (play for play in plays if "gpuready_inventory" in play.get("vars", {}))
    assert verify["roles"] == ["gpuready.node.verify"]
    assert verify["vars"]["gpuready_inventory"] == tasks["awx.awx.inventory_source"]["source_path"]

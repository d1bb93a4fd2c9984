"""The README's quick start and the tutorial: their commands, in order, on a pristine machine, print what they show."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.lab import Machine
from tests.lab.fixtures import MachineFactory
from tests.pages import ROOT, commands, matches

pytestmark = pytest.mark.promise

NAME = "gpu01.example.com"
#: These ask on a terminal, as the pages say; a test has none.
ASKING = ("trust", "apply", "remove")


def inventory(node: Machine) -> str:
    """As on the pages, but for what a test machine needs: an address, its key, and the lab's repository; no GPU."""
    settings = yaml.safe_load(node.inventory(runtimes={"containerd": "auto"}).read_text("utf-8"))
    del settings["all"]["vars"]["gpuready"]["verify"]  # which names an image; the pages name none
    del settings["all"]["vars"]["ansible_ssh_common_args"]  # which names the lab's known_hosts: `trust` has to store
    settings["all"]["hosts"] = {NAME: {"ansible_host": node.address}}
    return yaml.safe_dump(settings)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_its_commands_do_what_the_page_shows(page: str, machine: MachineFactory, tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text(inventory(machine()))
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (tmp_path / "home").mkdir()
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    # Without an inventory, the lab's repository could not be named.
    ours = [each for each in commands(ROOT / page) if each.line.startswith("gpuready ") and "-i ops@" not in each.line]
    assert {"trust", "plan", "apply", "verify"} <= {command.argv[0] for command in ours}
    for command in ours:
        yes = ["--yes"] if command.argv[0] in ASKING and "--dry-run" not in command.argv else []
        words = [sys.executable, "-c", "from gpuready.cli.main import main; main()", *command.argv, *yes]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        seen = f"{command.line}\n{done.stderr}{done.stdout}"
        assert done.returncode == 0, seen
        shown = command.shown
        counts = re.findall(r"\d+ (?:changes|differences|checks passed)", shown)
        assert all(count in seen for count in counts), (counts, seen)
        assert matches(shown, done.stdout, like=True) or matches(shown, done.stderr + done.stdout, like=True), seen

"""ansible-core with gpuready's collection, which is built and installed as the guide says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from tests.lab import scale
from tests.pages import ROOT, commands

BIN = Path(sys.executable).parent
PAGE = ROOT / "docs/guides/playbook.md"


class Ansible:
    """The commands of ansible-core, in a folder that has the collection."""

    def __init__(self, folder: Path) -> None:
        """Build and install the collection there."""
        self.folder = folder
        own = {name: text for name, text in os.environ.items() if not name.startswith(("ANSIBLE_", "GPUREADY_"))}
        self.env = {**own, "ANSIBLE_HOME": str(folder), "ANSIBLE_NOCOLOR": "1"}
        self.env["ANSIBLE_CONFIG"] = str(folder / "ansible.cfg")
        (folder / "ansible.cfg").touch()
        self.env["ANSIBLE_COLLECTIONS_PATH"] = str(folder / "collections")
        self.env["PATH"] = f"{BIN}:{os.environ['PATH']}"
        (folder / "collection").symlink_to(ROOT / "collection")
        for each in commands(PAGE):
            *words, last = each.line.split()
            self(*words, *(folder.glob(last) if "*" in last else [last]))

    def __call__(self, *words: object, code: int = 0) -> str:
        """What a command prints, which ends with this exit code."""
        program, *rest = map(str, words)
        done = subprocess.run(
            [BIN / program, *rest],
            cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=scale.seconds(600),
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def play(self, play: dict[str, object], *words: str, code: int = 0) -> str:
        """Run a play on all hosts of the inventory."""
        (self.folder / "play.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, **play}]))
        return self("ansible-playbook", "-i", "hosts.yaml", "play.yml", *words, code=code)


def recap(output: str) -> dict[str, tuple[str, str]]:
    """By host: how many tasks changed it, and how many failed."""
    found = re.findall(r"^(\S+) +: .*changed=(\d+) .*failed=(\d+)", output, re.M)
    return {name: (changed, failed) for name, changed, failed in found}

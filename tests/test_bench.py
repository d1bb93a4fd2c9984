"""The benchmark of other tools: what it asks of them, what it counts, and its page."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.bench.page import PAGE
from tests.bench.report import ratio, renewed
from tests.bench.wanted import Held, Output, playbook, wanted

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["", "peers", "page", "fleet", "startup"])
def test_each_benchmark_has_a_help(name: str) -> None:
    words = [sys.executable, "-m", "tests.bench", *name.split(), "--help"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"usage: ./dev bench {name}".rstrip())


def test_the_page_shows_its_figures() -> None:
    documents = json.loads(PAGE.with_suffix(".json").read_text("utf-8"))
    assert renewed(PAGE.read_text("utf-8"), documents) == PAGE.read_text("utf-8")
    assert len(documents[0]["runs"]) > 10


def test_a_ratio_is_one_of_figures_of_the_same_round() -> None:
    walls = {"gpuready": [1, 2, 4], "pyinfra": [3, 8], "Ansible": []}
    runs = [{"tool": tool, "round": at, "wall": wall} for tool, row in walls.items() for at, wall in enumerate(row)]
    assert ratio(runs, "pyinfra", "gpuready", "wall") == 3.5
    assert ratio(runs, "Ansible", "gpuready", "wall") is None


def test_every_tool_gets_at_least_30_operations() -> None:
    items = wanted("1.2.3-1")
    assert len([item for item in items if not isinstance(item, Held | Output)]) >= 30
    (play,) = yaml.safe_load(yaml.safe_dump(playbook(items, Path("/files"))))
    assert [task["name"] for task in play["tasks"]] == list(map(str, items))


_LEFT_BEHIND = """
import sys
from pathlib import Path
from tests.bench.measure import measured
from tests.lab.host import LabError

work = "import os, time; sum(range(10**7)); kept = bytes([7]) * (300 << 20); os.close(1); time.sleep(1000)"
cost = measured(["sh", "-c", f'(setsid "$0" -c "{work}" &) | cat', sys.executable], {}, Path("/"), 100)
print(cost.cpu > 0.05, cost.memory > 300e6, cost.output)
try:
    measured(["sh", "-c", "echo because; exit 3"], {}, Path("/"), 100)
except LabError as e:
    print("exit 3" in str(e) and "because" in str(e))
"""


def test_processes_that_outlive_a_command_count_and_are_ended() -> None:
    """In a process of its own, which becomes the parent of what is left."""
    words = [sys.executable, "-c", _LEFT_BEHIND]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["True", "True", "True"], done.stdout + done.stderr

"""The examples of the guide for many hosts: each one's shards run, and its last job joins them, on recorded states."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from gpuready.model.state import NodeState
from tests.command import write_states
from tests.pages import ROOT, blocks, commands, matches
from tests.verbs.render.test_kubernetes import KUBERNETES

pytestmark = pytest.mark.long

PAGE = ROOT / "docs/guides/fleets.md"
GITHUB, GITLAB, JOB, SLICES, PLAYBOOK = map(yaml.safe_load, blocks(PAGE, "yml"))
#: With three shards, the racks a, b and c are one each.
RACKS = {"gpu01": "a", "gpu02": "b", "gpu03": "c", "gpu04": "a"}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory with an inventory, and a gpuready that reads recorded states. The last result must have all hosts."""
    spec = {"maintenance": {"spread_by": "rack"}}
    hosts = {name: {"rack": rack, "gpuready": spec} for name, rack in RACKS.items()}
    for name in ("hosts.yaml",):
        (tmp_path / name).write_text(json.dumps({"all": {"hosts": hosts}}))
    recorded = NodeState.model_validate_json((ROOT / "tests/data/h200-mounted-driver/state.json").read_bytes())
    write_states(tmp_path / "states.json", dict.fromkeys(RACKS, recorded))
    program = tmp_path / "bin/gpuready"
    program.parent.mkdir()
    ours = f'exec {sys.executable} -m gpuready "$@"'
    program.write_text(f"#!/bin/sh\n[ $1 != report ] || {ours} --output json:whole.json\n{ours} --state states.json\n")
    program.chmod(0o755)
    yield tmp_path
    whole = json.loads((tmp_path / "whole.json").read_text())
    outcomes = [(name, host["outcome"]) for name, host in whole["hosts"].items()]
    assert (whole["exit_code"], outcomes) == (3, [(name, "would_change") for name in RACKS])


def sh(place: Path, script: str, code: int = 3, **variables: object) -> str:
    env = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", **{k: str(v) for k, v in variables.items()}}
    done = subprocess.run(
        ["sh", "-ec", script], cwd=place, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_on_one_machine(place: Path) -> None:
    *parts, merge = [each.line for each in commands(PAGE) if "shard-" in each.line and each.line.startswith("gpuready")]
    for line in parts:
        sh(place, line)
    sh(place, merge)
    assert (place / "gpuready.xml").exists()
    (plan,) = [each for each in commands(PAGE) if each.argv[0] == "plan"]
    assert matches(plan.shown, sh(place, plan.line, 0))


def test_github(place: Path) -> None:
    shard, report = GITHUB["jobs"]["shard"], GITHUB["jobs"]["report"]
    run, upload = shard["steps"][1:]
    download, merge = report["steps"]
    numbers = shard["strategy"]["matrix"]["shard"]
    for number in numbers:
        script = run["run"].replace("${{ matrix.shard }}", str(number))
        sh(place, script.replace("${{ strategy.job-total }}", str(len(numbers))))
        name = upload["with"]["name"].replace("${{ matrix.shard }}", str(number))
        assert fnmatch(name, download["with"]["pattern"]) and fnmatch(f"shard-{number}.json", upload["with"]["path"])
    assert report["needs"] == "shard" and report["if"] == upload["if"] == "always()"
    assert "::error" in sh(place, merge["run"])


def test_gitlab(place: Path) -> None:
    shard, report = GITLAB["shard"], GITLAB["report"]
    for number in range(1, shard["parallel"] + 1):
        sh(place, shard["script"], CI_NODE_INDEX=number, CI_NODE_TOTAL=shard["parallel"])
    assert all(fnmatch(path.name, shard["artifacts"]["paths"][0]) for path in place.glob("shard*"))
    sh(place, report["script"])
    assert (place / report["artifacts"]["reports"]["junit"]).exists() and report["needs"] == ["shard"]


def test_slurm(place: Path) -> None:
    script, merge = (each for each in blocks(PAGE, "sh") if each.startswith("#!"))
    array = re.search(r"^#SBATCH --array=(\d+)-(\d+)$", script, re.M)
    assert array is not None and array[1] == "1"
    for number in range(1, int(array[2]) + 1):
        sh(place, script, SLURM_ARRAY_TASK_ID=number, SLURM_ARRAY_TASK_COUNT=array[2])
    sh(place, merge)


def test_kubernetes(place: Path) -> None:
    kubernetes_validate.validate(JOB, KUBERNETES, strict=True)
    (container,) = JOB["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["sh", "-c"]
    for number in range(JOB["spec"]["completions"]):
        sh(place, container["args"][0], JOB_COMPLETION_INDEX=number)
    sh(place, "gpuready report --merge shard-*.json")


def test_awx(place: Path) -> None:
    """Two slices of AWX's inventory; Ansible itself runs the playbook."""
    (place / "play.yml").write_text(yaml.safe_dump(PLAYBOOK))
    (place / "shards.yml").write_text(yaml.safe_dump(SLICES))
    playbook = f"{Path(sys.executable).parent / 'ansible-playbook'} -i shards.yml -e results={place} play.yml"
    for entries in ("shard-1:shard-3", "shard-2"):
        assert "unreachable=0" in sh(place, f"{playbook} --limit {entries}", 2)  # a node is not as its spec says
    (merge,) = re.findall(r"`(gpuready report --merge [^`]+)`\.$", PAGE.read_text("utf-8"), re.M)
    sh(place, merge.replace(SLICES["all"]["vars"]["results"], str(place)))

"""What lets a scheduler ask the gate, and user-data for a first boot.

What scontrol answers is recorded from a real Slurm 24.11.5 (slurmctld and slurmd on one machine), with which the same
program was seen to drain: as a prolog, as the health check at slurmd's start, and with slurmctld gone.
"""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from gpuready.components.gate.component import SCRIPT
from gpuready.inventory.hosts import load
from gpuready.model.spec import NodeSpec
from gpuready.operations.drain import DrainSlurm
from gpuready.verbs.render.cloud_init import local_files
from gpuready.verbs.render.command import command

PACKAGE = f'https://x/a.whl?"b\'c"#sha256={"0" * 64}'
LINE = "gpuready: driver.loaded: no nvidia module is loaded"
SHOWN = "NodeName=n1 CPULoad=9.26 State={} ThreadsPerCore=1 Partitions=gpu ResumeAfterTime=None AveWatts=0 {}"
STAMP = "[root@2026-11-23T03:09:16]"


def rendered(*words: str) -> str:
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert done.exception is None, done.exception
    return done.stdout


class Slurm:
    """The program on a node whose gate and scontrol are those of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.gate = folder, folder / "gpuready-verify"
        assert f"VERIFY={SCRIPT}\n" in rendered("slurm")
        text = rendered("slurm").replace(SCRIPT, str(self.gate)).replace("PATH=/usr/local/sbin", f"PATH={folder}:/usr")
        (folder / "gate").write_text(text)
        self.program("gpuready-verify", f'[ -z "$1" ] || [ "$1" = --slurm ] && echo "{LINE}"; exit 1')
        self.answers("IDLE")

    def program(self, name: str, text: str) -> None:
        (self.folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.folder / name).chmod(0o755)

    def answers(self, state: str, reason: str = "") -> None:
        shown = SHOWN.format(state, f" Reason={reason} {STAMP}" if reason else "")
        self.program("scontrol", f'echo "$@" >>{self.folder}/asked\n[ "$1" != show ] || echo "{shown}"')

    def run(self, **env: str) -> tuple[int, str, list[str]]:
        """The exit code, the output, and what scontrol was asked."""
        asked = self.folder / "asked"
        asked.write_text("")
        done = subprocess.run(["sh", self.folder / "gate"], capture_output=True, text=True, check=False, env=env)
        assert done.stderr == ""
        return done.returncode, done.stdout, asked.read_text().splitlines()


@pytest.fixture
def slurm(tmp_path: Path) -> Slurm:
    return Slurm(tmp_path)


SHOW, DRAIN = "show node n1 -o", f"update NodeName=n1 State=DRAIN Reason={LINE}"


def test_a_prolog_asks_no_command_of_slurm(slurm: Slurm) -> None:
    assert slurm.run(SLURM_JOB_ID="7", SLURMD_NODENAME="n1") == (1, f"{LINE}\n", [])
    slurm.program("gpuready-verify", "echo gpuready: ok: x")
    assert slurm.run(SLURM_JOB_ID="7", SLURMD_NODENAME="n1") == (0, "gpuready: ok: x\n", [])


def test_the_health_check_drains_with_the_check_as_the_reason(slurm: Slurm) -> None:
    assert slurm.run(SLURMD_NODENAME="n1") == (0, f"{LINE}\n", [SHOW, DRAIN])
    for state, reason in (("IDLE+DRAIN", "Prolog error"), ("MIXED+DRAIN", "Epilog error")):
        slurm.answers(state, reason)  # Slurm's own words for a prolog that failed name no check
        assert slurm.run(SLURMD_NODENAME="n1") == (0, f"{LINE}\n", [SHOW, DRAIN])


@pytest.mark.parametrize("reason", ["bad fan", "gpuready", LINE, "x Reason=Prolog error"])
def test_a_node_that_is_drained_already_keeps_its_reason(slurm: Slurm, reason: str) -> None:
    slurm.answers("IDLE+DRAIN", reason)
    assert slurm.run(SLURMD_NODENAME="n1") == (0, f"{LINE}\n", [SHOW])


def test_the_health_check_of_a_node_that_is_ready_resumes_nothing(slurm: Slurm) -> None:
    slurm.program("gpuready-verify", "true")
    slurm.answers("IDLE+DRAIN", LINE)
    assert slurm.run(SLURMD_NODENAME="n1") == (0, "", [])


def test_slurm_that_gives_no_answer_is_an_error(slurm: Slurm) -> None:
    slurm.program("scontrol", "exit 1")
    assert slurm.run(SLURMD_NODENAME="n1")[0] == 1


def test_a_node_without_the_gate_passes(slurm: Slurm) -> None:
    """One slurm.conf holds for all nodes, those without GPUs too."""
    slurm.gate.unlink()
    assert slurm.run(SLURM_JOB_ID="7") == slurm.run(SLURMD_NODENAME="n1") == (0, "", [])


@pytest.mark.parametrize(("reason", "resumes"), [("gpuready", True), (LINE, False)])
def test_apply_resumes_only_what_it_drained_itself(slurm: Slurm, reason: str, resumes: bool) -> None:
    """The gate's reasons begin with the same word."""
    slurm.answers("IDLE+DRAIN", reason)
    script = DrainSlurm("after", "n1").render().replace("/var/lib/gpuready", str(slurm.folder))
    script = script.replace("PATH=/usr/local/sbin", f"PATH={slurm.folder}:/usr/local/sbin")
    done = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    asked = (slurm.folder / "asked").read_text().splitlines()
    assert asked == [SHOW, *(["update NodeName=n1 State=RESUME"] if resumes else [])]


def test_node_problem_detector_asks_the_gate() -> None:
    """As pkg/custompluginmonitor/types reads and validates it."""
    found = json.loads(rendered("node-problem-detector"))
    (rule,) = found["rules"]
    assert found["plugin"] == "custom" and rule["type"] == "permanent"
    assert rule["condition"] in [condition["type"] for condition in found["conditions"]]
    assert rule["args"][-2:] == [SCRIPT, "--node-problem-detector"]
    assert found["pluginConfig"]["max_output_length"] == 80
    limits = [int(each["timeout"].removesuffix("s")) for each in (rule, found["pluginConfig"])]
    assert 20 < limits[0] <= limits[1] < int(found["pluginConfig"]["invoke_interval"].removesuffix("s"))


INVENTORY = """all:
  hosts:
    gpu01:
      gpuready:
        gate: on
        ldso: off
        hardware: {gpus: 8, rdma: {ports: 8}}
        runtimes: {docker: {shm_size: 8g}, podman: absent}
        driver: {policy: hold}
        verify: {waive: [{check: gpu.count, reason: "ü: 'a' #b", until: 2027-01-01}]}
    gpu02: {gpuready: {}}
    gpu03: {gpuready: {toolkit: {repo: {key: key.asc}}}}
    gpu04: {gpuready: {toolkit: {repo: {proxy: "file:PROXY"}}}}
"""


def inventory(folder: Path) -> Path:
    (folder / "key.asc").touch()
    (folder / "proxy").write_text("http://198.18.0.1:3128\n", "utf-8")
    (folder / "hosts.yaml").write_text(INVENTORY.replace("PROXY", str(folder / "proxy")), "utf-8")
    return folder / "hosts.yaml"


def test_the_node_gets_the_spec_that_the_inventory_gives_it(tmp_path: Path) -> None:
    where = inventory(tmp_path)
    for host in ("gpu01", "gpu02"):
        text = rendered("cloud-init", "-i", str(where), "--limit", host, "--package", PACKAGE)
        assert text.startswith("#cloud-config\n")
        found = yaml.safe_load(text)
        (file,) = found["write_files"]
        (tmp_path / "node.yaml").write_text(file["content"], "utf-8")
        (entry,) = load([str(tmp_path / "node.yaml"), "@local"]).chosen
        (wanted,) = load([str(where)], limit=[host]).chosen
        assert entry.spec == wanted.spec
        venv, pip, first_boot = found["runcmd"]
        assert pip[-1] == PACKAGE and venv[0] == "sh"
        assert "--property=After=cloud-final.service" in first_boot
        assert first_boot[-7:] == ["/opt/gpuready/bin/gpuready", "apply", "-i", file["path"], "-i", "@local", "--yes"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cloud-init", "--limit", "gpu01"], "Missing parameter: package"),
        (["cloud-init", "--package", "gpuready", "--limit", "gpu01"], "does not say with a hash what pip installs"),
        (
            ["cloud-init", "--package", PACKAGE, "--limit", "gpu03"],
            "toolkit.repo.key: files or variables of this machine",
        ),
        (["cloud-init", "--package", PACKAGE, "--limit", "gpu04"], "toolkit.repo.proxy: files or variables of this"),
        (["cloud-init", "--package", PACKAGE], "needs exactly one host, but 4 are chosen"),
    ],
)
def test_what_cannot_be_rendered(words: list[str], said: str, tmp_path: Path) -> None:
    allowed = ["--allow-read", f"file:{tmp_path / 'proxy'}"]
    done = CliRunner().invoke(command, [*words, *allowed, "-i", str(inventory(tmp_path))], standalone_mode=False)
    assert said in str(done.exception)


@pytest.mark.parametrize(
    ("more", "local"),
    [({}, ()), ({"header": "env:GPUREADY_MIRROR"}, ("torch_wheels",))],
)
def test_a_wheel_on_a_server_needs_this_machine_only_for_its_header(
    more: dict[str, str], local: tuple[str, ...]
) -> None:
    one = {"wheel": "https://h/torch-1-py3-none-any.whl", "env": "/x", "sha256": "a" * 64, **more}
    assert local_files(NodeSpec.model_validate({"torch_wheels": [one]})) == local
    assert local_files(NodeSpec.model_validate({"torch_wheels": [{"wheel": "torch-1-py3-none-any.whl", "env": "/x"}]}))


def test_a_unit_gets_its_words_as_they_are(tmp_path: Path) -> None:
    """systemd expands % and $ in ExecStart, but for the hostname."""
    url = "https://h/a$x%41.yaml#signers=/etc/a b"
    text = rendered("pull", "--spec", url, "--results", "/re sult/$1%", "--every", "6h")
    done = subprocess.run(["sh", "-n"], input=text, text=True, check=False)
    assert done.returncode == 0
    (line,) = (line for line in text.splitlines() if line.startswith("ExecStart="))
    assert line == (
        'ExecStart=/opt/gpuready/bin/gpuready apply -i "https://h/a$$x%%41.yaml#signers=/etc/a b" -i @local '
        '--limit @local --yes --output "json:/re sult/$$1%%/%H.json"'
    )
    assert "OnUnitInactiveSec=21600\nRandomizedDelaySec=10800\n" in text


@pytest.mark.parametrize(
    ("spec", "results", "said"),
    [
        ("https://h/a", "/r", "exactly one of sha256 and signers is required"),
        ("hosts.yaml", "/r", "-i hosts.yaml: not supported"),
        ("https://h/a#signers=signers", "/r", "signers is not an absolute path"),
        ("https://h/a#signers=/a\nUser=x", "/r", "a control character"),
        (f"https://h/a#sha256={'a' * 64}", "results", "--results results: not an absolute path"),
        (f"https://h/a#sha256={'a' * 64}", "http://h/r", "results are not sent over http"),
        (f"https://h/a#sha256={'a' * 64}", "https://u:p@h/r", "all users of the machine see"),
        (f"https://h/a#sha256={'a' * 64}", "/r\nUser=x", "a control character"),
        (f"https://h/a?sig=1#sha256={'a' * 64}", "/r", "all users of a node can read its unit"),
        (f"https://h/a#sha256={'a' * 64}", "https://h/r?sig=1", "the name of each node goes to its end"),
        (f"https://h/a#sha256={'a' * 64}", "https://h/r#x", "the name of each node goes to its end"),
    ],
)
def test_what_no_unit_is_printed_for(spec: str, results: str, said: str) -> None:
    done = CliRunner().invoke(command, ["pull", "--spec", spec, "--results", results], standalone_mode=False)
    assert said in str(done.exception)

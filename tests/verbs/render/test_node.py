"""What lets a scheduler ask the gate, and user-data for a first boot.

Slurm's program runs in tests/system/test_slurm.py, with Slurm.
"""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from gpuready.components.gate.component import SCRIPT
from gpuready.inventory.build import local_values
from gpuready.inventory.hosts import load
from gpuready.model.spec import NodeSpec
from gpuready.verbs.render.command import command

PACKAGE = f'https://x/a.whl?"b\'c"#sha256={"0" * 64}'


def rendered(*words: str) -> str:
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert done.exception is None, done.exception
    return done.stdout


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
    [({}, ()), ({"header": "env:GPUREADY_MIRROR"}, (("torch_wheels[0].header", "env:GPUREADY_MIRROR"),))],
)
def test_a_wheel_on_a_server_needs_this_machine_only_for_its_header(
    more: dict[str, str], local: tuple[tuple[str, str], ...]
) -> None:
    one = {"wheel": "https://h/torch-1-py3-none-any.whl", "env": "/x", "sha256": "a" * 64, **more}
    assert local_values(NodeSpec.model_validate({"torch_wheels": [one]})) == local
    wheel = "/torch-1-py3-none-any.whl"
    found = local_values(NodeSpec.model_validate({"torch_wheels": [{"wheel": wheel, "env": "/x"}]}))
    assert found == (("torch_wheels[0].wheel", wheel),)


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

"""The gate on a machine: what it says there, and that it goes; and that cloud-init takes the user-data of render.

The machine has no GPU, so it is ready as long as none is expected.
"""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft4Validator

from gpuready.components.gate.component import SCRIPT
from tests.lab import Machine
from tests.system.faults import footprint
from tests.system.host import Host, Hosts

#: The schema by which `cloud-init schema` judges, without the forty packages that cloud-init would bring.
SCHEMA = """cd "$(mktemp -d)" && chmod 755 . && apt-get update -q >/dev/null &&
apt-get download -q cloud-init >/dev/null &&
dpkg-deb --fsys-tarfile *.deb | tar -xO --wildcards '*/schema-cloud-config-v1.json'"""


@pytest.fixture(scope="module")
def node(shared: Hosts) -> Host:
    return shared()


def says(node: Machine, *words: str) -> tuple[int, str]:
    done = node.run(f"{SCRIPT} {' '.join(words)}", check=False)
    return done.returncode, done.stdout


@pytest.mark.promise
def test_a_scheduler_can_ask_the_gate(node: Host) -> None:
    before = set(footprint(node))
    ready = node.with_spec(gate=True, runtimes={"docker": "absent"})
    result = ready.apply("--only", "gate")
    assert result.changed() == {"gate"}, result.explain()
    assert result.checks("pass") >= {"gate.config", "gate.ready"}, result.explain()
    assert says(node) == (0, "gpuready: ok: no GPUs are expected\n")
    ready.settled("--only", "gate")

    # The toolkit was not applied here, so Docker lacks the runtime.
    other = node.apply("--only", "gate", gate=True, code=3)
    assert other.checks("fail") == {"gate.ready"}, other.explain()
    assert says(node) == (1, "gpuready: docker.config: /etc/docker/daemon.json does not name the runtime nvidia\n")

    lacking = node.with_spec(gate=True, hardware={"gpus": 8}, runtimes={"docker": "absent"})
    result = lacking.apply("--only", "gate", code=None)
    assert result.changed() == {"gate"}, result.explain()
    line = "gpuready: driver.loaded: no nvidia module is loaded\n"
    assert says(node) == says(node, "--slurm") == (1, line)
    assert says(node, "--node-problem-detector") == (1, line.removeprefix("gpuready: "))

    result = lacking.remove("--only", "gate")
    assert says(node)[0] == 127
    assert set(footprint(node)) == before


def test_cloud_init_takes_the_user_data(node: Host, tmp_path: Path) -> None:
    where = tmp_path / "hosts.yaml"
    where.write_text("all: {hosts: {gpu01: {gpuready: {gate: on, hardware: {gpus: 8}, ldso: off}}}}\n")
    text = node.shown("render", "cloud-init", "--package", f"git+https://x.example/y@{'a' * 40}", inventory=where)
    schema = json.loads(node.run(SCHEMA).stdout)
    found = yaml.safe_load(text)
    assert not list(Draft4Validator(schema).iter_errors(found))
    assert list(Draft4Validator(schema).iter_errors({**found, "runcmd": 7})), "it would say so"

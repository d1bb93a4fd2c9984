"""Whose hosts, on a real machine: others are not connected to, and a machine without a GPU is not changed unasked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab import network
from tests.system.faults import Listener
from tests.system.harness import door
from tests.system.host import Hosts

pytestmark = pytest.mark.promise


@pytest.fixture
def listeners() -> Iterator[list[Listener]]:
    made = [Listener(), Listener()]
    yield made
    for each in made:
        each.close()


def test_only_chosen_hosts_are_connected_to_and_only_gpu_nodes_are_changed(
    fresh: Hosts, listeners: list[Listener], tmp_path: Path
) -> None:
    node = fresh()
    lab = yaml.safe_load(node.where().read_text())["all"]["vars"]
    spec = lab.pop("gpuready")
    others = {
        name: {"ansible_host": network.SERVER, "ansible_port": each.port}
        for name, each in zip(("db01", "web01"), listeners, strict=True)
    }
    path = tmp_path / "hosts.yaml"

    def say(**hosts: dict[str, Any]) -> Path:
        path.write_text(yaml.safe_dump({"all": {"vars": lab, "hosts": {**others, **hosts}}}))
        return path

    def outcomes(verb: str, *more: str, code: int) -> dict[str, str]:
        hosts = node.call(verb, *more, inventory=path, code=code).document["hosts"]
        return {name: host["outcome"] for name, host in hosts.items()}

    skipped = {"db01": "skipped", "web01": "skipped"}
    say()
    for verb in ("plan", "apply", "verify"):
        assert outcomes(verb, code=5) == skipped

    # A third host that somebody chose: the run goes on. It has no GPU, and nothing says that it is to be without one.
    say(lab1={"ansible_host": node.address, "gpuready": {}})
    with node.untouched(sessions=5):  # one exec each
        assert outcomes("plan", code=0) == {"lab1": "skipped", **skipped}
        assert outcomes("apply", code=5) == {"lab1": "skipped", **skipped}
        assert outcomes("verify", code=3) == {"lab1": "ok", **skipped}
        assert outcomes("record", code=0) == outcomes("remove", code=0) == {"lab1": "ok", **skipped}
    told = node.shown("plan", inventory=path)
    assert "skipped  lab1: no NVIDIA GPU is seen, and hardware.gpus is auto" in told
    assert "skipped  db01,web01: no gpuready value in the inventory" in told and "hardware: {gpus: none}" in told

    # pyinfra's own door does the same.
    with node.untouched():
        door(tmp_path, path, "converge")
        assert "gpu.count: unknown" in door(tmp_path, path, "verify", code=1)

    # Said, it is converged as any other.
    say(lab1={"ansible_host": node.address, "gpuready": spec})
    assert outcomes("plan", code=0) == {"lab1": "would_change", **skipped}
    assert outcomes("apply", code=0) == {"lab1": "changed", **skipped}
    assert not listeners[0].accepted and not listeners[1].accepted

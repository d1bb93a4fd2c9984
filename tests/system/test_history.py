"""A machine is applied, somebody changes it, and the history says since when, and what."""

import json
from pathlib import Path

from gpuready.components.docker.component import CONFIG
from tests.system.host import Hosts


def test_a_change_behind_our_back_is_drift(shared: Hosts, tmp_path: Path) -> None:
    place = tmp_path / "results"
    node = shared().given("--history", str(place))
    applied = node.apply()
    assert node.verify(code=None).component("docker")["diff"] == []
    mine = json.loads(node.run(f"cat {CONFIG}").stdout)
    del mine["runtimes"]["nvidia"]
    node.run(f"cat >{CONFIG}", stdin=json.dumps(mine))
    later = node.verify(code=3)
    assert len([*place.iterdir()]) == 3

    def history() -> dict[str, list[dict[str, object]]]:
        told = node.gpuready("history", str(place), "--output", "json", check_json=False).stdout
        found: dict[str, list[dict[str, object]]] = json.loads(told)
        return found

    found = history()
    assert {(each["component"], each["since"], each["applied"], each["spec_changed"]) for each in found["drift"]} == {
        ("docker", later.document["ended"], applied.document["ended"], False)
    }
    assert "docker.runtimes.nvidia.path" in {each["key"] for each in found["drift"]}
    node.apply()
    found = history()
    (track,) = (each for each in found["tracks"] if (each["kind"], each["name"]) == ("component", "docker"))
    assert found["drift"] == [] and (track["status"], track["bad"], track["times_bad"]) == ("matches", 1, 1)

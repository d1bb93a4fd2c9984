"""The published schema: fresh, valid, and of one mind with the loader."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from gpuready.base.errors import SpecErrors
from gpuready.inventory.hosts import load
from gpuready.model.schema import inventory_schema, render
from tests.command import write_hosts

ROOT = Path(__file__).parents[2]
VALIDATOR = Draft7Validator(inventory_schema())


def document(block: Any) -> dict[str, Any]:
    return {"all": {"hosts": {"a": None}, "vars": {"gpuready": block}}}


def test_the_published_schema_is_fresh() -> None:
    """If this fails: python -m gpuready.model.schema > inventories/schema.json"""
    assert (ROOT / "inventories" / "schema.json").read_text() == render()


def test_valid_and_described() -> None:
    schema = inventory_schema()
    Draft7Validator.check_schema(schema)
    assert schema["title"] and schema["description"]
    for name, body in schema["$defs"].items():
        assert body["description"], name
        for key, field in body.get("properties", {}).items():
            assert field.get("description") or "$ref" in field, f"{name}.{key}"
    used = json.dumps(schema)
    assert all(name == "Group" or f"#/$defs/{name}" in used for name in schema["$defs"])


def test_the_example() -> None:
    path = ROOT / "inventories" / "example.yaml"
    document = json.loads(json.dumps(yaml.safe_load(path.read_text()), default=str))
    assert [error.message for error in VALIDATOR.iter_errors(document)] == []
    hosts = load([str(path)]).chosen
    assert [host.name for host in hosts][:2] == ["gpu01.example.net", "gpu02.example.net"]
    assert all(not host.notes for host in hosts)


GOOD: list[Any] = [
    None,
    {},
    {"toolkit": None},
    {"ldso": False},
    {"ldso": "off"},
    {"ldso": ["/usr/local/nvidia/lib64"]},
    {"hardware": {"gpus": 8, "nvswitch": True}},
    {"verify": {"thresholds": {"temperature_margin": 5, "dram_corrected": 20000000}}},
    {"runtimes": {"docker": {"shm_size": "8g", "live_restore": True}, "containerd": "absent"}},
    {"memlock": "unlimited", "owners": {"toolkit": "operator", "runtime": "image"}},
    {"runtimes": {"containerd": {}}},
    {"runtimes": {"containerd": {"default_runtime": True, "cdi": False, "service": "containerd"}}},
    {"reconverge": {"on_driver_change": "off"}},
    {"rdma": {"netns_mode": "exclusive", "packages": ["rdma-core", "libibverbs1"]}, "hardware": {"rdma": {"ports": 8}}},
    {"verify": {"waive": [{"check": "gpu.count", "reason": "x", "until": "2099-01-01"}]}},
    {"maintenance": {"drain": "kubectl"}},
    {"maintenance": {"window": "Mon-Wed,Sat 22:00-06:00 Europe/Berlin"}},
    {"maintenance": {"window": ["02:00-24:00 UTC", "Sun 00:00-24:00 Etc/GMT+3"]}},
    {"maintenance": {"drain": {"before": "a", "after": "b"}}},
    {"maintenance": {"drain": {"kubectl": {"force": True, "grace": 0}, "timeout": "7d"}}},
    {"images": ["app:1", {"ref": "registry.example.com/app@sha256:00", "cuda": "12.4"}]},
]
BAD: list[Any] = [
    [],
    {"tolkit": {}},
    {"ldso": []},
    {"ldso": ["/a b"]},
    {"hardware": {"gpus": 0}},
    {"hardware": {"nvswitch": "yes"}},
    {"verify": {"thresholds": {"temperature_margin": 90}}},
    {"memlock": "infinite"},
    {"runtimes": {"containerd": {"service": "k0scontainerd"}}},
    {"runtimes": {"containerd": {"cdi": "maybe"}}},
    {"rdma": {"netns_mode": "private"}},
    {"rdma": {"packages": ["bash"]}},
    {"nccl": {"extra": {"A": "b"}}},
    {"toolkit": {"version": 1.2}},
    {"toolkit": {"repo": {"fingerprint": "ABC"}}},
    {"verify": {"waive": [{"check": "gpu.count"}]}},
    {"maintenance": {"drain": {"before": "a"}}},
    {"maintenance": {"window": "Sat 22:00-06:00"}},
    {"maintenance": {"window": ["Sat 22:00-26:00 UTC"]}},
    {"maintenance": {"drain": {"kubectl": {}, "timeout": "a week"}}},
    {"maintenance": {"drain": {"kubectl": {}, "after": "b"}}},
    {"images": "app:1"},
    {"images": ["app 1"]},
    {"images": [{"cuda": "12.4"}]},
    {"images": [{"ref": "app:1", "cuda": "latest"}]},
]


@pytest.mark.parametrize("block", GOOD, ids=json.dumps)
def test_both_accept(block: Any, tmp_path: Path) -> None:
    assert VALIDATOR.is_valid(document(block))
    assert load([write_hosts(tmp_path, json.dumps(document(block)))])


@pytest.mark.parametrize("block", BAD, ids=json.dumps)
def test_both_refuse(block: Any, tmp_path: Path) -> None:
    assert not VALIDATOR.is_valid(document(block))
    with pytest.raises(SpecErrors, match=r"hosts\.yaml:1"):
        load([write_hosts(tmp_path, json.dumps(document(block)))])


def test_form_of_the_file() -> None:
    assert VALIDATOR.is_valid(
        {"gpu": {"hosts": {"gpu[1:4]": None, "x": {"ansible_port": 22, "mine": [1]}}, "children": {"a": None}}}
    )
    assert not VALIDATOR.is_valid({"gpu": {"host": {}}})
    assert not VALIDATOR.is_valid({"gpu": {"hosts": ["a"]}})
    assert not VALIDATOR.is_valid({"gpu": {"vars": {"ansible_become_method": "su"}}})

"""The result document is valid by its own schema on every way out, masked, and the same whoever renders it."""

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gpuready.cli.parts import parts
from gpuready.inventory.listing import Listed, Setting
from gpuready.model.state import NodeState
from gpuready.result.document import document, read, result_schema
from gpuready.result.formats import FORMATS
from gpuready.result.model import CheckResult, ComponentResult, Difference, HostResult, Run, UnknownValue
from gpuready.result.render import render
from tests.report.test_report_runs import CODES, sample

SCHEMA = result_schema(parts())
#: The keys of the document, without what they mean.
KEYS = Path(__file__).parents[1] / "data" / "results.keys.json"
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def part(name: str) -> jsonschema.Draft202012Validator:
    """A validator of one of the schema's parts."""
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_json_is_valid_on_every_way_out(name: str, code: int) -> None:
    text = render(sample(name), code, "json")
    text.encode("ascii")
    found = json.loads(text)
    VALIDATOR.validate(found)
    assert found["exit_code"] == code
    assert text == json.dumps(document(sample(name), code), indent=2) + "\n"


def test_the_json_of_many_hosts_needs_few_times_the_memory_of_its_text() -> None:
    checks = [CheckResult(f"check.{at}", "config", False, "pass", "as wanted") for at in range(100)]
    run = Run("verify", [HostResult(f"h{at}", outcome="ok", checks=checks) for at in range(100)])
    render(run, 0, "json")  # what is made once
    tracemalloc.start()
    try:
        text = render(run, 0, "json")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * len(text), peak / len(text)


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_jsonl_ends_in_a_summary(name: str, code: int) -> None:
    *hosts, last = map(json.loads, render(sample(name), code, "jsonl").splitlines())
    for line in hosts:
        part("Line").validate(line)
    part("Summary").validate(last)
    assert [line["host"] for line in hosts] == [host.name for host in sample(name).hosts]


def test_the_schema_is_strict() -> None:
    found = document(sample("changed"), 0)
    for where in (found, found["hosts"]["lab1"], found["hosts"]["lab1"]["components"][0]):
        where["more"] = 1
        assert not VALIDATOR.is_valid(found)
        del where["more"]
    VALIDATOR.validate(json.loads(json.dumps(found)))


def _ours() -> dict[str, Any]:
    """The parts of the schema by name; the state of a node is a document of its own."""
    left, of_state = ["NodeState"], set[str]()
    while left:
        if (name := left.pop()) not in of_state:
            of_state.add(name)
            left += re.findall(r'"#/\$defs/(\w+)"', json.dumps(SCHEMA["$defs"][name]))
    return {name: part for name, part in {"Result": SCHEMA, **SCHEMA["$defs"]}.items() if name not in of_state}


def test_every_key_is_described() -> None:
    texts = {name: part["description"] for name, part in _ours().items()}
    texts |= {f"{name}.{key}": value.get("description", "") for name, part in _ours().items()
              for key, value in part["properties"].items()}  # fmt: skip
    assert not [name for name, text in texts.items() if not text.endswith(".")] and len(texts) > 200


def test_the_schema_is_the_recorded_one() -> None:
    """Scripts rely on it. If a change is meant, write the new keys to the file."""
    keys = {
        name: {
            key: {"required": key in part["required"], **{word: value[word] for word in value if word != "description"}}
            for key, value in part["properties"].items()
        }
        for name, part in _ours().items()
    }
    assert json.loads(json.dumps(keys)) == json.loads(KEYS.read_text())


def test_what_design_4_promises_is_there() -> None:
    found = document(sample("would-change"), 0)
    assert found["schema"] == "gpuready/result/1"
    one = found["hosts"]["gpu01"]
    assert (one["outcome"], one["execs"], one["seconds"]) == ("would_change", 1, 0.4)
    component: dict[str, Any] = one["components"][1]
    assert component["disruption"] == "reload" and component["pending"] is False
    assert component["diff"][0] == {
        "key": "docker.runtimes.nvidia.path", "actual": None, "expected": "nvidia-container-runtime",
        "done": False,
    }  # fmt: skip
    assert one["checks"][0]["status"] == "pass"
    assert "state" not in one


def test_an_error_names_kind_message_and_remedy() -> None:
    assert document(sample("usage"), 64)["error"] == {
        "kind": "usage", "message": "no inventory: -i is missing", "remedy": "gpuready plan -i hosts.yaml",
        "exit_code": 64,
    }  # fmt: skip
    assert document(sample("interrupted"), 130)["error"]["kind"] == "interrupted"


def test_gpu_checks_count_only_what_looked() -> None:
    assert document(sample("converged"), 0)["gpu_checks"] == 0
    assert document(sample("proven"), 0)["gpu_checks"] == 3
    assert document(sample("converged"), 0)["level"] == "effective"
    assert document(sample("usage"), 64)["level"] is None


def test_a_probe_carries_a_masked_state_that_reads_back() -> None:
    found = json.loads(render(sample("probed"), 0, "json"))
    state = NodeState.model_validate(found["hosts"]["gpu01"]["state"])
    assert state.masked
    text = state.files["/etc/docker/daemon.json"].text
    assert json.loads(text)["proxies"] == {"http-proxy": "http://***@proxy:3128"}
    assert state.files["/etc/ld.so.conf.d/odd.conf"].data == b"/opt/caf\xe9/lib\n", "bytes that are no UTF-8 survive"


def test_the_value_of_a_key_that_names_a_secret_is_hidden() -> None:
    listed = Listed(
        "h:1", (), "a", None, None, (Setting("x.password", "s3cret", "h:2"), Setting("x.y", "1", "h:3")), {}
    )
    diff = (Difference("x.token", ("s3cret",), UnknownValue("x --password s3cret")),)
    host = HostResult("a", {"inventory": listed}, components=[ComponentResult("x", True, diff=diff)])
    for found in (document(Run("plan", [host]), 0), document(*read(document(Run("plan", [host]), 0), parts()))):
        only = found["hosts"]["a"]
        assert [each["value"] for each in only["inventory"]["settings"]] == ["***", "1"]
        assert only["inventory"]["settings"][0]["where"] == "h:2"
        assert only["components"][0]["diff"][0]["actual"] == ["***"] and "s3cret" not in json.dumps(found)


@pytest.mark.parametrize("form", FORMATS)
def test_no_secret_leaves(form: str) -> None:
    for name, code in CODES.items():
        text = render(sample(name), code, form)
        assert "s3cret" not in text and "hunter2" not in text

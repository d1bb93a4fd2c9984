"""A result document gives back the run that it is of, so that every renderer can take one."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from gpuready.cli.parts import parts
from gpuready.result.document import DocumentError, document, read
from gpuready.result.human import human
from gpuready.result.junit import junit
from tests.report.test_report_runs import CODES, sample
from tests.report.test_results_recorded import RECORDED, recorded


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_document_survives_the_way_there_and_back(name: str) -> None:
    """Key by key; what reads it may be of today, so the release is its own."""
    found = recorded(name)
    run, code = read(copy.deepcopy(found), parts())
    again = json.loads(json.dumps(document(run, code)))
    assert again | {"gpuready": ""} == found | {"gpuready": ""}


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_it_renders_as_the_run_itself(name: str, code: int) -> None:
    run = sample(name)
    again, same = read(json.loads(json.dumps(document(run, code))), parts())
    assert same == code
    assert junit(again, code) == junit(run, code)
    run.choice = ""  # no command line chose the hosts of a document
    assert human(again, code) == human(run, code)


def test_when_and_where_from_come_back() -> None:
    run = sample("converged")
    run.ended = "2026-11-22T21:00:00Z"
    again, _ = read(document(run, 0), parts())
    assert (again.ended, again.source) == (run.ended, "hosts.yaml")


def test_unknown_keys_of_a_newer_release_are_ignored() -> None:
    found: Any = json.loads(json.dumps(document(sample("would-change"), 0)))
    plain = human(*read(copy.deepcopy(found), parts()))
    for where in (found, found["hosts"]["gpu01"], found["hosts"]["gpu01"]["checks"][0]):
        where["newer"] = {"a": 1}
    assert human(*read(found, parts())) == plain
    state: Any = recorded("probed")
    plain = human(*read(copy.deepcopy(state), parts()))
    facts = state["hosts"]["gpu01"]["state"]
    facts["cri"], facts["active"] = {"unknown": "no answer"}, {"cuda": {"unknown": "not asked"}, "p2p": {"out": "OK"}}
    expected = document(*read(copy.deepcopy(state), parts()))
    unions = [facts["docker"], facts["docker"]["containers"][0], facts["cri"], facts["linker"]]
    for mapping in (facts, facts["os"], facts["driver"], *unions, *facts["active"].values()):
        mapping["newer"] = 1
    run, code = read(state, parts())
    assert human(run, code) == plain and document(run, code) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "not a result document"),
        ({}, "not a result document"),
        ({"schema": 7}, "not a result document"),
        ({"schema": "gpuready/result/2"}, "the schema is 'gpuready/result/2'; this release reads 'gpuready/result/1'"),
        ({"schema": "gpuready/result/1"}, "exit_code: "),
        (document(sample("converged"), 0) | {"exit_code": 12345}, "exit_code: "),
        (document(sample("converged"), 0) | {"verb": "bake"}, "verb: "),
        (document(sample("converged"), 0) | {"hosts": {"a": 3}}, "hosts.a: "),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(given: object, message: str) -> None:
    with pytest.raises(DocumentError) as e:
        read(given, parts())
    assert message in str(e.value) and e.value.remedy and "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("execs", -1, "hosts.lab1.execs: "),
        ("seconds", -0.5, "hosts.lab1.seconds: "),
        ("seconds", float("inf"), "hosts.lab1.seconds: "),
        ("outcome", "fine", "hosts.lab1.outcome: "),
        ("nccl", [], "hosts.lab1.nccl: "),
        ("error", {"kind": "connect", "message": "no", "remedy": "", "exit_code": 99}, "hosts.lab1.error.exit_code: "),
        ("checks", [{"id": "a"}], "hosts.lab1.checks.0.level: "),
    ],
)
def test_a_value_that_no_release_writes_is_refused_at_its_place(key: str, value: object, message: str) -> None:
    found: Any = json.loads(json.dumps(document(sample("converged"), 0)))
    found["hosts"]["lab1"][key] = value
    with pytest.raises(DocumentError) as e:
        read(found, parts())
    assert str(e.value).startswith(message)


def test_the_recorded_documents_are_of_every_kind() -> None:
    kinds = {"compat", "compat-matrix", "fabric", "launch-hosts", "nccl", "probed", "rdma-list", "render-docker"}
    assert kinds <= RECORDED.keys()
    assert Path(RECORDED["fabric"]).is_file()

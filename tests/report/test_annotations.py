"""Annotations: in the forms that GitHub and GitLab document, bounded, and nothing from a node is a command."""

import json
import re
from typing import Any

import jsonschema
import pytest

from gpuready.base.errors import ConvergeError, SpecError, SpecErrors, UnreachableError, Where
from gpuready.contract.check import fail
from gpuready.result.model import Error, Run
from gpuready.result.render import render
from gpuready.result.text import printable
from tests.report.test_fabric_report import run as fabric_run
from tests.report.test_report_runs import BROKEN, CODES, LOST, SEVEN, check, component, host, run, sample

#: https://docs.gitlab.com/ci/testing/code_quality/, "Code Quality report format": what every entry has to have.
ENTRY = {
    "type": "object",
    "required": ["description", "check_name", "fingerprint", "severity", "location"],
    "additionalProperties": False,
    "properties": {
        "description": {"type": "string", "minLength": 1},
        "check_name": {"type": "string", "minLength": 1},
        "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
        "location": {
            "type": "object",
            "required": ["path", "lines"],
            "properties": {
                "path": {"type": "string", "pattern": r"^[^/.]|^\.[^/]"},
                "lines": {
                    "type": "object",
                    "required": ["begin"],
                    "properties": {"begin": {"type": "integer", "minimum": 1}},
                },
            },
        },
    },
}  # fmt: skip
GITLAB = jsonschema.Draft202012Validator({"type": "array", "items": ENTRY})


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """What GitHub's runner makes of it (actions/runner, ActionCommand.TryParseV2): command, properties, message."""
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"::([a-z-]+)(?: (.*?))?::(.*)", line)
        assert match, line
        pairs = dict(part.split("=", 1) for part in (match[2] or "").split(","))
        values = {name: unescaped(value, {"%3A": ":", "%2C": ","}) for name, value in pairs.items()}
        found.append((match[1], values, unescaped(match[3], {})))
    return found


def unescaped(text: str, more: dict[str, str]) -> str:
    for code, char in {**more, "%0D": "\r", "%0A": "\n", "%25": "%"}.items():
        text = text.replace(code, char)
    return text


def github(name: str) -> list[tuple[str, dict[str, str], str]]:
    return commands(printable(render(sample(name), CODES[name], "github")))


def gitlab(made: Run, code: int) -> Any:
    found = json.loads(render(made, code, "gitlab"))
    GITLAB.validate(found)
    prints = [each["fingerprint"] for each in found]
    assert len(prints) == len(set(prints))
    return found


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_errors_are_there_exactly_if_the_exit_code_says_so(name: str, code: int) -> None:
    levels = {level for level, _, _ in github(name)}
    assert levels <= {"error", "warning", "notice"}
    assert ("error" in levels) == (code not in (0, 7))
    severities = {each["severity"] for each in gitlab(sample(name), code)}
    assert ("critical" in severities) == ("error" in levels)


def test_an_error_of_the_spec_stands_at_its_line() -> None:
    errors = [
        SpecError("unknown key", where=Where("in, ventory/ho-sts%.yaml", 3), given="gpuz", near="gpus"),
        SpecError("too large", where=Where("b.yaml", 12)),
    ]  # fmt: skip
    broken = Run("apply", error=Error.of(SpecErrors(errors)))
    first, second = commands(render(broken, 5, "github"))
    assert first[:2] == ("error", {"file": "in, ventory/ho-sts%.yaml", "line": "3", "title": "gpuready spec"})
    assert first[2] == "unknown key; given 'gpuz'; did you mean 'gpus'?"
    assert (second[1]["file"], second[1]["line"]) == ("b.yaml", "12")
    places = [(each["location"]["path"], each["location"]["lines"]["begin"]) for each in gitlab(broken, 5)]
    assert places == [("in, ventory/ho-sts%.yaml", 3), ("b.yaml", 12)]


@pytest.mark.fault("ci-command-injection")
def test_no_text_of_a_node_is_a_command() -> None:
    evil = "x\n::stop-commands::y\r\n::add-mask::z,line=1::%0A%25 https://joe:s3cret@host/"
    broken = run("verify", host(evil, checks=(check(f"docker.runtime{evil}", fail(evil, evil)),)),
                 host("b", "failed", error=ConvergeError(evil)))  # fmt: skip
    text = printable(render(broken, 3, "github"))
    assert "s3cret" not in text
    found = commands(text)
    assert {level for level, _, _ in found} == {"error"} and len(found) == 2
    assert all(set(properties) == {"title"} for _, properties, _ in found)
    assert any("\n::stop-commands::y\\x0d\n" in message and "%0A%25" in message for _, _, message in found)
    assert "s3cret" not in json.dumps(gitlab(broken, 3))


def test_there_are_no_more_than_github_shows() -> None:
    many = run("verify", *(host(f"gpu{n:03}", checks=(check("gpu.xid", fail(f"Xid {n}")),)) for n in range(500)))
    found = commands(render(many, 3, "github"))
    assert len(found) == 10 and found[-1][2] == "491 more of this kind: --output html:PATH shows all"
    assert len(gitlab(many, 3)) == 500
    thousands = run("verify", *(host(f"n{n}", checks=(check("gpu.xid", fail("Xid")),)) for n in range(3000)))
    entries = gitlab(thousands, 3)
    assert len(entries) == 1001 and entries[-1]["description"].startswith("2000 more findings")


def test_what_another_check_explains_is_in_its_annotation() -> None:
    ((level, properties, text),) = github("lost")
    assert (level, properties["title"]) == ("error", "gpuready gpu.count")
    assert "\ngpu[01-03]: causes libcuda.init: CUDA sees 7 of 8 GPUs\ngpu[01-02]: causes docker.smoke: " in text


def test_what_hosts_share_is_one_annotation_of_github_and_one_of_each_host_in_gitlab() -> None:
    (stub,) = [each for each in github("differs") if each[1]["title"] == "gpuready libcuda.stub"]
    assert stub[0] == "error" and stub[2].startswith("gpu[01-02]: fail: the cache lists a stub\nfix: take")
    stubs = [each for each in gitlab(sample("differs"), 3) if each["check_name"] == "libcuda.stub"]
    assert len(stubs) == 2 and {each["location"]["path"] for each in stubs} == {"hosts.yaml"}


def test_a_fingerprint_stays_when_only_a_figure_changes() -> None:
    def one(summary: str) -> str:
        (entry,) = gitlab(run("verify", host("gpu01", checks=(check("gpu.heat", fail(summary)),))), 3)
        return str(entry["fingerprint"])

    assert one("91 C") == one("92 C")


def test_the_tests_between_hosts_are_annotated() -> None:
    found = commands(render(fabric_run(), 3, "github"))
    assert {"gpuready fabric.write_bw", "gpuready fabric.ports"} <= {each[1]["title"] for each in found}


def test_each_host_has_its_own_text_in_gitlab() -> None:
    """The report for people shows the first host's text for all with the same error; JUnit has each its own."""
    login = "lab{0}: login at 10.0.0.{0} refused"
    refused = {f"lab{n}": UnreachableError(login.format(n), remedy=f"ssh lab{n}") for n in (1, 2)}
    broken = {name: ConvergeError(f"line {n} is no JSON") for n, name in enumerate(("lab3", "lab4"))}
    made = run("apply", *(host(name, "unreachable", error=error) for name, error in refused.items()),
               *(host(name, "failed", component(BROKEN, error=error), error=error) for name, error in broken.items()),
               host("lab5", checks=(LOST, SEVEN[0])), host("lab6", checks=(LOST, SEVEN[1])))  # fmt: skip
    texts = [each["description"] for each in gitlab(made, 1)]
    assert [text for text in texts if "login" in text] == [f"{login.format(n)}; fix: ssh lab{n}" for n in (1, 2)]
    assert [text for text in texts if "JSON" in text] == [f"{name}: blocked; {error}" for name, error in broken.items()]
    causes = [re.findall(r"causes ([a-z.]+)", text) for text in texts if "7 of 8 GPUs seen" in text]
    assert causes == [["libcuda.init"], ["docker.smoke"]]
    annotations = [text for _, _, text in commands(printable(render(made, 1, "github")))]
    assert any(text.startswith("lab[1-2]: login at 10.0.0.1 refused (1 more host with") for text in annotations)
    assert "lab[3-4]: blocked\nlab3: line 0 is no JSON\nlab4: line 1 is no JSON" in annotations
    (lost,) = [text for text in annotations if "7 of 8 GPUs seen" in text]
    assert "\nlab5: causes libcuda.init: " in lost and "\nlab6: causes docker.smoke: " in lost

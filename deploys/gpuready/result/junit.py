"""JUnit XML for CI: a suite for each host, a case for each component and each check.

A case fails only if the exit code counts it, so the two never disagree: in a plan, a difference that apply would close
is not a failure. What was not checked is skipped, with the reason. Form: the schema of Jenkins' xUnit plugin, which
GitLab and GitHub actions read, too.
"""

import xml.etree.ElementTree as ET

from gpuready.fabric.verdict import Finding
from gpuready.result.blocks import keys, status_text
from gpuready.result.compat_report import JudgedImage, images, told
from gpuready.result.exitcode import counts
from gpuready.result.fabric import Fabric, fabric
from gpuready.result.model import CheckResult, ComponentResult, Error, HostResult, Run
from gpuready.result.text import Painter
from gpuready.result.xml import document

_COUNTED = ("failure", "error", "skipped")


def junit(run: Run, code: int) -> str:
    """The document, XML declaration included; valid on every exit."""
    root = ET.Element("testsuites", name=f"gpuready {run.verb}".strip(), time=f"{run.seconds:.3f}")
    if run.error or "image" in run.parts or not run.everyone:
        root.append(_suite("gpuready", 0.0, [_whole_run(run)]))
    if (of := fabric(run)) is not None:
        root.append(_suite("fabric", sum(each.seconds for each in of.findings), _findings(of)))
    for host in run.everyone:
        cases = [
            _host_case(host),
            *(_component_case(run, host, item) for item in host.components),
            *_check_cases(run, host),
            *(_image_case(host.name, image) for image in images(host)),
        ]
        root.append(_suite(host.name, host.seconds, cases))
    for name in ("tests", *(f"{kind}s" for kind in ("failure", "error"))):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    return document(root)


def _whole_run(run: Run) -> ET.Element:
    if "image" in run.parts:
        return _image_case("gpuready", run.parts["image"])
    case = _case("gpuready", "run")
    return _with_error(case, run.error) if run.error else case


def _suite(name: str, seconds: float, cases: list[ET.Element]) -> ET.Element:
    suite = ET.Element("testsuite", name=name, tests=str(len(cases)), time=f"{seconds:.3f}")
    for kind, plural in zip(_COUNTED, ("failures", "errors", "skipped"), strict=True):
        suite.set(plural, str(sum(case.find(kind) is not None for case in cases)))
    suite.extend(cases)
    return suite


def _image_case(host: str, image: JudgedImage) -> ET.Element:
    """compat: one image on one host."""
    case = _case(f"{host}.compat", image.image or "image")
    lines = "\n".join(told(image, Painter(False)))
    if not image.good:
        wrong = image.verdict and not (image.runs and image.trace and image.trace.unknown)
        _add(case, "failure" if wrong else "error", f"{image.word}: {lines.split(chr(10))[0]}", lines)
    return _output(case, lines)


def _host_case(host: HostResult) -> ET.Element:
    """Could the host be worked on at all?"""
    case = _case(f"{host.name}.host", "host")
    if host.error is not None and all(item.error != host.error for item in host.components):
        _with_error(case, host.error)
    elif host.outcome == "not_attempted":
        _add(case, "error", "not attempted")
    elif host.outcome == "skipped":
        _add(case, "skipped", host.reason)
    return _output(case, "\n".join(host.notes))


def _component_case(run: Run, host: HostResult, item: ComponentResult) -> ET.Element:
    case = _case(f"{host.name}.component", item.name)
    word = status_text(run, host, item)
    lines = "\n".join(map(str, keys(item)))
    if item.error is not None:
        _add(case, "failure", item.error.message, f"{item.error}\n{item.error.remedy}\n{lines}".strip())
    elif not item.applies:
        _add(case, "skipped", item.reason or "does not apply")
    elif item.pending:
        _add(case, "skipped", f"pending: {item.pending_reason}")
    elif word in ("differs", "not changed"):
        _add(case, "failure", f"{word}: {len(item.diff)} keys", lines)
    elif word == "not attempted":
        _add(case, "skipped", word)
    return _output(case, "\n".join([word, lines, *item.notes]) if word else "")


def _check_cases(run: Run, host: HostResult) -> list[ET.Element]:
    cases = []
    for check in host.checks:
        case = _case(f"{host.name}.check", check.id)
        _judge(case, check, counted=counts(run.verb, host, check))
        cases.append(_output(case, "\n".join(filter(None, (
            f"{check.status}: {check.summary}", check.evidence, check.remedy)))))  # fmt: skip
    return cases


def _findings(of: Fabric) -> list[ET.Element]:
    """A case for each test over each link and direction."""
    cases = []
    for each in of.findings:
        case = _case(f"fabric.{each.test}", str(each))
        case.set("time", f"{each.seconds:.3f}")
        _judge(case, each, counted=each.status in ("fail", "unknown"))
        cases.append(_output(case, f"{each.summary}\n{each.proof}".strip()))
    return cases


def _judge(case: ET.Element, each: CheckResult | Finding, *, counted: bool) -> None:
    if counted:
        kind = "failure" if each.status == "fail" else "error"
        _add(case, kind, each.summary, f"{each.summary}\n{each.remedy}".strip())
    elif each.status not in ("pass", "warn"):
        prefix = "" if each.status == "skip" else f"{each.status}: "
        _add(case, "skipped", prefix + each.summary)


def _case(classname: str, name: str) -> ET.Element:
    return ET.Element("testcase", classname=classname, name=name, time="0.000")


def _with_error(case: ET.Element, error: Error) -> ET.Element:
    _add(case, "error", error.message, f"{error.message}\n{error.remedy}".strip(), error.kind)
    return case


def _add(case: ET.Element, kind: str, message: str, text: str = "", type_: str = "") -> None:
    found = ET.SubElement(case, kind, message=message)
    if kind != "skipped":
        found.set("type", type_ or kind)
        found.text = text


def _output(case: ET.Element, text: str) -> ET.Element:
    if text:
        ET.SubElement(case, "system-out").text = text
    return case

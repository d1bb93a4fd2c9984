"""JUnit XML for CI: a suite for each host, a case for each component and each check.

A case fails only if the exit code counts it, so the two never disagree: in a plan, a difference that apply would close
is not a failure. What was not checked is skipped, with the reason. Form: the schema of Jenkins' xUnit plugin, which
GitLab and GitHub actions read, too.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace

from gpuready.base.words import count
from gpuready.result.blocks import cause, keys, status_text
from gpuready.result.cases import Case, Suite, case_of
from gpuready.result.exitcode import counts
from gpuready.result.model import ComponentResult, Error, HostResult, Run
from gpuready.result.xml import document

_COUNTED = ("failure", "error", "skipped")


def junit(run: Run, code: int) -> str:
    """The document, XML declaration included; valid on every exit."""
    root = ET.Element("testsuites", name=f"gpuready {run.verb}".strip(), time=f"{run.seconds:.3f}")
    root.extend(map(_suite, suites(run)))
    for name in ("tests", *(f"{kind}s" for kind in ("failure", "error"))):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    return document(root)


def suites(run: Run) -> Iterator[Suite]:
    """The cases of all hosts; those of the run itself, and of what it has besides hosts, come first."""
    own = [*run.part.suites(run)]
    if run.error or not (run.everyone or own):
        case = Case("gpuready", "run")
        yield Suite("gpuready", 0.0, [_with_error(case, run.error) if run.error else case])
    yield from own
    for host in run.everyone:
        components = [_component_case(run, host, item) for item in host.components]
        yield Suite(
            host.name,
            host.seconds,
            [_host_case(host), *components, *_check_cases(run, host), *run.part.cases(host)],
        )


def _suite(of: Suite) -> ET.Element:
    suite = ET.Element("testsuite", name=of.name, tests=str(len(of.cases)), time=f"{of.seconds:.3f}")
    for kind, plural in zip(_COUNTED, ("failures", "errors", "skipped"), strict=True):
        suite.set(plural, str(sum(case.kind == kind for case in of.cases)))
    suite.extend(map(_element, of.cases))
    return suite


def _element(of: Case) -> ET.Element:
    case = ET.Element("testcase", classname=of.classname, name=of.name, time=f"{of.seconds:.3f}")
    if of.kind:
        found = ET.SubElement(case, of.kind, message=of.message)
        if of.kind != "skipped":
            found.set("type", of.type or of.kind)
            found.text = of.text
    if of.output:
        ET.SubElement(case, "system-out").text = of.output
    return case


def _host_case(host: HostResult) -> Case:
    """Could the host be worked on at all?"""
    case = Case(f"{host.name}.host", "host", output="\n".join(host.notes))
    if host.error is not None and all(item.error != host.error for item in host.components):
        return _with_error(case, host.error)
    if host.outcome == "not_attempted":
        return replace(case, kind="error", message="not attempted")
    if host.outcome == "skipped":
        return replace(case, kind="skipped", message=host.reason)
    return case


def _component_case(run: Run, host: HostResult, item: ComponentResult) -> Case:
    word = status_text(run, host, item)
    lines = "\n".join(map(str, keys(item)))
    case = Case(f"{host.name}.component", item.name, output="\n".join([word, lines, *item.notes]) if word else "")
    if item.error is not None:
        text = f"{item.error}\n{item.error.remedy}\n{lines}".strip()
        return replace(case, kind="failure", message=item.error.message, text=text)
    if not item.applies:
        return replace(case, kind="skipped", message=item.reason or "does not apply")
    if item.pending:
        return replace(case, kind="skipped", message=f"pending: {item.pending_reason}")
    if word in ("differs", "not changed"):
        return replace(case, kind="failure", message=f"{word}: {count(len(item.diff), 'key')}", text=lines)
    return replace(case, kind="skipped", message=word) if word == "not attempted" else case


def _check_cases(run: Run, host: HostResult) -> Iterator[Case]:
    for check in host.checks:
        output = "\n".join(filter(None, (f"{check.status}: {check.summary}", check.evidence, check.remedy)))
        classname = f"{host.name}.check"
        if root := cause(run, host, check):
            yield Case(classname, check.id, "skipped", f"because of {root.id}: {check.summary}", output=output)
        else:
            yield case_of(classname, check.id, check, counted=counts(run.verb, host, check), output=output)


def _with_error(case: Case, error: Error) -> Case:
    text = f"{error.message}\n{error.remedy}".strip()
    return replace(case, kind="error", message=error.message, text=text, type=error.kind)

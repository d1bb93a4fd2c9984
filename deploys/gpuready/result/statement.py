"""A run as an in-toto statement: which GPUs passed which tests, under which specs. It can be signed.

The predicate is in-toto's own for tests. ``gpuready_result`` extends it: the whole result document. Tests are named as
in JUnit, ``HOST.check.ID`` and ``HOST.component.NAME``; a skipped one is only in the result, with its reason. Neither a
GPU nor a host is a file, so the digest of a subject is that of its name.
Sources: in-toto's attestation framework 1.1 (statement, resource descriptor), predicate test-result 0.1.
"""

import hashlib
from dataclasses import asdict
from typing import Any

from gpuready import __version__
from gpuready.cuda import tables
from gpuready.result.document import document
from gpuready.result.junit import suites
from gpuready.result.model import HostResult, Run

STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
RESULT = "gpuready_result"


def statement(run: Run, code: int) -> dict[str, Any]:
    """The run as JSON values; ``code`` is its exit code."""
    tests: dict[str, list[str]] = {"passedTests": [], "warnedTests": [], "failedTests": []}
    for suite in suites(run):
        for case in suite.cases:
            if case.kind != "skipped":
                kind = "failedTests" if case.kind else "warnedTests" if case.message else "passedTests"
                tests[kind].append(f"{case.classname}.{case.name}")
    whole = run.scope is not None and not run.scope.narrowed and not tests["warnedTests"]
    proved = whole and run.hosts and all(map(_proved, run.hosts))
    return {
        "_type": STATEMENT,
        "subject": _subjects(run),
        "predicateType": TEST_RESULT,
        "predicate": {
            "result": "FAILED" if code else "PASSED" if proved else "WARNED",
            "configuration": _configuration(run),
            **tests,
            RESULT: document(run, code),
        },
    }


def result_of(value: object) -> object:
    """Return the result document in a statement. Any other value is returned as it is."""
    if isinstance(value, dict) and value.get("_type") == STATEMENT:
        predicate = value.get("predicate")
        return predicate.get(RESULT) if isinstance(predicate, dict) else None
    return value


def _subjects(run: Run) -> list[dict[str, Any]]:
    """The GPUs by their UUIDs. A host without them is a subject itself; without hosts, gpuready is.

    Nothing here is masked, so the source of the hosts is not a subject: it may be a URL with a password.
    """
    hosts: dict[str, list[str]] = {}
    for host in run.hosts:
        for name in _gpus(host) or (host.name,):
            hosts.setdefault(name, []).append(host.name)
    return [
        {"name": name, "digest": _sha256(name.encode()), "annotations": {"hosts": names}}
        for name, names in hosts.items()
    ] or [{"name": "gpuready", "digest": _sha256(b"gpuready")}]


def _proved(host: HostResult) -> bool:
    """Whether a GPU was tested, something at the level that was asked for, and nothing is unknown."""
    unknown = any(check.status == "unknown" for check in host.checks)
    return bool(host.gpu_checks) and not host.untested and not unknown


def _gpus(host: HostResult) -> tuple[str, ...]:
    return host.facts.uuids if host.facts else ()


def _configuration(run: Run) -> list[dict[str, Any]]:
    """The release and what it judged, the spec and level of each host, and the compatibility tables with dates."""
    used: list[dict[str, Any]] = [{"name": "gpuready", "uri": f"pkg:pypi/gpuready@{__version__}"}]
    if run.scope is not None:
        used[0]["annotations"] = asdict(run.scope)
    used += [
        {"name": f"spec/{host.name}", "digest": {"sha256": host.spec}, "annotations": {"level": host.asked}}
        for host in run.hosts
        if host.spec
    ]
    for path in sorted(tables.DATA.glob("*.yaml")):
        date, _ = tables.dated(path.stem)
        digest = _sha256(path.read_bytes())
        used.append({"name": f"tables/{path.stem}", "digest": digest, "annotations": {"date": date.isoformat()}})
    return used


def _sha256(data: bytes) -> dict[str, str]:
    return {"sha256": hashlib.sha256(data).hexdigest()}

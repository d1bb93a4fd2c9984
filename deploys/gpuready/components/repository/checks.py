"""Check of the toolkit's repository: does the package manager offer the version that the spec names?

Sources: apt-cache(8), dnf-repoquery(8).
"""

import re

from gpuready.contract import need, owners
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, unknown
from gpuready.contract.package_manager import manager
from gpuready.contract.question import Question
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState


def _candidate(spec: NodeSpec, state: NodeState) -> Verdict:
    if whose := owners.observed("toolkit", spec, state):
        return skip(whose)
    if manager(state).dnf:
        return _by_dnf(spec, state)
    answer = need.answer(state, "apt", "apt was not asked")
    out = answer.out
    if answer.rc in (124, 137):  # timeout(1)
        return unknown(f"apt-cache policy: {' '.join(out.split())[-200:]}")
    url = re.sub(r"/\$\(ARCH\)$", "", spec.toolkit.repo.url)
    if url not in out and not answer.rc:
        return unknown(
            f"apt has no package list from {url} yet, so what it offers is not known",
            "gpuready apply installs from it; or run apt-get update on the node, and read its errors",
        )
    if f" {spec.toolkit.version}-1 " not in out:
        return fail(f"apt does not know {spec.toolkit.version}-1 from {url}", evidence=" ".join(out.split())[:300])
    return passed(f"apt has {spec.toolkit.version}-1 from {url}")


def _by_dnf(spec: NodeSpec, state: NodeState) -> Verdict:
    answer = need.answer(state, "dnf", "dnf was not asked")
    url, told = spec.toolkit.repo.rpm_url, " ".join(answer.out.split())[-300:]
    if answer.rc in (124, 137):  # timeout(1)
        return unknown(f"dnf repoquery: {told}")
    if answer.rc:
        return unknown(
            f"dnf has no metadata of {url} yet, so what it offers is not known: {told}",
            "gpuready apply reads it; or run dnf makecache on the node, and read its errors",
        )
    if f"{spec.toolkit.version}-1" not in answer.out.split():
        return fail(f"dnf does not know {spec.toolkit.version}-1 from {url}", evidence=told)
    return passed(f"dnf has {spec.toolkit.version}-1 from {url}")


class AskApt(Question, template="repository/ask-apt"):
    """Ask the package manager which versions of the toolkit it offers."""


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    return (AskApt({"apt": 20}),)


CHECKS = (
    Check(
        "repository.candidate",
        "the package manager offers the toolkit's pinned version",
        Level.effective,
        "The source is written, but the package list from it was never read, or is refused.",
        "apt-cache policy nvidia-container-toolkit; apt-get update; or dnf makecache on a node with dnf",
        "gpuready apply; after that, run apt-get update or dnf makecache on the node and read its errors",
        _candidate,
        component="repository",
        active=True,
    ),
)

"""Checks of the toolkit's version: is it safe, and is it the one that the spec names?

Sources: ``nvidia-ctk --version``, NVIDIA's security bulletins for the floor.
"""

import re

from gpuready.base.versions import leading, numbers
from gpuready.components.toolkit.state import OPERATOR_CTK
from gpuready.contract import need, owners
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, warn
from gpuready.model.spec import TOOLKIT_FLOOR, NodeSpec
from gpuready.model.state import NodeState


def _version(spec: NodeSpec, state: NodeState) -> Verdict:
    tools, whose = need.value(state.tools), owners.observed("toolkit", spec, state)
    tool = tools.get("nvidia-ctk") or (tools.get(OPERATOR_CTK) if whose else None)
    if tool is None:
        return fail("there is no nvidia-ctk on root's PATH" + (f" or at {OPERATOR_CTK}; {whose}" if whose else ""))
    found = re.search(r"(?<!\d)(\d+\.\d+\.\d+)", tool.version_line)
    if not found or (not whose and found[1] != spec.toolkit.version):
        wanted = "" if whose else f", the spec {spec.toolkit.version}"
        return fail(f"{tool.path} says {tool.version_line!r}{wanted}")
    return passed(f"{tool.path} is {found[1]}", whose)


def _floor(spec: NodeSpec, state: NodeState) -> Verdict:
    package = need.value(state.packages).get("nvidia-container-toolkit")
    whose = owners.observed("toolkit", spec, state)
    operators = state.commands.get(OPERATOR_CTK) if whose else None
    version = operators.version_line if operators else package.version if package else ""
    parts = leading(version, 3)
    if not parts:
        return skip(f"no toolkit package is installed{'; ' if whose else ''}{whose}")
    if parts < numbers(TOOLKIT_FLOOR):
        return warn(
            f"{version} is below {TOOLKIT_FLOOR}, which closes CVE-2026-24260 (a container can get out)",
            f"update it there: {whose}" if whose else f"set toolkit.version to {TOOLKIT_FLOOR} or newer, and apply",
        )
    return passed(f"{version} is not below {TOOLKIT_FLOOR}")


CHECKS = (
    Check(
        "toolkit.floor",
        "the toolkit has the known security fixes",
        Level.config,
        "Older toolkits let a container out: CVE-2024-0132, CVE-2025-23266, CVE-2026-24260.",
        "dpkg-query -W nvidia-container-toolkit",
        f"set toolkit.version to {TOOLKIT_FLOOR} or newer, and apply",
        _floor,
        component="toolkit",
    ),
    Check(
        "toolkit.version",
        "the toolkit that runs comes from the packages",
        Level.effective,
        "The command that answers is not the one of the packages: an old copy earlier on PATH, or a half-done upgrade.",
        'command -v nvidia-ctk; nvidia-ctk --version; dpkg -S "$(command -v nvidia-ctk)"',
        "gpuready apply; remove a copy in /usr/local/bin",
        _version,
        component="toolkit",
    ),
)

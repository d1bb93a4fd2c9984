"""The toolkit and Docker as they answer: versions, runtimes, and a new container under the runtime nvidia.

Sources: ``nvidia-ctk --version``, ``docker info``, NVIDIA's security bulletins for the floor.
"""

from __future__ import annotations

import re

from gpuready.core import owners
from gpuready.core.check import Check, Level, Verdict, fail, passed, skip, unknown, unread, warn
from gpuready.core.smoke import gpus_seen, not_run
from gpuready.spec.model import TOOLKIT_FLOOR, NodeSpec
from gpuready.state.model import NodeState, Unknown


def _toolkit(spec: NodeSpec, state: NodeState) -> Verdict:
    if isinstance(state.tools, Unknown):
        return unread(state.tools)
    whose = owners.observed("toolkit", spec, state)
    tool = state.tools.get("nvidia-ctk") or (state.tools.get(owners.OPERATOR_CTK) if whose else None)
    if tool is None:
        return fail(
            "there is no nvidia-ctk on root's PATH" + (f" or at {owners.OPERATOR_CTK}; {whose}" if whose else "")
        )
    version = re.search(r"(?<!\d)(\d+\.\d+\.\d+)", tool.version_line)
    if whose:
        return (
            passed(f"{tool.path} is {version[1]}", whose)
            if version
            else fail(f"{tool.path} says {tool.version_line!r}")
        )
    if not version or version[1] != spec.toolkit.version:
        return fail(f"{tool.path} says {tool.version_line!r}, the spec {spec.toolkit.version}")
    return passed(f"{tool.path} is {version[1]}")


def _floor(spec: NodeSpec, state: NodeState) -> Verdict:
    if isinstance(state.packages, Unknown):
        return unread(state.packages)
    package = state.packages.get("nvidia-container-toolkit")
    whose = owners.observed("toolkit", spec, state)
    operators = None if isinstance(state.tools, Unknown) or not whose else state.tools.get(owners.OPERATOR_CTK)
    version = operators.version_line if operators else package.version if package else ""
    parts = tuple(int(n) for n in re.findall(r"\d+", version)[:3])
    if not parts:
        return skip(f"no toolkit package is installed{'; ' if whose else ''}{whose}")
    if parts < tuple(int(n) for n in TOOLKIT_FLOOR.split(".")):
        return warn(
            f"{version} is below {TOOLKIT_FLOOR}, which closes CVE-2026-24260 (a container can get out)",
            f"update it there: {whose}" if whose else f"set toolkit.version to {TOOLKIT_FLOOR} or newer, and apply",
        )
    return passed(f"{version} is not below {TOOLKIT_FLOOR}")


def _runtime(spec: NodeSpec, state: NodeState) -> Verdict:
    if spec.runtimes.docker == "absent":
        return skip("runtimes.docker: absent")
    if state.docker is None:
        named = spec.runtimes.required_docker is not None
        installed = not isinstance(state.tools, Unknown) and "dockerd" in state.tools
        if not installed and not named:
            return skip("no Docker on this node")
        return unknown("Docker does not run" if installed else "the spec names Docker, and there is none")
    if isinstance(state.docker, Unknown):
        return unread(state.docker)
    whose = owners.observed("runtime", spec, state, "docker")
    if "nvidia" not in state.docker.runtimes:
        if whose:
            return skip(f"{whose}, which has given Docker no runtime nvidia")
        return fail(f"docker info lists {', '.join(sorted(state.docker.runtimes))}, not nvidia")
    docker = spec.runtimes.required_docker
    wants = docker is not None and docker.default_runtime
    if wants and state.docker.default_runtime != "nvidia":
        remedy = f"ask for it there: {whose}" if whose else ""
        return fail(f"the default runtime is {state.docker.default_runtime}, the spec asks for nvidia", remedy)
    extra = ", the default" if state.docker.default_runtime == "nvidia" else ""
    return passed(f"docker info lists nvidia ({state.docker.runtimes['nvidia']}{extra})")


def _smoke(spec: NodeSpec, state: NodeState) -> Verdict:
    if not spec.verify.image:
        return skip("verify.image is not set, and gpuready pulls no image by itself")
    if state.docker is None:
        return skip("no Docker on this node, or it does not run")
    whose = owners.observed("runtime", spec, state, "docker")
    if whose and not isinstance(state.docker, Unknown) and "nvidia" not in state.docker.runtimes:
        return skip(f"{whose}, which has given Docker no runtime nvidia")
    answer = state.active.get("smoke")
    if answer is None or "unknown" in answer:
        return unknown((answer or {}).get("unknown", "no container was started"))
    out = answer.get("out", "").strip()
    if answer.get("rc"):
        remedy = f"docker pull {spec.verify.image} on the node, or name another" if "is not on the node" in out else ""
        return not_run(f"docker run --runtime=nvidia {spec.verify.image}", answer["rc"], out, remedy)
    return gpus_seen(spec, state, out, "a container")


def _candidate(spec: NodeSpec, state: NodeState) -> Verdict:
    if whose := owners.observed("toolkit", spec, state):
        return skip(whose)
    answer = state.active.get("apt")
    if answer is None or "unknown" in answer:
        return unknown((answer or {}).get("unknown", "apt was not asked"))
    out = answer.get("out", "")
    if answer.get("rc") in (124, 137):  # timeout(1)
        return unknown(f"apt-cache policy: {' '.join(out.split())[-200:]}")
    url = re.sub(r"/\$\(ARCH\)$", "", spec.toolkit.repo.url)
    if url not in out and not answer.get("rc"):
        return unknown(
            f"apt has no package list from {url} yet, so what it offers is not known",
            "gpuready apply installs from it; or run apt-get update on the node, and read its errors",
        )
    if f" {spec.toolkit.version}-1 " not in out:
        return fail(f"apt does not know {spec.toolkit.version}-1 from {url}", evidence=" ".join(out.split())[:300])
    return passed(f"apt has {spec.toolkit.version}-1 from {url}")


CHECKS = (
    Check(
        "toolkit.floor",
        Level.config,
        "Older toolkits let a container out: CVE-2024-0132, CVE-2025-23266, CVE-2026-24260.",
        "dpkg-query -W nvidia-container-toolkit",
        f"set toolkit.version to {TOOLKIT_FLOOR} or newer, and apply",
        _floor,
    ),
    Check(
        "toolkit.version",
        Level.effective,
        "The command that answers is not the one of the packages: an old copy earlier on PATH, or a half-done upgrade.",
        'command -v nvidia-ctk; nvidia-ctk --version; dpkg -S "$(command -v nvidia-ctk)"',
        "apply; remove a copy in /usr/local/bin",
        _toolkit,
    ),
    Check(
        "repository.candidate",
        Level.effective,
        "The source is written, but apt has no package list from it: it was never updated, or is refused.",
        "apt-cache policy nvidia-container-toolkit; apt-get update",
        "gpuready apply; after that, run apt-get update on the node and read its errors",
        _candidate,
        active=True,
    ),
    Check(
        "docker.runtime",
        Level.effective,
        "daemon.json names the runtime, but the engine never read it; or it reads another file.",
        "docker info -f '{{json .Runtimes}} {{.DefaultRuntime}}'",
        "apply; or systemctl reload docker, and read its journal",
        _runtime,
    ),
    Check(
        "docker.smoke",
        Level.smoke,
        "A container under the runtime nvidia does not start, or has no GPU: the hook fails, a CDI spec is stale, "
        "NVIDIA_REQUIRE_CUDA is not met, or device nodes are missing.",
        "docker run --rm --pull=never --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all IMAGE ls /dev",
        "read the error, it is nvidia-container-runtime's own; its config.toml can set a debug log",
        _smoke,
        active=True,
        after=("docker.runtime", "driver.loaded"),
    ),
)

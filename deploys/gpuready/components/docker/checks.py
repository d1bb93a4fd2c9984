"""Checks of Docker by its own answers: its runtimes, and a new container under nvidia. Source: ``docker info``."""

from gpuready.contract import need, owners
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, unknown
from gpuready.contract.question import Question
from gpuready.contract.smoke import ASK, DOCKER_LIMITS, gpus_seen, not_run
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown


def _runtime(spec: NodeSpec, state: NodeState) -> Verdict:
    if spec.runtimes.docker == "absent":
        return skip("runtimes.docker: absent")
    engine = need.value(state.docker)
    if engine is None:
        installed = "dockerd" in state.commands
        if not installed and not spec.runtimes.requires("docker"):
            return skip("no Docker on this node")
        if installed:
            return unknown(
                "Docker does not run", "systemctl start docker; journalctl -u docker -n 50 says why it stopped"
            )
        return unknown(
            "the spec names Docker, but it is not installed", "runtimes: {docker: {install: distro}}, and apply"
        )
    whose = owners.observed("runtime", spec, state, "docker")
    if "nvidia" not in engine.runtimes:
        if whose:
            return skip(f"{whose}, and Docker has no runtime nvidia")
        return fail(f"docker info lists {', '.join(sorted(engine.runtimes))}, not nvidia")
    if spec.runtimes.docker_settings.default_runtime and engine.default_runtime != "nvidia":
        remedy = f"change it there: {whose}" if whose else ""
        return fail(f"the default runtime is {engine.default_runtime}, but the spec says nvidia", remedy)
    extra = ", the default" if engine.default_runtime == "nvidia" else ""
    return passed(f"docker info lists nvidia ({engine.runtimes['nvidia']}{extra})")


def _smoke(spec: NodeSpec, state: NodeState) -> Verdict:
    if not spec.verify.image:
        return skip("verify.image is not set, and gpuready pulls no image by itself")
    if state.docker is None:
        return skip("no Docker on this node, or it does not run")
    whose = owners.observed("runtime", spec, state, "docker")
    if whose and not isinstance(state.docker, Unknown) and "nvidia" not in state.docker.runtimes:
        return skip(f"{whose}, and Docker has no runtime nvidia")
    answer = need.answer(state, "smoke", "no container was started")
    out = answer.out.strip()
    if answer.rc:
        there = "is not on the node" not in out
        remedy = "" if there else f"docker pull {spec.verify.image} on the node, or set verify.image to one that it has"
        return not_run(f"docker run --runtime=nvidia {spec.verify.image}", answer.rc, out, remedy)
    return gpus_seen(spec, state, out, "a container")


class AskSmoke(Question, template="docker/ask-smoke"):
    """Start a new container under nvidia and look into it."""

    image: str
    ask: tuple[str, ...]


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    if not spec.verify.image or spec.verify.level == "config":
        return ()
    return (AskSmoke(DOCKER_LIMITS, spec.verify.image, ASK[spec.toolkit.hardened]),)


CHECKS = (
    Check(
        "docker.runtime",
        "Docker knows the runtime nvidia",
        Level.effective,
        "Docker does not run; or daemon.json names the runtime, but Docker has not read it, or reads another file.",
        "docker info -f '{{json .Runtimes}} {{.DefaultRuntime}}'",
        "gpuready apply; systemctl start docker if it does not run, else systemctl reload docker; read its journal",
        _runtime,
        component="docker",
    ),
    Check(
        "docker.smoke",
        "a new container sees the GPUs",
        Level.smoke,
        "A container under the runtime nvidia does not start, or has no GPU: the hook fails, a CDI spec is stale, "
        "NVIDIA_REQUIRE_CUDA is not met, or device nodes are missing.",
        "docker run --rm --pull=never --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all IMAGE ls /dev",
        "read the error: it comes from nvidia-container-runtime; its config.toml can turn on a debug log",
        _smoke,
        component="docker",
        active=True,
        after=("docker.runtime", "driver.loaded"),
    ),
)

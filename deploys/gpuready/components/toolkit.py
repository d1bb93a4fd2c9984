"""The NVIDIA container toolkit: its four packages at one exact version, held.

Why all four: before 1.18 the top package let the other three float, and from 1.18 a loose pin cannot be satisfied
(nvidia-container-toolkit issue 1091). The postinst of 1.18.0 to 1.19.1 runs ``systemctl daemon-reload``, which can
take the GPU away from containers in legacy mode (issues 48, 1227): installing is class *recreate*.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuready import resources
from gpuready.components.base import Applies, Change, Component, Disruption, Step, Steps, Value
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Unknown

PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)


class Toolkit(Component):
    """Four packages at ``toolkit.version``, each with a hold."""

    name = "toolkit"
    requires = ("repository",)

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        return Applies(True, "GPU containers need it")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        want: dict[str, Value] = {f"toolkit.{name}": f"{spec.toolkit.version}-1" for name in PACKAGES}
        return want | {f"toolkit.{name}.held": spec.toolkit.hold for name in PACKAGES}

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        if isinstance(state.packages, Unknown):
            return dict.fromkeys(self.expected(spec, state), state.packages)
        found: dict[str, Value] = {}
        for name in PACKAGES:
            package = state.packages.get(name)
            if package is not None:
                found[f"toolkit.{name}"] = package.version + ("" if package.configured else " (not configured)")
            found[f"toolkit.{name}.held"] = package.held if package else False
        return found

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.recreate if _packages(diff) else Disruption.none

    def hits(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        return gpu_containers(state) if _packages(diff) else ()

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        version = f"{spec.toolkit.version}-1"
        yield Step(
            "toolkit",
            resources.script(
                "toolkit",
                packages=PACKAGES,
                pins=[f"{name}={version}" for name in PACKAGES],
                install="1" if _packages(diff) else "",
                mark="hold" if spec.toolkit.hold else "unhold",
                version=version,
            ),
            timeout=1800,
            summary=f"install {version}" if _packages(diff) else "set the holds",
        )


def _packages(diff: tuple[Change, ...]) -> bool:
    return any(not c.key.endswith(".held") for c in diff)


def gpu_containers(state: NodeState) -> tuple[str, ...]:
    """Running containers that hold a GPU, as ``name (image)``; Docker's only, so far."""
    docker = state.docker
    if docker is None or isinstance(docker, Unknown):
        return ()
    return tuple(f"{c.name} ({c.image})" for c in docker.containers if c.gpu)

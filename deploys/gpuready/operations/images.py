"""Ask a node about images, for ``gpuready compat``: what they say of CUDA, and what a container of them gets."""

from collections.abc import Sequence

from pyinfra.api.host import Host

from gpuready.base import resources
from gpuready.binaries import cuinit
from gpuready.compat.checks import ReadImages
from gpuready.compat.trace_facts import debug_log
from gpuready.contract.smoke import ASK, DOCKER_LIMITS
from gpuready.model.images import named
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.operations.active import answers_of

#: Seconds to trace one image: to ask Docker for it twice, to run its container, and to remove that.
_TRACE = DOCKER_LIMITS["inspect"] + sum(DOCKER_LIMITS.values()) + 20


def trace_images(host: Host, state: NodeState, spec: NodeSpec, images: Sequence[str]) -> NodeState:
    """Start a container of each image, and look at it; return the state with what was seen in ``active``."""
    script = resources.script(
        "compat/trace",
        images=images,
        ask=ASK[spec.toolkit.hardened],
        cuinit=cuinit(state.machine),
        limits=DOCKER_LIMITS,
        debug=debug_log(state),
    )
    found = answers_of(host, script, _TRACE * len(images), "trace images")
    return state.model_copy(update={"active": {**state.active, **found}})


def read_images(host: Host, state: NodeState, spec: NodeSpec) -> NodeState:
    """Read only the spec's images, in the node's engines. Without images, no exec runs."""
    question = ReadImages.of(image.ref for image in named(spec.images))
    if not question.images:
        return state
    script = resources.script("compat/read-images", images=question.images, limits=question.limits)
    return state.model_copy(update={"active": answers_of(host, script, question.longest, "read images")})

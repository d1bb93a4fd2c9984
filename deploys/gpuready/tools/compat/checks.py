"""The images of the spec: will they run here? CUDA's errors 803, 804 and 35 are told before they happen.

Sources: :mod:`gpuready.tools.compat` (NVIDIA's CUDA Compatibility guide, the container toolkit's code).
"""

from __future__ import annotations

from gpuready.core.check import Check, Level, Verdict, fail, passed, skip, unknown
from gpuready.cuda.facts import ImageFacts
from gpuready.cuda.host import has_driver, hosts_of
from gpuready.cuda.versions import numbers
from gpuready.spec.images import ImageSpec, named
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState
from gpuready.tools.compat.answer import answers


def image_facts(images: tuple[ImageSpec, ...], state: NodeState) -> dict[str, ImageFacts]:
    """What was read on the node of every image, by reference (``state.active`` has ``image.0`` and so on)."""
    from gpuready.tools.compat.node_image import node_image  # tar and ELF: only where images were read

    return {
        image.ref: node_image(state.active.get(f"image.{number}"), numbers(image.cuda) if image.cuda else None)
        for number, image in enumerate(images)
    }


def _judge(spec: NodeSpec, state: NodeState) -> Verdict:
    if not spec.images:
        return skip("the spec names no images")
    if not has_driver(state):
        return skip("no nvidia module is loaded")
    found = answers(*hosts_of(state), image_facts(named(spec.images), state))
    told = "; ".join(f"{one.image}: {one.word}" for one in found)
    wrong = [one for one in found if one.found is not None and not one.runs]
    if wrong:
        assert wrong[0].found is not None
        remedy = wrong[0].fixes[0].do if wrong[0].fixes else ""
        return fail(f"{wrong[0].image} will not run here: {wrong[0].found.reason}", remedy, told)
    blind = [one for one in found if one.found is None]
    if blind:
        return unknown(
            f"{blind[0].image}: {blind[0].unknown}",
            "gpuready compat --image ARCHIVE reads it from a file of docker save, ctr images export or podman save",
        )
    return passed(told)


CHECKS = (
    Check(
        "image.compat",
        Level.effective,
        "An image brings a CUDA, and often a libcuda of its own, that this driver or GPU cannot take. In the program: "
        "'Error 804: forward compatibility was attempted on non supported HW' (the image's libcuda on a consumer GPU), "
        "'Error 803: system has unsupported display driver / cuda driver combination' (that libcuda on a driver branch "
        "it does not know), 'Error 35: CUDA driver version is insufficient for CUDA runtime version'; at the start: "
        "'unsatisfied condition: cuda>=..., please update your driver'. torch only says is_available() == False.",
        "nvidia-smi; docker run --rm --entrypoint sh IMAGE -c 'echo $CUDA_VERSION; ls /usr/local/cuda/compat'; "
        "where containerd has it: ctr -n k8s.io images mount IMAGE /mnt; ls /mnt/usr/local/cuda-*/compat; "
        "ctr -n k8s.io images unmount --rm /mnt",
        "gpuready compat -i INVENTORY --image IMAGE lists what makes it run, each predicted anew: a newer driver, "
        "compatibility libraries off (cuda-compat-mode), or an image of an older CUDA",
        _judge,
        gpu=True,
        active=True,
        after=("driver.loaded",),
    ),
)

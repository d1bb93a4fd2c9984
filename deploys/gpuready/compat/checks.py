"""Check whether the images in the spec will run: predicts CUDA's errors 803, 804 and 35.

Sources: :mod:`gpuready.compat` (NVIDIA's CUDA Compatibility guide, the container toolkit's code).
"""

from collections.abc import Iterable

from gpuready.base.versions import numbers
from gpuready.compat.answer import answers
from gpuready.contract import need
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, unknown
from gpuready.contract.question import Question
from gpuready.cuda.facts import ImageFacts
from gpuready.gpu.compat_host import hosts_of
from gpuready.model.images import ImageSpec, named
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState


def image_facts(images: tuple[ImageSpec, ...], state: NodeState) -> dict[str, ImageFacts]:
    """Return the facts that the node reported of every image, by reference (``image.0`` ... in ``state.active``)."""
    from gpuready.compat.node_image import node_image  # tar and ELF: only where images were read

    return {
        image.ref: node_image(state.active.get(f"image.{number}"), numbers(image.cuda) if image.cuda else None)
        for number, image in enumerate(images)
    }


def _judge(spec: NodeSpec, state: NodeState) -> Verdict:
    if not spec.images:
        return skip("the spec names no images")
    need.driver(state)
    found = answers(*hosts_of(state), image_facts(named(spec.images), state))
    verdicts = "; ".join(f"{one.image}: {one.word}" for one in found)
    wrong = [one for one in found if one.prediction is not None and not one.runs]
    if wrong:
        assert wrong[0].prediction is not None
        remedy = wrong[0].fixes[0].do if wrong[0].fixes else ""
        return fail(f"{wrong[0].image} will not run here: {wrong[0].prediction.reason}", remedy, verdicts)
    blind = [one for one in found if one.prediction is None]
    if blind:
        return unknown(
            f"{blind[0].image}: {blind[0].unknown}",
            "gpuready compat --image ARCHIVE reads an archive of docker save, podman save or ctr images export",
        )
    return passed(verdicts)


class ReadImages(Question, template="compat/images"):
    """Read what images say of CUDA, in the node's engines."""

    images: tuple[str, ...]

    @classmethod
    def of(cls, images: Iterable[str]) -> "ReadImages":
        """Return the question about images, by their references."""
        references = tuple(images)
        return cls({f"image.{number}": 165 for number in range(len(references))}, references)


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    if not spec.images or spec.verify.level == "config" or not state.driver.loaded:
        return ()
    return (ReadImages.of(image.ref for image in named(spec.images)),)


CHECKS = (
    Check(
        "image.compat",
        "the images fit the driver and the GPUs",
        Level.effective,
        "An image contains a CUDA, and often its own libcuda, that this driver or GPU does not support. In the "
        "program: "
        "'Error 804: forward compatibility was attempted on non supported HW' (the image's libcuda on a consumer GPU), "
        "'Error 803: system has unsupported display driver / cuda driver combination' (that libcuda on a driver branch "
        "that it does not support), 'Error 35: CUDA driver version is insufficient for CUDA runtime version'; at the "
        "start: "
        "'unsatisfied condition: cuda>=..., please update your driver'. torch only says is_available() == False.",
        "nvidia-smi; docker run --rm --entrypoint sh IMAGE -c 'echo $CUDA_VERSION; ls /usr/local/cuda/compat'; "
        "where containerd has it: ctr -n k8s.io images mount IMAGE /mnt; ls /mnt/usr/local/cuda-*/compat; "
        "ctr -n k8s.io images unmount --rm /mnt",
        "gpuready compat -i INVENTORY --image IMAGE lists the fixes that are predicted to work: a newer driver, "
        "compatibility libraries off (cuda-compat-mode), or an image of an older CUDA",
        _judge,
        gpu=True,
        active=True,
        advisory=True,  # an image that is not on the node yet is no fault of the node, and it is never pulled
        after=("driver.loaded",),
    ),
)

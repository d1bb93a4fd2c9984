"""What the script told of images on a node, and the check that judges them."""

import base64
import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from gpuready.base.facts import Answer, Unknown
from gpuready.base.versions import numbers
from gpuready.catalogue import BY_ID
from gpuready.compat.node_image import node_image
from gpuready.compat.note import read_note
from gpuready.contract.check import Verdict, run_checks
from gpuready.cuda import tables
from gpuready.cuda.facts import CompatLib, Host, Image, ImageFacts
from gpuready.cuda.predict import predict
from gpuready.model.spec import NodeSpec
from tests.command import Exits
from tests.compat.imagefiles import NOTE, config, library, pieces, record
from tests.compat.test_image_verdicts import node

CUDA = {"CUDA_VERSION": "12.9.1", "NVIDIA_REQUIRE_CUDA": "cuda>=12.9"}
LIBRARY = CompatLib((575, 57, 8), read_note(NOTE))
IMAGE = Image((12, 9, 1), (LIBRARY,), requires=("cuda>=12.9",))


def image(env: dict[str, str], *lines: str) -> Image:
    found = node_image(record(env, *lines)).image
    assert found is not None
    return found


def test_an_image_out_of_its_pieces() -> None:
    assert node_image(record(CUDA, *pieces(library() + bytes(10_000_000)))) == ImageFacts(IMAGE)
    own = image(CUDA, *pieces(library(), "lib.real/libcuda.so.575.57.08"))
    assert (own.compat, own.own_compat) == ((), (LIBRARY,))
    assert image(CUDA, *pieces(library(None))).compat == (CompatLib((575, 57, 8)),)


def test_what_containerd_says_is_the_whole_configuration() -> None:
    told = base64.b64encode(config(CUDA)).decode()
    found = node_image(Answer(out="\n".join([f"config {told}", *pieces(library())])))
    assert found == ImageFacts(IMAGE)


REAL = Path(__file__).parents[1] / "data" / "h200-compat" / "libcuda.so.580.95.05.json"


def test_the_real_library_of_a_release_and_what_it_did() -> None:
    """Of cuda-compat-13-0, 96 MB: on an H200 with driver 580.159.04 cuInit answered 803 with it, 0 without it."""
    recorded = json.loads(REAL.read_text())
    lines = [f"piece libcuda.so.580.95.05 {at} {data}" for at, data in recorded["pieces"]]
    found = image({"CUDA_VERSION": "13.0.1"}, "file libcuda.so.580.95.05", *lines)
    (real,) = found.compat
    assert real.note is not None
    assert (real.version, real.note.cuda) == ((580, 95, 5), "13.0")
    assert real.note.driver == {535, 550, 565, 570, 575, 580}
    assert real.note.device == {1, 2, 7, 8, 9, 10, 11, 12, 13, 14}
    current, released = tables.forward_branches((13, 0))
    assert real.note.driver == current | released | {580}
    host = Host(numbers("580.159.04"), tables.gpu("NVIDIA H200", "NVIDIA"), "none")
    assert predict(host, found).verdict == "ERROR_803"
    assert predict(host, replace(found, compat=())).verdict == "NATIVE"
    in_container = replace(host, stack="hook", toolkit=numbers("1.20.0"))
    assert predict(in_container, found).verdict == "NATIVE"


@pytest.mark.parametrize(
    ("lines", "note"),
    [
        (["odd libcuda.so.575.57.08 it is no 64-bit ELF file"], "it is no 64-bit ELF file"),
        ([], "unreadable ELF file"),
        (["piece libcuda.so.575.57.08 0 f0VMRg=="], "unreadable ELF file"),
    ],
)
def test_a_library_that_cannot_be_read(lines: list[str], note: str) -> None:
    found = node_image(record(CUDA, "file libcuda.so.575.57.08", *lines))
    assert found.image is not None and found.image.compat == (CompatLib((575, 57, 8)),)
    assert note in found.notes[0]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "the image was not read"),
        (Unknown(unknown="no answer"), "no answer"),
        (Answer(rc=1, out="the image app:1 is not on the node, and it is not pulled unasked"), "not pulled unasked"),
        (Answer(rc=1, out=""), "exit 1"),
        (Answer(out="env {"), "answer about the image is invalid"),
        (Answer(out="config e30"), "answer about the image is invalid"),
        (Answer(out="config /w=="), "answer about the image is invalid"),
        (Answer(out="env null"), "has neither CUDA_VERSION"),
        (Answer(out="config W10="), "has neither CUDA_VERSION"),
        (record(CUDA, "piece a b"), "answer about the image is invalid"),
        (record(CUDA, "piece a 0 !"), "answer about the image is invalid"),
        (record(CUDA, f"piece a {1 << 40} AA=="), "answer about the image is invalid"),
    ],
)
def test_no_facts(answer: Answer | Unknown | None, why: str) -> None:
    found = node_image(answer)
    assert found.image is None
    assert why in found.unknown


def test_the_cuda_of_a_wheel_or_of_the_spec() -> None:
    wheel = record({}, "path ./usr/lib/nvidia_cuda_runtime_cu12-12.8.57.dist-info/METADATA")
    assert node_image(wheel) == ImageFacts(Image((12, 8)))
    assert node_image(record({}), (11, 8)) == ImageFacts(Image((11, 8)))
    note = "the image itself says CUDA 12.8, which overrides 11.8"
    assert node_image(wheel, (11, 8)) == ImageFacts(Image((12, 8)), notes=(note,))
    assert node_image(wheel, (12, 8)) == ImageFacts(Image((12, 8)))


# --- the check --------------------------------------------------------------------------------------------------------


def judged(gpu: str) -> Verdict:
    answers = {"image.0": record(CUDA, *pieces(library())), "image.1": record({"CUDA_VERSION": "12.4.1"})}
    spec = NodeSpec.model_validate({"images": ["app:1", {"ref": "old:1"}], "hardware": {"gpus": 1}})
    checks = (BY_ID["image.compat"],)
    (found,) = run_checks(checks, spec, node(gpu, **answers), "gpu01", active=True, today=date(2026, 11, 21))
    return found.verdict


def test_what_the_check_tells_besides() -> None:
    assert judged("NVIDIA H100 80GB HBM3").summary == "app:1: FORWARD; old:1: NATIVE"
    bad = judged("NVIDIA GeForce RTX 4090")
    assert bad.evidence == "app:1: ERROR_804; old:1: NATIVE"
    assert bad.remedy.startswith("upgrade the driver to 575.57.08 or newer")


@pytest.mark.parametrize("words", ["error 803", "804", "Image.Compat", "unsatisfied condition"])
def test_explain_finds_it_by_the_message(words: str, exits: Exits) -> None:
    assert "image.compat" in exits(0, "explain", words).out


def test_explain_by_words(exits: Exits) -> None:
    assert exits(0, "explain", "triton libcuda.so").out.startswith("libcuda.ldcache: ")

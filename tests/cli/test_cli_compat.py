"""``gpuready compat`` as it is typed: verdicts, exit codes, every format, and what cannot be asked."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from gpuready.compat.published import not_published
from tests.command import VALIDATOR, Exits, gpuready, write_hosts
from tests.lab import scale

HOST = ["compat", "--driver", "450.102.04", "--gpu", "GeForce RTX 2080 Ti"]
FIELD = [*HOST, "--image-cuda", "11.2.2", "--compat-lib", "460.32.03", "--stack", "mount"]


def test_the_case_of_the_field_report(exits: Exits) -> None:
    out, err = exits(3, *FIELD, "--output", "json")
    found = json.loads(out)
    VALIDATOR.validate(found)
    image = found["image"]
    assert (image["verdict"], image["certain"], image["libcuda"]) == ("ERROR_804", True, "460.32.03")
    assert "GeForce RTX 2080 Ti is a consumer GPU" in image["reason"]
    assert [fix["verdict"] for fix in image["fixes"]] == ["NATIVE", "MINOR", "MINOR", "NATIVE"]
    assert (found["exit_code"], found["hosts"], err) == (3, {}, "")


@pytest.mark.parametrize(
    ("argv", "verdict", "code"),
    [
        ([*FIELD[:-2], "--stack", "disabled"], "MINOR", 0),
        ([*FIELD[:-2], "--toolkit", "1.17.3"], "ERROR_804", 3),
        ([*FIELD[:-2], "--toolkit", "1.17.4"], "MINOR", 0),
        (["compat", "--driver", "535.54.03", "--image-cuda", "12.4", "--compat-lib", "550.54.14"], "ERROR_804", 3),
        ([*HOST, "--image-cuda", "10.2"], "NATIVE", 0),
        ([*HOST, "--image-cuda", "12.4.1"], "NEEDS_DRIVER", 3),
        ([*FIELD, "--require", "cuda>=11.2 brand=tesla,driver>=418,driver<419"], "REFUSED", 3),
        (["compat", "--driver", "575.10.10", "--gpu", "datacenter", "--image-cuda", "12.9.1", "--compat-lib",
          "575.57.08", "--note", '{"format":1,"CUDA version":"12.9","driver":[570,575]}'], "FORWARD", 0),
    ],
)  # fmt: skip
def test_verdicts_and_exit_codes(argv: list[str], verdict: str, code: int, exits: Exits) -> None:
    assert exits(code, *argv, "--output", "json").document["image"]["verdict"] == verdict


def test_for_people(exits: Exits) -> None:
    first, second, *rest = exits(3, *FIELD).out.splitlines()
    assert first.startswith("ERROR_804  the image's libcuda 460.32.03 is loaded in place of the driver's 450.102.04")
    assert second.startswith("  fix:     1. upgrade the driver to 460.32.03 or newer")
    assert len(rest) == 3
    told = exits(3, "compat", "--driver", "535.54.03", "--image-cuda", "12.4", "--compat-lib", "550.54.14")
    assert told.out.startswith("ERROR_804?  ")


def test_an_answer_that_depends_on_the_gpu_says_so(exits: Exits) -> None:
    asked = ["compat", "--driver", "580.65.06", "--image-cuda", "13.0"]
    out = exits(0, *asked).out
    assert out.startswith("NATIVE?  ")
    assert "differs for some: NO_CODE for Volta, Pascal, Maxwell\n" in out
    assert exits(0, *asked, "--gpu", "NVIDIA L4").out.startswith("NATIVE  ")
    forward = exits(3, "compat", "--driver", "535.54.03", "--image-cuda", "12.4", "--compat-lib", "550.54.14").out
    assert "FORWARD for pro, datacenter" in forward and "ERROR_804 for" not in forward
    same = exits(3, "compat", "--driver", "450.80.02", "--image-cuda", "12.2", "--output", "json").document["image"]
    assert (same["verdict"], same["certain"], same["notes"]) == ("NEEDS_DRIVER", True, [])


def test_each_question_mark_has_its_reason(exits: Exits) -> None:
    asked = ["compat", "--driver", "470.57.02", "--gpu", "RTX4000", "--image-cuda", "12.4"]
    why = "the tables do not know the GPU 'RTX4000': it may need a newer driver or CUDA"
    assert exits(3, *asked).out.count(f"-> NATIVE? ({why})\n") == 2
    (first, *_) = exits(3, *asked, "--output", "json").document["image"]["fixes"]
    assert (first["certain"], first["doubt"]) == (False, why)


def test_a_branch_whose_releases_agree(exits: Exits) -> None:
    asked = ["compat", "--driver", "535", "--gpu", "NVIDIA A10", "--image-cuda", "12.4"]
    image = exits(0, *asked, "--output", "json").document["image"]
    assert (image["image"], image["verdict"], image["certain"]) == ("", "MINOR", True)
    assert "the same for 535.54.03 and 535.309.01, the oldest and the newest known release" in image["notes"][-1]
    one = exits(0, *asked[:2], "465", *asked[3:-1], "11.3", "--output", "json").document["image"]
    assert (one["verdict"], one["notes"]) == ("NATIVE", []) and "465.19.01" in one["reason"]  # only one is known


def test_a_branch_whose_releases_differ(exits: Exits) -> None:
    asked = ["compat", "--driver", "450", "--gpu", "Tesla T4", "--image-cuda", "11.4"]
    found = exits(3, *asked, "--output", "json").document
    judged = [(each["image"], each["verdict"]) for each in found["hosts"]["host"]["images"]]
    assert judged == [("driver 450.36.06", "NEEDS_DRIVER"), ("driver 450.80.02", "MINOR")]
    told = exits(3, *asked).out
    assert "driver 450.36.06  driver 450.80.02\n" in told and "1 of 2 images on hosts will run" in told


@pytest.mark.parametrize(
    ("image", "driver", "word"),
    [
        ("nvcr.io/nvidia/pytorch:25.08-py3", "580.65.06", "NATIVE"),
        ("nvcr.io/nvidia/pytorch:25.10-py3", "535", "FORWARD?"),
        ("nvcr.io/nvidia/pytorch:25.07-py3", "575.57.08", "NATIVE?"),
        ("nvcr.io/nvidia/pytorch:22.12-py3", "525.60.13", "NATIVE?"),
        ("pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime", "535", "MINOR"),
        ("docker.io/pytorch/pytorch:2.8.0-cuda12.8-cudnn9-devel", "535", "FORWARD"),
        ("nvidia/cuda:13.0.1-cudnn-devel-ubuntu24.04", "580.82.07", "NATIVE"),
        ("nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04", "470", "FORWARD"),
        ("pytorch/pytorch:2.9.1-cuda13.0-cudnn9-runtime", "570", "NEEDS_DRIVER"),
        ("nvidia/cuda:13.4.2-base-ubuntu24.04", "580.82.07", "FORWARD?"),
    ],
)
def test_a_published_image_by_its_name(image: str, driver: str, word: str, exits: Exits) -> None:
    """Without a network, and without an engine that has it."""
    code = 3 if word == "NEEDS_DRIVER" else 0
    told = exits(code, "compat", "--driver", driver, "--gpu", "NVIDIA A10", "--image", image).out
    assert told.startswith(f"{word}  ")
    assert "the image itself was not read" in told
    assert ("according to one source only" in told) == (image.endswith((":25.07-py3", ":22.12-py3")))
    assert ("its libcuda is known from one source only" in told) == ("13.4.2" in image)


def test_the_answer_says_why_neighbouring_releases_differ(exits: Exits) -> None:
    """Of each CUDA, NVIDIA lists the driver branches on which its libcuda works: 470 until 12.8."""
    asked = ("compat", "--driver", "470", "--gpu", "NVIDIA A10", "--image")
    for release in ("23.08", "24.05", "24.07", "25.03"):
        told = exits(0, *asked, f"nvcr.io/nvidia/pytorch:{release}-py3").out
        assert told.startswith("FORWARD?") and "(the images of its release list driver branch 470)" in told
    told = exits(3, *asked, "nvcr.io/nvidia/pytorch:25.04-py3").out
    assert told.startswith("NEEDS_DRIVER") and "575.51.03 does not support driver branch 470: neither" in told
    told = exits(3, *asked[:4], "GeForce RTX 3090", "--image", "nvcr.io/nvidia/pytorch:25.03-py3").out
    assert "own libcuda 570.26 is only for data-center GPUs" in told


def test_a_tag_that_is_older_than_the_table() -> None:
    """The message of a name that neither engine nor table has: tests/compat/test_registry.py has the rest of it."""
    what = "not in the table of published images"
    assert not_published("nvcr.io/nvidia/pytorch:21.02-py3") == f"{what}, which has its releases 22.10 to 26.08"
    assert not_published("example.com/app:1") == what


def test_for_ci(exits: Exits) -> None:
    suites = ET.fromstring(exits(3, *FIELD, "--output", "junit").out)
    assert suites.get("failures") == "1"
    assert ET.fromstring(exits(0, *HOST, "--image-cuda", "10.2", "--output", "junit").out).get("failures") == "0"
    (line,) = exits(3, *FIELD, "--output", "jsonl").out.splitlines()
    assert json.loads(line)["image"]["verdict"] == "ERROR_804"


@pytest.mark.parametrize(
    ("more", "message", "instead"),
    [
        (["--driver", "565"], "--driver 565: no release of this branch is known (on 2026-", "555, 560, 570, 575"),
        (["--driver", "99999"], "--driver 99999: not a version", "535.104.05"),
        (["--driver", "latest"], "--driver latest: not a version", "a full driver version"),
        (["--driver", "100.14.11"], "not a known driver", "346"),
        (["--image-cuda", "12.7"], "no such CUDA toolkit is known (on 2026-", "12.6, 12.8"),
        (["--image-cuda", "112"], "--image-cuda 112: not a version", "X.Y"),
        (
            ["--compat-lib", "libcuda.so.460.32.03"],
            "--compat-lib libcuda.so.460.32.03: not a version",
            "full driver version",
        ),
        (["--stack", "ldconfig", "--toolkit", "1.17.3"], "ldconfig needs toolkit 1.17.7 or newer", "--stack mount"),
        (["--stack", "hook", "--toolkit", "1.17.4"], "hook needs toolkit 1.17.5 or newer", "--stack disabled"),
        (["--stack", "disabled", "--toolkit", "1.17.3"], "disabled needs toolkit 1.17.4 or newer", "--stack mount"),
        (["--toolkit", "1.17"], "--toolkit 1.17: not a version", "X.Y.Z"),
        (["--note", "{}"], "--note describes one library, and --compat-lib names none", "--compat-lib"),
        (["--compat-lib", "460.32.03", "--note", "{"], "--note: invalid JSON", "driver"),
        (["--compat-lib", "460.32.03", "--note", '{"driver": "535"}'], "'driver' is not a list of numbers", "[535"),
        (["--compat-lib", "460.32.03", "--note", '{"format":1,"drivers":[535]}'], "key 'drivers'", '"driver":['),
        (["--compat-lib", "460.32.03", "--note", '{"a":1}'], "unknown key 'a' (allowed: format, CUDA", "format"),
        (["--compat-lib", "460.32.03", "--note", '{"format":2}'], '"format" must be 1', '"format":1'),
        (["--compat-lib", "460.32.03", "--note", "{}"], '"format" must be 1', '"format":1'),
        (["--require", "cuda>=x"], "--require: 'cuda>=x': 'x' is not a version", "cuda>=12.4"),
        (["--stack", "hook", "--require", "speed>3"], "unknown property 'speed'", "cuda>=12.4"),
        (["--gpu", "NVIDIA A100"], "--gpu was given several times", "one call for each"),
        (["--stack", "cdi"], "'cdi' is not one of 'none', 'mount', 'ldconfig', 'hook', 'disabled'", "--help"),
    ],
)
def test_what_cannot_be_asked(more: list[str], message: str, instead: str, exits: Exits) -> None:
    out, err = exits(64, *HOST, "--image-cuda", "11.2.2", *more, "--output", "json")
    found = json.loads(out)
    VALIDATOR.validate(found)
    assert message in found["error"]["message"]
    assert instead in found["error"]["remedy"]
    assert message in err


def test_an_empty_gpu(exits: Exits) -> None:
    assert "--gpu is empty" in exits(64, "compat", "--driver", "450.102.04", "--gpu", "", "--image-cuda", "11.0").err


def test_several_gpus_in_one_are_refused(exits: Exits) -> None:
    told = exits(64, "compat", "--driver", "580.65.06", "--gpu", "A100,H100", "--image-cuda", "13.0")
    assert "--gpu A100,H100: several GPUs" in told.err


def test_what_its_cuda_no_longer_supports_does_not_pass_a_gate(exits: Exits) -> None:
    told = exits(3, "compat", "--driver", "580.65.06", "--gpu", "Tesla V100", "--image-cuda", "13.0").out
    assert told.startswith("NO_CODE  CUDA 13 does not support Volta") and "CUDA 12.9 or older -> NATIVE" in told


def test_a_gate_that_nobody_asks(exits: Exits) -> None:
    argv = [*HOST, "--image-cuda", "11.0", "--require", "cuda>=12.9"]
    assert "  note:    NVIDIA_REQUIRE_CUDA is ignored here: only libnvidia-container" in exits(0, *argv).out
    out = exits(3, *argv, "--stack", "ldconfig").out
    assert out.startswith("REFUSED")
    assert "NVIDIA_REQUIRE_CUDA is ignored" not in out


@pytest.mark.parametrize("given", [["--driver", "450.102.04"], ["--image-cuda", "11.2.2"], []])
def test_what_is_missing_is_named(given: list[str], exits: Exits) -> None:
    err = exits(64, "compat", *given).err
    assert ("--image-cuda is missing" if given[:1] == ["--driver"] else "--driver is missing") in err
    assert "gpuready compat --driver 535.54.03" in err


def test_no_pyinfra_and_no_gevent() -> None:
    code = (
        "import sys\nfrom gpuready.cli.main import run\ncode = run(sys.argv[1:])\n"
        "heavy = {'pyinfra', 'gevent', 'paramiko', 'elftools', 'zstandard', 'rich'}\n"
        "print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *FIELD], capture_output=True, text=True, timeout=scale.seconds(60), check=False
    )
    assert done.stderr == "3 []\n"


@pytest.mark.parametrize(
    ("more", "message", "instead"),
    [
        (["--trace", "app:1"], "--trace starts a container on hosts: -i is missing", "-i hosts.yaml --trace app:1"),
        (["-i", "h,", "--trace", "app:1", "--driver", "580.65.06"], "--trace and --driver contradict", "out --driver"),
        (["-i", "h,", "--trace", "app:1", "--gpu", "NVIDIA L4"], "--trace and --gpu contradict", "leave out --gpu"),
        (["-i", "h,", "--trace", "app:1", "--state", "f"], "--trace and --state contradict", "leave out --state"),
        (["-i", "h,", "--trace", "docker://app:1"], "not an image of the node's Docker", "docker load"),
        (["-i", "h,", "--trace", "app.tar"], "--trace app.tar: no such file", "docker save"),
        (["-i", "h,", "--trace", "-x"], "--trace -x: neither a file nor a reference", "such as app.tar"),
    ],
)
def test_what_cannot_be_traced(more: list[str], message: str, instead: str, exits: Exits) -> None:
    found = json.loads(exits(64, "compat", *more, "--output", "json").out)
    assert message in found["error"]["message"] and instead in found["error"]["remedy"]


def test_each_host_of_an_inventory_has_images_also_one_that_is_not_reached_or_not_managed(tmp_path: Path) -> None:
    hosts = write_hosts(
        tmp_path, "all: {hosts: {gone: {ansible_host: 127.0.0.1, ansible_port: 1, gpuready: {}}, db: }}"
    )
    done = gpuready("compat", "-i", hosts, "--image-cuda", "12.4.1", "--output", "json")
    found = json.loads(done.stdout)
    VALIDATOR.validate(found)
    assert done.returncode == 4
    assert {name: (h["outcome"], h["images"]) for name, h in found["hosts"].items()} == {
        "gone": ("unreachable", []), "db": ("skipped", []),
    }  # fmt: skip

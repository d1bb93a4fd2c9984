"""Nodes as the predictor takes them, and the matrix of hosts and images."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuready.cuda.facts import Image
from gpuready.cuda.predict import predict
from gpuready.gpu.compat_host import gpus_of, hosts_of
from gpuready.model.state import Driver, NodeState, Package, Tool, Unknown
from tests.command import Exits, Said, write_states
from tests.compat.imagefiles import archive, docker_save, layer, library
from tests.verdicts import root_files

CONFIG = "/etc/nvidia-container-runtime/config.toml"
DATA = Path(__file__).parents[1] / "data"
SMI = (DATA / "h200" / "nvidia-smi-q-x.xml").read_text()


def gpus(*models: tuple[str, str]) -> str:
    """What nvidia-smi -q -x says of these (name, brand)."""
    blocks = [
        f'<gpu id="0{i}">\n<product_name>{name}</product_name>\n<product_brand>{brand}</product_brand>\n</gpu>'
        for i, (name, brand) in enumerate(models)
    ]
    return "\n".join(["<nvidia_smi_log>", *blocks, "</nvidia_smi_log>"])


def node(
    driver: str = "460.80", toolkit: str = "1.20.0", config: str | None = None, smi: str | Unknown | None = SMI
) -> NodeState:
    files = {} if config is None else root_files({CONFIG: config})
    tool = Tool(path="/usr/bin/nvidia-ctk", version_line=f"NVIDIA Container Toolkit CLI version {toolkit}")
    tools = {"nvidia-ctk": tool} if toolkit else {}
    return NodeState(driver=Driver(proc_version=driver, smi=smi), files=files, tools=tools)


CDI = '[nvidia-container-runtime]\nmode = "cdi"\n'
MODES = '[nvidia-container-runtime]\nmode = "{}"\n[nvidia-container-runtime.modes.legacy]\ncuda-compat-mode = "{}"\n'
AUTO = MODES.format("auto", "mount")
NO_HOOK = "[features]\ndisable-cuda-compat-lib-hook = true\n"


@pytest.mark.parametrize(
    ("toolkit", "config", "stack", "gate"),
    [
        ("1.20.0", None, "hook", False),
        ("1.20.0", AUTO, "hook", False),  # auto is jit-cdi, which knows no cuda-compat-mode
        ("1.20.0", CDI, "hook", False),
        ("1.20.0", NO_HOOK, "disabled", False),
        ("1.20.0", MODES.format("legacy", "ldconfig"), "ldconfig", True),
        ("1.20.0", MODES.format("legacy", "mount"), "mount", True),
        ("1.20.0", MODES.format("legacy", "hook"), "hook", True),
        ("1.20.0", NO_HOOK + MODES.format("legacy", "hook"), "disabled", True),
        ("1.20.0", MODES.format("legacy", "disabled"), "disabled", True),
        ("1.17.8", None, "ldconfig", True),
        ("1.17.8", AUTO, "mount", True),
        ("1.17.8", CDI, "hook", False),
        ("1.17.5", None, "hook", True),
        ("1.17.4", None, "disabled", True),
        ("1.17.4", "[features]\nallow-cuda-compat-libs-from-container = true\n", "mount", True),
        ("1.17.3", None, "mount", True),
    ],
)
def test_what_a_node_does_with_an_images_libcuda(toolkit: str, config: str | None, stack: str, gate: bool) -> None:
    (found,), why = hosts_of(node(toolkit=toolkit, config=config))
    assert (found.stack, found.gate, found.driver, why) == (stack, gate, (460, 80), "")
    assert found.gpu.name == "NVIDIA H200"


def test_a_driver_drives_what_nvidia_smi_lists_and_another_one_what_the_tables_say() -> None:
    image = Image((11, 2, 2))
    (real,), (asked,), (other,) = (hosts_of(node(), *what)[0] for what in ((), ("470.82.01",), ("", "NVIDIA H200")))
    assert predict(real, image).verdict == "NATIVE"
    assert [predict(host, image).verdict for host in (asked, other)] == ["NEEDS_DRIVER", "NEEDS_DRIVER"]


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (node(driver=""), "no nvidia driver is loaded"),
        (node(driver="71.86"), "driver 71.86 is unknown"),
        (node(toolkit=""), "the NVIDIA Container Toolkit is not installed"),
        (node(config="mode ="), f"{CONFIG}: it is not valid TOML"),
        (node(config='[nvidia-container-runtime]\nmode = "csv"\n'), "mode csv (Tegra) cannot be predicted"),
    ],
)
def test_where_nothing_can_be_said(state: NodeState, why: str) -> None:
    found, told = hosts_of(state)
    assert found == ()
    assert told.startswith(why)


def test_the_toolkit_by_its_package() -> None:
    packages = {"nvidia-container-toolkit": Package(version="1.17.8-1", arch="amd64")}
    assert hosts_of(node(toolkit="").model_copy(update={"packages": packages}))[0][0].toolkit == (1, 17, 8)


def test_the_recorded_h200() -> None:
    (found,), _ = hosts_of(NodeState.model_validate_json((DATA / "h200-mounted-driver/state.json").read_text()))
    assert (found.driver, found.toolkit, found.stack, found.gate) == ((580, 159, 4), (1, 20, 0), "hook", False)
    assert found.gpu.kind == "datacenter"


def test_gpus_by_brand_each_model_once() -> None:
    (h200,) = gpus_of(node())
    assert (h200.name, h200.kind, h200.brands, h200.capability) == ("NVIDIA H200", "datacenter", {"nvidia"}, "9.0")
    two = gpus_of(node(smi=gpus(("NVIDIA L4", "NVIDIA"), ("NVIDIA L4", "NVIDIA"), ("Graphics Device", "GeForce"))))
    assert [gpu.kind for gpu in two] == ["datacenter", "consumer"]
    for silent in (None, Unknown(unknown="smi: exit 9"), "<nvidia_smi_log></nvidia_smi_log>"):
        assert [gpu.kind for gpu in gpus_of(node(smi=silent))] == ["unknown"]


# --- the matrix -------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Hosts of an inventory and their states; two images, and one without CUDA."""
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("all:\n  hosts:\n    gpu[01:03]:\n  vars: {gpuready: {}}\n")
    consumer = gpus(("GeForce RTX 2080 Ti", "GeForce RTX"))
    a100 = gpus(("NVIDIA A100-SXM4-80GB", "NVIDIA"))
    states = {"gpu01": node(smi=a100), "gpu02": node(smi=consumer), "gpu03": node(smi=consumer)}
    write_states(tmp_path / "states.json", states)
    compat = {"usr/local/cuda": "cuda-11.3", "usr/local/cuda-11.3/compat/libcuda.so.465.19.01": library(None)}
    env = {"CUDA_VERSION": "11.3.1", "NVIDIA_REQUIRE_CUDA": "cuda>=11.3"}
    (tmp_path / "new.tar").write_bytes(archive(docker_save(env, [layer(compat)])))
    (tmp_path / "old.tar").write_bytes(archive(docker_save({"CUDA_VERSION": "11.0.3"}, [])))
    (tmp_path / "plain.tar").write_bytes(archive(docker_save({}, [layer({"bin/sh": b""})])))
    return {path.name: str(path) for path in tmp_path.iterdir()}


def matrix(files: dict[str, str], *more: str) -> list[str]:
    return ["compat", "-i", files["hosts.yaml"], "--state", files["states.json"], *more]


def images(said: Said) -> dict[str, list[dict[str, Any]]]:
    """Of each host of a result, what it says of the images."""
    return {name: host["images"] for name, host in said.document["hosts"].items()}


def verdicts(said: Said) -> list[str]:
    """Of each host, the verdict on the only image."""
    return [image["verdict"] for (image,) in images(said).values()]


def test_every_host_and_every_image(files: dict[str, str], exits: Exits) -> None:
    argv = matrix(files, "--image", files["new.tar"], "--image", files["old.tar"])
    found = images(exits(3, *argv, "--output", "json"))
    assert {name: [image["verdict"] for image in each] for name, each in found.items()} == {
        "gpu01": ["FORWARD", "NATIVE"], "gpu02": ["ERROR_804", "NATIVE"], "gpu03": ["ERROR_804", "NATIVE"]
    }  # fmt: skip
    assert found["gpu02"][0]["image"] == files["new.tar"]


def test_the_table_for_people(files: dict[str, str], exits: Exits) -> None:
    out = exits(3, *matrix(files, "--image", files["new.tar"], "--image", files["old.tar"])).out
    assert f"gpu01       {'FORWARD':<{len(files['new.tar'])}}  NATIVE" in out
    assert f"gpu[02-03]  {'ERROR_804':<{len(files['new.tar'])}}  NATIVE" in out
    assert out.count("ERROR_804  ") == 2  # in the table, and told once for both hosts
    assert f"{files['new.tar']} on gpu[02-03]: the image's libcuda 465.19.01" in out
    assert "NOT OK: 4 of 6 images on hosts will run; exit 3" in out


def test_all_is_well(files: dict[str, str], exits: Exits) -> None:
    told = exits(0, *matrix(files, "--image", files["old.tar"]))
    assert told.out.rstrip().endswith("OK: 3 of 3 images on hosts will run")


def test_an_image_by_its_facts_on_every_host(files: dict[str, str], exits: Exits) -> None:
    argv = matrix(files, "--image-cuda", "11.3.1", "--compat-lib", "465.19.01", "--output", "jsonl")
    *lines, _ = map(json.loads, exits(3, *argv).out.splitlines())
    assert [line["images"][0]["verdict"] for line in lines] == ["FORWARD", "ERROR_804", "ERROR_804"]


def test_a_host_without_a_state(files: dict[str, str], exits: Exits) -> None:
    Path(files["hosts.yaml"]).write_text("all:\n  hosts:\n    gpu[01:04]:\n  vars: {gpuready: {}}\n")
    found = exits(6, *matrix(files, "--image", files["old.tar"]), "--output", "json").document["hosts"]["gpu04"]
    assert (found["outcome"], found["images"]) == ("not_attempted", [])
    assert found["notes"] == ["the file has no state of this host"]


def test_what_if(files: dict[str, str], exits: Exits) -> None:
    argv = matrix(files, "--image", files["new.tar"], "--output", "json")
    assert verdicts(exits(0, *argv, "--driver", "465.19.01")) == ["NATIVE"] * 3
    assert verdicts(exits(0, *argv, "--gpu", "NVIDIA A40")) == ["FORWARD"] * 3


def test_an_image_on_a_described_host(files: dict[str, str], exits: Exits) -> None:
    host = ("--driver", "460.80", "--gpu", "GeForce RTX 2080 Ti")
    found = exits(3, "compat", *host, "--image", files["new.tar"], "--output", "json").document["image"]
    assert (found["verdict"], found["libcuda"]) == ("ERROR_804", "465.19.01")


def test_an_image_without_cuda_is_no_verdict(files: dict[str, str], exits: Exits) -> None:
    (image,) = images(exits(3, *matrix(files, "--image", files["plain.tar"]), "--output", "json"))["gpu01"]
    assert (image["verdict"], image["certain"], image["fixes"]) == (None, False, [])
    assert "has neither CUDA_VERSION" in image["reason"]


def test_the_cuda_of_an_image_that_does_not_say(files: dict[str, str], exits: Exits) -> None:
    for given, verdict, code in (("11.2", "NATIVE", 0), ("11.3", "MINOR", 0), ("12.4", "NEEDS_DRIVER", 3)):
        argv = matrix(files, "--image", files["plain.tar"], "--image-cuda", given, "--output", "json")
        assert verdicts(exits(code, *argv))[0] == verdict


def test_the_cuda_of_an_image_that_says_another_is_told(files: dict[str, str], exits: Exits) -> None:
    told = exits(0, *matrix(files, "--image", files["old.tar"], "--image-cuda", "11.3"))
    assert "  note:    the image itself says CUDA 11.0.3, which overrides 11.3\n" in told.out
    assert "note" not in exits(0, *matrix(files, "--image", files["old.tar"], "--image-cuda", "11.0")).out


def test_what_is_unknown_is_named_with_what_to_do(files: dict[str, str], exits: Exits) -> None:
    first, second = exits(3, "compat", "--driver", "460.80", "--image", files["plain.tar"]).out.splitlines()
    assert first.startswith("UNKNOWN  the image has neither CUDA_VERSION")
    assert second.startswith("  fix:     give its CUDA version with --image-cuda, or the image as an archive")
    write_states(Path(files["states.json"]), dict.fromkeys(("gpu01", "gpu02", "gpu03"), NodeState()))
    out = exits(3, *matrix(files, "--image", files["old.tar"])).out
    assert "gpu[01-03]: no nvidia driver is loaded\n  fix:     describe the host instead" in out
    assert "0 of 3 images on hosts will run, 3 UNKNOWN; exit 3 (the image will not run, or " in out


def test_a_requirement_that_these_hosts_do_not_check_is_a_note(files: dict[str, str], exits: Exits) -> None:
    told = exits(0, *matrix(files, "--image-cuda", "11.0", "--require", "cuda>=12.9"))
    assert "  note:    NVIDIA_REQUIRE_CUDA is ignored here" in told.out


def test_a_branch_of_drivers_on_every_host(files: dict[str, str], exits: Exits) -> None:
    """450.36.06 is too old for CUDA 11.3, 450.80.02 is not: two answers; for CUDA 12.4, one."""
    differ = exits(3, *matrix(files, "--driver", "450", "--image-cuda", "11.3", "--output", "json")).document
    for host in differ["hosts"].values():
        judged = [(each["image"], each["verdict"]) for each in host["images"]]
        assert judged == [("image, driver 450.36.06", "NEEDS_DRIVER"), ("image, driver 450.80.02", "MINOR")]
    agree = exits(3, *matrix(files, "--driver", "450", "--image-cuda", "12.4", "--output", "json"))
    assert [each["image"] for each in agree.document["hosts"]["gpu01"]["images"]] == ["image"]


def test_a_published_image_that_no_engine_has(files: dict[str, str], exits: Exits) -> None:
    argv = matrix(files, "--driver", "535.54.03", "--gpu", "NVIDIA L4", "--image", "nvidia/cuda:12.2.0-base")
    (image,) = exits(0, *argv, "--output", "json").document["hosts"]["gpu01"]["images"]
    assert (image["image"], image["verdict"], image["certain"]) == ("nvidia/cuda:12.2.0-base", "NATIVE", True)
    assert image["notes"][0].startswith("by the table of ") and image["notes"][1].startswith("on the node: ")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["-i", "HOSTS", "--driver", "565", "--image-cuda", "11.3"],
            "--driver 565: no release of this branch is known",
        ),
        (["-i", "HOSTS", "--stack", "mount", "--image-cuda", "11.3"], "--inventory and --stack contradict each other"),
        (["--driver", "460.80", "--image", "IMAGE", "--require", "cuda>=1"], "--image and --require contradict"),
        (["--driver", "460.80", "--image-cuda", "11.3", "--state", "x"], "--state needs the inventory"),
        (["--driver", "460.80", "--image", "HOSTS"], "not an image archive"),
        (["--driver", "460.80", "--image", "docker://127.0.0.1:1/app:1"], "127.0.0.1:1: Connection refused"),
        (["-i", "HOSTS"], "no image: neither --image nor --image-cuda, and no images: in the spec"),
        (["-i", "HOSTS", "--driver", "", "--image-cuda", "11.3"], "--driver : not a version"),
        (["-i", "HOSTS", "--image", "app:1", "--image-cuda", "12.7"], "no such CUDA toolkit is known"),
        (["-i", "HOSTS", "--image", "app.tar"], "--image app.tar: no such file"),
        (["--driver", "460.80", "--image", "./app"], "--image ./app: no such file"),
        (["--driver", "460.80", "--image", "bad ref!!"], "--image bad ref!!: neither a file nor a reference"),
    ],
)
def test_contradictions(more: list[str], message: str, files: dict[str, str], exits: Exits) -> None:
    words = {"HOSTS": files["hosts.yaml"], "IMAGE": files["new.tar"]}
    assert message in exits(64, "compat", *(words.get(word, word) for word in more)).err

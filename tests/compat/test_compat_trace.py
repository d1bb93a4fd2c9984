"""What a container got, from records of real ones: source, reason, proof, and whether it is as predicted."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuready.base.facts import Answer, File, Unknown
from gpuready.compat.answer import Answer as Predicted
from gpuready.compat.trace import Trace
from gpuready.compat.trace_facts import cli_lines, container, debug_log
from gpuready.compat.trace_verdict import trace
from gpuready.components.toolkit_config.state import CONFIG
from gpuready.cuda.facts import CompatLib
from gpuready.cuda.predict import BY_ENTRYPOINT, Prediction
from gpuready.model.state import NodeState
from gpuready.result.annotations import notes
from gpuready.result.blocks import host_word
from gpuready.result.document import document, read
from gpuready.result.exitcode import exit_code
from gpuready.result.human import human
from gpuready.result.junit import junit
from gpuready.result.model import HostResult, Run
from gpuready.result.text import Painter
from gpuready.verbs.compat.part import PART, JudgedImage, images, told
from tests.command import VALIDATOR

DATA = Path(__file__).parents[1] / "data/trace"
DRIVER = "550.163.01"
NATIVE = Prediction("NATIVE", True, "driver 550.163.01 supports CUDA 12.4")
FORWARD = Prediction("FORWARD", True, "...", CompatLib((999, 11, 1)))


def recorded(name: str, **other: str) -> dict[str, Answer | Unknown]:
    """The records of a real container, as the node's answer has them; ``other`` replaces some of them."""
    parts = json.loads((DATA / f"{name}.json").read_text("utf-8")) | other
    return {"trace.0" if part == "status" else f"trace.0.{part}": Answer(out=text) for part, text in parts.items()}


def worked(name: str) -> dict[str, Answer | Unknown]:
    """The same, had there been a GPU: cuInit returned 0."""
    look = json.loads((DATA / f"{name}.json").read_text("utf-8"))["look"]
    return recorded(name, look=look.replace("cuInit=100 count=-1 version=0", "cuInit=0 count=1 version=12040"))


def test_the_hosts_library() -> None:
    found = trace(worked("plain"), 0, NATIVE, DRIVER)
    assert (found.source, found.version, found.mode, found.cuinit) == ("host", DRIVER, "cdi", 0)
    assert found.agrees and found.path == "/usr/local/nvidia/lib64/libcuda.so.1"
    assert found.why == "the toolkit mounts the host's file (mode cdi); the loader finds it by /etc/ld.so.cache"
    assert found.proof == (
        "runtime log: Using requested mode 'cdi'",
        "hook: /usr/bin/nvidia-cdi-hook enable-cuda-compat --host-driver-version=550.163.01",
        "hook: /usr/bin/nvidia-cdi-hook update-ldcache --folder /usr/local/nvidia/lib64",
        "mountinfo: /usr/local/nvidia/lib64/libcuda.so.550.163.01 is mounted at "
        "/usr/local/nvidia/lib64/libcuda.so.550.163.01",
        "loader: /etc/ld.so.cache: /usr/local/nvidia/lib64/libcuda.so.1",
    )


def test_the_images_compat_library_by_the_hook() -> None:
    found = trace(worked("compat"), 0, FORWARD, DRIVER)
    assert (found.source, found.version, found.agrees) == ("compat", "999.11.01", True)
    assert "the hook enable-cuda-compat put /usr/local/cuda/compat first (/etc/ld.so.conf.d/00-compat-" in found.why
    assert any(line.startswith("/etc/ld.so.conf.d/00-compat-") for line in found.proof)


def test_the_file_that_names_a_directory_first_counts() -> None:
    look = json.loads((DATA / "compat.json").read_text("utf-8"))["look"]
    later = look.replace(
        "gpuready-ready", "conf /etc/ld.so.conf.d/988_cuda.conf /usr/local/cuda/compat\ngpuready-ready"
    )
    assert "(/etc/ld.so.conf.d/00-compat-" in trace(recorded("compat", look=later), 0, FORWARD, DRIVER).why


def test_the_images_own_library_by_the_environment() -> None:
    found = trace(worked("own"), 0, None, DRIVER)
    assert (found.source, found.file, found.version) == ("own", "/opt/own/libcuda.so.1", "")
    assert found.why == "the image has it in /opt/own; LD_LIBRARY_PATH has /opt/own" and found.agrees


def test_a_stub() -> None:
    look = json.loads((DATA / "own.json").read_text("utf-8"))["look"].replace("/opt/own", "/usr/local/cuda/lib64/stubs")
    found = trace(recorded("own", look=look), 0, NATIVE, DRIVER)
    assert found.source == "stub" and "but the container gets the stub that only linkers use" in found.differs


@pytest.mark.parametrize(
    ("name", "found", "loaded", "says"),
    [
        ("compat", NATIVE, DRIVER, "NATIVE with the host's libcuda, but the container gets the image's compat library"),
        ("plain", FORWARD, DRIVER, "FORWARD with the image's libcuda 999.11.01, but the container gets the host's"),
        ("compat", replace(FORWARD, library=CompatLib((998, 1, 1))), DRIVER, "libcuda 998.1.01, but the container"),
        ("plain", replace(NATIVE, certain=False), "551.1.1", "the loaded driver is 551.1.1, but the container gets"),
        ("plain", replace(NATIVE, verdict="REFUSED"), DRIVER, "REFUSED, but the container starts"),
        ("own", replace(NATIVE, certain=False), DRIVER, "compat predicts NATIVE (but not for certain) with the host's"),
        ("plain", replace(FORWARD, reason=f"{BY_ENTRYPOINT} 999.11.01; ..."), DRIVER, ""),
        ("plain", replace(NATIVE, verdict="NEEDS_DRIVER"), DRIVER, ""),
        ("plain", None, DRIVER, ""),
    ],
)
def test_a_difference_is_said(name: str, found: Prediction | None, loaded: str, says: str) -> None:
    made = trace(worked(name), 0, found, loaded)
    assert says in made.differs and bool(made.differs) == bool(says), made


def test_what_cuinit_returns_is_compared() -> None:
    made = trace(recorded("plain"), 0, NATIVE, DRIVER)
    assert made.differs == "compat predicts NATIVE, so cuInit should return 0, but it returns 100"
    look = json.loads((DATA / "compat.json").read_text("utf-8"))["look"].replace("cuInit=100", "cuInit=804")
    as_said = replace(FORWARD, verdict="ERROR_804")
    assert trace(recorded("compat", look=look), 0, as_said, DRIVER).agrees
    made = trace(recorded("compat", look=look), 0, replace(as_said, verdict="ERROR_803"), DRIVER)
    assert "so cuInit should return 803" in made.differs


@pytest.mark.parametrize(
    ("active", "says"),
    [
        ({}, "the node did not answer"),
        ({"trace.0": Unknown(unknown="not asked")}, "not asked"),
        ({"trace.0": Answer(rc=1, out="Docker on this node does not have the image a:1, and it is not pulled\n")},
         "no container ran: Docker on this node does not have the image a:1, and it is not pulled"),
        ({"trace.0": Answer(), "trace.0.look": Answer(out="gpus=0\nloader\nsh: /gpuready-cuinit: not found\nend\n")},
         "no CUDA program runs in this image: it has no glibc (sh: /gpuready-cuinit: not found)"),
        ({"trace.0": Answer(), "trace.0.look": Answer(out="gpus=0\n")}, "the test program is not in the container"),
    ],
)  # fmt: skip
def test_nothing_traced_is_unknown(active: dict[str, Answer | Unknown], says: str) -> None:
    made = trace(active, 0, NATIVE, DRIVER)
    assert made.unknown.startswith(says) and not made.agrees


def test_a_container_that_the_toolkit_refuses() -> None:
    told = "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.9, please update your driver"
    refused = {"trace.0": Answer(rc=126, out=told)}
    assert trace(refused, 0, replace(NATIVE, verdict="REFUSED"), DRIVER).agrees
    assert trace(refused, 0, NATIVE, DRIVER).differs == "compat predicts NATIVE, but the container does not start"
    assert trace(refused, 0, None, DRIVER).unknown.startswith("no container ran: nvidia-container-cli: requirement")


def test_no_library_at_all() -> None:
    look = "gpus=0\nloader\n  7:\tfind library=libcuda.so.1 [0]; searching\n\tlibcuda.so.1 => not found\nend\n"
    made = trace(recorded("plain", look=look), 0, NATIVE, DRIVER)
    assert made.differs.endswith("with the host's libcuda, but the container gets no libcuda.so.1")
    assert (made.source, made.path, made.version) == ("", "", "")


LOG = (DATA / "nvidia-container-cli-debug.log").read_text("utf-8")
#: In mode legacy with cuda-compat-mode mount: libcuda of the image over the name that the loader's cache has.
MOUNTED = """444 318 0:52 / / rw,relatime - overlay overlay rw
457 444 8:1 /usr/lib/x86_64-linux-gnu/libcuda.so.460.80 /usr/lib/x86_64-linux-gnu/libcuda.so.460.80 ro - ext4 x rw
458 444 0:52 /usr/local/cuda-11.3/compat/libcuda.so.465.19.01 /usr/lib/x86_64-linux-gnu/libcuda.so.465.19.01 ro - x y rw
"""
LOADED = """
loader
  7:\tfind library=libcuda.so.1 [0]; searching
  7:\t search cache=/etc/ld.so.cache
  7:\t  trying file=/usr/lib/x86_64-linux-gnu/libcuda.so.1
  7:\t
\tlibcuda.so.1 => /usr/lib/x86_64-linux-gnu/libcuda.so.1 (0x00007f)
end
at /usr/lib/x86_64-linux-gnu/libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.465.19.01
"""


def test_mode_legacy_with_its_debug_log() -> None:
    hook = {"path": "/usr/bin/nvidia-container-runtime-hook", "args": ["nvidia-container-runtime-hook", "prestart"]}
    parts = {"look": LOADED, "mounts": MOUNTED, "log": "", "cli": LOG, "pid": "930291\n"}
    parts["spec"] = json.dumps({"hooks": {"prestart": [hook]}})
    active: dict[str, Answer | Unknown] = {f"trace.0.{part}": Answer(out=text) for part, text in parts.items()}
    made = trace({"trace.0": Answer(), **active}, 0, None, "460.80")
    assert (made.source, made.version, made.mode) == ("compat", "465.19.01", "legacy")
    assert made.why.startswith("the image has it in /usr/local/cuda-11.3/compat; the loader finds it by /etc/ld.so")
    cli = [line for line in made.proof if line.startswith("nvidia-container-cli: ")]
    assert "selecting " in cli[0] and cli[0].endswith("/usr/local/cuda-11.3/compat/libcuda.so.465.19.01")
    assert any("executing /sbin/ldconfig.real" in line for line in cli)
    assert "hook: /usr/bin/nvidia-container-runtime-hook prestart" in made.proof


def test_the_debug_log_of_other_containers_is_not_taken() -> None:
    assert not list(cli_lines(LOG, "930292"))
    other = LOG.replace(" 930305 ", " 930399 ").replace("setting pid to 930291", "setting pid to 930292")
    assert list(cli_lines(LOG + other, "930291")) == list(cli_lines(LOG, "930291")) != []


def test_where_the_debug_log_is() -> None:
    def node(text: str) -> NodeState:
        return NodeState(files={CONFIG: File(text=text, mode=0o644, uid=0, gid=0, mtime=0)})

    assert debug_log(NodeState()) == debug_log(node("[nvidia-container-cli]\n")) == debug_log(node("[")) == ""
    assert debug_log(node('[nvidia-container-cli]\ndebug = "/var/log/nct.log"\n')) == "/var/log/nct.log"


@pytest.mark.parametrize(
    "text", ["[1]", "{", '{"hooks": [1]}', '{"hooks": {"prestart": 1, "createContainer": [1, {}]}}']
)
def test_a_damaged_answer_is_no_error(text: str) -> None:
    parts = {"look": LOADED, "spec": text, "log": f"{text}\n{text}", "mounts": text, "cli": text, "pid": text}
    ran = container({f"trace.0.{part}": Answer(out=each) for part, each in parts.items()}, "trace.0")
    assert (ran.mode, ran.runtime, ran.cli) == ("", (), ())
    assert ran.source == "own" and all(isinstance(hook, str) for hook in ran.hooks)


def predicted(trace: Trace | None) -> JudgedImage:
    return JudgedImage.of(Predicted("app:1", NATIVE, trace=trace))


def test_for_people_the_difference_comes_first() -> None:
    made = Trace("/l/libcuda.so.1", "/l/libcuda.so.580.1", "580.1", "host", "cdi", "because", 0, ("runtime log: x",))

    def lines(trace: Trace) -> list[str]:
        return [line for line in told(predicted(trace), Painter(False)) if "fix" not in line][1:]

    plain = ["  trace:   the host's libcuda 580.1: /l/libcuda.so.580.1; cuInit returns 0", "           why: because"]
    assert lines(made) == [*plain, "           runtime log: x"]
    assert lines(replace(made, differs="it is not so"))[0] == "  trace:   DIFFERS  it is not so"
    assert lines(Trace(unknown="no shell")) == ["  trace:   UNKNOWN  no shell"]


def test_a_difference_and_an_unknown_trace_are_not_good() -> None:
    def good(**values: Any) -> bool:
        return predicted(Trace(**values)).good

    assert predicted(None).good and good()
    assert not good(differs="x") and not good(unknown="x")


@pytest.mark.parametrize(
    ("made", "code", "word", "kind"),
    [
        (Trace("/l", "/l", "580.1", "host", "cdi", "because", 0, ("a", "b")), 0, "ok", ""),
        (Trace(source="own", differs="it is not so"), 3, "NOT AS PREDICTED", "failure"),
        (Trace(unknown="no shell"), 3, "NOT TRACED", "error"),
    ],
)
def test_the_report_of_a_trace(made: Trace, code: int, word: str, kind: str) -> None:
    run = Run("compat", [HostResult("gpu01", {"images": (predicted(made),)}, outcome="ok")], part=PART)
    assert (exit_code(run), host_word(run, run.hosts[0])) == (code, word)
    written = json.loads(json.dumps(document(run, code)))
    VALIDATOR.validate(written)
    again, same = read(written, [PART])
    assert (same, images(again.hosts[0])[0].trace) == (code, made)
    assert human(again, code) == human(run, code)
    assert "1 of 1 image on a host will run; 1 traced" in human(run, code)
    cases = ET.fromstring(junit(run, code))
    assert (cases.find(".//failure") is not None, cases.find(".//error") is not None) == (
        kind == "failure",
        kind == "error",
    )
    assert bool(list(notes(run))) == bool(code)

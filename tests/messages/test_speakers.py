"""Who printed an error that has no known message: each speaker finds what it printed, and nothing in a healthy log."""

import re
import time
from pathlib import Path

import pytest
import yaml

from gpuready.catalogue import BY_ID
from gpuready.messages import speakers
from gpuready.messages.find import MOST
from gpuready.messages.speakers import TABLE
from tests.command import Exits
from tests.lab import scale
from tests.messages.test_own import pipe
from tests.pages import matches

DATA = Path(__file__).parents[1] / "data"
TEXTS = yaml.safe_load((DATA / "messages" / "speakers.yaml").read_text(encoding="utf-8"))
NOBODYS = yaml.safe_load((DATA / "messages" / "nobodys.yaml").read_text(encoding="utf-8"))
#: What real commands printed on nodes without a fault.
RECORDED = [
    *sorted((DATA / "messages" / "healthy").glob("*.txt")),
    *sorted((DATA / "h200").glob("*")),
    *sorted((DATA / "trace").glob("*.log")),
    DATA / "dcgm-metrics.txt",
]
KNOWN = "docker: Error response from daemon: unknown or invalid runtime name: nvidia."
#: It stands in docs/guides/errors.md, too. Nobody posted it, so it will not be a message of the table.
UCX = "[gpu01:4242:0]  ucp_zork.c:42  UCX  ERROR flarb of mlx5_0:1 failed"
MADE = "make[3]: *** [/usr/src/linux-headers-6.17.13-2-pve/Makefile:2016: .] Error 2"
RAYS = "[2024-05-29 22:51:15,987 C 4837 4890] (gcs_server) ray_syncer.cc:248: Check failed: a == b"


def titles(text: str) -> list[str]:
    return [speaker.title for speaker in speakers.find(text)]


def test_the_speakers_are_whole() -> None:
    assert {speaker.title for speaker in TABLE} == set(TEXTS) and len(TEXTS) == len(TABLE) >= 40
    for speaker in TABLE:
        assert speaker.cause.endswith(".") and speaker.fix and not speaker.fix.endswith("."), speaker.title
        assert set(speaker.checks) <= set(BY_ID), speaker.title
        assert re.match(r"[\w.-]+/[\w.-]+[# ]|[a-z.]+\.(?:com|org|io|net)|[\w.-]+/[\w.-]+$", speaker.source), (
            speaker.title
        )
        for pattern in speaker.patterns:
            assert not re.search(r"\}[*+]|[\])a-z][*+]|\{[0-9]*,\}", pattern), speaker.title
            assert not re.search(r"(?<!\\)\((?:[^()\\]|\\.)*(?<!\\)\(", pattern), f"{pattern}: a group in a group"
            assert re.sub(r"\\[A-Z]", "", pattern).lower() == re.sub(r"\\[A-Z]", "", pattern)


@pytest.mark.parametrize(
    ("title", "text"),
    [pytest.param(title, text, id=ascii(text[:50])) for title, texts in TEXTS.items() for text in texts["errors"]],
)
def test_an_error_as_it_was_posted_has_its_speaker(title: str, text: str) -> None:
    assert titles(text)[:1] == [title]


@pytest.mark.parametrize("text", [text for texts in TEXTS.values() for text in texts["healthy"]], ids=ascii)
def test_a_healthy_line_has_none(text: str) -> None:
    assert titles(text) == []


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_a_recorded_output_has_none(path: Path) -> None:
    assert titles(path.read_text(encoding="utf-8", errors="replace")) == []


def test_dmesg_of_a_healthy_gpu_node(exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DATA / "messages" / "healthy" / "dmesg.txt").read_text(encoding="utf-8")
    pipe(text, monkeypatch)
    assert exits(0, "explain", "-").out == f"no known message in {len(text.splitlines())} lines\n"


def test_a_text_of_others_has_none() -> None:
    assert [text for text in NOBODYS if titles(text)] == []


@pytest.mark.parametrize("text", [f"{UCX}\n{KNOWN}", f"{KNOWN}\n{UCX}"])
def test_a_known_message_wins(text: str, exits: Exits) -> None:
    told = exits(0, "explain", text)
    assert told.out.startswith("unknown or invalid runtime name: nvidia\n") and "does not know by name" not in told.out


#: vllm-project/vllm#47284, without its last line
TRACEBACK = """\
(Worker_TP0 pid=689) ERROR 07-01 09:45:05 [multiproc_executor.py:1004]   File "/usr/local/lib/python3.12/dist-packages/\
flashinfer/comm/trtllm_mnnvl_ar.py", line 544, in trtllm_mnnvl_fused_allreduce_add_rmsnorm
(Worker_TP0 pid=689) ERROR 07-01 09:45:05 [multiproc_executor.py:1004]     raise ValueError("""


def test_a_path_in_a_traceback_names_no_speaker() -> None:
    assert titles(TRACEBACK) == ["vLLM"]
    for path in ("flashinfer/jit/core", "sglang/srt/utils", "cupy/_core/core", "tensorrt_llm/_utils", "vllm/v1/engine"):
        assert titles(f'[rank0]: Error:   File "/usr/lib/python3/dist-packages/{path}.py", line 5, in build') == []
    assert titles("ValueError: flashinfer got a wrong shape") == []
    assert titles("ERROR - flashinfer.jit: failed to build the module") == [titles("ninja: build stopped: error")[0]]


def test_two_speakers_are_named_once_each_that_of_the_first_error_first() -> None:
    assert titles(f"all is well\n{UCX}\n{MADE}\n{UCX}\n{RAYS}") == ["UCX", "the build of a kernel module (make, DKMS)"]
    assert titles(f"{RAYS}\n{UCX}") == ["Ray", "UCX"]


def test_a_form_of_log_is_no_speaker_beside_a_named_one() -> None:
    text = "E0506 17:45:45.421965       1 factory.go:113] If this is a GPU node, did you configure the toolkit?"
    assert titles(text) == ["a component of Kubernetes (klog)"] and titles(f"{text}\n{UCX}") == ["UCX"]


def test_a_general_answer_is_no_known_message(exits: Exits) -> None:
    """The exit code stays that of an unknown text; nothing pretends to be a cause."""
    told = exits(64, "explain", f"a line before\n{UCX}")
    assert told.out == "" and told.err.startswith("error: not known: ")
    assert "\n  UCX: an error that gpuready does not know by name\n    line    [gpu01:4242:0]" in told.err
    assert "\n    about " in told.err and "\n    next    ucx_info -d " in told.err and "cause   " not in told.err
    assert "    line  " not in (told := exits(64, "explain", UCX)).err
    shown = (DATA.parents[1] / "docs" / "guides" / "errors.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"\$ gpuready explain '{re.escape(UCX)}'\n(.*?)```", shown, re.S)
    assert matches(block, told.err[: told.err.index("    checks ")])


@pytest.mark.parametrize(("text", "kind"), [(UCX, "general"), ("zork failed to flarb", "usage")])
def test_a_result_says_that_the_answer_is_general(text: str, kind: str, exits: Exits) -> None:
    error = exits(64, "explain", text, "-i", "gpu01,", "--output", "json").document["error"]
    assert error["kind"] == kind and ("UCX: an error" in error["message"]) == (kind == "general")


def test_a_log_from_stdin_names_its_speakers_and_says_what_it_read(
    exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(f"a\nb\n{UCX}\n", monkeypatch)
    told = exits(0, "explain", "-")
    assert told.out.startswith(
        "no known message in 3 lines\n\nUCX: an error that gpuready does not know by name\n  line "
    )


def test_a_long_log_of_errors_takes_little_time() -> None:
    began = time.process_time()
    text = "2026-01-01 error: gpu cuda nccl xid nvidia lib failed\n" * (MOST // 54)
    assert titles(text) == [] and titles(text.replace("\n", " ")) == []
    assert time.process_time() - began < scale.seconds(15)

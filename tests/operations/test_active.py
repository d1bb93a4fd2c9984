"""The active checks' script on this machine, with a driver that hangs: it goes on, and does not ask it again."""

import base64
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from gpuready.base import resources
from gpuready.base.facts import Answer, Unknown
from gpuready.base.records import Records
from gpuready.base.records import unmarked as records
from gpuready.catalogue import BY_ID
from gpuready.contract.check import run_checks
from gpuready.model.active import LIMITS, answers, longest
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Driver, NodeState
from tests.lab import scale
from tests.operations.gpu_node import NO_NAMESPACES, on_a_node, tool

HANGS, WORKS = "trap '' TERM; sleep 983", "echo cuInit=0 count=2 version=13000"
QUIET: dict[str, Any] = {
    **dict.fromkeys(("image", "torch", "torch_smoke", "wheel_smoke", "hardened", "pause", "slice", "hung"), ""),
    **dict.fromkeys(("record", "record_path"), ""),
    **dict.fromkeys(("environments", "scrape", "gate", "initramfs", "images"), ()),
    "ask": ("-e", "NVIDIA_VISIBLE_DEVICES=all"),
    "limits": LIMITS,
}


def program(text: str) -> str:
    return base64.b64encode(f"#!/bin/sh\n{text}\n".encode()).decode()


def active(place: Path, smi: str, shell: Sequence[str] = ("sh",), **values: Any) -> tuple[dict[str, Any], int]:
    """The answers on a machine with a driver and two GPUs, and how often nvidia-smi was asked; a limit is a second."""
    script = resources.script("probe/active", **{**QUIET, "limits": dict.fromkeys(LIMITS, 1), **values})
    script = on_a_node(place, script)
    tool(place, "nvidia-smi", f'echo "$*" >>{place}/asked\n{smi}')
    done = subprocess.run(shell, input=script, capture_output=True, text=True, timeout=scale.seconds(60), check=True)
    asked = place / "asked"
    count = len(asked.read_text("utf-8").splitlines()) if asked.exists() else 0
    return answers(Records(records(done.stdout))), count


def verdict(id: str, active: dict[str, Any]) -> tuple[str, str]:
    state = NodeState(driver=Driver(proc_version="580.159.04", module_version="580.159.04"), active=active)
    (found,) = run_checks((BY_ID[id],), NodeSpec(), state, "n1", active=True, today=date(2026, 1, 1))
    return found.verdict.status, found.verdict.summary


def test_ibv_devinfo_is_asked_where_there_is_a_device(tmp_path: Path) -> None:
    tool(tmp_path, "ibv_devinfo", f"cat {tmp_path}/devinfo; exit $(( $# - 1 ))")
    irdma = Path(__file__).parents[1] / "data/rdma/ibv_devinfo-v.irdma0.txt"
    (tmp_path / "devinfo").write_bytes(irdma.read_bytes())
    script = on_a_node(tmp_path, resources.script("probe/active", **QUIET, cuinit=""))
    for device, said in ((False, {}), (True, {"verbs": Answer(out=irdma.read_text("utf-8"))})):
        if device:
            (tmp_path / "infiniband/irdma0").mkdir(parents=True)
        here = script.replace("/sys/class/infiniband/", f"{tmp_path}/infiniband/")
        done = subprocess.run(["sh"], input=here, capture_output=True, text=True, timeout=scale.seconds(60), check=True)
        found = answers(Records(records(done.stdout)))
        assert {name: answer for name, answer in found.items() if name == "verbs"} == said


def test_all_are_asked_where_all_answer(tmp_path: Path) -> None:
    found, asked = active(tmp_path, "echo said", cuinit=program(WORKS), torch="/bin/true", scrape=("echo", "metrics"))
    assert asked == 3
    assert found["nvlink"] == found["nvlink_errors"] == found["p2p"] == Answer(out="said\n")
    assert found["cuda"].out.startswith("cuInit=0") and found["scrape"] == Answer(out="metrics\n")
    assert found["torch"].rc == 0


def test_without_namespaces_the_named_python_runs_as_nobody_or_says_why_not(tmp_path: Path) -> None:
    """As in a container without CAP_SYS_ADMIN."""
    given = {"torch": "/usr/bin/python3", "limits": dict.fromkeys(LIMITS, 30), "cuinit": program(WORKS)}
    smoke = "import os; print(os.geteuid())"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    found, _ = active(tmp_path / "one", "echo said", NO_NAMESPACES, torch_smoke=smoke, **given)
    assert found["torch"] == Answer(out="65534\n")
    (python := tmp_path / "env" / "bin" / "python").parent.mkdir(parents=True)
    python.symlink_to("/usr/bin/python3")
    python.parent.chmod(0o700)
    found, _ = active(tmp_path / "two", "echo said", NO_NAMESPACES, torch_smoke=smoke, **given | {"torch": str(python)})
    assert found["torch"].rc == 1
    assert f"its Python runs as nobody, who cannot read {tmp_path}/env" in found["torch"].out


def test_the_named_python_is_looked_for_also_where_cuinit_hangs(tmp_path: Path) -> None:
    found, _ = active(tmp_path, "echo said", cuinit=program(HANGS), torch=str(tmp_path))
    assert found["python"] == Answer(
        out=f"{tmp_path} is a directory: name the environment's python, such as {tmp_path}/bin/python\n"
    )
    assert "not asked" in found["torch"].unknown


@pytest.mark.parametrize(
    ("path", "said"),
    [("/bin/sh", ""), ("/opt/none/python", "there is no /opt/none/python on"), ("/etc/passwd", "lacks the x bit")],
)
def test_what_is_wrong_with_the_named_python(tmp_path: Path, path: str, said: str) -> None:
    found, _ = active(tmp_path, "echo said", cuinit=program(WORKS), torch=path)
    assert (found["python"].rc, bool(found["python"].out)) == (0, bool(said))
    assert said in found["python"].out


def test_an_nvidia_smi_that_hangs_is_asked_once_and_the_rest_answers(tmp_path: Path) -> None:
    given = {"scrape": ("echo", "metrics"), "gate": ("echo", "ready")}
    found, asked = active(tmp_path, HANGS, cuinit=program(WORKS), **given)
    assert asked == 1 and found["nvlink"] == Answer(rc=137, out="no answer within 1 s\n")
    why = "not asked, because nvidia-smi gave no answer: does a GPU hang? see dmesg"
    assert found["nvlink_errors"] == found["p2p"] == found["gate"] == Unknown(unknown=why)
    assert verdict("gpu.p2p", found) == ("unknown", why)
    assert found["cuda"].rc == 0 and found["scrape"].rc == 0


def test_one_that_gave_the_probe_no_answer_is_not_asked_again(tmp_path: Path) -> None:
    found, asked = active(tmp_path, HANGS, cuinit=program(WORKS), hung="1")
    assert asked == 0 and isinstance(found["nvlink"], Unknown) and found["cuda"].rc == 0


def test_after_a_cuinit_that_hangs_nothing_asks_the_driver(tmp_path: Path) -> None:
    found, asked = active(tmp_path, "echo said", cuinit=program(HANGS), torch="/bin/true")
    assert asked == 0
    for name in ("nvlink", "p2p", "torch"):
        assert found[name].unknown.startswith("not asked, because cuInit gave no answer")
    assert verdict("libcuda.init", found) == ("unknown", "no answer within 1 s")


def test_what_survives_sigkill_is_left_behind() -> None:
    """As in state D; here by a `kill` that does nothing."""
    script = (
        resources.script("lib/within") + 'kill() { :; }\no=$(mktemp)\nwithin 0.5 "$o" sh -c "echo \\$\\$; sleep 982"\n'
    )
    words = ["sh", "-c", script + 'echo $?; cat "$o"; rm "$o"']
    done = subprocess.run(words, capture_output=True, text=True, timeout=scale.seconds(30), check=True)
    rc, pid = map(int, done.stdout.split())
    assert rc == 124 and Path(f"/proc/{pid}/exe").exists()
    for each in Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split():
        os.kill(int(each), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("environments", [0, 1, 3])
def test_the_exec_has_more_time_than_all_that_hangs_in_it(environments: int) -> None:
    values = {**QUIET, "environments": [("/opt/train", "torch")] * environments}
    script = resources.script("probe/active", **values, cuinit="")
    limits = re.findall(r"(?:limited|asked) \S+ ([0-9]+) |within ([0-9]+) \"\$W", script)
    seconds = [int(a or b) for a, b in limits]
    assert len(seconds) == 14 + environments
    # The call of nvidia-smi is there once and made for three questions.
    assert longest(environments, 0) >= sum(seconds) + 3 * len(seconds) + 2 * (LIMITS["smi"] + 3)

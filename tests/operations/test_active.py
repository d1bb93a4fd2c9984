"""The active checks' script on this machine, with a driver that hangs: it goes on, and does not ask it again."""

import base64
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from gpuready.base import resources
from gpuready.base.facts import Answer, Unknown
from gpuready.base.records import Records
from gpuready.base.records import unmarked as records
from gpuready.catalogue import BY_ID, QUESTIONS
from gpuready.components.driver.state import Boots
from gpuready.components.gate.checks import AskGate
from gpuready.components.monitoring.checks import AskScrape
from gpuready.components.rdma.checks import AskVerbs
from gpuready.components.rdma.roce import AskRoce
from gpuready.contract.check import run_checks
from gpuready.contract.question import Question, answers
from gpuready.gpu.dma import AskPcie
from gpuready.gpu.imex import IMEX, AskImex
from gpuready.gpu.libcuda import AskCuda
from gpuready.gpu.nvlink import AskLinks
from gpuready.gpu.torch_smoke import AskTorch
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Driver, NodeState, Tool, Unit
from gpuready.operations import active as module
from gpuready.operations.active import run_active, script
from tests.components.containerd.containerdmodel import dump
from tests.lab import scale
from tests.operations.begun import begun
from tests.operations.gpu_node import NO_NAMESPACES, on_a_node, tool
from tests.scripts import ASKED
from tests.verdicts import root_file

HANGS, WORKS = "trap '' TERM; sleep 983", "echo cuInit=0 count=2 version=13000"
#: What every node with a driver is asked.
ALWAYS = (
    AskVerbs({"verbs": 20}),
    AskRoce({"roce": 15}),
    AskCuda({"cuda": 60}),
    AskLinks({"nvlink": 30, "nvlink_errors": 30, "p2p": 30}),
    AskPcie({"pcie": 15}),
)
GATE, SCRAPE = AskGate({"gate": 25}, "true"), AskScrape({"scrape": 15}, ("echo", "metrics"))


def torch(python: str, program: str = "") -> AskTorch:
    return AskTorch({"python": 10, "torch": 125}, python, program)


def program(text: str) -> str:
    return base64.b64encode(f"#!/bin/sh\n{text}\n".encode()).decode()


def active(
    place: Path, smi: str, *asked: Question, shell: Sequence[str] = ("sh",), limit: int = 30, **values: Any
) -> tuple[dict[str, Any], int]:
    """The answers on a machine with a driver and two GPUs, and how often nvidia-smi was asked."""
    questions = [replace(each, limits=dict.fromkeys(each.limits, limit)) for each in (*ALWAYS, *asked)]
    text = on_a_node(place, script(questions, **values))
    tool(place, "nvidia-smi", f'echo "$*" >>{place}/asked\n{smi}')
    done = subprocess.run(shell, input=text, capture_output=True, text=True, timeout=scale.seconds(60), check=True)
    asked_of_smi = place / "asked"
    count = len(asked_of_smi.read_text("utf-8").splitlines()) if asked_of_smi.exists() else 0
    return answers(Records(records(done.stdout))), count


def short() -> int:
    """Seconds that suffice for what answers, where something hangs for all of them."""
    return round(scale.seconds(3))


def verdict(id: str, active: dict[str, Any]) -> tuple[str, str]:
    state = NodeState(driver=Driver(proc_version="580.159.04", module_version="580.159.04"), active=active)
    (found,) = run_checks((BY_ID[id],), NodeSpec(), state, "n1", active=True, today=date(2026, 1, 1))
    return found.verdict.status, found.verdict.summary


def test_ibv_devinfo_is_asked_where_there_is_a_device(tmp_path: Path) -> None:
    tool(tmp_path, "ibv_devinfo", f"cat {tmp_path}/devinfo; exit $(( $# - 1 ))")
    irdma = Path(__file__).parents[1] / "data/rdma/ibv_devinfo-v.irdma0.txt"
    (tmp_path / "devinfo").write_bytes(irdma.read_bytes())
    text = on_a_node(tmp_path, script(ALWAYS))
    for device, said in ((False, {}), (True, {"verbs": Answer(out=irdma.read_text("utf-8"))})):
        if device:
            (tmp_path / "infiniband/irdma0").mkdir(parents=True)
        here = text.replace("/sys/class/infiniband/", f"{tmp_path}/infiniband/")
        done = subprocess.run(["sh"], input=here, capture_output=True, text=True, timeout=scale.seconds(60), check=True)
        found = answers(Records(records(done.stdout)))
        assert {name: answer for name, answer in found.items() if name == "verbs"} == said


def test_imex_is_asked_on_a_node_that_has_its_program(tmp_path: Path) -> None:
    text = on_a_node(tmp_path, script((AskImex({"imex": 5}),)))
    for said in ({}, {"imex": Answer(out="READY -q\n")}):
        if said:
            tool(tmp_path, "nvidia-imex-ctl", 'echo "READY $*"')
        done = subprocess.run(["sh"], input=text, capture_output=True, text=True, timeout=scale.seconds(60), check=True)
        found = answers(Records(records(done.stdout)))
        assert {name: answer for name, answer in found.items() if name == "imex"} == said


def test_dcb_and_sysfs_say_what_ethernet_does_with_rdma(tmp_path: Path) -> None:
    """Of a bond, each of its ports; not of a virtual function, and not of a representor of one."""
    sys, pci = tmp_path / "sys/class", tmp_path / "pci"
    files = {
        "0/net/eth1/ecn/roce_np/enable/3": "1",
        "0/net/eth1/qos/trust": "dscp",
        "0/net/eth1/bond/bonding/mode": "802.3ad 4",
        "0/net/eth2/phys_port_name": "pf0vf3",
        "1/net/eth3/phys_port_name": "p0",
        "2/net/eth4/qos/trust": "pcp",
        "2/physfn/vendor": "0x15b3",
        "3/ecn/roce_rp/enable/3": "0",
    }
    for name, text in files.items():
        (path := pci / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", "utf-8")
    bond = pci / "0/net/eth1/bond"
    (pci / "0/net/eth1/master").symlink_to(bond)
    (bond / "lower_eth1").symlink_to(pci / "0/net/eth1")
    (bond / "lower_eth9").symlink_to(pci / "3")
    for number in range(3):
        (sys / f"infiniband/mlx5_{number}/tc/1").mkdir(parents=True)
        (sys / f"infiniband/mlx5_{number}/device").symlink_to(pci / str(number))
    (sys / "infiniband/mlx5_1/tc/1/traffic_class").write_text("Global tclass=106\n", "utf-8")
    lacks = '[ "$5" != eth3 ] || { echo "Attribute read: Operation not supported" >&2; exit 1; }'
    tool(tmp_path, "dcb", lacks + """\nprintf '{"%s":1}\\n' "$2\"""")
    text = on_a_node(tmp_path, script((AskRoce({"roce": 5}),))).replace("/sys/class/", f"{sys}/")
    done = subprocess.run(["sh"], input=text, capture_output=True, text=True, timeout=scale.seconds(60), check=True)
    assert answers(Records(records(done.stdout)))["roce"].out.splitlines() == [
        "trust eth1 dscp", "ecn eth1 np 3 1", 'pfc eth1 {"pfc":1}', 'app eth1 {"app":1}',
        "ecn eth9 rp 3 0", 'pfc eth9 {"pfc":1}', 'app eth9 {"app":1}', "tclass mlx5_1 Global tclass=106",
    ]  # fmt: skip


def test_setpci_reads_gpus_nics_and_the_switches_above_them_once(tmp_path: Path) -> None:
    """Not the root port, which is below the bus itself; a device of another bus has no such registers."""
    switch = tmp_path / "sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0"
    devices = {"bus/pci/drivers/nvidia/0000:1b:00.0": switch / "0000:19:00.0/0000:1b:00.0"}
    devices["class/infiniband/mlx5_0/device"] = switch / "0000:19:01.0/0000:1c:00.0"
    devices["class/infiniband/rxe0/device"] = tmp_path / "sys/devices/virtual/net/lo"
    for name, place in devices.items():
        place.mkdir(parents=True)
        (link := tmp_path / "sys" / name).parent.mkdir(parents=True)
        link.symlink_to(place)
    tool(tmp_path, "setpci", """case "$3 $2" in CAP*) echo 2937 ;; *18:00.0) exit 1 ;; *) echo 001d ;; esac""")
    text = on_a_node(tmp_path, script((AskPcie({"pcie": 5}),))).replace("/sys/", f"{tmp_path}/sys/")
    done = subprocess.run(["sh"], input=text, capture_output=True, text=True, timeout=scale.seconds(60), check=True)
    lines = answers(Records(records(done.stdout)))["pcie"].out.splitlines()
    assert lines == [
        "device 0000:1b:00.0 2937", "acs 0000:19:00.0 001d", "device 0000:1c:00.0 2937", "acs 0000:19:01.0 001d",
    ]  # fmt: skip


def test_all_are_asked_where_all_answer(tmp_path: Path) -> None:
    found, asked = active(tmp_path, "echo said", torch("/bin/true"), SCRAPE, cuinit=program(WORKS))
    assert asked == 3
    assert found["nvlink"] == found["nvlink_errors"] == found["p2p"] == Answer(out="said\n")
    assert found["cuda"].out.startswith("cuInit=0") and found["scrape"] == Answer(out="metrics\n")
    assert found["torch"].rc == 0


def test_without_namespaces_the_named_python_runs_as_nobody_or_says_why_not(tmp_path: Path) -> None:
    """As in a container without CAP_SYS_ADMIN."""
    given: dict[str, Any] = {"shell": NO_NAMESPACES, "cuinit": program(WORKS)}
    smoke = "import os; print(os.geteuid())"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    found, _ = active(tmp_path / "one", "echo said", torch("/usr/bin/python3", smoke), **given)
    assert found["torch"] == Answer(out="65534\n")
    (python := tmp_path / "env" / "bin" / "python").parent.mkdir(parents=True)
    python.symlink_to("/usr/bin/python3")
    python.parent.chmod(0o700)
    found, _ = active(tmp_path / "two", "echo said", torch(str(python), smoke), **given)
    assert found["torch"].rc == 1
    assert f"its Python runs as nobody, who cannot read {tmp_path}/env" in found["torch"].out


def test_the_named_python_is_looked_for_also_where_cuinit_hangs(tmp_path: Path) -> None:
    found, _ = active(tmp_path, "echo said", torch(str(tmp_path)), limit=short(), cuinit=program(HANGS))
    assert found["python"] == Answer(
        out=f"{tmp_path} is a directory: name the environment's python, such as {tmp_path}/bin/python\n"
    )
    assert "not asked" in found["torch"].unknown


@pytest.mark.parametrize(
    ("path", "said"),
    [("/bin/sh", ""), ("/opt/none/python", "there is no /opt/none/python on"), ("/etc/passwd", "lacks the x bit")],
)
def test_what_is_wrong_with_the_named_python(tmp_path: Path, path: str, said: str) -> None:
    found, _ = active(tmp_path, "echo said", torch(path), cuinit=program(WORKS))
    assert (found["python"].rc, bool(found["python"].out)) == (0, bool(said))
    assert said in found["python"].out


def test_an_nvidia_smi_that_hangs_is_asked_once_and_the_rest_answers(tmp_path: Path) -> None:
    found, asked = active(tmp_path, HANGS, SCRAPE, GATE, limit=(limit := short()), cuinit=program(WORKS))
    assert asked == 1 and found["nvlink"] == Answer(rc=137, out=f"no answer within {limit} s\n")
    why = "not asked, because nvidia-smi gave no answer: does a GPU hang? see dmesg"
    assert found["nvlink_errors"] == found["p2p"] == found["gate"] == Unknown(unknown=why)
    assert verdict("gpu.p2p", found) == ("unknown", why)
    assert found["cuda"].rc == 0 and found["scrape"].rc == 0


def test_one_that_gave_the_probe_no_answer_is_not_asked_again(tmp_path: Path) -> None:
    found, asked = active(tmp_path, HANGS, cuinit=program(WORKS), hung=True)
    assert asked == 0 and isinstance(found["nvlink"], Unknown) and found["cuda"].rc == 0


def test_after_a_cuinit_that_hangs_nothing_asks_the_driver(tmp_path: Path) -> None:
    limit = short()
    found, asked = active(tmp_path, "echo said", torch("/bin/true"), limit=limit, cuinit=program(HANGS))
    assert asked == 0
    for name in ("nvlink", "p2p", "torch"):
        assert found[name].unknown.startswith("not asked, because cuInit gave no answer")
    assert verdict("libcuda.init", found) == ("unknown", f"no answer within {limit} s")


def test_what_survives_sigkill_is_left_behind() -> None:
    """As in state D; here by a `kill` that does nothing."""
    script = (
        resources.script("lib/within")
        + f'kill() {{ :; }}\no=$(mktemp)\nwithin {short()} "$o" sh -c "echo \\$\\$; sleep 982"\n'
    )
    words = ["sh", "-c", script + 'echo $?; cat "$o"; rm "$o"']
    done = subprocess.run(words, capture_output=True, text=True, timeout=scale.seconds(30), check=True)
    rc, pid = map(int, done.stdout.split())
    assert rc == 124 and Path(f"/proc/{pid}/exe").exists()
    for each in Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split():
        os.kill(int(each), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)


CONFIG = "/etc/containerd/config.toml"
FULL: dict[str, Any] = {
    "verify": {"image": "debian:13", "torch": "/opt/train/bin/python"},
    "torch_wheels": [{"env": f"/opt/{name}", "wheel": "torch-2.2.1-cp310-cp310-linux_x86_64.whl"} for name in "abc"],
    "images": [{"ref": "a"}, {"ref": "b"}],
    "monitoring": {"rdma_exporter": "textfile"},
    "gate": True,
}
#: A node with all that is asked.
NODE = NodeState(
    driver=Driver(proc_version="580.159.04", module_version="580.159.04"),
    boots=Boots(older_initramfs=("/boot/initrd.img-6.1",)),
    containerd=dump("1.7", {CONFIG: "version = 2\n"}),
    files={CONFIG: root_file("version = 2\n")},
    tools={"containerd": Tool(path="/usr/bin/containerd")},
    units={
        "containerd.service": Unit(load="loaded", active="active", kill_mode="process"),
        IMEX: Unit(load="loaded", active="active"),
    },
)


def asked_of(spec: NodeSpec, state: NodeState) -> dict[str, Question]:
    return {question.template: question for ask in QUESTIONS for question in ask(spec, state)}


def calls(text: str) -> list[int]:
    """The limits in seconds with which a script calls what may hang."""
    return [*map(int, re.findall(r"\b(?:limited|asked|smi|read_image|within) (?:\S+ )?([0-9]+) ", text))]


def test_the_exec_has_more_time_than_all_that_it_calls_even_if_each_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    execs: list[tuple[str, int]] = []
    monkeypatch.setattr(module, "run_script", lambda _, text, limit, name: execs.append((text, limit)) or ["end 0"])
    run_active(begun(), NODE, NodeSpec.model_validate(FULL), QUESTIONS)
    ((text, limit),) = execs
    found = calls(text)
    assert len(found) > 10 and limit > sum(found) + 3 * len(found), "asked abandons a call 3 s after its limit"


def test_all_are_asked_of_a_node_with_everything_and_five_of_any() -> None:
    """Each call is made with the limit that its question names."""
    found = asked_of(NodeSpec.model_validate(FULL), NODE)
    assert tuple(sorted(found)) == ASKED
    for question in found.values():
        assert sorted(calls(question.render())) == sorted(question.limits.values()), question.template
    assert set(asked_of(NodeSpec(), NodeState())) == {each.template for each in ALWAYS} | {"repository/ask-apt"}


def test_without_a_deeper_level_than_the_files_nothing_is_started() -> None:
    spec = NodeSpec.model_validate({**FULL, "verify": FULL["verify"] | {"level": "config"}})
    starts = {"gpu/ask-torch", "wheels/ask-wheels", "docker/ask-smoke", "containerd/ask-pod", "compat/images"}
    assert set(asked_of(NodeSpec.model_validate(FULL), NODE)) - set(asked_of(spec, NODE)) == starts

"""Where each part of the probe's answer goes, and that what the answer does not have stays absent."""

import json
from typing import Any

import pytest

from gpuready.base.facts import Cri
from gpuready.base.records import ProbeError, Records
from gpuready.components.crio.state import crio
from gpuready.components.driver.state import boots
from gpuready.model.kernel_log import kernel_log
from gpuready.model.leftovers import Holder, Leftovers
from gpuready.model.network import network
from gpuready.model.parse import MARKS, NVLINK_MARKS, RDMA_MARKS, parse
from gpuready.model.state import OS, Linker, NodeState, Package, Tool, Unit, Unknown
from tests.model.probe_answers import DATA, lines

NOTHING = {
    "packages": Unknown(unknown="neither dpkg nor rpm on this node"),
    "linker": Unknown(unknown="no /sbin/ldconfig on this node"),
}


@pytest.mark.parametrize("name", ["kernel", "memlock"])
def test_what_an_answer_lacks_is_absent(name: str) -> None:
    assert parse(lines(texts={"values": f"{name}=x\n"})) == NodeState.model_validate({name: "x", **NOTHING})


def test_an_answer_without_values_is_refused() -> None:
    with pytest.raises(ProbeError) as caught:
        parse(lines(texts={"values": ""}))
    assert str(caught.value) == "the node's answer holds nothing of the node"


#: Values that are in the state as they came: the probe's name for them, and the state's.
ONE = {"kernel": "kernel", "machine": "machine", "init": "init", "memlock": "memlock", "lock": "lock",
       "step.lock": "step", "ib_netns_mode": "ib_netns_mode"}  # fmt: skip
MANY = {"notfile": "not_files", "have": "have", "netns": "netns", "initramfs": "initramfs",
        "initramfs_old": "initramfs_old", "dockerd": "dockerd_command", "unloaded": "unloaded"}  # fmt: skip
LINES = {"nccl": "nccl", "mounts": "mounts", "cdi": "cdi_missing"}


def test_each_value_has_its_place() -> None:
    values = "".join(f"{name}=old\n{name}=new {name}\n" for name in [*ONE, *MANY])
    state = parse(lines(texts={"values": values} | {name: f"1 {name}\n2\n" for name in LINES}))
    assert {name: getattr(state, place) for name, place in ONE.items()} == {name: f"new {name}" for name in ONE}
    assert {name: getattr(state, place) for name, place in MANY.items()} == {
        name: ("old", f"new {name}") for name in MANY
    }
    assert {name: getattr(state, place) for name, place in LINES.items()} == {
        name: (f"1 {name}", "2") for name in LINES
    }


def test_each_mark_is_one() -> None:
    marks = sorted(MARKS | RDMA_MARKS | NVLINK_MARKS)
    assert {"k3s", "efa", *NVLINK_MARKS} < {*marks}
    assert parse(lines(texts={"values": "".join(f"{mark}=1\n" for mark in ["x", *marks])})).marks == tuple(marks)


def test_the_owner_of_a_lock_is_cut_to_its_limit() -> None:
    state = parse(lines(texts={"values": f"lock={'l' * 500}\nstep.lock={'s' * 500}\n"}))
    assert (state.lock, state.step) == ("l" * 400, "s" * 400)


def test_what_is_missing_beside_what_is_there() -> None:
    state = parse(lines(texts={"proc": "/proc/cmdline:a\n/proc/cmdline:b\n"}))
    assert state.cmdline == "a\nb"
    proc = "".join(f"/proc/driver/nvidia/version:{line}\n" for line in ("NVRM version: none", "GCC version: 12.2 ", ""))
    assert parse(lines(texts={"proc": proc})).driver.proc_version == ""


def test_links_and_paths_with_blanks() -> None:
    answer = lines({"/etc/a": "", "/etc/b": ""}, {"values": "link=/etc/a \tmy  dir/a file\nlink=/etc/b\n"})
    assert {path: file.realpath for path, file in parse(answer).files.items()} == {
        "/etc/a": "\tmy  dir/a file", "/etc/b": "",
    }  # fmt: skip


MODINFO = "filename:       /lib/modules/6.1/nvidia.ko\nversion:        580.1\n"
INTERFACES = DATA.joinpath("network", "probe.txt").read_text("utf-8")
CRIO = '[crio.runtime]\ndefault_runtime = "crun"\n[crio.runtime.runtimes.crun]\nruntime_path = "/usr/bin/crun"\n'
XIDS = "[ 1000.5] first\n1\t[ 1001.5] NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.\n"
CRI = {"config": {"containerd": {"defaultRuntimeName": "nvidia", "runtimes": {}}, "enableCDI": True}}


def test_each_commands_output_has_its_place() -> None:
    outs = {"modules": MODINFO, "network": INTERFACES, "crictl_info": json.dumps(CRI), "crio_status": CRIO,
            "containerd": "version = 2\n", "holders": "7\ttrain\t0::/x\t/lib/libcuda.so.1\n",
            "ports": "/sys/a:1\n/sys/b:2:3\n", "wheels": "/opt/x.dist-info\t{}\n",
            "xids": XIDS}  # fmt: skip
    values = {"kernel": ["6.1"], "vmlinuz": ["6.1"]}
    texts = {"values": "kernel=6.1\nvmlinuz=6.1\n", "grub": "\tset default=0\n", "rdma": "/sys/c:4\n",
             "boot": "ro ib_core.netns_mode=0 quiet ib_core.x=1\nro\n"}  # fmt: skip
    state = parse(lines(texts=texts, outs=outs))
    assert state.boots == boots(values, MODINFO, "", "\tset default=0\n") and state.boots.grub
    assert state.driver.on_disk_version == "580.1"
    assert state.network == network(INTERFACES)
    assert state.cri == Cri(default_runtime="nvidia", runtimes={}, enable_cdi=True)
    assert state.crio == crio(Records(lines(outs=outs))) and isinstance(state.crio, Cri)
    assert state.containerd == "version = 2\n"
    assert state.leftovers == Leftovers(
        holders=(Holder(pid=7, name="train", cgroup="0::/x", library="/lib/libcuda.so.1"),)
    )
    assert (state.rdma, state.rdma_stuck) == ({"/sys/a": "1", "/sys/b": "2:3"}, "")
    assert list(state.wheels) == ["/opt/x.dist-info"]  # type: ignore[call-overload]
    assert state.boot_options == ("ib_core.netns_mode=0 ib_core.x=1", "")
    assert state.driver.log == kernel_log(XIDS) and kernel_log(XIDS).events


def test_what_a_command_did_not_tell_is_unknown_at_its_place() -> None:
    names = ["modules", "network", "crictl_info", "crio_status", "holders", "ports", "wheels", "xids", "versions"]
    state = parse(lines(texts={"values": "kernel=x\n", "rdma": "/sys/c:4\n"}, failed=dict.fromkeys(names, (1, "no"))))
    found: dict[str, Any] = {
        "modules": state.boots.modules_unknown, "holders": state.leftovers.unread, "ports": state.rdma_stuck,
        "network": state.network, "crictl_info": state.cri, "crio_status": state.crio, "wheels": state.wheels,
        "xids": state.driver.log,
    }  # fmt: skip
    assert {name: getattr(part, "unknown", part) for name, part in found.items()} == {
        name: f"{name}: exit 1: no" for name in found
    }
    assert state.rdma == {"/sys/c": "4"}
    assert (state.tools, state.boots.modules, state.leftovers.holders) == ({}, (), ())
    late = parse(lines(stuck={"versions": ""})).tools
    assert late == Unknown(unknown="versions: no answer within the probe's limit, abandoned (no process left)")


def test_os_release_as_a_shell_reads_it() -> None:
    text = """NAME=x\nnot a line\nID = "de"bian\nID_LIKE="a  b"\nBAD="no end\nVERSION_ID='1'"2"\nVERSION_CODENAME=a=b
PRETTY_NAME="My  own" 'and other' words\n"""
    assert parse(lines({"/etc/os-release": text})).os == OS(
        id="debian", id_like=("a", "b"), version_id="12", name="My  own and other words"
    )
    assert parse(lines({"/etc/os-release": "NAME=x\n"})).os == OS()


def test_rows_of_packages() -> None:
    rows = ["three\tamd64\t1", "four\tamd64\t1\tii", "five\tamd64\t1\tii\tmaker",
            "six\tamd64\t1\tii\tm\tTRANSITIONAL x", "seven\tamd64\t1\tii\tm\tt\tx", "short\tamd64\t1\ti",
            "gone\tamd64\t1\tin", "config\tamd64\t1\tic", "rest\tamd64\t1\tiX"]  # fmt: skip
    expected = {"four": {}, "five": {"maker": "maker"}, "six": {"maker": "m", "transitional": True},
                "rest": {"configured": False}}  # fmt: skip
    assert parse(lines(outs={"dpkg": "\n".join(rows)})).packages == {
        name: Package.model_validate({"version": "1", "arch": "amd64", **more}) for name, more in expected.items()
    }


def units(*blocks: str) -> dict[str, Unit]:
    found = parse(lines(outs={"units": "\n\n".join(blocks)})).units
    assert isinstance(found, dict)
    return found


def test_a_unit_that_tells_only_its_name() -> None:
    assert units("Id=a.service") == {"a.service": Unit(load="", active="")}


def test_the_properties_of_a_unit() -> None:
    block = """Id=a.service
LoadState=loaded
ActiveState=active
StateChangeTimestampMonotonic=7
RequiredBy=one.service
BoundBy=two.service three.service
ConsistsOf=four.service
ExecStart={ path=/a ; argv[]=/a argv[]=b ; ignore_errors=no ; }"""
    assert units(block) == {
        "a.service": Unit(
            load="loaded", active="active", changed_us=7,
            takes_along=("one.service", "two.service", "three.service", "four.service"),
            exec_start=("/a", "argv[]=b"),
        )
    }  # fmt: skip
    cut = units("Id=a.service\nExecStart={ path=/a ; argv[]=/a b")
    assert cut["a.service"].exec_start == (), "systemctl's line is cut"


@pytest.mark.parametrize(
    ("job", "active", "starting"),
    [("1", "inactive", True), ("1", "activating", True), ("2", "failed", True), ("1", "active", False),
     ("0", "inactive", False), ("", "failed", False)],
)  # fmt: skip
def test_a_unit_that_a_job_starts(job: str, active: str, starting: bool) -> None:
    assert units(f"Id=a\nJob={job}\nActiveState={active}")["a"].starting is starting


def test_a_limit_belongs_to_the_process_of_its_unit() -> None:
    limits = "/proc/7/limits:Max locked memory       64 64 bytes\n/proc//limits:Max locked memory 1\n"
    found = parse(lines(texts={"limits": limits}, outs={"units": "Id=a\nMainPID=7\n\nId=b\n"})).units
    assert isinstance(found, dict)
    assert {name: unit.process_memlock for name, unit in found.items()} == {"a": "64", "b": ""}


@pytest.mark.parametrize(("text", "number"), [("9" * 18, int("9" * 18)), ("9" * 19, 0), ("1", 1)])
def test_the_longest_number(text: str, number: int) -> None:
    assert parse(lines(texts={"values": f"clock={text}\n"})).clock == number


def test_rows_of_tools_and_libraries_with_blanks_and_tabs() -> None:
    outs = {"versions": "ctk\t/usr/my bin/ctk\tversion 1\tof 2\nalone\nempty\t/x\t\n", "ldcache": "0 libs found\n"}
    state = parse(lines(texts={"libs": "/lib/my lib\t/usr/a b\n/lib/x\t/y\tz\nalone\n"}, outs=outs))
    assert state.tools == {
        "ctk": Tool(path="/usr/my bin/ctk", version_line="version 1\tof 2"), "empty": Tool(path="/x"),
    }  # fmt: skip
    assert state.linker == Linker(libs={"/lib/my lib": "/usr/a b", "/lib/x": "/y\tz"})


def test_the_drivers_own_words() -> None:
    proc = "".join(
        f"/proc/driver/nvidia/version:{line}\n"
        for line in ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.1.2  x", "GCC version:  12.2.0  ",
                     "NVRM version: y  1.1  z")
    )  # fmt: skip
    driver = parse(lines(texts={"proc": proc, "values": "module_version= 580.1.2 \n"})).driver
    assert (driver.proc_version, driver.open_module, driver.module_version) == ("580.1.2", True, "580.1.2")
    closed = parse(lines(texts={"proc": proc.replace("Open ", "")})).driver
    assert (closed.proc_version, closed.open_module) == ("580.1.2", False)

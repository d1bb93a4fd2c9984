"""What modprobe.d and the command line amount to for ib_core, and what the checks of RDMA say beyond their verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.components.rdma.conf import by_files, by_next_boot, by_options, mode, settings
from gpuready.model.parse import RDMA_MARKS, parse
from gpuready.model.probe import script
from gpuready.model.state import NodeState
from tests.components.rdma.test_rdma_verdicts import port
from tests.model.probe_answers import lines, recorded
from tests.verdicts import one, root_files

#: kstrtobool() of the kernel looks at the first character, and at the second of on and off.
VALUES = {"1": "shared", "Y": "shared", "yes": "shared", "t": "shared", "on": "shared", "": "shared"}
VALUES |= {"0": "exclusive", "N": "exclusive", "no": "exclusive", "f": "exclusive", "off": "exclusive"}
VALUES |= {"2": "", "x": "", "o": "", "-1": ""}


def state(files: dict[str, str], **fields: object) -> NodeState:
    return NodeState.model_validate({"files": root_files(files), **fields})


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_read_as_the_kernel_reads_it(value: str) -> None:
    assert mode(value) == VALUES[value]


SHARED, EXCLUSIVE = "options ib_core netns_mode=1\n", "options ib_core netns_mode=0\n"
ETC, RUN, LOCAL, LIB = (f"{place}/modprobe.d" for place in ("/etc", "/run", "/usr/local/lib", "/usr/lib"))
#: Files, the mode they come to, and in which order they are read; the system tests ask modprobe itself.
PRECEDENCE: dict[str, tuple[dict[str, str], str, list[str]]] = {
    "none": ({f"{ETC}/a.conf": "# options ib_core netns_mode=0\noptions ib_cm netns_mode=0\n"}, "shared", []),
    "the last name": (
        {f"{ETC}/b.conf": EXCLUSIVE, f"{LIB}/a.conf": SHARED}, "exclusive", [f"{LIB}/a.conf", f"{ETC}/b.conf"]
    ),
    "whatever the directory": (
        {f"{ETC}/a.conf": EXCLUSIVE, f"{LIB}/b.conf": SHARED}, "shared", [f"{ETC}/a.conf", f"{LIB}/b.conf"]
    ),
    "of one name the first directory": (
        {f"{RUN}/a.conf": EXCLUSIVE, f"{LOCAL}/a.conf": SHARED, f"{LIB}/a.conf": SHARED}, "exclusive", [f"{RUN}/a.conf"]
    ),
    "an empty file hides, too": ({f"{ETC}/a.conf": "", f"{LIB}/a.conf": EXCLUSIVE}, "shared", []),
    "dashes, other options, continued lines": (
        {f"{ETC}/a.conf": "options ib-core recv_queue_size=8 \\\n netns-mode=0\n"}, "exclusive", [f"{ETC}/a.conf"]
    ),
    "the last of one file": ({f"{ETC}/a.conf": EXCLUSIVE + SHARED}, "shared", [f"{ETC}/a.conf"] * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", PRECEDENCE)
def test_precedence_of_files(name: str) -> None:
    files, wanted, order = PRECEDENCE[name]
    assert by_files(state(files)) == wanted
    assert [s.path for s in settings(state(files))] == order


def test_the_next_boot_is_told_by_its_entries_and_else_by_this_one() -> None:
    assert by_options("quiet ib_core.netns_mode=1 ib-core.netns-mode=0 -- init") == "exclusive"
    assert by_options("quiet ib_core.recv_queue_size=1") == ""
    assert by_next_boot(state({}, cmdline="ib_core.netns_mode=1")) == "shared"
    assert by_next_boot(state({}, cmdline="ib_core.netns_mode=1", boot_options=[""])) == ""
    assert by_next_boot(state({}, boot_options=["ib_core.netns_mode=0", ""])) == "mixed"


@given(st.text(max_size=80))
def test_no_file_and_no_command_line_makes_it_crash(text: str) -> None:
    assert by_files(state({"/etc/modprobe.d/a.conf": text})) in ("shared", "exclusive")
    assert by_options(text) in ("", "shared", "exclusive")


def test_what_the_probe_tells_of_rdma() -> None:
    values = "ib_core_loaded=1\nib_netns_mode=N\nnetns=sleep (pid 812)\nnetns=/run/netns/blue\nefa=0000:00:07.0\n"
    values += "initramfs=/boot/initrd.img-6.12\ninitramfs_old=/boot/initrd.img-6.12\nrdma_cni=1\npeermem=1\n"
    boot = "\tlinux /boot/vmlinuz-6.12 root=/dev/vda1 ro quiet ib_core.netns_mode=1 ib_core.netns_mode=0\noptions ro\n"
    found = parse(lines(texts={"values": values, "boot": boot}))
    assert found.marks == ("efa", "ib_core_loaded", "peermem", "rdma_cni")
    assert found.netns == ("sleep (pid 812)", "/run/netns/blue")
    assert found.initramfs == found.initramfs_old == ("/boot/initrd.img-6.12",)
    assert found.boot_options == ("ib_core.netns_mode=1 ib_core.netns_mode=0", "")
    assert NodeState.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("mark", sorted(RDMA_MARKS - {"efa"}))
def test_the_probe_looks_for_every_mark(mark: str) -> None:
    assert f"echo {mark}=1\n" in script()


def test_the_open_kernel_module_is_told_by_its_version() -> None:
    proc = "".join(
        f"/proc/driver/nvidia/version:{line}\n" for line in recorded("proc-driver-nvidia-version.txt").splitlines()
    )
    assert parse(lines(texts={"proc": proc})).driver.open_module
    closed = proc.replace("UNIX Open Kernel Module for x86_64", "UNIX x86_64 Kernel Module")
    assert not parse(lines(texts={"proc": closed})).driver.open_module


def test_the_fix_for_iwarp_depends_on_whose_driver_it_is() -> None:
    rdma = port("irdma0", node_type="4: RNIC")
    kernel, intel = (one("rdma.iwarp", NodeState(rdma=rdma, marks=marks)) for marks in ((), ("irdma_roce_ena",)))
    assert "devlink dev param set" in kernel.remedy and "roce_ena" not in kernel.remedy
    assert "options irdma roce_ena=1" in intel.remedy

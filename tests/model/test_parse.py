"""The probe's answer becomes a NodeState: recorded outputs, documented forms, and any garbage."""

import base64
import hashlib
import io
import json
import re
import struct
import tarfile
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuready.base.errors import GpureadyError
from gpuready.base.records import MOST_FILE, MOST_OUTPUT, MOST_TEXT, ProbeError, Records
from gpuready.model import probe
from gpuready.model.parse import parse
from gpuready.model.smi import lean
from gpuready.model.state import Docker, Linker, NodeState, Package, Tool, Unknown
from tests.model.probe_answers import DRIVER, H200_LIBS, LIB64, docker_info, h200, h200_lines, lines, recorded, tar

DOCKER_ROW: dict[str, Any] = {
    "id": "f00d",
    "name": "/train",
    "image": "pytorch:2",
    "runtime": "runc",
    "devices": None,
    "restart": "unless-stopped",
    "pid": 4711,
}


def of_docker(info: str, *rows: dict[str, Any]) -> Docker | Unknown | None:
    return parse(lines(outs={"docker": "\n".join([info, *map(json.dumps, rows)]) + "\n"})).docker


# --- the recorded machine -------------------------------------------------------------------------------------


def test_recorded_driver() -> None:
    driver = h200().driver
    assert driver.proc_version == DRIVER, "the open module's wording"
    assert driver.module_version == DRIVER
    assert driver.on_disk_version == ""
    assert driver.gpus == ("0000:00:06.0",)
    assert driver.pci == ("0000:00:06.0 0x030200 0x2335",)
    assert driver.nodes == ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
    assert driver.smi == lean(recorded("nvidia-smi-q-x.xml"))
    assert driver.excluded == ()


def test_a_gpu_that_an_option_of_the_module_excludes() -> None:
    information = recorded("proc-driver-nvidia-gpus-information.txt").replace("Excluded:\t No", "Excluded:\t Yes")
    assert "Yes" in information
    proc = [f"/proc/driver/nvidia/gpus/0000:00:06.0/information:{line}" for line in information.splitlines()]
    proc += ["/proc/cmdline:GPU Excluded: Yes", "/proc/x/information:GPU Excluded: Yes"]
    texts = {"values": "kernel=6.12.0\n", "proc": "\n".join(proc)}
    assert parse(lines(texts=texts)).driver.excluded == ("0000:00:06.0",)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)  ", "580.159.04"),
        ("NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024", "535.183.01"),
        ("NVIDIA UNIX Open Kernel Module for aarch64  570.86.15  Release Build  (dvs-builder@U16)", "570.86.15"),
        ("NVIDIA UNIX x86_64 Kernel Module  470.82  Tue Oct 26", "470.82"),
        ("something else", ""),
    ],
)
def test_wordings_of_the_module(text: str, version: str) -> None:
    proc = f"/proc/driver/nvidia/version:NVRM version: {text}\n/proc/driver/nvidia/version:GCC version: 12.2.0\n"
    assert parse(lines(texts={"proc": proc})).driver.proc_version == version


def test_recorded_linker() -> None:
    linker = h200().linker
    assert isinstance(linker, Linker)
    assert linker.cache["libcuda.so.1"] == (f"{LIB64}/libcuda.so.1", "/lib/libcuda.so.1")
    assert linker.cache["libnvidia-ml.so.1"] == (f"{LIB64}/libnvidia-ml.so.1", "/lib/libnvidia-ml.so.1")
    assert set(linker.cache) == {"libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libnvidia-ml.so"}
    assert linker.libs == H200_LIBS
    assert linker.loader == f"{LIB64}/libcuda.so.1"


def test_recorded_rest() -> None:
    state = h200()
    assert (state.os.id, state.os.id_like, state.os.version_id) == ("ubuntu", ("debian",), "24.04")
    assert state.os.name == "Ubuntu 24.04.3 LTS"
    assert (state.clock, state.uptime, state.memlock) == (1795223688, 1234, "unlimited")
    assert state.have == ("apt-get", "gpg", "nvidia-smi")
    assert state.files["/etc/ld.so.conf.d/nvidia.conf"].text == "/usr/local/cuda/lib64\n"
    assert state.packages == {
        "libcudart13": Package(version="13.0", arch="amd64"),
        "cuda-compat-13-0": Package(version="580.95.05-0ubuntu1", arch="amd64"),
    }
    assert state.docker is None
    assert not state.systemd


# --- NodeState as JSON ----------------------------------------------------------------------------------------

BINARY = bytes(range(256))


def through_json(state: NodeState) -> NodeState:
    """As ``probe`` stores a state and ``--state`` reads it (mode="json" would spoil keys that are no UTF-8)."""
    return NodeState.model_validate(json.loads(json.dumps(state.model_dump())))


def test_json_round_trip_of_unknowns_links_and_a_binary_key() -> None:
    assert through_json(h200()) == h200()
    state = parse(
        lines(
            files={"/usr/share/keyrings/nvidia.gpg": BINARY, "/etc/docker/daemon.json": "{}"},
            texts={"values": "link=/etc/docker/daemon.json /srv/daemon.json\nnotfile=/etc/containerd/config.toml\n"},
            outs={"docker": docker_info("info-26.1") + "\n" + json.dumps(DOCKER_ROW)},
            failed={"containerd": (1, "no"), "units": (1, "bus"), "versions": (1, "x")},
            stuck={"smi": "/proc/7/status:State:\tD (disk sleep)\n/proc/7/status:Pid:\t7\n", "ldcache": ""},
        )
    )
    assert state.files["/usr/share/keyrings/nvidia.gpg"].data == BINARY
    assert state.files["/etc/docker/daemon.json"].realpath == "/srv/daemon.json"
    assert isinstance(state.linker, Unknown)
    assert through_json(state) == state
    assert through_json(state).files["/usr/share/keyrings/nvidia.gpg"].data == BINARY


def test_a_state_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        h200().kernel = "x"


# --- files ----------------------------------------------------------------------------------------------------


def test_files_keep_mode_owner_time_and_bytes() -> None:
    state = parse(lines(files={"/etc/docker/daemon.json": b'{"l": "\xfc"}\r\n'}))
    file = state.files["/etc/docker/daemon.json"]
    assert (file.data, file.mode, file.uid, file.gid, file.mtime) == (b'{"l": "\xfc"}\r\n', 0o644, 0, 0, 1_700_000_000)
    assert file.sha256 == hashlib.sha256(b'{"l": "\xfc"}\r\n').hexdigest()


def test_files_are_found_by_prefix_in_order_without_the_probes_own() -> None:
    assert not h200().glob("/P/")
    state = parse(lines(files={"/etc/apt/b": "", "/etc/apt/a": "", "/etc/aptx": "", "/etc/x": ""}))
    assert list(state.glob("/etc/apt/")) == ["/etc/apt/a", "/etc/apt/b"]


# --- systemctl show -------------------------------------------------------------------------------------------

UNITS = """Id=docker.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
MainPID=1234
NeedDaemonReload=yes
FragmentPath=/usr/lib/systemd/system/docker.service
ExecStart={ path=/usr/sbin/dockerd ; argv[]=/usr/sbin/dockerd -H fd:// $DOCKER_OPTS ; ignore_errors=no ; start_time=[Fri 2026-11-20 10:00:00 UTC] ; stop_time=[n/a] ; pid=1234 ; code=(null) ; status=0/0 }
ActiveEnterTimestampMonotonic=10000000
LimitMEMLOCK=8388608
Environment=A=b C=d

Id=docker.socket
LoadState=loaded
ActiveState=inactive
UnitFileState=disabled
MainPID=
NeedDaemonReload=no
ActiveEnterTimestampMonotonic=0

Id=nvidia-fabricmanager.service
LoadState=not-found
ActiveState=inactive

Id=containerd.service
LoadState=masked
ActiveState=inactive
LimitMEMLOCK=infinity
KillMode=process
RequiredBy=docker.service
ConsistsOf=a.service b.service
"""  # noqa: E501


def test_units() -> None:
    state = parse(lines(outs={"units": UNITS}))
    assert isinstance(state.units, dict)
    assert list(state.units) == ["docker.service", "docker.socket", "containerd.service"]
    docker = state.units["docker.service"]
    assert (docker.load, docker.active, docker.enabled, docker.main_pid) == ("loaded", "active", "enabled", 1234)
    assert docker.need_daemon_reload
    assert docker.exec_start == ("/usr/sbin/dockerd", "-H", "fd://", "$DOCKER_OPTS")
    assert (docker.started_us, docker.limit_memlock) == (10_000_000, "8388608")
    assert (state.units["docker.socket"].main_pid, state.units["docker.socket"].need_daemon_reload) == (0, False)
    containerd = state.units["containerd.service"]
    assert (containerd.load, containerd.kill_mode) == ("masked", "process")
    assert containerd.takes_along == ("docker.service", "a.service", "b.service")


def test_files_that_are_younger_than_containerds_start_are_named_once() -> None:
    young = "unloaded=/etc/containerd/config.toml\nunloaded=/srv/a b.toml\nunloaded=/etc/containerd/config.toml\n"
    assert parse(lines(texts={"values": young})).unloaded == ("/etc/containerd/config.toml", "/srv/a b.toml")


@pytest.mark.parametrize(("said", "read"), [("000001ffffffffff", "000001ffffffffff"), ("0x1", ""), ("", ""), ("g", "")])
def test_roots_capabilities(said: str, read: str) -> None:
    assert parse(lines(texts={"values": f"init=systemd\ncapabilities={said}\n"})).capabilities == read


def test_what_the_process_of_a_unit_may_lock() -> None:
    limits = "/proc/1234/limits:Max locked memory       unlimited            8388608              bytes     \n"
    limits += "/proc/12/limits:Max locked memory       65536                65536                bytes     \n"
    units = parse(lines(outs={"units": UNITS}, texts={"values": "init=systemd\n", "limits": limits})).units
    assert isinstance(units, dict)
    assert {name: unit.process_memlock for name, unit in units.items()} == {
        "docker.service": "unlimited", "docker.socket": "", "containerd.service": ""
    }  # fmt: skip


def test_units_without_systemd_and_with_a_bus_that_is_gone() -> None:
    assert parse(lines()).units == {}
    failed = parse(lines(failed={"units": (1, "Failed to connect to bus: No such file or directory\n")}))
    assert failed.units == Unknown(unknown="units: exit 1: Failed to connect to bus: No such file or directory")


# --- dpkg-query -----------------------------------------------------------------------------------------------

DPKG = """containerd.io\tamd64\t1.7.27-1\tii 
libnvidia-container1\tamd64\t1.20.0-1\thi 
nvidia-container-toolkit\tamd64\t1.20.0-1\thU 
nvidia-container-toolkit-base\tamd64\t1.20.0-1\tiF 
libnvidia-container-tools\tamd64\t1.19.1-1\trc 
libcuda1\tamd64\t550.163.01-2\tii 
libcuda1\ti386\t550.163.01-2\tii 
libgldispatch0-nvidia\t\t\tun 
docker-ce\tamd64\t\thn 
nvidia-driver\tamd64\t550\tiHR
libnvidia-ml1\tamd64\t550.163.01-2\tii \tDebian <x@debian.org>\tNVIDIA Management Library
nvidia-utils-535-server\tamd64\t535.309.01-0ubuntu1\tii \tme <me@example.com>\tTransitional package for 580
"""  # noqa: W291


def test_packages() -> None:
    assert parse(lines(outs={"dpkg": DPKG})).packages == {
        "containerd.io": Package(version="1.7.27-1", arch="amd64"),
        "libnvidia-container1": Package(version="1.20.0-1", arch="amd64", held=True),
        "nvidia-container-toolkit": Package(version="1.20.0-1", arch="amd64", held=True, configured=False),
        "nvidia-container-toolkit-base": Package(version="1.20.0-1", arch="amd64", configured=False),
        "libcuda1": Package(version="550.163.01-2", arch="amd64"),
        "libcuda1:i386": Package(version="550.163.01-2", arch="i386"),
        "nvidia-driver": Package(version="550", arch="amd64", configured=False),
        "libnvidia-ml1": Package(version="550.163.01-2", arch="amd64", maker="Debian <x@debian.org>"),
        "nvidia-utils-535-server": Package(
            version="535.309.01-0ubuntu1", arch="amd64", maker="me <me@example.com>", transitional=True
        ),
    }


@pytest.mark.parametrize("rc", [2, 100, 127, 137])
def test_a_dpkg_that_fails_makes_packages_unknown(rc: int) -> None:
    packages = parse(lines(failed={"dpkg": (rc, "dpkg-query: error: database is locked\n")})).packages
    assert packages == Unknown(unknown=f"dpkg: exit {rc}: dpkg-query: error: database is locked")


def test_packages_of_rpm_of_neither_and_an_empty_list() -> None:
    assert parse(lines(outs={"dpkg": ""})).packages == {}
    rpm = parse(lines(outs={"rpm": "nvidia-container-toolkit\tx86_64\t1.20.0-1\tii \n"})).packages
    assert rpm == {"nvidia-container-toolkit": Package(version="1.20.0-1", arch="x86_64")}
    assert parse(lines()).packages == Unknown(unknown="neither dpkg nor rpm on this node")


# --- docker ---------------------------------------------------------------------------------------------------


def test_docker_20_10() -> None:
    docker = of_docker(docker_info("info-20.10"))
    assert isinstance(docker, Docker)
    assert docker.version == "20.10.24+dfsg1"
    assert docker.runtimes["nvidia"] == "/usr/bin/nvidia-container-runtime"
    assert docker.runtimes["runc"] == "runc"
    assert (docker.default_runtime, docker.live_restore, docker.swarm) == ("nvidia", False, True)
    assert (docker.cgroup_driver, docker.rootless, docker.cdi_spec_dirs) == ("cgroupfs", False, ())
    assert (docker.images, docker.containers) == (12, ())


def test_docker_26_1() -> None:
    docker = of_docker(docker_info("info-26.1"))
    assert isinstance(docker, Docker)
    assert docker.version == "26.1.5+dfsg1"
    assert docker.runtimes == {"io.containerd.runc.v2": "runc", "kata": "", "runc": "runc"}
    assert (docker.default_runtime, docker.live_restore, docker.swarm) == ("runc", True, False)
    assert (docker.cgroup_driver, docker.rootless) == ("systemd", True)
    assert docker.cdi_spec_dirs == ("/etc/cdi", "/var/run/cdi")


@pytest.mark.parametrize(
    ("change", "gpu"),
    [
        ({}, False),
        ({"runtime": "nvidia"}, True),
        ({"runtime": "nvidia-cdi"}, True),
        ({"runtime": None, "devices": []}, False),
        ({"devices": [{"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}]}, True),
        ({"devices": [{"Driver": "nvidia", "Count": 1, "Capabilities": [["compute", "utility"]]}]}, True),
        ({"devices": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"], "Capabilities": None}]}, True),
        ({"devices": [{"Driver": "", "Capabilities": [["tpu"]]}]}, False),
    ],
)
def test_containers_and_who_of_them_holds_a_gpu(change: dict[str, Any], gpu: bool) -> None:
    docker = of_docker(docker_info("info-20.10"), DOCKER_ROW, DOCKER_ROW | change)
    assert isinstance(docker, Docker)
    plain, changed = docker.containers
    assert (plain.id, plain.name, plain.image, plain.restart) == ("f00d", "train", "pytorch:2", "unless-stopped")
    assert (plain.pid, plain.gpu) == (4711, False)
    assert changed.gpu is gpu


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "not JSON",
        "[]",
        "null",
        "7",
        '{"Runtimes": [1]}',
        '{"Runtimes": {"x": 3}}',
        '{"Runtimes": {"x": {"path": 3}}}',
        '{"Swarm": "no"}',
        '{"SecurityOptions": [1]}',
        '{"CDISpecDirs": 4}',
        '{"ServerErrors": ["Cannot connect to the Docker daemon"]}',
        '{"ServerErrors": [1]}',
        "{}\n{}",
        "{}\nnull",
        '{}\n{"id": "x", "devices": [1]}',
        '{}\n{"id": "x", "pid": 1e999}',
        '{}\n{"id": 7}',
        '{}\n{"id": "x", "name": 7}',
        "[" * 100_000,
    ],
)
def test_an_invalid_docker_answer_is_unknown(answer: str) -> None:
    docker = of_docker(answer)
    assert isinstance(docker, Unknown)
    assert docker.unknown.startswith("docker: ")


def test_the_error_of_an_engine_that_refuses_is_shown() -> None:
    docker = of_docker('{"ServerErrors": ["Cannot connect to the Docker daemon at unix:///var/run/docker.sock."]}')
    assert isinstance(docker, Unknown) and "Cannot connect to the Docker daemon" in docker.unknown
    docker = parse(lines(failed={"docker": (1, "\n  permission denied while trying to connect\n")})).docker
    assert docker == Unknown(unknown="docker: exit 1: permission denied while trying to connect")


def test_a_container_name_with_unicode_line_breaks_is_one_line() -> None:
    raw = json.dumps(DOCKER_ROW | {"image": "a\u0085b\u2028c"}, ensure_ascii=False)
    docker = parse(lines(outs={"docker": f"{docker_info('info-26.1')}\n{raw}\n"})).docker
    assert isinstance(docker, Docker)
    assert docker.containers[0].image == "a\u0085b\u2028c"


# --- the rest -------------------------------------------------------------------------------------------------


def test_tools() -> None:
    text = "nvidia-ctk\t/usr/bin/nvidia-ctk\tNVIDIA Container Toolkit CLI version 1.20.0\ndockerd\t/usr/bin/dockerd\n"
    assert parse(lines(outs={"versions": text})).tools == {
        "nvidia-ctk": Tool(path="/usr/bin/nvidia-ctk", version_line="NVIDIA Container Toolkit CLI version 1.20.0"),
        "dockerd": Tool(path="/usr/bin/dockerd"),
    }


@pytest.mark.parametrize(("values", "expected"), [("=1", "running"), ("=1\ncloud_init_done=1", "done"), ("", "none")])
def test_cloud_init(values: str, expected: str) -> None:
    assert parse(lines(texts={"values": f"kernel=x\ncloud_init{values}\n"})).cloud_init == expected


def test_marks_reboot_and_the_rest_of_the_values() -> None:
    values = "init=systemd\nsystemd=1\nreboot_required=1\nk3s=1\ndocker_snap=1\nnvidia_installer=1\nib_netns_mode=Y\n"
    values += "dockerd=/usr/bin/dockerd\ndockerd=-H\ndockerd=fd://\ndockerd=--label=a=b\n"
    state = parse(
        lines(texts={"values": values, "proc": "/proc/cmdline:quiet splash\n/proc/sys/kernel/random/boot_id:abc-1\n"})
    )
    assert (state.init, state.systemd, state.reboot_required) == ("systemd", True, True)
    assert state.marks == ("docker_snap", "k3s", "nvidia_installer")
    assert state.dockerd_command == ("/usr/bin/dockerd", "-H", "fd://", "--label=a=b")
    assert (state.cmdline, state.boot_id, state.ib_netns_mode) == ("quiet splash", "abc-1", "Y")


MOUNT = "36 35 98:0 / /usr/local/nvidia ro - erofs /dev/vdb ro\n"


@pytest.mark.parametrize(
    ("values", "package", "mounts", "owner"),
    [
        ("operator_driver=1\nnvidia_installer=1\n", "libcuda1", MOUNT, "operator"),
        ("nvidia_installer=1\n", "nvidia-driver-580-open", MOUNT, "packages"),
        ("", "libcuda1", "", "packages"),
        ("", "libnvidia-compute-580", "", "packages"),
        ("nvidia_installer=1\n", "nvidia-container-toolkit", MOUNT, "runfile"),
        ("", "cuda-compat-13-0", MOUNT, "mount"),
        ("", "nvidia-container-toolkit-base", "", ""),
    ],
)
def test_who_brought_the_driver(values: str, package: str, mounts: str, owner: str) -> None:
    answer = lines(
        texts={"values": f"kernel=x\n{values}", "mounts": mounts}, outs={"dpkg": f"{package}\tamd64\t580\tii \n"}
    )
    assert parse(answer).driver.owner == owner


def test_who_brought_the_driver_if_no_package_says_so() -> None:
    assert parse(lines(texts={"mounts": MOUNT}, failed={"dpkg": (2, "locked")})).driver.owner == "mount"
    assert h200().driver.owner == ""


@pytest.mark.parametrize("value", ["-5", "1e9", "\u0661", "9" * 40, "", "x"])
def test_invalid_numbers_are_zero(value: str) -> None:
    state = parse(lines(texts={"values": f"kernel=x\nclock={value}\nuptime={value}.5\n"}))
    assert (state.clock, state.uptime) == (0, 0)


def test_rdma_and_mounts() -> None:
    rdma = "/sys/class/infiniband/mlx5_0/ports/1/gids/3:0000:0000:0000:0000:0000:ffff:0a00:0001\n"
    rdma += "/sys/class/infiniband/mlx5_0/ports/1/state:4: ACTIVE\n"
    state = parse(lines(texts={"rdma": rdma, "mounts": MOUNT}))
    assert state.rdma["/sys/class/infiniband/mlx5_0/ports/1/gids/3"] == "0000:0000:0000:0000:0000:ffff:0a00:0001"
    assert state.rdma["/sys/class/infiniband/mlx5_0/ports/1/state"] == "4: ACTIVE"
    assert state.mounts == (MOUNT.rstrip(),)


def test_32_bit_libraries_of_the_same_name_do_not_count() -> None:
    cache = "2 libs found in cache `/etc/ld.so.cache'\n\tlibcuda.so.1 (libc6) => /usr/lib32/libcuda.so.1\n"
    cache += "\tlibcuda.so.1 (libc6,AArch64) => /usr/lib/aarch64-linux-gnu/libcuda.so.1\n"
    linker = parse(lines(outs={"ldcache": cache})).linker
    assert isinstance(linker, Linker)
    assert linker.cache == {"libcuda.so.1": ("/usr/lib/aarch64-linux-gnu/libcuda.so.1",)}


def test_a_loader_that_finds_nothing() -> None:
    loader = "\tlinux-vdso.so.1 (0x7f25)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n"
    state = parse(lines(outs={"ldcache": "0 libs found in cache `/etc/ld.so.cache'\n", "loader": loader}))
    assert state.linker == Linker()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('ID=debian\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n', "Debian GNU/Linux 13 (trixie)"),
        ("ID='debian'\nPRETTY_NAME=plain\n# comment\n\nbroken\n", "plain"),
        ('ID=debian\nPRETTY_NAME="unclosed\n', ""),
    ],
)
def test_os_release(text: str, name: str) -> None:
    state = parse(lines(files={"/etc/os-release": text}))
    assert (state.os.id, state.os.name) == ("debian", name)


# --- what hung ------------------------------------------------------------------------------------------------


def test_a_command_that_was_abandoned_names_its_process_and_state() -> None:
    stuck = (
        "/proc/41/status:Name:\tsh\n/proc/41/status:State:\tS (sleeping)\n/proc/41/status:Pid:\t41\n"
        "/proc/42/status:Name:\tnvidia-smi\n/proc/42/status:State:\tD (disk sleep)\n/proc/42/status:Pid:\t42\n"
    )
    smi = parse(lines(stuck={"smi": stuck})).driver.smi
    assert isinstance(smi, Unknown)
    assert "smi: no answer within the probe's limit, abandoned" in smi.unknown
    assert "pid 41 in state S, pid 42 in state D" in smi.unknown


def test_a_command_that_was_abandoned_and_is_gone() -> None:
    smi = parse(lines(stuck={"smi": ""})).driver.smi
    assert isinstance(smi, Unknown) and "(no process left)" in smi.unknown


def test_what_hangs_makes_its_part_unknown_and_no_other() -> None:
    names = ("docker", "units", "containerd", "dpkg", "versions", "ldcache")
    state = parse(lines(stuck=dict.fromkeys(names, "")))
    parts = (state.docker, state.units, state.containerd, state.packages, state.tools, state.linker)
    assert all(isinstance(part, Unknown) for part in parts)
    assert all(name in part.unknown for name, part in zip(names, parts, strict=True) if isinstance(part, Unknown))
    assert state.kernel == "6.1.0"


# --- garbage --------------------------------------------------------------------------------------------------


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.fault("damaged-answer")
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([], "cut: its end marker is missing"),
        (["tar " + b64(tar({}))], "cut: its end marker is missing"),
        (["end 0"], "holds nothing"),
        (["end 1"], "cut: 0 records of 1"),
        (["end"], "cut: 0 records of"),
        ([f"tar {b64(tar({}))}", "end 2"], "cut: 1 records of 2"),
        ([f"tar {b64(tar({}))}", "end 1"], "holds nothing"),
        (["tar ", "end 1"], "damaged"),
        (["tar !!!!", "end 1"], "damaged"),
        (["tar AAAA=", "end 1"], "damaged"),
        (["tar a b", "end 1"], "unknown line"),
        ([f"tar {b64(b'no tar at all')}", "end 1"], "files are damaged"),
        (["motd: welcome", "end 1"], "unknown line: 'motd: welcome'"),
        (["run smi x AAAA", "end 1"], "unknown line"),
        (["run smi \u00b2 AAAA", "end 1"], "unknown line"),
        (["tar \u00fc", "end 1"], "damaged"),
        ([f"failed {b64(b'no room for a temporary directory')}", "end 1"], "no room for a temporary directory"),
        (["failed ", "end 1"], "could not begin"),
    ],
)
def test_an_invalid_answer(answer: list[str], why: str) -> None:
    with pytest.raises(ProbeError, match=why) as caught:
        parse(answer)
    assert isinstance(caught.value, GpureadyError)
    assert caught.value.exit_code == 4


def test_what_comes_after_the_end_is_ignored() -> None:
    assert parse([*h200_lines(), "logout", "end 9"]) == h200()


@pytest.mark.fault("damaged-answer")
@pytest.mark.parametrize("part", [0, 1, 512, 1024, 5000, 10240, 40960, -10240, -3000])
def test_a_cut_answer_is_never_half_a_state(part: int) -> None:
    record, end = h200_lines()
    data = base64.b64decode(record[4:])
    assert parse([record, end]) == h200()
    content = len(data.rstrip(b"\0"))
    for length in (part % content, part % content // 512 * 512):
        with pytest.raises(ProbeError):
            parse([f"tar {b64(data[:length])}", end])
    with pytest.raises(ProbeError):
        parse([record[: part % (content * 4 // 3)], end])


def header(name: bytes, kind: bytes, size: int = 0, fill: bytes = b"") -> bytes:
    """One tar header, with a right checksum."""
    block = bytearray(512)
    block[:100] = name.ljust(100, b"\0")
    block[100:108], block[108:116], block[116:124] = b"0000644\0", b"0000000\0", b"0000000\0"
    block[124:136], block[136:148] = f"{size:011o}\0".encode(), b"00000000000\0"
    block[156:157], block[257:265] = kind, b"ustar  \0"
    block[386 : 386 + len(fill)] = fill
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    return bytes(block)


def test_a_tar_of_thousands_of_long_names_within_each_other() -> None:
    data = b"".join(header(b"././@LongLink", b"L", 4) + b"abc\0".ljust(512, b"\0") for _ in range(5_000))
    with pytest.raises(ProbeError):
        parse([f"tar {b64(data + header(b'x', b'0'))}", "end 1"])


@pytest.mark.fault("sparse-member")
def test_a_sparse_file_of_eight_exabytes_is_not_unpacked() -> None:
    sparse = b"%011o\0%011o\0" % (0, 0) + b"\0" * 72 + b"\0" + b"\x80" + struct.pack(">Q", 1 << 62).rjust(11, b"\0")
    with pytest.raises(ProbeError, match="'etc/x' is of type b'S'"):
        parse([f"tar {b64(header(b'etc/x', b'S', 0, sparse) + bytes(1024))}", "end 1"])


@pytest.mark.fault("short-lines")
@pytest.mark.parametrize(
    ("part", "most"), [("P/proc.text", MOST_TEXT), ("P/smi.stuck", MOST_TEXT), ("etc/docker/daemon.json", MOST_FILE)]
)
def test_a_part_over_its_limit_fails_the_host_by_name(part: str, most: int) -> None:
    def answer(size: int) -> list[str]:
        return [f"tar {b64(tar({'P/values.text': 'kernel=x', part: 'x' * size}))}", "end 1"]

    assert parse(answer(most)).kernel == "x"
    with pytest.raises(
        ProbeError,
        match=f"{part.removeprefix('P/')} of the node's answer has {most + 1} characters; .* at most {most}",
    ):
        parse(answer(most + 1))


@pytest.mark.fault("short-lines")
def test_a_command_that_printed_more_than_its_limit_is_unknown() -> None:
    row = "a\tamd64\t1\tii \n"
    assert parse(lines(outs={"dpkg": row.ljust(MOST_OUTPUT)})).packages == {"a": Package(version="1", arch="amd64")}
    packages = parse(lines(outs={"dpkg": row.ljust(MOST_OUTPUT + 1)})).packages
    assert packages == Unknown(unknown="dpkg: it printed 2097153 characters; gpuready reads at most 2097152")


@pytest.mark.fault("short-lines")
def test_the_caller_can_pause_before_each_part() -> None:
    pauses: list[None] = []
    assert parse(h200_lines(), lambda: pauses.append(None)) == h200()
    assert len(pauses) >= len(set(re.findall(r"P/(\w+)\.(?:text|out)", probe.script())))


@pytest.mark.parametrize("mtime", ["inf", "nan", "-1e300", "1e300"])
def test_invalid_times(mtime: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("etc/x")
        member.pax_headers = {"mtime": mtime}
        archive.addfile(member)
    _no_surprise([f"tar {b64(buffer.getvalue())}", "end 1"])


def _no_surprise(answer: list[str]) -> None:
    try:
        state = parse(answer)
    except ProbeError as e:
        assert str(e)
    else:
        assert through_json(state) == state


_LINES = st.one_of(
    st.text(max_size=60),
    st.builds("tar {}".format, st.binary(max_size=60).map(b64)),
    st.builds("run {} {} {}".format, st.text(max_size=5), st.integers(-1, 300), st.binary(max_size=20).map(b64)),
    st.builds("end {}".format, st.integers(0, 5)),
)


@pytest.mark.fault("damaged-answer")
@given(st.lists(_LINES, max_size=6))
def test_arbitrary_lines(answer: list[str]) -> None:
    _no_surprise(answer)


_BYTES = base64.b64decode(h200_lines()[0][4:])


@pytest.mark.fault("damaged-answer")
@given(st.lists(st.tuples(st.integers(0, len(_BYTES) - 1), st.integers(0, 255)), min_size=1, max_size=8))
@example([(124, 0xFF)])
@example([(11121, 0x80)])
@example([(156, 0x78), (148, 0x20)])
def test_mutated_bytes_of_a_real_answer(changes: list[tuple[int, int]]) -> None:
    data = bytearray(_BYTES)
    for at, value in changes:
        data[at] = value
    _no_surprise([f"tar {b64(bytes(data))}", "end 1"])


_NAMES = ["values", "proc", "pci", "rdma", "libs", "mounts"]
_RUNS = ["docker", "units", "dpkg", "rpm", "versions", "ldcache", "loader", "smi", "modules", "containerd"]
_TEXT = st.text(st.characters(exclude_categories=[]), max_size=80) | st.sampled_from(
    [UNITS, DPKG, docker_info("info-20.10"), docker_info("info-26.1"), recorded("ldconfig-p-cuda-nvidia.txt")[:2000]]
)


@given(st.dictionaries(st.sampled_from(_NAMES), _TEXT), st.dictionaries(st.sampled_from(_RUNS), _TEXT), st.data())
def test_arbitrary_texts_of_right_names(texts: dict[str, str], outs: dict[str, str], data: st.DataObject) -> None:
    def damaged(text: str) -> str:
        at = data.draw(st.integers(0, len(text)))
        damage = data.draw(st.sampled_from(["", "\0", "\n", "\t", "=", "{", '"', " ", "\udcff", "9" * 30]))
        return f"{text[:at]}{damage}{text[at:]}".encode("utf-8", "replace").decode()

    _no_surprise(lines(texts={k: damaged(v) for k, v in texts.items()}, outs={k: damaged(v) for k, v in outs.items()}))


def test_records_of_the_active_checks() -> None:
    records = Records([f"run cuda 0 {b64(b'cuInit=0 count=1 version=13000')}", f"run smoke 1 {b64(b'no')}", "end 2"])
    assert records.runs == {"cuda": (0, "cuInit=0 count=1 version=13000"), "smoke": (1, "no")}
    assert records.files == {} and records.texts == {}

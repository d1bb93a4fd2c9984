"""The file for a container: the settings of ``gpuready nccl``, and a self-test in roots and namespaces of its own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from ipaddress import IPv6Address, ip_interface
from pathlib import Path

import pytest
import yaml

from gpuready.components.nccl.spec import Nccl
from gpuready.model.network import NetDevice, Network
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network.in_container import found_in, told
from gpuready.network.nccl_settings import cluster
from gpuready.verbs.render import pod_check
from tests.command import Exits
from tests.network.gid_tables import Table, gid, sysfs, tables

#: A default route as /proc/net/route prints it.
ROUTE = "{}\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0"
#: The addresses of :func:`node` as the kernel prints them, without interfaces for IPv4.
FIB_TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 10.9.0.7
        /32 link UNICAST
Local:
  +-- 0.0.0.0/0 2 0 2
     |-- 10.1.0.7
        /32 host LOCAL
     |-- 10.1.0.255
        /32 link BROADCAST
     |-- 10.2.0.7
        /32 host LOCAL
     |-- 192.0.2.7
        /32 host LOCAL"""
IF_INET6 = "fd000000000000000000000000000001 03 40 00 80     net1"
needs_a_root = pytest.mark.skipif(
    not shutil.which("busybox") or bool(subprocess.run(["unshare", "-rmn", "true"], check=False).returncode),
    reason="a container takes namespaces of a user, and a static busybox",
)


def shown(state: NodeState) -> str:
    """What --read prints of this node, whose interfaces are all in the container."""
    assert isinstance(state.network, Network)
    lines = ["[mode]", "Y", "[devices]", *{path.split("/")[4]: "" for path in state.rdma}, "[ports]"]
    lines += [f"{path}:{value}" for path, value in state.rdma.items()]
    lines += [
        "[addresses]",
        "[network]",
        f"SSH_CONNECTION=192.0.2.99 5 {state.network.ssh} 22",
        *map(ROUTE.format, state.network.default),
    ]
    for name, device in state.network.devices.items():
        top = f"/sys/class/net/{name}"
        lines += [f"{top}/operstate:{device.state}", f"{top}/uevent:DEVTYPE={device.kind}"]
        lines += [f"{top}/speed:{device.speed}"] if device.speed else []
        lines += [f"lower={top}/lower_{lower}" for lower in device.lower]
        lines += [f"1: {name}    inet{'6' * (':' in address)} {address} scope global" for address in device.addresses]
    lines += [
        f"rdma=/sys/class/infiniband/{name}/device/net/{n}" for name, nets in state.network.rdma.items() for n in nets
    ]
    return "".join(f"{line}\n" for line in [*lines, "[end]"])


def complete(table: Table) -> NodeState:
    """The node of a case, in a container that has the interfaces of all GIDs."""
    assert isinstance(table.state.network, Network)
    devices = dict(table.state.network.devices)
    for path, name in table.state.rdma.items():
        if "/ndevs/" in path:
            address = IPv6Address(table.state.rdma[path.replace("gid_attrs/ndevs", "gids")])
            has = devices.get(name, NetDevice())
            own = str(address.ipv4_mapped or address)
            if own not in {each.partition("/")[0] for each in has.addresses}:
                has = has.model_copy(update={"addresses": (*has.addresses, str(ip_interface(own)))})
            devices[name] = has
    devices.setdefault("lo", NetDevice(addresses=("127.0.0.1/8",)))
    network = table.state.network.model_copy(update={"devices": devices})
    return table.state.model_copy(update={"network": network, "ib_netns_mode": "Y"})


@pytest.fixture(scope="module")
def python_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python program of the file, for a spec without values; it finds no package."""
    path = tmp_path_factory.mktemp("pod-check") / "program.py"
    path.write_text(pod_check.program(NodeSpec()))
    return path


#: Without RDMA, the file speaks of a container.
READ = [t for t in tables() if isinstance(t.state.network, Network) and t.nccl == Nccl() and t.state.rdma]


#: Runs the program once for each of the texts, and prints what each run did.
DRIVER = """import contextlib, io, json, sys
source, done = compile(open(sys.argv[1]).read(), "program", "exec"), []
for text in json.load(sys.stdin):
    out, err, sys.stdin, sys.argv = io.StringIO(), io.StringIO(), io.StringIO(text), ["program"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            exec(source, {})
        except SystemExit as e:
            done.append((out.getvalue().splitlines(), err.getvalue().splitlines(), e.code))
print(json.dumps(done))
"""


def test_the_settings_are_those_of_the_verb_nccl(python_program: Path) -> None:
    states = [complete(table) for table in READ]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", DRIVER, python_program],
        input=json.dumps([shown(state) for state in states]), capture_output=True, text=True, check=True,
    )  # fmt: skip
    outcomes = json.loads(done.stdout)
    assert len(outcomes) == len(READ) > 20
    for table, state, outcome in zip(READ, states, outcomes, strict=True):
        wanted = cluster({"": state}, {"": NodeSpec()})[""]
        assert outcome == [list(told(wanted)), list(wanted.problems), int(bool(wanted.problems))], table.title


def test_the_spec_chooses_the_ports(exits: Exits, tmp_path: Path) -> None:
    """Two ports, and nccl names the network of one; an old NCCL gets its GID index; extra variables follow."""
    nccl = {"subnets": ["10.2.0.0/24"], "version": "2.18", "extra": {"NCCL_IB_TC": "106"}}
    inventory = tmp_path / "hosts.yaml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": {"gpu01": {"gpuready": {"nccl": nccl}}}}}))
    file, facts = tmp_path / "pod-check.sh", tmp_path / "facts"
    file.write_text(exits(0, "render", "pod-check", "-i", inventory).out)
    facts.write_text(shown(node()))
    done = subprocess.run(["sh", file, "--from", facts], capture_output=True, text=True, check=True)
    assert exported(done.stdout) == {
        "NCCL_IB_HCA": "=mlx5_1:1", "NCCL_IB_GID_INDEX": "3", "NCCL_SOCKET_IFNAME": "=net2", "NCCL_IB_TC": "106",
    }  # fmt: skip
    other = tmp_path / "other.yaml"
    hosts = {"gpu01": {"gpuready": {"nccl": nccl}}, "gpu02": {"gpuready": {}}}
    other.write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    assert "gpu01 and gpu02 differ in nccl" in exits(64, "render", "pod-check", "-i", other).err


def node() -> NodeState:
    """Two RoCE ports of a pod, beside the interface of its default route."""
    rdma: dict[str, str] = {}
    devices = {"eth0": NetDevice(addresses=("192.0.2.7/24",))}
    for number in (1, 2):
        gids = [f"1 fe80::{number} v2 net{number}", f"3 10.{number}.0.7 v2 net{number}"]
        rdma |= sysfs(f"mlx5_{number - 1}", "1", gids=gids)
        devices[f"net{number}"] = NetDevice(addresses=(f"10.{number}.0.7/24",))
    return NodeState(rdma=rdma, network=Network(devices=devices, default=("eth0",)))


def exported(text: str) -> dict[str, str]:
    """The variables after eval, as a job has them."""
    done = subprocess.run(
        ["env", "-i", "sh", "-c", f'eval "$1"; {shutil.which("env")}', "sh", text],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if line.startswith(("NCCL", "GLOO")))


class Container:
    """A root with what a pod sees of two RoCE devices: both in /sys, the files of one in /dev."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("bin", "dev/infiniband", "dev/shm", "proc/self", "proc/net", "sys/class/net"):
            (root / name).mkdir(parents=True)
        for name in ("eth0", "net1", "net2"):
            self.write(f"/sys/class/net/{name}/operstate", "up")
        for path, value in node().rdma.items():
            self.write(path, value)
        for number in (0, 1):
            self.write(f"/sys/class/infiniband_verbs/uverbs{number}/ibdev", f"mlx5_{number}")
        self.write("/dev/infiniband/uverbs0", "")
        self.write("/proc/net/route", ROUTE.format("eth0"))
        self.write("/proc/self/uid_map", "         0          0 4294967295")
        self.capabilities("00000000a80425fb")
        shutil.copy2(str(shutil.which("busybox")), root / "bin/busybox")
        for name in ("sh", "cat", "df", "grep", "head", "mktemp", "rm", "sleep", "tail", "tr", "wc"):
            (root / "bin" / name).symlink_to("busybox")
        self.write("/proc/net/fib_trie", FIB_TRIE)
        self.write("/proc/net/if_inet6", IF_INET6)
        # This busybox runs its own ip(8), which would show the host's addresses.
        script = pod_check.script(NodeSpec())
        assert "\nhas() { " in script
        (root / "pod-check.sh").write_text(script.replace("\nhas() { ", '\nhas() { [ "$1" != ip ] && ', 1))

    def write(self, path: str, text: str) -> None:
        file = self.root / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    def capabilities(self, bits: str) -> None:
        """0xa80425fb are those of a container by default; 0x4000 is IPC_LOCK."""
        self.write("/proc/self/status", f"Name:\tsh\nCapEff:\t{bits}")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The file, in a root without Python and ip, under a limit of locked memory."""
        command = f"ulimit -l 64; exec unshare -r chroot {self.root} /bin/sh /pod-check.sh {' '.join(words)}"
        return subprocess.run(
            ["sh", "-c", command],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": f"{os.environ['PATH']}:/bin"},
        )


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


def results(text: str) -> dict[str, tuple[str, str]]:
    """Result and message of each test; its causes and fixes must be there if it did not pass."""
    found: dict[str, tuple[str, str]] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not line.startswith(" "):
            result, _, rest = line.partition(" ")
            name, _, message = rest.strip().partition(": ")
            found[name] = (result, message)
            if result in ("warn", "fail"):
                assert [each.split()[0] for each in lines[number + 1 : number + 3]] == ["cause:", "fix:"], text
    return found


@needs_a_root
def test_a_plain_container_is_tested_without_python(container: Container) -> None:
    done = container.run()
    found = results(done.stderr)
    assert found["sysfs"] == ("pass", "/sys shows 3 network interfaces")
    assert found["devices"][0] == "pass" and found["devices"][1].startswith(
        "mlx5_0 can be opened; the files of 1 other are"
    )
    assert found["gids"] == ("pass", "mlx5_0:1: net1, 2 GIDs")
    assert found["memlock"] == ("fail", "64 KiB can be locked")
    assert found["gpus"][0] == "warn" and found["shm"] == ("fail", "/dev/shm has 0 MiB; 0 GPUs need 4 GiB")
    assert found["settings"][0] == "skip" and "no Python 3.10" in found["settings"][1]
    assert (done.returncode, done.stdout) == (1, "")


@needs_a_root
def test_the_settings_are_computed_elsewhere(container: Container) -> None:
    """Only of the device that can be opened. Without ip and Python, the address of the GID is its network."""
    facts = container.root / "facts"
    facts.write_text(container.run("--read").stdout)
    assert "inet" not in facts.read_text() and "10.1.0.7" in facts.read_text()
    file = container.root / "pod-check.sh"
    done = subprocess.run(["sh", file, "--from", facts], capture_output=True, text=True, check=True)
    assert "# note: the addresses of the interfaces are unknown" in done.stdout
    assert exported(done.stdout) == {
        "NCCL_IB_HCA": "=mlx5_0:1", "NCCL_IB_ADDR_RANGE": "10.1.0.7/32", "NCCL_IB_ROCE_VERSION_NUM": "2",
        "NCCL_SOCKET_IFNAME": "=net1",
    }  # fmt: skip


@needs_a_root
@pytest.mark.parametrize(
    ("change", "test", "result", "message"),
    [
        (lambda c: c.capabilities("00000000a80465fb"), "memlock", "pass", "IPC_LOCK lifts the limit"),
        (lambda c: shutil.rmtree(c.root / "sys/class/net/net1"), "gids", "warn", "GIDs belong to net1, which this"),
        (lambda c: shutil.rmtree(c.root / "sys/class/net/net1"), "ports", "fail", "no port of"),
        (lambda c: shutil.rmtree(c.root / PORT[1:] / "gids"), "gids", "warn", "GID table is empty"),
        (lambda c: (c.root / PORT[1:] / "gids/3").unlink(), "gids", "warn", "its GIDs are link-local"),
        (lambda c: c.write(f"{PORT}/gids/3", gid("10.9.0.7")), "gids", "warn", "net1, which this container does not"),
        (lambda c: c.write(f"{PORT}/gids/3", gid("fd00::2")), "gids", "warn", "net1, which this container does not"),
        (lambda c: c.write(f"{PORT}/gids/3", gid("fd00::1")), "gids", "pass", "net1"),
        (lambda c: c.write(f"{PORT}/link_layer", "Unspecified"), "gids", "warn", "InfiniBand transport does not use"),
        (lambda c: c.write(f"{PORT}/../../node_type", "4: RNIC"), "gids", "warn", "InfiniBand transport does not use"),
        (lambda c: c.write(f"{PORT}/link_layer", "InfiniBand"), "gids", "pass", "2 GIDs"),
        (lambda c: c.write(f"{PORT}/state", "1: DOWN"), "ports", "fail", "no port of"),
        (lambda c: (c.root / "dev/infiniband/uverbs0").unlink(), "devices", "fail", "none of the 2 RDMA devices"),
        (lambda c: shutil.rmtree(c.root / "sys/class/infiniband"), "devices", "warn", "no RDMA device"),
        (lambda c: shutil.rmtree(c.root / "sys/class/net"), "sysfs", "fail", "shows no network interface"),
        (lambda c: c.write("/dev/nvidia0", ""), "gpus", "fail", "missing, or cannot be opened: /dev/nvidiactl /dev/"),
        (
            lambda c: [c.write(f"/dev/nvidia{name}", "") for name in ("0", "1", "ctl", "-uvm")],
            "gpus",
            "pass",
            "2 can be",
        ),
        (lambda c: [c.write(f"/dev/nvidia{name}", "") for name in range(8)], "shm", "fail", "8 GPUs need 8 GiB"),
    ],
)
def test_what_a_container_lacks(
    change: Callable[[Container], object], test: str, result: str, message: str, container: Container
) -> None:
    change(container)
    found = results(container.run().stderr)
    assert found[test][0] == result and message in found[test][1], found


@needs_a_root
@pytest.mark.parametrize(
    ("program", "result", "message"),
    [
        ("echo 'GPU 0: H200'", "pass", "1 in nvidia-smi"),
        (
            "echo 'Driver/library version mismatch'; exit 18",
            "fail",
            "nvidia-smi fails: Driver/library version mismatch",
        ),
        ("sleep 20", "fail", "nvidia-smi does not end within 1 s"),
    ],
)
def test_nvidia_smi_is_not_waited_for_for_ever(program: str, result: str, message: str, container: Container) -> None:
    for name in ("0", "ctl", "-uvm"):
        container.write(f"/dev/nvidia{name}", "")
    container.write("/bin/nvidia-smi", f"#!/bin/sh\n{program}")
    (container.root / "bin/nvidia-smi").chmod(0o755)
    if program == "sleep 20":
        file = container.root / "pod-check.sh"
        file.write_text(file.read_text().replace("LIMIT=30\n", "LIMIT=1\n"))
    assert results(container.run().stderr)["gpus"] == (result, message)
    assert not list((container.root / "dev/shm").iterdir())


PORT = "/sys/class/infiniband/mlx5_0/ports/1"


@needs_a_root
def test_one_usable_port_is_enough(container: Container) -> None:
    """Ports that NCCL is not to use do not fail the check; EFA alone is no failure either."""
    container.write("/dev/infiniband/uverbs1", "")
    for path, value in (("state", "1: DOWN"), ("state", "4: ACTIVE"), ("link_layer", "Unspecified")):
        container.write(f"{PORT}/{path}", value)
        if value == "4: ACTIVE":
            shutil.rmtree(container.root / "sys/class/net/net1")
        err = container.run().stderr
        assert "fail  ports" not in err and "fail  gids" not in err
    container.write(f"{PORT.replace('_0', '_1')}/link_layer", "Unspecified")
    err = container.run().stderr
    assert "fail  ports" not in err and "fail  gids" not in err


def same_name() -> NodeState:
    """A RoCE port of the host whose interface has the name of one of the pod's, and a port of the pod."""
    state = node()
    assert isinstance(state.network, Network)
    devices = {**state.network.devices, "net1": NetDevice(addresses=("172.18.0.5/16", "fe80::1/64"))}
    return state.model_copy(update={"network": state.network.model_copy(update={"devices": devices})})


@pytest.mark.parametrize("mode", ["Y", "N"])
@pytest.mark.parametrize("addressed", [True, False])
def test_a_container_without_rdma(mode: str, addressed: bool) -> None:
    """In exclusive mode its devices may be elsewhere, so TCP must be asked for. The driver is not named."""
    text = shown(node()).replace("[mode]\nY", f"[mode]\n{mode}").replace("\nmlx5_0\nmlx5_1\n", "\n")
    text = "".join(f"{line}\n" for line in text.splitlines() if "net1" not in line and "net2" not in line)
    text = text if addressed else "".join(f"{line}\n" for line in text.splitlines() if " inet" not in line)
    found = found_in(text, NodeSpec())
    said = "\n".join((*found.problems, *found.notes))
    assert "this container has no RDMA device that it can use" in said and "driver" not in said
    assert ("addresses of the interfaces are unknown" in said) is not addressed
    if mode == "N":
        assert "nccl: {transport: tcp}" in found.problems[0] and found.variables == {}
        tcp = found_in(text, NodeSpec.model_validate({"nccl": {"transport": "tcp"}}))
        assert bool(tcp.variables) is addressed
    else:
        assert bool(found.variables) is addressed


def test_an_interface_of_the_same_name_is_not_the_hosts() -> None:
    found = found_in(shown(same_name()), NodeSpec())
    assert found.variables["NCCL_IB_HCA"] == "=mlx5_1:1"
    lines = [line for line in shown(same_name()).splitlines() if " inet" not in line]
    at = lines.index("[network]")
    known = ["192.0.2.7", "10.2.0.7", "172.18.0.5", IF_INET6]
    without_ip = "".join(f"{line}\n" for line in [*lines[:at], *known, *lines[at:]])
    assert found_in(without_ip, NodeSpec()).variables["NCCL_IB_HCA"] == "=mlx5_1:1"


@needs_a_root
def test_a_container_with_all_of_it_gets_its_settings(container: Container) -> None:
    """With Python and ip, in namespaces of its own: /sys, /dev and the network are the container's."""
    container.write("/dev/infiniband/uverbs1", "")
    for name in ("null", "nvidia0", "nvidiactl", "nvidia-uvm"):
        container.write(f"/dev/{name}", "")
    script = """set -e
cd "$1"
ip link set lo up
for n in 1 2; do
  ip link add "net$n" type veth peer name "far$n"
  ip addr add "10.$n.0.7/24" dev "net$n"
  ip link set "net$n" up
done
mount --bind /dev/null dev/null
mount -t tmpfs -o size=8g tmpfs dev/shm
mount --rbind sys /sys
mount --rbind dev /dev
exec sh pod-check.sh
"""
    program = ["unshare", "-rmn", "sh", "-c", script, "sh", container.root]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    found = results(done.stderr)
    wrong = {name: each for name, each in found.items() if each[0] != "pass" and name != "memlock"}
    assert wrong == {} and len(found) == 7, done.stderr
    assert done.returncode == (found["memlock"][0] == "fail")
    assert exported(done.stdout) == {
        "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1", "NCCL_IB_ADDR_RANGE": "10.0.0.0/14", "NCCL_IB_ROCE_VERSION_NUM": "2",
        "NCCL_SOCKET_IFNAME": "=net1",
    }  # fmt: skip


def test_only_whole_facts_give_settings(tmp_path: Path) -> None:
    """Cut facts would choose fewer ports, without a word; a terminal's line ends change nothing."""
    whole = shown(node())
    wanted = found_in(whole, NodeSpec())
    assert wanted.variables and found_in(whole.replace("\n", "\r\n"), NodeSpec()) == wanted
    cut = ["", whole[: whole.index("[end]")], whole[: whole.index("[network]")] + "[end]\n", whole[: len(whole) // 2]]
    for text in cut:
        assert found_in(text, NodeSpec()).problems == ("this is not the whole output of --read",)
    file = tmp_path / "pod-check.sh"
    file.write_text(pod_check.script(NodeSpec()))
    done = subprocess.run(["sh", file, "--from", tmp_path / "none"], capture_output=True, text=True, check=False)
    assert done.returncode == 64 and "none cannot be read: No such file or directory" in done.stderr


def test_modules_beside_the_file_are_not_imported(tmp_path: Path) -> None:
    for name in ("re", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)\n")
    (tmp_path / "pod-check.sh").write_text(pod_check.script(NodeSpec()))
    (tmp_path / "facts").write_text(shown(node()))
    subprocess.run(
        ["sh", "pod-check.sh", "--from", "facts"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, check=True,
    )  # fmt: skip


@needs_a_root
def test_addresses_without_ip(python_program: Path) -> None:
    """Python names them as ip(8) does."""
    script = 'ip link set lo up; ip addr add 10.1.2.3/20 dev lo; ip addr add fd00::5/64 dev lo; exec "$@"'
    command = ["unshare", "-rn", "sh", "-c", script, "sh", sys.executable, "-I", "-S", python_program, "addresses"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {" ".join(line.split()[1:]) for line in done.stdout.splitlines()} == {
        "lo inet 127.0.0.1/8", "lo inet6 ::1/128", "lo inet6 fd00::5/64",
    }  # fmt: skip

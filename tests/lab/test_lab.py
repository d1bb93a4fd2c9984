"""The lab itself, on real machines: what a test may rely on, and that nothing stays behind."""

import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests.lab import DISTROS, Lab, LabError, Machine, Repository, network, nspawn, packages, repository
from tests.lab import node as nodes
from tests.lab.fixtures import MachineFactory

pytestmark = pytest.mark.lab
DOCKER = {"debian13": "26.1", "debian12": "20.10"}


def use_repository(node: Machine, source: Repository) -> None:
    """Configure apt as NVIDIA's instructions do."""
    (node.root / "etc/apt/lab.asc").write_bytes((source.directory / "gpgkey").read_bytes())
    line = f"deb [signed-by=/etc/apt/lab.asc] {source.base}/stable/deb/$(ARCH) /\n"
    (node.root / "etc/apt/sources.list").unlink(missing_ok=True)
    (node.root / "etc/apt/sources.list.d/nvidia.list").write_text(line)


def traces(name: str) -> list[str]:
    """All that shows on the host of a machine of that name."""
    mounts = [row for row in Path("/proc/mounts").read_text().splitlines() if f"gpuready-lab-{name} " in row]
    places = [network.namespace(name), nspawn._cgroup(name), nodes.home(name)]
    return [*mounts, *map(str, nspawn.processes(name)), *(str(path) for path in places if path.exists())]


@pytest.mark.parametrize("distro", DISTROS)
def test_a_machine_is_a_gpu_host_before_anyone_prepared_it(module_machine: MachineFactory, distro: str) -> None:
    node = module_machine(distro)
    assert node.run("systemctl is-system-running").stdout.strip() == "running"
    assert node.run("docker version -f '{{.Server.Version}}'").stdout.startswith(DOCKER[distro])
    assert node.run("docker run --rm busybox:lab sh -c 'echo $((6*7))'").stdout == "42\n"
    assert node.run("docker info -f '{{.Driver}}'").stdout == "overlay2\n"
    assert node.run("systemctl is-active containerd").stdout == "active\n"
    assert node.run("command -v python3 python perl6", check=False).returncode != 0
    assert node.run("hostname").stdout == f"{node.name}\n"


@pytest.mark.parametrize("distro", DISTROS)
def test_the_toolkit_installs_upgrades_and_keeps_its_relations(machine: MachineFactory, lab: Lab, distro: str) -> None:
    node = machine(distro)
    use_repository(node, repository.shared())
    node.run("apt-get -q update")
    policy = node.run("apt-cache policy nvidia-container-toolkit").stdout
    assert [version for version in packages.VERSIONS if f"{version}-1" in policy] == list(packages.VERSIONS)
    for version, units in (("1.19.1", "/etc/systemd/system"), ("1.20.1", "/lib/systemd/system")):
        four = " ".join(f"{name}={version}-1" for name in packages.NAMES)
        node.run(f"apt-get -qy install --no-install-recommends {four}")
        assert f"version {version}\n" in node.run("nvidia-ctk --version").stdout
        assert node.run("systemctl is-enabled nvidia-cdi-refresh.path").stdout == "enabled\n"
        node.run(f"cd {units} && ls nvidia-cdi-refresh.path nvidia-cdi-refresh.service")
    assert not (node.root / "etc/systemd/system/nvidia-cdi-refresh.service").exists()
    assert "nvidia-container-cli" in (node.root / "etc/nvidia-container-runtime/config.toml").read_text()
    link = node.root / "usr/bin/nvidia-container-toolkit"
    assert str(link.readlink()) == "/usr/bin/nvidia-container-runtime-hook"
    assert (node.root.stat().st_mode & 0o777) == 0o755
    alone = node.run("apt-get -qy --allow-downgrades install nvidia-container-toolkit=1.18.2-1", check=False)
    assert "unmet dependencies" in alone.stdout + alone.stderr
    assert "contains no" in node.run("apt-cache show libnvidia-container1").stdout


def test_machines_are_pristine_and_apart(machine: MachineFactory) -> None:
    with ThreadPoolExecutor() as pool:
        one, two = pool.map(machine, ["debian13", "debian13"])
    one.run("touch /etc/here /var/lib/docker/here && ip link add dummy-one type bridge")
    assert two.run("ls /etc/here /var/lib/docker/here", check=False).stdout == ""
    facts = (
        "cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub; docker info -f '{{.ID}}'; readlink /proc/self/ns/net"
    )
    assert set(one.run(facts).stdout.split("\n")) & set(two.run(facts).stdout.split("\n")) <= {""}
    assert "dummy-one" not in two.run("ip link").stdout + subprocess.check_output(["ip", "link"], text=True)


def test_a_disk_survives_a_power_cut_a_shutdown_and_a_reboot(machine: MachineFactory) -> None:
    node = machine()
    node.run("echo 1 > /etc/kept")
    node.kill()
    assert not node.running()
    node.start()
    node.poweroff()
    node.start()
    node.reboot()
    assert node.run("cat /etc/kept").stdout == "1\n"


def test_leftovers_of_any_stage_can_be_removed(lab: Lab) -> None:
    made = lab.create(f"half{os.getpid()}", owner=os.getpid())
    assert traces(made.name)
    network.detach(made.name, made.record.index)
    lab.destroy(made)
    record = nodes.Record(f"none{os.getpid()}", "debian13", 9999, "/nonexistent", "", os.getpid())
    nodes.save(record)
    lab.destroy(Machine(record))
    assert traces(made.name) + traces(record.name) == []


def test_a_machine_that_cannot_boot_says_so(lab: Lab) -> None:
    made = lab.create(f"dead{os.getpid()}", owner=os.getpid())
    try:
        (made.root / "usr/lib/systemd/systemd").unlink()
        (made.root / "usr/sbin/init").unlink()
        with pytest.raises(LabError, match="does not boot"):
            made.start()
    finally:
        lab.destroy(made)


def test_the_command_line_from_up_to_down(lab: Lab, tmp_path: Path) -> None:
    prefix = f"cli{os.getpid()}-"

    def lab_command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "tests.lab", *words], capture_output=True, text=True, check=True)

    def call(*words: str) -> str:
        return lab_command(*words).stdout

    try:
        up = lab_command("up", "--count", "2", "--name", prefix)
        names = [row.split()[0] for row in up.stdout.splitlines()]
        (login,) = [row for row in up.stderr.splitlines() if row.startswith("  ssh ")]
        assert subprocess.check_output([*shlex.split(login), "sudo -n id -un"], text=True) == "root\n"
        assert "-m tests.lab inventory >hosts.yaml" in up.stderr
        assert names == [f"{prefix}1", f"{prefix}2"]
        assert call("status").count(prefix) == 2
        document = yaml.safe_load(call("inventory"))["all"]
        assert document["vars"]["gpuready"]["toolkit"]["repo"]["fingerprint"] == repository.shared().fingerprint
        assert "gpuready" not in yaml.safe_load(call("inventory", "--plain"))["all"]["vars"]
        target = f"gpu@{document['hosts'][names[0]]['ansible_host']}"
        options = document["vars"]["ansible_ssh_common_args"].split()
        ssh = ["ssh", "-F", "none", "-i", document["vars"]["ansible_ssh_private_key_file"], *options, target]
        assert subprocess.check_output([*ssh, "id -un"], text=True) == "gpu\n"
    finally:
        call("down", "--name", prefix)
    assert [trace for name in names for trace in traces(name)] == []
    if not lab.machines():
        rules = subprocess.check_output(["iptables-save"], text=True)
        addresses = subprocess.check_output(["ip", "-o", "address"], text=True)
        assert "gpuready-lab" not in rules + addresses

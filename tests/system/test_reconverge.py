"""The driver is updated under a node: what is stale is named, mended by apply, and by the node alone.

Real: Debian's driver packages at two versions, apt, nvidia-ctk (in mode management, which needs no GPU), device nodes,
links, a container and a process that hold the libraries of before. Not real: the module, see tests/lab/module.py.
"""

import json
import re
from typing import Any

import pytest

from gpuready.components.reconverge.component import FILES, LINK, RESULT, SCRIPT, UNIT
from tests.lab import Machine, module
from tests.system.faults import until
from tests.system.harness import Result
from tests.system.host import Host, Hosts

CURRENT = "/usr/lib/x86_64-linux-gnu/nvidia/current"
SPEC = "/var/run/cdi/nvidia.yaml"
SETTINGS = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"
TEXTFILES = "/var/lib/prometheus/node-exporter"
PACKAGES = (
    *("libcuda1", "libnvidia-ml1", "nvidia-smi", "nvidia-alternative", "nvidia-legacy-check"),
    *("libnvidia-ptxjitcompiler1", "libnvidia-pkcs11-openssl3"),
)
APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends --allow-downgrades -o Dpkg::Use-Pty=0"
#: nvidia-cdi-refresh without the GPU that it asks nvidia-smi for first.
REFRESH = "[Service]\nExecCondition=\nExecStart=\nExecStart=/usr/bin/nvidia-ctk cdi generate\n"
ONLY = ("repository", "toolkit", "ldso", "devices", "cdi", "reconverge")


class Driver:
    """The driver of the machine: packages by apt, the module by its stand-in."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        rows = machine.run("apt-cache madison libcuda1").stdout.splitlines()
        found = sorted({row.split("|")[1].strip() for row in rows if "Packages" in row})
        if len(found) < 2:
            pytest.skip(f"Debian has one version of libcuda1 only: {found}")
        self.old, self.new = found[0], found[-1]

    def install(self, version: str) -> str:
        """apt brings all packages to a version; returns what it prints."""
        wanted = " ".join(f"{name}={version}" for name in PACKAGES)
        return self.machine.run(f"{APT} install {wanted}").stdout

    def upstream(self, version: str) -> str:
        return re.split(r"[-+]", version)[0]


@pytest.fixture(scope="module")
def node(shared: Hosts) -> Host:
    machine = shared("debian12")
    machine.run("apt-get -q update")
    machine.run(f"mkdir -p {TEXTFILES} /etc/systemd/system/nvidia-cdi-refresh.service.d")
    machine.run("cat >/etc/systemd/system/nvidia-cdi-refresh.service.d/lab.conf", stdin=REFRESH)
    machine.run(f"mkdir -p {SETTINGS.rpartition('/')[0]}; echo NVIDIA_CTK_CDI_GENERATE_MODE=management >{SETTINGS}")
    return machine


@pytest.fixture(scope="module")
def driver(node: Machine) -> Driver:
    found = Driver(node)
    found.install(found.old)
    module.load(node, found.upstream(found.old))
    return found


def work(node: Machine) -> None:
    """A container that has the library mounted, and a process that has it mapped."""
    library = node.run(f"ls {CURRENT}/libcuda.so.*.*").stdout.strip()
    node.run("docker rm -f work 2>/dev/null; systemctl stop lab-work 2>/dev/null", check=False)
    node.run(f"docker run -d --name work --restart=no -v {library}:/lib/libcuda.so.1:ro busybox:lab sleep 100000")
    node.run(f"systemd-run -q --unit=lab-work --setenv=LD_PRELOAD={library} sleep 100000")
    until(lambda: library in node.run("cat /proc/$(systemctl show -p MainPID --value lab-work)/maps").stdout)


def told(node: Machine) -> dict[str, Any]:
    """The last result of the run on the node."""
    found: dict[str, Any] = json.loads(node.run(f"cat {RESULT}").stdout)
    return found


def runs(node: Machine) -> int:
    """How often the service was started."""
    count = node.run(f"journalctl --sync; journalctl -q -o cat -u {UNIT} | grep -c '^Starting ' || true")
    return int(count.stdout)


def ended(node: Machine, before: int) -> dict[str, Any]:
    """The result of the one run that began since there were so many."""
    until(lambda: runs(node) > before, what="the service is started")
    until(lambda: node.run(f"systemctl is-active {UNIT}", check=False).stdout.strip() in ("inactive", "failed"), 60)
    assert runs(node) == before + 1, "one run, however often dpkg was called"
    return told(node)


def ids(rows: list[dict[str, str]]) -> set[str]:
    return {row["check"] for row in rows}


def wrong(result: Result) -> set[str]:
    """The checks that fail or warn; what only a GPU could tell is unknown here, but for cuInit, which says 100."""
    return result.checks("fail", "warn") - {"libcuda.init"}


@pytest.fixture(scope="module")
def mends(reports: Host) -> Host:
    return reports.with_spec(reconverge={"on_driver_change": "mend"})


@pytest.fixture(scope="module")
def reports(node: Host) -> Host:
    return node.only(*ONLY).with_spec(hardware={"gpus": 1}, verify={})


@pytest.fixture(scope="module")
def baseline(driver: Driver, mends: Host) -> set[str]:
    """What is wrong with a node that is as it should be, but for its GPU."""
    first = mends.apply(code=None)
    assert first.component("reconverge")["error"] is None, first.explain()
    assert {"devices", "cdi", "reconverge"} <= first.changed(), first.explain()
    assert first.component("reconverge")["disruption"] == "none"
    found = mends.verify("--passive", code=None)
    assert not {c for c in wrong(found) if c.startswith(("cdi", "devices", "reconverge", "ldso", "libcuda.ld"))}
    proven = {"driver.match", "driver.nodes", "driver.charlinks", "driver.processes", "driver.packages"}
    proven |= {"cdi.spec", "libcuda.ldcache", "reconverge.last"}
    assert proven <= found.checks("pass"), found.explain()
    mends.settled(code=None)
    return wrong(found)


def test_the_node_alone_after_an_upgrade_and_a_boot(node: Machine, driver: Driver, baseline: set[str]) -> None:
    work(node)
    before = runs(node)
    driver.install(driver.new)
    said = ended(node, before)
    # The module is the old one: no CDI spec can be made, and whoever runs is left alone.
    assert (said["outcome"], said["mended"], said["failed"]) == ("stale", [], [])
    assert ids(said["left"]) == {"driver.match", "cdi.stale", "driver.processes"}, said
    old, new = driver.upstream(driver.old), driver.upstream(driver.new)
    assert f"the module is {old}" in json.dumps(said["left"]) and new in json.dumps(said["left"])
    prom = node.run(f"cat {TEXTFILES}/gpuready.prom").stdout
    assert 'gpuready_reconverge_stale{check="driver.match"}' in prom and "gpuready_reconverge_failed 0" in prom

    module.load(node, new)  # what the boot will load
    node.reboot()
    until(lambda: told(node)["boot_id"] == node.run("cat /proc/sys/kernel/random/boot_id").stdout.strip(), 60)
    said = told(node)
    assert (said["outcome"], said["failed"], said["left"]) == ("mended", [], []), said
    assert set(said["mended"]) >= {"cdi", "links", "nodes"} - (
        {"cdi"} if "cdi.spec" not in ids(said["found"]) else set()
    )
    assert f"libcuda.so.{new}" in node.run(f"cat {SPEC}").stdout
    assert node.run("test -c /dev/nvidia-uvm && test /dev/char/507:0 -ef /dev/nvidia-uvm").returncode == 0
    assert 'stale{check="driver.match"} 0' in node.run(f"cat {TEXTFILES}/gpuready.prom").stdout


def test_the_node_alone_when_the_module_is_new_already(
    node: Host, driver: Driver, mends: Host, baseline: set[str]
) -> None:
    """A package's script has reloaded the module, and nvidia-uvm came back under another number."""
    work(node)
    old = driver.upstream(driver.old)
    module.load(node, old, uvm=508)
    before = runs(node)
    driver.install(driver.old)
    said = ended(node, before)
    assert ids(said["found"]) >= {"cdi.stale", "driver.nodes", "driver.processes"}, said
    assert (set(said["mended"]), ids(said["left"])) == ({"cdi", "links", "nodes"}, {"driver.processes"}), said
    assert f"libcuda.so.{old}" in node.run(f"cat {SPEC}").stdout
    found = mends.verify("--passive", code=None)
    assert wrong(found) - baseline == {"driver.processes", "reconverge.last"}, found.explain()
    evidence = found.check("driver.processes")["evidence"]
    assert "container work (busybox:lab)" in evidence and "sleep (pid" in evidence, evidence


def test_the_hook_starts_nothing_and_cannot_fail(node: Machine, baseline: set[str]) -> None:
    before = runs(node)
    node.run(f"{APT} install --reinstall hostname && sh {SCRIPT} hook")
    assert runs(node) == before, "the driver is as it was"
    for damage in (f"mv {SCRIPT} /root/script", f"echo 'exit 3 (' >{SCRIPT}"):
        node.run(damage)
        assert node.run(f"{APT} install --reinstall hostname", check=False).returncode == 0
    node.run(f"mv /root/script {SCRIPT}")


@pytest.mark.fault("D13")
def test_by_hand_it_ends_whole(node: Machine, baseline: set[str]) -> None:
    """Beside systemd nobody ends what a run leaves behind: whoever waits for its output would wait for it, too."""
    verified = node.run(f"systemd-analyze verify /etc/systemd/system/{UNIT}", check=False)
    assert UNIT not in verified.stdout + verified.stderr
    done = node.run(f"sh {SCRIPT} run")
    assert done.stdout.splitlines()[-1].split(":")[0] == told(node)["outcome"] != "failed", done.stdout
    until(lambda: node.run("pgrep -f '[t]ail --pid'", check=False).stdout == "", 10, "the watchdog is gone")
    assert node.run(f"sh {SCRIPT} --help", check=False).returncode == 64


def test_it_waits_for_the_package_manager(node: Machine, baseline: set[str]) -> None:
    """apt holds its lock for as long as one of its hooks runs, and for this long the service has not looked."""
    before, hook = runs(node), "/etc/apt/apt.conf.d/99slow"
    wait = f"rm -f /var/lib/gpuready/reconverge.stamp; sh {SCRIPT} hook; sleep 2; stat -c %Y {RESULT} >/root/during"
    node.run(
        f"rm -f {RESULT}; : >{RESULT}; stat -c %Y {RESULT} >/root/first; cat >{hook}",
        stdin=f'DPkg::Post-Invoke {{ "{wait}"; }};\n',
    )
    node.run(f"{APT} install --reinstall hostname; rm {hook}")
    assert ended(node, before)["outcome"] in ("ok", "stale")
    assert node.run("cat /root/first").stdout == node.run("cat /root/during").stdout


@pytest.mark.promise
def test_apply_mends_what_verify_names(node: Host, driver: Driver, reports: Host, baseline: set[str]) -> None:
    work(node)
    done = reports.apply(code=None)
    assert done.changed() == {"reconverge"}, done.explain()
    new = driver.upstream(driver.new)
    driver.install(driver.new)
    node.run("rm /etc/ld.so.cache")  # as when dpkg is cut before ldconfig's trigger
    halfway = reports.verify("--passive", code=None)
    assert "libcuda.ldcache" in halfway.checks("fail"), halfway.explain()
    node.run("ldconfig")
    halfway = reports.verify("--passive", code=None)
    assert wrong(halfway) - baseline >= {"driver.match", "driver.processes"}, halfway.explain()
    assert halfway.component("cdi")["applies"] is False

    before = runs(node)
    module.load(node, new, uvm=509)
    node.run("rm /etc/ld.so.cache /dev/char/195:254")
    stale = reports.verify("--passive", code=None)
    named = {"libcuda.ldcache", "ldso.config", "cdi.config", "cdi.stale", "devices.config", "driver.nodes",
             "driver.charlinks", "driver.processes", "reconverge.config", "reconverge.last"}  # fmt: skip
    assert wrong(stale) - baseline == named, stale.explain()
    assert set(stale.diff("devices")) == {"devices.missing"}
    assert set(stale.diff("ldso")) == {"ldso.stale"}
    done = reports.apply(code=None)
    assert done.changed() == {"ldso", "devices", "cdi", "reconverge"}, done.explain()
    assert {item["disruption"] for item in done.host()["components"] if item["changed"]} == {"none"}
    work_of_before = {"driver.processes", "driver.charlinks", "reconverge.last"}  # links: only where the node mends
    assert wrong(done) - baseline <= work_of_before, done.explain()
    assert {"libcuda.ldcache", "cdi.config", "cdi.spec", "driver.nodes", "driver.match"} <= done.checks("pass")
    assert f"libcuda.so.{new}" in node.run(f"cat {SPEC}").stdout
    assert (
        node.run("docker inspect -f '{{.State.Running}}' work; systemctl is-active lab-work").stdout == "true\nactive\n"
    )
    assert runs(node) == before, "a reload of the module alone is seen by the next boot, transaction or apply"
    reports.settled(code=None)


def test_remove_leaves_an_apt_that_works(node: Host, reports: Host, baseline: set[str]) -> None:
    done = node.only("reconverge").with_spec(hardware={"gpus": 1}, verify={}).remove()
    assert done.changed() == {"reconverge"}, done.explain()
    there = node.run(
        f"ls -d {' '.join(FILES)} {LINK} /var/lib/gpuready/reconverge* {TEXTFILES}/* 2>/dev/null", check=False
    )
    assert there.stdout == ""
    assert node.run(f"{APT} install --reinstall hostname", check=False).returncode == 0
    assert (
        node.run(f"systemctl is-active {UNIT}; systemctl --failed --plain -q", check=False).stdout.strip() == "inactive"
    )

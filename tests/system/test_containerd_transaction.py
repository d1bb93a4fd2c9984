"""containerd's transaction when something goes wrong: what ran before runs again, and all work lives on."""

import re
import subprocess
import time
from typing import Any

import pytest

from tests.system import faults
from tests.system.containerd_cases import DEBIAN, OLD, RUNC
from tests.system.containerd_node import CONFIG, DROP_IN, ContainerdNode, Seen
from tests.system.host import Host, Hosts

UNLESS = f"grep -q nvidia {CONFIG}"
#: systemd allows one start a minute: without `reset-failed` neither the restart nor the way back would be tried.
ONE_START = "[Unit]\nStartLimitIntervalSec=60\nStartLimitBurst=1\n[Service]\n"
SLOW = f"[Service]\nExecStartPre=/bin/sh -c 'if {UNLESS}; then touch /run/slow; sleep 4; fi'\n"
DOCKER = "/etc/systemd/system/docker.service.d/case.conf"


class One:
    """A machine with containerd 1.7 and Docker, and runs of the command line for it."""

    def __init__(self, node: ContainerdNode, host: Host) -> None:
        self.node, self.host = node, host

    def fails(self, pattern: str, **spec: Any) -> None:
        """An apply that fails with one clear message."""
        message = self.host.apply(code=1, **spec).component("containerd")["error"]["message"]
        assert re.search(pattern, message), message
        assert "\n" not in message
        assert len(message) < 900

    def waits(self, *says: str, **spec: Any) -> None:
        """An apply that waits and says for what; it touches neither the very files nor the engine."""
        before = self.node.look()
        self.host.waits("containerd", *says, **spec)
        assert self.node.look() == before

    def begins(self) -> subprocess.Popen[str]:
        """An apply that is in the middle of a restart, which :data:`SLOW` makes last."""
        self.node.sh("rm -f /run/slow")
        process = self.host.begin("apply")
        faults.until(lambda: self.host.run("[ -e /run/slow ]", check=False).returncode == 0, 60, "the restart")
        return process

    def mends(self, **spec: Any) -> Seen:
        """One apply closes what is left, the next finds nothing."""
        self.host.apply(**spec)
        self.host.settled(**spec)
        seen = self.node.look()
        assert {"nvidia", "runc"} <= set(seen.runtimes)
        return seen


@pytest.fixture(scope="module")
def one(shared: Hosts) -> One:
    """The machine, with the toolkit on it."""
    machine = shared()
    node = ContainerdNode(machine, "1.7")
    machine.apply("--skip", "containerd", code=None)
    wanted = {"runtimes": {"containerd": "auto"}, "verify": {"level": "effective"}}
    return One(node, machine.only("containerd").with_spec(**wanted))


def back(before: Seen, after: Seen) -> None:
    """The very files again, and the engine runs with them; the pod from before is the same process."""
    assert after.files == before.files
    assert (after.info, after.dump, after.pod) == (before.info, before.dump, before.pod)
    assert after.unit.startswith("active ")
    assert after.pod


@pytest.mark.fault("engine-refuses")
def test_containerd_does_not_start_with_the_new_file(one: One) -> None:
    one.node.prepare({CONFIG: DEBIAN}, drop_in=f"{ONE_START}ExecStartPre=/bin/sh -c '! {UNLESS}'\n")
    one.node.start_pod()
    before = one.node.look()
    one.fails(f"containerd rejected the new configuration: .*exit.* gpuready restored {CONFIG}; containerd runs again")
    back(before, one.node.look())
    one.node.sh(f"rm {DROP_IN}; systemctl daemon-reload; systemctl reset-failed containerd.service")
    assert one.mends().pod == before.pod


@pytest.mark.fault("engine-refuses")
def test_cri_fails_though_containerd_starts(one: One) -> None:
    """An import turns bad between the validation and the start."""
    bad, late = "/srv/containerd/late.toml", "/usr/local/sbin/late"
    script = (
        f"#!/bin/sh\nif {UNLESS}; then echo '[{OLD}.containerd]'; echo 'default_runtime_name = \"gone\"'; fi >{bad}\n"
    )
    one.node.prepare(
        {CONFIG: f'version = 2\nimports = ["{bad}"]\n{RUNC}', bad: "", late: script},
        arrange=f"chmod 755 {late}",
        drop_in=f"[Service]\nExecStartPre={late}\n",
    )
    one.node.start_pod()
    before = one.node.look()
    one.fails(f"containerd rejected the new configuration: .*gone.* gpuready restored {CONFIG}; containerd runs again")
    after = one.node.look()
    assert after.files[CONFIG] == before.files[CONFIG]
    assert (after.info, after.pod) == (before.info, before.pod)


@pytest.mark.fault("D16")
def test_cri_runs_with_something_else_than_the_files_say(one: One) -> None:
    """The last word is CRI's: what it does not confirm is taken back, whatever containerd config dump says."""
    other = """#!/bin/sh
if grep -qs nvidia /etc/containerd/config.toml; then
  exec sh -c '/usr/local/bin/crictl "$@" | sed "s/\\"defaultRuntimeName\\": \\"nvidia\\"/\\"defaultRuntimeName\\": \\"default\\"/"' sh "$@"
fi
exec /usr/local/bin/crictl "$@"
"""  # noqa: E501
    one.node.prepare({CONFIG: DEBIAN, "/usr/local/sbin/crictl": other}, arrange="chmod 755 /usr/local/sbin/crictl")
    one.node.start_pod()
    before = one.node.look()
    one.fails(
        r"rejected the new configuration: CRI runs with default\|/usr/bin/nvidia-container-runt",
        runtimes={"containerd": {"default_runtime": True}},
    )
    back(before, one.node.look())
    one.node.sh("rm /usr/local/sbin/crictl")
    assert one.mends().pod == before.pod


@pytest.mark.fault("D16")
def test_an_engine_that_never_read_its_old_file_is_told_by_cri(one: One) -> None:
    """A file that is put in place with its old time is younger than nothing; CRI says what runs."""
    one.node.prepare({CONFIG: DEBIAN})
    one.mends()
    script = f"""
cp -p {CONFIG} /root/with.toml; sed '/nvidia/,$d' /root/with.toml >{CONFIG}; systemctl restart containerd
touch -d '2020-01-01' /root/with.toml; mv /root/with.toml {CONFIG}
"""
    one.node.sh(script)
    assert "nvidia" not in one.node.look().runtimes
    difference = one.host.plan().diff("containerd")["containerd.running"]
    assert "CRI runs with the runtime nvidia absent" in difference[0]
    assert "nvidia" in one.mends().runtimes


@pytest.mark.fault("D16")
def test_without_crictl_the_check_says_that_cri_was_not_asked(one: One) -> None:
    one.node.prepare({CONFIG: DEBIAN})
    one.node.sh("mv /usr/local/bin/crictl /root/crictl")
    try:
        check = one.host.apply().check("containerd.runtime")
        assert "crictl is missing, so CRI was not checked" in check["summary"]
    finally:
        one.node.sh("mv /root/crictl /usr/local/bin/crictl")
    assert "nvidia" in one.node.look().runtimes


@pytest.mark.fault("changed-since-plan")
def test_changed_between_plan_and_install(one: One) -> None:
    one.node.prepare({CONFIG: DEBIAN})
    edit = f"sed -i 's/net.d/net.e/' {CONFIG}"
    with faults.another_ctk(one.node.sh, f"{edit}\n{faults.REAL_CTK}"):
        one.fails(f"{CONFIG} changed since the plan was made; it was not touched, run again")
    assert one.node.look().text == DEBIAN.replace("net.d", "net.e")
    one.mends()


def test_nvidia_ctk_fails_or_says_otherwise(one: One) -> None:
    before = one.node.prepare({CONFIG: DEBIAN})
    answers = {
        "echo boom >&2; exit 2": "nvidia-ctk runtime configure failed: boom",
        "exit 0": "wrote no runtime 'nvidia' into its copy",
        f"{faults.REAL_CTK} --nvidia-runtime-path=/opt/other": "wrote the path '/opt/other' into its copy",
    }
    for script, message in answers.items():
        with faults.another_ctk(one.node.sh, script):
            one.fails(message)
        assert one.node.look() == before
    one.node.sh("mv /usr/bin/nvidia-container-runtime /usr/bin/away")
    one.fails("there is no /usr/bin/nvidia-container-runtime on this node")
    one.node.sh("mv /usr/bin/away /usr/bin/nvidia-container-runtime")
    assert one.node.look() == before


@pytest.mark.fault("full-disk")
def test_no_room(one: One) -> None:
    for place, message in (
        ("/etc/containerd", f"cannot write in /etc/containerd .*; {CONFIG} was not"),
        ("/var/lib/gpuready/backup/etc/containerd", r"cannot keep a copy of .* \(is /var full\?\)"),
    ):
        fill = f"mkdir -p {place}; mount -t tmpfs -o size=64k none {place}"
        full = f"dd if=/dev/zero of={place}/.fill bs=1k count=64 2>/dev/null || true"
        one.node.prepare({CONFIG: DEBIAN})
        inside = f"printf '%s' '{DEBIAN}' >{CONFIG}; systemctl restart containerd\n" if place in CONFIG else ""
        one.node.sh(f"{fill}\n{inside}{full}")
        before = one.node.look()
        one.fails(message)
        after = one.node.look()
        one.node.sh(f"umount {place}")
        assert (after.files[CONFIG], after.unit, after.info) == (before.files[CONFIG], before.unit, before.info)
    one.node.prepare({CONFIG: DEBIAN})
    one.mends()


def test_what_needs_consent_waits_and_nothing_is_written(one: One) -> None:
    one.node.prepare({CONFIG: DEBIAN})
    one.waits("maintenance.restart is never", maintenance={"restart": "never"})
    one.node.prepare({CONFIG: DEBIAN}, drop_in="[Service]\nKillMode=control-group\n")
    one.waits("KillMode=control-group")


def test_what_a_restart_would_stop_counts_after_a_drain_too(one: One) -> None:
    one.node.prepare({CONFIG: DEBIAN}, drop_in="[Service]\nKillMode=control-group\n")
    one.node.sh("docker run -d --name work --network none busybox:lab sleep 100000")
    pids = one.host.pids()
    drained: dict[str, Any] = {"restart": "drained", "drain": {"before": "true", "after": "true"}}
    one.waits("container work (busybox:lab)", maintenance=drained)
    assert one.host.pids() == pids
    one.node.sh("docker rm -f work")
    one.mends(maintenance=drained)


def test_a_docker_that_is_taken_along(one: One) -> None:
    """Older packages of docker.com say Requires=containerd.service: who would be stopped decides."""
    one.node.prepare({CONFIG: DEBIAN})
    requires = "[Unit]\nRequires=containerd.service\n"
    one.node.sh(f"mkdir -p {DOCKER.rpartition('/')[0]}; printf '{requires}' >{DOCKER}; systemctl daemon-reload")
    live = '{{"live-restore": {}}}'
    one.node.sh(f"echo '{live.format('false')}' >/etc/docker/daemon.json; systemctl restart docker.service")
    one.node.sh("docker run -d --name work --network none busybox:lab sleep 100000")
    before = one.node.look()
    one.waits("work (busybox:lab)")

    one.node.sh(f"echo '{live.format('true')}' >/etc/docker/daemon.json; systemctl reload docker.service")
    container, _ = one.host.pids()
    faults.until(lambda: "true" in one.node.sh("docker info -f '{{.LiveRestoreEnabled}}'"), what="live-restore is on")
    after = one.mends()
    assert after.docker != before.docker  # it was restarted, and runs
    assert one.host.pids()[0] == container
    one.node.sh(f"docker rm -f work; rm {DOCKER}; systemctl daemon-reload")


@pytest.mark.fault("connection-cut")
def test_the_network_goes_while_containerd_is_restarted(one: One) -> None:
    one.node.prepare({CONFIG: DEBIAN}, drop_in=SLOW)
    one.node.start_pod()
    before = one.node.look()
    process = one.begins()
    faults.cable(one.node.machine, plugged=False)
    time.sleep(2)
    faults.cable(one.node.machine, plugged=True)
    one.host.gpuready.finish(process, code=0)
    after = one.node.look()
    assert "nvidia" in after.runtimes
    assert after.pod == before.pod
    assert after.unit != before.unit


@pytest.mark.fault("power-loss-in-restart")
def test_the_power_goes_while_containerd_is_restarted(one: One) -> None:
    """After it the one configuration or the other runs, never neither, and the next apply closes what is left."""
    one.node.prepare({CONFIG: DEBIAN}, drop_in=SLOW)
    process = one.begins()
    one.node.machine.kill()
    one.host.gpuready.finish(process)
    one.node.machine.start()
    seen = one.node.look()
    assert seen.unit.startswith("active ")
    assert "runc" in seen.runtimes
    one.node.sh(f"rm {DROP_IN}; systemctl daemon-reload")
    one.mends()
    # A second name of the old file, which the next change takes away.
    assert set(faults.leftovers(one.node.machine)) <= {"/etc/containerd/.gpuready.before"}

"""CRI-O's files with the real nvidia-ctk of two versions: converged, reloaded, put back, and the whole way back.

There is no CRI-O engine to be had here. Its files are as its packages lay them out; crio.service is a stand-in that
only counts its SIGHUPs, refuses the new drop-in when it is told to, and tells ``crio status config`` what it read.
"""

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import tomlkit

from gpuready.components.crio.files import DROP_IN
from tests.lab import Lab, Machine
from tests.system.harness import Gpuready, Inventories
from tests.system.host import Host

BINARY = "/usr/bin/nvidia-container-runtime"
OLD = {"version": "1.18.2", "floor_exception": {"reason": "test", "until": "2999-01-01"}}
NEW = {"version": "1.20.1"}
PACKAGED = """# how images are checked
[crio.image]
signature_policy = "/etc/crio/policy.json"

[crio.runtime]
default_runtime = "crun"

[crio.runtime.runtimes.crun]
runtime_path = "/usr/libexec/crio/crun"
runtime_root = "/run/crun"
monitor_path = "/usr/libexec/crio/conmon"
container_min_memory = "20MiB"
allowed_annotations = ["io.containers.trace-syscall"]

[crio.runtime.runtimes.runc]
runtime_path = "/usr/libexec/crio/runc"
runtime_root = "/run/runc"
monitor_path = "/usr/libexec/crio/conmon"
"""
LIKE_CRUN = {
    "runtime_path": BINARY,
    "runtime_type": "oci",
    "runtime_root": "/run/crun",
    "monitor_path": "/usr/libexec/crio/conmon",
    "container_min_memory": "20MiB",
    "allowed_annotations": ["io.containers.trace-syscall"],
}
# A file that a CRI-O would read while it is being written would stop it: the stand-in looks at each SIGHUP.
_ENGINE = f"""#!/bin/sh
count=0
hup() {{
  count=$((count+1)); echo $count >/run/crio-hups
  ls -A /etc/crio/crio.conf.d >>/run/crio-saw
  if [ -e /run/crio-refuses ] && grep -qs nvidia {DROP_IN}; then
    echo 'level=error msg="Unable to reload configuration: unable to reload runtimes: runtime validation"' >&2
  elif [ -e /run/crio-dies ]; then exit 1
  else cat {DROP_IN} >/run/crio-read 2>/dev/null; fi
}}
trap hup HUP
sleep infinity & child=$!
while :; do wait $child; done
"""
_UNIT = """[Service]
ExecStart=/usr/local/sbin/crio-stand-in
ExecReload=/bin/kill -s HUP $MAINPID
"""
_COMMAND = """#!/bin/sh
case "$*" in
  --help) printf 'COMMANDS:\\n   config   x\\n   status   x\\n' ;;
  'status config') cat /run/crio-read ;;
  *) exit 1 ;;
esac
"""
_LOOK = r"""
find /etc/crio -printf '%p %y %m %U:%G %l %T@\n' | grep -v '^/etc/crio\(/crio.conf.d\)\? '
find /etc/crio -type f -print0 | sort -z | xargs -0 sha256sum
"""


class Node(Host):
    """The machine, and what a test asks of it."""

    def look(self) -> str:
        """All files of CRI-O: names, modes, owners, times, contents."""
        return self.sh(_LOOK)

    def hups(self) -> int:
        return int(self.sh("cat /run/crio-hups 2>/dev/null || echo 0"))

    def table(self) -> Any:
        """The runtime, as the drop-in has it."""
        return tomlkit.parse(self.sh(f"cat {DROP_IN}")).unwrap()["crio"]["runtime"]["runtimes"]["nvidia"]


def write(node: Machine, path: str, text: str, mode: str = "644") -> None:
    node.run(f"mkdir -p {path.rpartition('/')[0]} && cat >{path} && chmod {mode} {path}", stdin=text)


@pytest.fixture(scope="module")
def node(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Node]:
    """A machine with the files of CRI-O, a stand-in that runs, and the older toolkit."""
    with lab.machine() as machine:
        found = Node(machine, gpuready, inventory, verify={"level": "effective"}, toolkit=NEW)
        write(found, "/etc/crio/crio.conf.d/10-crio.conf", PACKAGED)
        for name in ("crun", "runc", "conmon"):
            write(found, f"/usr/libexec/crio/{name}", "#!/bin/sh\nexit 1\n", "755")
        write(found, "/usr/local/sbin/crio-stand-in", _ENGINE, "755")
        write(found, "/etc/systemd/system/crio.service", _UNIT)
        found.sh("systemctl daemon-reload; systemctl start crio.service")
        found.only("repository", "toolkit").apply(toolkit=OLD)
        yield found


@pytest.fixture
def crio(node: Node) -> Host:
    """The node, for runs about CRI-O alone."""
    return node.only("crio")


@pytest.mark.parametrize("toolkit", [OLD, NEW], ids=["1.18.2", "1.20.1"])
def test_there_and_back_with_every_toolkit(node: Node, crio: Host, toolkit: dict[str, Any]) -> None:
    before, hups = node.look(), node.hups()
    node.only("repository", "toolkit").apply(toolkit=toolkit)  # from the one before
    crio = crio.with_spec(toolkit=toolkit)
    shown = crio.plan()
    assert shown.component("crio")["disruption"] == "reload", shown.explain()
    assert node.look() == before

    done = crio.apply()
    assert done.changed() == {"crio"}, done.explain()
    assert "crio.config" in done.checks("pass"), done.explain()
    assert node.table() == LIKE_CRUN
    assert node.hups() == hups + 1
    assert set(node.sh("cat /run/crio-saw").split()) <= {"10-crio.conf", "99-nvidia.toml"}
    crio.settled()
    assert node.hups() == hups + 1

    assert crio.remove().changed() == {"crio"}
    assert (node.look(), node.hups()) == (before, hups + 2)
    assert crio.remove().host()["outcome"] == "ok"


def test_a_file_that_crio_rejects_is_rolled_back(node: Node, crio: Host) -> None:
    before, hups = node.look(), node.hups()
    node.sh("touch /run/crio-refuses")
    crio.fails(f"gpuready restored {DROP_IN}", "runtime validation")
    assert (node.look(), node.hups()) == (before, hups + 2)
    assert crio.remove().host()["outcome"] == "ok"
    node.sh("rm /run/crio-refuses; touch /run/crio-dies")
    crio.fails("CRI-O ended at the reload")
    assert node.look() == before
    node.sh(
        "rm /run/crio-dies; systemctl reset-failed crio.service; systemctl start crio.service; rm -f /run/crio-hups"
    )


@pytest.mark.promise
def test_a_users_drop_in_is_kept_and_comes_back_as_it_was(node: Node, crio: Host) -> None:
    mine = f'# mine\n[crio.runtime]\npids_limit = 4096\n[crio.runtime.runtimes.nvidia]\nruntime_path = "{BINARY}"\n'
    write(node, DROP_IN, mine, "600")
    before = node.look()
    crio.apply(runtimes={"crio": {"default_runtime": True}})
    text = node.sh(f"cat {DROP_IN}; stat -c %a {DROP_IN}")
    for part in ("# mine", "pids_limit = 4096", 'default_runtime = "nvidia"', "/usr/libexec/crio/conmon", "\n600"):
        assert part in text
    crio.remove()
    assert node.look() == before
    node.sh(f"rm {DROP_IN}")


def test_the_runtime_stays_while_a_container_of_it_runs(node: Node, crio: Host) -> None:
    # CRI-O's own command, as far as it is asked: it has to name the runtime before a reload counts.
    write(node, "/usr/local/bin/crio", _COMMAND, "755")
    crio.apply()
    after = node.look()
    conmon = f"/run/conmon -c 'sleep 1000; :' conmon -n k8s_job_0 -r {BINARY}"
    node.sh(f"cp /bin/sh /run/conmon; systemd-run -q --unit=work {conmon}")
    waits = crio.remove(code=7)
    assert "pods still use the runtime that gpuready would remove: k8s_job_0" in json.dumps(waits.component("crio"))
    assert node.look() == after
    node.sh("systemctl stop work.service")
    crio.remove()
    node.sh("rm /usr/local/bin/crio")


def test_what_was_written_by_hand_is_reloaded_once_and_a_stopped_crio_never(node: Node, crio: Host) -> None:
    toml = tomlkit.dumps({"crio": {"runtime": {"runtimes": {"nvidia": LIKE_CRUN}}}})
    node.sh(f"sleep 4; printf %s {shlex.quote(toml)} >{DROP_IN}")
    hups = node.hups()
    done = crio.apply()
    assert done.diff("crio").keys() == {"crio.running"}, done.explain()
    assert node.hups() == hups + 1
    crio.settled()

    node.sh(f"systemctl stop crio.service; rm {DROP_IN}")
    stopped = crio.apply()
    assert stopped.component("crio")["disruption"] == "none", stopped.explain()
    assert node.table() == LIKE_CRUN
    assert node.sh("systemctl is-active crio.service || true").strip() == "inactive"
    assert node.hups() == hups + 1

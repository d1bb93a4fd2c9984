"""A real CRI-O 1.34 with the real nvidia-ctk of two versions: converged, pods of the runtime run, and all the way back.

Its files, runtimes and monitor lie where its packages put them. What holds is asked through CRI.
"""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import tomlkit

from gpuready.components.crio.files import DROP_IN, FOLDER, order
from gpuready.model.state import NodeState
from tests.lab import Lab, LabError, cri
from tests.system.harness import Gpuready, Inventories
from tests.system.host import Host
from tests.verdicts import root_files

BINARY = "/usr/bin/nvidia-container-runtime"
OLD = {"version": "1.18.2", "floor_exception": {"reason": "test", "until": "2999-01-01"}}
NEW = {"version": "1.20.1"}
LIKE_CRUN = {
    "runtime_path": BINARY,
    "runtime_type": "oci",
    "runtime_root": "/run/crun",
    "monitor_path": "/usr/libexec/crio/conmon",
    "container_min_memory": "20MiB",
    "allowed_annotations": ["io.containers.trace-syscall"],
}
_LOOK = r"""
find /etc/crio -printf '%p %y %m %U:%G %l %T@\n' | grep -v '^/etc/crio\(/crio.conf.d\)\? '
find /etc/crio -type f -print0 | sort -z | xargs -0 sha256sum
"""
_CDI = """cdiVersion: 0.7.0
kind: nvidia.com/gpu
devices:
    - name: "0"
      containerEdits:
        deviceNodes: [{path: /dev/gpuready0, hostPath: /dev/null, type: c, major: 1, minor: 3, permissions: rwm}]
        additionalGids: [44]
"""
# As the first process of its namespace, sleep alone would ignore SIGTERM.
_WORKS = ["sh", "-c", "trap exit TERM; sleep 9999 & wait"]
_IN_THE_NODE = {"security_context": {"namespace_options": {"network": 2, "pid": 1}}}


class Node(Host):
    """The machine, and what a test asks of it."""

    pods = 0

    def look(self) -> str:
        """All files of CRI-O: names, modes, owners, times, contents."""
        return self.sh(_LOOK)

    def engine(self) -> str:
        """The process of CRI-O."""
        return self.sh("systemctl show -p MainPID --value crio.service")

    def table(self) -> Any:
        """The runtime, as the drop-in has it."""
        return tomlkit.parse(self.sh(f"cat {DROP_IN}")).unwrap()["crio"]["runtime"]["runtimes"]["nvidia"]

    def write(self, path: str, text: str, mode: str = "644") -> None:
        folder = path.rpartition("/")[0]
        self.run(f"mkdir -p '{folder}' && cat >'{path}' && chmod {mode} '{path}'", stdin=text)

    @contextmanager
    def pod(self, runtime: str = "", **container: Any) -> Iterator[str]:
        """A pod of a runtime class, whose container must outlive the block: its process with its start."""
        Node.pods += 1
        name = f"work{Node.pods}"
        about = {"name": name, "uid": name, "namespace": "test"}
        image = dict.fromkeys(("image", "user_specified_image"), cri.CRIO_IMAGE)
        labels = {"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": "test"}
        work = {"metadata": {"name": name}, "image": image, "labels": labels, "linux": _IN_THE_NODE}
        self.write("/run/pod.json", json.dumps({"metadata": about, "linux": _IN_THE_NODE, "log_directory": "/run/log"}))
        self.write("/run/work.json", json.dumps({**work, "command": _WORKS, "log_path": f"{name}.log", **container}))
        pod = self.sh(f"crictl runp {runtime and f'--runtime={runtime}'} /run/pod.json").strip()
        try:
            started = f"id=$(crictl create {pod} /run/work.json /run/pod.json); crictl start $id >/dev/null"
            pid = f"{started}; crictl inspect -o go-template --template '{{{{.info.pid}}}}' $id"
            process = f"/proc/{self.sh(pid).strip()}"
            alive = f"cut -d' ' -f1,22 {process}/stat"
            before = self.sh(alive)
            yield process
            assert self.sh(alive) == before
        finally:
            self.run(f"crictl rmp -f {pod}")

    def monitor(self, process: str) -> str:
        """The command line of conmon, the parent of a container's process."""
        return self.sh(f"tr '\\0' ' ' </proc/$(cut -d' ' -f4 {process}/stat)/cmdline")

    def refuses(self, runtime: str) -> None:
        """A pod of this runtime class is not started."""
        with pytest.raises(LabError, match=f"failed to find runtime handler {runtime}"), self.pod(runtime):
            pass


@pytest.fixture(scope="module")
def node(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Node]:
    """A machine with CRI-O, which runs, and the older toolkit."""
    with lab.machine() as machine:
        cri.prepare_crio(machine)
        found = Node(machine, gpuready, inventory, verify={"level": "effective"}, toolkit=NEW)
        found.only("repository", "toolkit").apply(toolkit=OLD)
        yield found


@pytest.fixture
def crio(node: Node) -> Host:
    """The node, for runs about CRI-O alone."""
    return node.only("crio")


@pytest.mark.parametrize("toolkit", [OLD, NEW], ids=["1.18.2", "1.20.1"])
def test_there_and_back_with_every_toolkit(node: Node, crio: Host, toolkit: dict[str, Any]) -> None:
    before = node.look()
    node.only("repository", "toolkit").apply(toolkit=toolkit)  # from the one before
    crio = crio.with_spec(toolkit=toolkit)
    node.refuses("nvidia")
    with node.pod() as other:
        assert "-r /usr/libexec/crio/crun" in node.monitor(other)
        shown = crio.plan()
        assert shown.component("crio")["disruption"] == "restart", shown.explain()
        assert node.look() == before

        done = crio.apply()
        assert done.changed() == {"crio"}, done.explain()
        assert "crio.config" in done.checks("pass"), done.explain()
        assert node.table() == LIKE_CRUN
        with node.pod("nvidia") as process:
            assert f"-r {BINARY}" in node.monitor(process)
            engine = node.engine()
            crio.settled()
            assert node.engine() == engine

        assert crio.remove().changed() == {"crio"}
        assert node.look() == before
        node.refuses("nvidia")
        engine = node.engine()
        assert crio.remove().host()["outcome"] == "ok"
        assert node.engine() == engine


def test_a_file_that_crio_rejects_is_rolled_back(node: Node, crio: Host) -> None:
    # gpuready keeps the other settings of a runtime; with this one, CRI-O starts without the runtime.
    mine = '[crio.runtime.runtimes.nvidia]\nruntime_path = "/opt/nvidia"\nruntime_config_path = "/opt/x"\n'
    node.write(DROP_IN, mine)
    before = node.look()
    with node.pod():
        crio.fails(f"gpuready restored {DROP_IN}", "is being ignored due to: runtime_config_path can only be used")
        assert node.look() == before
        node.write(DROP_IN, mine.replace("runtime_config_path", "no_sync_log = 1 # "))
        before, engine = node.look(), node.engine()
        crio.fails("CRI-O could not start with its files as they are", "incompatible types")
        assert (node.look(), node.engine()) == (before, engine)
    node.sh(f"rm {DROP_IN}")


def test_a_users_drop_in_is_kept_and_comes_back_as_it_was(node: Node, crio: Host) -> None:
    mine = "# mine\n[crio.runtime]\npids_limit = 4096\n[crio.runtime.runtimes.nvidia]\n"
    mine += f'runtime_path = "{BINARY}"\nmonitor_path = "/usr/libexec/crio/conmon"\n'
    node.write(DROP_IN, mine, "600")
    before = node.look()
    crio.apply(runtimes={"crio": {"default_runtime": True}})
    text = node.sh(f"cat {DROP_IN}; stat -c %a {DROP_IN}")
    for part in ("# mine", "pids_limit = 4096", 'default_runtime = "nvidia"', "\n600"):
        assert part in text
    with node.pod() as process:
        assert f"-r {BINARY}" in node.monitor(process)
    crio.remove()
    assert node.look() == before
    node.sh(f"rm {DROP_IN}")


def test_the_runtime_stays_while_a_container_of_it_runs(node: Node, crio: Host) -> None:
    crio.apply()
    after = node.look()
    with node.pod("nvidia") as process:
        waits = crio.remove(code=7).component("crio")
        name = f"k8s_work{Node.pods}_work{Node.pods}_test_work{Node.pods}_0"
        assert f"pods still use the runtime that gpuready would remove: {name}" in json.dumps(waits)
        assert node.look() == after
        assert "conmon" in node.monitor(process)
    crio.remove()


def test_a_restart_waits_for_pods_that_would_end_and_for_gpu_pods(node: Node, crio: Host) -> None:
    before = node.look()
    with node.pod() as process:
        conmon = f"$(cut -d' ' -f4 {process}/stat)"
        node.sh(f"echo {conmon} >/sys/fs/cgroup$(systemctl show -p ControlGroup --value crio.service)/cgroup.procs")
        crio.waits("crio", "would end pods whose conmon is in its cgroup", f"k8s_work{Node.pods}_")
    with node.pod(envs=[{"key": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]):
        crio.waits("crio", "would affect pod test/")
    assert node.look() == before


def test_a_reload_gives_pods_no_runtime_and_a_stopped_crio_is_not_started(node: Node, crio: Host) -> None:
    toml = tomlkit.dumps({"crio": {"runtime": {"runtimes": {"nvidia": LIKE_CRUN}}}})
    # Times of units and files are compared in whole seconds.
    node.sh(f"sleep 3; printf %s {shlex.quote(toml)} >{DROP_IN}; systemctl reload crio.service")
    node.sh(f"until crio status config 2>/dev/null | grep -q {BINARY}; do sleep 0.1; done")
    node.refuses("nvidia")
    assert "crio.config" in crio.verify(code=3).checks("fail")
    done = crio.apply()
    assert done.diff("crio").keys() == {"crio.running"}, done.explain()
    with node.pod("nvidia"):
        crio.settled()

    node.sh(f"systemctl stop crio.service; rm {DROP_IN}")
    stopped = crio.apply()
    assert stopped.component("crio")["disruption"] == "none", stopped.explain()
    assert node.table() == LIKE_CRUN
    assert node.sh("systemctl is-active crio.service || true").strip() == "inactive"
    node.sh("systemctl start crio.service")
    with node.pod("nvidia"):
        pass
    node.sh(f"rm {DROP_IN}")


def test_pods_get_devices_of_a_cdi_spec(node: Node) -> None:
    node.write("/etc/cdi/nvidia.yaml", _CDI)
    with node.pod(CDI_devices=[{"name": "nvidia.com/gpu=0"}]) as process:
        assert node.sh(f"stat -c %t:%T {process}/root/dev/gpuready0") == "1:3\n"
        assert "44" in node.sh(f"sed -n 's/^Groups://p' {process}/status").split()
    found = node.verify(code=None, hardware={"gpus": 1})
    assert "crio.cdi" in found.checks("pass"), found.explain()


def test_files_are_read_in_the_order_of_crio(node: Node) -> None:
    names = ("50/late", "50-b", ".hidden", "50.toml", "~backup", "Z", "a b")
    for name in names:
        node.write(f"{FOLDER}{name}", "")
    said = node.sh("crio config 2>&1 >/dev/null; rm -r /etc/crio/crio.conf.d/50")
    read = [line.partition(" drop-in file: ")[2].rstrip('"') for line in said.splitlines()]
    state = NodeState(files=root_files(dict.fromkeys((f"{FOLDER}{name}" for name in ("10-crio.conf", *names)), "")))
    assert [path for path in read if path.startswith(FOLDER)] == list(order(state))

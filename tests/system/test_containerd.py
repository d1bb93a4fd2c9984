"""containerd 1.6, 1.7 and 2.1 from many starting points: converged, nothing else changed, and the whole way back.

A wave is one run of the command line over three machines, each with another starting point of its containerd.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import zip_longest
from typing import Any, TypeVar

import pytest

from gpuready.components.containerd.files import leaves
from gpuready.components.containerd.keys import by_systemd
from gpuready.components.toolkit.state import PACKAGES
from tests.lab import Lab
from tests.system.containerd_cases import BINARY, CASES, DEBIAN, NVIDIA, RUNC, Case
from tests.system.containerd_node import CONFIG, ContainerdNode, Seen
from tests.system.containerd_shapes import SHAPES
from tests.system.faults import extended
from tests.system.harness import Gpuready, Inventories, Result

T = TypeVar("T")
VERSIONS = {"1.6": "debian12", "1.7": "debian13", "2.1": "debian13"}


class Fleet:
    """One machine for each generation of containerd."""

    def __init__(self, nodes: list[ContainerdNode], gpuready: Gpuready, inventory: Inventories) -> None:
        self.nodes, self.gpuready, self.inventory = nodes, gpuready, inventory
        self.by_version = {node.version: node for node in nodes}

    def run(
        self,
        verb: str,
        nodes: Sequence[ContainerdNode] = (),
        cases: Mapping[str, Case] = {},
        code: int | None = None,
        **spec: Any,
    ) -> Result:
        """One run of the command line, over all machines or some; ``containerd`` alone is in question.

        ``cases`` by machine: each one's spec is its case's. Without an image no pod is started.
        """
        at_once = ("--yes", "--batch", "100%")
        words = [verb, *(at_once if verb in ("apply", "remove") else ()), "--only", "containerd"]
        machines = [node.machine for node in nodes or self.nodes]
        path = self.inventory(
            machines, **{"runtimes": {"containerd": "auto"}, "verify": {"level": "effective", "image": None}, **spec}
        )
        for name, case in cases.items():
            if case.default is not None:
                extended(path, {name: {"gpuready": {"runtimes": {"containerd": {"default_runtime": case.default}}}}})
        return self.gpuready(*words, inventory=path, code=code)


def all_of(nodes: Sequence[ContainerdNode], work: Callable[[ContainerdNode], T]) -> dict[str, T]:
    """The same on several machines at once, by name."""
    with ThreadPoolExecutor() as pool:
        return dict(zip((node.name for node in nodes), pool.map(work, nodes), strict=True))


@pytest.fixture(scope="module")
def fleet(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Fleet]:
    """The machines, with the toolkit on them, and Docker stopped: it has nothing to do with this."""
    with ExitStack() as stack:
        machines = {version: stack.enter_context(lab.machine(distro)) for version, distro in VERSIONS.items()}
        with ThreadPoolExecutor() as pool:
            nodes = list(pool.map(lambda item: ContainerdNode(item[1], item[0]), machines.items()))
        done = gpuready(
            *("apply", "--yes", "--batch", "100%", "--only", "repository", "--only", "toolkit"),
            inventory=inventory(machines.values()),
        )
        assert done.code in (0, 3), done.explain()
        yield Fleet(nodes, gpuready, inventory)


WAVES = [
    [case for case in wave if case]
    for wave in zip_longest(*([case for case in (*CASES, *SHAPES) if case.version == version] for version in VERSIONS))
]


def converged(case: Case, before: Seen, after: Seen) -> None:
    """nvidia is there for the engine that runs; nothing else is another than before, comments and all."""
    if not case.applies or case.error:
        assert after == before
        return
    was, runs = before.info["containerd"], after.info["containerd"]
    like = {None: was["defaultRuntimeName"], True: "nvidia", False: "runc"}[case.default]
    assert runs["defaultRuntimeName"] == like
    for name in set(was["runtimes"]) - {"nvidia"}:
        assert leaves(runs["runtimes"][name]) == leaves(was["runtimes"][name]), name
    changes = {"runtimes": 0, "defaultRuntimeName": 0}
    assert runs | changes == was | changes
    first = was["runtimes"][was["defaultRuntimeName"]]
    if first["runtimeType"].startswith("io.containerd.runc."):
        assert runs["runtimes"]["nvidia"]["runtimeType"] == first["runtimeType"]
        assert by_systemd(runs["runtimes"]["nvidia"]) == by_systemd(first)
    assert after.runtimes["nvidia"]["options"]["BinaryName"] == BINARY
    assert set(after.runtimes) == set(before.runtimes) | {"nvidia"}
    mine = () if case.default is None else ("default_runtime_name",)
    assert after.settings(ours=mine) == before.settings(ours=mine)
    assert after.info | {"containerd": 0} == before.info | {"containerd": 0}
    changed = {path for path in after.contents if after.contents[path] != before.contents.get(path)}
    # The link and what it leads to are one file.
    assert changed - {CONFIG if case.written.startswith("/srv/containerd/node") else ""} == ({case.written} - {""})
    if case.written:
        was = before.contents.get(case.written, b"").decode().splitlines()
        now = iter(after.contents[case.written].decode().splitlines())
        # One of the lines may be another: of the path, or of the default.
        changes = "nvidia-container-runtime" in "".join(was) or case.default is not None
        assert changes or all(line in now for line in was), after.contents[case.written].decode()
        ends = before.contents.get(case.written, b"").count(b"\r\n")
        assert not ends or after.contents[case.written].count(b"\n") == after.contents[case.written].count(b"\r\n")
        old, _ = before.files.get(case.written, ("inode_time_644_root:root", b""))
        assert after.files[case.written][0].split("_")[2:4] == old.split("_")[2:4]
    else:
        assert after.unit == before.unit


@pytest.mark.fault("D16")
@pytest.mark.parametrize("wave", WAVES, ids=lambda wave: " | ".join(map(str, wave)))
def test_table(fleet: Fleet, wave: list[Case]) -> None:
    cases = {fleet.by_version[case.version].name: case for case in wave}
    nodes = [node for node in fleet.nodes if node.name in cases]
    before = all_of(nodes, lambda node: node.prepare(cases[node.name].files, cases[node.name].arrange))

    first = fleet.run("apply", nodes, cases, code=1 if any(case.error for case in wave) else 0)
    after = all_of(nodes, ContainerdNode.look)
    for name, case in cases.items():
        if case.error:
            assert case.error in first.component("containerd", name)["error"]["message"], first.explain()
            assert after[name] == before[name]
            continue
        outcome = "changed" if case.written else "ok"
        assert first.host(name)["outcome"] == outcome, f"{case}: {first.explain()}"
        assert first.component("containerd", name)["applies"] == case.applies
        assert ("containerd.runtime" in first.checks("pass", host=name)) == case.applies
        converged(case, before[name], after[name])

    again = fleet.run("apply", nodes, cases)
    left = [h for name, h in again.document["hosts"].items() if not cases[name].error]
    assert {(h["outcome"], h["execs"]) for h in left} <= {("ok", 1)}, again.explain()
    assert all_of(nodes, ContainerdNode.look) == after

    fleet.run("remove", nodes, code=0)
    for name, left in all_of(nodes, ContainerdNode.look).items():
        assert left.contents == before[name].contents, cases[name]
        assert (left.settings(), left.info) == (before[name].settings(), before[name].info), cases[name]
        assert left.unit == before[name].unit or cases[name].written
    kept = all_of(nodes, lambda node: node.sh("find /var/lib/gpuready/backup -path '*containerd*' -type f"))
    assert set(kept.values()) == {""}


@pytest.mark.parametrize("version", ["1.18.2", "1.19.1"])
def test_each_toolkit(fleet: Fleet, version: str) -> None:
    """What nvidia-ctk of each release makes of every kind of file, at both ends and in the middle."""
    wanted = " ".join(f"{name}={version}-1" for name in PACKAGES)
    options = "--allow-downgrades --allow-change-held-packages"
    all_of(fleet.nodes, lambda node: node.sh(f"apt-get install -q -y {options} {wanted} >/dev/null 2>&1"))
    by_version = [[case for case in CASES if case.ctk and case.version == v] for v in VERSIONS]
    for wave in zip_longest(*by_version):
        cases = {fleet.by_version[case.version].name: case for case in wave if case}
        nodes = [node for node in fleet.nodes if node.name in cases]
        before = all_of(nodes, lambda node, of=cases: node.prepare(of[node.name].files, of[node.name].arrange))  # type: ignore[misc]
        done = fleet.run("apply", nodes)
        assert {h["outcome"] for h in done.document["hosts"].values()} == {"changed"}, done.explain()
        for name, seen in all_of(nodes, ContainerdNode.look).items():
            converged(cases[name], before[name], seen)


@pytest.mark.promise
def test_a_drop_in_of_nvidia_ctk_that_took_cri_down_is_mended(fleet: Fleet) -> None:
    """From a file that names no runtime nvidia-ctk makes one with nvidia alone: CRI finds no runc (its issue 433)."""
    nodes = [node for node in fleet.nodes if node.version != "2.1"]  # which keeps its own runc
    configure = "nvidia-ctk runtime configure --runtime=containerd 2>/dev/null\n"
    before = all_of(nodes, lambda node: node.prepare({CONFIG: DEBIAN}, configure))
    assert [seen.info for seen in before.values()] == [{}, {}]
    fleet.run("verify", nodes, code=3)
    done = fleet.run("apply", nodes, code=0)
    for name, seen in all_of(nodes, ContainerdNode.look).items():
        assert list(done.diff("containerd", name)) == ["containerd.runtimes.runc.runtime_type"]
        assert set(seen.runtimes) == {"nvidia", "runc"}
        assert seen.text == before[name].text
    fleet.run("apply", nodes, code=0)


def test_a_file_that_names_nvidia_alone_keeps_the_runc_that_it_needed(fleet: Fleet) -> None:
    """Before containerd 2, CRI is down with such a file; remove does not take it down again, and says so."""
    nodes = [node for node in fleet.nodes if node.version != "2.1"]
    alone = f"version = 2\n{NVIDIA.format('/opt/old/nvidia-container-runtime')}"
    before = all_of(nodes, lambda node: node.prepare({CONFIG: alone}))
    assert [seen.info for seen in before.values()] == [{}, {}]
    fleet.run("apply", nodes, code=0)
    done = fleet.run("remove", nodes, code=0)
    for name, seen in all_of(nodes, ContainerdNode.look).items():
        assert "runtimes.runc stays" in " ".join(done.component("containerd", name)["notes"])
        assert seen.text == f"{alone}\n{RUNC}"
        assert set(seen.runtimes) == {"nvidia", "runc"}


def test_a_version_that_containerd_does_not_start_with(fleet: Fleet) -> None:
    """1.6 ignores what it does not know in such a file (the table above); 1.7 ends."""
    node = fleet.by_version["1.7"]
    node.prepare({CONFIG: DEBIAN})
    node.sh(f"sed -i 's/^version = 2/version = 3/' {CONFIG}")
    done = fleet.run("plan", [node], code=1)
    message = done.component("containerd", node.name)["error"]["message"]
    assert f"{CONFIG} has version = 3, which this containerd does not start with" in message


def test_pods_live_on_and_new_ones_start_under_nvidia(fleet: Fleet) -> None:
    """A pod from before keeps its process through apply, remove and all; verify starts a new one through CRI."""
    before = all_of(fleet.nodes, lambda node: node.prepare({CONFIG: DEBIAN}))
    all_of(fleet.nodes, lambda node: node.start_pod())
    pods = {name: seen.pod for name, seen in all_of(fleet.nodes, ContainerdNode.look).items()}
    assert all(pods.values())

    runtimes = {"containerd": {"default_runtime": True}}
    done = fleet.run("apply", runtimes=runtimes, verify={"level": "smoke"}, code=0)
    for node in fleet.nodes:
        assert {"containerd.runtime", "containerd.smoke"} <= done.checks("pass", host=node.name), done.explain()
    after = all_of(fleet.nodes, ContainerdNode.look)
    for name, seen in after.items():
        assert seen.pod == pods[name]
        assert seen.unit != before[name].unit
        assert seen.info["containerd"]["defaultRuntimeName"] == "nvidia"
        assert seen.settings(ours=("default_runtime_name",)) == before[name].settings(ours=("default_runtime_name",))
        assert seen.docker == before[name].docker  # which only wants containerd
    settled = fleet.run("apply", runtimes=runtimes)
    assert {(h["outcome"], h["execs"]) for h in settled.document["hosts"].values()} == {("ok", 1)}

    # A pod's shim calls its runtime to stop it, so that stays while there is one.
    all_of(fleet.nodes, lambda node: (node.end_pod(), node.start_pod("nvidia")))
    waits = str(fleet.run("remove", code=7).component("containerd", fleet.nodes[0].name))
    assert "pods still use the runtime that gpuready would remove: work" in waits
    # What the user writes meanwhile outlives the way back.
    all_of(fleet.nodes, lambda node: (node.end_pod(), node.sh(f"echo '# mine' >>{CONFIG}")))
    fleet.run("remove", code=0)
    for name, left in all_of(fleet.nodes, ContainerdNode.look).items():
        # But for empty lines, which come and go with the tables beside them.
        assert [line for line in left.text.splitlines() if line] == [*filter(None, DEBIAN.splitlines()), "# mine"]
        assert left.settings() == before[name].settings()

"""A wheel that was rebuilt under its old version, on its way into real environments: refused, copied once, cut, busy.

The wheel is no PyTorch, only called so: pip, the environments, the connection and the disks are real.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpuready.core import resources
from gpuready.core.step import PENDING_EXIT
from tests.components.wheels.wheelfiles import shared_object, wheel
from tests.lab import Lab, Machine, scale
from tests.system.faults import leftovers, problem
from tests.system.harness import GPUREADY, Gpuready, Inventories, Result

ENV = "/opt/train"
MIB = 1 << 20
LIBRARIES = {
    "libtorch.so": shared_object(["libc10.so", "libc.so.6", "libcuda.so.1"], ["GLIBC_2.34", "GLIBC_2.4"]),
    "libc10.so": shared_object(soname="libc10.so"),
}
# Debian 12's package lists are in its image, so nothing but the packages is fetched.
INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends"


@pytest.fixture(scope="module")
def nodes(lab: Lab) -> Iterator[list[Machine]]:
    """Three machines with an environment each."""
    with ExitStack() as stack:
        made = [stack.enter_context(lab.machine("debian12")) for _ in range(3)]
        first, *others = made
        with ThreadPoolExecutor() as pool:
            done = [pool.submit(machine.run, f"{INSTALL} python3-distutils") for machine in others]
            first.run(f"{INSTALL} python3-venv && python3 -m venv {ENV}")
        for machine, each in zip(others, done, strict=True):
            each.result()
            machine.put(first.root / ENV.lstrip("/"), ENV)  # pip asks its own Python where it is
        yield made


@pytest.fixture(scope="module")
def node(nodes: list[Machine]) -> Machine:
    """One of them."""
    return nodes[0]


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Where wheels are built."""
    return tmp_path


def build(folder: Path, word: str, **more: object) -> Path:
    """A build of 3 MiB, which no other one is like."""
    return wheel(folder, word=word, libraries=LIBRARIES, extra=os.urandom(3 * MIB), **more)  # type: ignore[arg-type]


def word(machine: Machine, env: str = ENV) -> str:
    """Which build is there, as its own module says."""
    done = machine.run(f"{env}/bin/python -IBc 'import torch; print(torch.WORD)'", check=False)
    return done.stdout.strip()


def received(machine: Machine) -> int:
    """Bytes that the machine's interface has received."""
    rows = machine.run("cat /proc/net/dev").stdout.splitlines()[2:]
    return sum(int(row.split(":")[1].split()[0]) for row in rows if row.split(":")[0].strip() != "lo")


def outcomes(result: Result) -> set[tuple[str, int]]:
    return {(host["outcome"], host["execs"]) for host in result.document["hosts"].values()}


@pytest.mark.promise
def test_a_rebuilt_wheel_reaches_three_machines_and_the_second_run_copies_nothing(
    nodes: list[Machine], gpuready: Gpuready, inventory: Inventories, dist: Path
) -> None:
    path = build(dist, "first")
    where = inventory(nodes, torch_wheels=[{"wheel": str(path), "env": ENV}])
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, {word(node) for node in nodes}) == (0, {"first"}), result.explain()
    assert {host["components"][0]["disruption"] for host in result.document["hosts"].values()} == {"none"}

    build(dist, "second")
    plan = gpuready("plan", "--only", "wheels", inventory=where)
    for host in plan.document["hosts"].values():
        (item,) = host["components"]
        (change,) = item["diff"]
        assert change["actual"] != change["expected"] and change["actual"].startswith("2.2.1, sha256 ")
        assert item["disruption"] == "recreate" and "another build of that version" in item["notes"][0]
    before = [received(node) for node in nodes]
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, {word(node) for node in nodes}) == (0, {"second"}), result.explain()
    assert len(result.document["batches"]) > 1  # one first, because work could be hit
    sent = [received(node) - old for node, old in zip(nodes, before, strict=True)]
    assert all(3 * MIB < each < 4 * MIB for each in sent), sent
    for host in result.document["hosts"].values():
        works = next(check for check in host["checks"] if check["id"] == "wheels.works")
        assert works["status"] == "pass" and "CUDA 12.1, NCCL 2.19.3" in works["summary"], works

    before = [received(node) for node in nodes]
    again = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (again.code, outcomes(again)) == (0, {("ok", 1)}), again.explain()
    sent = [received(node) - old for node, old in zip(nodes, before, strict=True)]
    assert all(each < MIB // 8 for each in sent), sent
    for node in nodes:
        assert node.run("ls -d /var/lib/gpuready/wheels", check=False).stdout == ""
        assert leftovers(node) == []


@pytest.mark.parametrize(
    ("built", "env", "why"),
    [
        ({"tag": "cp310-cp310-linux_x86_64"}, ENV, "which is 3.11.2 (cp311-cp311-manylinux_2_36_"),
        ({"libraries": {"l.so": shared_object([], ["GLIBCXX_3.4.99"])}}, ENV, "needs GLIBCXX_3.4.99, and the libst"),
        ({"libraries": {"l.so": shared_object(["libcudart.so.12"])}}, ENV, "needs libcudart.so.12, which neither"),
        ({}, "/opt/none", "there is no /opt/none on this node; make it first"),
        ({}, "/usr", "it is neither a venv nor a conda environment"),
        ({}, "/opt/bare", "has no pip: /opt/bare/bin/python -m ensurepip"),
        ({}, "/opt/mixed", "belongs to root, but /opt/mixed/lib/python3.11/site-packages to gpu"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_copied(
    node: Machine, gpuready: Gpuready, inventory: Inventories, dist: Path, built: dict[str, object], env: str, why: str
) -> None:
    if env in ("/opt/bare", "/opt/mixed"):
        node.run(f"python3 -m venv --without-pip {env}")
    if env == "/opt/mixed":
        node.run(f"chown gpu {env}/lib/python3*/site-packages")
    path = wheel(dist, **{"extra": os.urandom(3 * MIB), **built})  # type: ignore[arg-type]
    where = inventory(node, torch_wheels=[{"wheel": str(path), "env": env}])
    before, there = received(node), word(node)
    for verb in [("plan",), ("apply", "--yes")] if "tag" in built else [("plan",)]:
        result = gpuready(*verb, "--only", "wheels", inventory=where)
        error = result.component("wheels")["error"]["message"]
        assert (result.code, result.changed()) == (1, set()), result.explain()
        assert why in error and "nothing was copied" in error
    assert received(node) - before < MIB // 4
    assert word(node) == there
    assert node.run("ls -d /var/lib/gpuready/wheels", check=False).stdout == ""


def test_a_process_that_uses_the_environment_is_not_disturbed(
    node: Machine, gpuready: Gpuready, inventory: Inventories, dist: Path
) -> None:
    where = inventory(node, torch_wheels=[{"wheel": str(build(dist, "third")), "env": ENV}])
    there = word(node)
    node.run(f"systemd-run -q --unit=job {ENV}/bin/python -c 'import torch, time; time.sleep(600)'")
    # Another environment whose name only begins alike, and a process that only has the name among its arguments.
    node.run(
        f"cp -a {ENV} {ENV}ing && systemd-run -q --unit=other {ENV}ing/bin/python -c 'import time; time.sleep(600)'"
    )
    node.run(f"systemd-run -q --unit=editor sleep 600 {ENV}/bin/python", check=False)
    before = received(node)
    plan = gpuready("plan", "--only", "wheels", inventory=where)
    (hit,) = plan.component("wheels")["hits"]
    assert hit.startswith("python (pid ") and hit.endswith(f") in {ENV}"), plan.explain()
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, result.host()["outcome"]) == (7, "pending"), result.explain()
    assert f"until idle: this change (class recreate) would affect {hit}" in result.component("wheels")["waits"]
    assert received(node) - before < MIB // 4 and word(node) == there
    # Asked again just before the step, for whoever began meanwhile.
    values = {"file": "/none/x.whl", "info": "/none", "record": "/none/r", "content": "", "sha256": "0"}
    script = resources.script("wheels/install", env=ENV, dist="torch", pip="1", replaces="1", keep="", **values)
    done = node.run("sh -s", stdin=script, check=False)
    assert (
        done.returncode == PENDING_EXIT and f"would affect {hit.partition(' in ')[0]}, which use {ENV}" in done.stderr
    )
    script = resources.script("wheels/remove", env=ENV, dist="torch", uninstall="1", record="/none/r")
    assert node.run("sh -s", stdin=script, check=False).returncode == PENDING_EXIT
    assert word(node) == there
    # A name that is a link is the same environment.
    node.run(f"ln -s {ENV} /opt/link")
    linked = inventory(node, torch_wheels=[{"wheel": str(build(dist, "third")), "env": "/opt/link"}])
    found = gpuready("plan", "--only", "wheels", inventory=linked)
    assert found.component("wheels")["hits"] == [hit.replace(ENV, "/opt/link")], found.explain()
    node.run("systemctl stop job")
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, word(node)) == (0, "third"), result.explain()
    node.run("systemctl stop other")


@pytest.mark.fault("cut-wheel")
def test_a_copy_that_was_cut_goes_on_and_a_wrong_one_is_thrown_away(
    node: Machine, gpuready: Gpuready, inventory: Inventories, dist: Path
) -> None:
    path = build(dist, "fourth")
    where = inventory(node, torch_wheels=[{"wheel": str(path), "env": ENV}])
    expected = gpuready("plan", "--only", "wheels", inventory=where).component("wheels")["diff"][0]["expected"]
    data = path.read_bytes()
    full = hashlib.sha256(data).hexdigest()
    assert expected == f"2.2.1, sha256 {full[:16]}"
    folder = f"/var/lib/gpuready/wheels/{full}"
    part = node.root / f"{folder}/{path.name}.part".lstrip("/")
    part.parent.mkdir(parents=True)
    stale = node.root / "var/lib/gpuready/wheels/0123/old.whl"
    stale.parent.mkdir()
    stale.write_bytes(b"x")
    part.write_bytes(data[: 2 * MIB].replace(data[MIB : MIB + 64], bytes(64)))
    there = word(node)
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, word(node)) == (1, there), result.explain()
    assert "the copy's hash is not the wheel's" in problem(result) and "it was removed" in problem(result)
    assert not stale.exists() and not part.exists()
    part.write_bytes(data[: 2 * MIB])
    before = received(node)
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, word(node)) == (0, "fourth"), result.explain()
    assert MIB < received(node) - before < 1.6 * MIB
    # One that came whole, and was not installed, is not sent again.
    data = build(dist, "fifth").read_bytes()
    whole = part.parent.parent / hashlib.sha256(data).hexdigest() / path.name
    whole.parent.mkdir(parents=True)
    whole.write_bytes(data)
    before = received(node)
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, word(node), whole.parent.parent.exists()) == (0, "fifth", False), result.explain()
    assert received(node) - before < MIB // 4


CUT = """
until [ "$(stat -c %s {part} 2>/dev/null || echo 0)" -gt {size} ]; do sleep 0.02; done
for p in $(ps -eo pid=,args= | awk '/sshd(-session)?: gpu/{{print $1}}'); do kill -9 $p; done
"""


@pytest.mark.fault("cut-wheel")
def test_a_connection_that_goes_in_the_middle_of_a_copy_is_that_hosts_failure_alone(
    nodes: list[Machine], gpuready: Gpuready, inventory: Inventories, dist: Path
) -> None:
    node, other, _ = nodes
    path = wheel(dist, word="large", libraries=LIBRARIES, extra=os.urandom(48 * MIB))
    where = inventory([node, other], torch_wheels=[{"wheel": str(path), "env": ENV}])
    data = path.read_bytes()
    part = node.root / f"var/lib/gpuready/wheels/{hashlib.sha256(data).hexdigest()}/{path.name}.part"
    # On the node itself, because the copy takes no longer than a few round trips.
    (node.root / "root/cut").write_text(CUT.format(part=f"/{part.relative_to(node.root)}", size=4 * MIB), "utf-8")
    node.run("systemd-run -q --unit=cut sh /root/cut")
    result = gpuready("apply", "--yes", "--only", "wheels", "--batch", "100%", inventory=where)
    assert result.code == 4, result.explain()
    assert [result.host(each.name)["outcome"] for each in (node, other)] == ["unreachable", "changed"]
    assert "the next run goes on from it" in problem(result, node.name)
    arrived, before = part.stat().st_size, received(node)
    assert 4 * MIB < arrived < len(data)
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, word(node), word(other)) == (0, "large", "large"), result.explain()
    assert received(node) - before < len(data) - arrived + 2 * MIB


def test_one_copy_for_two_environments_and_each_belongs_to_whom_it_belonged(
    node: Machine, gpuready: Gpuready, inventory: Inventories, dist: Path
) -> None:
    theirs = "/home/gpu/venv"
    node.run(f"cp -a {ENV} {theirs} && {theirs}/bin/python -m pip -q uninstall -y torch && chown -R gpu: {theirs}")
    path = build(dist, "sixth", requires=["typing-extensions>=4", "pip", 'windows-only; sys_platform == "win32"'])
    where = inventory(node, torch_wheels=[{"wheel": str(path), "env": env} for env in (ENV, theirs)])
    before = received(node)
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, word(node), word(node, theirs)) == (0, "sixth", "sixth"), result.explain()
    assert 3 * MIB < received(node) - before < 4 * MIB
    assert result.stderr.count(" copy torch-") == 1
    owners = node.run(f"find {theirs} -printf '%U\\n' | sort -u").stdout.split()
    assert owners == ["1000"]
    assert any("dependencies of torch are not installed" in note for note in result.component("wheels")["notes"])
    works = next(check for check in result.host()["checks"] if check["id"] == "wheels.works")
    assert (works["status"], "lacks typing-extensions>=4" in works["summary"]) == ("warn", True), works
    assert "windows" not in works["summary"]


def test_what_somebody_else_installs_over_it_is_seen_by_one_exec(
    node: Machine, gpuready: Gpuready, inventory: Inventories, dist: Path
) -> None:
    path = build(dist, "ours")
    where = inventory(node, torch_wheels=[{"wheel": str(path), "env": ENV}])
    assert gpuready("apply", "--yes", "--only", "wheels", inventory=where).code == 0
    theirs = dist / "theirs"
    theirs.mkdir()
    node.put(build(theirs, "theirs"), f"/root/{path.name}")
    node.run(f"{ENV}/bin/python -m pip -q install --force-reinstall --no-deps --no-index /root/{path.name}")
    assert word(node) == "theirs"
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, word(node)) == (0, "ours"), result.explain()
    # What pip cannot replace stays as it was, and pip's own reason is told.
    record = node.run(f"ls {ENV}/lib/python3*/site-packages/torch-*.dist-info/RECORD").stdout.strip()
    node.run(f"mv {record} /root/RECORD")
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, word(node)) == (1, "ours"), result.explain()
    assert "pip could not install torch" in problem(result) and "RECORD file" in problem(result)
    node.run(f"mv /root/RECORD {record}")
    # Installed by hand with its hash known, it is only taken down.
    node.run(f"rm /var/lib/gpuready/wheel-*; cp {path} /root/", check=False)
    before = received(node)
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, list(result.diff("wheels"))) == (0, [f"wheels.{ENV}.torch.recorded"]), result.explain()
    assert received(node) - before < MIB // 4
    again = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert (again.code, outcomes(again)) == (0, {("ok", 1)}), again.explain()


@pytest.mark.fault("full-disk")
def test_no_room_is_said_before_a_byte_is_sent(
    node: Machine, gpuready: Gpuready, inventory: Inventories, dist: Path
) -> None:
    node.run(f"mkdir /opt/small && mount -t tmpfs -o size=40m tmpfs /opt/small && cp -a {ENV}/. /opt/small")
    path = build(dist, "too large")
    where = inventory(node, torch_wheels=[{"wheel": str(path), "env": "/opt/small"}])
    before = received(node)
    result = gpuready("apply", "--yes", "--only", "wheels", inventory=where)
    assert result.code == 1 and "/opt/small has " in problem(result) and " MiB are needed" in problem(result)
    assert received(node) - before < MIB // 4
    node.run("umount /opt/small")


def test_remove_takes_back_what_was_new_and_says_what_it_cannot(
    node: Machine, gpuready: Gpuready, inventory: Inventories, dist: Path
) -> None:
    fresh = "/opt/fresh"
    node.run(f"cp -a {ENV} {fresh} && {fresh}/bin/python -m pip -q uninstall -y torch")
    node.run("rm -f /var/lib/gpuready/wheel-*")
    path = build(dist, "last")
    where = inventory(node, torch_wheels=[{"wheel": str(path), "env": env} for env in (ENV, fresh)])
    assert gpuready("apply", "--yes", "--only", "wheels", inventory=where).code == 0
    assert (word(node), word(node, fresh)) == ("last", "last")
    kept = [json.loads((node.root / name).read_text("utf-8").splitlines()[1]) for name in records(node)]
    assert sorted((each["env"], each["before"]) for each in kept) == [(fresh, ""), (ENV, "2.2.1")]
    result = gpuready("remove", "--yes", "--only", "wheels", inventory=where)
    assert (result.code, word(node), word(node, fresh)) == (0, "last", ""), result.explain()
    notes = result.component("wheels")["notes"]
    assert any(f"torch 2.2.1 stays in {ENV}: it replaced 2.2.1, of which" in note for note in notes)
    assert records(node) == []
    again = gpuready("remove", "--yes", "--only", "wheels", inventory=where)
    assert (again.code, again.changed()) == (0, set()), again.explain()


HERE = """
mount -t tmpfs tmpfs /mnt && mkdir /mnt/upper /mnt/work
mount -t overlay overlay -o lowerdir=/var/lib,upperdir=/mnt/upper,workdir=/mnt/work /var/lib
mount -t tmpfs tmpfs /run
for n in 1 2; do
  "$GPUREADY" apply --yes -i spec.yaml -i @local --only wheels --output json | tr -d '\\n'
  echo; env/bin/python -IBc 'import torch; print(torch.WORD)'
done
ls -d /var/lib/gpuready/wheels
"""


def test_this_very_machine_gets_its_wheel_without_ssh(dist: Path) -> None:
    """In a mount namespace of its own, where what is written in /var/lib and /run is memory that goes with the test."""
    subprocess.run([sys.executable, "-m", "venv", dist / "env"], check=True)
    path = build(dist, "here")
    spec = {"hardware": {"gpus": "none"}, "torch_wheels": [{"wheel": path.name, "env": str(dist / "env")}]}
    (dist / "spec.yaml").write_text(json.dumps({"all": {"vars": {"gpuready": spec}}}), "utf-8")
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-uc", HERE]
    own = {**os.environ, "GPUREADY": GPUREADY, "HOME": str(dist)}
    done = subprocess.run(
        words, cwd=dist, env=own, capture_output=True, text=True, timeout=scale.seconds(240), check=False
    )
    rows = done.stdout.splitlines()
    assert len(rows) == 4, f"{done.stdout}\n{done.stderr}"
    hosts = [json.loads(row)["hosts"]["@local"] for row in (rows[0], rows[2])]
    assert [host["outcome"] for host in hosts] == ["changed", "ok"], f"{hosts}\n{done.stderr}"
    assert (rows[1], rows[3], hosts[1]["execs"]) == ("here", "here", 1)


def records(node: Machine) -> list[str]:
    """The records, as paths on the machine's disk."""
    return node.run("cd / && ls var/lib/gpuready/wheel-*", check=False).stdout.split()

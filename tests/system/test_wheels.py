"""A wheel that was rebuilt under its old version, on its way into real environments: refused, copied once, cut, busy.

The wheel is no PyTorch, only called so: pip, the environments, the connection and the disks are real.
"""

import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpuready.base import resources
from gpuready.base.step import PENDING_EXIT
from tests.components.wheels.wheelfiles import shared_object, wheel
from tests.lab import Lab, Machine
from tests.system.faults import leftovers, problem
from tests.system.harness import Gpuready, Inventories, here
from tests.system.host import Host

ENV = "/opt/train"
MIB = 1 << 20
LIBRARIES = {
    "libtorch.so": shared_object(["libc10.so", "libc.so.6", "libcuda.so.1"], ["GLIBC_2.34", "GLIBC_2.4"]),
    "libc10.so": shared_object(soname="libc10.so"),
}
INSTALL = "apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends"


@pytest.fixture(scope="module")
def nodes(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[list[Host]]:
    """Three machines with an environment each."""
    with ExitStack() as stack:
        made = [Host(stack.enter_context(lab.machine("debian12")), gpuready, inventory) for _ in range(3)]
        first, *others = made
        with ThreadPoolExecutor() as pool:
            done = [pool.submit(machine.run, f"{INSTALL} python3-distutils") for machine in others]
            first.run(f"{INSTALL} python3-venv && python3 -m venv {ENV}")
        for machine, each in zip(others, done, strict=True):
            each.result()
            machine.put(first.root / ENV.lstrip("/"), ENV)  # pip asks its own Python where it is
        yield [host.only("wheels") for host in made]


@pytest.fixture(scope="module")
def node(nodes: list[Host]) -> Host:
    """One of them."""
    return nodes[0]


def wants(path: Path, *envs: str) -> dict[str, Any]:
    """The spec that this wheel is to be in these environments."""
    return {"torch_wheels": [{"wheel": str(path), "env": env} for env in envs or (ENV,)]}


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


@contextmanager
def receives(*machines: Machine, least: float = 0, most: float = MIB // 4) -> Iterator[None]:
    """Each of the machines receives so many bytes meanwhile."""
    before = [received(machine) for machine in machines]
    yield
    sent = [received(machine) - old for machine, old in zip(machines, before, strict=True)]
    assert all(least <= each < most for each in sent), sent


@pytest.mark.promise
def test_a_rebuilt_wheel_reaches_three_machines_and_the_second_run_copies_nothing(
    nodes: list[Host], tmp_path: Path
) -> None:
    path = build(tmp_path, "first")
    first = nodes[0]
    where = first.inventories(nodes, **wants(path))
    result = first.apply(inventory=where)
    assert {word(node) for node in nodes} == {"first"}, result.explain()
    assert {host["components"][0]["disruption"] for host in result.document["hosts"].values()} == {"none"}

    build(tmp_path, "second")
    plan = first.plan(inventory=where)
    for host in plan.document["hosts"].values():
        (item,) = host["components"]
        (change,) = item["diff"]
        assert change["actual"] != change["expected"] and change["actual"].startswith("2.2.1, sha256 ")
        assert item["disruption"] == "recreate" and "another build of that version" in item["notes"][0]
    with receives(*nodes, least=3 * MIB, most=4 * MIB):
        result = first.apply(inventory=where)
    assert {word(node) for node in nodes} == {"second"}, result.explain()
    assert len(result.document["batches"]) > 1  # one first, because work could be hit
    for node in nodes:
        works = result.check("wheels.works", node.name)
        assert works["status"] == "pass" and "CUDA 12.1, NCCL 2.19.3" in works["summary"], works

    with receives(*nodes, most=MIB // 8):
        again = first.apply(inventory=where)
    assert {(host["outcome"], host["execs"]) for host in again.document["hosts"].values()} == {("ok", 1)}
    for node in nodes:
        assert node.run("ls -d /var/lib/gpuready/wheels", check=False).stdout == ""
        assert leftovers(node) == []


@pytest.mark.parametrize(
    ("built", "env", "why"),
    [
        ({"tag": "cp310-cp310-linux_x86_64"}, ENV, "which is 3.11.2 (cp311-cp311-manylinux_2_36_"),
        ({}, "/usr", "it is neither a venv nor a conda environment"),
        ({}, "/opt/bare", "has no pip: /opt/bare/bin/python -m ensurepip"),
        ({}, "/opt/mixed", "belongs to root, but /opt/mixed/lib/python3.11/site-packages to gpu"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_copied(
    node: Host, tmp_path: Path, built: dict[str, object], env: str, why: str
) -> None:
    if env in ("/opt/bare", "/opt/mixed"):
        node.run(f"python3 -m venv --without-pip {env}")
    if env == "/opt/mixed":
        node.run(f"chown gpu {env}/lib/python3*/site-packages")
    path = wheel(tmp_path, **{"extra": os.urandom(3 * MIB), **built})  # type: ignore[arg-type]
    wanted = node.with_spec(**wants(path, env))
    there = word(node)
    with receives(node):
        for verb in ("plan", "apply") if "tag" in built else ("plan",):
            result = wanted.call(verb, code=1)
            error = result.component("wheels")["error"]["message"]
            assert result.changed() == set(), result.explain()
            assert why in error and "nothing was copied" in error
    assert word(node) == there
    assert node.run("ls -d /var/lib/gpuready/wheels", check=False).stdout == ""


def test_a_process_that_uses_the_environment_is_not_disturbed(node: Host, tmp_path: Path) -> None:
    wanted = node.with_spec(**wants(build(tmp_path, "third")))
    there = word(node)
    node.run(f"systemd-run -q --unit=job {ENV}/bin/python -c 'import torch, time; time.sleep(600)'")
    # Another environment whose name only begins alike, and a process that only has the name among its arguments.
    node.run(
        f"cp -a {ENV} {ENV}ing && systemd-run -q --unit=other {ENV}ing/bin/python -c 'import time; time.sleep(600)'"
    )
    node.run(f"systemd-run -q --unit=editor sleep 600 {ENV}/bin/python", check=False)
    with receives(node):
        plan = wanted.plan()
        (hit,) = plan.component("wheels")["affected"]
        assert hit.startswith("python (pid ") and hit.endswith(f") in {ENV}"), plan.explain()
        result = wanted.apply(code=7)
    why = result.component("wheels")["pending_reason"]
    assert f"until idle: this change (class recreate) would affect {hit}" in why
    assert word(node) == there
    # Asked again just before the step, for whoever began meanwhile.
    values = {"file": "/none/x.whl", "places": ("/none",), "record": "/none/r", "said": "", "sha256": "0"}
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
    linked = node.with_spec(**wants(build(tmp_path, "third"), "/opt/link"))
    found = linked.plan()
    assert found.component("wheels")["affected"] == [hit.replace(ENV, "/opt/link")], found.explain()
    node.run("systemctl stop job")
    wanted.apply()
    assert word(node) == "third"
    node.run("systemctl stop other")


@pytest.mark.fault("cut-wheel")
def test_a_copy_that_was_cut_goes_on_and_a_wrong_one_is_thrown_away(node: Host, tmp_path: Path) -> None:
    path = build(tmp_path, "fourth")
    wanted = node.with_spec(**wants(path))
    expected = wanted.plan().component("wheels")["diff"][0]["expected"]
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
    result = wanted.apply(code=1)
    assert word(node) == there, result.explain()
    assert "the copy's hash is not the wheel's" in problem(result) and "it was removed" in problem(result)
    assert not stale.exists() and not part.exists()
    part.write_bytes(data[: 2 * MIB])
    with receives(node, least=MIB, most=1.6 * MIB):
        wanted.apply()
    assert word(node) == "fourth"
    # One that came whole, and was not installed, is not sent again.
    data = build(tmp_path, "fifth").read_bytes()
    whole = part.parent.parent / hashlib.sha256(data).hexdigest() / path.name
    whole.parent.mkdir(parents=True)
    whole.write_bytes(data)
    with receives(node):
        wanted.apply()
    assert (word(node), whole.parent.parent.exists()) == ("fifth", False)


CUT = """
until [ "$(stat -c %s {part} 2>/dev/null || echo 0)" -gt {size} ]; do sleep 0.02; done
for p in $(ps -eo pid=,args= | awk '/sshd(-session)?: gpu/{{print $1}}'); do kill -9 $p; done
"""


@pytest.mark.fault("cut-wheel")
def test_a_connection_that_goes_in_the_middle_of_a_copy_is_that_hosts_failure_alone(
    nodes: list[Host], tmp_path: Path
) -> None:
    node, other, _ = nodes
    path = wheel(tmp_path, word="large", libraries=LIBRARIES, extra=os.urandom(48 * MIB))
    where = node.inventories([node, other], **wants(path))
    data = path.read_bytes()
    part = node.root / f"var/lib/gpuready/wheels/{hashlib.sha256(data).hexdigest()}/{path.name}.part"
    # On the node itself, because the copy takes no longer than a few round trips.
    (node.root / "root/cut").write_text(CUT.format(part=f"/{part.relative_to(node.root)}", size=4 * MIB), "utf-8")
    node.run("systemd-run -q --unit=cut sh /root/cut")
    result = node.apply("--batch", "100%", inventory=where, code=4)
    assert [result.host(each.name)["outcome"] for each in (node, other)] == ["unreachable", "changed"]
    assert "the next run goes on from it" in problem(result, node.name)
    arrived = part.stat().st_size
    assert 4 * MIB < arrived < len(data)
    with receives(node, most=len(data) - arrived + 2 * MIB):
        node.apply(inventory=where)
    assert (word(node), word(other)) == ("large", "large")


def test_one_copy_for_two_environments_and_each_belongs_to_whom_it_belonged(node: Host, tmp_path: Path) -> None:
    theirs = "/home/gpu/venv"
    node.run(f"cp -a {ENV} {theirs} && {theirs}/bin/python -m pip -q uninstall -y torch && chown -R gpu: {theirs}")
    path = build(tmp_path, "sixth", requires=["typing-extensions>=4", "pip", 'windows-only; sys_platform == "win32"'])
    wanted = node.with_spec(**wants(path, ENV, theirs))
    with receives(node, least=3 * MIB, most=4 * MIB):
        result = wanted.apply()
    assert (word(node), word(node, theirs)) == ("sixth", "sixth"), result.explain()
    assert result.stderr.count(" copy torch-") == 1
    owners = node.run(f"find {theirs} -printf '%U\\n' | sort -u").stdout.split()
    assert owners == ["1000"]
    assert any("dependencies of torch are not installed" in note for note in result.component("wheels")["notes"])
    works = result.check("wheels.works")
    assert (works["status"], "lacks typing-extensions>=4" in works["summary"]) == ("warn", True), works
    assert "windows" not in works["summary"]


def test_what_somebody_else_installs_over_it_is_seen_by_one_exec(node: Host, tmp_path: Path) -> None:
    path = build(tmp_path, "ours")
    wanted = node.with_spec(**wants(path))
    wanted.apply()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    node.put(build(theirs, "theirs"), f"/root/{path.name}")
    node.run(f"{ENV}/bin/python -m pip -q install --force-reinstall --no-deps --no-index /root/{path.name}")
    assert word(node) == "theirs"
    wanted.apply()
    assert word(node) == "ours"
    # What pip cannot replace stays as it was, and pip's own reason is told.
    record = node.run(f"ls {ENV}/lib/python3*/site-packages/torch-*.dist-info/RECORD").stdout.strip()
    node.run(f"mv {record} /root/RECORD")
    result = wanted.apply(code=1)
    assert word(node) == "ours", result.explain()
    assert "pip could not install torch" in problem(result) and "RECORD file" in problem(result)
    node.run(f"mv /root/RECORD {record}")
    # Installed by hand with its hash known, it is only taken down.
    node.run(f"rm /var/lib/gpuready/wheel-*; cp {path} /root/", check=False)
    with receives(node):
        result = wanted.apply()
    assert list(result.diff("wheels")) == [f"wheels.{ENV}.torch.recorded"], result.explain()
    wanted.settled()


@pytest.mark.fault("full-disk")
def test_no_room_is_said_before_a_byte_is_sent(node: Host, tmp_path: Path) -> None:
    node.run(f"mkdir /opt/small && mount -t tmpfs -o size=40m tmpfs /opt/small && cp -a {ENV}/. /opt/small")
    path = build(tmp_path, "too large")
    wanted = node.with_spec(**wants(path, "/opt/small"))
    with receives(node):
        result = wanted.apply(code=1)
    assert "/opt/small has " in problem(result) and " MiB are needed" in problem(result)
    node.run("umount /opt/small")


def test_remove_takes_back_what_was_new_and_says_what_it_cannot(node: Host, tmp_path: Path) -> None:
    fresh = "/opt/fresh"
    node.run(f"cp -a {ENV} {fresh} && {fresh}/bin/python -m pip -q uninstall -y torch")
    node.run("rm -f /var/lib/gpuready/wheel-*")
    path = build(tmp_path, "last")
    wanted = node.with_spec(**wants(path, ENV, fresh))
    wanted.apply()
    assert (word(node), word(node, fresh)) == ("last", "last")
    kept = [json.loads((node.root / name).read_text("utf-8").splitlines()[1]) for name in records(node)]
    assert sorted((each["env"], each["before"]) for each in kept) == [(fresh, ""), (ENV, "2.2.1")]
    result = wanted.remove()
    assert (word(node), word(node, fresh)) == ("last", ""), result.explain()
    notes = result.component("wheels")["notes"]
    assert any(f"torch 2.2.1 stays in {ENV}: it replaced 2.2.1, of which" in note for note in notes)
    assert records(node) == []
    assert wanted.remove().changed() == set()
    status = node.gpuready("status", inventory=wanted.where(), code=0).host()["status"]
    assert "wheels" in status["differs"] and "wheels" not in status["blocked"], status


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


def test_this_very_machine_gets_its_wheel_without_ssh(tmp_path: Path) -> None:
    """In a mount namespace of its own, where what is written in /var/lib and /run is memory that goes with the test."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    path = build(tmp_path, "here")
    spec = {"hardware": {"gpus": "none"}, "torch_wheels": [{"wheel": path.name, "env": str(tmp_path / "env")}]}
    (tmp_path / "spec.yaml").write_text(json.dumps({"all": {"vars": {"gpuready": spec}}}), "utf-8")
    rows, errors = here(HERE, tmp_path)
    assert len(rows) == 4, f"{rows}\n{errors}"
    hosts = [json.loads(row)["hosts"]["@local"] for row in (rows[0], rows[2])]
    assert [host["outcome"] for host in hosts] == ["changed", "ok"], f"{hosts}\n{errors}"
    assert (rows[1], rows[3], hosts[1]["execs"]) == ("here", "here", 1)


def records(node: Machine) -> list[str]:
    """The records, as paths on the machine's disk."""
    return node.run("cd / && ls var/lib/gpuready/wheel-*", check=False).stdout.split()


# --- another user's code in an environment ---------------------------------------------------------------------

#: Alice's code says who runs it.
SAYS = 'import os; open("/opt/ran", "a").write(str(os.geteuid()) + "\\n")'
#: What makes an environment of root's run it, each in its site-packages.
FINDER = """import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "packaging":
            return importlib.util.spec_from_file_location(name, "/home/alice/src/packaging.py")
sys.meta_path.append(Finder)
"""
COPY = """mkdir -p /home/alice/python/bin /home/alice/python/lib && cp -a /usr/lib/python3.11 /home/alice/python/lib/
cp /usr/bin/python3.11 /home/alice/python/bin/python3 && chown -R alice: /home/alice
/home/alice/python/bin/python3 -m venv --copies --without-pip /opt/copy
cp -a /opt/relative/lib/python3.11/site-packages/pip* /opt/copy/lib/python3.11/site-packages/
printf '%s\\n' "$SAYS" >>/home/alice/python/lib/python3.11/sysconfig.py
"""
WAYS = {
    "relative": "echo ../../../../../home/alice/src >$SITE/b.pth",
    "finder": 'echo "$FINDER" >$SITE/__finder.py; echo import __finder >$SITE/c.pth',
    "copy": COPY,
    "shared": """mkdir -p /usr/local/lib/python3.11/dist-packages; chown -R alice /usr/local/lib/python3.11
printf '%s\\n' "$SAYS" >/usr/local/lib/python3.11/dist-packages/a.pth""",
}


@pytest.mark.fault("foreign-environment")
def test_code_of_another_user_runs_as_nobody_and_pip_without_it(node: Host, tmp_path: Path) -> None:
    node.run("useradd -m alice && chmod 755 /home/alice && mkdir /home/alice/src")
    node.script("/home/alice/src/packaging.py", SAYS)
    path = build(tmp_path, "safe")
    for way, makes in WAYS.items():
        env = f"/opt/{way}"
        if way != "copy":
            node.run(f"python3 -m venv {'--system-site-packages' if way == 'shared' else ''} {env}")
        values = {"SITE": f"{env}/lib/python3.11/site-packages", "SAYS": SAYS, "FINDER": FINDER}
        node.sh("".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items()) + makes)
        node.run(">/opt/ran; chmod 666 /opt/ran")
        wanted = node.with_spec(**wants(path, env))
        result = wanted.apply(code=1 if way == "copy" else 0)
        if way == "copy":
            assert "others can change /home/alice (alice:alice, mode 755), so root runs no pip" in problem(result)
        ran = set((node.root / "opt/ran").read_text("utf-8").split())
        assert ran == {"65534"}, (way, ran, result.explain())
        if way != "copy":
            assert word(node, env) == "safe"
    node.run("rm -r /usr/local/lib/python3.11")
    node.run("chmod 700 /root && python3 -m venv /root/train")
    result = node.with_spec(**wants(path, "/root/train")).apply()
    assert (word(node, "/root/train"), result.check("wheels.works")["status"]) == ("safe", "pass")


LEAVES = 'import os; os.system("setsid sleep 961 &"); [print("x" * 4096) for _ in iter(int, 1)]'


@pytest.mark.fault("venv-fills-run")
def test_what_a_users_python_started_ends_with_it(node: Host, tmp_path: Path) -> None:
    theirs = "/home/gpu/floods"
    node.run(f"python3 -m venv {theirs} && chown -R gpu: {theirs}")
    node.script(f"{theirs}/lib/python3.11/site-packages/floods.pth", LEAVES)
    result = node.with_spec(**wants(build(tmp_path, "none"), theirs)).plan(code=1)
    assert theirs in result.component("wheels")["error"]["message"]
    assert node.run("pgrep -fx 'sleep 961'", check=False).stdout == ""
    assert leftovers(node) == []

"""``apply @local --image`` in a chroot of the lab's Debian, which is then booted: the first boot does the rest."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gpuready.contract.image_boot import FILES
from gpuready.contract.node_record import PATH as RECORD
from tests.lab import Lab
from tests.lab.host import sh
from tests.system.harness import Gpuready, Inventories
from tests.system.host import Host
from tests.system.test_pull import put_gpuready

# Each mount ends with the namespace.
_CHROOT = """
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
exec chroot "$@"
"""


@pytest.fixture
def unbooted(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Host]:
    """A machine's disk, before its first boot, with gpuready in it."""
    machine = lab.create(f"image{os.getpid()}", owner=os.getpid())
    try:
        host = Host(machine, gpuready, inventory)
        put_gpuready(host)
        yield host
    finally:
        lab.destroy(machine)


def made(node: Host) -> dict[str, Any]:
    """The result of a run in a chroot."""
    words = ["/opt/gpuready/bin/gpuready", "apply", "-i", "/etc/gpuready/node.yaml", "-i", "@local"]
    words += ["--limit", "@local", "--image", "--yes", "--output", "json"]
    chroot = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", _CHROOT, "sh", str(node.root)]
    done = subprocess.run([*chroot, *words], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def files(node: Host) -> set[str]:
    """The files of the disk, without what packages and logs have there."""
    found = sh("find", node.root, "-xdev", "-not", "-type", "d", "-printf", "/%P\\n").splitlines()
    left_out = ("/usr/", "/opt/", "/var/lib/apt/", "/var/cache/", "/var/lib/dpkg/", "/var/log/", "/home/", "/root/")
    return {path for path in found if not path.startswith(left_out)}


def running(node: Host) -> list[str]:
    """The processes in the chroot."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "root").samefile(node.root):
                found.append((process / "comm").read_text())
    return found


@pytest.mark.promise
def test_an_image_of_a_chroot_is_finished_at_its_first_boot(unbooted: Host) -> None:
    node, root = unbooted, unbooted.root
    inventory = node.where(nccl={"extra": {"NCCL_IB_TIMEOUT": "22"}})
    node.put(inventory, "/etc/gpuready/node.yaml")
    keys = {path: path.read_bytes() for path in root.glob("etc/ssh/ssh_host_*")}
    names = {socket.gethostname(), (root / "etc/hostname").read_text().strip()}
    assert keys and (root / "etc/machine-id").read_text()
    before = files(node)

    policy = root / "usr/sbin/policy-rc.d"
    policy.unlink(missing_ok=True)
    policy.symlink_to("/run/gpuready.policy")  # as a run leaves it that is killed
    document = made(node)
    assert not policy.is_symlink()
    image = document["hosts"]["@local"]
    assert (document["exit_code"], image["outcome"], image["checks"]) == (0, "changed", []), document
    assert {"devices", "cdi", "nccl", "reconverge"} <= set(image["first_boot"]["pending"])
    changed = {item["name"] for item in image["components"] if item["changed"]}
    assert {"repository", "toolkit", "docker"} <= changed

    # Nothing was started, and nothing of the builder is left.
    assert running(node) == []
    new = files(node) - before
    assert [path for path in new if path.startswith(("/run/", "/tmp/", "/var/tmp/"))] == []
    assert not list(root.glob("etc/ssh/ssh_host_*")) and not (root / "etc/machine-id").read_text()
    records = {path for path in new if path.startswith("/var/lib/gpuready/")}
    assert [path for path in records if not ("/backup/" in path or path.endswith(".ours") or path in FILES)] == []
    assert set(FILES) <= new
    texts = {path: (root / path.lstrip("/")).read_text() for path in records}
    assert texts and [path for path, text in texts.items() if any(name in text for name in names)] == []

    units = {path: (root / path.lstrip("/")).read_text() for path in FILES if path.endswith(".service")}

    # It is booted with one key, which the lab knows. A unit of the image makes the others.
    for path, data in keys.items():
        path.touch(0o600)
        path.write_bytes(data)
    node.start()  # it waits until the first boot has ended
    log = node.run("journalctl -q --no-pager -o cat -u gpuready-image-boot | tail -40").stdout
    assert [path for path in FILES if (root / path.lstrip("/")).exists()] == [], log
    assert not (root / "etc/systemd/system/multi-user.target.d").exists()
    made_keys = max(path.stat().st_mtime for path in root.glob("etc/ssh/ssh_host_*_key"))
    began = node.run('date +%s.%N -d "$(systemctl show -P ExecMainStartTimestamp --timestamp=us ssh.service)"').stdout
    assert made_keys <= float(began)
    assert node.run("journalctl -q -b -o cat | grep -c 'ordering cycle'", check=False).stdout == "0\n"
    for path, text in units.items():
        (root / "run-verify").mkdir(exist_ok=True)
        (root / "run-verify" / Path(path).name).write_text(text)
    done = node.run("systemd-analyze verify /run-verify/*.service && rm -r /run-verify", check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert (root / "etc/ssh/ssh_host_rsa_key").exists() and (root / "etc/machine-id").read_text()
    assert (root / "etc/nccl.conf").exists(), log
    record = json.loads((root / RECORD.lstrip("/")).read_text())
    assert record["boot_id"] == node.run("cat /proc/sys/kernel/random/boot_id").stdout.strip()
    assert node.plan("--detailed-exitcode", inventory=inventory).host()["outcome"] == "ok"

    node.remove(inventory=inventory)
    made_at_boot = ("/etc/ssh/ssh_host_", "/etc/.")
    left = {path for path in files(node) - before if path.startswith(("/etc/", "/var/lib/gpuready"))}
    assert [path for path in left if not path.startswith(made_at_boot)] == [] and before <= files(node)

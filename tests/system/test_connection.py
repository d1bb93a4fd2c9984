"""From the address to a root shell: whatever is in the way is one message with a remedy, in bounded time, exit 4."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Machine, access, network
from tests.lab.host import sh
from tests.system.faults import (
    Listener,
    Terminal,
    extended,
    firewall,
    footprint,
    problem,
    settled,
    through,
    until,
)
from tests.system.harness import Gpuready, Inventories, Result, Sessions
from tests.system.host import Hosts


def _unreachable(result: Result, *words: str, host: str = "") -> str:
    told = problem(result, host)
    print(told)
    found = result.host(host)
    assert found["outcome"] == "unreachable" and found["error"]["kind"] == "unreachable", result.explain()
    assert found["error"]["remedy"], told
    assert all(word in told for word in words), told
    return told


def _wrong_key(machine: Machine) -> str:
    """A line of known_hosts with a key that is not the machine's."""
    return f"{machine.address} ssh-ed25519 {access.client_key().with_suffix('.pub').read_text().split()[1]}\n"


@pytest.mark.promise
@pytest.mark.fault("sudo-password", "no-sudo", "wrong-login")
def test_no_root_shell(shared: Hosts, tmp_path: Path) -> None:
    m = shared()
    m.run("useradd -m plain; cp -r ~gpu/.ssh ~plain/; chown -R plain: ~plain")
    before = footprint(m)
    _unreachable(m.apply(user="pw", code=4), "sudo asks for a password", "NOPASSWD")
    _unreachable(m.apply(user="plain", code=4), "sudo", "NOPASSWD")
    _unreachable(m.plan(user="nobodyelse", code=4), "login", "nobodyelse", m.address)
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key")
    wrong = extended(m.where(), ansible_ssh_private_key_file=str(tmp_path / "key"))
    _unreachable(m.plan(inventory=wrong, code=4), "login", "gpu", m.address, "refused")
    assert footprint(m) == before
    m.run("mv /usr/bin/sudo /usr/bin/sudo.away")
    _unreachable(m.plan(code=4), "no sudo", "root")
    m.run("mv /usr/bin/sudo.away /usr/bin/sudo; userdel -r plain")


@pytest.mark.fault("sudo-password")
def test_sudo_with_a_password(shared: Hosts, tmp_path: Path) -> None:
    m = shared()
    right, wrong = "tr0ub4dor %3", "c0rrect-h0rse"
    m.run(f"echo 'pw:{right}' | chpasswd")
    for name, password in (("right", right), ("wrong", wrong)):
        (tmp_path / name).write_text(f"{password}\n")
    refused = extended(m.where(user="pw"), ansible_become_password=f"file:{tmp_path}/wrong")
    allow = f"--allow-read=file:{tmp_path}/right"
    told = _unreachable(
        m.plan(allow.replace("right", "wrong"), inventory=refused, code=4),
        "sudo refused the password",
        "--ask-become-pass",
    )
    assert "1 incorrect password attempt" in m.run("journalctl --sync; journalctl --no-pager -t sudo").stdout
    taken = extended(m.where(user="pw"), ansible_become_password=f"file:{tmp_path}/right")
    applied = m.apply(allow, inventory=taken)
    assert applied.host()["outcome"] == "changed", applied.explain()
    m.plan("--detailed-exitcode", allow, inventory=taken)
    said = told + applied.stderr + str(applied.document) + m.run("journalctl --sync; journalctl --no-pager -a").stdout
    assert right not in said and wrong not in said
    # Where sudo does not ask, a password does no harm.
    spare = extended(m.where(), ansible_become_password=f"file:{tmp_path}/right")
    m.plan("--detailed-exitcode", allow, inventory=spare)


@pytest.mark.fault("encrypted-key", "sudo-password")
def test_nothing_is_ever_asked_on_the_terminal(shared: Hosts, tmp_path: Path) -> None:
    m = shared()
    (tmp_path / "known_none").touch()
    strange = f"-o UserKnownHostsFile={tmp_path}/known_none"
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "passphrase", "-f", tmp_path / "key")
    cases: dict[str, dict[str, Any]] = {
        "sudo asks for a password": {"ansible_user": "pw"},
        "is encrypted": {"ansible_ssh_private_key_file": str(tmp_path / "key")},
        "is not known": {"ansible_ssh_common_args": strange},
        f"jump host {m.address} is not known": {"ansible_ssh_common_args": f"{strange} -J gpu@{m.address}"},
    }
    typed = "secret\nyes\ny\n"
    for message, variables in cases.items():
        path = extended(m.where(), **variables)
        if "jump" in message:
            path.write_text(path.read_text().replace(f"ansible_host: {m.address}", "ansible_host: beyond.invalid"))
        shown = Terminal(m.gpuready.home)
        shown.type(typed)
        process = shown.start("apply", "--yes", "-i", str(path))
        assert process.wait(60) == 4, shown.shown
        assert shown.unread() == len(typed), f"{message}: something was read from the terminal"
        until(partial(shown.says, "exit 4"), 5)
        assert message in shown.shown and "assword:" not in shown.shown and "[y/n]" not in shown.shown, shown.shown
        assert shown.unchanged()


@pytest.mark.promise
@pytest.mark.fault("host-key-unknown", "host-key-changed")
def test_host_keys_are_strict(shared: Hosts, tmp_path: Path) -> None:
    m = shared()
    known = tmp_path / "known_hosts"
    known.touch()
    path = extended(m.where(), ansible_ssh_common_args=f"-o UserKnownHostsFile={known}")
    before = footprint(m)
    _unreachable(m.apply(inventory=path, code=4), "host key", m.address, "not known", "trust")
    m.plan("--host-keys", "accept-new", inventory=path)
    (line,) = known.read_text().splitlines()
    assert line.split()[:2] == [m.address, "ssh-ed25519"], line
    m.plan(inventory=path)
    m.plan("--host-keys", "accept-new", inventory=path)
    assert known.read_text().splitlines() == [line]

    known.write_text(_wrong_key(m))
    for policy in ("strict", "accept-new"):
        result = m.apply("--host-keys", policy, inventory=path, code=4)
        _unreachable(result, "host key", m.address, "has changed", f"ssh-keygen -R '{m.address}'")
    assert known.read_text() == _wrong_key(m)
    assert footprint(m) == before


@pytest.mark.fault("host-key-unknown")
def test_accept_new_works_in_an_empty_home(shared: Hosts, tmp_path: Path) -> None:
    m = shared()
    path = extended(m.where(), ansible_ssh_common_args=None)
    m.plan("--host-keys", "accept-new", inventory=path, env={"HOME": str(tmp_path)})
    assert (tmp_path / ".ssh/known_hosts").read_text().startswith(f"{m.address} ssh-ed25519 ")
    m.plan(inventory=path, env={"HOME": str(tmp_path)})


@pytest.mark.fault("jump-host-key")
def test_through_a_jump_host(fresh: Hosts, tmp_path: Path) -> None:
    hop, m = fresh(), fresh()
    known = tmp_path / "known_hosts"
    lines = access.known_hosts().read_text().splitlines(keepends=True)
    of_hop, of_m = (next(line for line in lines if line.startswith(f"{a.address} ")) for a in (hop, m))
    path = extended(m.where(), ansible_ssh_common_args=through(hop, tmp_path / "config", known))
    rule = ("-p", "tcp", "--dport", "22", "!", "-s", hop.address, "-j", "REJECT")
    sessions = Sessions(m)
    firewall(m, *rule)
    try:
        for keys, words in (
            (of_m, (hop.address, "not known")),
            (of_m + _wrong_key(hop), (hop.address, "has changed")),
            (of_hop, (m.address, "not known")),
        ):
            known.write_text(keys)
            _unreachable(m.plan(inventory=path, code=4), "host key", *words)
        known.write_text(of_hop + of_m)
        m.mends(inventory=path)
    finally:
        firewall(m, *rule, delete=True)
    assert sessions.count() > 0


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A port that accepts and keeps silent."""
    made = Listener()
    yield made
    made.close()


@pytest.mark.fault("host-down", "host-dark", "host-mute", "sshd-stopped")
def test_hosts_that_do_not_answer_cost_bounded_time_and_nobody_else(
    fresh: Hosts, gpuready: Gpuready, inventory: Inventories, listener: Listener
) -> None:
    *good, down, dark, frozen = (fresh() for _ in range(5))
    down.kill()
    firewall(dark, "-j", "DROP")
    path = extended(
        inventory(good),
        {
            "down": {"ansible_host": down.address},
            "dark": {"ansible_host": dark.address},
            "nowhere": {"ansible_host": "nowhere.invalid"},
            "mute": {"ansible_host": network.SERVER, "ansible_port": listener.port},
            "frozen": {"ansible_host": frozen.address},
        },
    )
    # On `frozen` the process that serves the session is stopped as soon as it asks sudo for a root shell.
    frozen.script("/usr/local/bin/sudo", _STOPPING)
    result = gpuready("apply", "--yes", inventory=path, code=4)
    for m in good:
        assert result.host(m.name)["outcome"] == "changed", result.explain()
    _unreachable(result, down.address, "refused", host="down")
    _unreachable(result, dark.address, "timed out", host="dark")
    _unreachable(result, "nowhere.invalid", "cannot be resolved", host="nowhere")
    _unreachable(result, str(listener.port), "no SSH server answered", host="mute")
    _unreachable(result, "no answer within", host="frozen")
    settled(gpuready, inventory(good))


_STOPPING = """#!/bin/sh
for p in $(pgrep -f 'sshd.*: gpu'); do kill -STOP $p; done
sleep 600
"""


def test_a_bad_inventory_executes_nothing(gpuready: Gpuready, listener: Listener, tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    touch = f"touch {marker}"
    bad: list[tuple[dict[str, dict[str, object]], dict[str, Any]]] = [
        ({"n2": {"ansible_host": f"$({touch})"}}, {}),
        ({"n6": {}}, {"ansible_ssh_common_args": f"-o ProxyCommand='{touch}'"}),
    ]
    good = f"all: {{hosts: {{good: {{}}}}, vars: {{ansible_host: {network.SERVER}, gpuready: {{}}}}}}\n"
    path = tmp_path / "i.yaml"
    for hosts, variables in bad:
        path.write_text(good)
        extended(path, hosts, ansible_port=listener.port, **variables)
        for verb in (("plan",), ("apply", "--yes")):
            result = gpuready(*verb, inventory=path, code=5)
            assert not result.document["hosts"], result.explain()
            assert f"{path}:" in result.document["error"]["message"], result.explain()
    assert not listener.accepted and not marker.exists()
    path.write_text(good)
    extended(path, ansible_port=listener.port)
    process = gpuready.start("plan", inventory=path)  # and a good one does connect there
    until(lambda: listener.accepted, 60)
    process.terminate()
    gpuready.finish(process, code=130)
    assert gpuready("plan").code == gpuready("apply", "--yes").code == 64

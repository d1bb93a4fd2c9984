"""From the address to a root shell: whatever is in the way is one message with a remedy, in bounded time, exit 4."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.lab import access, network
from tests.lab.fixtures import MachineFactory
from tests.lab.host import sh
from tests.system.faults import (
    Hanging,
    Listener,
    Terminal,
    firewall,
    footprint,
    inventory_file,
    problem,
    settled,
    until,
)
from tests.system.harness import Gpuready, Inventories, Result, Sessions


def _unreachable(result: Result, *words: str, host: str = "") -> str:
    told = problem(result, host)
    print(told)
    found = result.host(host)
    assert found["outcome"] == "unreachable" and found["error"]["kind"] == "unreachable", result.explain()
    assert found["error"]["remedy"], told
    assert all(word in told for word in words), told
    if not host:
        assert result.code == 4, result.explain()
    return told


@pytest.mark.promise
@pytest.mark.fault("sudo-password")
@pytest.mark.fault("no-sudo")
@pytest.mark.fault("wrong-login")
def test_no_root_shell(
    module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    m = module_machine()
    m.run("useradd -m plain; cp -r ~gpu/.ssh ~plain/; chown -R plain: ~plain")
    before = footprint(m)
    _unreachable(gpuready("apply", "--yes", inventory=inventory(m, user="pw")), "sudo asks for a password", "NOPASSWD")
    _unreachable(gpuready("apply", "--yes", inventory=inventory(m, user="plain")), "sudo", "NOPASSWD")
    _unreachable(gpuready("plan", inventory=inventory(m, user="nobodyelse")), "login", "nobodyelse", m.address)
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key")
    wrong = inventory_file(tmp_path / "i.yaml", inventory(m), ansible_ssh_private_key_file=str(tmp_path / "key"))
    _unreachable(gpuready("plan", inventory=wrong), "login", "gpu", m.address, "refused")
    assert footprint(m) == before
    m.run("mv /usr/bin/sudo /usr/bin/sudo.away")
    _unreachable(gpuready("plan", inventory=inventory(m)), "no sudo", "root")
    m.run("mv /usr/bin/sudo.away /usr/bin/sudo; userdel -r plain")


@pytest.mark.fault("sudo-password")
def test_sudo_with_a_password(
    module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    m = module_machine()
    right, wrong = "tr0ub4dor %3", "c0rrect-h0rse"
    m.run(f"echo 'pw:{right}' | chpasswd")
    for name, password in (("right", right), ("wrong", wrong)):
        (tmp_path / name).write_text(f"{password}\n")
    paths = {
        name: inventory_file(
            tmp_path / f"{name}.yaml", inventory(m, user="pw"), ansible_become_password=f"file:{tmp_path}/{name}"
        )
        for name in ("right", "wrong")
    }
    told = _unreachable(gpuready("plan", inventory=paths["wrong"]), "sudo refused the password", "--ask-become-pass")
    assert "1 incorrect password attempt" in m.run("journalctl --no-pager -t sudo").stdout
    applied = gpuready("apply", "--yes", inventory=paths["right"])
    assert applied.code == 0 and applied.host()["outcome"] == "changed", applied.explain()
    assert gpuready("plan", "--detailed-exitcode", inventory=paths["right"]).code == 0
    said = told + applied.stderr + str(applied.document) + m.run("journalctl --no-pager -a").stdout
    assert right not in said and wrong not in said
    # Where sudo does not ask, a password does no harm.
    spare = inventory_file(tmp_path / "spare.yaml", inventory(m), ansible_become_password=f"file:{tmp_path}/right")
    assert gpuready("plan", "--detailed-exitcode", inventory=spare).code == 0


@pytest.mark.fault("encrypted-key")
@pytest.mark.fault("sudo-password")
def test_nothing_is_ever_asked_on_the_terminal(
    module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    m = module_machine()
    (tmp_path / "known_none").touch()
    strange = f"-o UserKnownHostsFile={tmp_path}/known_none"
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "passphrase", "-f", tmp_path / "key")
    cases: dict[str, dict[str, object]] = {
        "sudo asks for a password": {"ansible_user": "pw"},
        "is encrypted": {"ansible_ssh_private_key_file": str(tmp_path / "key")},
        "is not known": {"ansible_ssh_common_args": strange},
        f"jump host {m.address} is not known": {"ansible_ssh_common_args": f"{strange} -J gpu@{m.address}"},
    }
    typed = "secret\nyes\ny\n"
    for number, (message, variables) in enumerate(cases.items()):
        path = inventory_file(tmp_path / f"{number}.yaml", inventory(m), **variables)
        if "jump" in message:
            path.write_text(path.read_text().replace(f"ansible_host: {m.address}", "ansible_host: beyond.invalid"))
        shown = Terminal(gpuready.home)
        shown.type(typed)
        process = shown.start("apply", "--yes", "-i", str(path))
        assert process.wait(60) == 4, shown.shown
        assert shown.unread() == len(typed), f"{message}: something was read from the terminal"
        until(partial(shown.says, "exit 4"), 5)
        assert message in shown.shown and "assword:" not in shown.shown and "[y/n]" not in shown.shown, shown.shown
        assert shown.unchanged()


@pytest.mark.promise
@pytest.mark.fault("host-key-unknown")
@pytest.mark.fault("host-key-changed")
def test_host_keys_are_strict(
    module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    m = module_machine()
    known = tmp_path / "known_hosts"
    known.touch()
    path = inventory_file(tmp_path / "i.yaml", inventory(m), ansible_ssh_common_args=f"-o UserKnownHostsFile={known}")
    before = footprint(m)
    _unreachable(gpuready("apply", "--yes", inventory=path), "host key", m.address, "not known", "trust")
    accepted = gpuready("plan", "--host-keys", "accept-new", inventory=path)
    assert accepted.code == 0, accepted.explain()
    (line,) = known.read_text().splitlines()
    assert line.split()[:2] == [m.address, "ssh-ed25519"], line
    assert gpuready("plan", inventory=path).code == 0
    assert gpuready("plan", "--host-keys", "accept-new", inventory=path).code == 0
    assert known.read_text().splitlines() == [line]

    other = access.client_key().with_suffix(".pub").read_text().split()[1]
    known.write_text(f"{m.address} ssh-ed25519 {other}\n")
    for policy in ("strict", "accept-new"):
        result = gpuready("apply", "--yes", "--host-keys", policy, inventory=path)
        _unreachable(result, "host key", m.address, "has changed", f"ssh-keygen -R '{m.address}'")
    assert known.read_text() == f"{m.address} ssh-ed25519 {other}\n"
    assert footprint(m) == before


@pytest.mark.fault("host-key-unknown")
def test_accept_new_works_in_an_empty_home(
    module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    m = module_machine()
    home = tmp_path / "home"
    home.mkdir()
    path = inventory_file(tmp_path / "i.yaml", inventory(m), ansible_ssh_common_args=None)
    result = gpuready("plan", "--host-keys", "accept-new", inventory=path, env={"HOME": str(home)})
    assert result.code == 0, result.explain()
    assert (home / ".ssh/known_hosts").read_text().startswith(f"{m.address} ssh-ed25519 ")
    assert gpuready("plan", inventory=path, env={"HOME": str(home)}).code == 0


@pytest.mark.fault("jump-host-key")
def test_through_a_jump_host(
    machine: MachineFactory, gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    hop, m = machine(), machine()
    config = tmp_path / "config"
    config.write_text(f"Host {hop.address}\n  IdentityFile {access.client_key()}\n")
    known = tmp_path / "known_hosts"
    keys = {
        a.address: " ".join([a.address, *(a.home / "host_key.pub").read_text().split()[:2]]) + "\n" for a in (hop, m)
    }
    path = inventory_file(
        tmp_path / "i.yaml",
        inventory(m),
        ansible_ssh_common_args=f"-F {config} -o UserKnownHostsFile={known} -J gpu@{hop.address}",
    )
    rule = ("-p", "tcp", "--dport", "22", "!", "-s", hop.address, "-j", "REJECT")
    sessions = Sessions(m)
    firewall(m, *rule)
    try:
        known.write_text(keys[m.address])
        _unreachable(gpuready("plan", inventory=path), "host key", hop.address, "not known")
        other = access.client_key().with_suffix(".pub").read_text().split()[1]
        known.write_text(keys[m.address] + f"{hop.address} ssh-ed25519 {other}\n")
        _unreachable(gpuready("plan", inventory=path), "host key", hop.address, "has changed")
        known.write_text(keys[hop.address])
        _unreachable(gpuready("plan", inventory=path), "host key", m.address, "not known")
        known.write_text("".join(keys.values()))
        result = gpuready("apply", "--yes", inventory=path)
        assert result.code == 0 and result.host()["outcome"] == "changed", result.explain()
        settled(gpuready, path)
    finally:
        firewall(m, *rule, delete=True)
    assert sessions.count() > 0


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A port that accepts and keeps silent."""
    made = Listener()
    yield made
    made.close()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    """An SSH server that answers no command."""
    made = Hanging()
    yield made
    made.close()


@pytest.mark.fault("host-down")
@pytest.mark.fault("host-dark")
@pytest.mark.fault("host-mute")
@pytest.mark.fault("sshd-stopped")
def test_hosts_that_do_not_answer_cost_bounded_time_and_nobody_else(
    machine: MachineFactory,
    gpuready: Gpuready,
    inventory: Inventories,
    listener: Listener,
    hanging: Hanging,
    tmp_path: Path,
) -> None:
    good = [machine(), machine()]
    down, dark, frozen = machine(), machine(), machine()
    down.kill()
    firewall(dark, "-j", "DROP")
    known = tmp_path / "known_hosts"
    known.write_text(access.known_hosts().read_text() + hanging.known)
    path = inventory_file(
        tmp_path / "i.yaml",
        inventory(good),
        {
            "down": {"ansible_host": down.address},
            "dark": {"ansible_host": dark.address},
            "nowhere": {"ansible_host": "nowhere.invalid"},
            "mute": {"ansible_host": network.SERVER, "ansible_port": listener.port},
            "hanging": {"ansible_host": network.SERVER, "ansible_port": hanging.port},
            "frozen": {"ansible_host": frozen.address},
        },
        ansible_ssh_common_args=f"-o UserKnownHostsFile={known}",
    )
    # On `frozen` the process that serves the session is stopped as soon as it asks sudo for a root shell.
    (frozen.root / "usr/local/bin/sudo").write_text(_STOPPING)
    (frozen.root / "usr/local/bin/sudo").chmod(0o755)
    result = gpuready("apply", "--yes", inventory=path)
    assert result.code == 4, result.explain()
    for m in good:
        assert result.host(m.name)["outcome"] == "changed", result.explain()
    _unreachable(result, down.address, "refused", host="down")
    _unreachable(result, dark.address, "timed out", host="dark")
    _unreachable(result, "nowhere.invalid", "cannot be resolved", host="nowhere")
    _unreachable(result, str(listener.port), "no SSH server answered", host="mute")
    _unreachable(result, "no answer within", host="hanging")
    _unreachable(result, "no answer within", host="frozen")
    settled(gpuready, inventory(good))


_STOPPING = """#!/bin/sh
for p in $(pgrep -f 'sshd.*: gpu'); do kill -STOP $p; done
sleep 600
"""


def test_the_worst_outcome_makes_the_exit_code(
    module_machine: MachineFactory, gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    m = module_machine()
    settings = gpuready("apply", "--yes", inventory=inventory(m))
    assert settings.code == 0, settings.explain()
    broken = {"toolkit": {"version": "1.20.7"}}
    hosts: dict[str, dict[str, object]] = {
        "away": {"ansible_host": "away.invalid"},
        "wrong": {"ansible_host": m.address, "gpuready": broken},
    }
    for names, code in ((("away",), 4), (("wrong",), 1), (("away", "wrong"), 1)):
        path = inventory_file(tmp_path / "i.yaml", inventory(m), {name: hosts[name] for name in names})
        result = gpuready("apply", "--yes", inventory=path)
        assert result.code == code, result.explain()
        assert result.host(m.name)["outcome"] == "ok" and result.host(m.name)["execs"] == 1
        if "wrong" in names:
            assert result.host("wrong")["outcome"] == "failed" and "1.20.7" in problem(result, "wrong")
        if "away" in names:
            assert result.host("away")["outcome"] == "unreachable"
    differs = inventory_file(
        tmp_path / "v.yaml", inventory(m), {"differs": {"ansible_host": m.address, "gpuready": broken}}
    )
    assert gpuready("verify", "--passive", inventory=differs).code == 3
    both = inventory_file(tmp_path / "v.yaml", differs, {"away": hosts["away"]})
    assert gpuready("verify", "--passive", inventory=both).code == 4


def test_a_bad_inventory_executes_nothing(
    gpuready: Gpuready, inventory: Inventories, module_machine: MachineFactory, listener: Listener, tmp_path: Path
) -> None:
    marker = tmp_path / "executed"
    touch = f"touch {marker}"
    bad: list[tuple[dict[str, dict[str, object]], dict[str, object]]] = [
        ({f"n1;{touch}": {}}, {}),
        ({"n2": {"ansible_host": f"$({touch})"}}, {}),
        ({"n3": {}}, {"ansible_user": f"`{touch}`"}),
        ({"n4": {}}, {"gpuready": {"ldso": [f"/a;{touch}"]}}),
        ({"n5": {}}, {"gpuready": {"toolkit": {"version": f"1.20.0;{touch}"}}}),
        ({"n6": {}}, {"ansible_ssh_common_args": f"-o ProxyCommand='{touch}'"}),
        ({"n7": {}}, {"ansible_ssh_private_key_file": f"|{touch}"}),
    ]
    base = tmp_path / "base.yaml"
    base.write_text(
        yaml.safe_dump({"all": {"hosts": {"good": {}}, "vars": {"ansible_host": network.SERVER, "gpuready": {}}}})
    )
    for hosts, variables in bad:
        path = inventory_file(tmp_path / "i.yaml", base, hosts, ansible_port=listener.port, **variables)
        for verb in (("plan",), ("apply", "--yes")):
            result = gpuready(*verb, inventory=path)
            assert result.code == 5 and not result.document["hosts"], result.explain()
            assert f"{path}:" in result.document["error"]["message"], result.explain()
    assert not listener.accepted and not marker.exists()
    path = inventory_file(tmp_path / "i.yaml", base, ansible_port=listener.port)
    process = gpuready.start("plan", inventory=path)  # and a good one does connect there
    until(lambda: listener.accepted, 60)
    process.terminate()
    assert gpuready.finish(process).code == 130
    assert gpuready("plan").code == gpuready("apply", "--yes").code == 64

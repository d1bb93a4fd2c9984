"""The collection for Ansible: it is built offline, and its roles and actions verify and plan recorded states."""

import json
import sys

import pytest
import yaml

from gpuready import __version__
from gpuready.model.state import NodeState
from tests.command import write_hosts, write_states
from tests.pages import ROOT, blocks
from tests.playbooks import PAGE, Ansible, recap

pytestmark = pytest.mark.long

#: The node has one GPU.
HOSTS = "all: {hosts: {gpu01: {gpuready: {}}, gpu02: {gpuready: {hardware: {gpus: 8}}}, other: {}}}\n"
#: A program that records its hosts in a line of the file runs, and that the test continues.
RECORD = f"""#!{sys.executable}
import os, pathlib, signal, sys, time
words = sys.argv[1:]
document = next(pathlib.Path(word[5:]) for word in words if word.startswith("json:"))
with open("runs", "a") as runs:
    print(*(after for word, after in zip(words, words[1:]) if word == "--limit"), file=runs)
"""
#: Without what the recorded node has of an older release.
ARGUMENTS = ["--state", "states.json", "--skip", "repository", "--skip", "toolkit"]


@pytest.fixture(scope="module")
def ansible(tmp_path_factory: pytest.TempPathFactory) -> Ansible:
    """Its folder has an inventory and recorded states."""
    found = Ansible(tmp_path_factory.mktemp("ansible"))
    write_hosts(found.folder, HOSTS)
    state = NodeState.model_validate_json((ROOT / "tests/data/h200-mounted-driver/state.json").read_bytes())
    write_states(found.folder / "states.json", dict.fromkeys(("gpu01", "gpu02"), state))
    return found


def program(ansible: Ansible, name: str, more: str | None) -> None:
    """Write a program to the folder of the playbook; without ``more``, it cannot be started."""
    path = ansible.folder / name
    path.write_text("?" if more is None else f"{RECORD}{more}\n")
    path.chmod(0o755)


def runs(ansible: Ansible) -> list[str]:
    """The hosts of each run of such a program, since the last time."""
    path = ansible.folder / "runs"
    found = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


#: gpuready itself.
GPUREADY = f"os.execv({sys.executable!r}, [sys.executable, '-m', 'gpuready', *words])"


def test_it_has_the_release_of_gpuready(ansible: Ansible) -> None:
    listed = json.loads(ansible("ansible-galaxy", "collection", "list", "gpuready.node", "--format", "json"))
    assert [each for found in listed.values() for each in found.values()] == [{"version": __version__}]
    shown = ansible("ansible-doc", "gpuready.node.apply", "gpuready.node.verify", "--json")
    assert {name: sorted(found["doc"]["options"]) for name, found in json.loads(shown).items()} == {
        f"gpuready.node.{verb}": ["arguments", "executable", "hosts", "inventory"] for verb in ("apply", "verify")
    }


def test_the_role_gives_each_host_its_result(ansible: Ansible) -> None:
    facts = {"copy": {"dest": str(ansible.folder / "facts.json"), "content": "{{ gpuready_host | to_json }}"},
             "delegate_to": "localhost", "when": "inventory_hostname == 'gpu01'"}  # fmt: skip
    play = {"roles": ["gpuready.node.verify"], "tasks": [facts], "vars": {"gpuready_arguments": ARGUMENTS}}
    output = ansible.play(play, code=2)
    # The role changed nothing; the task that writes the file did.
    assert recap(output) == {"gpu01": ("1", "0"), "gpu02": ("0", "1"), "other": ("0", "0")}, output
    assert "gpu.count: 1 of 8 GPUs seen" in output and "NOT OK: 3 hosts" in output
    host = json.loads((ansible.folder / "facts.json").read_text())
    assert (host["outcome"], host["failed"], host["message"]) == ("ok", False, "")
    assert host["checks"]["gpu.count"] == "warn"


def test_check_mode_plans(ansible: Ansible) -> None:
    that = ["not gpuready_host.components_changed", "gpuready_host.components_pending.toolkit == 'check mode'"]
    check = {"assert": {"that": that}, "when": "inventory_hostname == 'gpu01'"}
    play = {"roles": ["gpuready.node.apply"], "tasks": [check], "vars": {"gpuready_arguments": ARGUMENTS[:2]}}
    output = ansible.play(play, "--check", "--limit", "!gpu02")
    assert recap(output) == {"gpu01": ("1", "0"), "other": ("0", "0")} and "plan: 1 host" in output, output


def test_an_action_fails_if_a_host_fails(ansible: Ansible) -> None:
    task = {"gpuready.node.verify": {"arguments": ARGUMENTS}, "run_once": True, "register": "run"}
    output = ansible.play({"tasks": [{**task, "run_once": False}]}, code=2)
    assert output.count("fatal: [") == 1 and "failed: gpu02" in output, output  # it ran once all the same
    that = ["run.rc == 3", "not run.changed", "run.hosts.gpu02.failed", "not run.hosts.other.failed"]
    that += ["run.cmd is undefined"]  # the arguments may have what gpuready does not print
    ansible.play({"tasks": [task | {"ignore_errors": True}, {"assert": {"that": that}}]})


def test_a_pending_change_is_no_failure(ansible: Ansible) -> None:
    recorded = ROOT / "tests/data/results/pending.json"
    program(
        ansible,
        "waiting",
        f"""
document.write_text(pathlib.Path({str(recorded)!r}).read_text())
next(pathlib.Path(word[6:]) for word in words if word.startswith("junit:")).write_text("<testsuites/>")
sys.exit(7)
""",
    )
    that = [
        "run.rc == 7",
        "not run.failed",
        "run.hosts.gpu01.outcome == 'pending'",
        "run.hosts.gpu01.components_pending | length > 0",
    ]
    tasks = [{"gpuready.node.apply": {"executable": "./waiting"}, "register": "run"}, {"assert": {"that": that}}]
    ansible.play({"tasks": tasks}, "--limit", "gpu01")
    play = {"roles": ["gpuready.node.apply"], "vars": {"gpuready_executable": "./waiting"}}
    assert recap(ansible.play(play, "--limit", "gpu01"))["gpu01"][1] == "0"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"argument": []}, "Unsupported parameters"),
        ({"inventory": ["absent.yaml"]}, "absent.yaml: no such inventory; -i takes a file that exists; fix: "),
        ({"arguments": ["--no-such"]}, "No such option"),
        ({"executable": "absent"}, "absent: no such program on the control node; install gpuready there"),
        ({"executable": "true"}, "gpuready wrote no result; exit code 0"),
        ({"executable": "./hosts.yaml"}, "hosts.yaml: no such program"),
        ({"executable": "./broken"}, "/broken: Exec format error"),
        ({"executable": "./half"}, "gpuready wrote no result; exit code 7"),
        ({"executable": "./outside"}, "gpuready ran on hosts outside the play: gpu09"),
        ({"arguments": "--allow-disruption reload"}, "arguments: not a list; write [--allow-disruption, reboot]"),
        ({"arguments": ["--limit=gpu02"]}, "arguments: --limit is not possible here; the play chooses the hosts"),
        ({"arguments": ["-lgpu02"]}, "arguments: --limit is not possible here; the play chooses the hosts"),
    ],
)
def test_what_cannot_be_done_is_a_clear_error(given: dict[str, object], message: str, ansible: Ansible) -> None:
    tasks = {"tasks": [{"gpuready.node.verify": given}]}
    program(ansible, "broken", None)
    program(ansible, "half", "document.write_text('{')\nsys.exit(7)")
    program(
        ansible,
        "outside",
        """
document.write_text('{"error": null, "verb": "verify", "hosts": {"gpu09": {}}}')
document.with_name("junit.xml").write_text("<testsuites/>")
""",
    )
    output = ansible.play(tasks, code=2)
    assert message in output and "Traceback" not in output, output


def test_a_role_fails_by_itself_if_there_was_no_run(ansible: Ansible) -> None:
    play = {"roles": ["gpuready.node.verify"], "vars": {"gpuready_arguments": ["--no-such"]}}
    output = ansible.play(play, code=2)
    assert "No such option" in output and recap(output)["gpu01"] == ("0", "1")


def test_the_play_chooses_the_hosts(ansible: Ansible) -> None:
    """``when`` on a role chooses among them, also if an earlier role ran on all; without a host left, nothing runs."""
    program(ansible, "recorder", GPUREADY)
    runs(ansible)
    role = {"import_role": {"name": "gpuready.node.verify"}, "ignore_errors": True}
    some = {"name": "gpuready.node.verify", "apply": {"ignore_errors": True}}
    dynamic = {"include_role": some, "when": "inventory_hostname != 'gpu01'"}
    last = {"role": "gpuready.node.verify", "when": "inventory_hostname == 'gpu01'"}
    given = {"gpuready_arguments": ARGUMENTS, "gpuready_executable": "./recorder"}
    output = ansible.play({"pre_tasks": [role, dynamic], "roles": [last], "vars": given})
    assert runs(ansible) == ["gpu01 gpu02 other", "gpu02 other", "gpu01"], output

    action = {"gpuready.node.verify": {"arguments": ARGUMENTS, "executable": "./recorder"}}
    output = ansible.play({"tasks": [{"block": [{"fail": {}}], "always": [action]}]}, code=2)
    assert "no host of the play is left: all have failed" in output and runs(ansible) == [], output


def test_one_run_has_one_value_of_each_setting(ansible: Ansible) -> None:
    program(ansible, "recorder", GPUREADY)
    runs(ansible)
    given = {"gpuready_arguments": "{{ ['--passive'] if inventory_hostname == 'gpu02' else [] }}"}
    output = ansible.play(
        {"roles": ["gpuready.node.verify"], "vars": {**given, "gpuready_executable": "./recorder"}}, code=2
    )
    assert "gpuready_arguments differs between hosts; one run has one value." in output, output
    assert runs(ansible) == []


def test_a_host_that_only_the_playbook_knows_fails(ansible: Ansible) -> None:
    """And so does a role whose run failed by something else than a host. Paths are relative to the playbook."""
    added = {"add_host": {"name": "new"}}
    program(ansible, "recorder", GPUREADY)
    given: dict[str, object] = {"gpuready_arguments": ["--state", "../states.json", *ARGUMENTS[2:]]}
    given["gpuready_executable"] = "../recorder"
    run = {"import_role": {"name": "gpuready.node.verify"}, "vars": given}
    plays = [{"hosts": "localhost", "gather_facts": False, "tasks": [added]},
             {"hosts": "gpu01:new", "gather_facts": False, "tasks": [run]}]  # fmt: skip
    (ansible.folder / "plays").mkdir()
    (ansible.folder / "plays/added.yml").write_text(yaml.safe_dump(plays))
    output = ansible("ansible-playbook", "-i", "hosts.yaml", "plays/added.yml", code=2)
    assert (recap(output)["gpu01"], recap(output)["new"]) == (("0", "0"), ("0", "1")), output
    assert "gpuready does not find this host in the inventories: add it there" in output

    given = {"gpuready_arguments": [*ARGUMENTS, "--output", "html:/dev/full"]}
    output = ansible.play({"roles": ["gpuready.node.verify"], "vars": given}, "--limit", "gpu01", code=2)
    assert "failed: exit code 74" in output and recap(output) == {"gpu01": ("0", "1")}, output


def test_a_run_ends_by_itself_when_the_time_of_the_task_is_up(ansible: Ansible) -> None:
    program(
        ansible,
        "slow",
        """
def finish(*_):
    time.sleep(0.5)
    pathlib.Path("finished").touch()
    sys.exit(130)
signal.signal(signal.SIGINT, finish)
time.sleep(1)  # until the other one waits
os.kill(os.getppid(), signal.SIGALRM)
time.sleep(100)
""",
    )
    task = {"gpuready.node.apply": {"executable": "./slow"}, "timeout": 1000}
    output = ansible.play({"tasks": [task]}, "--limit", "gpu01", code=2)
    assert (ansible.folder / "finished").exists() and "imed out" in output, output


def test_the_task_of_the_guide_counts_what_changed(ansible: Ansible) -> None:
    """Also on a host where something else is pending."""
    (play,) = yaml.safe_load(blocks(PAGE, "yml")[2])
    rule = play["tasks"][0]["changed_when"]

    def result(*changed: bool) -> str:
        components = [{"name": "docker", "changed": each} for each in changed]
        return json.dumps(
            {"hosts": {"gpu01": {"outcome": "pending", "components": components}, "gpu02": {"components": []}}}
        )

    tasks = [
        {"set_fact": {"unused": 1}, "vars": {"gpuready": {"stdout": text}}, "changed_when": rule}
        for text in (result(True, False), result(False))
    ]
    assert recap(ansible.play({"tasks": tasks}, "--limit", "gpu01")) == {"gpu01": ("1", "0")}


def test_the_guides_playbooks_are_valid_and_have_hosts(ansible: Ansible) -> None:
    """But for the one whose modules are another collection's: see test_container.py."""
    valid = [text for text in blocks(PAGE, "yml") if "awx.awx." not in text]
    for number, text in enumerate(valid):
        (ansible.folder / f"guide-{number}.yml").write_text(text)
        words = ("-i", "hosts.yaml", "--syntax-check", "--list-hosts", f"guide-{number}.yml")
        assert "hosts (0)" not in ansible("ansible-playbook", *words), text
    assert len(valid) == 4

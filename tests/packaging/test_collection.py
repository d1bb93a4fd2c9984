"""The collection for Ansible: it is built offline, and its roles and actions verify and plan recorded states."""

import json

import pytest

from gpuready import __version__
from gpuready.model.state import NodeState
from tests.command import write_hosts, write_states
from tests.pages import ROOT, blocks
from tests.playbooks import PAGE, Ansible, recap

#: The node has one GPU.
HOSTS = "all: {hosts: {gpu01: {gpuready: {}}, gpu02: {gpuready: {hardware: {gpus: 8}}}, other: {}}}\n"
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


def test_it_has_the_release_of_gpuready(ansible: Ansible) -> None:
    listed = json.loads(ansible("ansible-galaxy", "collection", "list", "gpuready.node", "--format", "json"))
    assert [each for found in listed.values() for each in found.values()] == [{"version": __version__}]
    shown = ansible("ansible-doc", "gpuready.node.apply", "gpuready.node.verify", "--json")
    assert {name: sorted(found["doc"]["options"]) for name, found in json.loads(shown).items()} == {
        f"gpuready.node.{verb}": ["arguments", "executable", "inventory"] for verb in ("apply", "verify")
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
    play = {"roles": ["gpuready.node.apply"], "vars": {"gpuready_arguments": ARGUMENTS[:2]}}
    output = ansible.play(play, "--check", "--limit", "!gpu02")
    assert recap(output) == {"gpu01": ("1", "0"), "other": ("0", "0")} and "plan: 1 host" in output, output


def test_an_action_fails_if_a_host_fails(ansible: Ansible) -> None:
    task = {"gpuready.node.verify": {"arguments": ARGUMENTS}, "run_once": True, "register": "run"}
    output = ansible.play({"tasks": [{**task, "run_once": False}]}, code=2)
    assert output.count("fatal: [") == 1 and "failed: gpu02" in output, output  # it ran once all the same
    checked = {
        "assert": {"that": ["run.rc == 3", "not run.changed", "run.hosts.gpu02.failed", "not run.hosts.other.failed"]}
    }
    ansible.play({"tasks": [task | {"ignore_errors": True}, checked]})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"argument": []}, "Unsupported parameters"),
        ({"inventory": ["absent.yaml"]}, "absent.yaml: no such inventory; -i takes a file that exists; fix: "),
        ({"arguments": ["--no-such"]}, "No such option"),
        ({"executable": "absent"}, "absent: no such program on the control node; install gpuready there"),
        ({"executable": "true"}, "gpuready wrote no result; exit code 0"),
    ],
    ids=["parameter", "inventory", "option", "program", "other"],
)
def test_what_cannot_be_done_is_a_clear_error(given: dict[str, object], message: str, ansible: Ansible) -> None:
    tasks = {"tasks": [{"gpuready.node.verify": given}]}
    output = ansible.play(tasks, code=2)
    assert message in output and "Traceback" not in output, output


def test_a_role_fails_by_itself_if_there_was_no_run(ansible: Ansible) -> None:
    play = {"roles": ["gpuready.node.verify"], "vars": {"gpuready_arguments": ["--no-such"]}}
    output = ansible.play(play, code=2)
    assert "No such option" in output and recap(output)["gpu01"] == ("0", "1")


def test_the_guides_playbooks_are_valid(ansible: Ansible) -> None:
    for number, text in enumerate(blocks(PAGE, "yml")):
        (ansible.folder / f"guide-{number}.yml").write_text(text)
        ansible("ansible-playbook", "-i", "hosts.yaml", "--syntax-check", f"guide-{number}.yml")
    assert len(blocks(PAGE, "yml")) == 3

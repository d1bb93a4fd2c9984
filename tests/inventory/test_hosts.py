"""Whose hosts: gpuready connects only to hosts that somebody chose, and changes none that may not be a GPU node."""

import json
import re
import selectors
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuready import pyinfra as deploys
from gpuready.base.errors import InventoryError, SpecErrors
from gpuready.catalogue import BY_ID, CATALOGUE
from gpuready.cli.app import run
from gpuready.contract.check import concerning, undecided
from gpuready.inventory.hosts import THIS_MACHINE, UNCHOSEN, Hosts, NothingChosen, Skipped, load
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Driver, NodeState
from gpuready.result.exitcode import exit_code
from gpuready.result.human import human
from gpuready.result.model import HostResult, Run
from tests.command import VALIDATOR, Exits, write_states
from tests.model.probe_answers import h200
from tests.report.test_report_runs import STATE

Capture = pytest.CaptureFixture[str]


def written(folder: Path, text: str) -> str:
    (folder / "hosts.yaml").write_text(text)
    return str(folder / "hosts.yaml")


def names(found: Hosts) -> tuple[list[str], list[str]]:
    return [host.name for host in found.chosen], [host.name for host in found.skipped]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("all: {hosts: {a: {gpuready: {}}, b: }}", ["a"]),
        ("all: {hosts: {a: {gpuready: }, b: }}", ["a"]),
        ("all: {hosts: {a: {gpuready: {hardware: {gpus: 8}}}, b: {rack: 1}}}", ["a"]),
        ("all: {hosts: {b: }, children: {g: {hosts: {a: }, vars: {gpuready: {}}}}}", ["a"]),
        ("all: {hosts: {b: }, children: {g: {children: {k: {hosts: {a: }}}, vars: {gpuready: {}}}}}", ["a"]),
        ("all: {hosts: {a: , b: }, vars: {gpuready: {}}}", ["a", "b"]),
    ],
)
def test_a_value_chooses_a_host_also_an_empty_or_inherited_one(text: str, chosen: list[str], tmp_path: Path) -> None:
    found = load([written(tmp_path, text)])
    assert names(found) == (chosen, [name for name in ("b",) if name not in chosen])
    assert all(host.reason == UNCHOSEN for host in found.skipped)


def test_a_value_beside_the_inventory_chooses_a_host(tmp_path: Path) -> None:
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars" / "a.yml").write_text("gpuready: {}\n")
    assert names(load([written(tmp_path, "all: {hosts: {a: , b: }}")])) == (["a"], ["b"])


@pytest.mark.parametrize("source", ["a,", "root@a", "a:22,", "@local"])
def test_the_command_line_chooses_a_host_by_its_name(source: str, tmp_path: Path) -> None:
    inventory = written(tmp_path, "all: {hosts: {a: {ansible_user: ops}, b: }}")
    named = "@local" if source == "@local" else "a"
    chosen, skipped = names(load([inventory, source]))
    assert chosen == [named] and "b" in skipped
    assert load([source]).chosen[0].name == named


@pytest.mark.parametrize("limit", ["a", "a,b", "all", "g"])
def test_a_limit_only_narrows(limit: str, tmp_path: Path) -> None:
    inventory = written(tmp_path, "g: {hosts: {a: , b: }}\nk: {hosts: {c: {gpuready: {}}}}")
    if limit == "all":
        assert names(load([inventory], limit=[limit])) == (["c"], ["a", "b"])
        return
    with pytest.raises(NothingChosen) as caught:
        load([inventory], limit=[limit])
    assert caught.value.exit_code == 5 and "a" in {host.name for host in caught.value.skipped}
    assert names(load([inventory, "a,"], limit=[limit]))[0] == ["a"]


@pytest.mark.parametrize(
    ("limit", "chosen"),
    [
        ("gpu[03:04]", "gpu03 gpu04"),
        ("gpu[03-04]", "gpu03 gpu04"),
        ("gpu{03..04}", "gpu03 gpu04"),
        ("gpu[01-02,05],gpu07", "gpu01 gpu02 gpu05 gpu07"),
        ("gpu[07-12]", "gpu07 gpu08"),
        ("!gpu[02:08]", "gpu01"),
        ("g:&gpu[01:02]", "gpu01 gpu02"),
        ("g[2:3]", "gpu03 gpu04"),  # a subscript of a group
        ("g[2-3],!gpu[4,04]", "gpu03"),
        ("g:!gpu[01-02,05]", "gpu03 gpu04 gpu06 gpu07 gpu08"),  # this comma does not separate
    ],
)
def test_a_range_of_hosts_in_a_limit(limit: str, chosen: str, tmp_path: Path) -> None:
    inventory = written(tmp_path, "g: {hosts: {'gpu[01:08]': {gpuready: {}}}}")
    assert names(load([inventory], limit=[limit]))[0] == chosen.split()


@pytest.mark.parametrize("limit", ["gpu[3-4]", "gpu[1-2][3,4]", "gpu[01-]", "gpu[01]"])
def test_a_range_without_a_host_matches_none(limit: str, tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match=f"--limit {re.escape(limit)}: no host matches"):
        load([written(tmp_path, "g: {hosts: {'gpu[01:08]': {gpuready: {}}}}")], limit=[limit])


def test_a_subscript_that_looks_like_a_range_is_noted(tmp_path: Path) -> None:
    inventory = written(tmp_path, "gpu: {hosts: {'gpu[01:08]': {gpuready: {}}}}")
    found = load([inventory], limit=["gpu[03:04]"])
    assert names(found)[0] == ["gpu04", "gpu05"]
    assert found.chosen[0].notes == ("--limit gpu[03:04]: by position in gpu, from 0, as in Ansible: gpu[04-05]",)
    assert load([inventory], limit=["gpu[0:2]"]).chosen[0].notes == ()


LOCAL = "all:\n  vars: {gpuready: {}}\n  hosts:\n    gpu1:\n    NAME: {ansible_connection: local}\n"


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "'::1'"])
def test_ansibles_localhost_is_skipped_unless_it_is_chosen_itself(name: str, tmp_path: Path) -> None:
    """It is there for tasks on the controller; a gpuready value for all does not mean it."""
    bare, text = name.strip("'"), LOCAL.replace("NAME", name)
    found = load([written(tmp_path, text)])
    assert names(found) == (["gpu1"], [bare])
    assert (found.skipped[0].reason, found.skipped[0].notes) == (THIS_MACHINE, ())
    with pytest.raises(
        NothingChosen, match=f"{bare}: ansible_connection: local; gpuready reaches this machine only as"
    ):
        load([written(tmp_path, text)], limit=[f"{bare},"])
    chosen = text.replace("{ansible_connection: local}", "{ansible_connection: local, gpuready: {}}")
    (tmp_path / "own").mkdir()
    (tmp_path / "host_vars").mkdir()
    for sources in ([written(tmp_path / "own", chosen)], [written(tmp_path, text), f"{bare},"]):
        with pytest.raises(SpecErrors, match="ansible_connection: not accepted; given 'local'"):
            load(sources)
    (tmp_path / "host_vars" / f"{bare}.yml").write_text("gpuready: {}\n")
    with pytest.raises(SpecErrors, match="ansible_connection: not accepted; given 'local'"):
        load([written(tmp_path, text)])


def test_another_local_host_ends_the_run_and_the_message_says_how_to_leave_it_out(tmp_path: Path) -> None:
    source = written(tmp_path, LOCAL.replace("NAME", "gpu2"))
    with pytest.raises(
        SpecErrors, match=r"allowed: ssh; for this machine, -i @local; without this host, --limit '!gpu2'$"
    ):
        load([source])
    assert names(load([source], limit=["!gpu2"]))[0] == ["gpu1"]


WRONG = {
    "ansible_become_password: hunter2": "ansible_become_password: not supported",
    "ansible_connection: local": "ansible_connection: not accepted; given 'local'",
    "ansible_user: '{{ who }}'": "gpuready does not evaluate templates",
    "ansible_host: !vault x": "gpuready cannot decrypt ansible-vault values",
    "ansible_ssh_extra_args: -W x": "-W is not supported",
    "ansible_ssh_args: -o ProxyCommand=x": "ProxyCommand runs a command",
}


@pytest.mark.parametrize("row", WRONG)
def test_an_error_of_a_skipped_host_is_a_note(row: str, tmp_path: Path) -> None:
    rows = f"all:\n  hosts:\n    good: {{gpuready: {{}}}}\n    other:\n      {row}\n"
    found = load([written(tmp_path, rows)])
    assert names(found) == (["good"], ["other"]) and found.chosen[0].notes == ()
    (note,) = found.skipped[0].notes
    assert WRONG[row] in note and "hosts.yaml:5: " in note and "hunter2" not in note
    with pytest.raises(SpecErrors) as caught:
        load([written(tmp_path, f"{rows}      gpuready: {{}}\n")])
    assert str(caught.value) == note


class Listener:
    """Two ports that count who knocks."""

    def __init__(self) -> None:
        self.sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        self.ports = [one.getsockname()[1] for one in self.sockets]
        self.knocks = 0
        self._stop, self._told = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with selectors.DefaultSelector() as waiting:
            for one in (*self.sockets, self._told):
                waiting.register(one, selectors.EVENT_READ)
            while True:
                for key, _ in waiting.select():
                    if key.fileobj is self._told:
                        return
                    client, _ = key.fileobj.accept()  # type: ignore[union-attr]
                    self.knocks += 1
                    client.close()

    def close(self) -> None:
        self._stop.send(b"x")
        self._thread.join()
        for one in (*self.sockets, self._stop, self._told):
            one.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    one = Listener()
    yield one
    one.close()


def nobodys(folder: Path, listener: Listener, more: str = "") -> str:
    """db01 and web01, which listen, and which nobody chose."""
    rows = [
        f"    {name}: {{ansible_host: 127.0.0.1, ansible_port: {port}}}\n"
        for name, port in zip(("db01", "web01"), listener.ports, strict=True)
    ]
    return written(folder, f"all:\n  hosts:\n{''.join(rows)}{more}")


def gpuready(*runs: list[str]) -> list[tuple[int, dict[str, Any]]]:
    """Exit code and document of each run, as on the command line, in a process of its own."""
    code = (
        "import contextlib, io, json, sys\nfrom gpuready.cli.app import run\n"
        "for argv in json.loads(sys.argv[1]):\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as out:\n        code = run([*argv, '--output', 'json'])\n"
        "    print(json.dumps([code, json.loads(out.getvalue())]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(runs)], capture_output=True, text=True, timeout=300, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


ONLINE: list[list[str]] = [
    ["plan"], ["apply", "--yes"], ["verify"], ["record"], ["remove", "--yes"], ["nccl"], ["fabric"],
    ["compat", "--image-cuda", "12.4.1"], ["rdma", "list"], ["render", "docker"],
]  # fmt: skip


@pytest.mark.fault("whose-hosts")
def test_an_inventory_of_others_is_5_names_them_and_connects_to_nobody(tmp_path: Path, listener: Listener) -> None:
    inventory = nobodys(tmp_path, listener)
    runs = gpuready(*([*verb, "-i", inventory] for verb in ONLINE))
    assert len(runs) == len(ONLINE)
    for code, found in runs:
        VALIDATOR.validate(found)
        assert code == found["exit_code"] == 5
        assert {name: (h["outcome"], h["reason"], h["execs"]) for name, h in found["hosts"].items()} == {
            "db01": ("skipped", UNCHOSEN, 0),
            "web01": ("skipped", UNCHOSEN, 0),
        }
        assert found["error"]["kind"] == "inventory"
        assert "db01, web01: no gpuready value in the inventory" in found["error"]["message"]
        assert "`gpuready: {}`" in found["error"]["remedy"] and "-i gpu01," in found["error"]["remedy"]
    assert listener.knocks == 0


def test_trust_and_render_leave_them_alone(tmp_path: Path, listener: Listener, exits: Exits) -> None:
    inventory = nobodys(tmp_path, listener)
    assert run(["trust", "--yes", "-i", inventory]) == run(["render", "prometheus", "-i", inventory]) == 5
    inventory = nobodys(tmp_path, listener, "    gpu01: {gpuready: {monitoring: {}}, ansible_port: 1}\n")
    output = exits(0, "render", "prometheus", "-i", inventory)
    assert "db01" not in output.out and "skipped  db01,web01: no gpuready value in the inventory" in output.err
    assert "skipped  db01,web01" in exits(4, "trust", "--yes", "-i", inventory).err
    assert listener.knocks == 0


def test_the_plain_door_leaves_them_alone(tmp_path: Path, capsys: Capture) -> None:
    inventory = written(tmp_path, "all: {hosts: {db01: , gpu01: {gpuready: {}}}}\n")
    assert [name for name, _ in deploys.hosts(inventory)] == ["gpu01"]
    assert "skipped  db01: no gpuready value in the inventory" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="no host is chosen\ndb01: no gpuready value"):
        deploys.hosts(written(tmp_path, "all: {hosts: {db01: }}\n"))


CHOSEN = "    gpu01: {gpuready: {hardware: {gpus: none}}}\n"


def test_the_listener_notices_connections(tmp_path: Path, listener: Listener) -> None:
    inventory = nobodys(tmp_path, listener, "  vars: {gpuready: {}}\n")
    ((code, _),) = gpuready(["plan", "-i", inventory])
    assert code == 4
    assert listener.knocks > 1


def states(folder: Path, **hosts: NodeState) -> str:
    return write_states(folder / "states.json", hosts)


def asked(exits: Exits, code: int, verb: str, inventory: str, recorded: str) -> tuple[dict[str, Any], str]:
    """The result document, and the report for people."""
    argv = (verb, "-i", inventory, "--state", recorded)
    found = exits(code, *argv, "--output", "json").document
    assert found["exit_code"] == code
    return found, exits(code, *argv).out


def test_with_a_chosen_host_the_others_are_listed_and_do_not_count(
    tmp_path: Path, listener: Listener, exits: Exits
) -> None:
    more = "    odd: {ansible_become_password: hunter2}\n    gpu01: {gpuready: {}}\n"
    recorded = states(tmp_path, gpu01=h200())
    found, text = asked(exits, 0, "plan", nobodys(tmp_path, listener, more), recorded)
    assert found["error"] is None
    assert {name: host["outcome"] for name, host in found["hosts"].items()} == {
        "gpu01": "would_change",
        "db01": "skipped",
        "web01": "skipped",
        "odd": "skipped",
    }
    assert "ansible_become_password: not supported" in found["hosts"]["odd"]["notes"][0]
    assert "skipped  db01,web01,odd: no gpuready value in the inventory\n  fix:     add `gpuready: {}`" in text
    assert "note:    odd: " in text and "4 hosts: 1 would change, 3 skipped" in text
    assert listener.knocks == 0


def test_skipped_hosts_in_junit_and_json_lines(tmp_path: Path, listener: Listener, exits: Exits) -> None:
    recorded = states(tmp_path, gpu01=h200())
    argv = ["plan", "-i", nobodys(tmp_path, listener, CHOSEN), "--state", recorded, "--output"]
    junit = exits(0, *argv, "junit").out
    assert junit.count(f'<skipped message="{UNCHOSEN}" />') == 2
    lines = [json.loads(line) for line in exits(0, *argv, "jsonl").out.splitlines()]
    assert [line["host"] for line in lines if line.get("outcome") == "skipped"] == ["db01", "web01"]


# --- chosen, and no GPU is seen --------------------------------------------------------------------------------

BARE = STATE.model_copy(update={"driver": Driver()})
SILENT = "all: {hosts: {bare: , gpu01: }, vars: {gpuready: {}}}\n"


@pytest.mark.parametrize(
    ("driver", "seen"),
    [
        ({}, False),
        ({"pci": ("0000:00:06.0 0x030200 0x2335",)}, True),
        ({"pci": ("0000:00:06.0 0x030000 0x1234",)}, True),
        ({"pci": ("0000:00:06.0 0x068000 0x22a3",)}, False),
        ({"gpus": ("0000:00:06.0",)}, True),
        ({"nodes": ("/dev/nvidia0",)}, True),
        ({"nodes": ("/dev/nvidiactl", "/dev/nvidia-uvm")}, False),
        ({"smi": '<gpu id="00000000:00:06.0">'}, True),
        ({"smi": "<attached_gpus>0</attached_gpus>"}, False),
    ],
)
def test_how_a_gpu_is_seen(driver: dict[str, Any], seen: bool) -> None:
    state = NodeState(driver=Driver(**driver))
    assert bool(undecided(NodeSpec(), state)) is not seen
    for gpus in ("none", 8):
        assert not undecided(NodeSpec.model_validate({"hardware": {"gpus": gpus}}), state)


def test_plan_skips_a_host_without_a_visible_gpu(tmp_path: Path, exits: Exits) -> None:
    inventory, recorded = written(tmp_path, SILENT), states(tmp_path, bare=BARE, gpu01=h200())
    found, text = asked(exits, 0, "plan", inventory, recorded)
    assert found["hosts"]["gpu01"]["outcome"] == "would_change"
    bare = found["hosts"]["bare"]
    assert (bare["outcome"], bare["components"], bare["checks"]) == ("skipped", [], [])
    assert bare["reason"] == "no NVIDIA GPU is seen, and hardware.gpus is auto"
    assert "skipped  bare: no NVIDIA GPU is seen" in text and "fix:     write hardware: {gpus: none}" in text


def test_a_plan_with_only_such_hosts_has_nothing_to_do(tmp_path: Path, exits: Exits) -> None:
    inventory = written(tmp_path, "all: {hosts: {bare: {gpuready: {}}, db01: }}\n")
    found, text = asked(exits, 0, "plan", inventory, states(tmp_path, bare=BARE))
    assert {host["outcome"] for host in found["hosts"].values()} == {"skipped"}
    assert text.endswith("\nnothing to do; 2 hosts skipped; apply would end with exit 5\n")


def test_an_apply_with_only_such_hosts_fails() -> None:
    def ran(verb: str, *outcomes: str) -> Run:
        made = Run(verb, [HostResult(f"n{i}", outcome=outcome, reason="x") for i, outcome in enumerate(outcomes)])
        made.leave_alone([Skipped("db01", UNCHOSEN)])
        return made

    none = ran("apply", "skipped", "skipped")
    assert exit_code(none) == 5 and none.error is not None
    assert str(none.error) == "apply did nothing: no NVIDIA GPU is seen, and hardware.gpus is auto"
    assert "gpus: none" in none.error.remedy and "3 hosts: all 3 skipped" in human(none, 5)
    some = ran("apply", "skipped", "changed")
    assert exit_code(some) == 0 and "; 2 hosts skipped" in human(some, 0)
    assert exit_code(ran("plan", "skipped")) == 0


def test_verify_of_such_a_host_is_unknown(tmp_path: Path, exits: Exits) -> None:
    inventory = written(tmp_path, "all: {hosts: {bare: {gpuready: {}}}}\n")
    found, text = asked(exits, 3, "verify", inventory, states(tmp_path, bare=BARE))
    bare = found["hosts"]["bare"]
    assert bare["outcome"] == "ok" and bare["components"] == []
    assert [(check["id"], check["status"]) for check in bare["checks"]] == [("gpu.count", "unknown")]
    assert "set hardware: {gpus: none}" in text


def test_with_gpus_in_the_spec_such_a_host_is_planned(tmp_path: Path, exits: Exits) -> None:
    inventory = written(tmp_path, "all: {hosts: {bare: {gpuready: {hardware: {gpus: none}}}}}\n")
    found, _ = asked(exits, 0, "plan", inventory, states(tmp_path, bare=BARE))
    assert found["hosts"]["bare"]["outcome"] == "would_change"
    assert concerning(CATALOGUE, NodeSpec(), h200()) == CATALOGUE


# --- waivers ---------------------------------------------------------------------------------------------------


def waiver(folder: Path, check: str, until: str = "2999-01-01", host: str = "*") -> str:
    return written(
        folder,
        "all:\n  hosts: {gpu01: , gpu02: }\n  vars:\n    gpuready:\n      verify:\n        waive:\n"
        f"          - reason: RMA\n            until: {until}\n            host: '{host}'\n"
        f"            check: {check}\n",
    )


def test_a_waiver_for_no_check_is_an_error_at_its_line(tmp_path: Path, exits: Exits) -> None:
    recorded = states(tmp_path, gpu01=h200(), gpu02=h200())
    for verb in ("plan", "verify"):
        message = exits(5, verb, "-i", waiver(tmp_path, "gpu.cuont"), "--state", recorded).err
        assert "hosts.yaml:10: verify.waive[0].check: no such check; given 'gpu.cuont'" in message
        assert "did you mean 'gpu.count'?" in message
    assert run(["plan", "-i", waiver(tmp_path, "gpu.count"), "--state", recorded]) == 0


def test_every_check_can_be_waived(tmp_path: Path) -> None:
    for name in BY_ID:
        assert load([waiver(tmp_path, name)], check_ids=lambda: BY_ID).chosen


def test_an_expired_waiver_is_a_note(tmp_path: Path, exits: Exits) -> None:
    recorded = states(tmp_path, gpu01=h200(), gpu02=h200())
    inventory = waiver(tmp_path, "gpu.count", "2020-12-31", "*02")
    for verb, code in (("plan", 0), ("verify", 3)):
        found, text = asked(exits, code, verb, inventory, recorded)
        note = f"{inventory}:7: the waiver of gpu.count expired on 2020-12-31"
        assert note in found["hosts"]["gpu02"]["notes"] and note not in found["hosts"]["gpu01"]["notes"]
        assert "the waiver of gpu.count expired on 2020-12-31" in text

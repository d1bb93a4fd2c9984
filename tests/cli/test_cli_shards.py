"""``--shard`` and ``report --merge``: the shards of a run, joined, say what one run says."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuready.cli.app import run
from gpuready.gpu.stress import Node, Nodes
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.result.document import document
from gpuready.result.model import INTERRUPTED, AfterBatch, CheckResult, HostResult, Run, Shard
from gpuready.result.render import render
from tests.command import Exits, write_states
from tests.gpu.test_stress import TODAY, gpu
from tests.report.test_report_runs import DOCKER, component, host

STATE = Path(__file__).parents[1] / "data/h200-mounted-driver/state.json"
#: With three shards, rack a is in the first one, b in the second and c in the third.
RACKS = {"gpu01": "a", "gpu02": "b", "gpu03": "a", "gpu04": "c", "gpu05": "b", "gpu06": "a"}
FIRST = ["gpu01", "gpu03", "gpu06"]
Shards = Callable[..., list[Path]]


@pytest.fixture
def where(tmp_path: Path) -> tuple[object, ...]:
    """The inventory of six hosts in three racks, and of one that gpuready leaves alone; the states of five hosts."""
    spec = {"maintenance": {"spread_by": "rack", "batch": 4}}
    hosts: dict[str, Any] = {name: {"rack": rack, "gpuready": spec} for name, rack in RACKS.items()}
    (tmp_path / "hosts.yaml").write_text(json.dumps({"all": {"hosts": {"web": {}, **hosts}}}))
    state = NodeState.model_validate_json(STATE.read_bytes())
    states = write_states(tmp_path / "states.json", dict.fromkeys(list(RACKS)[:5], state))
    return "-i", tmp_path / "hosts.yaml", "--state", states


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    """Run a verb in so many shards; their documents."""

    def ran(verb: str, count: int, *words: object) -> list[Path]:
        paths = [tmp_path / f"{verb}-{index}-of-{count}.json" for index in range(1, count + 1)]
        for index, path in enumerate(paths, 1):
            run([verb, *map(str, words), "--shard", f"{index}/{count}", "--output", f"json:{path}"])
        return paths

    return ran


def same(text: str) -> str:
    """A result without times and durations."""
    text = re.sub(r'"seconds": [0-9.]+|"ended": "[^"]+"|\btime="[0-9.]+"', "", text)
    return re.sub(r"[0-9.]+ s\b", "", text)


# --- what one shard is


def test_a_shard_has_whole_racks_and_shows_what_it_may_use(where: tuple[object, ...], exits: Exits) -> None:
    found = exits(6, "plan", *where, "--shard", "1/3", "--output", "json").document
    assert list(found["hosts"]) == [*FIRST, "web"] and found["shard"]["index"] == 1 and found["shard"]["count"] == 3
    assert found["shard"]["hosts"] == {name: "abc".index(rack) + 1 for name, rack in RACKS.items()}
    assert found["shard"]["budgets"] == ["2 of maintenance.batch 4"]  # 4 of three shards: 2, 1 and 1
    text = exits(6, "plan", *where, "--shard", "1/3", "--batch", "5").out
    assert "\n  budget:  shard 1/3 has 2 of --batch 5; 2 of maintenance.batch 4\n" in text
    assert f"states from {where[-1]}, shard 1/3, 2 probed" in text.splitlines()[0]


def test_shards_without_hosts_have_no_part_of_a_budget(where: tuple[object, ...], shards: Shards) -> None:
    """Three racks are in three of four shards."""
    found = [json.loads(path.read_text()) for path in shards("plan", 4, *where, "--batch", "5")]
    assert [len(each["hosts"]) - ("web" in each["hosts"]) for each in found] == [3, 0, 1, 2]
    budgets = [each["shard"].get("budgets", [])[:1] for each in found]
    assert budgets == [[f"{part} of --batch 5"] if part else [] for part in (2, 0, 2, 1)]


def test_a_shard_that_may_change_no_host_names_the_hosts(where: tuple[object, ...], exits: Exits) -> None:
    one = exits(0, "plan", *where, "--shard", "2/3", "--batch", "1")
    assert "shard 2/3 has 0 of --batch 1" in one.out and "note:    gpu[02,05]: this shard may change no host" in one.out
    found = exits(0, "plan", *where, "--shard", "2/3", "--batch", "1", "--output", "json").document
    assert found["batches"] == [] and [each["outcome"] for each in found["hosts"].values()] == ["would_change"] * 2


def test_hosts_are_listed_by_shard(where: tuple[object, ...], exits: Exits) -> None:
    listed = [exits(0, "plan", *where[:2], "--shard", f"{index}/3", "--list-hosts").out.split() for index in (1, 2, 3)]
    assert listed == [FIRST, ["gpu02", "gpu05"], ["gpu04"]]
    assert exits(0, "plan", *where[:2], "--shard", "1/3", "--limit", "gpu0[1:2]", "--list-hosts").out == "gpu01\n"


@pytest.mark.parametrize("argv", [
    ("plan",), ("apply", "--yes"), ("verify",), ("verify", "--level", "stress"), ("remove", "--yes"), ("status",),
    ("record", "--output", "human"), ("inventory",), ("compat", "--image-cuda", "12.4.1"), ("render", "docker"),
], ids=" ".join)  # fmt: skip
def test_an_empty_shard_has_nothing_to_do(argv: tuple[str, ...], where: tuple[object, ...], exits: Exits) -> None:
    told = exits(0, *argv, *where[:2], "--shard", "2/3", "--limit", "gpu04,web")
    listed = "0 hosts chosen, 0 skipped (shard 2/3)"
    assert (listed if argv[0] == "inventory" else "OK: nothing to do, shard 2/3 has no host") in told.out
    assert not told.err
    argv = argv[:1] if argv[0] == "record" else argv
    found = exits(0, *argv, *where[:2], "--shard", "2/3", "--limit", "gpu04,web", "--output", "json").document
    assert found["hosts"] == {} and found["shard"]["hosts"] == {"gpu04": 3}


def test_other_empty_shards(where: tuple[object, ...], exits: Exits) -> None:
    assert exits(0, "trust", *where[:2], "--shard", "2/3", "--limit", "gpu04").out == "0 keys stored\n"
    assert exits(0, "plan", *where[:2], "--shard", "2/3", "--limit", "gpu04", "--list-hosts").out == ""
    assert "nothing to do" in exits(0, "plan", *where, "--shard", "2/3", "--limit", "gpu04").out
    bare = (*where[:3], STATE, "--shard", "2/3", "--limit", "gpu04")  # a state of one host, without its name
    assert "nothing to do" in exits(0, "verify", *bare).out
    junit = exits(0, "verify", *where, "--shard", "2/3", "--limit", "gpu04", "--output", "junit").out
    assert 'tests="1" failures="0" errors="0"' in junit


def test_a_limit_that_matches_nothing_is_still_an_error(where: tuple[object, ...], exits: Exits) -> None:
    assert "no host matches" in exits(5, "plan", *where, "--shard", "1/3", "--limit", "gpu99").err
    assert "no host is chosen" in exits(5, "plan", *where, "--shard", "1/3", "--limit", "web").err


@pytest.mark.parametrize("argv", [("fabric",), ("nccl",), ("rdma", "list")], ids=" ".join)
def test_verbs_that_look_at_hosts_together_refuse_a_shard(argv: tuple[str, ...], where: Any, exits: Exits) -> None:
    told = exits(64, *argv, *where[:2], "--shard", "1/3")
    assert f"gpuready {' '.join(argv)} does not accept --shard: " in told.err and "leave out --shard" in told.err


# --- joined


@pytest.mark.parametrize(("verb", "count"), [("verify", 3), ("verify", 4), ("plan", 3), ("plan", 1), ("status", 3)])
def test_shards_joined_are_one_run(
    verb: str, count: int, where: tuple[object, ...], shards: Shards, exits: Exits, tmp_path: Path
) -> None:
    forms = ("json", "human") if verb == "status" else ("json", "human", "junit", "github")
    argvs = {"one": (verb, *where), "joined": ("report", "--merge", *reversed(shards(verb, count, *where)))}
    for name, argv in argvs.items():
        exits(6, *argv, *(word for form in forms for word in ("--output", f"{form}:{tmp_path / name}.{form}")))
    one, joined = (json.loads((tmp_path / f"{name}.json").read_text()) for name in argvs)
    assert list(joined["hosts"]) == list(one["hosts"]) and _plain(joined) == _plain(one)
    for form in forms[1:]:
        whole, other = ((tmp_path / f"{name}.{form}").read_text() for name in argvs)
        assert _plain_text(other) == _plain_text(whole), form


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """A document without its times, and without the batches: those of shards run side by side."""
    hosts = {name: {**each, "seconds": 0} for name, each in found["hosts"].items()}
    return {**found, "hosts": hosts, "seconds": 0, "ended": "", "batches": []}


def _plain_text(text: str) -> str:
    """A text without the same."""
    text = re.sub(r'\btime="[0-9.]+"|[0-9.]+ s\b', "", text)
    return re.sub(r"in [0-9]+ batches, .*\n  hosts: .*\n(?:  why: .*\n)?\n", "", text)


def test_batches_of_shards_run_side_by_side(where: tuple[object, ...], shards: Shards, exits: Exits) -> None:
    paths = shards("plan", 3, *where, "--batch", "3")
    found = exits(6, "report", "--merge", *paths, "--output", "json").document
    assert found["batches"] == [["gpu01", "gpu02", "gpu04"], ["gpu03", "gpu05"]] and "shard" not in found


def test_the_exit_code_is_that_of_one_run(where: tuple[object, ...], shards: Shards, exits: Exits) -> None:
    words = (*where, "--limit", "!gpu06", "--detailed-exitcode")
    exits(2, "plan", *words)
    exits(2, "report", "--merge", *shards("plan", 4, *words))
    exits(0, "report", "--merge", *shards("plan", 4, *words[:-1]))
    exits(3, "report", "--merge", *shards("verify", 4, *words[:-1]))


# --- what is missing or does not fit


def test_missing_shards_and_their_hosts_are_named(where: tuple[object, ...], shards: Shards, exits: Exits) -> None:
    paths = shards("verify", 3, *where, "--limit", "!gpu06")
    told = exits(6, "report", "--merge", paths[0], "--output", "human").out
    assert "note:    gpu[02,05]: shard 2/3 is missing: its result was not given" in told
    assert "note:    gpu04: shard 3/3 is missing: its result was not given" in told
    assert "2 differ, 3 NOT ATTEMPTED, 1 skipped" in told
    junit = exits(6, "report", "--merge", *paths[1:], "--output", "junit").out
    assert junit.count('<error message="not attempted"') == 2
    empty = shards("verify", 4, *where, "--limit", "gpu04")  # no host is missing without the other three
    exits(3, "report", "--merge", empty[int(_index_of(empty))])


def _index_of(paths: list[Path]) -> int:
    """The number of the document that has a host."""
    return next(number for number, path in enumerate(paths) if json.loads(path.read_text())["hosts"])


def test_documents_that_are_not_of_one_run(where: tuple[object, ...], shards: Shards, exits: Exits) -> None:
    first, second, _ = shards("verify", 3, *where)
    other = shards("verify", 4, *where)[1]
    plan = shards("plan", 3, *where)[1]

    def refused(*paths: Path, code: int = 64) -> str:
        return exits(code, "report", "--merge", *paths).err

    assert f"{first} and {first} are both shard 1/3" in refused(first, first)
    assert f"{first} is a result of verify, and {plan} of plan" in refused(first, plan)
    assert f"{first} is shard 1/3, and {other} is shard 2/4" in refused(first, other)
    (newer := first.with_name("newer.json")).write_text(second.read_text())
    shards("verify", 3, *where, "-e", "ldso=off")
    assert f"{newer} and {first} are not of one run: the hosts, their specs, the options or the releases" in refused(
        newer, first
    )
    shards("verify", 3, *where, "--limit", "!gpu04")
    assert f"{newer} and {first} are not of one run" in refused(newer, first)

    hosts = Path(str(where[1]))
    text = hosts.read_text()
    hosts.write_text(text.replace('"rack": "c"', '"rack": "b"'))  # the specs are the same
    shards("verify", 3, *where)
    assert f"{newer} and {first} are not of one run" in refused(newer, first)
    hosts.write_text(text)

    found = json.loads(newer.read_text())
    found["hosts"]["gpu01"] = found["hosts"]["gpu02"]
    newer.write_text(json.dumps(found))
    first = shards("verify", 3, *where)[0]
    assert f"host gpu01 is in {first} and in {newer}" in refused(first, newer)

    whole = first.with_name("whole.json")
    exits(6, "verify", *where, "--output", f"json:{whole}")
    assert f"{whole} is not the result of a shard\n" in refused(whole)
    exits(5, "verify", *where, "--shard", "1/3", "--limit", "gpu99", "--output", f"json:{whole}")
    assert f"{whole} is not the result of a shard, and its run failed: --limit gpu99: no host matches" in refused(whole)


# --- runs of shards that were interrupted, skipped, or loaded GPUs


def joined(exits: Exits, folder: Path, code: int, *runs: Run) -> Any:
    """The joined document of these runs, shard by shard."""
    hosts = {each.name: number for number, run in enumerate(runs, 1) for each in run.hosts}
    paths = []
    for number, each in enumerate(runs, 1):
        each.shard = Shard(number, len(runs), hosts, "0" * 64)
        each.conclude()
        paths.append(folder / f"{number}.json")
        paths[-1].write_text(render(each, 0, "json"))
    return exits(code, "report", "--merge", *paths, "--output", "json").document


def test_the_commands_after_the_batches_of_all_shards(exits: Exits, tmp_path: Path) -> None:
    runs = [
        Run("apply", [host(name, "ok")], after_batch=[AfterBatch((name,), 0, 1.0, f"healthy {name}")])
        for name in ("a", "b")
    ]
    found = joined(exits, tmp_path, 0, *runs)
    assert [each["output"] for each in found["after_batch"]] == ["healthy a", "healthy b"]


def test_an_interrupted_shard_interrupts_the_run(exits: Exits, tmp_path: Path) -> None:
    cut = Run("apply", [host("b", "not_attempted")], error=INTERRUPTED)
    found = joined(exits, tmp_path, 130, Run("apply", [host("a", "changed", component(DOCKER, changed=True))]), cut)
    assert found["error"]["message"] == f"shard 2/2: {INTERRUPTED.message}" and found["error"]["kind"] == "interrupted"
    assert [each["outcome"] for each in found["hosts"].values()] == ["changed", "not_attempted"]


def test_an_apply_that_skipped_all_hosts_of_all_shards_is_an_error(exits: Exits, tmp_path: Path) -> None:
    """Of one shard it is none: other shards may have hosts to work on."""

    def skipping(name: str) -> Run:
        return Run("apply", [HostResult(name, outcome="skipped", probed=True, reason="no GPU")])

    assert joined(exits, tmp_path, 5, skipping("a"), skipping("b"))["error"]["kind"] == "inventory"
    assert json.loads((tmp_path / "1.json").read_text())["error"] is None
    found = joined(exits, tmp_path, 0, skipping("a"), Run("apply", [host("b", "ok")]))
    assert found["error"] is None


SPECS = {
    "slow": NodeSpec(),
    "waived": NodeSpec.model_validate(
        {"verify": {"waive": [{"check": "stress.compute", "reason": "on order", "until": "2999-01-01"}]}}
    ),
}


def _loaded(nodes: dict[str, list[float]], of: list[str]) -> Run:
    """A run that loaded these hosts, and judged them by themselves."""
    measured = {name: Node(gpus=[gpu(index, value) for index, value in enumerate(nodes[name])]) for name in of}
    if "odd" in measured:
        measured["odd"].wrong = ["GPU 1: 3 uncorrectable memory errors"]  # what is wrong by itself stays so
    hosts = []
    for name, node in measured.items():
        spec = SPECS.get(name, NodeSpec())
        each = HostResult(name, outcome="ok", probed=True)
        each.parts = {"stress": tuple(node.gpus), "verify": spec.verify.model_dump(mode="json", exclude_defaults=True)}
        each.checks = [CheckResult.of(judged) for judged in Nodes(measured).judge(name, spec, TODAY)]
        hosts.append(each)
    return Run("verify", hosts)


def test_gpus_are_compared_over_all_shards(exits: Exits, tmp_path: Path) -> None:
    """A node whose GPUs are all slow is an outlier only among others; one slow of two may be usual for the model."""
    nodes: dict[str, list[float]] = {f"n{number}": [700.0, 702.0] for number in range(6)}
    nodes |= {"slow": [500.0, 501.0], "waived": [500.0, 499.0], "odd": [702.0, 640.0]}
    names = list(nodes)
    whole = _loaded(nodes, names)
    parts = [_loaded(nodes, part) for part in (names[:6], names[6:8], names[8:])]
    alone = {each.name: [check.status for check in each.checks] for part in parts for each in part.hosts}
    compute = 1
    assert (alone["slow"][compute], alone["waived"][compute]) == ("pass", "pass")
    found = joined(exits, tmp_path, 3, *parts)
    assert found["hosts"] == document(whole, 3)["hosts"]
    statuses = {name: each["checks"][compute]["status"] for name, each in found["hosts"].items()}
    assert statuses == {**dict.fromkeys(names, "pass"), "slow": "fail", "waived": "warn"}
    assert found["hosts"]["odd"]["checks"][0]["status"] == "fail"


def test_a_document_with_an_impossible_spec_is_refused(exits: Exits, tmp_path: Path) -> None:
    run = _loaded({"a": [700.0, 702.0]}, ["a"])
    run.hosts[0].parts["verify"] = {"thresholds": {"all_reduce": "fast"}}
    run.shard = Shard(1, 1, {"a": 1}, "0" * 64)
    (tmp_path / "odd.json").write_text(render(run, 0, "json"))
    assert "hosts.a.verify.thresholds.all_reduce: " in exits(5, "report", "--merge", tmp_path / "odd.json").err

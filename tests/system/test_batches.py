"""Many hosts: one proves the change before others follow, and none follows one that went wrong."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import Lab, Machine
from tests.system.faults import extended, lossy, settled
from tests.system.harness import Gpuready, Inventories, Result

#: apt asks this before it lets dpkg begin.
BREAK = 'DPkg::Pre-Install-Pkgs {"exit 1";};\n'
RACKS = ("a", "a", "b", "b")


@pytest.fixture(scope="module")
def four(lab: Lab) -> Iterator[list[Machine]]:
    with lab.machine("debian13") as a, lab.machine("debian12") as b, lab.machine() as c, lab.machine() as d:
        yield [a, b, c, d]


def outcomes(result: Result, machines: list[Machine]) -> list[str]:
    return [result.host(machine.name)["outcome"] for machine in machines]


def order(result: Result) -> list[str]:
    """The hosts in the order in which their packages were begun."""
    rows = [line.split("  ") for line in result.stderr.splitlines()]
    return [row[-2].split()[-1] for row in rows if len(row) > 1 and row[-1].startswith("install 1.")]


@pytest.mark.promise
def test_one_first_and_none_after_one_that_fails(
    four: list[Machine], gpuready: Gpuready, inventory: Inventories
) -> None:
    names = [machine.name for machine in four]
    where = inventory(four)
    broken = four[1].root / "etc/apt/apt.conf.d/99test"
    broken.write_text(BREAK)

    # Installing could hit running containers, so by default one goes first, and then a quarter of the four.
    plan = gpuready("plan", inventory=where)
    assert plan.document["batches"] == [[name] for name in names], plan.explain()
    shown = gpuready("plan", inventory=where, check_json=False).stdout
    assert "in 4 batches, one after another" in shown and f"1: {names[0]}; 2: {names[1]}" in shown
    first = gpuready("apply", "--yes", inventory=where, code=1)
    assert outcomes(first, four) == ["changed", "failed", "not_attempted", "not_attempted"], first.explain()
    assert order(first) == names[:2]
    note = f"not begun: {names[1]} failed, and --max-fail is 0"
    assert [note in first.host(name)["notes"] for name in names] == [False, False, True, True]
    assert [first.host(name)["execs"] for name in names[2:]] == [1, 1]
    assert not any(first.changed(name) for name in names[2:])
    four[2].run("! test -e /usr/bin/nvidia-ctk && ! test -e /etc/apt/keyrings/gpuready-nvidia-container-toolkit.asc")

    # One failure is borne: the batch after it runs, both hosts of it at once.
    second = gpuready("apply", "--yes", "--batch", "1,100%", "--max-fail", "1", inventory=where)
    assert outcomes(second, four) == ["ok", "failed", "changed", "changed"], second.explain()
    assert second.document["batches"] == [[names[1]], names[2:]]
    # As many scripts as for the host that was converged alone.
    assert {second.host(name)["execs"] for name in names[2:]} == {first.host(names[0])["execs"]}

    broken.unlink()
    third = gpuready("apply", "--yes", inventory=where, code=0)
    assert outcomes(third, four) == ["ok", "changed", "ok", "ok"], third.explain()
    settled(gpuready, where)


def test_a_rack_never_goes_at_once(four: list[Machine], gpuready: Gpuready, inventory: Inventories) -> None:
    """The way back is in batches as well; what needs no consent goes to all at once."""
    where = inventory(four, maintenance={"batch": "50%", "spread_by": "rack"})
    a, b, c, d = (machine.name for machine in four)
    extended(where, {name: {"rack": rack} for name, rack in zip((a, b, c, d), RACKS, strict=True)})

    words = ("--yes", "--only", "docker", "--allow-disruption", "reload")
    calm = gpuready("remove", *words, inventory=where, code=7)
    assert calm.document["batches"] == [[a, b, c, d]], calm.explain()
    gone = gpuready("remove", "--yes", inventory=where, code=0)
    assert gone.document["batches"] == [[a, c], [b, d]], gone.explain()

    extended(where, {d: {"rack": None}})
    message = gpuready("plan", inventory=where, code=5).document["error"]["message"]
    assert f"maintenance.spread_by: host {d} has no plain value for the variable rack" in message
    assert "rack: NAME for every host" in message


def test_shards_side_by_side_are_one_run(
    four: list[Machine], gpuready: Gpuready, inventory: Inventories, tmp_path: Path
) -> None:
    """Three runs at the same time: rack a, with two hosts, is the first shard. They keep within one budget of three."""
    where = inventory(four, maintenance={"batch": 3, "spread_by": "rack"})
    names = [machine.name for machine in four]
    extended(where, {name: {"rack": rack} for name, rack in zip(names, "aabc", strict=True)})

    def in_shards(verb: str, *words: str, code: int) -> Result:
        """The joined result, whose shards ran side by side."""
        paths = [tmp_path / f"{verb}{number}.json" for number in (1, 2, 3)]
        runs = [
            gpuready.start(verb, *words, "--shard", f"{number}/3", "--output", f"json:{path}", inventory=where,
                           json_output=False)
            for number, path in enumerate(paths, 1)
        ]  # fmt: skip
        for run in runs:
            gpuready.finish(run, check_json=False)
        return joined(*paths, name=verb, code=code)

    def joined(*paths: Path, name: str, code: int) -> Result:
        return gpuready("report", "--merge", *map(str, paths), *outputs(name), code=code)

    def outputs(name: str) -> list[str]:
        return [word for form in ("junit", "human") for word in ("--output", f"{form}:{tmp_path / name}.{form}")]

    gpuready("remove", "--yes", inventory=where)
    plan = in_shards("plan", code=0)
    assert plan.document["batches"] == [[names[0], names[2], names[3]], [names[1]]], plan.explain()
    applied = in_shards("apply", "--yes", code=0)
    assert outcomes(applied, four) == ["changed"] * 4 and list(applied.document["hosts"]) == names
    assert applied.document["batches"] == plan.document["batches"], applied.explain()
    settled(gpuready, where)

    four[2].run("apt-mark unhold nvidia-container-toolkit")  # so that verify finds something
    four[3].run("systemctl stop ssh")
    whole = gpuready("verify", "--passive", *outputs("whole"), inventory=where)
    parts = in_shards("verify", "--passive", code=whole.code)
    assert whole.code == 4 and outcomes(parts, four) == ["ok", "ok", "would_change", "unreachable"], parts.explain()
    for form in ("junit", "human"):
        one, other = (
            re.sub(
                r'(?m)time="[0-9.]+"|[0-9.]+ s\b|^(?:next|again): .*\n+', "", (tmp_path / f"{name}.{form}").read_text()
            )
            for name in ("whole", "verify")
        )
        assert other == one, form
    lost = joined(tmp_path / "verify1.json", tmp_path / "verify3.json", name="lost", code=4)
    assert "shard 2/3 is missing: its result was not given" in lost.host(names[2])["notes"], lost.explain()


@pytest.mark.fault("packet-loss")
def test_a_host_that_loses_packets_is_changed_and_verified_as_the_others(
    four: list[Machine], gpuready: Gpuready, inventory: Inventories
) -> None:
    three, only = four[:3], ("--only", "ldso")
    where = extended(inventory(three, ldso=["/opt/driver/lib"]), ansible_ssh_timeout=60)  # it may lose three SYN
    for machine in three:
        machine.run("mkdir -p /opt/driver/lib")

    def checks(result: Result) -> list[list[tuple[str, str]]]:
        return [[(c["id"], c["status"]) for c in result.host(m.name)["checks"]] for m in three]

    with lossy(three[1], 0.05) as lost:
        changed = gpuready("apply", "--yes", *only, inventory=where)
        plan = gpuready("plan", *only, inventory=where, code=0)
        verified = gpuready("verify", *only, inventory=where)
        assert lost() > 0
    assert outcomes(changed, three) == ["changed"] * 3, changed.explain()
    assert outcomes(plan, three) == outcomes(verified, three) == ["ok"] * 3, verified.explain()
    for result in (changed, plan, verified):
        assert len({result.host(m.name)["execs"] for m in three}) == 1, "TCP repeats what is lost, and not gpuready"
    without = gpuready("verify", *only, inventory=where)
    assert (verified.code, checks(verified)) == (without.code, checks(without))

"""Verdicts of a rack's clique and of IMEX: posted texts of nvidia-smi -q, and hosts of one run beside each other."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuready.base.facts import Answer
from gpuready.gpu import imex
from gpuready.gpu.imex import NODES, AskImex, Member
from gpuready.model.network import NetDevice, Network
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from tests.command import Exits, write_states
from tests.gpu.test_gpu_verdicts import COMPLETE, STUCK, XML, board, rack, said, smi
from tests.model.probe_answers import h200
from tests.verdicts import Row, fails, held, is_unknown, one, passes, root_files, skips, warns

POSTED = yaml.safe_load((Path(__file__).parents[1] / "data/racks/fabric.yaml").read_text("utf-8"))
#: The elements of nvidia-smi -q -x for the names of nvidia-smi -q.
ELEMENTS = {
    "State": "fabric/state", "Status": "fabric/status", "CliqueId": "fabric/cliqueId",
    "ClusterUUID": "fabric/clusterUuid", "Summary": "health/summary", "Bandwidth": "health/bandwidth",
}  # fmt: skip
ONE, TWO = "9c6f5af3-53bf-49b5-a436-b66766c413c3", "dc6e40c4-d722-4357-9ba6-5291dd461278"


def fabric(uuid: str = ONE, clique: str = "4026", **fields: Any) -> NodeState:
    """A node of a rack whose GPU is in this clique."""
    return rack(said(*COMPLETE, ("fabric/cliqueId", clique), ("fabric/clusterUuid", uuid)), **fields)


def asked(rc: int, out: str) -> dict[str, Any]:
    return {"active": {"imex": Answer(rc=rc, out=out)}}


def split() -> NodeState:
    """Two GPUs of a node in two cliques."""
    xml = fabric().driver.smi
    a, b = xml.index("\t<gpu id"), xml.index("</gpu>") + len("</gpu>\n")
    other = xml[a:b].replace("00:06.0", "00:07.0").replace("4026", "2")
    state = fabric()
    return state.model_copy(update={"driver": state.driver.model_copy(update={"smi": xml[:b] + other + xml[b:]})})


DRA = ("dra_imex",)
VERDICTS: list[Row] = [
    passes("gpu.clique", f"1 GPU in clique 4026 of cluster {ONE}", fabric()),
    skips("gpu.clique", "not in a GB200", h200()),
    skips("gpu.clique", "not in a GB200", board(said(*COMPLETE))),
    fails("gpu.clique", "1 of 1 GPUs have no cluster UUID", rack(said(*COMPLETE))),
    fails("gpu.clique", f"in 2 cliques: 1 in clique 4026 of cluster {ONE}; 1 in clique 2", split()),
    is_unknown("gpu.clique", "no answer", rack(smi(XML, driver={"smi": STUCK}))),
    skips("driver.imex", "not in a GB200 or GB300 rack", h200()),
    skips("driver.imex", "not in a GB200 or GB300 rack", rack(h200(), imex="")),  # in no fabric
    passes("driver.imex", "is active", fabric()),
    warns("driver.imex", "there is no /dev/nvidia-caps-imex-channels/channel0", fabric(marks=())),
    fails("driver.imex", "is failed", fabric(imex="failed", enabled="disabled")),
    fails("driver.imex", "is inactive", fabric(imex="inactive")),
    warns("driver.imex", "is inactive", fabric(imex="inactive", enabled="disabled")),
    warns("driver.imex", "IMEX is not installed", fabric(imex="")),
    warns("driver.imex", "is failed", rack(h200(), imex="failed")),
    skips("driver.imex", "is not enabled", rack(h200(), imex="inactive", enabled="disabled")),
    skips("driver.imex", "DRA driver starts IMEX", fabric(imex="failed", enabled="disabled", marks=DRA)),
    skips("driver.imex", "DRA driver starts IMEX", fabric(imex="", marks=DRA)),
    warns("driver.imex", "is active, but Kubernetes' DRA driver on this node starts its own", fabric(marks=DRA)),
    warns("driver.imex", "starts at the next boot, but", fabric(imex="inactive", marks=DRA)),
    is_unknown("driver.imex", "no answer", fabric(packages=STUCK)),
    is_unknown("driver.imex", "no answer", rack(smi(XML, driver={"smi": STUCK}))),
    passes("driver.imex_nodes", "names 2 nodes, this one among them", fabric()),
    passes("driver.imex_nodes", "names 1 node", fabric(files=root_files({NODES: "# rack 1\n10.0.0.1 # n1\n\n"}))),
    skips("driver.imex_nodes", "not in a GB200", h200()),
    skips("driver.imex_nodes", "is not enabled", fabric(imex="inactive", enabled="disabled")),
    skips("driver.imex_nodes", "DRA driver", fabric(marks=DRA)),
    skips("driver.imex_nodes", "names instead of addresses", fabric(files=root_files({NODES: "node1\nnode2\n"}))),
    skips("driver.imex_nodes", "names instead of addresses", fabric(files=root_files({NODES: "c01\nc02\n"}))),
    warns("driver.imex_nodes", f"there is no {NODES}", fabric(files={})),
    fails("driver.imex_nodes", "names no node", fabric(files=root_files({NODES: "# none yet\n"}))),
    fails("driver.imex_nodes", "has 1 address, but not this node's", fabric(files=root_files({NODES: "10.0.0.2\n"}))),
    is_unknown("driver.imex_nodes", "no answer", fabric(network=STUCK)),
    passes("driver.imex_ready", "IMEX is READY", fabric(**asked(0, "READY\n"))),
    fails("driver.imex_ready", "IMEX is WAITING_FOR_PEERS", fabric(**asked(0, "WAITING_FOR_PEERS\n"))),
    fails("driver.imex_ready", "silent (exit 1)", fabric(**asked(1, ""))),
    is_unknown("driver.imex_ready", "gives no answer", fabric(**asked(124, "no answer within 15 s\n"))),
    is_unknown("driver.imex_ready", "there is no nvidia-imex-ctl", fabric()),
    skips("driver.imex_ready", "see driver.imex", fabric(imex="failed")),
    skips("driver.imex_ready", "is not enabled", h200()),
]
test_verdict = held(VERDICTS)


@pytest.mark.parametrize("title", POSTED)
def test_what_nvidia_smi_prints_in_racks(title: str) -> None:
    posted = POSTED[title]
    cells = re.findall(r"^ +(\w+) +: (.+)$", posted["text"], re.MULTILINE)
    node = rack(said(*((ELEMENTS[name], value) for name, value in cells)))
    for check in ("gpu.fabric", "gpu.clique"):
        status, summary = posted[check]
        verdict = one(check, node)
        assert (verdict.status, summary in verdict.summary) == (status, True), verdict


def test_imex_is_asked_only_where_it_runs() -> None:
    asks = [imex.questions(NodeSpec(), node) for node in (fabric(), fabric(imex="failed"), fabric(marks=DRA), h200())]
    assert asks == [(AskImex({"imex": 15}),), (), (), ()]


# --- hosts of one run


LIST = "10.0.0.1 10.0.0.2"


def state(address: str, nodes: str = LIST, **fields: Any) -> NodeState:
    """A host with this address, and with those that every host has; ``nodes`` is IMEX's list."""
    devices = {
        "lo": NetDevice(addresses=("127.0.0.1/8", "::1/128")),
        "eth0": NetDevice(addresses=(f"{address}/24", "fe80::1/64")),
    }
    files = root_files({NODES: "".join(f"{node}\n" for node in nodes.split())})
    return fabric(network=Network(devices=devices), files=files, **fields)


def member(address: str, rack: str = "", nodes: str = LIST, **fields: Any) -> Member:
    """What a run keeps of that host."""
    found = imex.member(NodeSpec(), state(address, nodes, **fields))
    assert found
    return replace(found, rack=rack)


def together(**hosts: Member) -> dict[str, dict[str, tuple[str, str]]]:
    """Status and summary of each host by check."""
    found = imex.judge(hosts, dict.fromkeys(hosts, NodeSpec()), date(2026, 11, 28))
    return {
        name: {each.check.id: (each.verdict.status, each.verdict.summary) for each in judged}
        for name, judged in found.items()
    }


def test_the_hosts_of_a_rack_are_in_one_clique() -> None:
    same = together(a=member("10.0.0.1", "r1"), b=member("10.0.0.2", "r1"))
    assert same["a"]["gpu.rack"] == ("pass", f"clique 4026 of cluster {ONE}, as 2 of 2 hosts of r1")
    other = together(a=member("10.0.0.1", "r1"), b=member("10.0.0.2", "r1"), c=member("10.0.0.3", "r1", uuid=TWO))
    assert [other[name]["gpu.rack"][0] for name in "abc"] == ["pass", "pass", "warn"]
    assert f"other hosts of r1 are elsewhere: 2 in clique 4026 of cluster {ONE}" in other["c"]["gpu.rack"][1]
    partition = together(a=member("10.0.0.1", "r1"), b=member("10.0.0.2", "r1", clique="2"))
    assert [partition[name]["gpu.rack"][0] for name in "ab"] == ["warn", "warn"], "nobody knows which one is wrong"
    apart = together(a=member("10.0.0.1", "r1"), b=member("10.0.0.2", "r2", uuid=TWO), c=member("10.0.0.3"))
    assert [apart[name]["gpu.rack"][0] for name in "abc"] == ["skip"] * 3


def test_imex_has_one_list_on_all_hosts_of_it() -> None:
    same = together(a=member("10.0.0.1"), b=member("10.0.0.2"))
    assert same["a"]["driver.imex_domain"] == ("pass", "the same 2 nodes as on 1 other host of this run")
    lacks = together(a=member("10.0.0.1"), b=member("10.0.0.2", nodes="10.0.0.2 10.0.0.9"))
    assert lacks["a"]["driver.imex_domain"] == (
        "fail", f"{NODES} differs from that of b (only here: 10.0.0.1; only there: 10.0.0.9)",
    )  # fmt: skip
    assert lacks["b"]["driver.imex_domain"] == ("skip", f"{NODES} names no other host of this run")
    order = together(a=member("10.0.0.1"), b=member("10.0.0.2", nodes="10.0.0.2 10.0.0.1"))
    assert [order[name]["driver.imex_domain"][0] for name in "ab"] == ["fail", "fail"]
    assert "another order" in order["a"]["driver.imex_domain"][1]
    far = together(a=member("10.0.0.1"), b=member("10.0.0.2", uuid=TWO))
    assert f"names b, which is in clique 4026 of cluster {TWO}" in far["a"]["driver.imex_domain"][1]
    job = together(a=member("10.0.0.1", nodes="10.0.0.1"), b=member("10.0.0.2", nodes="10.0.0.2"))
    assert [job[name]["driver.imex_domain"][0] for name in "ab"] == ["skip", "skip"], "each job has its own list"
    off = together(a=member("10.0.0.1", imex="inactive", enabled="disabled"), b=member("10.0.0.2"))
    assert off["a"]["driver.imex_domain"] == ("skip", "nvidia-imex.service is not enabled")


def test_hosts_that_are_in_no_rack_are_not_compared() -> None:
    assert imex.member(NodeSpec(), h200()) is None
    assert imex.member(NodeSpec(), state("10.0.0.2", uuid="N/A")) is None
    assert imex.member(NodeSpec.model_validate({"hardware": {"gpus": "none"}}), state("10.0.0.2")) is None


def test_the_list_of_most_hosts_counts() -> None:
    nodes = "10.0.0.1 10.0.0.2 10.0.0.3"
    good = {"a": member("10.0.0.1", nodes=nodes), "b": member("10.0.0.2", nodes=nodes)}
    found = together(**good, c=member("10.0.0.3", nodes=f"{nodes} 10.0.0.4"))
    assert [found[name]["driver.imex_domain"][0] for name in "abc"] == ["warn", "warn", "fail"]
    assert found["a"]["driver.imex_domain"][1] == (
        f"as on 2 of 3 hosts, but not on c: {NODES} differs from that of c (only there: 10.0.0.4)"
    )
    far = together(**good, c=member("10.0.0.3", nodes=nodes, uuid=TWO))
    assert [far[name]["driver.imex_domain"][0] for name in "abc"] == ["warn", "warn", "fail"]


@pytest.mark.parametrize("fields", [{"imex": "inactive", "enabled": "disabled"}, {"marks": DRA}])
def test_a_host_without_its_own_imex_is_no_peer(fields: dict[str, Any]) -> None:
    old = member("10.0.0.2", nodes="10.0.0.2 10.0.0.9", **fields)
    found = together(a=member("10.0.0.1"), b=old)
    assert found["a"]["driver.imex_domain"] == ("skip", f"{NODES} names no other host of this run")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "fe80::1"])
def test_addresses_that_every_host_has_name_no_peer(address: str) -> None:
    found = together(a=member("10.0.0.1", nodes=f"10.0.0.1 {address}"), b=member("10.0.0.9"))
    assert found["a"]["driver.imex_domain"] == ("skip", f"{NODES} names no other host of this run")


def test_names_are_not_compared() -> None:
    found = together(a=member("10.0.0.1", nodes="c01 c02"), b=member("10.0.0.2", nodes="c01 c02"))
    assert found["a"]["driver.imex_domain"] == ("skip", f"{NODES} has names instead of addresses")


def test_verify_compares_the_hosts_of_a_run(exits: Exits, tmp_path: Path) -> None:
    states = {"n1": state("10.0.0.1"), "n2": state("10.0.0.2", uuid=TWO)}
    file = write_states(tmp_path / "states.json", states)
    spec = {"gpuready": {"maintenance": {"spread_by": "rack"}}}
    hosts = {name: {"rack": "r1"} for name in states}
    inventory = tmp_path / "hosts.yaml"
    inventory.write_text(yaml.safe_dump({"all": {"vars": spec, "hosts": hosts}}))
    document = exits(3, "verify", "-i", inventory, "--state", file, "--output", "json").document
    for host in document["hosts"].values():
        found = {check["id"]: check["status"] for check in host["checks"]}
        assert (found["gpu.rack"], found["driver.imex_domain"]) == ("warn", "fail")
    said = exits(3, "explain", "gpu.rack", "-i", inventory, "--state", file)
    assert "it compares hosts" in said.out and "gpuready verify -i INVENTORY" in said.out

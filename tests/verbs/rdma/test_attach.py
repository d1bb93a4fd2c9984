"""Giving devices to containers: what is read, what is decided, what is refused, and what the way back is."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gpuready.base.errors import ConvergeError, RefusedError
from gpuready.base.records import ProbeError
from gpuready.cli.parts import parts
from gpuready.components.nccl.spec import Nccl
from gpuready.result.document import document, result_schema
from gpuready.result.human import human
from gpuready.result.model import HostResult, Run
from gpuready.verbs.rdma.decide import attach
from gpuready.verbs.rdma.detach import detach, nothing_on_record
from gpuready.verbs.rdma.facts import Look, read
from gpuready.verbs.rdma.move_plan import Asked, AttachArgs, DetachArgs, MovePlan
from gpuready.verbs.rdma.netdev import interface
from gpuready.verbs.rdma.part import PART
from gpuready.verbs.rdma.record import Record
from gpuready.verbs.rdma.status import attached
from tests.verbs.rdma.attach_nodes import HERE, OTHER, TRAIN, found, given, irdma, nic, node, recorded, space

DEVICE = Asked("attach", "train", "irdma0")
NETDEV = Asked("attach", "train", netdev="ens1f0")


def on_record(look: Look, **more: Any) -> Look:
    """The node after the step: the devices are inside, and the record says how they were."""
    record = Record.model_validate_json(attach(look, DEVICE).args.content)
    return replace(given(look), records={"irdma0": record.model_copy(update=more)})


def keys(plan: MovePlan[AttachArgs | DetachArgs]) -> dict[str, Any]:
    return {change.key: (change.actual, change.expected) for change in plan.diff}


# --- what is read -----------------------------------------------------------------------------------------------------


def test_what_a_machine_answered() -> None:
    look = recorded()
    assert (look.here.inode, look.mode, look.ssh[2]) == (HERE, "", "198.18.0.10")
    (train,) = look.containers
    assert (train.engine, train.name, train.netns) == ("docker", "train", TRAIN)
    assert (train.memlock, train.nodes) == ("8388608", ())
    assert look.paths[TRAIN] == "/proc/283/ns/net" and look.named[TRAIN] == "sleep (pid 283)"
    assert set(look.others) == {TRAIN} and "eth0" in look.others[TRAIN].netdevs
    fab0 = look.here.interface("fab0")
    assert fab0 is not None and (fab0.kind, fab0.mtu, fab0.up) == ("veth", 4200, True)
    assert fab0.commands().splitlines() == [
        "link set dev fab0 mtu 4200",
        "link set dev fab0 up",
        "address replace 10.50.0.5/24 broadcast 10.50.0.255 scope global label fab0:x dev fab0",
        "address replace 10.51.0.1 peer 10.51.0.2/32 scope global label fab0 metric 77 noprefixroute dev fab0",
        "address replace 10.50.0.6/24 scope global label fab0 dev fab0",
        "address replace fd00:50::5/64 scope global dev fab0",
        "address replace fe80::105e:deff:feff:7ed2/64 scope link dev fab0",
        "route replace default via 10.50.0.1 table 101 dev fab0",
        "route replace 10.60.0.0/16 via 10.50.0.1 proto static metric 50 src 10.50.0.5 mtu 1400 dev fab0",
        "route replace fd00:60::/48 via fd00:50::1 metric 1024 pref medium dev fab0",
    ]
    assert "ipv6.disable_ipv6=0" in fab0.settings()


def test_answers_that_are_damaged() -> None:
    with pytest.raises(ProbeError, match="cut"):
        read(["run facts 0 aGVyZT0x"])
    with pytest.raises(ConvergeError, match="did not print JSON"):
        read(["run addr.7 0 PG5vPg==", "end 1"])
    with pytest.raises(ConvergeError, match=r"attached/mlx5_0.json is not a valid record"):
        read(["run record.mlx5_0 0 e30=", "end 1"])
    assert read(["end 0"]).here.inode == 0


def test_what_of_an_interface_is_kept() -> None:
    link = nic("ens1", linkinfo={"info_kind": "macvlan"})
    link["addr_info"] = [
        {"family": "inet", "local": "10.0.0.5", "prefixlen": 24, "dynamic": True, "label": "ens1",
         "valid_life_time": 3600, "preferred_life_time": 1800},
        {"family": "inet6", "local": "fd00::5", "prefixlen": 64, "noprefixroute": True},
        {"family": "inet6", "local": "fd00::6", "prefixlen": 64, "temporary": True},
        {"family": "inet6", "local": "fd00::7", "prefixlen": 64, "dadfailed": True},
        {"family": "inet6", "local": "fe80::1234", "prefixlen": 64, "scope": "link", "protocol": "kernel_ll"},
    ]  # fmt: skip
    routes = [
        {"dst": "10.0.0.0/24", "dev": "ens1", "protocol": "kernel", "scope": "link", "flags": ["linkdown"]},
        {"dst": "fd00::/64", "dev": "ens1", "protocol": "kernel", "metric": 100},
        {"dst": "10.9.0.0/16", "dev": "ens1", "via": {"family": "inet6", "host": "fe80::1"}, "flags": ["onlink"]},
        {"dst": "10.8.0.0/16", "dev": "ens1", "encap": "mpls"},
        {"dst": "10.7.0.0/16", "dev": "ens2"},
        {"type": "local", "dst": "10.0.0.5", "dev": "ens1", "table": "local"},
        {"type": "blackhole", "dst": "10.6.0.0/16", "dev": "ens1"},
    ]
    private = {"ipv6.addr_gen_mode": "3"}
    kept = interface("ens1", [link], routes, private)
    assert kept is not None
    lease = "10.0.0.5/24 label ens1 valid_lft 3600 preferred_lft 1800"
    assert kept.addresses == (lease, "fd00::5/64 noprefixroute", "fe80::1234/64 scope link")
    assert kept.routes == ("fd00::/64 proto kernel metric 100", "10.8.0.0/16", "10.9.0.0/16 via inet6 fe80::1 onlink")
    assert (kept.leased, kept.lost, kept.kind) == (("10.0.0.5/24",), ("10.8.0.0/16 (encap)",), "macvlan")
    # Inside nobody renews a lease, and the host's secret for stable addresses is not there.
    inside = kept.inside()
    assert inside.addresses[0] == "10.0.0.5/24 label ens1" and inside.sysctls["ipv6.addr_gen_mode"] == "1"
    # What the kernel makes of the hardware address, it makes anew.
    by_mac = interface("ens1", [link], [], {"ipv6.addr_gen_mode": "0"})
    assert by_mac is not None and len(by_mac.addresses) == 2
    assert interface("ens2", [link], routes, {}) is None


@examples(st.text(max_size=12))
def test_no_text_of_a_node_becomes_a_command(label: str) -> None:
    link = nic("ens1", "10.0.0.5/24")
    link["addr_info"][0]["label"] = label
    kept = interface("ens1", [link], [{"dst": "10.1.0.0/16", "dev": "ens1", "protocol": label}], {})
    assert kept is not None and len(kept.commands().split("\n")) == 5
    assert all(line.startswith(("link set", "address rep", "route rep")) for line in kept.commands()[:-1].split("\n"))


# --- the way in -------------------------------------------------------------------------------------------------------


def test_a_device_and_its_interface() -> None:
    look = node()
    plan = attach(look, DEVICE)
    assert keys(plan) == {
        "attach.irdma0.device": ("host", "container train (docker)"),
        "attach.ens1f0.netdev": ("host", "container train (docker)"),
        "attach.ens1f0.addresses": ((), ("10.100.100.1/24",)),
        "attach.ens1f0.mtu": (None, 9000),
        "attach.ens1f0.up": (None, True),
    }
    assert plan.notes == (
        "when the container ends, the kernel returns ens1f0 to the host without its addresses: gpuready rdma detach "
        "restores them, gpuready rdma attach moves it to the next container",
    )
    args = plan.args
    assert (args.device, args.netdev, args.path) == ("irdma0", "ens1f0", "/proc/283/ns/net")
    record = json.loads(args.content)
    assert (record["device"], record["before"]["name"], record["netns"]) == ("irdma0", "ens1f0", TRAIN)
    assert attach(on_record(look), DEVICE).diff == ()
    assert attach(on_record(look), NETDEV).diff == ()


def test_the_gid_index_is_that_of_the_container() -> None:
    look = on_record(node())
    (seen,) = attached(look, Nccl())
    (port,) = seen.ports
    assert (seen.state, seen.addresses) == ("attached", ("10.100.100.1/24",))
    assert (port.gid_index, port.address) == (1, "10.100.100.1")
    (seen,) = attached(look, Nccl(subnets=("10.0.0.0/24",)))
    assert seen.ports[0].gid_index is None and "no address in 10.0.0.0/24" in seen.ports[0].reason


def test_what_the_container_lacks() -> None:
    plan = attach(node(containers=(found(nodes=("rdma_cm",), memlock="8388608"),)), DEVICE)
    assert plan.notes[0].startswith(
        "container train (docker) lacks /dev/infiniband/uverbs0, unlimited locked memory (its limit is 8388608 bytes): "
        "restart it with --device=/dev/infiniband --ulimit memlock=-1"
    )


def test_what_does_not_go_along() -> None:
    look = recorded()
    look = replace(look, here=replace(look.here, rules=({"priority": 5, "src": "10.50.0.5", "table": "101"},)))
    notes = " ".join(attach(look, Asked("attach", "train", netdev="fab0")).notes)
    assert "policy rules (ip rule) for table 101 stay on the host" in notes
    assert "fab0 is a veth: the kernel destroys it" in notes
    down = nic("ens1f0", "10.100.100.1/24", flags=[])
    down["addr_info"][0] |= {"dynamic": True, "valid_life_time": 60}
    notes = " ".join(attach(node(here=space(HERE, down)), NETDEV).notes)
    assert "ens1f0 is down on the host, and stays down" in notes and "10.100.100.1/24 of ens1f0 is leased" in notes


def test_infiniband_has_no_interface_to_move() -> None:
    look = node(here=space(HERE, nic("ib0", "10.1.0.1/24"), rdma=irdma("ib0", layer="InfiniBand")))
    assert list(keys(attach(look, DEVICE))) == ["attach.irdma0.device"]


def test_the_next_container_gets_what_the_host_had_before_the_first() -> None:
    """The kernel gives an interface back without addresses when a container ends."""
    look = on_record(node(), netns=OTHER, container="gone")
    bare = space(HERE, nic("ens1f0", mtu=9000, flags=[]), rdma=irdma(gids=()))
    plan = attach(replace(look, here=bare, others={TRAIN: space(TRAIN)}), DEVICE)
    assert keys(plan)["attach.ens1f0.addresses"] == ((), ("10.100.100.1/24",))
    assert "address replace 10.100.100.1/24" in plan.args.back
    # What the user has configured since is what counts.
    own = space(HERE, nic("ens1f0", "10.7.7.7/24"), rdma=irdma(gids=()))
    plan = attach(replace(look, here=own, others={TRAIN: space(TRAIN)}), DEVICE)
    assert keys(plan)["attach.ens1f0.addresses"] == ((), ("10.7.7.7/24",))


def on_the_way(dst: str, **more: Any) -> dict[str, Any]:
    """The E810 carries a route of the node."""
    route = {"dst": dst, "dev": "ens1f0", "gateway": "10.100.100.254", **more}
    return {"here": replace(node().here, routes=(route,))}


INSIDE = given(node())
AWAY = {TRAIN: space(TRAIN), OTHER: replace(INSIDE.others[TRAIN], inode=OTHER)}
ELSEWHERE: dict[str, Any] = {"here": INSIDE.here, "others": AWAY, "named": {OTHER: "sleep (pid 9)"}}
ON_RECORD = {**ELSEWHERE, "records": on_record(node(), netns=OTHER, container="first").records}
ALONE = Record.model_validate_json(attach(node(), NETDEV).args.content)
TWO = irdma("", ("1 10.1.0.1 v2 ens1f0", "2 10.2.0.1 v2 ens1f1"))
TWO |= {f"/sys/class/infiniband/irdma0/netdev/{name}": "" for name in ("ens1f0", "ens1f1")}
POD: dict[str, Any] = {"engine": "cri", "pod": "ml/worker-0"}
SANDBOX, MAIN = found(**POD, id="5" * 64, name=""), found(**POD, id="6" * 64, name="train")
PODS = {"containers": (MAIN, SANDBOX)}
ENO1 = replace(NETDEV, netdev="eno1")
BY_HAND = "in the network namespace of sleep (pid 9), and gpuready did not move it"
SHARED = (
    "the RDMA devices of this node are shared: container train (docker) already sees irdma0, and the kernel cannot "
    "move it; the container lacks /dev/infiniband/uverbs0, /dev/infiniband/rdma_cm, unlimited locked memory"
)
TAKEN = "is already attached to container {} (docker) / first run gpuready rdma detach HOST"


@pytest.mark.parametrize(
    ("more", "asked", "words"),
    [
        ({"mode": "Y", "containers": (found(nodes=(), memlock="8388608"),)}, DEVICE, SHARED),
        ({"mode": "Y"}, DEVICE, "without --device); or make the node exclusive: rdma: {netns_mode: exclusive}"),
        ({"mode": ""}, DEVICE, "ib_core is not loaded"),
        ({"have": frozenset({"ip", "nsenter", "unshare"})}, DEVICE, "the `rdma` command is missing"),
        ({"have": frozenset({"ip"})}, DEVICE, "there is no `nsenter` on"),
        ({}, replace(DEVICE, device="mlx5_0"), "this node has no RDMA device mlx5_0 / devices on the host: irdma0"),
        ({"users": {"uverbs0": ("ib_write_bw (pid 7)",)}}, DEVICE, "irdma0 is in use by ib_write_bw (pid 7) / stop"),
        ({"kernel": frozenset({"ib_core", "nvme_rdma"})}, DEVICE, "irdma0 is in use by kernel module nvme_rdma"),
        ({"here": space(HERE, nic("ens1f0"), nic("ens1f1"), rdma=TWO)}, DEVICE,
         "irdma0 has several interfaces: ens1f0, ens1f1 / give one with --netdev IF"),
        ({"here": space(HERE, rdma=irdma("", ()))}, DEVICE, "cannot find the network interface of irdma0 / give it"),
        (ELSEWHERE, DEVICE, f"irdma0 is {BY_HAND}"),
        (ELSEWHERE, NETDEV, f"ens1f0 is {BY_HAND}"),
        (ON_RECORD, DEVICE, f"irdma0 {TAKEN.format('first')} --device irdma0"),
        (ON_RECORD, NETDEV, f"ens1f0 {TAKEN.format('first')} --netdev ens1f0"),
        # An interface that is on record by itself does not go along with its device.
        ({"here": INSIDE.here, "others": INSIDE.others, "records": {"ens1f0": ALONE}}, replace(DEVICE, netdev="ens1f0"),
         f"ens1f0 {TAKEN.format('train')} --netdev ens1f0"),
        ({}, ENO1, "eno1 carries this SSH connection (192.0.2.10)"),
        ({"ssh": ("::ffff:192.0.2.1", "1", "::ffff:192.0.2.10", "22")}, ENO1, "carries this SSH connection"),
        (on_the_way("default"), NETDEV, "ens1f0 has the default route of this node"),
        (on_the_way("::/0"), NETDEV, "ens1f0 has the default route of this node"),
        (PODS, replace(DEVICE, container="other/worker-0"), "no container or pod other/worker-0"),
        (PODS, replace(DEVICE, container="55"), "no container or pod 55 runs on"),
        ({"containers": ()}, replace(DEVICE, engine="cri"), "train of cri runs"),
        ({"containers": (found(), replace(MAIN, netns=OTHER))}, DEVICE,
         "several containers have the name train: container train (docker) c0ffeec0ffee, pod ml/worker-0 666666666666"),
        ({"containers": (found(netns=HERE),)}, DEVICE, "uses the host network, so it already sees all devices"),
        ({"containers": (found(netns=0, state="exited"),)}, DEVICE, "container train (docker) is exited"),
        ({"others": {}}, DEVICE, "cannot enter the network namespace"),
    ],
)  # fmt: skip
def test_what_must_not_move_is_refused(more: dict[str, Any], asked: Asked, words: str) -> None:
    with pytest.raises(RefusedError) as caught:
        attach(node(**more), asked)
    assert words in f"{caught.value} / {caught.value.remedy}" and caught.value.remedy


def test_what_may_move() -> None:
    assert attach(node(kernel=frozenset({"ib_core", "irdma"})), DEVICE).diff
    assert attach(node(**on_the_way("default", table="101")), NETDEV).diff


def test_a_device_that_others_moved_into_the_container_stays_there() -> None:
    plan = attach(INSIDE, DEVICE)
    assert plan.diff == () and "gpuready did not move it" in plan.notes[0]


@pytest.mark.parametrize("name", ["ml/worker-0", "worker-0", "5" * 64, "555555", "train"])
def test_a_pod_by_its_name_by_an_id_or_by_a_container_of_it(name: str) -> None:
    assert attach(node(**PODS), replace(DEVICE, container=name)).args.where == "pod ml/worker-0"


# --- the way back -----------------------------------------------------------------------------------------------------


def test_detach_from_a_running_container() -> None:
    look = on_record(node())
    (plan,) = detach(look, Asked("detach", device="irdma0"))
    assert keys(plan) == {
        "detach.irdma0.device": ("container train (docker)", "host"),
        "detach.ens1f0.netdev": ("container train (docker)", "host"),
        "detach.ens1f0.addresses": ((), ("10.100.100.1/24",)),
        "detach.ens1f0.mtu": (None, 9000),
        "detach.ens1f0.up": (None, True),
        "detach.record": ("irdma0 in container train (docker)", None),
    }
    assert plan.affected == ("container train (docker)",)
    assert (plan.args.device, plan.args.netdev_now, plan.args.inode) == ("irdma0", "ens1f0", TRAIN)
    for asked in (Asked("detach", "train"), Asked("detach", "c0ffee"), Asked("detach", netdev="ens1f0")):
        assert detach(look, asked) == (plan,)
    for asked in (Asked("detach", "other"), Asked("detach", "c0"), Asked("detach", "train", "mlx5_0")):
        assert detach(look, asked) == ()


def test_detach_after_the_container_ended() -> None:
    """The kernel returned both; the interface is bare, and may have another name."""
    look = replace(on_record(node()), others={}, paths={HERE: "/proc/1/ns/net"})
    back = replace(look, here=space(HERE, nic("dev7", flags=[]), rdma=irdma(gids=())))
    (seen,) = attached(back, Nccl())
    assert seen.state == "returned"
    (plan,) = detach(back, Asked("detach", device="irdma0"))
    assert keys(plan)["detach.ens1f0.netdev"] == ("host, as dev7", "host")
    assert keys(plan)["detach.ens1f0.up"] == (False, True)
    assert "detach.irdma0.device" not in keys(plan) and plan.affected == ()
    assert (plan.args.netdev_now, plan.args.netdev, plan.args.path) == ("dev7", "ens1f0", "")


@pytest.mark.parametrize("others", [{}, {TRAIN: replace(space(TRAIN), links=())}])
def test_detach_does_not_take_an_unreadable_namespace_for_an_ended_one(others: dict[int, Any]) -> None:
    look = replace(on_record(node()), others=others)
    with pytest.raises(RefusedError, match=r"cannot read the network namespace of container train"):
        detach(look, Asked("detach", "train"))


def ended(*links: dict[str, Any], **before: Any) -> Look:
    """The container has ended, and the interface that it had was as given."""
    record = on_record(node()).records["irdma0"]
    assert record.before is not None
    records = {"irdma0": record.model_copy(update={"before": record.before.model_copy(update=before)})}
    return node(here=space(HERE, *links, rdma=irdma()), others={}, paths={}, records=records)


@pytest.mark.parametrize(
    ("look", "state", "note"),
    [
        (ended(kind="veth"), "destroyed",
         "ens1f0 is gone: the kernel destroyed the veth together with container train (docker)"),
        (ended(), "destroyed", "ens1f0 is neither on the host nor in container train (docker)"),
        # The VLANs of one card share its address; a destroyed one does not come back under the name of another.
        (ended(nic("ens1.200", parentdev="", linkinfo={"info_kind": "vlan"}), name="ens1.100", kind="vlan", place=""),
         "destroyed", "ens1.100 is gone: the kernel destroyed the vlan"),
        # A namespace of before the boot may have the number of one of today.
        (replace(on_record(node(), boot="b0")), "rebooted", "the node rebooted after irdma0 was attached"),
    ],
)  # fmt: skip
def test_detach_with_nothing_to_restore(look: Look, state: str, note: str) -> None:
    (plan,) = detach(look, Asked("detach", "train"))
    assert list(keys(plan)) == ["detach.record"] and note in plan.notes[0]
    assert (plan.args.device, plan.args.netdev, plan.args.netdev_now, plan.args.path) == ("", "", "", "")
    assert attached(look, Nccl())[0].state == state


def test_what_is_not_on_record() -> None:
    nothing_on_record(node(), Asked("detach", device="irdma0", netdev="ens1f0"))
    nothing_on_record(node(), Asked("detach", "train"))
    with pytest.raises(RefusedError, match="no record of mlx5_0; it is not on this node"):
        nothing_on_record(node(), Asked("detach", device="mlx5_0"))
    with pytest.raises(RefusedError, match=r"no record of irdma0; it is in sleep \(pid 283\)"):
        nothing_on_record(given(node()), Asked("detach", device="irdma0"))


# --- what is told -----------------------------------------------------------------------------------------------------


def test_the_report() -> None:
    look = on_record(node())
    run = Run(
        "rdma list",
        [HostResult("gpu13", {"attached": attached(look, Nccl())}, outcome="ok")],
        source="hosts.yaml",
        part=PART,
    )
    assert human(run, 0).splitlines() == [
        "rdma list: 1 host of hosts.yaml, 0.0 s",
        "",
        "gpu13",
        "  irdma0 with ens1f0  in container train (docker), since 2026-11-21T21:39:35Z",
        "    10.100.100.1/24, mtu 9000, up",
        "    port 1: GID index 1 (10.100.100.1, RoCE v2)",
        "",
        "gpu13  ok  0 changes  0.0 s",
        "",
        "OK: 1 attached",
    ]
    told = document(run, 0)
    Draft202012Validator(result_schema(parts())).validate(json.loads(json.dumps(told)))
    assert told["hosts"]["gpu13"]["attached"][0]["ports"] == [
        {"port": 1, "gid_index": 1, "address": "10.100.100.1", "reason": ""}
    ]
    ended = replace(look, others={}, here=space(HERE, nic("ens1f0"), rdma=irdma(gids=())))
    run = Run("rdma list", [HostResult("gpu13", {"attached": attached(ended, Nccl())}, outcome="ok")], part=PART)
    assert "has ended: the host has it back, but not as it was; gpuready rdma detach puts it back" in human(run, 0)
    run = Run("rdma attach", [HostResult("gpu13", {"attached": ()}, outcome="pending")], part=PART)
    assert human(run, 7).splitlines()[-1].startswith("PENDING: 1 host: 1 pending; exit 7")

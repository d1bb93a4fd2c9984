"""Nodes for the unit tests of attach: what a test machine answered, and RDMA devices as sysfs has them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuready.verbs.rdma.facts import Found, Look, Space, read
from tests.network.gid_tables import sysfs

DATA = Path(__file__).parents[2] / "data" / "attach"
HERE, TRAIN, OTHER = 4026532253, 4026532341, 4026532999


def recorded() -> Look:
    """A test machine with a container `train`, and fab0, one end of a veth, with addresses and routes of all kinds."""
    text = (DATA / "machine.txt").read_text("ascii")
    return read(text.partition("begin\n")[2].splitlines())


def nic(name: str, *addresses: str, mac: str = "b4:96:91:ec:a4:58", **more: Any) -> dict[str, Any]:
    """An interface of hardware, as iproute2 tells it."""
    info = [
        {"family": "inet6" if ":" in a else "inet", "local": a.split("/")[0], "prefixlen": int(a.split("/")[1]),
         "scope": "global"} for a in addresses
    ]  # fmt: skip
    base = {
        "ifname": name,
        "flags": ["UP"],
        "mtu": 9000,
        "address": mac,
        "parentdev": "0000:41:00.0",
        "addr_info": info,
    }
    return base | more


def space(
    inode: int, *links: dict[str, Any], rdma: dict[str, str] | None = None, verbs: dict[str, str] | None = None
) -> Space:
    """A network namespace."""
    lo = {"ifname": "lo", "flags": ["LOOPBACK", "UP"]}
    return Space(inode, (lo, *links), (), (), {}, rdma or {}, verbs or {})


def irdma(
    netdev: str = "ens1f0", gids: tuple[str, ...] = ("1 10.100.100.1 v2 ens1f0",), layer: str = ""
) -> dict[str, str]:
    """The E810 of a field report, with its interface."""
    found = sysfs("irdma0", "1", gids=list(gids))
    if layer:
        found["/sys/class/infiniband/irdma0/ports/1/link_layer"] = layer
    return found | ({f"/sys/class/infiniband/irdma0/netdev/{netdev}": ""} if netdev else {})


def found(**more: Any) -> Found:
    """A running container of Docker's."""
    base = Found("docker", "c0ffee" * 10, "train", "", "running", TRAIN, "unlimited", ("uverbs0", "rdma_cm"))
    return replace(base, **more)


def node(**more: Any) -> Look:
    """An exclusive node with an E810 on the host, and a container for it."""
    base = Look(
        boot="b1", clock=1795297175, mode="N", have=frozenset({"ip", "rdma", "nsenter", "unshare"}),
        ssh=("192.0.2.1", "40000", "192.0.2.10", "22"),
        here=space(HERE, nic("eno1", "192.0.2.10/24", mac="02:00:00:00:00:01"), nic("ens1f0", "10.100.100.1/24"),
                   rdma=irdma(), verbs={"uverbs0": "irdma0"}),
        others={TRAIN: space(TRAIN, nic("eth0", "172.17.0.2/16", mac="02:42:ac:11:00:02"))},
        paths={HERE: "/proc/1/ns/net", TRAIN: "/proc/283/ns/net"},
        named={HERE: "systemd (pid 1)", TRAIN: "sleep (pid 283)"},
        containers=(found(),), records={}, users={},
    )  # fmt: skip
    return replace(base, **more)


def given(look: Look) -> Look:
    """The same node after its E810 went into the container, without the record of it."""
    e810 = look.here.link("ens1f0")
    inside = space(TRAIN, *look.others[TRAIN].links[1:], e810, rdma=irdma(), verbs={"uverbs0": "irdma0"})
    return replace(look, here=space(HERE, look.here.links[1]), others={TRAIN: inside})

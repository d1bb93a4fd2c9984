"""Parse what templates/verbs/rdma/look.sh.j2 reads of a node: network namespaces, containers and records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from gpuready.base.documents import read_json
from gpuready.base.errors import ConvergeError
from gpuready.base.records import Records
from gpuready.verbs.rdma.netdev import Interface, interface
from gpuready.verbs.rdma.record import Record, label
from gpuready.verbs.rdma.record import path as record_path


@dataclass(frozen=True)
class Found:
    """A container of the requested name. ``netns`` is the inode of its namespace, ``pod`` is NAMESPACE/NAME.

    ``nodes``: the devices in its /dev/infiniband. ``memlock``: its limit as in /proc, in bytes or ``unlimited``.
    """

    engine: str
    id: str
    name: str
    pod: str
    state: str
    netns: int
    memlock: str
    nodes: tuple[str, ...]

    @property
    def where(self) -> str:
        """The container, for messages."""
        return label(self.pod, self.name, self.id, self.engine)


@dataclass(frozen=True)
class Space:
    """One network namespace, read from inside. ``rdma`` is sysfs as path -> value."""

    inode: int
    links: tuple[Mapping[str, Any], ...]
    routes: tuple[Mapping[str, Any], ...]
    rules: tuple[Mapping[str, Any], ...]
    sysctls: Mapping[str, Mapping[str, str]]
    rdma: Mapping[str, str]
    verbs: Mapping[str, str]

    @property
    def devices(self) -> tuple[str, ...]:
        """The RDMA devices that are visible in the namespace."""
        return tuple(dict.fromkeys(path.split("/")[4] for path in self.rdma if path.count("/") > 4))

    @property
    def netdevs(self) -> tuple[str, ...]:
        """The network interfaces in the namespace."""
        return tuple(str(link["ifname"]) for link in self.links if "ifname" in link)

    def link(self, name: str) -> Mapping[str, Any]:
        """Return an interface as iproute2 prints it; empty if it does not exist."""
        return next((link for link in self.links if link.get("ifname") == name), {})

    def interface(self, name: str) -> Interface | None:
        """Return what is needed to restore an interface; None if it does not exist."""
        return interface(name, self.links, self.routes, self.sysctls.get(name, {}))

    def netdevs_of(self, device: str) -> tuple[str, ...]:
        """Return the interfaces of an RDMA device: its parent, or those of its GIDs or PCI device."""
        base = f"/sys/class/infiniband/{device}/"
        parent = (self.parent(device),) if self.parent(device) else ()
        behind = tuple(path.removeprefix(f"{base}netdev/") for path in self.rdma if path.startswith(f"{base}netdev/"))
        named = [value for path, value in self.rdma.items() if path.startswith(base) and "/gid_attrs/ndevs/" in path]
        # GIDs of VLANs and the like are in the same table: prefer the device's own interface.
        lower = [name for name in dict.fromkeys(named) if not self.link(name).get("link")]
        return parent or (behind if len(behind) == 1 else ()) or tuple(lower) or behind

    def parent(self, device: str) -> str:
        """Return the interface below a soft device (rxe, siw); empty for hardware."""
        return self.rdma.get(f"/sys/class/infiniband/{device}/parent", "")

    def layers(self, device: str) -> frozenset[str]:
        """Return the link layers of the device's ports: Ethernet, InfiniBand."""
        base = f"/sys/class/infiniband/{device}/ports/"
        return frozenset(v for path, v in self.rdma.items() if path.startswith(base) and path.endswith("/link_layer"))

    def node_of(self, device: str) -> str:
        """Return the device's uverbs node; empty if there is none."""
        return next((name for name, owner in self.verbs.items() if owner == device), "")


@dataclass(frozen=True)
class Look:
    """Everything that was read. ``mode`` is Y for shared, N for exclusive, empty if ib_core is not loaded.

    ``named``: namespace -> its owner, for messages. ``users``: uverbs node -> the processes that have it open, as
    "comm (pid N)". ``kernel``: the kernel modules with a queue pair on the requested device.
    """

    boot: str
    clock: int
    mode: str
    have: frozenset[str]
    ssh: tuple[str, ...]
    here: Space
    others: Mapping[int, Space]
    paths: Mapping[int, str]
    named: Mapping[int, str]
    containers: tuple[Found, ...]
    records: Mapping[str, Record]
    users: Mapping[str, tuple[str, ...]]
    kernel: frozenset[str] = frozenset()

    def space(self, inode: int) -> Space | None:
        """Return the namespace with that inode, which may be the host's; None if it was not read or has ended."""
        return self.here if inode == self.here.inode else self.others.get(inode)


def read(lines: list[str]) -> Look:
    """Parse the output. Raises :class:`ConvergeError` for an invalid record, ProbeError for damaged lines."""
    texts = {name: text for name, (_, text) in Records(lines).runs.items()}
    rows = [row.partition("=") for row in texts.get("facts", "").splitlines()]
    facts = {key: value for key, _, value in rows}
    here = int(facts.get("here") or 0)
    inodes = {int(name.rpartition(".")[2]) for name in texts if name.startswith("addr.")}
    spaces = {inode: _space(inode, texts) for inode in inodes}
    ways = [row.split(" ", 2) for row in texts.get("spaces", "").splitlines() if row.count(" ") > 1]
    keys = sorted(name.removeprefix("record.") for name in texts if name.startswith("record."))
    users: dict[str, tuple[str, ...]] = {}
    for row in texts.get("users", "").splitlines():
        node, pid, comm = [*row.split(" ", 2), "", ""][:3]
        users[node] = (*users.get(node, ()), f"{comm} (pid {pid})")
    return Look(
        boot=facts.get("boot", ""),
        clock=int(facts.get("clock") or 0),
        mode=facts.get("mode", ""),
        have=frozenset(value for key, _, value in rows if key == "have"),
        ssh=tuple(facts.get("ssh", "").split()),
        here=spaces.pop(here) if here in spaces else _space(here, {}),
        others=spaces,
        paths={int(inode): path for inode, path, _ in ways},
        named={int(inode): who for inode, _, who in ways},
        containers=tuple(_found(row) for row in texts.get("containers", "").splitlines()),
        records={key: _record(key, texts[f"record.{key}"]) for key in keys},
        users=users,
        kernel=frozenset(texts.get("kernel", "").split()),
    )


def _space(inode: int, texts: Mapping[str, str]) -> Space:
    sysctls: dict[str, dict[str, str]] = {}
    for path, value in _pairs(texts.get(f"sysctl.{inode}", "")).items():
        *_, family, _, name, key = path.split("/")
        sysctls.setdefault(name, {})[f"{family}.{key}"] = value
    routes6 = _json(texts, "route6", inode)
    for each in routes6:  # without a gateway, ip takes `default` for IPv4
        each |= {"dst": "::/0"} if each.get("dst") == "default" else {}
    return Space(
        inode=inode,
        links=tuple(_json(texts, "addr", inode)),
        routes=(*_json(texts, "route4", inode), *routes6),
        rules=(*_json(texts, "rule4", inode), *_json(texts, "rule6", inode)),
        sysctls=sysctls,
        rdma=_pairs(texts.get(f"rdma.{inode}", "")),
        verbs={path.split("/")[4]: value for path, value in _pairs(texts.get(f"verbs.{inode}", "")).items()},
    )


def _json(texts: Mapping[str, str], name: str, inode: int) -> list[dict[str, Any]]:
    try:
        found = read_json(texts.get(f"{name}.{inode}") or "[]")
    except ValueError:
        raise ConvergeError(f"`ip -j` did not print JSON ({name})", remedy="install iproute2 5.0 or newer") from None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _pairs(text: str) -> dict[str, str]:
    """Parse grep's ``PATH:VALUE``."""
    return {path: value.strip() for path, _, value in (row.partition(":") for row in text.splitlines())}


def _found(row: str) -> Found:
    engine, id_, name, pod, _, state, netns, memlock, nodes = [*row.split("\t"), *[""] * 9][:9]
    inode = int(netns) if netns.isdigit() else 0
    return Found(engine, id_, name, pod, state, inode, memlock, tuple(node for node in nodes.split(",") if node))


def _record(key: str, text: str) -> Record:
    try:
        return Record.model_validate_json(text)
    except ValidationError as e:
        raise ConvergeError(
            f"{record_path(key)} is not a valid record: {e.errors()[0]['msg']}",
            remedy="move the file away, and check what it names",
        ) from None

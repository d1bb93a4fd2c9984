"""NCCL's settings against the ports that the node has: what /etc/nccl.conf says, and what NCCL makes of it.

Sources: NCCL's user guide and src/misc/param.cc; PyTorch's documentation for its own variable; gpuready/network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

from gpuready.components.nccl import conf
from gpuready.components.nccl.conf import CONF
from gpuready.components.nccl.spec import debugging
from gpuready.core.check import Check, Level, Verdict, fail, passed, skip, warn
from gpuready.network import hca, torch
from gpuready.network.discovery import choose
from gpuready.network.gid import taken
from gpuready.network.nccl_settings import settings
from gpuready.network.ports import Gid, Port, ports
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState

_SET = re.compile(r"^(?P<file>[^:]+):.*?\b(?P<name>(?:TORCH_)?NCCL_[A-Z0-9_]+)=[\"']?(?P<value>[^\s\"';]*)")
_OTHERS_MAY_READ = 0o004


def _file(state: NodeState) -> dict[str, str]:
    return conf.effective(state.files[CONF].text) if CONF in state.files else {}


def _ports(spec: NodeSpec, state: NodeState) -> Verdict:
    if not spec.nccl.names_ports:
        return skip("nccl names no network, interface or version; gpuready nccl shows what there is")
    found = settings(state, spec.nccl)
    if found.problems:
        return fail(found.problems[0], evidence="\n".join(found.problems[1:]))
    names = {each.port.name for each in found.fabric}
    down = [f"{each.port.name}: {each.reason}" for each in found.choices.refused if each.port.name in names]
    if down:
        return fail(f"of {len(names)} ports {len(down)} cannot be used: {'; '.join(down)}", "mend the link")
    said = [f"{each.port.name} {each.address or 'InfiniBand'}" for each in found.fabric]
    return passed(f"NCCL can be told: {', '.join(said)}")


def _grammar(spec: NodeSpec, state: NodeState) -> Verdict:
    if CONF in state.not_files:
        return fail(f"{CONF} is not a regular file")
    if CONF not in state.files:
        return skip(f"there is no {CONF}")
    file = state.files[CONF]
    found = conf.problems(file.text)
    said = "\n".join(map(str, found))
    serious = [problem for problem in found if not problem.harmless]
    if serious:
        return fail(f"{CONF}: {serious[0]}", evidence=said if len(found) > 1 else "")
    if not file.mode & _OTHERS_MAY_READ:
        return warn(
            f"{CONF} can be read by few (mode {file.mode:o}): for others NCCL passes over it", f"chmod 644 {CONF}"
        )
    if found:
        return warn(f"{CONF}: {found[0]}", f"take the line out of {CONF}", said if len(found) > 1 else "")
    return passed(f"{CONF} sets {len(_file(state))} variables")


def _hca(spec: NodeSpec, state: NodeState) -> Verdict:
    value = _file(state).get("NCCL_IB_HCA", "")
    if not value:
        return skip(f"{CONF} names no HCA")
    found, there = hca.read(value), ports(state)
    names = ", ".join(port.name for port in there)
    if not there:
        return warn(
            f"NCCL_IB_HCA={value}, and there is no RDMA device here", "is its driver loaded, or is it in a container?"
        )
    if not any(found.selects(port) for port in there):
        return fail(f"NCCL_IB_HCA={value} matches none of the node's ports ({names}): NCCL uses TCP")
    lost = [name for name, port in found.entries if not any(found.names((name, port), each) for each in there)]
    if lost and not found.excludes:
        return fail(f"NCCL_IB_HCA={value}: nothing here is named {', '.join(lost)} ({names})")
    wide = [f"{name} means {', '.join(each)}" for name, each in _prefixes(found, there) if len(each) > 1]
    if wide:
        return warn(
            f"NCCL_IB_HCA={value} names prefixes: {'; '.join(wide)}", "name them exactly: NCCL_IB_HCA==NAME:PORT,..."
        )
    return passed(f"NCCL_IB_HCA={value}")


def _prefixes(found: hca.Hca, there: tuple[Port, ...]) -> Iterator[tuple[str, list[str]]]:
    """Of a name that is a device's own, what else it means; a bare ``mlx5`` is meant as a prefix."""
    for name, number in found.entries:
        if not found.exact and any(port.device == name for port in there):
            yield name, list(dict.fromkeys(port.device for port in there if found.names((name, number), port)))


def _gid(spec: NodeSpec, state: NodeState) -> Verdict:
    said = _file(state)
    index, within = said.get("NCCL_IB_GID_INDEX", ""), said.get("NCCL_IB_ADDR_RANGE", "")
    fixed = index if re.fullmatch(r"[0-9]+", index) else ""
    if not fixed and not within:
        return skip(f"{CONF} fixes no GID")
    chosen = hca.read(said["NCCL_IB_HCA"]) if said.get("NCCL_IB_HCA") else None
    used = [port for port in ports(state) if port.transport == "RoCE" and (chosen is None or chosen.selects(port))]
    used = [port for port in used if port.state == "ACTIVE"]
    if not used:
        return skip("no RoCE port that is active is meant")
    if fixed:
        wrong = [_judge(port, {g.index: g for g in port.gids}.get(int(fixed)), f"GID {fixed}") for port in used]
        what = f"NCCL_IB_GID_INDEX={fixed}"
    else:
        network = _network(within)
        if network is None:
            return fail(f"NCCL_IB_ADDR_RANGE={within} is no network with a prefix length: NCCL passes over it")
        family = 6 if said.get("NCCL_IB_ADDR_FAMILY") == "AF_INET6" else 4
        wrong = [_judge(port, taken(port, family, network), "what NCCL takes", network) for port in used]
        what = f"NCCL_IB_ADDR_RANGE={within}"
    wrong += _elsewhere(spec, state, used, int(fixed)) if fixed else []
    told = [text for text in wrong if text]
    return (
        fail(f"{what}: {told[0]}", evidence="\n".join(told[1:])) if told else passed(f"{what} fits {len(used)} ports")
    )


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def _judge(port: Port, gid: Gid | None, what: str, within: IPv4Network | IPv6Network | None = None) -> str:
    """What is wrong with this GID on this port; empty when nothing is."""
    if gid is None:
        return f"{what} of {port.name} is an empty slot"
    if gid.address.is_link_local:
        return f"{what} of {port.name} is {gid}, a link-local address: it reaches nobody behind a router"
    if gid.version == "v1":
        return f"{what} of {port.name} is {gid}, RoCE v1, which no router forwards"
    if within is not None and gid.address not in within:
        return f"{what} of {port.name} is {gid}, outside of the range"
    return ""


def _elsewhere(spec: NodeSpec, state: NodeState, used: list[Port], index: int) -> list[str]:
    """Ports whose index points at another address than the fabric's: the addresses moved since it was written."""
    if not spec.nccl.names_ports:
        return []
    chosen = [each for each in choose(state, spec.nccl).chosen if each.port in used and each.gid_index != index]
    return [f"the fabric's GID of {each.port.name} is {each.gid_index}: {each.address}" for each in chosen]


def _everywhere(state: NodeState) -> Iterator[tuple[str, str, str]]:
    """File, name and value of what files for all users set."""
    yield from ((CONF, name, value) for name, value in _file(state).items())
    for line in state.nccl:
        if m := _SET.match(line):
            yield m["file"], m["name"], m["value"]


def _debug(spec: NodeSpec, state: NodeState) -> Verdict:
    found = list(_everywhere(state))
    told = ", ".join(f"{name}={value} in {file}" for file, name, value in found if debugging(name, value))
    if told:
        return warn(f"for one job, and set for all: {told}", "take it out there, set it in the job's environment")
    if not found:
        return skip("no variable of NCCL is set for all jobs")
    return passed("no variable for debugging is set for all jobs")


def _torch(spec: NodeSpec, state: NodeState) -> Verdict:
    found = [row for row in _everywhere(state) if row[1] in (torch.VARIABLE, torch.OLD_NAME)]
    if not found:
        return skip(f"{torch.VARIABLE} is not set for all; PyTorch's default is {torch.DEFAULT}: {torch.VALUES['3']}")
    file, name, value = found[-1]
    if file == CONF:
        return warn(
            f"{name} is set in {CONF}, but PyTorch reads it before NCCL loads that file",
            "set it in the job's environment",
        )
    if value not in torch.VALUES:
        return warn(f"{name}={value} in {file} is no value of it", f"one of {', '.join(torch.VALUES)}")
    if value == "0":
        return warn(f"{name}=0 in {file}: when a rank is lost, {torch.VALUES['0']}", f"take it out of {file}, or 1")
    if name == torch.OLD_NAME:
        return warn(f"{name} in {file} is the name before PyTorch 2.2", f"name it {torch.VARIABLE} in {file}")
    return passed(f"{name}={value}: {torch.VALUES[value]}")


CHECKS = (
    Check(
        "nccl.ports",
        Level.config,
        "A port of the fabric is down, or it cannot be told which of its addresses is the fabric's; NCCL would guess.",
        "gpuready nccl -i INVENTORY; rdma link; ip -br addr",
        "name the fabric in nccl.subnets or nccl.interfaces, or give the port its address",
        _ports,
        after=("nccl.config",),
    ),
    Check(
        "nccl.grammar",
        Level.config,
        "NCCL splits a line of /etc/nccl.conf at the first = and trims nothing: quotes, blanks, export and comments "
        "behind a value become part of the name or the value.",
        "cat -A /etc/nccl.conf",
        "write NAME=value, one a line, # only as the first character",
        _grammar,
    ),
    Check(
        "nccl.hca",
        Level.config,
        "NCCL_IB_HCA is a list of prefixes unless it begins with =; one that means no port makes NCCL take TCP in "
        "silence, and persistent naming has renamed mlx5_0.",
        "grep NCCL_IB_HCA /etc/nccl.conf; ls /sys/class/infiniband",
        "nccl: {subnets: [...]} has gpuready write the exact names; or take the line out",
        _hca,
    ),
    Check(
        "nccl.gid",
        Level.config,
        "The GID that /etc/nccl.conf fixes is link-local, of RoCE v1, empty or another address by now: indexes move "
        "when addresses come and go.",
        "grep -H . /sys/class/infiniband/*/ports/*/gids/* | grep -v 0000:0000:0000:0000:0000:0000:0000:0000",
        "nccl: {subnets: [...]} and gpuready apply; with NCCL 2.21 or newer take NCCL_IB_GID_INDEX out",
        _gid,
        after=("nccl.config",),
    ),
    Check(
        "nccl.debug",
        Level.config,
        "A variable for looking into one job (NCCL_DEBUG=INFO, NCCL_P2P_DISABLE, NCCL_PROTO ...) is set for all jobs.",
        "grep -s NCCL_ /etc/nccl.conf /etc/environment /etc/profile.d/*.sh",
        "take it out, and set it in the environment of that job",
        _debug,
    ),
    Check(
        "nccl.torch",
        Level.config,
        f"{torch.VARIABLE} says what PyTorch does when a rank is lost: "
        + "; ".join(f"{value}: {what}" for value, what in torch.VALUES.items())
        + f". Before PyTorch 2.2 its name was {torch.OLD_NAME}.",
        f"grep -s {torch.OLD_NAME} /etc/environment /etc/profile.d/*.sh; printenv {torch.VARIABLE}",
        "leave it unset (3), or set 1 in the job's environment",
        _torch,
    ),
)

"""Checks of NCCL's settings: does /etc/nccl.conf mean what it seems to mean, and does it fit the node's ports?

Sources: NCCL's user guide and src/misc/param.cc; PyTorch's documentation for its own variable; gpuready/network.
"""

import re
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

from gpuready.base.words import count
from gpuready.components.nccl.spec import debugging
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, warn
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network import hca, torch
from gpuready.network import nccl_conf as conf
from gpuready.network.gid import taken
from gpuready.network.nccl_conf import CONF
from gpuready.network.nccl_settings import settings
from gpuready.network.ports import Gid, Port, ports
from gpuready.network.rdma_choice import choose

_OTHERS_MAY_READ = 0o004


def _file(state: NodeState) -> dict[str, str]:
    return conf.effective(state.text(CONF))


def _ports(spec: NodeSpec, state: NodeState) -> Verdict:
    if not spec.nccl.names_ports:
        return skip("nccl in the spec names no network, interface or version; gpuready nccl shows what the node has")
    found = settings(state, spec.nccl)
    if found.problems:
        return fail(found.problems[0], evidence="\n".join(found.problems[1:]))
    if found.wires:
        return passed(f"NCCL uses TCP over {', '.join(map(str, found.wires))}")
    names = {each.port.name for each in found.fabric}
    down = [f"{each.port.name}: {each.reason}" for each in found.choices.refused if each.port.name in names]
    if down:
        return fail(f"{len(down)} of {count(len(names), 'port')} cannot be used: {'; '.join(down)}", "repair the link")
    said = [f"{each.port.name} {each.address or 'InfiniBand'}" for each in found.fabric]
    return passed(f"NCCL uses {', '.join(said)}")


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
            f"not every user can read {CONF} (mode {file.mode:o}): for the others, NCCL ignores it", f"chmod 644 {CONF}"
        )
    if found:
        return warn(f"{CONF}: {found[0]}", f"remove the line from {CONF}", said if len(found) > 1 else "")
    return passed(f"{CONF} sets {count(len(_file(state)), 'variable')}")


def _hca(spec: NodeSpec, state: NodeState) -> Verdict:
    value = _file(state).get("NCCL_IB_HCA", "")
    if not value:
        return skip(f"{CONF} does not set NCCL_IB_HCA")
    found, there = hca.read(value), ports(state)
    names = ", ".join(port.name for port in there)
    if not there:
        return warn(
            f"NCCL_IB_HCA={value}, but the node shows no RDMA device", "is its driver loaded, or is it in a container?"
        )
    if not any(found.selects(port) for port in there):
        return fail(f"NCCL_IB_HCA={value} matches none of the node's ports ({names}): NCCL uses TCP")
    lost = [name for name, port in found.entries if not any(found.names((name, port), each) for each in there)]
    if lost and not found.excludes:
        return fail(f"NCCL_IB_HCA={value}: no device is named {', '.join(lost)} ({names})")
    wide = [f"{name} matches {', '.join(each)}" for name, each in _prefixes(found, there) if len(each) > 1]
    if wide:
        return warn(
            f"NCCL_IB_HCA={value} contains prefixes: {'; '.join(wide)}", "name them exactly: NCCL_IB_HCA==NAME:PORT,..."
        )
    return passed(f"NCCL_IB_HCA={value}")


def _prefixes(found: hca.Hca, there: tuple[Port, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yield each entry that is a device's full name, with all devices that it matches as a prefix."""
    for name, number in found.entries:
        if not found.exact and any(port.device == name for port in there):
            yield name, list(dict.fromkeys(port.device for port in there if found.names((name, number), port)))


def _gid(spec: NodeSpec, state: NodeState) -> Verdict:
    said = _file(state)
    index, within = said.get("NCCL_IB_GID_INDEX", ""), said.get("NCCL_IB_ADDR_RANGE", "")
    fixed = index if re.fullmatch(r"[0-9]+", index) else ""
    if not fixed and not within:
        return skip(f"{CONF} selects no GID")
    chosen = hca.read(said["NCCL_IB_HCA"]) if said.get("NCCL_IB_HCA") else None
    used = [port for port in ports(state) if port.transport == "RoCE" and (chosen is None or chosen.selects(port))]
    used = [port for port in used if port.state == "ACTIVE"]
    if not used:
        return skip("it selects no active RoCE port")
    if fixed:
        wrong = [_judge(port, {g.index: g for g in port.gids}.get(int(fixed)), f"GID {fixed}") for port in used]
        what = f"NCCL_IB_GID_INDEX={fixed}"
    else:
        network = _network(within)
        if network is None:
            return fail(f"NCCL_IB_ADDR_RANGE={within} is not a network with a prefix length: NCCL ignores it")
        family = 6 if said.get("NCCL_IB_ADDR_FAMILY") == "AF_INET6" else 4
        wrong = [_judge(port, taken(port, family, network), "the GID that NCCL selects", network) for port in used]
        what = f"NCCL_IB_ADDR_RANGE={within}"
    wrong += _elsewhere(spec, state, used, int(fixed)) if fixed else []
    told = [text for text in wrong if text]
    if told:
        return fail(f"{what}: {told[0]}", evidence="\n".join(told[1:]))
    return passed(f"{what} fits {count(len(used), 'port')}")


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def _judge(port: Port, gid: Gid | None, what: str, within: IPv4Network | IPv6Network | None = None) -> str:
    """Return what is wrong with this GID on this port; empty if nothing is."""
    if gid is None:
        return f"{what} of {port.name} is an empty slot"
    if gid.address.is_link_local:
        return f"{what} of {port.name} is {gid}, a link-local address: it does not work across routers"
    if gid.version == "v1":
        return f"{what} of {port.name} is {gid}, RoCE v1, which routers do not forward"
    if within is not None and gid.address not in within:
        return f"{what} of {port.name} is {gid}, outside of the range"
    return ""


def _elsewhere(spec: NodeSpec, state: NodeState, used: list[Port], index: int) -> list[str]:
    """Return the ports on which the index is not the fabric's address, because the addresses changed since."""
    if not spec.nccl.names_ports:
        return []
    chosen = [each for each in choose(state, spec.nccl).chosen if each.port in used and each.gid_index != index]
    return [f"the fabric's GID of {each.port.name} is {each.gid_index}: {each.address}" for each in chosen]


def _debug(spec: NodeSpec, state: NodeState) -> Verdict:
    found = list(conf.for_all(state))
    wanted = ("NCCL_IB_DISABLE",) if spec.nccl.transport == "tcp" else ()
    told = ", ".join(
        f"{name}={value} in {file}" for file, name, value in found if debugging(name, value) and name not in wanted
    )
    if told:
        return warn(
            f"set for all jobs, but meant for debugging one: {told}",
            "remove it there, and set it in the job's environment",
        )
    if not found:
        return skip("no variable of NCCL is set for all jobs")
    return passed("no variable for debugging is set for all jobs")


def _torch(spec: NodeSpec, state: NodeState) -> Verdict:
    found = [row for row in conf.for_all(state) if row[1] in (torch.VARIABLE, torch.OLD_NAME)]
    if not found:
        return skip(f"{torch.VARIABLE} is not set for all; PyTorch's default is {torch.DEFAULT}: {torch.VALUES['3']}")
    file, name, value = found[-1]
    if file == CONF:
        return warn(
            f"{name} is set in {CONF}, but PyTorch reads it before NCCL loads that file",
            "set it in the job's environment",
        )
    if value not in torch.VALUES:
        return warn(f"{name}={value} in {file} is not a valid value", f"one of {', '.join(torch.VALUES)}")
    if value == "0":
        return warn(f"{name}=0 in {file}: when a rank is lost, {torch.VALUES['0']}", f"remove it from {file}, or set 1")
    if name == torch.OLD_NAME:
        return warn(f"{name} in {file} is the name from before PyTorch 2.2", f"rename it to {torch.VARIABLE} in {file}")
    return passed(f"{name}={value}: {torch.VALUES[value]}")


CHECKS = (
    Check(
        "nccl.ports",
        "each fabric port is up and has one address",
        Level.config,
        "A port of the fabric is down, or it is unclear which of its addresses belongs to the fabric. NCCL would "
        "guess.",
        "gpuready nccl -i INVENTORY; rdma link; ip -br addr",
        "name the fabric in nccl.subnets or nccl.interfaces, or give the port its address",
        _ports,
        component="nccl",
        after=("nccl.config",),
    ),
    Check(
        "nccl.grammar",
        "/etc/nccl.conf has valid syntax",
        Level.config,
        "NCCL splits a line of /etc/nccl.conf at the first = and trims nothing: quotes, blanks, export and comments "
        "after a value become part of the name or the value.",
        "cat -A /etc/nccl.conf",
        "write NAME=value, one per line, # only as the first character",
        _grammar,
        component="nccl",
    ),
    Check(
        "nccl.hca",
        "NCCL_IB_HCA names ports that exist",
        Level.config,
        "NCCL_IB_HCA is a list of prefixes unless it begins with =. If it matches no port, NCCL silently uses TCP, for "
        "example after persistent naming renamed mlx5_0.",
        "grep NCCL_IB_HCA /etc/nccl.conf; ls /sys/class/infiniband",
        "set nccl: {subnets: [...]}, so that gpuready writes the exact names; or remove the line",
        _hca,
        component="nccl",
    ),
    Check(
        "nccl.gid",
        "the fixed GID is still the right one",
        Level.config,
        "The GID that /etc/nccl.conf selects is link-local, RoCE v1, empty, or by now another address: indexes change "
        "when addresses are added or removed.",
        "grep -H . /sys/class/infiniband/*/ports/*/gids/* | grep -v 0000:0000:0000:0000:0000:0000:0000:0000",
        "nccl: {subnets: [...]} and gpuready apply; with NCCL 2.21 or newer remove NCCL_IB_GID_INDEX",
        _gid,
        component="nccl",
        after=("nccl.config",),
    ),
    Check(
        "nccl.debug",
        "no debug variable is set for all jobs",
        Level.config,
        "A variable for debugging one job (NCCL_DEBUG=INFO, NCCL_P2P_DISABLE, NCCL_PROTO ...) is set for all jobs.",
        "grep -s NCCL_ /etc/nccl.conf /etc/environment /etc/profile.d/*.sh",
        "remove it, and set it in the environment of that job",
        _debug,
        component="nccl",
    ),
    Check(
        "nccl.torch",
        "lost ranks are handled",
        Level.config,
        f"{torch.VARIABLE} says what PyTorch does when a rank is lost: "
        + "; ".join(f"{value}: {what}" for value, what in torch.VALUES.items())
        + f". Before PyTorch 2.2 its name was {torch.OLD_NAME}.",
        f"grep -s {torch.OLD_NAME} /etc/environment /etc/profile.d/*.sh; printenv {torch.VARIABLE}",
        "leave it unset (3), or set 1 in the job's environment",
        _torch,
        component="nccl",
    ),
)

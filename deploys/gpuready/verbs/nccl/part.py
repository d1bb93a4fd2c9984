"""The part of nccl: settings once for all hosts that share them, ports, launch lines; and the settings as variables."""

import json
import shlex
from dataclasses import dataclass, field
from typing import Annotated

from gpuready.base.host_list import hostlist
from gpuready.base.part import OPTIONAL, Count, OneOf, Part
from gpuready.network.nccl_settings import Settings, assignment
from gpuready.network.rdma_choice import Chosen, Refused
from gpuready.result.formats import FORMATS, VARIABLE_FORMATS
from gpuready.result.model import HostResult, Run, VerbPart
from gpuready.result.text import Painter, columns, grouped


@dataclass(frozen=True)
class NcclPort(Part):
    """nccl: a port of an RDMA device."""

    port: str
    """DEVICE:NUMBER."""
    transport: Annotated[str, OneOf(("InfiniBand", "RoCE", "iWARP", "other"))]
    """Its transport."""
    state: str
    """Its state."""
    netdev: str
    """Its network interface; empty: it has none."""
    gid_index: int | None
    """The GID index that NCCL uses; null: InfiniBand, or not used."""
    address: str | None
    """The address of that GID; null: it has none, or is not used."""
    line_gbps: float | None
    """The speed of the network interface in Gbit/s; null: unknown."""
    rate_gbps: float | None = None
    """The rate that RDMA reports, in Gbit/s; some drivers report a wrong one."""
    refused: str = ""
    """Why it is not used; empty: it is."""

    @classmethod
    def of(cls, found: Chosen | Refused) -> "NcclPort":
        port, chosen = found.port, found if isinstance(found, Chosen) else None
        return cls(
            port.name,
            port.transport,
            port.state,
            chosen.netdev if chosen else port.netdev,
            chosen.gid_index if chosen else None,
            str(chosen.address) if chosen and chosen.address else None,
            port.line_gbps,
            port.rate_gbps,
            "" if isinstance(found, Chosen) else found.reason,
        )


@dataclass(frozen=True)
class TcpInterface(Part):
    """nccl: a network interface for TCP."""

    netdev: str
    """Its name."""
    address: str
    """Its address with its prefix length."""
    line_gbps: float | None = None
    """Its speed in Gbit/s; null: unknown."""
    mtu: Count = 0
    """Its MTU; 0: unknown."""

    def __str__(self) -> str:
        return f"{self.netdev} {self.address}"


@dataclass(frozen=True)
class Nccl(Part):
    """nccl: the settings of one host."""

    variables: dict[str, str]
    """The variables, with the values that NCCL sees."""
    problems: tuple[str, ...]
    """Why there are no settings."""
    ports: tuple[NcclPort, ...]
    """The ports of its RDMA devices."""
    interfaces: tuple[TcpInterface, ...] | None = field(default=None, metadata=OPTIONAL)
    """The network interfaces, if NCCL uses TCP."""
    environment: dict[str, str] | None = field(default=None, metadata=OPTIONAL)
    """Variables that are not NCCL's own, if it uses TCP."""

    @classmethod
    def of(cls, found: Settings) -> "Nccl":
        found_tcp = tuple(TcpInterface(w.netdev, str(w.address), w.line_gbps, w.mtu) for w in found.wires)
        ports = tuple(map(NcclPort.of, found.choices.ports))
        environment = found.environment if found_tcp else None
        return cls(found.variables, found.problems, ports, found_tcp or None, environment)


def nccl(host: HostResult) -> Nccl | None:
    """The settings of a host; None: it was not read."""
    found: Nccl | None = host.parts.get("nccl")
    return found


class NcclPart(VerbPart):
    """A value of each host."""

    def blocks(self, run: Run, paint: Painter) -> list[list[str]]:
        answers = {host.name: found for host in run.hosts if (found := nccl(host)) is not None}
        blocks = {
            "interfaces for TCP": _wires(answers),
            "ports of the fabric": columns(_ports(answers)),
            "ports that are not used": _refused(answers),
        }
        told = [[paint("bold", title), *(f"    {row}" for row in rows)] for title, rows in blocks.items() if rows]
        return [*_settings(answers, paint), *told]

    def rendered(self, run: Run, form: str) -> str:
        answers = {host.name: found for host in run.hosts if (found := nccl(host)) is not None}
        return text({name: found for name, found in answers.items() if not found.problems}, form)


PART = NcclPart(
    verb="nccl",
    of_host={"nccl": (Nccl, "nccl: the settings.")},
    formats=(*FORMATS, *VARIABLE_FORMATS),
    judges=False,
)


def _settings(answers: dict[str, Nccl], paint: Painter) -> list[list[str]]:
    told = {name: answer for name, answer in answers.items() if answer.variables}
    found = grouped(
        (tuple({**each.variables, **(each.environment or {})}.items()), name) for name, each in told.items()
    )
    return [
        [f"{paint('bold', 'settings')} of {hostlist(names)}", *(f"    {n}={v}" for n, v in variables)]
        for variables, names in found.items()
    ]


def _ports(answers: dict[str, Nccl]) -> list[tuple[str, ...]]:
    return [
        (name, each.port, each.transport, _gid(each), _place(each), _speed(each))
        for name, answer in answers.items()
        for each in answer.ports
        if not each.refused
    ]


def _wires(answers: dict[str, Nccl]) -> list[str]:
    return [
        f"{name}  {wire}  {f'{wire.line_gbps:g} Gb/s' if wire.line_gbps else 'speed unknown'}"
        for name, answer in answers.items()
        for wire in answer.interfaces or ()
    ]


def _gid(each: NcclPort) -> str:
    return "" if each.gid_index is None else f"GID {each.gid_index}"


def _place(each: NcclPort) -> str:
    return f"{each.address or 'no IP address'}{f' on {each.netdev}' if each.netdev else ''}"


def _speed(each: NcclPort) -> str:
    if each.line_gbps:
        return f"{each.line_gbps:g} Gb/s"
    return f"{each.rate_gbps:g} Gb/s by RDMA's word" if each.rate_gbps else "speed unknown"


def _refused(answers: dict[str, Nccl]) -> list[str]:
    refused = ((name, each) for name, answer in answers.items() for each in answer.ports if each.refused)
    found = grouped(((each.port, each.refused), name) for name, each in refused)
    return [f"{port} on {hostlist(names)}: {reason}" for (port, reason), names in found.items()]


def text(answers: dict[str, Nccl], form: str) -> str:
    """The variables in one of VARIABLE_FORMATS; comments name the hosts, if they differ."""
    told = {name: answer for name, answer in answers.items() if answer.variables}
    found = grouped(
        (_formed({**each.variables, **((each.environment or {}) if form != "conf" else {})}, form), name)
        for name, each in told.items()
    )
    if len(found) == 1:
        return next(iter(found))
    return "\n".join(f"# {hostlist(names)}\n{body}" for body, names in found.items())


def _formed(variables: dict[str, str], form: str) -> str:
    if form == "conf":
        return "".join(f"{name}={value}\n" for name, value in variables.items())
    if form == "env":
        return "".join(f"export {assignment(name, value)}\n" for name, value in variables.items())
    if form == "docker":
        return " ".join(f"--env {shlex.quote(f'{name}={value}')}" for name, value in variables.items()) + "\n"
    return "".join(f"- name: {name}\n  value: {json.dumps(value)}\n" for name, value in variables.items())

"""``gpuready nccl`` for people, and as variables: settings once for all hosts that share them, ports, launch lines."""

import json
import shlex
from dataclasses import dataclass

from gpuready.base.host_list import hostlist
from gpuready.network import torch
from gpuready.network.discovery import Chosen
from gpuready.network.nccl_settings import Settings
from gpuready.report.text import Painter, columns, grouped
from gpuready.tools.fabric.launch import Launch, assignment

FORMS = ("conf", "env", "docker", "k8s")


@dataclass(frozen=True)
class NcclAnswer:
    """What is said of one host."""

    settings: Settings
    launch: Launch | None = None


def lines(answers: dict[str, NcclAnswer], paint: Painter) -> list[list[str]]:
    """The blocks of the human report."""
    blocks = {
        "interfaces for TCP": _wires(answers),
        "ports of the fabric": columns(_ports(answers)),
        "ports that are not used": _refused(answers),
    }
    told = [[paint("bold", title), *(f"    {row}" for row in rows)] for title, rows in blocks.items() if rows]
    return [*_settings(answers, paint), *told, _launches(answers, paint)]


def _settings(answers: dict[str, NcclAnswer], paint: Painter) -> list[list[str]]:
    told = {name: answer.settings for name, answer in answers.items() if answer.settings.variables}
    found = grouped((tuple({**each.variables, **each.environment}.items()), name) for name, each in told.items())
    return [
        [f"{paint('bold', 'settings')} of {hostlist(names)}", *(f"    {n}={v}" for n, v in variables)]
        for variables, names in found.items()
    ]


def _ports(answers: dict[str, NcclAnswer]) -> list[tuple[str, ...]]:
    return [
        (name, each.port.name, each.port.transport, _gid(each), _place(each), _speed(each))
        for name, answer in answers.items()
        for each in answer.settings.choices.chosen
    ]


def _wires(answers: dict[str, NcclAnswer]) -> list[str]:
    return [
        f"{name}  {wire}  {f'{wire.line_gbps:g} Gb/s' if wire.line_gbps else 'speed unknown'}"
        for name, answer in answers.items()
        for wire in answer.settings.wires
    ]


def _gid(each: Chosen) -> str:
    return "" if each.gid_index is None else f"GID {each.gid_index}"


def _place(each: Chosen) -> str:
    return f"{each.address or 'no IP address'}{f' on {each.netdev}' if each.netdev else ''}"


def _speed(each: Chosen) -> str:
    if each.port.line_gbps:
        return f"{each.port.line_gbps:g} Gb/s"
    return f"{each.port.rate_gbps:g} Gb/s by RDMA's word" if each.port.rate_gbps else "speed unknown"


def _refused(answers: dict[str, NcclAnswer]) -> list[str]:
    refused = ((name, each) for name, answer in answers.items() for each in answer.settings.choices.refused)
    found = grouped(((each.port.name, each.reason), name) for name, each in refused)
    return [f"{port} on {hostlist(names)}: {reason}" for (port, reason), names in found.items()]


def _launches(answers: dict[str, NcclAnswer], paint: Painter) -> list[str]:
    found = {name: answer.launch for name, answer in answers.items() if answer.launch is not None}
    if not found:
        return []
    told = [line for name, launch in found.items() for line in (f"    {paint('bold', name)}:", f"      {launch}")]
    said = f"    {torch.VARIABLE} says what becomes of a rank when another is lost:"
    values = [f"      {value}  {what}" for value, what in torch.VALUES.items()]
    old = f"    Its name before PyTorch 2.2: {torch.OLD_NAME}."
    return [f"{paint('bold', 'launch')}, ranks in the order of the inventory", *told, said, *values, old]


def text(answers: dict[str, NcclAnswer], form: str) -> str:
    """The variables in one of :data:`FORMS`; several hosts that differ are told apart by comments."""
    told = {name: answer.settings for name, answer in answers.items() if answer.settings.variables}
    found = grouped(
        (_formed({**each.variables, **(each.environment if form != "conf" else {})}, form), name)
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

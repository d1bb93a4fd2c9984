"""A job of all hosts at once with torchrun: the role of each host, and why its ranks failed.

There is one rank for each GPU. The ranks use NCCL, or gloo if the specs say that no host has a GPU.

Sources: PyTorch's documentation of torchrun (static rendezvous, --no-python) and of torch.distributed
(GLOO_SOCKET_IFNAME), and its tutorial on the TCPStore (the time to start grows with the ranks).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpuready.base.errors import brief
from gpuready.base.host_list import hostlist
from gpuready.contract.check import has_gpu
from gpuready.fabric import figures
from gpuready.fabric.commands import Command, Test, program
from gpuready.fabric.launch import Job, NcclError, gpus, master
from gpuready.fabric.verdict import Answer, Finding, blocked, skipped
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network import torch
from gpuready.network.links import End, wire_end
from gpuready.network.nccl_settings import Settings, cluster

#: Seconds to start torch, and ranks that connect in one more second.
_START, _RANKS_A_SECOND = 150, 10
#: Seconds that torchrun has in addition to its ranks, to start and to end them.
_TORCHRUN = 30
#: What a rank or torchrun says of a rank's end: a Python error, the script's own words, or the signal that killed it.
_ERROR = re.compile(
    r"^(?:\[rank\d{1,6}\]: |[EW]\d{4} .{0,150}\] )?([\w.]{1,100}(?:Error|Exception): .{0,400}|rank \d.{0,200})$"
    r"|(Signal \d{1,3} \(SIG\w{1,20}\) received)",
    re.M,
)


@dataclass(frozen=True)
class Role:
    """The role of one host. ``rank``: of the node. ``ranks``: their number on the node.

    ``single``: one port or interface carries all traffic between the hosts, so that its counters must show all of it.
    ``rails_gbps``: the sum of the line rates of all ports or interfaces; None: unknown.
    ``others``: hosts on which this one starts ranks.
    """

    end: End
    rank: int
    command: Command
    ranks: int
    single: bool
    rails_gbps: float | None = None
    others: tuple[str, ...] = ()

    @property
    def network(self) -> str:
        """What carries the traffic between the hosts, in words."""
        return "gloo" if self.command.gloo else f"NCCL over {'TCP' if self.end.over_tcp else 'RDMA'}"


def start(ranks: int) -> int:
    """Return the seconds that ranks have until all are connected.

    It grows with their number, since the store of rank 0 serves them one after another, and each of them asks it for
    the addresses of others. torch itself starts on all hosts at once.
    """
    return _START + ranks // _RANKS_A_SECOND


def planned(
    test: Test,
    arguments: Callable[[int], Sequence[str]],
    seconds: int,
    states: Mapping[str, NodeState],
    specs: Mapping[str, NodeSpec],
    only: Sequence[int] = (),
) -> tuple[list[Role], list[Finding]]:
    """Return the role of each host; or no roles, and why the job cannot run.

    ``arguments``: of the script, for a number of seconds to start (:func:`start`). ``seconds``: to measure.
    ``only``: these GPUs of each host.
    """
    gloo = all(specs[name].hardware.without_gpus for name in states)
    settled = cluster(states, specs)
    ends = {name: _end(name, settled[name], gloo) for name in states}
    without = [name for name, state in states.items() if not gloo and not has_gpu(state)]
    if without:
        return [], [skipped(test, end, end, f"{hostlist(without)}: no GPU") for end in ends.values()]
    counts, short = {}, []
    for name, state in states.items():
        try:
            counts[name] = 1 if gloo else len(only) or gpus(specs[name], state)
        except NcclError as e:
            short.append(f"{name}: {e}")
    if short:
        remedy = "gpuready explain gpu.count"
        return [], [Finding(test.name, end, end, "fail", "; ".join(short), remedy=remedy) for end in ends.values()]
    problems = [f"{name}: {problem}" for name, found in settled.items() for problem in found.problems]
    first, address = next(iter(settled)), ""
    try:
        address = master(settled[first], Job(()))
    except NcclError as e:
        problems = problems or [f"{first}: {e}"]
    if problems:
        return [], [blocked(test, end, end, "; ".join(problems)) for end in ends.values()]
    roles, patience = [], start(sum(counts.values()))
    for rank, (name, end) in enumerate(ends.items()):
        environment = {
            **settled[name].variables,
            **settled[name].environment,
            **({"GLOO_SOCKET_IFNAME": end.netdev, "CUDA_VISIBLE_DEVICES": ""} if gloo else {}),
            **({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, only))} if only else {}),
            "NCCL_DEBUG": "INFO",
            "OMP_NUM_THREADS": "1",
            torch.VARIABLE: "1",
        }
        options = {
            "--nnodes": len(ends), "--node-rank": rank, "--nproc-per-node": counts[name], "--master-addr": address,
        }  # fmt: skip
        command = Command(
            test,
            tuple(arguments(patience)),
            patience + _TORCHRUN + seconds,
            tuple(f"{key}={value}" for key, value in environment.items()),
            tool=program(test, specs[name]),
            launcher=tuple(str(word) for item in options.items() for word in item),
            gloo=gloo,
        )
        rates = [wire.line_gbps for wire in settled[name].wires]
        rates = rates or [each.port.line_gbps for each in settled[name].fabric]
        known = [rate for rate in rates if rate]
        rails = sum(known) if known and len(known) == len(rates) else None
        roles.append(Role(end, rank, command, counts[name], gloo or len(rates) < 2, rails))
    return roles, []


def _end(host: str, settled: Settings, gloo: bool) -> End:
    """Return the interface for TCP, or the first port of the fabric."""
    if settled.wires:
        return wire_end(host, settled.wires[0])
    port = next((each for each in settled.fabric if each.netdev or not gloo), None)
    if port is None:
        return End(host, "tcp", 0)
    device, number = (port.netdev, 0) if gloo else (port.port.device, port.port.number)
    return End(host, device, number, port.netdev, str(port.address or ""))


def hosts_of(jobs: Sequence[Sequence[Role]]) -> list[str]:
    """Return the hosts that these jobs use, each once, in order."""
    return list(dict.fromkeys(name for roles in jobs for role in roles for name in (role.end.host, *role.others)))


def by_host(hosts: Sequence[str], texts: Sequence[str]) -> str:
    """Join the messages of the hosts, without repeats."""
    said = {
        text: hostlist(host for host, its in zip(hosts, texts, strict=True) if its == text) for text in texts if text
    }
    return "; ".join(f"{names}: {text}" for text, names in said.items())


def complaint(answer: Answer) -> str:
    """Return why the ranks of a host failed; empty if they did not, or if gpuready ended them."""
    if not answer.rc:
        return ""
    if answer.rc == 124:
        return "torchrun did not end in time, and was stopped"
    said = [error or signal for error, signal in _ERROR.findall(answer.text)]
    found = [each for each in said if "ChildFailedError" not in each]  # torchrun's word for what a rank said before
    found = [each for each in found if "(SIGTERM)" not in each] or found  # it ends the other ranks of the host so
    if not found and answer.rc == 137:
        return "torchrun was killed: it did not end in time, or memory ran out (dmesg)"
    return brief(found[-1] if found else f"{figures.complaint(answer.text)} (exit {answer.rc})".strip())

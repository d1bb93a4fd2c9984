"""The test ``train``: the training of ``gpuready example ddp``, on all hosts at once, one rank for each GPU.

The hosts train with NCCL, or with gloo if the specs say that none has a GPU. All ranks must end with the same loss: an
all-reduce gives the same bits on all of them. The step takes as long on all hosts, so what tells them apart is the part
in which a rank does not wait for another: data, copy and forward pass.

Sources: PyTorch's documentation of torchrun (static rendezvous, --no-python) and of torch.distributed
(GLOO_SOCKET_IFNAME).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuready.base.documents import DocumentError, read_json
from gpuready.base.errors import brief
from gpuready.base.host_list import hostlist
from gpuready.contract.check import has_gpu
from gpuready.fabric import figures
from gpuready.fabric.commands import TESTS, Command, program
from gpuready.fabric.counters import Moved
from gpuready.fabric.launch import Job, NcclError, gpus, master
from gpuready.fabric.verdict import Answer, Finding, blocked, proofs, skipped
from gpuready.gpu.stress_figures import least
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network import torch
from gpuready.network.links import End, wire_end
from gpuready.network.nccl_settings import Settings, cluster

TEST = TESTS["train"]
#: Samples for each rank and step, the script's default; and bytes of the gradients, which each host sends and receives.
_BATCH, _GRADIENTS = 256, 4 * (2 * 256 * 1024 + 1024 + 256)
_ENDLESS = ("--steps", "1000000000", "--every", "1000000000")
#: Seconds to start torch and to connect all ranks, in addition to the training.
_START = 180
#: A host is slow if it is slower than the median by this share, and by more than five deviations.
_MARGIN = 0.3
#: What a rank or torchrun says of a rank's end: a Python error, the script's own words, or the signal that killed it.
_ERROR = re.compile(
    r"^(?:\[rank\d{1,6}\]: |[EW]\d{4} .{0,150}\] )?([\w.]{1,100}(?:Error|Exception): .{0,400}|rank \d.{0,200})$"
    r"|(Signal \d{1,3} \(SIG\w{1,20}\) received)",
    re.M,
)


@dataclass(frozen=True)
class Part:
    """The part of one host. ``rank``: of the node. ``moved``: bytes that must at least pass each way."""

    end: End
    rank: int
    command: Command
    ranks: int
    moved: int


@dataclass(frozen=True)
class _Report:
    """What one rank printed: its loss, the seconds of a step, and the seconds of a step in which it did not wait."""

    loss: float
    step: float
    own: float


def planned(
    states: Mapping[str, NodeState], specs: Mapping[str, NodeSpec], seconds: int
) -> tuple[list[Part], list[Finding]]:
    """Return the part of each host; or no parts, and why the training cannot run."""
    gloo = all(specs[name].hardware.without_gpus for name in states)
    settled = cluster(states, specs)
    ends = {name: _end(name, settled[name], gloo) for name in states}
    without = [name for name, state in states.items() if not gloo and not has_gpu(state)]
    if without:
        return [], [skipped(TEST, end, end, f"{hostlist(without)}: no GPU") for end in ends.values()]
    counts, short = {}, []
    for name, state in states.items():
        try:
            counts[name] = 1 if gloo else gpus(specs[name], state)
        except NcclError as e:
            short.append(f"{name}: {e}")
    if short:
        remedy = "gpuready explain gpu.count"
        return [], [Finding(TEST.name, end, end, "fail", "; ".join(short), remedy=remedy) for end in ends.values()]
    problems = [f"{name}: {problem}" for name, found in settled.items() for problem in found.problems]
    first, address = next(iter(settled)), ""
    try:
        address = master(settled[first], Job(()))
    except NcclError as e:
        problems = problems or [f"{first}: {e}"]
    if problems:
        return [], [blocked(TEST, end, end, "; ".join(problems)) for end in ends.values()]
    parts = []
    for rank, (name, end) in enumerate(ends.items()):
        environment = {
            **settled[name].variables,
            **settled[name].environment,
            **({"GLOO_SOCKET_IFNAME": end.netdev, "CUDA_VISIBLE_DEVICES": ""} if gloo else {}),
            "NCCL_DEBUG": "INFO",
            "OMP_NUM_THREADS": "1",
            torch.VARIABLE: "1",
        }
        options = {
            "--nnodes": len(ends), "--node-rank": rank, "--nproc-per-node": counts[name], "--master-addr": address,
        }  # fmt: skip
        command = Command(
            TEST,
            ("--seconds", str(seconds), "--batch", str(_BATCH), "--checkpoint", "/nonexistent", *_ENDLESS),
            _START + seconds,
            tuple(f"{key}={value}" for key, value in environment.items()),
            tool=program(TEST, specs[name]),
            launcher=tuple(str(word) for item in options.items() for word in item),
            gloo=gloo,
        )
        moved = _GRADIENTS if end.over_tcp and len(settled[name].wires) < 2 else 0
        parts.append(Part(end, rank, command, counts[name], moved))
    return parts, []


def _end(host: str, settled: Settings, gloo: bool) -> End:
    """Return the interface for TCP, or the first port of the fabric."""
    if settled.wires:
        return wire_end(host, settled.wires[0])
    port = next((each for each in settled.fabric if each.netdev or not gloo), None)
    if port is None:
        return End(host, "tcp", 0)
    device, number = (port.netdev, 0) if gloo else (port.port.device, port.port.number)
    return End(host, device, number, port.netdev, str(port.address or ""))


def judged(parts: Sequence[Part], answers: Sequence[Answer]) -> list[Finding]:
    """Return a finding for each host. What went wrong on one host is the result of all of them."""
    hosts = [part.end.host for part in parts]
    reports = [_reports(answer.text) for answer in answers]
    losses = {host: each.loss for host, found in zip(hosts, reports, strict=True) for each in found}
    missing = _each(hosts, [answer.missing for answer in answers])
    lost = _each(hosts, [answer.trouble for answer in answers])
    failed = _each(hosts, [_complaint(answer) for answer in answers])
    silent = [part.end.host for part, found in zip(parts, reports, strict=True) if len(found) != part.ranks]
    status, summary, remedy = "fail", "", f"gpuready explain fabric.{TEST.name}"
    if missing:
        status, summary, remedy = "skip", missing, f"install {TEST.source}"
    elif lost:
        status, summary = "unknown", f"the training was ended: {lost}"
    elif failed:
        summary = failed
        if "libuv" in failed:
            remedy = "this PyTorch is built without libuv, which torchrun needs: name another one in verify.torch"
    elif silent:
        status, summary = "unknown", f"{hostlist(silent)}: not every rank printed its result"
    elif len({each.loss for found in reports for each in found}) > 1:
        shown = ", ".join(f"{host} {loss!r}" for host, loss in losses.items())
        summary = f"data was corrupted: the ranks have different losses ({shown})"
    else:
        return _figures(parts, answers, reports)
    return [Finding(TEST.name, part.end, part.end, status, brief(summary, 1000), remedy=remedy) for part in parts]


def _each(hosts: Sequence[str], texts: Sequence[str]) -> str:
    """Join the messages of the hosts, without repeats."""
    said = {
        text: hostlist(host for host, its in zip(hosts, texts, strict=True) if its == text) for text in texts if text
    }
    return "; ".join(f"{names}: {text}" for text, names in said.items())


def _complaint(answer: Answer) -> str:
    """Return why the ranks of a host failed; empty if they did not, or if gpuready ended them."""
    if not answer.rc:
        return ""
    if answer.rc in (124, 137):
        return "torchrun did not end in time, and was stopped"
    said = [error or signal for error, signal in _ERROR.findall(answer.text)]
    found = [each for each in said if "ChildFailedError" not in each]  # torchrun's word for what a rank said before
    return brief(found[-1] if found else f"{figures.complaint(answer.text)} (exit {answer.rc})".strip())


def _reports(text: str) -> list[_Report]:
    """Parse the reports of the ranks; ignore all other lines."""
    found = {}
    for line in re.findall(r"^\{.{1,1000}\}$", text, re.M):
        try:
            row = read_json(line)
            values = [float(row[name]) for name in ("loss", "step", "own")]
        except (ValueError, TypeError, KeyError, OverflowError, DocumentError):
            continue
        if all(0 < value < 1e9 for value in values):
            found[str(row.get("rank"))] = _Report(*values)
    return list(found.values())


def _figures(parts: Sequence[Part], answers: Sequence[Answer], reports: Sequence[Sequence[_Report]]) -> list[Finding]:
    """Judge a training that ended well: the network that carried it, and which host was slow."""
    step = max(each.step for found in reports for each in found)
    ranks = sum(part.ranks for part in parts)
    rate = ranks * _BATCH / step
    own = [max(each.own for each in found) for found in reports]
    middle, _, limit = least([1 / seconds for seconds in own], _MARGIN)
    network = "gloo" if parts[0].command.gloo else f"NCCL over {'TCP' if parts[0].end.over_tcp else 'RDMA'}"
    common = f"{rate:.0f} samples/s, {ranks} ranks, {network}, loss {reports[0][0].loss:.4g}; a step takes "
    common += f"{step * 1000:.3g} ms; each rank computes for {min(own) * 1000:.3g} to {max(own) * 1000:.3g} ms"
    made = []
    for part, answer, seconds in zip(parts, answers, own, strict=True):
        moved = Moved(0, part.moved, 0, part.moved)
        proved = proofs(part.end, answer, moved, nccl=not part.command.gloo)
        more = {"loss": reports[0][0].loss, "step_ms": step * 1000, "own_ms": seconds * 1000}
        status, summary, remedy = "pass", common, ""
        if any(each.proved is False for each in proved):
            status, summary = "fail", f"{common}; but this host did not use {part.end.device} for it"
            remedy = f"gpuready explain fabric.{TEST.name}"
        elif any(each.proved is None for each in proved):
            status, summary = "unknown", f"{common}; but without proof of the network"
        elif 1 / seconds < limit:
            status, slower = "warn", 100 * (1 - 1 / (seconds * middle))
            summary = f"{slower:.0f} % slower than the median host, computes for {more['own_ms']:.3g} ms; {common}"
            remedy = "check this host's CPU and GPUs: other load, power limits, gpuready verify --level stress"
        proof = "; ".join(each.text for each in proved)
        made.append(
            Finding(TEST.name, part.end, part.end, status, summary, rate, proof=proof, remedy=remedy, more=more)
        )
    return made

"""The test ``train``: the training of ``gpuready example ddp``, on all hosts at once.

All ranks must end with the same loss: an all-reduce gives the same bits on all of them. The step takes as long on all
hosts, so what tells them apart is the part in which a rank does not wait for another: data, copy and forward pass.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpuready.base.documents import DocumentError, read_json
from gpuready.base.errors import brief
from gpuready.base.host_list import hostlist
from gpuready.fabric.commands import TESTS
from gpuready.fabric.counters import Moved
from gpuready.fabric.job import Part, by_host, complaint
from gpuready.fabric.verdict import Answer, Finding, proofs
from gpuready.gpu.stress_figures import least

TEST = TESTS["train"]
#: Samples for each rank and step, the script's default; and bytes of the gradients, which each host sends and receives.
_BATCH, _GRADIENTS = 256, 4 * (2 * 256 * 1024 + 1024 + 256)
#: A host is slow if it is slower than the median by this share, and by more than five deviations.
_MARGIN = 0.3
_ENDLESS = ("--steps", "1000000000", "--every", "1000000000")


@dataclass(frozen=True)
class _Report:
    """What one rank printed: its loss, the seconds of a step, and the seconds of a step in which it did not wait."""

    loss: float
    step: float
    own: float


def arguments(seconds: int) -> tuple[str, ...]:
    """Return the arguments of the script, which trains for so long."""
    return ("--seconds", str(seconds), "--batch", str(_BATCH), "--checkpoint", "/nonexistent", *_ENDLESS)


def judged(parts: Sequence[Part], answers: Sequence[Answer]) -> list[Finding]:
    """Return a finding for each host. What went wrong on one host is the result of all of them."""
    hosts = [part.end.host for part in parts]
    reports = [_reports(answer.text) for answer in answers]
    losses = {host: each.loss for host, found in zip(hosts, reports, strict=True) for each in found}
    missing = by_host(hosts, [answer.missing for answer in answers])
    lost = by_host(hosts, [answer.trouble for answer in answers])
    failed = by_host(hosts, [complaint(answer) for answer in answers])
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
    common = f"{rate:.0f} samples/s, {ranks} ranks, {parts[0].network}, loss {reports[0][0].loss:.4g}; a step takes "
    common += f"{step * 1000:.3g} ms; each rank computes for {min(own) * 1000:.3g} to {max(own) * 1000:.3g} ms"
    made = []
    for part, answer, seconds in zip(parts, answers, own, strict=True):
        moved = _GRADIENTS if part.single else 0
        proved = proofs(part.end, answer, Moved(0, moved, 0, moved), nccl=not part.command.gloo)
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

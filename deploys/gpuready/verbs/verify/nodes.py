"""Load the GPUs of one idle node, by templates/stress or a script like it. No setting of the node changes."""

import re
import time
from collections.abc import Mapping

from pyinfra.api.host import Host

from gpuready.base import resources
from gpuready.base.records import Records
from gpuready.contract.ignored_containers import words
from gpuready.contract.smoke import ASK
from gpuready.gpu.stress import NO_TORCH, Node, node
from gpuready.model.spec import NodeSpec
from gpuready.operations.step import show
from gpuready.operations.transport import Session, count_exec

#: Seconds in addition to the load: to start torch, to allocate, to compare, and to wait for a GPU that hangs.
_BESIDE = 300
#: Seconds for the idle check, nvidia-smi, and the container or the discovery, before and after.
_AROUND = 300


def limit(seconds: int) -> int:
    """Return the time limit of the load on the node, in seconds."""
    return _BESIDE + 8 * seconds


def has_torch(spec: NodeSpec) -> bool:
    """Tell whether the spec names a PyTorch, on the node or in an image."""
    return bool(spec.verify.torch or spec.verify.image)


def run_stress(host: Host, spec: NodeSpec, seconds: int) -> Node:
    """Load the GPUs for about ``seconds``, if nothing uses them. Closing the session ends the load."""
    if not has_torch(spec):
        return Node(unknown=NO_TORCH)
    slurm, *ignored = words(spec)
    script = resources.script(
        "stress/stress",
        torch=spec.verify.torch or "",
        image=spec.verify.image or "",
        ask=ASK[spec.toolkit.hardened],
        program=resources.document("stress/stress.py"),
        seconds=seconds,
        limit=limit(seconds),
        node=slurm,
        ignore=ignored,
    )
    return node(run_load(host, script, "stress", limit(seconds)))


def run_load(host: Host, script: str, name: str, seconds: int) -> Mapping[str, tuple[int, str]]:
    """Run a script that loads the GPUs for at most ``seconds``; show its phases; return its records.

    Closing the session ends the load.
    """
    count_exec(host)
    with Session(host, script, name) as session:
        end = time.monotonic() + seconds + _AROUND
        while True:
            word, text = session.hear("phase", "begin", limit=max(1.0, end - time.monotonic()))
            if word == "begin":
                break
            show(host, f"{name}: {re.sub('[^a-zA-Z -]', '', text)[:40]}")
        records = Records(session.records(60))
        session.linger()
        return records.runs

"""Run one test between two nodes: start the server, wait until it listens, then run the client. Both have a limit."""

import contextlib
import re
import time
from dataclasses import replace

from pyinfra.api.host import Host

from gpuready.base import resources
from gpuready.base.errors import GpureadyError
from gpuready.base.records import ProbeError, Records
from gpuready.fabric.commands import Command, Test, commands
from gpuready.fabric.counters import read
from gpuready.fabric.verdict import Answer, Finding, found
from gpuready.model.verify import Thresholds
from gpuready.network.links import End
from gpuready.operations.transport import Session, count_exec

#: The first port to try; the node uses the first free one from here on. It is below the ephemeral ports of all systems.
FIRST_PORT = 18515
#: What the Python of a test with torch runs.
_SCRIPTS = {"nccl": "fabric/all_reduce.py", "train": "verbs/example/ddp.py", "collective": "fabric/collective.py"}
#: Seconds in addition to a tool's own limit: to start, to be killed, and to read the counters.
_GRACE = 90


def run_test(
    test: Test,
    ends: tuple[End, End],
    hosts: tuple[Host, Host],
    tools: tuple[str, str],
    limits: Thresholds,
    seconds: int,
    write_bw: float | None,
) -> Finding:
    """Return one finding. ``ends``, ``hosts`` and ``tools`` (a command or a path) are of server and client.

    ``seconds``: how long write_bw measures.
    """
    began = time.monotonic()
    of_server, of_client = commands(test, *ends, seconds)
    ordered = replace(of_server, tool=tools[0]), replace(of_client, tool=tools[1])
    answers = (Answer(), _one(ordered[1], ends[1], hosts[1])) if test.alone else _both(ordered, ends, hosts)
    finding = found(test, *ends, answers, limits, write_bw)
    return replace(finding, seconds=time.monotonic() - began)


def _one(command: Command, end: End, host: Host) -> Answer:
    with contextlib.ExitStack() as stack:
        try:
            session = begin(stack, host, command, end, 0, "")
            session.hear("begin", limit=command.limit + _GRACE)
            return answer(session)
        except GpureadyError as e:
            return Answer(trouble=str(e))


def _both(ordered: tuple[Command, Command], ends: tuple[End, End], hosts: tuple[Host, Host]) -> tuple[Answer, Answer]:
    with contextlib.ExitStack() as stack:
        try:
            server = begin(stack, hosts[0], ordered[0], ends[0], FIRST_PORT, ordered[0].test.listens)
            word, port = server.hear("listening", "begin", limit=ordered[0].limit + _GRACE)
            if word == "begin":  # the server has already ended
                return answer(server), Answer()
            number = port_of(port)
        except GpureadyError as e:
            return Answer(trouble=str(e)), Answer()
        try:
            client = begin(stack, hosts[1], ordered[1], ends[1], number, "")
            client.hear("begin", limit=ordered[1].limit + _GRACE)
            theirs = answer(client)
        except GpureadyError as e:
            theirs = Answer(trouble=str(e))
        if theirs.rc != 0 or ordered[0].test.stays:  # no client will connect
            server.send(b"\n", limit=_GRACE)
        try:
            server.hear("begin", limit=ordered[0].limit + _GRACE)
            return answer(server), theirs
        except GpureadyError as e:
            return Answer(trouble=str(e)), theirs


def port_of(text: str) -> int:
    """Return the port that a node reported; raises ProbeError."""
    if not re.fullmatch("[0-9]{1,5}", text):
        raise ProbeError(f"the node reported {text[:20]!r} as its port")
    return int(text)


def begin(stack: contextlib.ExitStack, host: Host, command: Command, end: End, port: int, listens: str) -> Session:
    """Start the tool of one end on its node. ``listens``: what it listens on, from ``port`` on; empty for a client."""
    torch = ""
    if command.test.gpu:
        torch = resources.document(_SCRIPTS[command.test.name], measure=True)
    script = resources.script(
        "fabric/fabric",
        tool=command.tool,
        limit=command.limit,
        port=port,
        device="" if end.over_tcp else end.device,
        number=end.port,
        netdev=end.netdev,
        listens=listens,
        torch=torch,
        launcher=command.launcher,
        gloo=command.gloo,
        known=command.known,
        before=command.before,
        shell=command.shell,
        arguments=command.arguments,
    )
    count_exec(host)
    return stack.enter_context(Session(host, script, f"fabric {command.test.name}"))


def answer(session: Session) -> Answer:
    """Read the answer of one end, after its line ``begin``."""
    runs = Records(session.records(_GRACE)).runs
    if "missing" in runs:
        return Answer(missing=runs["missing"][1].strip())
    if not {"tool", "driver", "before", "after"} <= runs.keys():
        raise ProbeError("the node's answer is incomplete")
    rc, text = runs["tool"]
    driver = runs["driver"][1].strip()
    before, after = (read(runs[name][1], driver) for name in ("before", "after"))
    return Answer(rc, text, before, after)

"""Run a job of ``fabric``: torchrun on all of its nodes at once, or mpirun on one. If one fails or is lost, all end."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import gevent
from gevent.event import AsyncResult
from gevent.pool import Group
from pyinfra.api.host import Host

from gpuready.base.errors import GpureadyError
from gpuready.base.records import ProbeError
from gpuready.fabric.job import Role
from gpuready.fabric.verdict import Answer
from gpuready.operations.transport import OPENING, Session
from gpuready.verbs.fabric.pair import FIRST_PORT, answer, begin, port_of

#: Seconds without a beat after which a node counts as lost. The script says one every two seconds.
_SILENCE = 15
#: Seconds in addition to the job's limit: to look for torch, to start, to be killed, and to read the counters.
_GRACE = 180
#: Seconds that the other nodes have to report their own error before they are ended.
_OWN_ERROR = 3


def run_job(roles: Sequence[Role], hosts: Sequence[Host], number: int = 0) -> list[Answer]:
    """Return the answer of each host; without an exit status if gpuready ended its ranks.

    The first host has rank 0, and chooses the port. ``number``: of the job, if several run at once.
    """
    port: AsyncResult[int] = AsyncResult()
    sessions: list[Session] = []
    group = Group()
    lowest = FIRST_PORT + 100 * number
    jobs = [group.spawn(_run, role, host, port, sessions, lowest) for role, host in zip(roles, hosts, strict=True)]
    try:
        for done in gevent.iwait(jobs):
            if done.get().rc != 0:
                gevent.joinall(jobs, timeout=_OWN_ERROR)
                break
        by_themselves = [job.ready() for job in jobs]
        port.set(0)
        for session in sessions:
            with contextlib.suppress(GpureadyError):
                session.send(b"\n", limit=_OWN_ERROR)
        answers = [job.get() for job in jobs]
        return [each if ended else replace(each, rc=None) for each, ended in zip(answers, by_themselves, strict=True)]
    finally:
        group.kill()


def _run(role: Role, host: Host, port: AsyncResult[int], sessions: list[Session], lowest: int) -> Answer:
    """Run torchrun on one node. The first node sets ``port``; the others wait for it, or for 0: there will be none."""
    first = role.rank == 0
    limit = role.command.limit + _GRACE
    alone = not role.command.launcher  # mpirun: it starts the other nodes' ranks, and has no beat
    patience = limit if alone else OPENING + _SILENCE  # sudo may take its time before the first beat
    try:
        with (
            gevent.Timeout(limit, ProbeError(f"{'mpirun' if alone else 'torchrun'} did not end within {limit} s")),
            contextlib.ExitStack() as stack,
        ):
            session = begin(
                stack, host, role.command, role.end, lowest if first else 0, "tcp" if first and not alone else ""
            )
            sessions.append(session)
            while True:
                word, text = session.hear("beat", "listening", "ready", "begin", limit=patience)
                patience = _SILENCE
                if word == "begin":
                    return answer(session)
                if word == "listening":
                    port.set(port_of(text))
                if word == "ready":
                    if not port.get():
                        return Answer()
                    session.send(f"{port.get()}\n".encode(), limit=_SILENCE)
    except GpureadyError as e:
        return Answer(trouble=str(e))
    finally:
        if first and not port.ready():
            port.set(0)

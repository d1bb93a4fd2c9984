"""NCCL's own settings in /etc/nccl.conf: which RDMA ports, which addresses, which interface for its bootstrap.

Why: with several addresses on a port NCCL takes one by its own order, an old NCCL takes GID index 0, which is
link-local, and an HCA's name without ``=`` is a prefix. gpuready finds the ports anew at each run, so an address that
moved is a difference. Its lines stand first in the file, because NCCL takes the first line of a variable; the user's
lines stay below, also those that no longer count. Jobs in containers do not see the file: ``gpuready nccl`` prints it.
Sources: NCCL's user guide (environment variables), src/misc/param.cc; gpuready/network for how ports are chosen.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuready.components.nccl import conf
from gpuready.components.nccl.conf import CONF
from gpuready.components.nccl.spec import COMPUTED
from gpuready.core import ledger
from gpuready.core.component import Applies, Change, Component, NotComparable, Value, refuse_irregular
from gpuready.core.step import Step, Steps
from gpuready.network.nccl_settings import settings
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState

_OURS = "nccl.ours."
#: What NCCL takes for "not set", from 2.21 on.
_NONE = {"NCCL_IB_GID_INDEX": "-1", "NCCL_IB_ADDR_RANGE": "", "NCCL_IB_ADDR_FAMILY": "AF_INET"}


class Nccl(Component):
    """gpuready's lines in /etc/nccl.conf, where the spec says something below nccl."""

    name = "nccl"

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        said = spec.nccl.says_something
        return Applies(said, "asked for in nccl" if said else "nothing is asked for in nccl")

    def expected(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        refuse_irregular(CONF, state)
        want, text = _wanted(spec, state), _text(state)
        left = [name for name in conf.ours(text) if name not in want]
        return {**{f"nccl.{name}": value for name, value in want.items()}, **{f"{_OURS}{name}": None for name in left}}

    def actual(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        text = _text(state)
        found: dict[str, Value] = {f"nccl.{name}": value for name, value in conf.effective(text).items()}
        return found | {f"{_OURS}{name}": value for name, value in conf.ours(text).items()}

    def original(self, spec: NodeSpec, state: NodeState) -> Mapping[str, Value]:
        return {f"{_OURS}{name}": None for name in conf.ours(_text(state))}

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        changed = [c.key.removeprefix("nccl.") for c in diff if not c.key.startswith(_OURS)]
        if not changed:
            return ()
        theirs = [line for line in conf.theirs(_text(state)) if line.name in changed]
        said = [
            f"{CONF}, line {line.number}: {line.name}={line.value} stays, but gpuready's line overrides it"
            for line in theirs
        ]
        found = settings(state, spec.nccl).notes if spec.nccl.names_ports else ()
        return (*found, *said, "jobs that run keep what they have read")

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        text, values = _text(state), conf.ours(_text(state))
        for change in diff:
            name = change.key.removeprefix(_OURS).removeprefix("nccl.")
            values.pop(name, None)
            if change.expected is not None:
                values[name] = str(change.expected)
        after = conf.with_ours(text, {name: values[name] for name in sorted(values, key=_order)})
        record = ledger.kept(state, CONF)
        if values or record is None or after != (record.original or b"").decode("utf-8", "surrogateescape"):
            yield Step("nccl", ledger.WriteFiles((ledger.put(state, CONF, after),)), summary=f"write {CONF}")
            return
        restore = ledger.Restore((ledger.Putback(CONF, state.sha256(CONF), record.original is not None),))
        yield Step("nccl", restore, summary=f"take gpuready's lines out of {CONF}")


def _wanted(spec: NodeSpec, state: NodeState) -> dict[str, str]:
    """The variables, and a word for none where the user's own line would undo what the others say."""
    if not spec.nccl.names_ports:
        return dict(spec.nccl.extra)
    found = settings(state, spec.nccl)
    if found.problems:
        raise NotComparable("; ".join(found.problems))
    theirs = {line.name for line in conf.theirs(_text(state))}
    auto = "NCCL_IB_ROCE_VERSION_NUM" in found.variables
    return {**{name: none for name, none in _NONE.items() if auto and name in theirs}, **found.variables}


def _order(name: str) -> tuple[int, str]:
    known = (*COMPUTED, "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY")
    return (known.index(name) if name in known else len(known), name)


def _text(state: NodeState) -> str:
    return state.files[CONF].text if CONF in state.files else ""

"""NCCL's settings in /etc/nccl.conf: the RDMA ports, their addresses, and the interface for its bootstrap.

If a port has several addresses, NCCL chooses by its own order. An old NCCL uses GID index 0, which is link-local. The
name of an HCA without ``=`` is a prefix. gpuready chooses the ports at each run, so an address that moved is a
difference. gpuready's lines come first in the file, because NCCL uses the first line of a variable. The user's lines
stay below them, even those without effect. Jobs in containers do not see the file: ``gpuready nccl`` prints it for
them.
Sources: NCCL's user guide (environment variables), src/misc/param.cc; gpuready/network for how ports are chosen.
"""

from gpuready.base.step import Step, Steps
from gpuready.components.nccl.spec import COMPUTED
from gpuready.contract import ledger
from gpuready.contract.component import Applies, Change, Component, NotComparable, Value, Values, refuse_irregular
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network import nccl_conf as conf
from gpuready.network.nccl_conf import CONF
from gpuready.network.nccl_settings import settings

_OURS = "nccl.ours."
#: The values that mean "not set" for NCCL from 2.21 on.
_NONE = {"NCCL_IB_GID_INDEX": "-1", "NCCL_IB_ADDR_RANGE": "", "NCCL_IB_ADDR_FAMILY": "AF_INET"}


class Nccl(Component):
    """gpuready's lines in /etc/nccl.conf, if the spec sets anything below nccl."""

    name = "nccl"
    needs_boot = True

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        said = spec.nccl.says_something
        return Applies(said, "the spec sets nccl" if said else "the spec does not set nccl")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        refuse_irregular(CONF, state)
        want, text = _wanted(spec, state), state.text(CONF)
        left = [name for name in conf.ours(text) if name not in want]
        return {**{f"nccl.{name}": value for name, value in want.items()}, **{f"{_OURS}{name}": None for name in left}}

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        text = state.text(CONF)
        found: dict[str, Value] = {f"nccl.{name}": value for name, value in conf.effective(text).items()}
        return found | {f"{_OURS}{name}": value for name, value in conf.ours(text).items()}

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        return {f"{_OURS}{name}": None for name in conf.ours(state.text(CONF))}

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        changed = [c.key.removeprefix("nccl.") for c in diff if not c.key.startswith(_OURS)]
        if not changed:
            return ()
        theirs = [line for line in conf.theirs(state.text(CONF)) if line.name in changed]
        said = [
            f"{CONF}, line {line.number}: {line.name}={line.value} stays, but gpuready's line overrides it"
            for line in theirs
        ]
        found = settings(state, spec.nccl).notes if spec.nccl.names_ports else ()
        return (*found, *said, "running jobs keep the settings that they read at their start")

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        text, values = state.text(CONF), conf.ours(state.text(CONF))
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
        yield Step("nccl", restore, summary=f"remove gpuready's lines from {CONF}")


def _wanted(spec: NodeSpec, state: NodeState) -> dict[str, str]:
    """Return the variables, with explicit defaults where a line of the user would contradict the others."""
    if not spec.nccl.names_ports:
        return dict(spec.nccl.extra)
    found = settings(state, spec.nccl)
    if found.problems:
        raise NotComparable("; ".join(found.problems))
    theirs = {line.name for line in conf.theirs(state.text(CONF))}
    auto = "NCCL_IB_ROCE_VERSION_NUM" in found.variables
    return {**{name: none for name, none in _NONE.items() if auto and name in theirs}, **found.variables}


def _order(name: str) -> tuple[int, str]:
    known = (*COMPUTED, "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY")
    return (known.index(name) if name in known else len(known), name)

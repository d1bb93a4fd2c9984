"""How the hosts of a run are reached, and a part of them for a worker. Nothing here imports pyinfra or gevent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpuready.contract.component import Disruption
from gpuready.contract.rollout import WHOLE, Share
from gpuready.model import probe

if TYPE_CHECKING:
    from gpuready.operations.events import Observer


@dataclass(frozen=True)
class Access:
    """How hosts are reached, and what a run may do there.

    ``selected``: names of components (None: all). ``share``: its part of each budget. ``again``: names of hosts
    that an earlier run began to change and did not end well. ``probe_timeout``: seconds.
    ``patience``: seconds to wait for the lock of a node that another run holds.
    """

    host_keys: str = "strict"
    parallel: int = 64
    probe_timeout: int = probe.TIMEOUT
    selected: frozenset[str] | None = None
    allowed: Disruption = Disruption.restart
    share: Share = WHOLE
    again: frozenset[str] = frozenset()
    observer: Observer | None = None
    patience: float = 0


@dataclass(frozen=True)
class Work:
    """What is done with a fleet: a function of it, ``module:function``, with its other arguments.

    It is named, and not imported: what connects to hosts is loaded late, and a worker loads it itself. ``divided``: the
    function of a cluster that does the same on its workers; empty: each host can be done by itself.
    """

    function: str
    options: Mapping[str, Any] = field(default_factory=dict)
    divided: str = ""


@dataclass(frozen=True)
class Workers:
    """Where the work is done: on ``count`` processes of this machine, or on the cluster of ``scheduler``.

    ``plain``: a scheduler on another machine may be without TLS.
    """

    count: int = 0
    scheduler: str = ""
    plain: bool = False

    def __bool__(self) -> bool:
        return bool(self.count or self.scheduler)


@dataclass(frozen=True)
class Chunk:
    """Some hosts of a run, for a worker of a cluster (:mod:`gpuready.run.process`).

    ``entries``: the pickled hosts. ``secrets``: the references that they use; where the chunk runs, they are read
    before the hosts are unpickled. ``traced``: each script that ran on a node is reported.
    """

    work: Work
    names: tuple[str, ...]
    entries: bytes
    access: Access
    secrets: tuple[str, ...] = ()
    traced: bool = False

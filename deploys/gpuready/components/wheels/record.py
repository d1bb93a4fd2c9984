"""What gpuready keeps on a node of each wheel that it installed: where, which, and what was there before.

The first line is the .dist-info directory, whose direct_url.json (PEP 610) the probe reads: pip writes the hash of
what it installed there, so whoever installs something else over it, is seen.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from gpuready.core.documents import read_json
from gpuready.state.model import NodeState

FOLDER = "/var/lib/gpuready"
#: Where wheels lie on a node between their copying and their installation.
WHEELS = f"{FOLDER}/wheels"
PREFIX = f"{FOLDER}/wheel-"


@dataclass(frozen=True)
class Record:
    """``before``: the version that it replaced, empty where there was none."""

    info: str
    env: str
    name: str
    version: str
    sha256: str
    before: str

    @property
    def text(self) -> str:
        """As it lies on the node."""
        said = {"env": self.env, "name": self.name, "version": self.version, "sha256": self.sha256}
        return f"{self.info}\n{json.dumps({**said, 'before': self.before})}\n"


def path(env: str, name: str) -> str:
    """Where the record of a distribution in an environment lies."""
    return f"{PREFIX}{hashlib.sha256(f'{env} {name}'.encode()).hexdigest()[:16]}"


def records(state: NodeState) -> tuple[Record, ...]:
    """All that are on the node; one that is damaged is none."""
    found = []
    for file in state.glob(PREFIX).values():
        info, _, rest = file.text.partition("\n")
        try:
            found.append(Record(info, **read_json(rest)))
        except (ValueError, TypeError):
            continue
    return tuple(found)

"""gpuready's records on the node of the wheels that it installed: where, which, and what was there before.

The first line is the .dist-info directory. The probe reads direct_url.json there (PEP 610), in which pip writes the
hash of what it installed. So gpuready notices if somebody installs another build.
"""

import hashlib
import json
from dataclasses import dataclass

from gpuready.base.documents import read_json
from gpuready.model.state import NodeState

FOLDER = "/var/lib/gpuready"
#: Where copied wheels wait for their installation.
WHEELS = f"{FOLDER}/wheels"
PREFIX = f"{FOLDER}/wheel-"


@dataclass(frozen=True)
class Record:
    """A record. ``before``: the version that the wheel replaced, empty if there was none."""

    info: str
    env: str
    name: str
    version: str
    sha256: str
    before: str

    @property
    def said(self) -> str:
        """The second line of the file on the node."""
        said = {"env": self.env, "name": self.name, "version": self.version, "sha256": self.sha256}
        return json.dumps({**said, "before": self.before})


def path(env: str, name: str) -> str:
    """Return the path of the record of a distribution in an environment."""
    return f"{PREFIX}{hashlib.sha256(f'{env} {name}'.encode()).hexdigest()[:16]}"


def records(state: NodeState) -> tuple[Record, ...]:
    """Return all records on the node, without damaged ones."""
    found = []
    for file in state.glob(PREFIX).values():
        info, _, rest = file.text.partition("\n")
        try:
            found.append(Record(info, **read_json(rest)))
        except (ValueError, TypeError):
            continue
    return tuple(found)


def find(state: NodeState, env: str, name: str) -> Record | None:
    """Return the record of a distribution in an environment."""
    return next((mine for mine in records(state) if (mine.env, mine.name) == (env, name)), None)

"""Divide the hosts into shards, one for each of several runs, such as the jobs of a CI matrix.

The shard of a host follows from a hash of its failure domain (``maintenance.spread_by``), or of its name without one.
So each host is in one shard, a failure domain is never divided, and a new host moves no other host.
"""

import hashlib
import re
from collections.abc import Iterable

from gpuready.base.errors import UsageError
from gpuready.inventory.hosts import HostEntry

_FORM = re.compile(r"([0-9]{1,5})/([0-9]{1,5})", re.ASCII)


def parse_shard(text: str) -> tuple[int, int]:
    """Return K and N of ``K/N``. Raises UsageError."""
    found = _FORM.fullmatch(text)
    index, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= index <= count:
        raise UsageError(f"--shard {text}: not a shard", remedy="use K/N with K from 1 to N, such as 2/3")
    return index, count


def shards(hosts: Iterable[HostEntry], count: int) -> dict[str, int]:
    """Return the shard of each host, from 1 to ``count``."""
    return {entry.name: _shard("=".join(entry.spread or (entry.name,)), count) for entry in hosts}


def _shard(domain: str, count: int) -> int:
    digest = hashlib.sha256(domain.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest, "big") % count + 1

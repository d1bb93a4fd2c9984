"""Parse ``nvidia-smi nvlink -s``, ``nvlink -e`` and ``topo -p2p r``. Pure; no text raises an error.

Sources: nvidia-smi(1); the output of driver 580 on two H200; for NVLink 5 the names of the counters (driver 595, B300).
``FEC Errors - N`` counts codewords with N corrected symbols, N from 0. It does not count errors and is ignored.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_GPU = re.compile(r"GPU (\d{1,4}): (.{1,200}?)(?: \(UUID: ([^)\s]{1,100})\))?", re.A)
_LINK = re.compile(r"Link (\d{1,3}): (?:([\d.]{1,12}) GB/s|(.{1,200}))", re.A)
_COUNTER = re.compile(r"(.{1,80}?): (\d{1,20})", re.A)
_COLOR = re.compile(r"\x1b\[[0-9;]{0,8}m")


@dataclass
class Links:
    """The links of one GPU. ``speed``: link -> GB/s in one direction, None if the link is down.

    ``errors``: link -> counter -> count since the driver was loaded, without zeros.
    """

    name: str
    speed: dict[int, float | None] = field(default_factory=dict)
    errors: dict[int, dict[str, int]] = field(default_factory=dict)

    @property
    def up(self) -> int:
        return sum(speed is not None for speed in self.speed.values())


def links(status: str, counters: str) -> dict[int, Links]:
    """Map each GPU's number to its links; a GPU without NVLink has none."""
    found: dict[int, Links] = {}
    for gpu, name, line in _of_gpus(status):
        here = found.setdefault(gpu, Links(name))
        if m := _LINK.fullmatch(line):
            here.speed[int(m[1])] = _number(m[2])
    for gpu, name, line in _of_gpus(counters):
        m = _LINK.fullmatch(line)
        counted = _COUNTER.fullmatch(m[3] or "") if m else None
        if m and counted and int(counted[2]) and not counted[1].startswith("FEC"):
            found.setdefault(gpu, Links(name)).errors.setdefault(int(m[1]), {})[counted[1]] = int(counted[2])
    return found


def _number(text: str | None) -> float | None:
    try:
        return float(text or "") or None
    except ValueError:
        return None


def _of_gpus(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield each line with the number and name of its GPU; the first line of each GPU is empty."""
    here: tuple[int, str] | None = None
    for row in text.splitlines():
        line = row.strip()
        if m := _GPU.fullmatch(line):
            here = int(m[1]), m[2]
            yield *here, ""
        elif here and line:
            yield *here, line


def matrix(text: str) -> dict[tuple[int, int], str]:
    """Parse ``topo -p2p``: (GPU, GPU) -> ``OK``, or why the first cannot access the memory of the second."""
    rows = [_COLOR.sub("", row).split() for row in text.splitlines()]
    head = next((row for row in rows if row[:1] == ["GPU0"] and row[1:2] != ["X"]), [])
    found: dict[tuple[int, int], str] = {}
    for row in rows:
        if len(row) == len(head) + 1 and row[0] in head:
            one = int(row[0][3:])
            found |= {(one, int(name[3:])): cell for name, cell in zip(head, row[1:], strict=True) if cell != "X"}
    return found

"""What templates/probe/active.sh.j2 may take, and its answers as values."""

from __future__ import annotations

from typing import Any

from gpuready.core.records import Records

#: Seconds for each thing that the script asks. One that hangs is left behind then, and the script goes on.
LIMITS = {
    "apt": 20,
    "cuda": 60,
    "smi": 30,
    "python": 10,
    "torch": 125,
    "wheel": 125,
    "scrape": 15,
    "initramfs": 60,
    "inspect": 20,
    "smoke": 120,
    "unmake": 60,
    "pod": 120,
    "unpod": 60,
}
#: Seconds for an image that is read in the engine.
IMAGE = 180
_GRACE = 5
_UNASKED = "not asked, because "


def longest(environments: int, images: int) -> int:
    """Seconds after which the script has ended, whatever hangs: a limit of the exec below it would lose all answers."""
    # nvidia-smi is asked once more where it answers; after one that gave no answer it is not asked again.
    once = sum(LIMITS.values()) - LIMITS["wheel"] + 2 * LIMITS["smi"] + _GRACE * (len(LIMITS) + 2)
    return once + environments * (LIMITS["wheel"] + _GRACE) + images * IMAGE


def answers(records: Records) -> dict[str, Any]:
    """Each answer by name: ``{"rc": ..., "out": ...}``, or ``{"unknown": WHY}`` for what was not asked."""
    return {
        name: {"unknown": out.strip()} if rc and out.startswith(_UNASKED) else {"rc": rc, "out": out}
        for name, (rc, out) in records.runs.items()
    }

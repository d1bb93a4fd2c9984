"""The time limits of templates/probe/active.sh.j2, and its parsed answers."""

from gpuready.base.facts import Answer, Unknown
from gpuready.base.records import Records

#: Seconds for each question. After that time, the script abandons the question and continues.
LIMITS = {
    "apt": 20,
    "verbs": 20,
    "cuda": 60,
    "smi": 30,
    "python": 10,
    "torch": 125,
    "wheel": 125,
    "scrape": 15,
    "gate": 25,
    "initramfs": 60,
    "inspect": 20,
    "smoke": 120,
    "unmake": 60,
    "pod": 120,
    "unpod": 60,
}
#: Seconds to read one image in an engine.
IMAGE = 180
#: Seconds to trace one image: to ask Docker for it, to run its container, and to remove that.
TRACE = 2 * LIMITS["inspect"] + LIMITS["smoke"] + LIMITS["unmake"] + 20
_GRACE = 5
_UNASKED = "not asked, because "


def longest(environments: int, images: int) -> int:
    """Return the longest time that the script can take, in seconds. With a lower limit, all answers could be lost."""
    # nvidia-smi is called a second time if it answers, but not after a call without an answer.
    once = sum(LIMITS.values()) - LIMITS["wheel"] + 2 * LIMITS["smi"] + _GRACE * (len(LIMITS) + 2)
    return once + environments * (LIMITS["wheel"] + _GRACE) + images * IMAGE


def answers(records: Records) -> dict[str, Answer | Unknown]:
    """Return each question's answer by name, or why it has none."""
    return {
        name: Unknown(unknown=out.strip()) if rc and out.startswith(_UNASKED) else Answer(rc=rc, out=out)
        for name, (rc, out) in records.runs.items()
    }

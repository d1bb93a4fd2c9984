"""``gpuready docker-args`` for people: one line for all hosts that share it, and why each option."""

from __future__ import annotations

from gpuready.core.host_list import hostlist
from gpuready.report.text import Painter, grouped
from gpuready.tools.run_args.arguments import Argument


def lines(answers: dict[str, tuple[Argument, ...]], paint: Painter) -> list[list[str]]:
    """The blocks of the human report."""
    return [
        [
            f"{paint('bold', 'docker run')} on {hostlist(names)}",
            f"    {' '.join(map(str, answer))}",
            *(f"      {each}: {each.why}" for each in answer),
        ]
        for answer, names in grouped((answer, name) for name, answer in answers.items()).items()
    ]

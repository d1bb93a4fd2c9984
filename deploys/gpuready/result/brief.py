"""The end of the report of many hosts: one line for hosts with the same outcome and cause, so that it fits a screen."""

from dataclasses import dataclass

from gpuready.base.host_list import hostlist
from gpuready.base.words import count
from gpuready.result.blocks import cause, host_style, host_word, of_any_host
from gpuready.result.exitcode import counts
from gpuready.result.mask import mask_text
from gpuready.result.model import HostResult, Run
from gpuready.result.text import Painter, cut, grouped, one_line

#: Of more hosts, the report ends in groups instead of a line for each.
MOST_HOSTS = 50
#: 24 lines of 80 columns hold the groups, three lines around them, three of the last line, and a prompt.
_MOST_LINES = 16
_WIDTH = 79
#: The least and the most characters of names; the cause comes first.
_NAMES = (14, 26)
_ORDER = ("red", "yellow", "green")


@dataclass(frozen=True)
class _Group:
    style: str
    word: str
    cause: str


def summary_lines(run: Run, paint: Painter) -> list[str]:
    """At most 18 lines of 79 characters: outcome, number of hosts, cause, and who."""
    found = grouped(
        (_Group(host_style(run, host), host_word(run, host), _cause(run, host)), host.name) for host in run.hosts
    )
    groups = sorted(found.items(), key=lambda item: (_ORDER.index(item[0].style), -len(item[1])))
    return [
        paint("bold", f"summary of {count(len(run.hosts), 'host')}"),
        *(_line(group, names, paint) for group, names in _fitting(groups)),
        "  every host: --output html:report.html",
    ]


def _fitting(groups: list[tuple[_Group, list[str]]]) -> list[tuple[_Group, list[str]]]:
    """The largest groups of each outcome; what does not fit is one group of its outcome."""
    by_word = grouped((item[0].word, item) for item in groups)
    spare = _MOST_LINES - 2 * len(by_word)  # beside one group and one for the others of each outcome
    found = []
    for mine in by_word.values():
        room = len(mine) if len(mine) <= 2 + max(spare, 0) else 1 + max(spare, 0)
        spare -= max(0, room - 2)
        found += mine[:room]
        if left := mine[room:]:
            names = [name for _, names in left for name in names]
            found.append((_Group(left[0][0].style, left[0][0].word, f"{len(left)} other causes"), names))
    return found[:_MOST_LINES]


def _line(group: _Group, names: list[str], paint: Painter) -> str:
    head = f"  {len(names):>5}  "
    room = _WIDTH - len(head) - len(group.word) - 4
    who = cut(one_line(mask_text(hostlist(names))), min(_NAMES[1], max(_NAMES[0], room - len(group.cause))))
    cause = cut(group.cause, room - len(who))
    return f"{head}{paint(group.style, group.word)}  {cause}{'  ' if cause else ''}{who}"


def _cause(run: Run, host: HostResult) -> str:
    """Why, in one line that hosts with the same failure share: without their names and addresses."""
    text = ""
    if host.error is not None:
        text = of_any_host(host.error.message.strip().split("\n")[0], host.name).removeprefix("HOST: ")
    elif waits := next((item.pending_reason for item in host.components if item.pending), ""):
        text = waits
    elif failing := [each.id for each in host.checks if counts(run.verb, host, each) and not cause(run, host, each)]:
        text = ", ".join(failing)
    elif host.reason:
        text = host.reason
    elif differs := [item.name for item in host.components if item.diff]:
        text = ", ".join(differs)
    return one_line(mask_text(text))

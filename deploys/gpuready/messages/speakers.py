"""Who printed the errors of a text that has no known message: data/speakers.toml, of which no cause can be told.

A line counts only if it looks like an error, so a log of a healthy node has no speaker. One line has one speaker.
"""

import functools
import re

from gpuready.messages.entry import Message, load
from gpuready.messages.find import MOST, normal, plain

TABLE = load("speaker")
"""Programs. One whose errors others quote comes before those."""

#: What a line that reports an error has in its normal form.
_ERROR = re.compile(
    r"""(?x)
    (?: (?<!no\ )(?<!0\ )(?<!without\ )(?<!_)errors?
      | \b(?:fail(?:ed|ures?|s|ing)? | fatal | critical | panic: | assertion | exception | abort(?:ed|ing)?
          | crash(?:ed)? | segfault | cannot | can't | could\ ?n[o']t | unable\ to | timed\ out | invalid | refused
          | denied | unsupported | not\ (?:permitted|supported|responding) | killed | unhealthy | hung | stuck | lost
          | corrupt(?:ed)? | required\ value | nccl\ warn)
      | <(?:warn|error)>
      | \[[ef]\]
    ) (?! [a-z_-] | [ :="']{0,3}(?:0|none|nil|null|<nil>)(?![\w.]))    # no part of a name, and no counter that is 0
    | [a-z]error_[a-z]
    | _status_(?!success)[a-z]
    | \berr:[0-9]
    | \bwarning\ (?:failed[a-z]{3,30}|unschedulable|backoff)\b             # events of Kubernetes
    | \b(?:exit|non-zero)\ (?:status|code)[ :=]{1,2}[1-9]
    | (?:^|[ \[|])[ef][0-9]{3,4}\ [0-9:.]{8,18}\                       # klog, glog and PyTorch: E1124 10:00:00.000
    | [0-9]\ [ecf]\ [0-9]{1,8}\ [0-9]{1,8}\]                           # Ray: [2026-11-24 10:00:00,000 E 12 34]
    """
)
#: What says of a line as it is printed that it reports no error, or none of the program that it names.
_HARMLESS = re.compile(
    r"""(?x)
    (?<![=_-])\b(?:INFO|DEBUG|TRACE|NOTICE|DIAG)\b
    | (?<!NCCL\ )(?<!NVSHMEM\ )\bWARN(?:ING)?\b
    | [\[<](?:info|debug|notice)[\]>]
    | level\W{1,4}(?:info|debug|trace|warn)
    | (?:^|[ \[|])[IWD][0-9]{3,4}\ [0-9:.]{8,18}\ | [0-9]\ [IWD]\ [0-9]{1,8}\ [0-9]{1,8}\]
    | ^\s{0,40}File\ " | ImportError: | ModuleNotFoundError: | No\ matching\ distribution
    | metrics\ exporter\ agent                                             # of Ray, which works without it
    | already\ (?:been\ )?registered | unrecognized\ arguments | \(NotFound\) | No\ such\ container
    """
)
#: A frame of a Python traceback: its path says where a call came through, not whose error it is.
_FRAME = re.compile(r"\bFile \"[^\"]{1,300}\", line [0-9]{1,7}(?:, in \S{1,100})?")


def find(text: str, most: int = 2) -> dict[Message, str]:
    """Return who printed the lines of ``text`` that look like errors, each with its first one; the first ``most``.

    A speaker that is only a form of log is left out if another one is named.
    """
    found: dict[Message, str] = {}
    for line in text[:MOST].split("\n"):
        form = normal(_FRAME.sub("", line))
        if _ERROR.search(form) and not _HARMLESS.search(line):
            speaker = next(
                (item for item, pattern, part in _plain() if part in form and re.search(pattern, form)), None
            )
            if speaker is not None:
                found.setdefault(speaker, line.strip())
    named = {speaker: line for speaker, line in found.items() if not speaker.general}
    return dict(list((named or found).items())[:most])


@functools.cache
def _plain() -> tuple[tuple[Message, str, str], ...]:
    return tuple((item, pattern, plain(pattern)[0]) for item in TABLE for pattern in item.patterns)

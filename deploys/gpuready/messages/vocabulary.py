# ruff: noqa: E501  (a table: sentences stay whole)
"""gpuready's own words: exit codes, outcomes, classes of disruption, levels and statuses of checks.

The words themselves are listed where they are defined. Here is what each means and what to do. A word that is defined
there and missing here is an error, which a test finds.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from gpuready.contract.check import DECIDE, STATUSES, Level
from gpuready.contract.component import Disruption
from gpuready.cuda.predict import VERDICTS
from gpuready.result.exitcode import MEANING
from gpuready.result.model import EARLIER_RUN, NOT_COMPARED, OUTCOMES


class Term(NamedTuple):
    """One word: its kind, what it means, and what to do."""

    kind: str
    word: str
    means: str
    fix: str = ""

    @property
    def title(self) -> str:
        return f"exit {self.word}: an exit code of gpuready" if self.kind == "exit" else f"{self.word}: {self.kind}"


_AFTER_EXIT = {
    0: "",
    1: "read the error below the host's name, correct what it names, and run again: apply does only what is left",
    2: "gpuready apply makes the changes; without --detailed-exitcode, a plan with changes ends with 0",
    3: "the report says what is wrong and how to fix it; for a check, gpuready explain ID says more; then run the command again",
    4: "read the error of that host: the network, the host key, the login or sudo; then run again, with --limit HOST",
    5: "correct the file and line that the message names; if no host is chosen, add gpuready: {} to the hosts' variables, "
    "or widen --limit",
    6: "correct what failed on the hosts before them, then run again: --max-fail and --batch decide where a run stops",
    7: "the report names what each change waits for: run again when the node is idle, or give permission "
    "(--allow-disruption CLASS, maintenance in the spec)",
    64: "the message names the option; gpuready COMMAND --help lists all of them",
    70: "open an issue with the traceback on stderr",
    74: "look for a full disk or a missing directory, or choose another path for --output",
    130: "run the same command again: it does only what is left",
}
_RUN_AGAIN = "run gpuready apply again: it does only what is left"
_OUTCOMES = {
    "ok": ("The host matches its spec, or the command did what it was asked for. Nothing was changed.", ""),
    "would_change": ("The host differs from its spec. A plan or verify shows the difference and changes nothing.",
                     "gpuready plan shows each change and what it affects; gpuready apply makes it"),
    "changed": ("apply changed the host, and nothing is left to do.", ""),
    "pending": ("A change waits: for permission (--allow-disruption, maintenance), for an idle node, or for the next run "
                "if you interrupted this one. Changes that do not have to wait were made. The exit code is 7.", _AFTER_EXIT[7]),
    "failed": ("A step or a question failed on the host, or one of its components cannot be compared.",
               "read the error below the host's name, correct what it names, and run again"),
    "unreachable": ("gpuready got no root shell on the host, or lost the connection.", _AFTER_EXIT[4]),
    "not_attempted": ("The host's turn never came: the run stopped before it, because other hosts failed (--max-fail) or "
                      "you interrupted it. Nothing was changed there.", _AFTER_EXIT[6]),
    "skipped": ("gpuready leaves the host alone. It sees no NVIDIA GPU there and hardware.gpus is auto, or nothing in the "
                "inventory says that it manages the host. The report gives the reason.",
                f"without a visible GPU: {DECIDE}. An unmanaged host: add gpuready: {{}} to its variables, or choose other "
                "hosts"),
}  # fmt: skip
#: What became of one component (:func:`gpuready.result.blocks.status_text`), where no outcome has that name.
_COMPONENTS = {
    "blocked": ("The component cannot reach what the spec asks for, or cannot be compared. Nothing of it was changed.",
                "its line 'reason:' says why, and 'fix:' what to do; then run gpuready plan again"),
    "differs": ("The component differs from the spec. verify only reports that.", "gpuready apply closes the difference"),
    "not changed": ("apply came to this component and changed nothing: a component before it failed.", _RUN_AGAIN),
    "partly changed, the rest is pending": ("What needs no permission was changed; the rest waits.", _AFTER_EXIT[7]),
    "interrupted, run plan again": ("The run ended while it changed this component. A step that had begun on the node "
                                    "ends there by itself.", _RUN_AGAIN),
}  # fmt: skip
#: What a report says of a host, where that is not the outcome's name.
_HOSTS = {
    "checks failed": ("A check found something wrong on the host, whatever was changed there. The exit code is 3.", _AFTER_EXIT[3]),
    "checks unknown": ("A check of the host could not decide, and none failed. That is no pass: the exit code is 3.",
                       "the lines UNKNOWN say what was missing; gpuready explain ID shows the command to look by hand"),
    "would change in part": ("apply would change the host, but a component of it is blocked. The exit code is 1.",
                             "its line 'reason:' says why, and 'fix:' what to do; then run gpuready plan again"),
    "declined": ("You answered no, so nothing was changed there.", ""),
    NOT_COMPARED: ("gpuready sees no NVIDIA GPU on the host and hardware.gpus is auto, so it may not be a GPU node. "
                     "status and verify do not compare it with its spec; plan and apply skip it.", DECIDE),
    "no record": ("No apply has changed the node yet, or remove has taken its record away.", "gpuready apply writes one"),
    "unreadable record": ("The record of the last apply on the node is damaged.", "the next gpuready apply writes a new one"),
}  # fmt: skip
_PERMIT = "--allow-disruption on the command line (default: restart) and maintenance in the spec permit it"
_DISRUPTION = {
    "none": ("The change disturbs nothing.", "nothing: it needs no permission"),
    "reload": ("A service reads its configuration again. Nothing stops.", "permitted by default; --allow-disruption none forbids it"),
    "recreate": ("Nothing stops, but running GPU containers may lose their GPU, or running processes their libraries. "
                 "They work again when they are started anew.", f"{_PERMIT}; the node must be idle or drained"),
    "restart": ("A service such as Docker restarts, and its containers may stop.",
                f"{_PERMIT} (maintenance.restart); the node must be idle or drained"),
    "reboot": ("The node must reboot before the change takes effect.",
               f"{_PERMIT}: --allow-disruption reboot and maintenance.reboot, both"),
}  # fmt: skip
_LEVEL = "gpuready verify --level {0}, or verify: {{level: {0}}} in the spec, checks this level and those before it"
_LEVELS = {
    "config": ("The check reads files of the node.", _LEVEL.format("config")),
    "effective": ("The check reads what running engines, the kernel and the driver answer. This is the default level.",
                  _LEVEL.format("effective")),
    "smoke": ("The check starts a new container or pod of verify.image and looks into it. Level effective does this, too, "
              "if verify.image is set.", "verify: {image: IMAGE} in the spec; the image must be on the node"),
    "stress": ("The check loads the GPUs of an idle node.", "gpuready verify -i INVENTORY --level stress"),
    "fabric": ("The check tests pairs of hosts.", "gpuready fabric -i INVENTORY"),
}  # fmt: skip
_STATUSES = {
    "pass": ("The check looked, and found what it expects.", ""),
    "warn": ("The check found something worth knowing. It does not make verify fail.", "gpuready explain ID shows its fix"),
    "fail": ("The check found something wrong. verify ends with 3.", "gpuready explain ID shows its fix"),
    "skip": ("The check does not concern this node, or a failed check explains it already. The report gives the reason.",
             ""),
    "unknown": ("The check could not decide: a question got no answer, or a command is missing. That is no pass: verify "
                "ends with 3, unless the check is only advisory.",
                "the summary says what was missing; gpuready explain ID shows the command to look by hand"),
}  # fmt: skip

_OTHER_IMAGE = "gpuready compat lists what helps, in the order of effort"
#: Answers of compat; those with a CUDA error are found as that error.
_ANSWERS = {
    "NATIVE": ("The image's CUDA programs run with the driver as it is.", ""),
    "MINOR": ("They run by minor-version compatibility: the driver is older than the image's CUDA, but of the same major "
              "version. Compiling PTX at run time may fail with error 222.", "an image of the driver's CUDA, or a newer driver, if that happens"),
    "FORWARD": ("They run with the image's own libcuda (forward compatibility, data-center GPUs only). A question mark: "
                "something is not certain: the reason beside it, or a note, says what.",
                "gpuready compat --trace shows which libcuda a container loads; where the entrypoint chooses it, as in NGC's images, "
                "only a run with the entrypoint shows it"),
    "NEEDS_DRIVER": ("The driver is too old for the image (error 35), or too old or too new for the GPU.", _OTHER_IMAGE),
    "REFUSED": ("NVIDIA_REQUIRE_CUDA of the image prevents the start of the container.", _OTHER_IMAGE),
    "NO_CODE": ("CUDA fails with error 209: the image's CUDA has no code for the GPU any more.", _OTHER_IMAGE),
}  # fmt: skip
#: Words of the documentation.
_WORDS = {
    "ledger": ("The list of what gpuready changed on a node, and of the originals: /var/lib/gpuready on the node. remove "
               "follows it.", "gpuready remove --dry-run shows what it holds; do not edit it"),
    "spec": ("The state that you want of a node: the values of gpuready: in the inventory, and the defaults.",
             "gpuready inventory shows each value and its file; gpuready explain KEY says what a key means"),
    "probe": ("The one script that reads a node. It changes nothing.", ""),
    "drift": ("A node that matched its spec differs again: somebody else changed it, or its spec.",
              "gpuready plan shows the difference; gpuready apply closes it"),
    "affected": ("What a change disturbs: containers, processes or jobs.",
                 "gpuready plan names them; maintenance in the spec says what may be disturbed"),
    "drain": ("Move work away from a node before a disruption.", "maintenance.drain in the spec says how"),
}  # fmt: skip

_OF_HOSTS = ("an outcome of a host", "what a report says of a host")
_KINDS = {
    "a word of gpuready": (tuple(_WORDS), _WORDS),
    "an answer of compat": (tuple(each for each in VERDICTS if "ERROR" not in each), _ANSWERS),
    _OF_HOSTS[0]: (OUTCOMES, _OUTCOMES),
    _OF_HOSTS[1]: (tuple(_HOSTS), _HOSTS),
    "what became of a component": (tuple(_COMPONENTS), _COMPONENTS),
    "a class of disruption": (tuple(item.name for item in Disruption), _DISRUPTION),
    "a level of checks": (tuple(item.name for item in Level), _LEVELS),
    "a status of a check": (STATUSES, _STATUSES),
}
#: The name of its kind may stand before a word: level smoke, outcome pending, class restart, exit code 7.
_NAMED = re.compile(r"(outcome|component|class|disruption|level|status|answer) (.+)")
_EXIT = re.compile(r"(?:(?:gpuready )?exit(?:ed)?(?: with)?(?: ?code| status)?[ :=]{1,2})?([0-9]{1,3})")
#: The last line of a report, and the exit code at its end; without one it is 0.
_RESULT = re.compile(
    r"(?:(?:(?:not )?ok|pending): (?:[0-9]{1,9} [a-z]{1,12}\b|no host |the image )|nothing was changed: ).{0,600}?"
    r"(?:; exit ([0-9]{1,3})(?: \(.{0,200}\))?)?"
)
_GOOD_RESULT = re.compile(r"ok: [0-9]+ (?:host|node)s?\b")


def terms() -> Iterator[Term]:
    """Yield all words. KeyError for one that is defined and has no description."""
    for code in sorted(MEANING):
        yield Term("exit", str(code), MEANING[code], _AFTER_EXIT[code])
    for kind, (words, texts) in _KINDS.items():
        for word in words:
            yield Term(kind, word, *texts[word])


def find(text: str) -> tuple[Term, ...]:
    """Return what a word means, if the whole text is that word; of several kinds, all.

    In the last line of a report, these are the outcomes of the hosts and the exit code.
    """
    key = " ".join(text.lower().replace("_", " ").strip(" .:?'\"`").split()).removesuffix(f" {EARLIER_RUN}")
    if "\n" not in text.strip() and (line := _RESULT.fullmatch(key)) and (line[1] or _GOOD_RESULT.match(key)):
        of_hosts = {term.word.lower().replace("_", " "): term for term in terms() if term.kind in _OF_HOSTS}
        words = "|".join(map(re.escape, sorted(of_hosts, key=len, reverse=True)))
        said = [of_hosts[word] for word in dict.fromkeys(re.findall(rf"\b(?:{words})\b", key.partition(":")[2]))]
        return (*said, *(term for term in terms() if term.kind == "exit" and int(term.word) == int(line[1] or 0)))
    if code := _EXIT.fullmatch(key):
        return tuple(term for term in terms() if term.kind == "exit" and int(term.word) == int(code[1]))
    named = _NAMED.fullmatch(key)
    kind, word = named.groups() if named else ("", key)
    found = [term for term in terms() if term.word.lower().replace("_", " ") == word]
    return tuple(term for term in found if kind in ("", *term.kind.split()))

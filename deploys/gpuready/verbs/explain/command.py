"""``gpuready explain TEXT``: cause, confirmation and fix of a message, check or component; the meaning of a setting.

With an inventory, it also judges on the nodes which of the causes holds there.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gpuready.base.errors import UsageError, did_you_mean
from gpuready.base.words import count
from gpuready.catalogue import BY_ID
from gpuready.cli.complete import explained
from gpuready.cli.options import STATE, Verb, if_named_options
from gpuready.cli.sink import say
from gpuready.contract.check import DECIDE, Check, Judged, Level, skip, unknown
from gpuready.contract.component import Component
from gpuready.gpu import imex
from gpuready.node import NODE
from gpuready.result.model import CheckResult

if TYPE_CHECKING:
    from gpuready.messages.entry import Message
    from gpuready.messages.vocabulary import Term
    from gpuready.result.model import HostResult, Run

_HELP = """Explain an error message, a check, a component, a setting or a word of gpuready: cause, fix, and the checks.

TEXT is the printed message: one line or many, with any surrounding text; - reads it from stdin. If gpuready does not
know the message, it says which program printed the error and what to look at next, if it knows that; the exit code is
64, for a text from stdin 0 (with -i: 64). With -i, gpuready runs the checks of that message on the nodes and
shows which cause applies there. If the first check cannot judge a node, the cause there is unknown (exit 3).

\b
  gpuready explain                   list all checks and components
  gpuready explain libcuda.ldcache
  gpuready explain docker
  gpuready explain verify.image      a setting of the spec; also its name or value, such as idle
  gpuready explain "Error 804"       also Xid 79, cudaErrorNoDevice, ncclSystemError, exit 127
  gpuready explain pending           a word of gpuready; also exit 7, recreate, level smoke
  gpuready explain 'could not select device driver "" with capabilities: [[gpu]]' -i hosts.yaml
  dmesg | gpuready explain -
"""
_COMPONENTS = {item.name: item for item in NODE}
_WIDTH = 100
_LONGEST = 160
#: Only a node with GPUs needs what the checks of these areas judge. Other checks say so themselves (``Check.gpu``).
_GPU_AREAS = ("driver", "libcuda", "nccl")
_GPULESS = "does not apply: a host without GPUs (hardware.gpus: none)"
#: What follows messages that do not prove their cause.
_ELSE = "If none of the likely causes is found, it is another one: look at the lines printed before this message."
#: Of more checks about a word, only the names are listed; of other areas at most twice as many.
_MOST_ABOUT = 6


@dataclass(frozen=True)
class _Answer:
    """The text for what was asked, and the ids of its checks; ``decisive``: those without which it stays unknown."""

    text: str
    ids: tuple[str, ...]
    decisive: tuple[str, ...] = ()


@click.command("explain", cls=Verb, help=_HELP)
@click.argument("text", metavar="[ID|TEXT|-]", nargs=-1, shell_complete=explained)
@if_named_options
@STATE
def command(text: tuple[str, ...], state: str | None, **given: Any) -> int:
    """Print the text; with hosts, also the verdicts. The exit code."""
    piped = text == ("-",)
    name = _stdin() if piped else " ".join(text)
    if click.get_current_context().get_parameter_source("inventory") is not ParameterSource.COMMANDLINE:
        given["inventory"] = ()  # an exported variable connects to nobody
    on_hosts = bool(given["inventory"]) or state is not None
    if not on_hosts and (given["limit"] or given["extra_vars"]):
        raise UsageError("explain reads no host without -i", remedy="add -i INVENTORY, or leave out --limit and -e")
    if given["output"] and not on_hosts:
        raise UsageError("explain --output needs hosts", remedy="add -i INVENTORY")
    if not text and not on_hosts:
        say(_list())
        return 0
    found = _explained(name)
    if found is None and piped and not on_hosts:
        nothing = f"no known message in {count(len(name.strip().splitlines()), 'line')}"
        say("\n\n".join([nothing, *_general(name)]))
        return 0
    if found is None:
        raise _not_known(name)
    if not on_hosts:
        say(found.text)
        return 0
    if not found.ids:
        raise UsageError("no check judges this cause on a node", remedy="without -i, explain shows cause and fix")
    if not given["inventory"]:
        raise UsageError(
            "no inventory: -i is missing",
            remedy=f"-i HOST, for the host whose state {state} is: gpuready explain TEXT -i gpu01, --state {state}",
        )
    return _on_nodes(found, state, given)


def _explained(name: str) -> _Answer | None:
    """Return the answer for a name or message; None if it is not known. UsageError for a text that cannot be read."""
    key = name.strip().lower()
    if key in BY_ID:
        return _Answer(_check(BY_ID[key]), (key,), (key,))
    if not key:
        raise UsageError("explain: the text is empty", remedy="gpuready explain lists the checks and components")
    from gpuready.messages import own, vocabulary
    from gpuready.messages.find import MOST, find

    if len(name) > MOST:
        raise UsageError(
            f"explain: the text is longer than {MOST >> 20} MiB", remedy="give only the lines around the error"
        )
    words_of_ours = [_term(term) for term in vocabulary.find(name)]
    if key in _COMPONENTS:
        return _Answer("\n\n".join([*words_of_ours, _component(_COMPONENTS[key])]), _checks_of(key))
    if not words_of_ours and (found := find(name)):
        judged = dict.fromkeys(id for message in found for id in message.checks)
        first = dict.fromkeys(message.checks[0] for message in found if message.checks)
        told = [*map(_message, found), *([_ELSE] if any(message.likely for message in found) else [])]
        return _Answer("\n\n".join(told), tuple(judged), tuple(first))
    about = _about_words(key)
    whole = len(about) <= _MOST_ABOUT
    about_checks = "\n\n".join(_check(BY_ID[id]) for id in about) if whole else _listed(key, about)
    about_settings = _settings(key) if key.split() == [key] and (words_of_ours or not about) else ""
    if parts := [*words_of_ours, *filter(None, (about_checks, about_settings))]:
        return _Answer("\n\n".join(parts), tuple(about))
    ours = own.find(name)
    if ours:
        return _Answer("\n\n".join(map(_message, ours)), ())
    named = tuple(id for id in dict.fromkeys(re.findall(r"[\w.-]*\w", key)) if id in BY_ID)
    return _Answer("\n\n".join(_check(BY_ID[id]) for id in named), named, named) if named else None


class GeneralError(UsageError):
    """gpuready knows who printed the text, but not the message."""

    kind = "general"


def _general(name: str) -> list[str]:
    """Who printed the text, and what to look at next."""
    from gpuready.messages import speakers

    several = "\n" in name.strip()
    return [
        "\n".join([f"{item.title}: an error that gpuready does not know by name",
                   *_labelled({"line": _short(line) if several else "", "about": item.cause, "next": item.fix,
                               "checks": _named(item.checks), "source": item.source})])
        for item, line in speakers.find(name).items()
    ]  # fmt: skip


def _not_known(name: str) -> UsageError:
    """The error for a text that explain does not know: who printed it, what is near, and what helps."""
    from gpuready.messages.find import head, nearest

    key = name.strip().lower()
    hint = did_you_mean(key, [*BY_ID, *_COMPONENTS]) if len(key) < 40 else ""
    general = _general(name)
    shorter = "the line of the first error alone, or " if "\n" in name.strip() else ""
    near = [f"  {message.title}" for message in nearest(name)]
    looked_at = head(name)
    part = "" if looked_at == name.strip() else f" (only the first {len(looked_at)} characters were compared)"
    return (GeneralError if general else UsageError)(
        "\n".join(
            [
                f"not known: {_short(name)!r}{hint}",
                *general,
                *([f"Nearest known messages{part}:", *near] if near else []),
            ]
        ),
        remedy=f"give {shorter}a word such as nccl; gpuready explain lists all checks;\n"
        "to have a message added, open an issue with the whole line and what caused it",
    )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."


def _listed(key: str, about: Sequence[str]) -> str:
    """The checks about words, sorted, those of the areas with that name first."""
    named = set(re.findall(r"[\w.-]+", key))
    own = sorted(id for id in about if id.split(".")[0] in named)
    others = sorted(set(about) - set(own))
    shown = others[: 2 * _MOST_ABOUT]
    left = [f"  and {len(others) - len(shown)} more"] if len(others) > len(shown) else []
    width = max(map(len, about))
    parts = [
        "\n".join([title, *(f"  {id:<{width}}  {BY_ID[id].title}" for id in ids), *(left if ids is shown else ())])
        for title, ids in ((f"Checks of {key}", own), (f"Other checks that mention {key}", shown))
        if ids
    ]
    return "\n\n".join([*parts, f"gpuready explain {(own or shown)[0]} shows cause, command and fix of one of them."])


def _stdin() -> str:
    from gpuready.base.files import read_stream, reason
    from gpuready.messages.find import MOST

    try:
        return read_stream(sys.stdin.buffer, MOST).decode("utf-8", "replace")
    except (OSError, ValueError) as e:
        raise UsageError(f"explain: stdin cannot be read: {reason(e)}") from None


def _about_words(key: str) -> list[str]:
    """Return the checks whose texts have all of these words. One of the words must be an area, such as nccl."""
    parts = re.findall(r"[\w.-]{3,}", key)
    areas = {part for id in BY_ID for part in id.split(".")} - {"config", "node"}
    if "\n" in key or len(parts) > 6 or not areas & set(parts):
        return []
    texts = {id: " ".join((id, c.cause, c.confirm, c.fix)).lower() for id, c in BY_ID.items()}
    return [
        id for id, text in texts.items() if all(re.search(rf"(?<!\w){re.escape(whole)}(?!\w)", text) for whole in parts)
    ]


def _settings(key: str) -> str:
    """What the settings with this path or name mean; without one, those that have it as a value. Empty for none."""
    from gpuready.model.schema import settings
    from gpuready.model.schema_help import allowed_at, words_at
    from gpuready.model.spec import NodeSpec

    means = settings()
    named = [path for path in means if key in (path, path.rpartition(".")[2])]
    named = named or [path for path in means if key in words_at(NodeSpec, path.split("."))]
    told = {path: {"means": means[path], "allowed": allowed_at(NodeSpec, path.split("."))} for path in named}
    return "\n\n".join("\n".join([f"{path}: a setting", *_labelled(texts)]) for path, texts in told.items())


def _on_nodes(found: _Answer, state: str | None, given: dict[str, Any]) -> int:
    """Run the checks on the nodes as verify does, and show the verdicts of the answer's checks."""
    from gpuready.cli.main import held

    with held():
        from gpuready.cli.online import recorded_or_online
        from gpuready.cli.request import request

    wanted = request("verify", **given)
    run = recorded_or_online(wanted, state)
    _narrow(run, found.ids)
    gpuless = {entry.name for entry in wanted.entries if entry.spec.hardware.without_gpus}
    for host in run.hosts:
        needless = _without_gpus(host, found.ids) if host.name in gpuless else set()
        _complete(host, found, needless, recorded=state is not None)
    if any(target.path is None and target.form == "human" for target in wanted.outputs):
        from gpuready.result.page import page

        say(page([found.text.split("\n"), _verdicts(run, found.ids)]))
    return wanted.deliver(run)


def _narrow(run: Run, ids: Iterable[str]) -> None:
    """Keep the verdicts of these checks and of those that explain them; differences from the spec are not judged."""
    run.verb = "explain"
    roots = {root for id in ids for root in BY_ID[id].after}
    for host in run.hosts:
        host.components = []
        host.checks = [
            check
            for check in host.checks
            if check.id in ids or (check.id in roots and check.status in ("fail", "unknown"))
        ]
        if host.error is None and host.outcome in ("would_change", "failed"):
            host.outcome = "ok"


def _without_gpus(host: HostResult, ids: Iterable[str]) -> set[str]:
    """Say of the checks that only a node with GPUs needs, and that have no verdict, that they do not apply here.

    Return their ids.
    """
    if not host.probed:
        return set()
    judged = {each.id for each in host.checks if each.status != "skip"}
    needless = {id for id in ids if BY_ID[id].gpu or id.partition(".")[0] in _GPU_AREAS} - judged
    host.checks = [each for each in host.checks if each.id not in needless]
    host.checks += [CheckResult.of(Judged(BY_ID[id], skip(_GPULESS))) for id in ids if id in needless]
    return needless


def _complete(host: HostResult, found: _Answer, needless: Set[str], *, recorded: bool) -> None:
    """Make a decisive check that was skipped or did not run *unknown*: the cause may hold on this node.

    Not so if another check of the answer failed or is unknown, because that decides, or if the check is ``needless`` on
    this host. An answer without decisive checks (a component) needs a verdict of any of its checks.
    """
    seen = {check.id: check for check in host.checks}
    statuses = {check.status for check in seen.values()}
    if not host.probed or statuses & {"fail", "unknown"}:
        return
    decisive = found.decisive or (() if statuses - {"skip"} else found.ids[:1])
    for id in decisive:
        if id not in needless and (id not in seen or seen[id].status == "skip"):
            by_hand = f"by hand: {BY_ID[id].confirm}"
            why, remedy = (seen[id].summary, by_hand) if id in seen else _why_not(host, BY_ID[id], recorded=recorded)
            verdict = unknown(f"could not be judged here: {why}", remedy or by_hand)
            host.checks = [check for check in host.checks if check.id != id]
            host.checks.append(CheckResult.of(Judged(replace(BY_ID[id], advisory=False), verdict)))


def _why_not(host: HostResult, check: Check, *, recorded: bool) -> tuple[str, str]:
    """Why a check has no verdict, and what to do."""
    if check.level == Level.fabric:
        return "it needs two hosts", "gpuready fabric -i INVENTORY"
    if check in imex.TOGETHER:
        return "it compares hosts", "gpuready verify -i INVENTORY"
    if recorded and not host.reason:
        return "it needs a live node, and --state reads a recorded one", "run it without --state"
    return (host.reason, DECIDE) if host.reason else ("it did not run", "")


def _verdicts(run: Run, ids: Sequence[str]) -> list[str]:
    """One line for each check and verdict, with the hosts that share it."""
    from gpuready.base.host_list import hostlist

    found: dict[tuple[str, str, str], list[str]] = {}
    for host in run.hosts:
        seen = {check.id: check for check in host.checks}
        for id in (*(id for id in seen if id not in ids), *ids):
            if host.probed:
                key = (id, seen[id].status, seen[id].summary) if id in seen else (id, "-", "not judged here")
                found.setdefault(key, []).append(host.name)
    width = max((len(id) for id, _, _ in found), default=0)
    rows = [
        f"  {status:<7} {id:<{width}}  {hostlist(hosts)}: {summary}" for (id, status, summary), hosts in found.items()
    ]
    return ["Verdicts", *rows] if rows else []


def _message(message: Message) -> str:
    why = "likely" if message.likely else "cause"
    told = {why: message.cause, "fix": message.fix, "checks": _named(message.checks), "source": message.source}
    return "\n".join([message.title, *_labelled(told)])


def _named(ids: Iterable[str]) -> str:
    return ", ".join(f"{id} ({BY_ID[id].title})" for id in ids)


def _term(term: Term) -> str:
    return "\n".join([term.title, *_labelled({"means": term.means, "fix": term.fix})])


def _list() -> str:
    width = max(map(len, [*BY_ID, *_COMPONENTS]))
    about = {name: inspect.cleandoc(item.__doc__ or "").split("\n")[0] for name, item in _COMPONENTS.items()}
    components = [f"  {name:<{width}}  {_plain(text)}" for name, text in about.items()]
    checks = [f"  {id:<{width}}  {check.title}" for id, check in BY_ID.items()]
    tail = "An error message: gpuready explain 'TEXT', or TEXT from stdin with gpuready explain -"
    return "\n".join(["Components", *components, "", "Checks", *checks, "", tail])


def _check(check: Check) -> str:
    told = {"cause": check.cause, "confirm": check.confirm, "fix": check.fix, "after": ", ".join(check.after)}
    traits = {"needs a GPU": check.gpu, "active: a second exec": check.active}
    head = ", ".join([f"level {check.level.name}", *(trait for trait, has in traits.items() if has)])
    return "\n".join([f"{check.id}: {head}", *_labelled(told)])


def _checks_of(component: str) -> tuple[str, ...]:
    """The checks of what a component changes, and those of its area that judge what no component changes."""
    return tuple(id for id, check in BY_ID.items() if component == (check.component or id.partition(".")[0]))


def _component(item: Component) -> str:
    module = _plain(inspect.cleandoc(inspect.getmodule(item).__doc__ or ""))
    whose = f"owners.{item.owned_as} in the spec; auto goes by the marks on the node" if item.owned_as else ""
    only = f"-i INVENTORY --only {item.name}"
    told = {"owner": whose, "confirm": f"gpuready plan {only}", "fix": f"gpuready apply {only}",
            "checks": ", ".join(_checks_of(item.name))}  # fmt: skip
    return "\n".join([f"{item.name}: {module}", *_labelled(told)])


def _labelled(told: dict[str, str]) -> list[str]:
    """Lines ``  label   text``: up to :data:`_WIDTH`, and as wide as the terminal. ``confirm`` is never divided."""
    width = max(min(shutil.get_terminal_size().columns, _WIDTH), 40) if sys.stdout.isatty() else _WIDTH
    return [
        f"  {label:<8}{_plain(text)}" if label == "confirm" else
        textwrap.fill(_plain(text), width, initial_indent=f"  {label:<8}", subsequent_indent=" " * 10,
                      break_long_words=False, break_on_hyphens=False)
        for label, text in told.items() if text
    ]  # fmt: skip


def _plain(text: str) -> str:
    """A docstring without its markup."""
    return re.sub(r":[a-z]+:`~?([^`]*)`", r"\1", text).replace("``", "")

"""Messages of gpuready's own errors and steps, read from its source: there each has its text, remedy and class.

So no text is written twice, and a new error is known at once. What a message contains of its run, such as a host's
name, is a gap. A text with few words of its own, such as ``...: cannot be read: ...``, is left out, because other
programs print it, too.
"""

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import gpuready
from gpuready.contract.check import DECIDE, UNDECIDED
from gpuready.fabric.launch import OUTSIDE
from gpuready.messages import vocabulary
from gpuready.messages.entry import Message
from gpuready.messages.find import normal, plain
from gpuready.result.model import EARLIER, FINISHED, INTERRUPTED

#: What an error derives from -> the word for how it ends, where its class has no exit code.
_ROOTS = {"GpureadyError": "", "NotComparable": "blocked", "Pending": "pending"}
_ABOUT_ERRORS = re.compile(r"\b(?:\w*Error|NotComparable|Pending)\b")
#: A text has this many words, and one of fewer than the second number is at least a third of what was pasted.
_FEWEST_WORDS, _CLEAR_WORDS = 4, 7
_WORD = re.compile(r"[a-z-]{2,}")
_GAP = "\0"


class _Class(NamedTuple):
    """A class of errors: the names of its bases, what it says of itself, and its exit code (empty: its base's)."""

    bases: tuple[str, ...]
    about: str
    code: str


class _Module(NamedTuple):
    """A module's tree, its texts by name, also imported ones, and the texts that each of its functions returns."""

    tree: ast.Module
    texts: dict[str, str]
    returned: dict[str, list[str]]


def find(text: str) -> tuple[Message, ...]:
    """Return gpuready's own messages in ``text``, in their order there; of several for one place, the longest."""
    whole = normal(text)
    found = [
        (match.start(), match.end(), message)
        for message in sorted(messages(), key=lambda each: -len(each.pattern))
        if plain(message.pattern)[0] in whole
        and (match := re.search(message.pattern, whole))
        and (len(_WORD.findall(message.pattern)) >= _CLEAR_WORDS or 3 * len(match[0]) >= len(whole))
    ]
    kept: list[tuple[int, int, Message]] = []
    for start, end, message in found:
        if not any(start < other_end and other_start < end for other_start, other_end, _ in kept):
            kept.append((start, end, message))
    return tuple(message for *_, message in sorted(kept, key=lambda each: each[0]))


@functools.cache
def messages() -> tuple[Message, ...]:
    """Return the messages of all errors that have enough words of their own."""
    modules = _modules()
    classes = {
        node.name: _class(node)
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    made = {
        text: message
        for path, module in modules.items()
        for name, call, local in _errors(module.tree, classes)
        for text in _texts(call.args[0], module, local)
        if (message := _message(text, _remedy(call, module, local), _ending(name, classes), classes[name].about, path))
    }
    return (*_of_reports(), *made.values(), *_of_steps(modules))


def _of_reports() -> Iterator[Message]:
    """Yield what a report says of a run or a host, and no class of errors has."""
    not_gpu = "The driver and the PCI bus have no GPU, so the host may not be a GPU node. gpuready leaves it alone."
    done = "The host ended well in an earlier run with this --state-dir, and its spec is the same."
    stopped = "You ended the run, or its process got a signal. What it had finished is in the result."
    outside = "The master address is in another network than the fabric of this host, so its ranks reach it by a route."
    test = "gpuready fabric --tests tcp_connect; or give an address that all hosts share: --master-addr ADDRESS"
    for text, remedy, ending, about, path in (
        (UNDECIDED, DECIDE, "skipped", not_gpu, "contract/check.py"),
        (OUTSIDE.format(_GAP, _GAP), test, "ok", outside, "fabric/launch.py"),
        (EARLIER, "without --resume and --failed-only, apply connects to every host", "ok", done, "result/model.py"),
        *((each.message, each.remedy, "exit 130", stopped, "result/model.py") for each in (INTERRUPTED, FINISHED)),
    ):
        if message := _message(text, remedy, ending, about, path):
            yield message


def _of_steps(modules: Mapping[str, _Module]) -> Iterator[Message]:
    """Yield what a step's script prints where it fails, if the step has a remedy for it. What follows is of the run."""
    for path, module in modules.items():
        for pair in (pair for node in ast.walk(module.tree) for pair in _fixes(node)):
            text, remedy = (_text(each, module.texts) for each in pair.elts)
            if message := _message(text, remedy, "exit 1", "A step failed on the host.", path):
                yield message._replace(pattern=f"{message.pattern}.{{0,200}}")


def _fixes(node: ast.AST) -> Iterator[ast.Tuple]:
    """Yield the pairs of text and remedy that a step gets, or that are assigned for one."""
    if not isinstance(node, ast.keyword | ast.Assign) or not isinstance(node.value, ast.Tuple):
        return
    if (node.arg if isinstance(node, ast.keyword) else getattr(node.targets[0], "id", "")) == "fixes":
        yield from (pair for pair in node.value.elts if isinstance(pair, ast.Tuple) and len(pair.elts) == 2)


def _modules() -> dict[str, _Module]:
    """Return the modules that have errors, by their path in the package."""
    root = Path(gpuready.__file__).parent
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items() if _ABOUT_ERRORS.search(text)}
    own = {path: _constants(tree.body) for path, tree in trees.items()}
    modules = {}
    for path, tree in trees.items():
        names = own[path] | {
            alias.asname or alias.name: own[source][alias.name]
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            and (source := f"{(node.module or '').removeprefix('gpuready.').replace('.', '/')}.py") in own
            for alias in node.names
            if alias.name in own[source]
        }
        returned = {node.name: _returned(node, names) for node in tree.body if isinstance(node, ast.FunctionDef)}
        modules[path] = _Module(tree, names, returned)
    return modules


def _returned(function: ast.FunctionDef, names: Mapping[str, str]) -> list[str]:
    return [_text(node.value, names) for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]


def _constants(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return the texts of the names that are assigned once."""
    assigned = [pair for node in nodes if isinstance(node, ast.Assign) for pair in _pairs(node.targets[0], node.value)]
    often = Counter(name for name, _ in assigned)
    texts: dict[str, str] = {}
    for name, value in assigned:
        if often[name] == 1 and (text := _text(value, texts)).strip(_GAP):
            texts[name] = text
    return texts


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, its in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, its)


def _class(node: ast.ClassDef) -> _Class:
    rows = [ast.unparse(row) for row in node.body if isinstance(row, ast.Assign | ast.AnnAssign)]
    code = next((row.rpartition("= ")[2] for row in rows if row.startswith("exit_code")), "")
    about = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    return _Class(tuple(map(ast.unparse, node.bases)), about, code)


def _lineage(name: str, classes: Mapping[str, _Class]) -> list[str]:
    """Return the class and what it derives from, up to one of the roots; empty if it is no error of gpuready."""
    if name in _ROOTS:
        return [name]
    above = (_lineage(base, classes) for base in (classes[name].bases if name in classes else ()))
    found = next(filter(None, above), [])
    return [name, *found] if found else []


def _ending(name: str, classes: Mapping[str, _Class]) -> str:
    """Return how a run or a component ends with that error, as a word of gpuready: exit 4, blocked."""
    lineage = _lineage(name, classes)
    return _ROOTS[lineage[-1]] or next(f"exit {classes[each].code}" for each in lineage if classes[each].code)


def _errors(
    tree: ast.AST, classes: Mapping[str, _Class], within: str = "", around: ast.AST | None = None
) -> Iterator[tuple[str, ast.Call, dict[str, str]]]:
    """Yield each call that makes an error, with the name of its class and the texts of its function's names.

    ``super().__init__`` makes one, too: of the class that it is ``within``.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and node.args:
            above = isinstance(node.func, ast.Attribute) and node.func.attr == "__init__"
            name = within if above else getattr(node.func, "id", "")
            if name and _lineage(name, classes):
                yield name, node, _constants(ast.walk(around)) if around else {}
        inner = node.name if isinstance(node, ast.ClassDef) else within
        yield from _errors(node, classes, inner, node if isinstance(node, ast.FunctionDef) else around)


def _text(node: ast.AST, names: Mapping[str, str]) -> str:
    """Return the text of an expression, with a gap for each part that only a run knows."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, names) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, names) if isinstance(node.value, ast.Name) else _GAP
    if isinstance(node, ast.BinOp):
        return _text(node.left, names) + _text(node.right, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        listed = node.args[0]
        return _text(listed.elts[0], names) + _GAP if isinstance(listed, ast.List) else _GAP
    return names.get(node.id, _GAP) if isinstance(node, ast.Name) else _GAP


def _texts(node: ast.expr, module: _Module, local: Mapping[str, str]) -> Iterator[str]:
    """Yield the text of a message, and what the functions of its module contribute."""
    yield _text(node, {**module.texts, **local})
    for called in ast.walk(node):
        if isinstance(called, ast.Call) and isinstance(called.func, ast.Name):
            yield from module.returned.get(called.func.id, ())


def _remedy(call: ast.Call, module: _Module, local: Mapping[str, str]) -> str:
    names = {**module.texts, **local}
    return next((_text(word.value, names) for word in call.keywords if word.arg == "remedy"), _GAP)


def _message(text: str, remedy: str, ending: str, about: str, path: str) -> Message | None:
    parts = [part for part in map(normal, text.split(_GAP)) if _WORD.search(part)]
    if len(_WORD.findall(" ".join(parts))) < _FEWEST_WORDS:
        return None
    return Message(
        f"{_shown(text)} (gpuready, {ending})",
        ".{0,200}".join(re.escape(part.strip(".:;,( ")).replace(r"\ ", " ") for part in parts),
        f"gpuready ({path})",
        (),
        about,
        _shown(remedy) if remedy.strip(_GAP) else vocabulary.find(ending)[0].fix,
    )


def _shown(text: str) -> str:
    """The text for people: three dots for a gap, and none at the start."""
    return " ".join(text.replace(_GAP, "...").split()).lstrip(".:;, ")

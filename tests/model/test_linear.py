"""Every regular expression of the package takes time in proportion to the text, whatever a node prints.

The patterns are found in the source, with the way in which each is used. For each one texts are made of its own parts:
what leads up to a repetition, that repetition many times, and an end that does not match. A text four times as long
may take eight times as long, not sixteen. test_linear_answer.py measures the code around them in the same way.
"""

import ast
import contextlib
import importlib
import re
import time
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuready.messages import own
from gpuready.messages.find import TABLE
from gpuready.messages.speakers import TABLE as SPEAKERS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import sre_compile
    import sre_constants as sre
    import sre_parse

PACKAGE = Path(__file__).parents[2] / "deploys" / "gpuready"
METHODS = ("match", "fullmatch", "search", "findall", "finditer", "sub", "split")
#: What no text of others meets: the operator's own patterns, text that is known to be JSON, lines of 1000 characters.
OWN = {
    ("inventory/patterns.py", 'pattern[1:] if pattern.startswith("~") else glob(pattern)'),
    ("inventory/patterns.py", r'r"(?:[^,\[]|\[[^\]]*\])+"'),
    ("inventory/patterns.py", r'r"(?:[^\s:\[\]]|\[[^\]]*\])+"'),
    ("inventory/patterns.py", r'r"\[[^\]]*\]"'),
    ("inventory/yaml_positions.py", r"""r'[{}\[\]]|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+'"""),
}
BOUNDED = {("fabric/figures.py", "_NOISE")}


#: Values of local names that patterns are built from.
LOCALS = {
    "driver": "580.95.05", "flag": "data-root", "uri": "https://h/x", "url": "https://h/x", "tag": "uuid",
    "base": "libcuda", "plain": "libcuda1", "whole": "error 804", "c": "a", "parts": {},
    "item": TABLE[0], "message": TABLE[0],
    "pattern": "a*b?", "wanted": "https://h/x", "words": "pending|ok",
    "entry": {"match": "H[12]00"}, "rule": {"match": "H[12]00"}, "row": {"match": "H[12]00"}, "name": "gpu01",
}  # fmt: skip


@dataclass(frozen=True)
class Use:
    """A pattern, and one way in which it is applied."""

    file: str
    line: int
    method: str
    pattern: re.Pattern[Any]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.method}"


class _Package:
    version = "580.95.05-1"


def _evaluated(node: ast.expr, module: Any) -> Any:
    names = {**vars(module), **{k: v for k, v in LOCALS.items() if not hasattr(module, k)}, "package": _Package}
    return eval(compile(ast.Expression(node), "<pattern>", "eval"), names)


def _module(path: Path, tree: ast.Module) -> Any:
    """The module, or of one that brings pyinfra along only what its patterns are made of."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    if parts[0] not in ("operations", "cli", "run", "verbs"):
        return importlib.import_module(".".join(("gpuready", *parts)))
    module = types.SimpleNamespace(re=re)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            with contextlib.suppress(NameError):
                vars(module)[node.targets[0].id] = _evaluated(node.value, module)
    return module


def uses() -> Iterator[Use]:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    for path, source in sources.items():
        tree, file = ast.parse(source), str(path.relative_to(PACKAGE))
        called = set(re.findall(rf"([A-Za-z_0-9]+)\.({'|'.join(METHODS)})\(", source))
        if "re." not in source:
            continue
        module = _module(path, tree)
        named = {id(n.value): t.id for n in ast.walk(tree) if isinstance(n, ast.Assign)
                 for t in n.targets if isinstance(t, ast.Name)}  # fmt: skip
        for node in ast.walk(tree):
            func = node.func if isinstance(node, ast.Call) else None
            if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "re"):
                continue
            assert isinstance(node, ast.Call)
            expression = ast.get_source_segment(source, node.args[0]) or ""
            if func.attr == "escape" or (file, expression) in OWN:
                continue
            if func.attr == "compile":
                name = named.get(id(node), "")
                if (file, name) in BOUNDED:
                    continue
                found = {m for m in METHODS if (name, m) in called}
                made = _evaluated(node, module) if name else None
                for pattern in [made] if made is not None else _tables(module):
                    yield from (Use(file, node.lineno, method, pattern) for method in sorted(found) or ["search"])
            else:
                flags = [_evaluated(arg, module) for arg in node.args[1:] if "re." in (ast.unparse(arg))]
                flags += [_evaluated(k.value, module) for k in node.keywords if k.arg == "flags"]
                flag = next((f for f in flags if isinstance(f, re.RegexFlag)), re.RegexFlag(0))
                yield Use(file, node.lineno, func.attr, re.compile(_evaluated(node.args[0], module), flag))


def _tables(module: Any) -> Iterator[re.Pattern[Any]]:
    """Patterns that a module keeps in tuples and mappings."""
    todo = list(vars(module).values())
    while todo:
        value = todo.pop()
        if isinstance(value, re.Pattern):
            yield value
        elif isinstance(value, (tuple, list)):
            todo += value
        elif isinstance(value, dict) and value is not module.__dict__.get("__builtins__"):
            todo += [v for v in value.values() if isinstance(v, (tuple, re.Pattern))]


def of_messages() -> Iterator[Use]:
    """The table of ``gpuready explain``, whose patterns are compiled when a text may match them.

    The patterns of gpuready's own messages are all of one form, so those with the most gaps stand for them.
    """
    most_gaps = sorted(own.messages(), key=lambda message: -message.pattern.count("{"))[:5]
    for number, message in enumerate((*TABLE, *SPEAKERS, *most_gaps), 1):
        for pattern in message.patterns:
            yield Use("messages", number, "search", re.compile(pattern))


#: Candidates for a character that a part of a pattern matches.
CHARACTERS = [*"a0- =:.\"'/\t\nA_{[@,;x", *map(chr, range(33, 127)), "\u00fc"]


def _char(parsed: Any, *part: Any) -> str:
    """A character that one element of a pattern matches."""
    one = sre_compile.compile(sre_parse.SubPattern(parsed.state, [part]))
    return next((char for char in CHARACTERS if one.match(char)), "a")


def parts(parsed: Any, found: dict[int, str]) -> list[str]:
    """What each element of a pattern may match, shortest; of a repetition the repeated text, twice."""
    made = []
    for op, arg in parsed:
        if op is sre.LITERAL:
            made.append(chr(arg))
        elif op in (sre.NOT_LITERAL, sre.ANY, sre.IN):
            made.append(_char(parsed, op, arg))
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            made += parts(arg[2], found) * max(arg[0], 1)
        elif op is sre.SUBPATTERN:
            made += (inner := parts(arg[-1], found))
            found[arg[0] or 0] = "".join(inner)
        elif op is sre.BRANCH:
            made += max((parts(each, found) for each in arg[1]), key=len)
        elif op is sre.GROUPREF:
            made.append(found.get(arg, ""))
        elif op is sre.ASSERT and arg[0] < 0:
            made += parts(arg[1], found)
    return made


def repeated(parsed: Any) -> Iterator[str]:
    """The text of each repetition, wherever it is, and each branch's."""
    for op, arg in parsed:
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            yield "".join(parts(arg[2], {}))
            yield from repeated(arg[2])
        elif op is sre.SUBPATTERN:
            yield from repeated(arg[-1])
        elif op is sre.BRANCH:
            for each in arg[1]:
                yield "".join(parts(each, {}))
                yield from repeated(each)
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            yield from repeated(arg[1])


def texts(pattern: re.Pattern[Any], length: int) -> Iterator[Any]:
    parsed = sre_parse.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    if not any(op in (sre.MAX_REPEAT, sre.MIN_REPEAT) for op in _ops(parsed)):
        return
    sample = parts(parsed, {})
    heads = ["", *dict.fromkeys("".join(sample[:at]) for at in range(1, min(len(sample), 40) + 1))]
    pumps = dict.fromkeys([*repeated(parsed), "a", " ", "\n", "0", "".join(sample), *heads[1:12], "".join(sample[:-1])])
    for pump in list(pumps)[:24]:
        for head in heads[:: max(len(heads) // 8, 1)]:
            if pump:
                text = head + pump * (length // len(pump)) + "\x00"
                yield text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def _ops(parsed: Any) -> Iterator[Any]:
    for op, arg in parsed:
        yield op
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            yield from _ops(arg[2])
        elif op is sre.SUBPATTERN:
            yield from _ops(arg[-1])
        elif op is sre.BRANCH:
            for each in arg[1]:
                yield from _ops(each)


def seconds(use: Use, text: Any) -> float:
    began = time.process_time()
    if use.method == "sub":
        use.pattern.sub(text[:0], text)
    elif use.method == "finditer":
        list(use.pattern.finditer(text))
    else:
        getattr(use.pattern, use.method)(text)
    return time.process_time() - began


def slow(use: Use) -> Iterator[Any]:
    """The texts that take a time which grows faster than they do, by the best of five: CPUs are shared."""
    for few, many in zip(texts(use.pattern, 2_000), texts(use.pattern, 8_000), strict=True):
        if seconds(use, many) <= 0.02:
            continue
        pairs = [(seconds(use, few), seconds(use, many)) for _ in range(5)]
        short, long = (min(times) for times in zip(*pairs, strict=True))
        if long > max(0.02, 8 * short):
            yield few


@pytest.mark.long
@pytest.mark.fault("D3")
@pytest.mark.parametrize(
    ("patterns", "least", "files"), [(uses, 200, 60), (of_messages, 3000, 1)], ids=["code", "table"]
)
def test_time_grows_with_the_length_alone(patterns: Callable[[], Iterator[Use]], least: int, files: int) -> None:
    once = {(use.file, use.pattern.pattern, use.method): use for use in patterns()}
    assert len(once) > least and len({use.file for use in once.values()}) >= files
    assert [f"{use}: {few[:60]!r}" for use in once.values() for few in slow(use)] == []


def test_a_pattern_whose_time_grows_with_the_square_is_found() -> None:
    assert list(slow(Use("x.py", 1, "search", re.compile(r"[ax]*b"))))
    assert not list(slow(Use("x.py", 1, "match", re.compile(r"[ax]*b"))))

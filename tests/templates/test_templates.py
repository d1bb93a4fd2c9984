"""Templates: every value reaches the shell as one quoted word, whatever it holds; every template is used."""

from __future__ import annotations

import base64
import dataclasses
import importlib
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import jinja2
import jinja2.meta
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuready.core import resources
from gpuready.core.step import Script
from tests.scripts import NUMBERS, PARTS, SCRIPTS, TEMPLATES, renderings, values, variables

ROOT = Path(__file__).parents[2]
FILES = sorted(path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*") if path.is_file())
SHELLS = [[s, "-n"] for s in ("dash", "bash") if shutil.which(s)] + (
    [["busybox", "sh", "-n"]] if shutil.which("busybox") else []
)
CANARY = "gpuready-canary"
HOSTILE = [
    f"'; : >{CANARY}; '",
    f'"; : >{CANARY}; "',
    f"$(: >{CANARY})",
    f"`: >{CANARY}`",
    f"a\n: >{CANARY}\nb",
    f"\\'; : >{CANARY} #",
    f"x' \"$(: >{CANARY})\" 'y",
    "-n --help",
    "*",
    "~root ${HOME} $((1+1))",
    "grün 世界 \u2028",
    "",
    "#",
    "!!",
    "\r\t\x07\x1b[0m",
    "{{ 7 * 7 }}",
]
ALL = "\n".join(HOSTILE)


def contexts(script: str, marker: str) -> list[str]:
    """How the shell reads each place at which ``marker`` begins: code, double, single, comment or heredoc.

    A small reader of POSIX shell quoting (XCU 2.2, 2.6); it knows what our templates use, and the tests below
    prove it on examples.
    """
    found, stack, at, heredoc = [], ["code"], 0, ""
    depth = [0]
    while at < len(script):
        here, rest = stack[-1], script[at:]
        if rest.startswith(marker):
            found.append(here)
            at += len(marker)
        elif here == "single":
            if rest[0] == "'":
                stack.pop()
            at += 1
        elif rest[0] == "\\":
            at += 2
        elif here == "double":
            if rest.startswith("$("):
                stack.append("code")
                depth.append(0)
                at += 2
            elif rest.startswith("${"):
                stack.append("braces")
                at += 2
            else:
                if rest[0] == '"':
                    stack.pop()
                at += 1
        elif here == "braces":
            if rest[0] == "}":
                stack.pop()
            at += 1
        else:
            word = re.match(r"<<'(\w+)'", rest)
            if word:
                heredoc = word[1]
                at += len(word[0])
            elif rest[0] == "\n" and heredoc:
                end = script.index(f"\n{heredoc}\n", at)
                found += ["heredoc"] * script.count(marker, at, end)
                at, heredoc = end + len(heredoc) + 1, ""
            elif rest[0] == "#" and (at == 0 or script[at - 1] in " \t\n;&|("):
                end = script.find("\n", at)
                end = len(script) if end < 0 else end
                found += ["comment"] * script.count(marker, at, end)
                at = end
            elif rest[0] in "'\"":
                stack.append("single" if rest[0] == "'" else "double")
                at += 1
            elif rest.startswith("${"):
                stack.append("braces")
                at += 2
            elif rest.startswith("$("):
                stack.append("code")
                depth.append(0)
                at += 2
            else:
                if rest[0] == "(":
                    depth[-1] += 1
                elif rest[0] == ")":
                    if depth[-1]:
                        depth[-1] -= 1
                    elif len(stack) > 1:
                        stack.pop()
                        depth.pop()
                at += 1
    return found


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo X", ["code"]),
        ('echo "X"', ["double"]),
        ("echo 'X'", ["single"]),
        ('echo "a"X"b"', ["code"]),
        ('echo "$(cat X "$(y "X")" X) X"', ["code", "double", "code", "double"]),
        ("echo \\\" X \\' X", ["code", "code"]),
        ('echo "\\"X"', ["double"]),
        ("# it's X\necho X", ["comment", "code"]),
        ("a=${b#c} X", ["code"]),
        ('a="${b%%|*}" X', ["code"]),
        ("$((1+(2))) X", ["code"]),
        ("cat <<'E'\nit's X\nE\necho X", ["heredoc", "code"]),
        ("( (a) ) X; f() { X; }", ["code", "code"]),
    ],
)
def test_the_reader_of_contexts(script: str, expected: list[str]) -> None:
    assert contexts(script, "X") == expected


@pytest.mark.parametrize("name", renderings("x"))
def test_no_value_stands_within_quotes_a_comment_or_a_heredoc(name: str) -> None:
    marker = "gpureadymarker"
    script = renderings(marker)[name]
    # What went through base64 is a word of harmless letters; it has a place like any other.
    script = script.replace(base64.b64encode(marker.encode()).decode(), marker)
    found = contexts(script, marker)
    assert len(found) == script.count(marker), "the reader lost its way"
    assert set(found) <= {"code"}
    if set(values(name.split()[0], "")) - NUMBERS - {"survives"}:
        assert found


@pytest.mark.parametrize("value", [*filter(None, HOSTILE), ALL])
def test_hostile_values_stand_in_the_script_as_one_quoted_word(value: str) -> None:
    marker = "gpureadymarker"
    plain = renderings(marker)
    coded, hostile = (base64.b64encode(v.encode()).decode() for v in (marker, value))
    for name, script in renderings(value).items():
        assert script == plain[name].replace(coded, hostile).replace(marker, shlex.quote(value))


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("value", ["", "plain", ALL], ids=["empty", "plain", "hostile"])
def test_every_script_is_a_script(shell: list[str], value: str, tmp_path: Path) -> None:
    """All hostile values at once: the test above shows that each takes the place of one quoted word."""
    for name, script in renderings(value).items():
        done = subprocess.run(shell, input=script.encode(), capture_output=True, cwd=tmp_path, check=False)
        assert (done.returncode, done.stderr) == (0, b""), name
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("shell", [s for s in ("dash", "bash", "sh") if shutil.which(s)])
def test_the_words_that_hold_a_value_are_what_they_say(shell: str, tmp_path: Path) -> None:
    """Each such word of each script, taken out and handed to printf by a shell, with nothing else around it."""
    marker = "gpureadymarker"
    words = {w for script in renderings(marker).values() for w in re.findall(rf"[\w./=,:-]*{marker}[\w./-]*", script)}
    assert len(words) > 3
    for value in HOSTILE:
        quoted = " ".join(word.replace(marker, shlex.quote(value)) for word in sorted(words))
        assert said_by_a_shell(shell, quoted, tmp_path) == [word.replace(marker, value) for word in sorted(words)]
    assert not list(tmp_path.iterdir())


# --- quoting ---------------------------------------------------------------------------------------------------


def said_by_a_shell(shell: str, words: str, tmp_path: Path) -> list[str]:
    script = f"for w in {words}; do printf '%s\\036' \"$w\"; done"
    done = subprocess.run([shell, "-c", script], capture_output=True, cwd=tmp_path, check=True)
    return done.stdout.decode("utf-8", "surrogateescape").split("\x1e")[:-1]


@pytest.mark.parametrize("shell", [s for s in ("dash", "bash", "sh") if shutil.which(s)])
def test_a_shell_reads_back_what_was_given(shell: str, tmp_path: Path) -> None:
    quoted = resources._quote(HOSTILE)
    assert said_by_a_shell(shell, quoted, tmp_path) == HOSTILE
    assert [w for v in HOSTILE for w in said_by_a_shell(shell, resources._quote(v), tmp_path)] == HOSTILE
    assert not list(tmp_path.iterdir())


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\x1e")), max_size=5))
@example(["'", "''", "'\\''", '"', "\\", "\n", "$x", "`id`"])
def test_any_text_is_read_back(words: list[str]) -> None:
    assert shlex.split(resources._quote(words)) == words
    assert said_by_a_shell("sh", resources._quote(words), ROOT) == words


def test_numbers_and_empty_lists() -> None:
    assert resources._quote(5) == "5"
    assert resources._quote(()) == ""
    assert resources._quote("") == "''"


@given(
    st.binary(max_size=50) | st.text(st.characters(exclude_categories=[]), max_size=50).filter(lambda t: _encodes(t))
)
def test_base64_keeps_bytes(value: str | bytes) -> None:
    data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    assert base64.b64decode(resources._b64(value), validate=True) == data


def _encodes(text: str) -> bool:
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


# --- the rest --------------------------------------------------------------------------------------------------


def test_a_value_that_is_missing_is_an_error_and_no_empty_string() -> None:
    for name in SCRIPTS:
        given = values(name, "x")
        if name not in PARTS and given:
            with pytest.raises((jinja2.UndefinedError, TypeError), match=r"undefined|Undefined"):
                resources.script(name)
    with pytest.raises(jinja2.UndefinedError):
        resources.document("repository/toolkit.sources", url="x")


def test_documents_have_their_values_as_they_are() -> None:
    assert resources.document("ldso/ldso.conf", dirs=("/a b", "/c'd")) == "# Written by gpuready.\n/a b\n/c'd\n"
    assert resources.document("repository/toolkit.sources", url="https://h/$(ARCH)", keyring="/k.asc") == (
        "# Written by gpuready.\nTypes: deb\nURIs: https://h/$(ARCH)\nSuites: /\nSigned-By: /k.asc\n"
    )


def test_scripts_are_ascii_where_their_values_are() -> None:
    for name, script in renderings("x").items():
        assert script.isascii(), name
        assert "{{ " not in script.replace("{{.", "").replace("{{json", "") or name in (
            "docker/install",
            "probe/probe",
        ), name


@pytest.mark.fault("D7")
@pytest.mark.parametrize("name", FILES)
def test_no_file_below_tmp_has_a_name_that_can_be_guessed(name: str) -> None:
    """mktemp makes what nobody was there before with; any other name there may be a link that a user laid."""
    text = (TEMPLATES / name).read_text("utf-8")
    guessed = [line for line in text.splitlines() if re.search(r"/(var/)?tmp/(?!\S*XXXXXX)", line)]
    assert guessed == []


@pytest.mark.fault("clock-jump")
@pytest.mark.parametrize("name", SCRIPTS)
def test_no_wait_is_measured_by_the_time_of_day(name: str) -> None:
    """`seconds` of lib.sh.j2 is for that; the time of day is for records, and for what others date by it."""
    text = (TEMPLATES / f"{name}.sh.j2").read_text("utf-8")
    assert not re.findall(r"\(\(.*date \+%s|date \+%s\)\"? -[lg][te]|-[lg][te] \"?\$\(date \+%s", text)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_says_what_it_does_and_fits_a_window(name: str) -> None:
    """Its first comment names what it does, what it takes (each variable), what it prints, and how it exits."""
    text = (TEMPLATES / f"{name}.sh.j2").read_text("utf-8")
    assert [line for line in text.splitlines() if len(line) > 120] == []
    header = text[text.index("{#") : text.index("#}")]
    assert not re.search(r"^[a-z(]", re.sub(r"{%.*?%}", "", text[: text.index("{#")]), re.MULTILINE), "code before it"
    wanted = {"In:", "Out:"} | (set() if name in PARTS else {"Exit:"})
    assert not {word for word in wanted if word not in header}
    if name not in PARTS:
        own = jinja2.meta.find_undeclared_variables(resources._environment(True).parse(text))
        own -= set(re.findall(r"{% set (\w+) =", text))
        assert not {variable for variable in own if not re.search(rf"\b{variable}\b", header)}


def test_every_template_is_used() -> None:
    code = "\n".join(p.read_text() for p in (ROOT / "deploys").rglob("*.py"))
    named = set(re.findall(r'(?:(?:script|document|get_template)\(\s*|template = )"([\w./-]+)"', code))
    named |= {name.removesuffix(".j2") for name in named}
    included = {n for name in FILES for n in re.findall(r'(?:include|from) "(.+?)"', (TEMPLATES / name).read_text())}
    templates = {name for name in FILES if name.endswith(".j2")}
    assert not {name for name in templates - included if name.removesuffix(".j2").removesuffix(".sh") not in named}


def kinds() -> list[type[Script]]:
    """All scripts with typed arguments, by template."""
    deploys = ROOT / "deploys"
    for path in deploys.rglob("*.py"):
        if "(Script):" in path.read_text():
            importlib.import_module(".".join(path.relative_to(deploys).with_suffix("").parts))
    return sorted(Script.__subclasses__(), key=lambda kind: kind.template)


def test_a_script_has_a_field_for_each_name_of_its_template_and_no_other() -> None:
    assert len(kinds()) > 20
    for kind in kinds():
        assert {field.name for field in dataclasses.fields(kind)} == variables(kind.template), kind


def test_every_template_that_is_named_is_there() -> None:
    code = "\n".join(p.read_text() for p in (ROOT / "deploys").rglob("*.py"))
    named = re.findall(r'resources\.(script|document)\(\s*"([\w./-]+)"', code)
    named += [("script", name) for name in re.findall(r'^ +template = "([\w./-]+)"', code, re.M)]
    assert named
    for kind, name in named:
        assert (TEMPLATES / f"{name}{'.sh' if kind == 'script' else ''}.j2").is_file(), name

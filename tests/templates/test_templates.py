"""Templates: every value reaches the shell as one quoted word, whatever it holds; every template is used."""

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

from gpuready.base import resources
from gpuready.base.step import Script
from tests.scripts import NUMBERS, PARTS, SCRIPTS, TEMPLATES, renderings, values, variables

ROOT = Path(__file__).parents[2]
FILES = sorted(path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*") if path.is_file())
SHELLS = [shell for shell in (["sh"], ["dash"], ["bash"], ["busybox", "sh"]) if shutil.which(shell[0])]
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


def code(script: str, marker: str) -> list[bool]:
    """Whether a shell reads each place at which ``marker`` stands as code, so that other words there are an error.

    In quotes, in a comment and in a heredoc no words are an error.
    """
    found = []
    for place in re.finditer(marker, script):
        broken = f"{script[: place.start()]};;){script[place.end() :]}"
        done = subprocess.run(["sh", "-n"], input=broken.encode(), capture_output=True, check=False)
        found.append(done.returncode != 0)
    return found


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo X; f() { X; }", [True, True]),
        ('echo "X" \'X\' "a"X"b"', [False, False, True]),
        ('echo "$(cat X "$(y "X")" X) X"', [True, False, True, False]),
        ("# it's X\necho X", [False, True]),
        ("cat <<'E'\nit's X\nE\necho X", [False, True]),
    ],
)
def test_a_shell_tells_code_from_text(script: str, expected: list[bool]) -> None:
    assert code(script, "X") == expected


@pytest.mark.parametrize("name", renderings("x"))
def test_no_value_stands_within_quotes_a_comment_or_a_heredoc(name: str) -> None:
    marker = "gpureadymarker"
    script = renderings(marker)[name]
    # What went through base64 is a word of harmless letters; it has a place like any other.
    found = code(script.replace(base64.b64encode(marker.encode()).decode(), marker), marker)
    assert all(found)
    if set(values(name.split()[0], "")) - NUMBERS - {"survives", "dnf"}:
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
        done = subprocess.run([*shell, "-n"], input=script.encode(), capture_output=True, cwd=tmp_path, check=False)
        assert (done.returncode, done.stderr) == (0, b""), name
    assert not list(tmp_path.iterdir())


# --- quoting ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\x1e")), max_size=5))
@example(HOSTILE)
@example(["'", "''", "'\\''", '"', "\\", "\n", "$x", "`id`"])
def test_any_text_is_read_back(shell: list[str], words: list[str]) -> None:
    quoted = resources._quote(words)
    assert shlex.split(quoted) == words
    script = f"for w in {quoted}; do printf '%s\\036' \"$w\"; done"
    done = subprocess.run([*shell, "-c", script], capture_output=True, cwd=ROOT, check=True)
    assert done.stdout.decode("utf-8", "surrogateescape").split("\x1e")[:-1] == words
    assert not (ROOT / CANARY).exists()


def test_numbers_and_empty_lists() -> None:
    assert resources._quote(5) == "5"
    assert resources._quote(()) == ""
    assert resources._quote("") == "''"


@given(st.binary(max_size=50))
def test_base64_keeps_bytes(data: bytes) -> None:
    for value in (data, data.decode("utf-8", "surrogateescape")):
        assert base64.b64decode(resources._b64(value), validate=True) == data


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
def test_no_wait_is_measured_by_the_time_of_day() -> None:
    """`seconds` of prelude.sh.j2 is for that; the time of day is for records, and for what others date by it."""
    dated = {
        name: re.findall(
            r"^.*\bdate \+.*$|^.*EPOCH(?:SECONDS|REALTIME).*$",
            (TEMPLATES / f"{name}.sh.j2").read_text("utf-8"),
            re.MULTILINE,
        )
        for name in SCRIPTS
    }
    assert {name: [line.strip() for line in lines] for name, lines in dated.items() if lines} == {
        "docker/install": [
            'timeout 30 docker events --since 1 --until "$(date +%s.%N)" --filter type=daemon --filter event=reload '
            "2>/dev/null",
        ],
        "probe/probe": ['echo "clock=$(date +%s)"'],
        "reconverge/reconverge": ["BEGAN=$(date +%s)"],
        "reconverge/result": [
            '"$BEGAN" "$(date +%s)" "$boot" "$(text "$DRIVER")"',
            'echo "gpuready_reconverge_last_run_timestamp_seconds $(date +%s)"',
        ],
        "verbs/rdma/look": ['echo "clock=$(date +%s)"'],
    }


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


def test_every_template_that_is_named_is_there_and_every_other_is_a_part() -> None:
    source = "\n".join(p.read_text() for p in (ROOT / "deploys").rglob("*.py"))
    named = re.findall(r'(?:(?:script|document|get_template|filled)\(\s*|template=)"([\w./-]+)"', source)
    named += re.findall(r'": "([\w/-]+\.py)"', source)
    parts = [
        n for name in FILES for n in re.findall(r'(?:include|from|extends) "(.+?)"', (TEMPLATES / name).read_text())
    ]
    short = {name: name.removesuffix(".j2").removesuffix(".sh") for name in (*FILES, *named, *parts)}
    assert {short[name] for name in named} <= {short[name] for name in FILES}
    assert {short[n] for n in FILES if n.endswith(".j2")} <= {short[name] for name in (*named, *parts)}


def kinds() -> list[type[Script]]:
    """All scripts with typed arguments, by template."""
    deploys = ROOT / "deploys"
    for path in deploys.rglob("*.py"):
        if re.search(r"\((Script|Question), template=", path.read_text()):
            importlib.import_module(".".join(path.relative_to(deploys).with_suffix("").parts))
    found = [*Script.__subclasses__()]
    for kind in found:
        found += kind.__subclasses__()
    return sorted({kind for kind in found if kind.template}, key=lambda kind: kind.template)


def test_a_script_has_a_field_for_each_name_of_its_template_and_no_other() -> None:
    assert len(kinds()) > 20
    for kind in kinds():
        assert {field.name for field in dataclasses.fields(kind)} == variables(kind.template), kind

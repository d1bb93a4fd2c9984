"""The documentation's site: a hook of MkDocs. It adds the README as the index, and the reference, made from the code.

``python -m docs.site`` writes docs/plan.svg, the picture of a plan, from a recorded node, and docs/gpuready.1, the
manual page, from the commands. Nothing here needs a network.

Pages link to files of the repository as GitHub wants it. A linked file that is not below docs/ becomes a page or a
file of the site under ``repository/``, so that the site has no dead links.
"""

from __future__ import annotations

import contextlib
import html
import inspect
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docs import matrix
from gpuready import __version__
from gpuready.catalogue import BY_ID
from gpuready.cli.app import HELP, VERBS, gpuready
from gpuready.contract.check import Check
from gpuready.contract.component import Component
from gpuready.messages.find import TABLE
from gpuready.model.schema import inventory_schema
from gpuready.model.schema_help import allowed_at
from gpuready.model.spec import NodeSpec
from gpuready.node import NODE
from gpuready.report.exitcode import MEANING, ORDER

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "plan.svg"
MANUAL = ROOT / "docs" / "gpuready.1"
#: Links and images of a page that are relative: target, and anchor.
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
_OF_GITHUB = re.compile(r"^\[[^\]]+\]: \.\./\.\./\S+\n?", re.M)  # such as its list of commits
_FENCE = re.compile(r"^(```.*?^```)$", re.M | re.S)
_PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_RECORDED = "tests/data/h200-mounted-driver/state.json"
_SPEC = {
    "hardware": {"gpus": 8, "model": "H200"},
    "toolkit": {
        "cuda_compat_mode": "mount",
        "version": "1.20.0",  # this and repo are as recorded, so that the picture shows no difference there
        "repo": {
            "url": "http://127.0.0.1:8418/stable/deb/$(ARCH)",
            "key": "http://127.0.0.1:8418/gpgkey",
            "fingerprint": "A9107F12065BC076ABD2A6997758F05BE265CDE2",
        },
    },
    "runtimes": {"docker": {"default_runtime": True, "shm_size": "8g"}},
}

# --- the reference, made from the code


def reference() -> dict[str, str]:
    """The generated pages by their path in the site."""
    pages = {
        "reference/spec.md": _spec(),
        "reference/cli.md": _cli(),
        "reference/exit-codes.md": _exit_codes(),
        "reference/result.md": _result(),
        "reference/components.md": _components(),
        "reference/compat.md": matrix.page(),
    }
    areas: dict[str, list[Check]] = {}
    for check in BY_ID.values():
        areas.setdefault(_area_of(check), []).append(check)
    pages["reference/checks/index.md"] = _checks(areas)
    return pages | {f"reference/checks/{name}.md": _area(name, checks) for name, checks in areas.items()}


def _spec() -> str:
    definitions = inventory_schema()["$defs"]
    lines = ["# The spec", "", "What a host's `gpuready` value may hold. In an inventory, the keys are nested:", "",
             "```yaml", "gpuready:", "  runtimes:", "    docker:", "      shm_size: 8g", "```", "",
             "`gpuready schema` prints the same as a JSON Schema.", ""]  # fmt: skip
    for name, field in definitions["NodeSpec"]["properties"].items():
        rows = list(_keys([name], field, definitions))
        lines += [f"## {name}", "", _text(field.get("description", "") or _of(field, definitions)), ""]
        lines += [*_table(("key", "allowed", "default", "meaning"), rows), ""]
    return "\n".join(lines)


def _keys(path: list[str], field: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    found = _below(field, definitions)
    if len(path) > 1 or not found:
        default = field.get("default")
        shown = "" if default is None else f"`{default if isinstance(default, str) else json.dumps(default)}`"
        yield f"`{'.'.join(path)}`", _code(allowed_at(NodeSpec, path)), shown, _text(field.get("description", ""))
    for name, below in found.items():
        yield from _keys([*path, name], below, definitions)


def _below(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of a mapping; of alternatives, those of the one that is a mapping."""
    for form in (field, *field.get("anyOf", ())):
        if "$ref" in form:
            found: Mapping[str, Any] = definitions[form["$ref"].rsplit("/", 1)[1]]["properties"]
            return found
    return {}


def _of(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    return str(definitions[field["$ref"].rsplit("/", 1)[1]]["description"]) if "$ref" in field else ""


def _cli() -> str:
    lines = ["# The commands", "", "As `gpuready COMMAND --help` prints them.", ""]
    for name, summary in VERBS.items():
        lines += [f"## {name}", "", summary, ""]
        for context in _contexts(name):
            lines += ["```text", context.command.get_help(context).rstrip(), "```", ""]
    return "\n".join(lines)


def _contexts(name: str) -> Iterator[Any]:
    """A command and its subcommands, each with what its help needs."""
    import click

    settings = {**gpuready.context_settings, "terminal_width": 100, "max_content_width": 100}
    with click.Context(gpuready, info_name="gpuready", **settings) as top:
        command: Any = gpuready.get_command(top, name)
        below = getattr(command, "commands", {}).items()
        for title, each in ((name, command), *((f"{name} {word}", each) for word, each in below)):
            yield click.Context(each, parent=top, info_name=title)


def _exit_codes() -> str:
    rows = [(f"{code}", meaning.replace("; ", "<br>")) for code, meaning in sorted(MEANING.items())]
    order = ", ".join(map(str, ORDER))
    more = f"""If several apply, the first of {order} counts. `--output json` prints one valid document with each.

4 is a fault of the network, the host key, the login or sudo. 64 is also `apply` without a terminal and without
`--yes`."""
    return "\n".join(["# Exit codes", "", *_table(("code", "meaning"), rows), "", more, ""])


def _result() -> str:
    from gpuready.report.result import result_schema

    schema = result_schema()
    about = """`--output json` prints it, and `gpuready schema result` prints its JSON Schema. Ignore keys that you do
not know: within a version, the document only grows."""
    lines = ["# The result document", "", _text(schema.get("description", "")), "", about, ""]
    for name, part in {"The document": schema, **schema["$defs"]}.items():
        if part.get("properties"):
            keys = part["properties"].items()
            rows = [(f"`{key}`", _kind(value), _text(value.get("description", ""))) for key, value in keys]
            about = _text(part.get("description", "")) if part is not schema else ""
            lines += [f"## {name}", "", about, "", *_table(("key", "type", "meaning"), rows), ""]
    return "\n".join(lines)


def _kind(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if alternatives:
        return " or ".join(map(_kind, alternatives))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"mapping to {_kind(schema['additionalProperties'])}"
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _components() -> str:
    about = "The parts of a node that gpuready manages, in the order in which it converges them."
    rows = [(f"[`{item.name}`](#{item.name})", _text(_first(item))) for item in NODE]
    lines = ["# Components", "", about, "", *_table(("component", "what it is"), rows), ""]
    for item in NODE:
        checks = [check for check in BY_ID.values() if check.component == item.name]
        lines += [f"## {item.name}", "", _text(inspect.getmodule(item).__doc__ or "", keep=True), ""]
        lines += [f"Spec: [`{item.name}`](spec.md#{item.name}).", ""] if item.name in NodeSpec.model_fields else []
        lines += [f"`owners.{item.part}` says who manages it.", ""] if item.part else []
        if checks:
            lines += ["Checks: " + ", ".join(_link(each, f"checks/{_area_of(each)}.md") for each in checks), ""]
    return "\n".join(lines)


def _first(item: Component) -> str:
    return inspect.cleandoc(item.__doc__ or "").split("\n")[0]


def _checks(areas: Mapping[str, list[Check]]) -> str:
    about = """A check is a question about a node, with an answer. `gpuready explain ID` prints the same,
and `gpuready explain TEXT` finds the checks of a message.
[What verify checks](../../explanation/verify.md) says how they are judged."""
    lines = ["# Checks", "", about, ""]
    for name, checks in areas.items():
        rows = [(_link(each, f"{name}.md"), each.level.name, _sentence(each.cause)) for each in checks]
        lines += [f"## {name}", "", *_table(("check", "level", "cause"), rows), ""]
    return "\n".join(lines)


def _area(name: str, checks: list[Check]) -> str:
    lines = [f"# Checks: {name}", ""]
    for check in checks:
        traits = [f"Level {check.level.name}"]
        traits += ["needs a GPU"] if check.gpu else []
        traits += ["runs in the second exec"] if check.active else []
        lines += [f"## {check.id} {{ #{_anchor(check)} }}", "", ", ".join(traits) + ".", ""]
        lines += [f"**Cause.** {_text(check.cause)}", "", "**Confirm.**", "", "```sh", check.confirm, "```", ""]
        lines += [f"**Fix.** {_text(check.fix)}", ""]
        after = ", ".join(_link(BY_ID[id], f"{_area_of(BY_ID[id])}.md") for id in check.after)
        lines += [f"**Skipped if one of these fails:** {after}.", ""] if after else []
        titles = [f"- `{message.title}`" for message in TABLE if check.id in message.checks]
        lines += ["**Messages that lead here.**", "", *titles, ""] if titles else []
    return "\n".join(lines)


def _area_of(check: Check) -> str:
    return check.id.partition(".")[0]


def _anchor(check: Check) -> str:
    return check.id.replace(".", "-")


def _link(check: Check, page: str) -> str:
    return f"[`{check.id}`]({page}#{_anchor(check)})"


def _sentence(text: str) -> str:
    """The first sentence."""
    return re.split(r"(?<=[.:;])\s", _text(text), maxsplit=1)[0].rstrip(":;")


def _text(text: str, *, keep: bool = False) -> str:
    """Text of the code as Markdown: docstrings have ``code`` and roles; a ``<`` would begin HTML."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", inspect.cleandoc(text)).replace("``", "`")
    parts = text.split("`")
    parts[::2] = [_escaped(part) for part in parts[::2]]
    text = "`".join(parts)
    return text if keep else " ".join(text.split())


def _escaped(text: str) -> str:
    """``*word*`` stays an emphasis; other marks mean themselves."""
    return re.sub(r"(?<!\w)\*\w+\*(?!\w)|[*_]", lambda mark: mark[0] if len(mark[0]) > 1 else f"\\{mark[0]}",
                  text.replace("<", "&lt;"))  # fmt: skip


def _code(text: str) -> str:
    return f"<code>{html.escape(text).replace('|', '&#124;')}</code>" if text else ""


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines]


# --- the picture of a plan


def plan(color: bool = False) -> str:
    """What ``gpuready plan`` prints for the recorded node."""
    from gpuready.cli.app import run

    with tempfile.TemporaryDirectory() as folder:
        inventory = Path(folder) / "inventory.yaml"
        inventory.write_text(json.dumps({"all": {"hosts": {"gpu01": {}}, "vars": {"gpuready": _SPEC}}}), "utf-8")
        words = [
            "plan",
            "-i",
            str(inventory),
            "--state",
            str(ROOT / _RECORDED),
            "--color",
            "always" if color else "never",
        ]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = run(words)
    assert code == 0, code
    _, _, text = out.getvalue().partition("\n\n")  # without the head line, which has paths and seconds
    return "$ gpuready plan -i inventory.yaml\n\n" + re.sub(r"\d+\.\d s$", "0.2 s", text, flags=re.M)


def picture() -> str:
    """The plan as SVG, by rich; without the fonts that its template would load from the network."""
    from rich.console import Console
    from rich.terminal_theme import MONOKAI
    from rich.text import Text

    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(plan(color=True)), soft_wrap=False)
    svg = console.export_svg(title="gpuready plan", theme=MONOKAI, unique_id="plan")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.S)


def words_of(svg: str) -> str:
    """The text of such a picture, without its spaces: they differ between versions of rich."""
    shown = re.findall(r"<text[^>]*>(.*?)</text>", svg, re.S)
    return re.sub(r"\s", "", html.unescape("".join(shown)).replace("gpuready\xa0plan", "", 1))


# --- the manual page


def manual() -> str:
    """The manual page gpuready(1), in the macros of man(7)."""
    about, _, examples = HELP.partition("\n\n\b\n")
    lines = [f'.TH GPUREADY 1 "" "gpuready {__version__}" "User Commands"', ".SH NAME"]
    lines += ["gpuready \\- prepare GPU nodes for containers and multi\\-node training", ".SH SYNOPSIS"]
    lines += [".B gpuready", "COMMAND [OPTION]...", ".SH DESCRIPTION", _roff(about), *_as_it_is(examples)]
    lines += [".SH COMMANDS"]
    for name in VERBS:
        for context in _contexts(name):
            usage = " ".join(context.command.collect_usage_pieces(context))
            lines += [f".SS gpuready {_roff(context.info_name)} {_roff(usage)}"]
            lines += _about(context.command.help or "")[1:]  # a paragraph begins anyway
            for param in context.command.params:
                if param.param_type_name == "argument":
                    continue
                record = param.get_help_record(context)
                lines += [".TP", f"\\fB{_roff(record[0])}\\fR", _roff(" ".join(record[1].split()))] if record else []
    lines += [".SH EXIT STATUS"]
    for code, meaning in sorted(MEANING.items()):
        lines += [".TP", f"\\fB{code}\\fR", _roff(meaning)]
    lines += [".SH FILES", ".TP", "\\fI~/.ssh/config\\fR, \\fI~/.ssh/known_hosts\\fR",
              "Connections work as with ssh; host keys are checked strictly.",
              ".SH SEE ALSO", ".BR ssh_config (5),", ".BR ansible-inventory (1)"]  # fmt: skip
    return "\n".join(lines) + "\n"


def _about(text: str) -> list[str]:
    """The paragraphs of a command's help; examples, after ``\\b``, keep their lines."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        example = paragraph.removeprefix("\b\n")
        lines += _as_it_is(example) if example != paragraph else [".PP", _roff(" ".join(paragraph.split()))]
    return lines


def _as_it_is(text: str) -> list[str]:
    return [".PP", ".nf", *map(_roff, text.rstrip().split("\n")), ".fi"]


def _roff(text: str) -> str:
    """Plain text on a line: no escapes, no request at its beginning, and hyphens and quotes that can be copied."""
    marks = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", "\n": " "}
    text = text.translate(str.maketrans(marks))
    return f"\\&{text}" if text.startswith(".") else text


# --- the site


def repository_files() -> dict[str, str]:
    """Files outside of docs/ that pages link to, by their path in the site; those that they link to as well."""
    found = {"index.md": "README.md", **{f"repository/{name}": name for name in _PAGES}}
    waiting = [
        "README.md",
        *_PAGES,
        *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))),
    ]
    while waiting:
        page = waiting.pop()
        for target in links(page):
            if not target.startswith("docs/") and target not in found.values() and (ROOT / target).is_file():
                found[f"repository/{target}"] = target
                waiting += [target] if target.endswith(".md") else []
    return found


def links(page: str) -> list[str]:
    """The files that a page of the repository links to."""
    text = _FENCE.sub("", (ROOT / page).read_text("utf-8"))
    return [_resolve(page, target) for target, _ in LINK.findall(text)]


def _resolve(page: str, target: str) -> str:
    return os.path.normpath(Path(page).parent / target)


def relinked(text: str, page: str, place: str, places: Mapping[str, str]) -> str:
    """The text of ``page`` as it stands at ``place`` in the site. ``places``: where files outside of docs/ are."""

    def link(found: re.Match[str]) -> str:
        target = _resolve(page, found[1])
        there = places.get(target, target.removeprefix("docs/"))
        return f"]({os.path.relpath(there, Path(place).parent)}{found[2] or ''})"

    text = _OF_GITHUB.sub("", text)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in _FENCE.split(text))


def on_config(config: MkDocsConfig) -> None:
    """Add the generated pages of checks to the navigation."""
    areas = [{"All checks": "reference/checks/index.md"}]
    areas += [{path.split("/")[-1].removesuffix(".md"): path} for path in reference()
              if path.startswith("reference/checks/") and not path.endswith("index.md")]  # fmt: skip
    for entry in config.nav or []:
        if "Reference" in entry:
            entry["Reference"].append({"Checks": areas})


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the files of the repository."""
    from mkdocs.structure.files import File

    for place, text in reference().items():
        files.append(File.generated(config, place, content=text))
    for place, path in repository_files().items():
        files.append(File.generated(config, place, content=(ROOT / path).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into links of the site."""
    place = page.file.src_uri
    if place.startswith("reference/"):
        return markdown
    outside = repository_files()
    return relinked(markdown, outside.get(place, f"docs/{place}"), place, {path: at for at, path in outside.items()})


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
    MANUAL.write_text(manual(), "utf-8")
    print(PICTURE.relative_to(ROOT), MANUAL.relative_to(ROOT))

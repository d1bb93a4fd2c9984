"""Find the templates (in a wheel or a checkout) and render them.

In scripts, every ``{{ value }}`` is quoted for the shell, so that no value can reach the shell unquoted by mistake;
bytes are in base64.
Files for the node are rendered without quoting. An undefined name is an error, not an empty string.
"""

from __future__ import annotations

import base64
import functools
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2


@functools.cache
def root() -> Path:
    here = Path(__file__).resolve().parents[1]
    packaged = here / "templates"
    return packaged if packaged.is_dir() else here.parents[1] / "templates"


def _quote(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "1" if value else "''"
    if isinstance(value, (list, tuple)):
        return " ".join(shlex.quote(str(v)) for v in value)
    return shlex.quote(_b64(value) if isinstance(value, bytes) else str(value))


def _b64(value: str | bytes) -> str:
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return base64.b64encode(data).decode("ascii")


@functools.cache
def _environment(script: bool) -> jinja2.Environment:
    import jinja2  # takes 0.05 s; commands that render nothing do not need it

    from gpuready.base.script_tags import ScriptTags

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(root()),
        undefined=jinja2.StrictUndefined,
        finalize=_quote if script else None,
        autoescape=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        extensions=[ScriptTags] if script else (),
    )
    environment.filters["b64"] = _b64
    return environment


def script(name: str, **values: object) -> str:
    """Render ``templates/NAME.sh.j2``. Each value is one quoted shell word; a tuple is one word per item; True is 1."""
    return _environment(True).get_template(f"{name}.sh.j2").render(**values)


def document(name: str, **values: object) -> str:
    """Render ``templates/NAME.j2``, a file for the node. Values are not quoted."""
    return _environment(False).get_template(f"{name}.j2").render(**values)


def unit_word(text: str, specifiers: str = "") -> str:
    """Return the text as one word of ExecStart; in ``specifiers``, systemd expands %.

    systemd expands % and $ in a unit; a word in double quotes is one argument. Source: systemd.service(5).
    """
    for character, escaped in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        text = text.replace(character, escaped)
    return f'"{text}{specifiers}"'

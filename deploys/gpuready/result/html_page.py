"""What the HTML pages share: one style, a policy that allows nothing else, and values that are escaped."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gpuready.base.host_list import hostlist
from gpuready.base.words import count
from gpuready.result.text import printable

if TYPE_CHECKING:
    import jinja2

    from gpuready.contract.check import Check


def filled(template: str, script: str = "", **values: Any) -> str:
    """A page with our style and this script, and a policy that allows nothing else. ``values`` are escaped."""
    style = asset("style.css")
    scripts = f"script-src {_hash(script)}; " if script else ""
    policy = f"default-src 'none'; style-src {_hash(style)}; {scripts}base-uri 'none'; form-action 'none'"
    return _templates().get_template(template).render(**values, style=style, script=script, policy=policy)


def causes(ids: Iterable[str]) -> dict[str, tuple[str, Check]]:
    """The checks of these ids, each with its anchor in the page. Another release may have had other checks."""
    from gpuready.catalogue import BY_ID

    return {id: (f"c{number}", BY_ID[id]) for number, id in enumerate(dict.fromkeys(ids), 1) if id in BY_ID}


@functools.cache
def _templates() -> jinja2.Environment:
    import jinja2
    from markupsafe import Markup

    from gpuready.base.resources import root

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(root()),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"hostlist": hostlist, "count": count}
    return environment


@functools.cache
def asset(name: str) -> Any:
    from markupsafe import Markup

    from gpuready.base.resources import root

    return Markup((root() / "report" / name).read_text(encoding="utf-8"))


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"

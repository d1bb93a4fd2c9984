"""What every text for people is made of: paragraphs, labelled lines, and the error of a whole run.

Apart from text.py, because ``--help`` needs no masks.
"""

from collections.abc import Iterable

from gpuready.result.mask import mask_text
from gpuready.result.text import Painter, lines, one_line


def page(parts: Iterable[Iterable[str]]) -> str:
    """Paragraphs of lines as one text, masked; none of what a line was made of can begin another one."""
    paragraphs = ("\n".join(map(one_line, part)) for part in parts)
    return mask_text("\n\n".join(filter(None, paragraphs)) + "\n")


def problem(message: str, remedy: str = "", *, color: bool = False) -> str:
    """An error of the whole run, as it stands on stderr."""
    paint = Painter(color)
    first, *rest = lines(message, "  ")
    told = [f"{paint('red', 'error:')} {first}", *rest]
    return page([[*told, *labelled("fix", remedy, "  ")]])


def labelled(label: str, text: str, indent: str) -> list[str]:
    """A label and its text, whose further lines are set in below the first; nothing for an empty text."""
    if not text.strip():
        return []
    first, *rest = lines(text, indent + " " * 9)
    return [f"{indent}{label + ':':<9}{first}", *rest]

"""apt's source files, both formats (sources.list(5)): who names NVIDIA's container repository, and without whom.

Two entries for one repository with different Signed-By make apt refuse everything ("Conflicting values set for
option Signed-By"), which is why every old entry has to go when ours comes.
"""

from __future__ import annotations

import re

OLD = re.compile(r"nvidia\.github\.io/(libnvidia-container|nvidia-docker|nvidia-container-runtime)(/|\s|$)")


def names_repository(text: str, url: str) -> bool:
    """Does an entry's text name the repository ``url`` or one of NVIDIA's own places for it?"""
    wanted = re.sub(r"/\$\(ARCH\)$", "", url).rstrip("/")
    uris = re.findall(r"https?://[^\s\]]+", text)
    return any(uri.rstrip("/") == wanted or uri.startswith(wanted + "/") or OLD.search(uri + "/") for uri in uris)


def without_repository(path: str, text: str, url: str) -> str | None:
    """The file without the entries that name the repository; None when it has none to lose.

    Only active entries count; what is left may be empty (the file can go) or comments.
    """
    cut = _cut_stanzas if path.endswith(".sources") else _cut_lines
    kept = cut(text, url)
    return None if kept == text else kept


def is_bare(text: str) -> bool:
    """True when nothing but blank lines and comments is left."""
    return all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines())


def _cut_lines(text: str, url: str) -> str:
    kept = [
        line
        for line in text.splitlines(keepends=True)
        if not (line.split("#")[0].split()[:1] in (["deb"], ["deb-src"]) and names_repository(line.split("#")[0], url))
    ]
    return "".join(kept)


def stanzas(text: str) -> list[dict[str, str]]:
    """deb822 stanzas as field -> value (continuation lines joined by spaces); comments left out."""
    found: list[dict[str, str]] = []
    for block in re.split(r"\n[ \t]*\n", text):
        fields: dict[str, str] = {}
        last = ""
        for line in block.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in (" ", "\t") and last:
                fields[last] = f"{fields[last]} {line.strip()}".strip()
            elif ":" in line:
                last, value = line.split(":", 1)
                last = last.strip().title()
                fields[last] = value.strip()
        if fields:
            found.append(fields)
    return found


def _cut_stanzas(text: str, url: str) -> str:
    def goes(block: str) -> bool:
        parsed = stanzas(block)
        return (
            bool(parsed)
            and parsed[0].get("Enabled", "yes").lower() not in ("no", "false")
            and names_repository(parsed[0].get("Uris", ""), url)
        )

    blocks = re.split(r"(\n[ \t]*\n)", text)
    kept = [block for block in blocks[::2] if not goes(block)]
    return text if len(kept) == len(blocks[::2]) else "\n\n".join(kept)

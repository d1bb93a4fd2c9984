"""apt's source files in both formats (sources.list(5)): which entries name NVIDIA's container repository.

If two entries for one repository have different Signed-By values, apt refuses to work ("Conflicting values set for
option Signed-By"). So gpuready removes every other entry for its repository.
"""

import re

OLD = re.compile(r"nvidia\.github\.io/(libnvidia-container|nvidia-docker|nvidia-container-runtime)(/|\s|$)")
_BLANK = re.compile(r"\n[ \t\r]*\n")
_OFF = ("no", "false", "without", "off", "disable", "0")


def names_repository(text: str, url: str) -> bool:
    """Tell whether an entry names the repository ``url``, for any architecture, or one of NVIDIA's former URLs."""
    wanted = re.escape(url.rstrip("/")).replace(re.escape("/$(ARCH)"), "(/[^/]+)?")
    uris = re.findall(r"https?://[^\s\]]+", text)
    return any(re.fullmatch(wanted, uri.rstrip("/")) or OLD.search(uri + "/") for uri in uris)


def without_repository(path: str, text: str, url: str) -> str | None:
    """Return the file without its active entries for the repository; None if it has none. The rest may be empty."""
    if url.partition("/$(ARCH)")[0].rstrip("/") not in text and "nvidia.github.io/" not in text:  # as in most files
        return None
    cut = _cut_stanzas if path.endswith(".sources") else _cut_lines
    kept = cut(text, url)
    return None if kept == text else kept


def is_bare(text: str) -> bool:
    """Tell whether the text has only blank lines and comments."""
    return all(not line.strip() or line.lstrip().startswith("#") for line in text.split("\n"))


def _cut_lines(text: str, url: str) -> str:
    return "\n".join(
        line
        for line in text.split("\n")
        if not (line.split("#")[0].split()[:1] in (["deb"], ["deb-src"]) and names_repository(line.split("#")[0], url))
    )


def stanzas(text: str) -> list[dict[str, str]]:
    """Parse deb822 stanzas to field -> value. Continuation lines are joined with spaces, comments are dropped."""
    found: list[dict[str, str]] = []
    for block in _BLANK.split(text):
        fields: dict[str, str] = {}
        last = ""
        for line in block.split("\n"):
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
    blocks = _BLANK.split(text)
    kept = [_cut_stanza(block, url) for block in blocks]
    if kept == blocks:
        return text
    return "".join(f"{block.strip(chr(10))}\n\n" for block in kept if block.strip()).removesuffix("\n")


def _cut_stanza(block: str, url: str) -> str:
    """Remove the repository from a stanza, which may name several."""
    fields = next(iter(stanzas(block)), {})
    uris = fields.get("Uris", "").split()
    ours = [uri for uri in uris if names_repository(uri, url)]
    if not ours or fields.get("Enabled", "yes").lower() in _OFF:
        return block
    if len(ours) == len(uris):
        return ""
    for uri in ours:
        block = re.sub(rf"(?<!\s)\s*{re.escape(uri)}(?=\s|$)", "", block, count=1)
    return block

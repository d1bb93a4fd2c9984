"""Files of a repository: what their content must be, and where they lie in a bundle. Pure."""

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from gpuready.base.errors import GpureadyError

#: The hashes that count, by the words of repositories and of Python; the last one is the best.
HASHES = ("sha256", "sha512")
RUN_AGAIN = "run it again, what is complete is kept; if it stays, look at the server and at proxies in between"


class FetchError(GpureadyError):
    """A file cannot be fetched, or is not what its signature or its hash says."""

    kind = "fetch"
    exit_code = 1


@dataclass(frozen=True)
class Content:
    """What a file must be, as something signed or the spec says. ``size`` is -1 if it is unknown."""

    algorithm: str
    digest: str
    size: int = -1

    def check(self, url: str, data: bytes) -> None:
        """Raise FetchError unless it is this content."""
        self.compare(url, hashlib.new(self.algorithm, data).hexdigest())

    def compare(self, url: str, digest: str) -> None:
        if digest != self.digest:
            text = f"{url}: the {self.algorithm} is {digest}, expected {self.digest}; the file was not kept"
            raise FetchError(text, remedy=RUN_AGAIN)


@dataclass(frozen=True)
class Item:
    """A file to fetch. ``header``: a line for its server."""

    url: str
    content: Content
    header: str = ""


def inside(base: str, name: str, safe: str = "/+~") -> str:
    """Return the URL of a file that an index of ``base`` names. Raises FetchError if it is not below ``base``.

    ``safe``: characters that need no encoding.
    """
    parts = [part for part in name.split("/") if part != "."]
    if not name.isascii() or not name.isprintable() or {"", ".."} & set(parts):
        raise FetchError(f"{base}: its index names {name!a}, which is not below this address")
    return f"{base}/{quote('/'.join(parts), safe=safe)}"


def path_of(url: str) -> str:
    """Return the path in a bundle: the host, then the path of the URL."""
    parts = urlsplit(url)
    folders = [unquote(part) for part in parts.path.split("/") if part]
    if any(part in (".", "..") or "/" in part or not part.isprintable() for part in folders):
        raise FetchError(f"{url}: the path is not plain")
    return "/".join([re.sub(r"[^A-Za-z0-9.-]", "_", parts.netloc), *folders])

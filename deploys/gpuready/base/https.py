"""GET and PUT over HTTPS, in a process of its own: it can be ended at any time, and gevent's patches are not in it.

A line for the server, such as ``Authorization: Bearer ...``, comes from the environment, because all users see the
arguments of processes. It goes only to the server that the URL names, and not to one that this server redirects to.
"""

import contextlib
import http.client
import os
import shutil
import sys
import urllib.request
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from gpuready.base.child import command
from gpuready.base.errors import UsageError

#: The variable with the line for the server, by method.
HEADERS = {"GET": "GPUREADY_INVENTORY_HEADER", "PUT": "GPUREADY_OUTPUT_HEADER"}


class Limits(NamedTuple):
    """When a download ends, on the controller and on a node (templates/wheels/fetch.sh.j2).

    ``silent``: seconds without a connection or a byte. ``slowest``: bytes in a second, on average over ``patience``
    seconds. ``attempts``: in a row, that may bring nothing. ``reserve``: MiB of the disk that stay free.
    """

    silent: int = 30
    slowest: int = 1024
    patience: int = 120
    attempts: int = 3
    reserve: int = 64


LIMITS = Limits()


class StatusError(OSError):
    """The server answered with an error."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"the server answered {status} {reason}")
        self.status = status


def get() -> list[str]:
    """Return the command that prints the file at the URL on its stdin. On failure, it exits with 1 and a message."""
    return command(__name__)


def problem(url: str) -> str:
    """Return why gpuready does not accept the URL; empty if it does."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as e:
        return str(e)
    if not host or host.startswith("-"):
        return "no host"
    if parts.username is not None or parts.password is not None:
        return "all users of the machine see a name or a password in a URL"
    return "" if url.isascii() and url.isprintable() and " " not in url else "a space or another invalid character"


def refuse_to_share(method: str, urls: Iterable[str]) -> None:
    """Raise UsageError if the line for the server would go to several servers: it is a secret of one of them."""
    servers = sorted({urlsplit(url).netloc.lower() for url in urls})
    if os.environ.get(HEADERS[method]) and len(servers) > 1:
        raise UsageError(
            f"{HEADERS[method]} would go to several servers: {', '.join(servers)}",
            remedy="name URLs of one server, or unset it",
        )


def exchange(method: str, url: str, data: bytes | None = None, to: BinaryIO | None = None) -> None:
    """Write the body of the answer to ``to``, a part at a time; without it, it is not read. Raises OSError."""
    request = urllib.request.Request(url, data, method=method)
    if line := os.environ.get(HEADERS[method], ""):
        if ":" not in line or not line.isprintable():
            raise OSError(f"{HEADERS[method]} is not a header, such as Authorization: Bearer TOKEN")
        add_header(request, line)
    with answered(request) as answer:
        if to is not None:
            shutil.copyfileobj(answer, to)
            if answer.length:
                raise OSError(f"{answer.length} bytes of the answer are missing")


def add_header(request: urllib.request.Request, line: str) -> None:
    """Add a line for this server alone."""
    name, _, value = line.partition(":")
    request.add_unredirected_header(name.strip(), value.strip())


@contextlib.contextmanager
def answered(request: urllib.request.Request) -> Iterator[http.client.HTTPResponse]:
    """The server's answer. Raises OSError, also while it is read.

    A server with TLS cannot redirect to one without.
    """
    plain = ("HTTPHandler",) if request.type == "http" else ()
    opener = urllib.request.OpenerDirector()
    for kind in ("ProxyHandler", "UnknownHandler", "HTTPSHandler", "HTTPDefaultErrorHandler", "HTTPRedirectHandler",
                 "HTTPErrorProcessor", *plain):  # fmt: skip
        opener.add_handler(getattr(urllib.request, kind)())
    try:
        with opener.open(request, timeout=LIMITS.silent) as answer:
            yield answer
    except HTTPError as e:
        raise StatusError(e.code, e.reason) from None
    except URLError as e:
        raise OSError(str(e.reason)) from None
    except http.client.HTTPException as e:
        raise OSError(f"{type(e).__name__}: {e}") from None
    except ValueError as e:  # such as the URL of a redirection
        raise OSError(f"the server's answer is invalid: {e}") from None


if __name__ == "__main__":
    try:
        exchange("GET", sys.stdin.readline().rstrip("\n"), to=sys.stdout.buffer)
    except OSError as e:
        raise SystemExit(str(e)) from None

"""A web server for wheels that answers Range, cuts its answers, redirects and changes its mind, as a test asks."""

import re
import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

from tests.lab.server import Threads


class Mirror(Threads):
    """``files``: content by path. The lists are used up, one entry an answer: ``errors`` are statuses (0: none).

    ``cuts``: bytes after which an answer ends. ``ranges``: whether it heeds Range. ``redirects``: URLs by path.
    ``asked``: the headers of each request; ``sent``: the bytes of each answer's content. ``look`` is called meanwhile.
    """

    def __init__(self, address: str = "127.0.0.1", context: ssl.SSLContext | None = None) -> None:
        super().__init__((address, 0), _Handler)
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"{'https' if context else 'http'}://{address}:{self.server_address[1]}"
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.errors: list[int] = []
        self.cuts: list[int] = []
        self.ranges = True
        self.length = True
        self.asked: list[dict[str, str]] = []
        self.sent: list[int] = []
        self.look: Callable[[], object] = lambda: None
        self.start()


class _Handler(BaseHTTPRequestHandler):
    server: Mirror
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer as the server is set."""
        self.close_connection = True
        mirror = self.server
        mirror.asked.append(dict(self.headers))
        mirror.look()
        data = mirror.files.get(self.path, b"")
        first = re.fullmatch(r"bytes=([0-9]+)-", self.headers.get("Range", "")) if mirror.ranges else None
        start = int(first[1]) if first else 0
        status = mirror.errors.pop(0) if mirror.errors else 0
        if not status and self.path in mirror.redirects:
            status = 302
        if not status and self.path not in mirror.files:
            status = 404
        if not status and first and start >= len(data):
            status = 416
        self.send_response(status or (206 if first else 200))
        if status == 302:
            self.send_header("Location", mirror.redirects[self.path])
        if status:
            body = b"<html>an error page</html>"
        else:
            body = data[start:]
            if first:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        if mirror.length:
            self.send_header("Content-Length", str(len(body)))
        end = mirror.cuts.pop(0) if mirror.cuts and not status else len(body)
        at = len(mirror.sent)
        mirror.sent.append(end)  # before the answer: a test reads it as soon as that has arrived
        self.end_headers()
        try:
            self.wfile.write(body[:end])
        except OSError:  # whoever asked has seen enough
            mirror.sent[at] = -1

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

"""A web server for one directory on one address: run as a program for the lab's own repository, or inside a test.

It stands alone (no import of the lab), because it is started by its path as a process that outlives the lab's.
"""

import functools
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # apt fetches everything over one connection

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: what a machine fetched shows in its own apt output."""


class Threads(ThreadingHTTPServer):
    """A server whose threads end with the process."""

    daemon_threads = True

    def server_bind(self) -> None:
        """Bind without the reverse look-up of the standard class, which waits for resolvers."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def start(self) -> None:
        """Serve in a thread."""
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """End serving and close the port: from now on connections are refused."""
        self.shutdown()
        self.server_close()


class Server(Threads):
    """Serves a directory."""

    def __init__(self, directory: Path, address: str, port: int = 0) -> None:
        super().__init__((address, port), functools.partial(_Handler, directory=str(directory)))


if __name__ == "__main__":
    Server(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])).serve_forever()

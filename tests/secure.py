"""An HTTPS server for tests that has files, takes files (PUT), and serves git repositories with git's own program."""

import contextlib
import os
import ssl
import subprocess
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.lab.server import Threads


class Secure(Threads):
    """``files``: content by path, also of those that were put. ``asked``: method, path and Authorization.

    ``put_answer``: the body of the answer to a PUT. ``taken``: the length of each body that a client took whole.
    ``redirects``: URLs by path. ``repositories``: their directory, for paths below /git/. ``certificate`` is a file.
    """

    def __init__(self, folder: Path, address: str = "127.0.0.1") -> None:
        super().__init__((address, 0), _Handler)
        key, self.certificate = folder / "key.pem", folder / "cert.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=site", "-addext",
             f"subjectAltName=IP:{address}", "-keyout", key, "-out", self.certificate],
            check=True, capture_output=True,
        )  # fmt: skip
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://{address}:{self.server_address[1]}"
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.repositories = folder / "git"
        self.put_answer = b""
        self.taken: list[int] = []
        self.start()

    @property
    def trust(self) -> dict[str, str]:
        """The variables with which OpenSSL and git trust it."""
        return {"SSL_CERT_FILE": str(self.certificate), "GIT_SSL_CAINFO": str(self.certificate)}


class _Handler(BaseHTTPRequestHandler):
    server: Secure

    def do_GET(self) -> None:
        self._note()
        path = self.path.partition("?")[0]
        if path.startswith("/git/"):
            self._git()
        elif path in self.server.redirects:
            self._answer(302, Location=self.server.redirects[path])
        else:
            self._answer(200 if path in self.server.files else 404, self.server.files.get(path, b""))

    def do_PUT(self) -> None:
        self._note()
        self.server.files[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(201, self.server.put_answer)

    def do_POST(self) -> None:
        self._git()

    def _note(self) -> None:
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization", "")))

    def _git(self) -> None:
        """RFC 3875, as git-http-backend(1) wants it; git sends small requests whole."""
        path, _, query = self.path.removeprefix("/git").partition("?")
        given = {
            "GIT_PROJECT_ROOT": str(self.server.repositories), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command, "PATH": os.environ["PATH"],
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        }  # fmt: skip
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        done = subprocess.run(["git", "http-backend"], input=body, env=given, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self._answer(int(headers.pop("Status", "200").split()[0]), content, **headers)

    def _answer(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(content)
            self.server.taken.append(len(content))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Signer:
    """A key of somebody who signs specs, and a file that allows it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.key, self.allowed = folder / name, folder / f"{name}.allowed"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        self.allowed.write_text(f"{name}@example.com,ops@example.com {self.key.with_suffix('.pub').read_text()}")

    def sign(self, data: bytes, namespace: str = "gpuready") -> bytes:
        """The signature of a file."""
        words = ["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", str(self.key)]
        return subprocess.run(words, input=data, check=True, capture_output=True).stdout

    def beside(self, path: Path, namespace: str = "gpuready") -> None:
        """Write the signature of a file to FILE.sig."""
        path.with_name(f"{path.name}.sig").write_bytes(self.sign(path.read_bytes(), namespace))

    def commit(self, repository: Path, signed: bool = True, **files: str) -> str:
        """Commit these files to a repository, which may be new, and return the commit."""
        env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}

        def git(*words: str) -> str:
            own = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "gpg.format=ssh", "-c",
                   f"user.signingKey={self.key}")  # fmt: skip
            words = ("git", "-C", str(repository), *own, *words)
            return subprocess.run(words, env=env, check=True, capture_output=True, text=True).stdout.strip()

        if not repository.exists():
            repository.mkdir(parents=True)
            git("init", "--quiet", "--initial-branch=main")
        for name, text in files.items():
            (repository / name).write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "--allow-empty", "--message=x", "-S" if signed else "--no-gpg-sign")
        return git("rev-parse", "HEAD")

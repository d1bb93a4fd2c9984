"""An image's configuration from a registry: one on loopback that speaks the distribution API, with tokens."""

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gpuready.base.errors import UsageError
from gpuready.compat import registry
from gpuready.compat.answer import answers
from gpuready.compat.layers import ImageError
from gpuready.cuda.facts import CompatLib, Host
from gpuready.cuda.tables import gpu
from gpuready.verbs.compat.images import is_here, read_image
from tests.command import Exits
from tests.compat.imagefiles import config, layer, oci

NVIDIA = {"CUDA_VERSION": "12.9.1", "NV_CUDA_COMPAT_PACKAGE": "cuda-compat-12-9=575.57.08-1"}
Reply = tuple[int, dict[str, str], bytes]


@dataclass
class Registry:
    """What it has by path, and what it was asked: the path, and whether with a token."""

    host: str = ""
    content: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    challenge: str = 'Bearer realm="http://{host}/token?x=1",service="here",scope="repository:app:pull"'
    answer: Callable[[str], Reply | None] = lambda path: None
    tokens: list[dict[str, list[str]]] = field(default_factory=list)
    pause: float = 0
    slow_headers: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def reply(self, path: str, authorization: str) -> Reply:
        self.asked.append((path, authorization))
        if (own := self.answer(path)) is not None:
            return own
        if path.startswith("/token"):
            self.tokens.append(parse_qs(urlsplit(path).query))
            return 200, {}, b'{"token": "secret"}'
        if path.startswith("/cdn/"):
            return 200, {}, self.content[path.replace("/cdn/", "/v2/app/blobs/")]
        if authorization != "Bearer secret":
            return 401, {"WWW-Authenticate": self.challenge.format(host=self.host)}, b"{}"
        if path not in self.content:
            return 404, {}, b"{}"
        if "/blobs/" in path:  # as Docker Hub and NGC: the blob is on a CDN, which refuses a token
            other = self.host.replace("127.0.0.1", "localhost")
            return 307, {"Location": f"http://{other}/cdn/{path.rpartition('/')[2]}"}, b""
        return 200, {}, self.content[path]

    def holds(self, files: dict[str, Any], tag: str = "1") -> None:
        """The image of an OCI layout, as ``app:TAG``."""
        top = json.loads(files["index.json"])["manifests"][0]["digest"].partition(":")[2]
        self.content[f"/v2/app/manifests/{tag}"] = files[f"blobs/sha256/{top}"]
        for name, data in files.items():
            digest = name.rpartition("/")[2]
            for kind in ("manifests", "blobs"):
                self.content[f"/v2/app/{kind}/sha256:{digest}"] = data


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    found = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, headers, body = found.reply(self.path, self.headers.get("Authorization", ""))
            self.send_response(code)
            length = {} if found.pause else {"Content-Length": str(len(body))}
            for name, value in {**length, **headers}.items():
                self.send_header(name, value)
            if found.slow_headers:
                self.flush_headers()
                self.wfile.write(b"X: ")
            else:
                self.end_headers()
            with contextlib.suppress(ConnectionError):
                for _ in range(1_000 if found.pause else 0):
                    if found.ended.wait(found.pause):
                        return
                    self.wfile.write(b" ")
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.host = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_is_read_where(tmp_path: Any) -> None:
    assert is_here("docker://nvcr.io/nvidia/cuda:12.4.1-base")
    assert is_here(str(tmp_path))
    assert not is_here("nvidia/cuda:12.4.1-base")


def test_an_index_of_platforms(here: Registry) -> None:
    here.holds(oci(NVIDIA, [layer({"etc/x": b""})]))
    found = read_image(f"docker://{here.host}/app:1", None)
    assert found.image is not None
    assert (found.image.cuda, found.image.compat, found.sure) == ((12, 9, 1), (CompatLib((575, 57, 8)),), False)
    assert "NV_CUDA_COMPAT_PACKAGE says that" in found.notes[0]
    (told,) = answers([Host((570, 26), gpu("NVIDIA H100"))], "", {"x": found})
    assert told.word == "FORWARD?"
    assert here.tokens == [{"x": ["1"], "service": ["here"], "scope": ["repository:app:pull"]}]
    with_token = {path.split("/")[1] for path, authorization in here.asked if authorization}
    assert with_token == {"v2"}, "the token went to the CDN"


def test_an_image_for_one_platform_and_by_digest(here: Registry) -> None:
    text = config({"CUDA_VERSION": "13.0.2.006", "_CUDA_COMPAT_PATH": "/usr/local/cuda/compat"})
    manifest = json.dumps({"config": {"digest": f"sha256:{hashlib.sha256(text).hexdigest()}"}, "layers": []}).encode()
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    here.content[f"/v2/app/manifests/{digest}"] = manifest
    here.content[f"/v2/app/blobs/sha256:{hashlib.sha256(text).hexdigest()}"] = text
    found = read_image(f"docker://{here.host}/app:gone@{digest}", None)
    assert found.image is not None
    assert (found.image.cuda, found.image.compat, found.image.own_compat) == (
        (13, 0, 2), (), (CompatLib((580, 95, 5)),)
    )  # fmt: skip


def test_a_name_that_neither_engine_nor_table_has(here: Registry, exits: Exits) -> None:
    here.holds(oci({"CUDA_VERSION": "12.9.1"}, []))
    argv = ("compat", "--driver", "575.57.08", "--gpu", "NVIDIA L4", "--image", f"{here.host}/app:1")
    told = exits(0, *argv).out
    assert told.startswith("NATIVE?  ") and "only the configuration was read from the registry, no layers\n" in told
    argv = (*argv[:-1], f"{here.host}/app:2")
    told = exits(64, *argv).err
    assert f"; not in the table of published images; {here.host} has no such image (HTTP 404)" in told
    assert "fix:     name its CUDA instead of --image: --image-cuda X.Y; or" in told


def broken(**changes: Any) -> Callable[[Registry], None]:
    def change(here: Registry) -> None:
        for name, value in changes.items():
            setattr(here, name, value)

    return change


BIG = b'"' + b"x" * 4_000_000 + b'"'


@pytest.mark.fault("odd-registry")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (broken(challenge='Basic realm="http://{host}/token"'), "requires a login"),
        (broken(challenge='Bearer realm="file:///etc/passwd"'), "requires a login"),
        (broken(challenge='Bearer realm="ftp://127.0.0.1/x"'), "requires a login"),
        (broken(challenge='Bearer realm="http://[x"'), "the realm of its token is no URL"),
        (broken(challenge=""), "requires a login"),
        (broken(answer=lambda path: (200, {}, b"[]") if path.startswith("/token") else None), "requires a login for"),
        (broken(answer=lambda path: (403, {}, b"{}") if path.startswith("/token") else None), "(HTTP 403)"),
        (broken(answer=lambda path: (500, {}, b"")), "HTTP 500"),
        (broken(answer=lambda path: (200, {}, b"{")), "the answer is not valid JSON"),
        (broken(answer=lambda path: (200, {}, b"{}")), "the manifest is incomplete"),
        (broken(answer=lambda path: (200, {}, b"[]")), "the manifest is incomplete"),
        (broken(answer=lambda path: (200, {}, b'{"config": {"digest": "../../x"}}')), "is not a digest"),
        (broken(answer=lambda path: (200, {}, BIG)), "more than 4 MB"),
        (broken(answer=lambda path: (307, {"Location": "ftp://127.0.0.1/x"}, b"")), "has no TLS"),
        (broken(answer=lambda path: (200, {}, b'{"a": 1}') if "/cdn/" in path else None), "has another digest"),
        (broken(answer=lambda path: (200, {}, b'{"a": 1}') if "manifests/sha" in path else None), "another digest"),
    ],
)  # fmt: skip
def test_what_is_refused(change: Callable[[Registry], None], says: str, here: Registry) -> None:
    here.holds(oci(NVIDIA, []))
    change(here)
    with pytest.raises(UsageError) as caught:
        read_image(f"docker://{here.host}/app:1", None)
    assert says in str(caught.value) and "--image-cuda" in caught.value.remedy


@pytest.mark.fault("odd-registry")
@pytest.mark.parametrize(("pause", "headers"), [(60, False), (0.01, False), (0.01, True)])
def test_an_answer_that_never_ends(
    pause: float, headers: bool, here: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is silent, or sends a blank, also one within a header, again and again."""
    monkeypatch.setattr(registry, "_SECONDS", 0.3)
    here.pause, here.slow_headers, here.answer = pause, headers, lambda path: (200, {}, b"{}")
    with pytest.raises(ImageError, match="no whole answer within"):
        registry.registry_config(f"{here.host}/app:1")
    here.ended.set()


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("busybox", ("registry-1.docker.io", "library/busybox", "latest")),
        ("docker.io/pytorch/pytorch:2.8.0", ("registry-1.docker.io", "pytorch/pytorch", "2.8.0")),
        ("team/app:1", ("registry-1.docker.io", "team/app", "1")),
        ("localhost/app", ("localhost", "app", "latest")),
        ("reg.example.com:5000/a/b/c:1", ("reg.example.com:5000", "a/b/c", "1")),
        ("[::1]:5000/app:1", ("[::1]:5000", "app", "1")),
        ("app:1@sha256:" + "a" * 64, ("registry-1.docker.io", "library/app", "sha256:" + "a" * 64)),
    ],
)
def test_references(reference: str, parts: tuple[str, str, str]) -> None:
    assert registry._parts(reference) == parts


@pytest.mark.parametrize("reference", ["", "a b", "http://x/y", "../x", "App", "x:", "x@sha256:1", "h/x/../y"])
def test_what_is_no_reference(reference: str) -> None:
    with pytest.raises(ImageError, match="not a reference"):
        registry._parts(reference)


def test_a_registry_elsewhere_is_asked_with_tls_only() -> None:
    assert {registry._Registry(host, "x")._scheme for host in ("nvcr.io", "10.0.0.1:5000", "127.example.com")} == {
        "https"
    }
    assert registry._Registry("localhost:5000", "x")._scheme == "http"


@pytest.mark.fault("odd-registry")
def test_a_redirect_away_from_tls(here: Registry) -> None:
    request = registry.urllib.request.Request("https://127.0.0.1/v2/app/manifests/1")
    with pytest.raises(ImageError, match="has no TLS"):
        registry._SameScheme().redirect_request(request, None, 307, "", None, f"http://{here.host}/")  # type: ignore[arg-type]

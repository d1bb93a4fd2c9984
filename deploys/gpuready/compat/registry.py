"""Read an image's configuration from its registry: a few kilobytes, and no layer.

This is the part of the distribution API that anyone may use without a login: a token, the manifest, the configuration.
Libraries for it (oras) depend on requests and jsonschema, and choose no platform, so this module uses urllib.

Whatever comes from the registry is hostile: it is bounded in bytes and time, and what has a digest must match it. A
token goes only to the host that asked for it: urllib does not repeat an unredirected header. Sources: OCI Distribution
Specification 1.1; "Token Authentication Specification" of the distribution project; Docker's rules for references.
"""

import hashlib
import io
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException, HTTPMessage
from typing import IO, Any

from gpuready.base.documents import read_json
from gpuready.base.errors import brief
from gpuready.compat.archive import INDEXES, blob, of_index
from gpuready.compat.layers import ImageError

_SECONDS = 20.0
_LARGEST = 4_000_000
_HUB = "registry-1.docker.io"
_MANIFESTS = (
    *INDEXES,
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_REFERENCE = re.compile(
    r"(?:(?P<host>[A-Za-z0-9][\w.-]*(?::[0-9]+)?|\[[0-9a-f:]+\](?::[0-9]+)?)/)?"
    r"(?P<name>[a-z0-9]+(?:(?:[./]|__?|-+)[a-z0-9]+)*)(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_LOOPBACK = re.compile(r"(?:localhost|127(?:\.[0-9]+){3}|\[::1\])(?::[0-9]+)?")
_PARAMETER = re.compile(r'(?<![a-z])([a-z]+)="([^"]*)"')


def registry_config(reference: str) -> Any:
    """Return the configuration of an image for amd64. Raises ImageError.

    A timeout of a socket begins again with each byte, also of headers. So this waits for a thread, which it leaves to
    end with the process.
    """
    found: list[Any] = []

    def ask() -> None:
        try:
            found.append(_config(reference))
        except Exception as e:
            found.append(e)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if not found:
        raise ImageError(f"{_parts(reference)[0]}: {_late()}")
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def _late() -> str:
    return f"no whole answer within {_SECONDS:g} s"


def _config(reference: str) -> Any:
    host, name, version = _parts(reference)
    registry = _Registry(host, name)
    try:
        manifest = registry.json(f"manifests/{version}")
        indexed = "manifests" in manifest
        config = of_index(registry, manifest)[0] if indexed else blob(manifest["config"]["digest"])
        return registry.json(_path(config, "blobs"))
    except (KeyError, TypeError, AttributeError, IndexError) as e:
        raise ImageError(f"{host}: the manifest is incomplete: {type(e).__name__}: {e}") from None


def _parts(reference: str) -> tuple[str, str, str]:
    """Return host, name, and tag or digest. As for Docker, a first part without dot and port is no host."""
    found = _REFERENCE.fullmatch(reference)
    host = (found and found["host"]) or ""
    if found is None:
        raise ImageError("not a reference, such as nvcr.io/nvidia/pytorch:25.08-py3")
    name, version = found["name"], found["digest"] or found["tag"] or "latest"
    if host and host != "localhost" and not re.search(r"[.:]", host):
        host, name = "", f"{host}/{name}"
    if host in ("", "docker.io", "index.docker.io"):
        return _HUB, name if "/" in name else f"library/{name}", version
    return host, name, version


def _path(name: str, kind: str) -> str:
    """Return the path in the registry of what an OCI layout has at ``blobs/sha256/...``."""
    return name.replace("blobs/sha256/", f"{kind}/sha256:")


class _SameScheme(urllib.request.HTTPRedirectHandler):
    """Follow redirects, as those of blobs to a CDN, but never from HTTPS to HTTP."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if urllib.parse.urlsplit(newurl).scheme not in (req.type, "https"):
            raise ImageError(f"{req.host} redirects to {brief(newurl)}, which has no TLS")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Registry:
    """One image in a registry. As :class:`gpuready.compat.archive.Files`, it has manifests by their digests."""

    def __init__(self, host: str, name: str) -> None:
        self._host, self._name = host, name
        self._scheme = "http" if _LOOPBACK.fullmatch(host) else "https"  # as Docker does
        self._token = ""
        self._opener = urllib.request.build_opener(_SameScheme)

    def has(self, name: str) -> bool:
        return name.startswith("blobs/sha256/")

    def open(self, name: str) -> IO[bytes]:
        return io.BytesIO(self._get(_path(name, "manifests")))

    def json(self, path: str) -> Any:
        return self._parsed(self._get(path))

    def _parsed(self, data: bytes) -> Any:
        try:
            return read_json(data, _LARGEST)
        except ValueError as e:
            raise ImageError(f"{self._host}: the answer is not valid JSON: {e}") from None

    def _get(self, path: str) -> bytes:
        """Read a manifest or blob. An answer without a valid token says where to get one."""
        url = f"{self._scheme}://{self._host}/v2/{self._name}/{path}"
        try:
            data = self._read(url)
        except urllib.error.HTTPError as e:
            if e.code != 401:
                raise self._refused(e) from None
            self._token = self._new_token(e.headers.get("WWW-Authenticate", ""))
            try:
                data = self._read(url)
            except urllib.error.HTTPError as again:
                raise self._refused(again) from None
        digest = path.partition("sha256:")[2]
        if digest and hashlib.sha256(data).hexdigest() != digest:
            raise ImageError(f"{self._host}: the content of sha256:{digest[:12]} has another digest")
        return data

    def _new_token(self, challenge: str) -> str:
        given = dict(_PARAMETER.findall(challenge))
        try:
            realm = urllib.parse.urlsplit(given.get("realm", ""))
        except ValueError as e:
            raise ImageError(f"{self._host}: the realm of its token is no URL: {brief(str(e))}") from None
        if (
            not challenge.lower().startswith("bearer ")
            or not realm.netloc
            or realm.scheme not in (self._scheme, "https")
        ):
            raise ImageError(f"{self._host} requires a login")
        asked = {"service": given.get("service", ""), "scope": f"repository:{self._name}:pull"}
        url = f"{given['realm']}{'&' if realm.query else '?'}{urllib.parse.urlencode(asked)}"
        try:
            answer = self._parsed(self._read(url))
        except urllib.error.HTTPError as e:
            raise self._refused(e) from None
        token = (answer.get("token") or answer.get("access_token")) if isinstance(answer, dict) else None
        if not isinstance(token, str) or not token.isprintable():
            raise ImageError(f"{realm.netloc} requires a login for a token")
        return token

    def _read(self, url: str) -> bytes:
        request = urllib.request.Request(url, headers={"Accept": ", ".join(_MANIFESTS)})
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        data = b""
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                while part := answer.read1(1 << 16):
                    data += part
                    if len(data) > _LARGEST:
                        raise ImageError(f"{self._host}: an answer has more than {_LARGEST // 1_000_000} MB")
        except (urllib.error.HTTPError, ImageError):
            raise
        except (OSError, HTTPException, ValueError) as e:
            why = e.reason if isinstance(e, urllib.error.URLError) else e
            late = isinstance(why, TimeoutError)
            text = _late() if late else getattr(why, "strerror", None) or str(why) or type(why).__name__
            raise ImageError(f"{self._host}: {brief(text)}") from None
        return data

    def _refused(self, e: urllib.error.HTTPError) -> ImageError:
        e.close()
        if e.code in (401, 403):
            return ImageError(f"{self._host} requires a login for {self._name} (HTTP {e.code})")
        if e.code == 404:
            return ImageError(f"{self._host} has no such image (HTTP 404)")
        return ImageError(f"{self._host}: HTTP {e.code} {brief(e.reason)}")

"""Container images made by hand: libraries with a real ELF note, layers, docker-save archives, OCI layouts."""

import base64
import gzip
import hashlib
import io
import json
import struct
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import zstandard

from gpuready.base.facts import Answer

NOTE = '{"format":1,"CUDA version":"12.9","driver":[535,550,560,565,570,575],"device":[1,2,7,8,9,10,11,12,13,14]}'
SECTION = b".note.cuda.fwd_compatibility"
PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda data: gzip.compress(data, 1),
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}


def library(note: str | None = NOTE, owner: bytes = b"NVIDIA Corporation", section: bytes = SECTION) -> bytes:
    """A 64-bit little-endian ELF shared object without code, with the note section that compat libraries have."""
    names = b"\0.shstrtab\0" + section + b"\0"
    text = (note or "").encode() + b"\0"
    name = owner + b"\0"
    body = struct.pack("<III", len(name), len(text), 1)
    body += name.ljust(-(-len(name) // 4) * 4, b"\0") + text.ljust(-(-len(text) // 4) * 4, b"\0")
    sections = [(0, 0, 0, 0, 1), (1, 3, 64, len(names), 1)]
    if note is not None:
        sections.append((11, 7, 64 + len(names), len(body), 4))
    else:
        body = b""
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", n, kind, 0, 0, at, size, 0, 0, align, 0) for n, kind, at, size, align in sections
    )
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    at = 64 + len(names) + len(body)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, len(sections), 1)
    return head + names + body + table


File = bytes | str | tuple[str, str] | None
"""What lies at a path: bytes; a link's target as text; ("hardlink", target); None: a directory."""


def layer(files: dict[str, File]) -> bytes:
    """The tar of a layer, or of an image."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, what in files.items():
            info = tarfile.TarInfo(path)
            data = b""
            if what is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(what, str):
                info.type, info.linkname = tarfile.SYMTYPE, what
            elif isinstance(what, tuple):
                info.type, info.linkname = tarfile.LNKTYPE, what[1]
            else:
                data, info.size = what, len(what)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


archive = layer  # the outer tar


def config(env: dict[str, str], machine: str = "amd64", layers: Iterable[bytes] = ()) -> bytes:
    """An image's configuration; an engine takes it where the layers are not packed."""
    values = [f"{name}={value}" for name, value in env.items()]
    stack = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in layers]}
    return json.dumps(
        {"architecture": machine, "os": "linux", "config": {"Env": values}, "rootfs": stack}, indent=1
    ).encode()


def docker_save(env: dict[str, str], layers: Iterable[bytes], tag: str = "app:1") -> dict[str, File]:
    """The files of ``docker save``, as engines before 25 wrote them."""
    layers = list(layers)
    files: dict[str, File] = {"config.json": config(env, layers=layers)}
    names = []
    for number, data in enumerate(layers):
        names.append(f"{number:064x}/layer.tar")
        files[names[-1]] = data
    files["manifest.json"] = json.dumps([{"Config": "config.json", "RepoTags": [tag], "Layers": names}]).encode()
    return files


MEDIA = "application/vnd.oci.image"


def oci(env: dict[str, str], layers: Iterable[bytes], machine: str = "amd64") -> dict[str, File]:
    """The files of an OCI layout with one image behind an index of platforms, and an attestation beside it."""
    files: dict[str, File] = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def blob(data: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        files[f"blobs/sha256/{digest}"] = data
        return {"digest": f"sha256:{digest}", "size": len(data)}

    def manifest(machine: str, env: dict[str, str], layers: Iterable[bytes]) -> dict[str, Any]:
        layers = list(layers)
        described = [{"mediaType": f"{MEDIA}.layer.v1.tar", **blob(data)} for data in layers]
        own = {"mediaType": f"{MEDIA}.config.v1+json", **blob(config(env, machine, layers))}
        text = json.dumps({"schemaVersion": 2, "config": own, "layers": described})
        return {"mediaType": f"{MEDIA}.manifest.v1+json", **blob(text.encode())}

    attested = blob(b'{"config":{},"layers":[]}')
    index = {
        "schemaVersion": 2,
        "manifests": [
            {**manifest(machine, env, layers), "platform": {"architecture": machine, "os": "linux"}},
            {**manifest("arm64", {}, []), "platform": {"architecture": "arm64", "os": "linux"}},
            {
                **attested,
                "platform": {"architecture": "unknown", "os": "unknown"},
                "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
            },
        ],
    }
    nested = {**blob(json.dumps(index).encode()), "mediaType": f"{MEDIA}.index.v1+json"}
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [nested]}).encode()
    return files


def write_directory(at: Path, files: dict[str, File]) -> Path:
    """The files on disk."""
    for name, data in files.items():
        assert isinstance(data, bytes)
        path = at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return at


def pieces(data: bytes, name: str = "libcuda.so.575.57.08") -> list[str]:
    """As templates/compat/images.sh.j2 takes them: ELF header, section table, names, notes."""
    at, count, names = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 60)
    wanted = [(0, 64), (at, 64 * count)]
    for number in range(count):
        kind, offset, size = struct.unpack_from("<4xI16xQQ", data, at + 64 * number)
        if kind == 7 or number == names:
            wanted.append((offset, size))
    told = [f"piece {name} {at} {base64.b64encode(data[at : at + size]).decode()}" for at, size in wanted]
    return [f"file {name}", *told]


def record(env: Mapping[str, str], *lines: str) -> Answer:
    """As a node answers for an image that it has."""
    words = [f"{key}={value}" for key, value in env.items()]
    return Answer(out="\n".join(["id sha256:00", f"env {json.dumps(words)}", *lines, ""]))

"""Wheels made by hand: a real archive with a RECORD that is true, and libraries whose dynamic section says as asked.

What pip installs of them works: a module ``torch`` that knows its version, CUDA and a word of its own, which is what
tells one build from another of the same version.
"""

import base64
import hashlib
import struct
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

MODULE = """import sys
sys.modules.setdefault("torch", sys.modules[__name__])
from torch import version
__version__ = version.__version__
WORD = {word!r}
class cuda:
    class nccl:
        version = staticmethod(lambda: (2, 19, 3))
class _C:
    _cuda_getArchFlags = staticmethod(lambda: "sm_80 sm_90 compute_90")
"""
VERSION = "from typing import Optional\n__version__ = {version!r}\ncuda: Optional[str] = '12.1'\n"


def wheel(
    folder: Path,
    *,
    word: str = "first",
    version: str = "2.2.1",
    tag: str = "py3-none-linux_x86_64",
    name: str = "torch",
    requires: Iterable[str] = (),
    libraries: Mapping[str, bytes] | None = None,
    extra: bytes = b"",
) -> Path:
    """Build NAME-VERSION-TAG.whl in a folder."""
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    files: dict[str, bytes] = {
        f"{name}/__init__.py": MODULE.format(word=word).encode(),
        f"{name}/version.py": VERSION.format(version=version).encode(),
        **{f"{name}/lib/{path}": data for path, data in (libraries or {}).items()},
        f"{info}/METADATA": "\n".join([*metadata, *(f"Requires-Dist: {one}" for one in requires), "", ""]).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
    }
    if extra:
        files[f"{name}/data.bin"] = extra
    rows = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in files.items():
            archive.writestr(zipfile.ZipInfo(member, (2026, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return path


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def shared_object(
    needed: Iterable[str] = (), versions: Iterable[str] = (), soname: str = "", runpath: str = ""
) -> bytes:
    """A 64-bit little-endian ELF library without code: DT_NEEDED, DT_SONAME, DT_RUNPATH and DT_VERNEED as given.

    All symbol versions are asked of one library, as it makes no difference to whoever reads them.
    """
    strings = _Strings()
    dynamic = [(1, strings.at(one)) for one in needed]
    dynamic += [(14, strings.at(soname))] if soname else []
    dynamic += [(29, strings.at(runpath))] if runpath else []
    wanted = list(versions)
    need = struct.pack("<HHIII", 1, len(wanted), strings.at("libc.so.6"), 16, 0) if wanted else b""
    for number, one in enumerate(wanted):
        last = number == len(wanted) - 1
        need += struct.pack("<IHHII", 0, 0, number + 2, strings.at(one), 0 if last else 16)
    body = b"".join(struct.pack("<qQ", tag, value) for tag, value in (*dynamic, (0, 0)))
    # name in .shstrtab, type, linked section, content
    parts = [(".dynstr", 3, 0, strings.data), (".dynamic", 6, 1, body), (".gnu.version_r", 0x6FFFFFFE, 1, need)]
    names = _Strings()
    offsets = [names.at(part[0]) for part in parts] + [names.at(".shstrtab")]
    parts.append((".shstrtab", 3, 0, names.data))
    at, content, table = 64, b"", struct.pack("<IIQQQQIIQQ", *[0] * 10)
    for offset, (_, kind, link, data) in zip(offsets, parts, strict=True):
        size = 16 if kind == 6 else 0
        info = 1 if kind == 0x6FFFFFFE and data else 0
        table += struct.pack("<IIQQQQIIQQ", offset, kind, 0, 0, at, len(data), link, info, 8, size)
        padded = data.ljust(-(-len(data) // 8) * 8, b"\0")
        content += padded
        at += len(padded)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, len(parts) + 1, len(parts))
    return head + content + table


class _Strings:
    def __init__(self) -> None:
        self.data = b"\0"

    def at(self, text: str) -> int:
        """Where it stands from now on."""
        self.data += text.encode() + b"\0"
        return len(self.data) - len(text) - 1

"""The part of a repository that a bundle has: its whole signed index, and only the packages that specs name.

So the signature of the repository's owner stays valid, and nodes verify it as they do at the repository itself.
Sources: the Debian repository format (wiki.debian.org), apt's source for flat repositories; createrepo_c's documents.
"""

import io
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from gpuready.base.documents import DocumentError, read_xml
from gpuready.base.errors import GpureadyError
from gpuready.base.https import StatusError
from gpuready.compat.layers import unpacked
from gpuready.components.repository.apt_sources import stanzas
from gpuready.components.repository.openpgp import Certificate
from gpuready.components.repository.signature import SignatureError, check_detached, signed_text
from gpuready.verbs.bundle.contents import HASHES, Content, FetchError, Item, inside, path_of
from gpuready.verbs.bundle.needs import Platform

if TYPE_CHECKING:
    import xml.etree.ElementTree as ET

#: Reads the file at a URL. Raises StatusError, and FetchError for all else.
Read = Callable[[str], bytes]
_MOST = 64 << 20
_PACKAGES = re.compile(r"Packages(\.[a-z0-9]+)?")
#: The forms of apt's index that are read here, the best first.
_FORMS = ("Packages", "Packages.xz", "Packages.gz", "Packages.zst")


@dataclass(frozen=True)
class Excerpt:
    """What a bundle has of one repository. ``index``: URL -> content, the signed file last."""

    packages: tuple[Item, ...]
    index: Mapping[str, bytes]


def excerpt_of(
    platform: Platform, url: str, wanted: Iterable[tuple[str, str]], key: Certificate, now: float, read: Read
) -> Excerpt:
    """Read the index of the repository, verify it, and find the packages: (name, version). Raises FetchError."""
    try:
        found, index = (_dnf if platform.dnf else _apt)(url, platform.architecture, key, now, read)
    except StatusError as e:
        raise FetchError(f"{url}: its index is not complete: {e}", remedy="is this a repository's address?") from None
    except SignatureError as e:
        raise FetchError(f"{url}: {e}", remedy=e.remedy) from None
    except GpureadyError:
        raise
    except Exception as e:  # parsers and decompressors raise many types of errors, and all mean the same here
        raise FetchError(f"{url}: its index cannot be read: {type(e).__name__}: {e}") from None
    packages = []
    for name, version in wanted:
        if (name, version) not in found:
            there = ", ".join(sorted(has for each, has in found if each == name)[-8:]) or "none"
            raise FetchError(
                f"{url} has no {name} {version}, but {there}", remedy="set toolkit.version to one of these"
            )
        packages.append(found[name, version])
    return Excerpt(tuple(packages), index)


_Found = tuple[dict[tuple[str, str], Item], dict[str, bytes]]


def _apt(url: str, architecture: str, key: Certificate, now: float, read: Read) -> _Found:
    """A flat repository. A server may lack some of the forms that InRelease lists."""
    release = read(f"{url}/InRelease")
    fields = next(iter(stanzas(signed_text(release, key, now).decode())), {})
    until = fields.get("Valid-Until", "")
    if until and parsedate_to_datetime(until).timestamp() <= now:
        why = f"{url}/InRelease was valid until {until}"
        raise FetchError(why, remedy="look at the repository and at proxies in between; or is the clock wrong?")
    index: dict[str, bytes] = {}
    for name, content in _listed(fields).items():
        if _PACKAGES.fullmatch(name):
            try:
                index[name] = read(f"{url}/{name}")
            except StatusError:
                continue
            content.check(f"{url}/{name}", index[name])
    form = next((name for name in _FORMS if name in index), "")
    if not form:
        raise FetchError(f"{url}/InRelease lists none of {', '.join(_FORMS)} that the server has")
    found = {}
    for stanza in stanzas(_text(index[form])):
        if stanza.get("Architecture") in (architecture, "all"):
            for name in HASHES:  # the best that it has; a package without one counts as missing
                if digest := stanza.get(name.title()):
                    content = Content(name, digest, int(stanza["Size"]))
                    found[stanza["Package"], stanza["Version"]] = Item(inside(url, stanza["Filename"]), content)
    return found, {**{f"{url}/{name}": data for name, data in index.items()}, f"{url}/InRelease": release}


def _listed(fields: Mapping[str, str]) -> dict[str, Content]:
    """Return the files that a Release file lists, by the best hash."""
    found: dict[str, Content] = {}
    for algorithm in HASHES:
        words = fields.get(algorithm.title(), "").split()
        for digest, size, name in zip(words[::3], words[1::3], words[2::3], strict=True):
            found[name.removeprefix("./")] = Content(algorithm, digest, int(size))
    return found


def _dnf(url: str, architecture: str, key: Certificate, now: float, read: Read) -> _Found:
    """A repository as createrepo_c makes it. dnf reads no databases."""
    top = f"{url}/repodata/repomd.xml"
    repomd, signature = read(top), read(f"{top}.asc")
    check_detached(repomd, signature, key, now)
    index: dict[str, bytes] = {}
    primary = b""
    for data in read_xml(repomd.decode()).iterfind("{*}data"):
        kind = data.attrib["type"]
        if not kind.endswith("_db"):
            part = _item(url, data)
            index[part.url] = read(part.url)
            part.content.check(part.url, index[part.url])
            primary = index[part.url] if kind == "primary" else primary
    found = {}
    for package in read_xml(_text(primary), _MOST).iterfind("{*}package"):
        name, version = package.find("{*}name"), package.find("{*}version")
        if package.findtext("{*}arch") in (architecture, "noarch") and name is not None and version is not None:
            found[name.text or "", f"{version.attrib['ver']}-{version.attrib['rel']}"] = _item(url, package)
    return found, {**index, f"{top}.asc": signature, top: repomd}


def _item(url: str, element: "ET.Element") -> Item:
    """A file with its place and its hash."""
    location, checksum, size = (element.find(f"{{*}}{name}") for name in ("location", "checksum", "size"))
    if location is None or checksum is None or checksum.attrib["type"] not in HASHES:
        raise DocumentError(f"a file without location or one of the checksums {', '.join(HASHES)}")
    length = -1 if size is None else int(size.text or size.attrib["package"])
    content = Content(checksum.attrib["type"], checksum.text or "", length)
    if base := location.get("{http://www.w3.org/XML/1998/namespace}base"):
        raise FetchError(f"{url}: its index names files at {base!a} (xml:base), which gpuready does not fetch")
    href = inside(url, location.attrib["href"], safe="/+~%")
    path_of(href)  # refuses what is not plain once decoded
    return Item(href, content)


def _text(data: bytes) -> str:
    """Decompress an index."""
    text = unpacked(io.BytesIO(data)).read(_MOST + 1)
    if len(text) > _MOST:
        raise DocumentError(f"more than {_MOST >> 20} MiB")
    return text.decode()

"""The scalar types of the spec, each with a description of what it allows.

These values reach files and command lines on a node. So each type lists the characters that it allows, all harmless
everywhere, and never those that it forbids. Sources: sources.list(5) for the ``$(ARCH)`` placeholder of apt,
dnf.conf(5) for ``$basearch``, ld.so.conf(5), the OCI distribution reference grammar.
"""

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from gpuready.base import period, window


@dataclass(frozen=True)
class Allowed:
    """Annotation: the text after ``allowed:`` in an error, if the type alone is not clear."""

    text: str


@dataclass(frozen=True)
class LocalFile:
    """Annotation: ``prefix`` and a path on this machine. A relative path starts at the inventory's directory."""

    prefix: str = ""

    def path_in(self, value: object) -> str:
        """Return the path in a value; empty for a URL, another kind of reference, or a value that is not text."""
        if not isinstance(value, str) or is_url(value) or not value.startswith(self.prefix):
            return ""
        return value[len(self.prefix) :]


@dataclass(frozen=True)
class SecretValue(LocalFile):
    """Annotation: a reference to a secret. ``what`` and ``allowed`` describe the secret itself, if it ``fits``.

    ``plain``: the value may also be none, such as a proxy without a password.
    """

    prefix: str = "file:"
    plain: bool = False
    what: str = ""
    allowed: str = ""
    fits: Callable[[str], object] = bool


SECRET = re.compile(r"(env:[A-Za-z_][A-Za-z0-9_]*|file:[\w.+/@~ :,=-]+|cmd:[^\x00-\x1f\x7f]+)")
"""A reference to a secret; the secret itself never enters the spec."""

BATCH = re.compile(r"([1-9][0-9]{0,5}|[1-9][0-9]?%|100%)(,([1-9][0-9]{0,5}|[1-9][0-9]?%|100%)){0,9}")
"""A number or a percentage for each batch; the last one also holds for all later batches."""

_HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*)(:[0-9]{1,5})?"
_PLAIN = re.compile(rf"https?://{_HOST}(/[A-Za-z0-9._~%+=,:@/-]*)?")
_DOWNLOAD = re.compile(rf"https?://{_HOST}(/[A-Za-z0-9._~%+=,:@/?&-]*)?")
_PROXY = re.compile(rf"https?://([A-Za-z0-9._~%!$*+-]+(:[A-Za-z0-9._~%!$*+-]*)?@)?{_HOST}/?")
_PATH = re.compile(r"/[\w.+/@ :,=-]*")
_DIRECTORY = re.compile(r"(/[A-Za-z0-9._+@-]+)+/?")


def _repository(placeholder: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not is_plain_url(value.replace(placeholder, "ARCH")):
            raise ValueError("not a plain repository URL")
        return value

    return check


def is_url(value: str) -> bool:
    return "://" in value


def is_plain_url(value: str) -> bool:
    """Tell whether ``value`` is an http(s) URL without credentials and query."""
    return bool(_PLAIN.fullmatch(value))


def _key(value: str) -> str:
    if not (_DOWNLOAD if is_url(value) else _PATH).fullmatch(value):
        raise ValueError("neither a plain URL nor a plain path")
    return value


def _fingerprint(value: str) -> str:
    compact = value.replace(" ", "").upper()
    if not re.fullmatch(r"[0-9A-F]{40}", compact):
        raise ValueError("not a full OpenPGP fingerprint")
    return compact


def is_proxy(value: str, *, credentials: bool = False) -> bool:
    """Tell whether ``value`` is a plain proxy URL. ``credentials``: it may contain a user and password."""
    return bool(_PROXY.fullmatch(value)) and (credentials or "@" not in value)


def _proxy(value: str) -> str:
    if not (SECRET.fullmatch(value) or is_proxy(value)):
        secret = "@" in value
        raise ValueError("credentials in clear text" if secret else "not a plain proxy URL or a reference to a secret")
    return value


def _directory(value: str) -> str:
    parts = value.split("/")
    if not _DIRECTORY.fullmatch(value) or {".", ".."} & set(parts):
        raise ValueError("not a plain absolute directory")
    for name, why in (
        ("stubs", "its libcuda.so is only for linking"),
        ("compat", "its libcuda.so hides the driver's"),
    ):
        if name in parts:
            raise ValueError(f"a {name!r} directory must not be in the linker cache: {why}")
    return value.rstrip("/")


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _no_repeats(value: tuple[str, ...]) -> tuple[str, ...]:
    for entry in value:
        if value.count(entry) > 1:
            raise ValueError(f"duplicate entry {entry}")
    return value


#: What Docker reads as a size (RAMInBytes of docker/go-units), without fractions; upper case is the same.
SHM_SIZE = r"^[1-9][0-9]{0,14}(b|[kmgtp](i?b)?)?$"


def _size(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _duration(value: object) -> object:
    """Turn ``90m`` into seconds."""
    found = period.seconds(value) if isinstance(value, str) else None
    return value if found is None else found


def _window(value: str) -> str:
    window.window(value)
    return value


def _windows(value: object) -> object:
    return (value,) if isinstance(value, str) else _as_tuple(value)


def number_as_text(value: object) -> object:
    """Accept a number where the spec wants text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _date(value: object) -> object:
    """Accept a date as text, too: YAML parses an unquoted date as a date, but JSON has only text."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        return datetime.date.fromisoformat(value)
    return value


def _off(value: object) -> object:
    """YAML 1.1 reads an unquoted ``off`` as false."""
    return "off" if value is False else value


Version = Annotated[
    str, Field(pattern=r"^[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}$"), Allowed("X.Y.Z, such as 1.20.1 (in quotes)")
]
_REPOSITORY = "^https?://[^\\s\"'`;|<>\\\\]+$"
RepositoryUrl = Annotated[
    str,
    AfterValidator(_repository("$(ARCH)")),
    Field(json_schema_extra={"pattern": _REPOSITORY}),
    Allowed("http(s)://host/path without credentials or quotes; $(ARCH) becomes the architecture"),
]
RpmRepositoryUrl = Annotated[
    str,
    AfterValidator(_repository("$basearch")),
    Field(json_schema_extra={"pattern": _REPOSITORY}),
    Allowed("http(s)://host/path without credentials or quotes; $basearch becomes the architecture"),
]
KeySource = Annotated[
    str, AfterValidator(_key), LocalFile(), Allowed("an http(s) URL, or the path of a key file beside the inventory")
]
Fingerprint = Annotated[
    str,
    AfterValidator(_fingerprint),
    Field(json_schema_extra={"pattern": "^ *([0-9A-Fa-f] *){40}$"}),
    Allowed("40 hexadecimal digits, with or without spaces"),
]
Proxy = Annotated[
    str,
    AfterValidator(_proxy),
    SecretValue(
        plain=True,
        what="a plain proxy URL",
        allowed="http(s)://[USER:PASSWORD@]HOST:PORT",
        fits=lambda secret: is_proxy(secret, credentials=True),
    ),
    Allowed("http(s)://host:port, or env:GPUREADY_NAME, file:PATH, cmd:COMMAND"),
]
LdsoDirectory = Annotated[
    str,
    AfterValidator(_directory),
    Field(json_schema_extra={"pattern": f"^{_DIRECTORY.pattern}$"}),
    Allowed("an absolute directory of letters, digits and . _ + @ -, such as /usr/local/nvidia/lib64"),
]
LdsoDirectories = Annotated[
    tuple[LdsoDirectory, ...],
    Field(min_length=1),
    BeforeValidator(_as_tuple),
    AfterValidator(_no_repeats),
    Allowed("a list of at least one absolute directory, each once"),
]
ShmSize = Annotated[
    Annotated[str, Field(pattern=SHM_SIZE)] | Annotated[int, Field(ge=1, lt=1 << 60)],
    BeforeValidator(_size),
    Allowed("a size such as 8g, 8gb or 64m, or a number of bytes"),
]
Duration = Annotated[
    int,
    Field(ge=1, le=30 * 86400),
    BeforeValidator(_duration),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 30 * 86400},
                {"type": "string", "pattern": f"^{period.FORM}$"},
            ]
        }
    ),
    Allowed("a time such as 90m, 12h or 7d, or seconds; at most 30d"),
]
Batch = Annotated[
    Annotated[str, Field(pattern=f"^{BATCH.pattern}$")],
    BeforeValidator(number_as_text),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": f"^{BATCH.pattern}$"}, {"type": "integer", "minimum": 1}]}),
    Allowed("a number from 1, a percentage, or several such as 1,25%"),
]
_WINDOW: dict[str, object] = {"type": "string", "pattern": f"^{window.FORM}$"}
Windows = Annotated[
    tuple[Annotated[str, AfterValidator(_window), Allowed(window.ALLOWED)], ...],
    BeforeValidator(_windows),
    WithJsonSchema({"anyOf": [_WINDOW, {"type": "array", "items": _WINDOW}]}),
    Allowed(f"{window.ALLOWED}; or a list of them"),
]
Image = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$"),
    Allowed("an image reference, such as nvidia/cuda:12.4.1-base-ubuntu22.04"),
]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_*][A-Za-z0-9_.:*?-]{0,252}$"), Allowed("a plain name; * and ? match")]
Unit = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,127}$"), Allowed("a plain name")]
Text = Annotated[
    str,
    Field(pattern=r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$", max_length=500),
    Allowed("one line of text"),
]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"), Allowed("the name of a host variable")]
Path = Annotated[str, Field(pattern=r"^/[A-Za-z0-9._+/@-]*$"), Allowed("an absolute path")]
Date = Annotated[datetime.date, BeforeValidator(_date), Allowed("a date, such as 2026-12-31")]
Off = Annotated[Literal["off"], BeforeValidator(_off), WithJsonSchema({"enum": ["off", False]})]
Labels = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9!][A-Za-z0-9._/!=,() -]{0,252}$"),
    Allowed("a label selector of Kubernetes, such as app!=train or tier in (batch,web)"),
]
Count = Annotated[int, Field(ge=1, le=1 << 20), Allowed("a number from 1")]

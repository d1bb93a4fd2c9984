"""The spec of Python wheels, such as your own PyTorch, for environments on the node: local files, or URLs."""

import re
from collections import Counter
from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import Self

from gpuready.base.fields import SECRET, Allowed, LocalFile, SecretValue, is_plain_url, is_url
from gpuready.base.section import Section

_PATH = re.compile(r"[A-Za-z0-9._+/@ ,=-]+\.whl")
_HEADER = re.compile(r"\A[A-Za-z0-9-]+: ?[\x21-\x7e][\x20-\x7e]*")
_FILE = re.compile(r"[A-Za-z0-9._+-]+\.whl")


def _file(wheel: str) -> str:
    return unquote(wheel.rpartition("/")[2]) if is_url(wheel) else PurePosixPath(wheel).name


def _wheel(value: str) -> str:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    if is_url(value) and "@" in urlsplit(value).netloc:
        raise ValueError("credentials in clear text; use header")
    if not (is_plain_url(value) and _FILE.fullmatch(_file(value)) if is_url(value) else _PATH.fullmatch(value)):
        raise ValueError("neither a plain path nor a plain URL of a wheel")
    try:
        parse_wheel_filename(_file(value))
    except InvalidWheelFilename:
        raise ValueError("not the file name of a wheel: NAME-VERSION-PYTHON-ABI-PLATFORM.whl") from None
    return value


def _environment(value: str) -> str:
    if {".", ".."} & set(value.split("/")):
        raise ValueError("not a plain absolute directory")
    return value.rstrip("/")


def _header(value: str) -> str:
    if not SECRET.fullmatch(value):
        raise ValueError("not a reference to a secret")
    return value


WheelSource = Annotated[
    str,
    AfterValidator(_wheel),
    LocalFile(),
    Field(json_schema_extra={"pattern": "\\.whl$"}),
    Allowed(
        "the path of a wheel on this machine, such as dist/torch-2.2.1-cp310-cp310-linux_x86_64.whl, or its http(s) "
        "URL without credentials and query"
    ),
]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$"), Allowed("64 hexadecimal digits, as sha256sum prints them")]
Header = Annotated[
    str,
    AfterValidator(_header),
    SecretValue(what="a header", allowed="NAME: VALUE, in ASCII", fits=_HEADER.fullmatch),
    Field(json_schema_extra={"pattern": f"^{SECRET.pattern}$"}),
    Allowed("env:GPUREADY_NAME, file:PATH or cmd:COMMAND, of which the value is NAME: VALUE"),
]
Prefix = Annotated[
    str,
    Field(pattern=r"^(/[A-Za-z0-9._+@-]+)+/?$"),
    AfterValidator(_environment),
    Allowed("the absolute directory of a venv or conda environment on the node, such as /opt/train"),
]


class TorchWheel(Section):
    """A wheel, and its environment."""

    wheel: WheelSource
    """The wheel: a file on this machine (relative to the inventory's directory), or a URL that the node fetches."""
    env: Prefix
    """The venv or conda environment on the node; it must exist and have pip."""
    sha256: Sha256 | None = None
    """The SHA-256 of the wheel; required for a URL, and only for a URL."""
    header: Header | None = None
    """A header for the server of an https URL, such as Authorization; only as an env:, file: or cmd: reference."""

    @model_validator(mode="after")
    def _pinned(self) -> Self:
        if is_url(self.wheel) and not self.sha256:
            raise ValueError("a wheel from a URL needs sha256")
        if not is_url(self.wheel) and (self.sha256 or self.header):
            raise ValueError("sha256 and header are only for a URL; gpuready itself hashes a file on this machine")
        if self.header and not self.wheel.startswith("https://"):
            raise ValueError("header would be sent without encryption; the URL must begin with https://")
        return self

    @property
    def file(self) -> str:
        return _file(self.wheel)

    @property
    def name(self) -> str:
        """The distribution's normalised name."""
        from packaging.utils import parse_wheel_filename

        return str(parse_wheel_filename(self.file)[0])


def _once(wheels: tuple[TorchWheel, ...]) -> tuple[TorchWheel, ...]:
    counted = Counter((one.env, one.name) for one in wheels)
    for (env, name), times in counted.items():
        if times > 1:
            raise ValueError(f"{name} is listed {times} times for {env}")
    return wheels


TorchWheels = Annotated[
    tuple[TorchWheel, ...],
    AfterValidator(_once),
    Allowed("a list of {wheel, env}, with sha256 for a URL, each distribution once per env"),
]

"""The spec of Python wheels, such as your own PyTorch: files on this machine, for environments on the node."""

from collections import Counter
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field

from gpuready.base.fields import Allowed, LocalFile
from gpuready.base.section import Section


def _wheel(value: str) -> str:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        parse_wheel_filename(PurePosixPath(value).name)
    except InvalidWheelFilename:
        raise ValueError("not the file name of a wheel: NAME-VERSION-PYTHON-ABI-PLATFORM.whl") from None
    return value


def _environment(value: str) -> str:
    if {".", ".."} & set(value.split("/")):
        raise ValueError("not a plain absolute directory")
    return value.rstrip("/")


WheelPath = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9._+/@ ,=-]+\.whl$"),
    AfterValidator(_wheel),
    LocalFile(),
    Allowed("the path of a wheel on this machine, such as dist/torch-2.2.1-cp310-cp310-linux_x86_64.whl"),
]
Prefix = Annotated[
    str,
    Field(pattern=r"^(/[A-Za-z0-9._+@-]+)+/?$"),
    AfterValidator(_environment),
    Allowed("the absolute directory of a venv or conda environment on the node, such as /opt/train"),
]


class TorchWheel(Section):
    """A wheel, and its environment."""

    wheel: WheelPath
    """The wheel on this machine (relative to the inventory's directory)."""
    env: Prefix
    """The venv or conda environment on the node; it must exist and have pip."""

    @property
    def file(self) -> str:
        return PurePosixPath(self.wheel).name

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
    tuple[TorchWheel, ...], AfterValidator(_once), Allowed("a list of {wheel, env}, each distribution once per env")
]

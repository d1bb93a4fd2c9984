"""The spec of the NVIDIA driver: whether gpuready manages it, and its version."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from gpuready.base.fields import SECRET, Allowed, SecretValue
from gpuready.base.section import Section

DriverVersion = Annotated[
    str,
    Field(pattern=r"^[0-9]{3}\.[0-9]{1,3}(\.[0-9]{1,3})?$"),
    Allowed("a full version such as 580.95.05 (in quotes); a branch alone is not enough"),
]

MokPassword = Annotated[
    str,
    Field(pattern=f"^{SECRET.pattern}$"),
    SecretValue(
        what="a password", allowed="8 to 64 letters and digits", fits=re.compile("[A-Za-z0-9]{8,64}").fullmatch
    ),
    Allowed("env:GPUREADY_NAME, file:PATH or cmd:COMMAND, of which the value is 8 to 64 letters and digits"),
]


class Driver(Section):
    """The NVIDIA kernel driver."""

    policy: Literal["observe", "hold", "install"] = "observe"
    """Only observe it, hold its packages, or install the given version and hold it."""
    version: DriverVersion | None = None
    """The driver's full version; only with policy: install."""
    flavor: Literal["auto", "open", "proprietary"] = "auto"
    """The kind of kernel module: auto depends on the GPU and the driver branch."""
    fabric_manager: Literal["match", "absent"] = "match"
    """On nodes with NVSwitch, install what NVLink needs: the fabric manager, NVLSM or IMEX, as the GPUs require."""
    sign: Literal["mok"] | None = None
    """With Secure Boot: mok permits a module that DKMS builds and signs; a person enrols its key at the console."""
    mok_password: MokPassword | None = None
    """The password for that enrolment, entered once at the console; only as an env:, file: or cmd: reference."""

    @property
    def branch(self) -> int:
        """The version's first number, such as 580; 0 without a version."""
        return int((self.version or "0").partition(".")[0])

    @model_validator(mode="after")
    def _settings_match_the_policy(self) -> Driver:
        if self.policy == "install" and self.version is None:
            at = {"at": "policy", "allowed": "install together with version"}
            raise PydanticCustomError("version", "driver.version is missing", at)
        if (self.sign is None) != (self.mok_password is None):
            missing = "sign" if self.sign is None else "mok_password"
            at = {"at": "sign", "allowed": "sign: mok together with mok_password"}
            raise PydanticCustomError("version", f"driver.{missing} is missing", at)
        settings = {"version": self.version, "flavor": self.flavor, "fabric_manager": self.fabric_manager}
        settings["sign"] = self.sign
        for name, value in settings.items() if self.policy != "install" else ():
            if value not in (None, "auto", "match"):
                at = {"at": name, "allowed": "only with policy: install"}
                raise PydanticCustomError("version", f"no effect with policy: {self.policy}", at)
        return self

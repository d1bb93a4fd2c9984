"""The spec of the NVIDIA driver: who may move it, and to which version."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from gpuready.core.fields import Allowed
from gpuready.core.section import Section

DriverVersion = Annotated[
    str,
    Field(pattern=r"^[0-9]{3}\.[0-9]{1,3}(\.[0-9]{1,3})?$"),
    Allowed("a full version such as 580.95.05 (in quotes); a branch alone is none"),
]


class Driver(Section):
    """The NVIDIA kernel driver."""

    policy: Literal["observe", "hold", "install"] = "observe"
    """Only look at it, hold its packages, or install it at that version and hold it."""
    version: DriverVersion | None = None
    """The driver's full version; with policy: install."""
    flavor: Literal["auto", "open", "proprietary"] = "auto"
    """Which kernel module: auto goes by the GPU and the branch."""
    fabric_manager: Literal["match", "absent"] = "match"
    """Where there is an NVSwitch, install the fabric manager at the driver's version."""

    @model_validator(mode="after")
    def _one_wants_the_other(self) -> Driver:
        if self.policy == "install" and self.version is None:
            at = {"at": "policy", "allowed": "install together with version"}
            raise PydanticCustomError("version", "nothing says which version", at)
        asked = {"version": self.version, "flavor": self.flavor, "fabric_manager": self.fabric_manager}
        for name, value in asked.items() if self.policy != "install" else ():
            if value not in (None, "auto", "match"):
                at = {"at": name, "allowed": "with policy: install"}
                raise PydanticCustomError("version", f"policy: {self.policy} installs nothing", at)
        return self

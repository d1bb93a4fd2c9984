"""The spec of the NVIDIA driver: whether gpuready manages it, and its version."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from gpuready.base.fields import Allowed
from gpuready.base.section import Section

DriverVersion = Annotated[
    str,
    Field(pattern=r"^[0-9]{3}\.[0-9]{1,3}(\.[0-9]{1,3})?$"),
    Allowed("a full version such as 580.95.05 (in quotes); a branch alone is not enough"),
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

    @property
    def branch(self) -> int:
        """The version's first number, such as 580; 0 without a version."""
        return int((self.version or "0").partition(".")[0])

    @model_validator(mode="after")
    def _settings_match_the_policy(self) -> Driver:
        if self.policy == "install" and self.version is None:
            at = {"at": "policy", "allowed": "install together with version"}
            raise PydanticCustomError("version", "driver.version is missing", at)
        settings = {"version": self.version, "flavor": self.flavor, "fabric_manager": self.fabric_manager}
        for name, value in settings.items() if self.policy != "install" else ():
            if value not in (None, "auto", "match"):
                at = {"at": name, "allowed": "only with policy: install"}
                raise PydanticCustomError("version", f"no effect with policy: {self.policy}", at)
        return self

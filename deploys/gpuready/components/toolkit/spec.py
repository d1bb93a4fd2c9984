"""The spec of the NVIDIA Container Toolkit: its version, its repository, and the security floor.

Sources: the toolkit's release notes and repository at nvidia.github.io/libnvidia-container; the fingerprint
is that of the key published there, the floor follows NVIDIA's product security bulletins. Looked up on 2026-11-23.
"""

from __future__ import annotations

import datetime
from typing import Literal

from pydantic import ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from gpuready.base.fields import Date, Fingerprint, KeySource, Proxy, RepositoryUrl, RpmRepositoryUrl, Text, Version
from gpuready.base.section import Section
from gpuready.base.versions import numbers

TOOLKIT_VERSION = "1.20.1"
"""The NVIDIA Container Toolkit that this release of gpuready installs by default (2026-09-16)."""

TOOLKIT_FLOOR = "1.19.1"
"""The oldest version without a known container escape; older ones need ``floor_exception``."""

REACH_REPOSITORY = (
    "let the node reach it (name resolution, firewall), or set in the spec a proxy, toolkit: {repo: {proxy: URL}}, "
    "or a mirror, toolkit: {repo: {url: URL, key: URL}}, for dnf rpm_url; gpuready bundle makes one"
)
"""What to do if a node cannot read the repository."""


class Repository(Section):
    """The repository of the NVIDIA Container Toolkit."""

    url: RepositoryUrl = "https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH)"
    """The flat repository for apt."""
    rpm_url: RpmRepositoryUrl = "https://nvidia.github.io/libnvidia-container/stable/rpm/$basearch"
    """The repository for dnf."""
    key: KeySource = "https://nvidia.github.io/libnvidia-container/gpgkey"
    """The signing key: a URL, or a file on this machine (relative to the inventory's directory)."""
    fingerprint: Fingerprint = "C95B321B61E88C1809C4F759DDCAE044F796ECB0"
    """The full fingerprint of the key; checked before anything is written."""
    proxy: Proxy | None = None
    """The proxy for this repository only; a password only as an env:, file: or cmd: reference."""


class FloorException(Section):
    """Allows a toolkit with known vulnerabilities until a date."""

    reason: Text
    """The reason; every verify shows it."""
    until: Date
    """The last day of the exception."""


class Toolkit(Section):
    """The four packages of the NVIDIA Container Toolkit, at one exact version."""

    version: Version = TOOLKIT_VERSION
    """The upstream version, X.Y.Z."""
    hold: bool = True
    """Hold the packages, so that no upgrade changes them."""
    repo: Repository = Repository.model_construct()
    """The repository of the packages."""
    floor_exception: FloorException | None = None
    """Required for a version below the security floor."""
    mode: Literal["auto", "legacy", "cdi", "jit-cdi", "csv"] | None = None
    """How the runtime gives GPUs to containers (config.toml); unchanged by default."""
    cuda_compat_mode: Literal["ldconfig", "hook", "mount", "disabled"] | None = None
    """How the runtime uses an image's CUDA forward compatibility libraries (config.toml); unchanged by default."""
    hardened: bool = False
    """Unprivileged containers get GPUs by CDI or volume mounts only, not by an environment variable."""

    @model_validator(mode="after")
    def _supported_by_the_version(self) -> Toolkit:
        for at, value, since in (
            ("mode", "jit-cdi" if self.mode == "jit-cdi" else None, "1.18.0"),
            ("cuda_compat_mode", self.cuda_compat_mode, "1.17.7"),
        ):
            if value is not None and numbers(self.version) < numbers(since):
                problem = f"toolkit {self.version} does not support it"
                raise PydanticCustomError("version", problem, {"at": at, "allowed": f"with version {since} or newer"})
        return self

    @model_validator(mode="after")
    def _not_below_the_floor(self, info: ValidationInfo) -> Toolkit:
        if numbers(self.version) >= numbers(TOOLKIT_FLOOR):
            return self
        if self.floor_exception is None:
            allowed = f"{TOOLKIT_FLOOR} or newer, or an older one with floor_exception"
            raise PydanticCustomError("floor", "below the security floor", {"at": "version", "allowed": allowed})
        today = (info.context or {}).get("today") or datetime.date.today()
        if self.floor_exception.until < today:
            at = {"at": "floor_exception.until", "allowed": f"{today} or later"}
            raise PydanticCustomError("floor", "the exception from the security floor has expired", at)
        return self

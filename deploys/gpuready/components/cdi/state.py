"""The toolkit's systemd unit that generates the CDI spec: whether it owns the spec, and where it writes it.

Source: deployments/systemd of the NVIDIA container toolkit, and its changelog. Looked up on 2026-11-23.
"""

import re

from gpuready.base.facts import Unit
from gpuready.base.versions import numbers

UNIT = "nvidia-cdi-refresh.service"
ENVIRONMENT = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"
_TARGET = re.compile(r"^[ \t]*NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=[\"']?(/[^\s\"']+)", re.M)
#: The setting of nvidia-ctk for flags, and the flag that leaves out a field of CDI 0.7.
_FLAGS, _NO_GIDS = "NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS", "no-additional-gids-for-device-nodes"
_REFRESHED, _GENERATED = "/var/run/cdi/nvidia.yaml", "/etc/cdi/nvidia.yaml"


def writer(toolkit: str, unit: Unit, systemd: bool) -> str:
    """Return the unit if it owns the spec with that toolkit version, even if it is not installed yet; else nothing.

    It does not own it if it is disabled or masked: its spec is gone after a reboot, and nothing would write it again.
    ``unit``: as systemd shows UNIT. ``systemd``: whether systemd runs.
    """
    if unit.load != "not-found":
        owns = unit.load == "loaded" and unit.enabled in ("enabled", "static")
    else:
        owns = systemd and numbers(toolkit) >= (1, 18, 0)
    return UNIT if owns else ""


def target(owner: str, settings: str) -> str:
    """Return the path of the CDI spec. ``owner``: the answer of :func:`writer`. ``settings``: text of ENVIRONMENT."""
    if not owner:
        return _GENERATED
    paths = _TARGET.findall(settings)
    return re.sub(r"^/run/", "/var/run/", paths[-1]) if paths else _REFRESHED


def without_gids(settings: str) -> str:
    """Return the unit's settings so that its spec has no additionalGids. Other settings and flags stay."""
    flags = re.findall(rf"^[ \t]*{_FLAGS}=[\"']?([^\s\"']*)", settings, re.M)[-1:]
    if _NO_GIDS in ",".join(flags).split(","):
        return settings
    rest = "" if not settings or settings.endswith("\n") else "\n"
    return f"{settings}{rest}{_FLAGS}={','.join([*filter(None, flags), _NO_GIDS])}\n"

"""Verdicts on DCGM and its service."""

from typing import Any

from gpuready.model.state import Unit
from tests.verdicts import Row, fails, held, package, passes, state

FOR_DCGM: dict[str, Any] = {"driver": {"module_version": "550.54.15"}, "systemd": True, "have": ("apt-get",)}
DCGM = {"datacenter-gpu-manager-4-cuda12": package("1:4.5.2-1")}
DCGM_RUNS = {"nvidia-dcgm.service": Unit(load="loaded", active="active", enabled="enabled")}
WITH_DCGM = {"dcgm": {"install": True}}

VERDICTS: list[Row] = [
    passes("dcgm.config", "as the spec says", state(**FOR_DCGM, packages=DCGM, units=DCGM_RUNS), WITH_DCGM),
    fails("dcgm.config", "3 differences", state(**FOR_DCGM), WITH_DCGM),
]
test_verdict = held(VERDICTS)

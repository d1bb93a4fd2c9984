"""Write Helm values for NVIDIA's GPU Operator beside gpuready: each part has one owner.

A part that gpuready or the node's image owns is turned off in the chart. The chart has no ``toolkit-version``: it
ignores unknown keys without an error (gpu-operator issue 861); the key is ``toolkit.version``.
Sources: NVIDIA GPU Operator v26.7.0 (2026-08-21), "Helm Chart Values Reference" (driver.enabled, toolkit.enabled,
cdi.enabled, operator.runtimeClass, driver.rdma.enabled) and "Container Device Interface Support" (CDI is the default
since v25.10.0). Looked up on 2026-11-24.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gpuready.model.spec import NodeSpec

CHART = "v26.7.0"


def values(spec: NodeSpec) -> dict[str, Any]:
    """Return the values for nodes with this spec."""
    owners = spec.owners
    driver: dict[str, Any] = {"enabled": owners.driver == "operator"}
    if driver["enabled"] and spec.hardware.rdma.ports:
        driver["rdma"] = {"enabled": True}
    return {
        "driver": driver,
        "toolkit": {"enabled": owners.toolkit == "operator"},
        "cdi": {"enabled": spec.runtimes.containerd_settings.cdi is not False},
        "operator": {"runtimeClass": "nvidia"},
    }


def head(made: Mapping[str, Any]) -> Sequence[str]:
    """Return the lines above the values: how to use them, and who owns what."""
    owner = {True: "the GPU Operator", False: "the node (gpuready, or its image)"}
    return [
        f"Made by gpuready render gpu-operator for chart {CHART} (2026-08-21):",
        f"helm upgrade --install gpu-operator nvidia/gpu-operator --version={CHART} -n gpu-operator -f FILE",
        f"Driver: {owner[made['driver']['enabled']]}. Toolkit: {owner[made['toolkit']['enabled']]}.",
        "Another owner: owners.driver or owners.toolkit in the spec. Both must not manage the same part.",
        "The chart creates the RuntimeClass nvidia: leave out the one of gpuready render kubernetes.",
        "A toolkit version of its own would be toolkit.version: the chart ignores toolkit-version (issue 861).",
    ]

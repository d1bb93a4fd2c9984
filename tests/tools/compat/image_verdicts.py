"""The verdicts of the check of images, for test_checks.py: id, status, node, spec, part of the summary."""

from __future__ import annotations

from typing import Any

from gpuready.state.model import Driver, NodeState, Tool
from tests.tools.compat.imagefiles import library, pieces, record

CUDA = {"CUDA_VERSION": "12.9.1"}


def node(gpu: str = "NVIDIA H100", driver: str = "570.211.01", toolkit: str = "1.20.0", **active: Any) -> NodeState:
    smi = f"<gpu id='0'><product_name>{gpu}</product_name></gpu>"
    tools = {"nvidia-ctk": Tool(path="/usr/bin/nvidia-ctk", version_line=toolkit)} if toolkit else {}
    return NodeState(driver=Driver(proc_version=driver, smi=smi), tools=tools, active={"done": True, **active})


READ = {"image.0": record(CUDA, *pieces(library()))}
ONE: dict[str, Any] = {"images": ["app:1"]}

VERDICTS: list[tuple[str, str, NodeState, dict[str, Any], str]] = [
    ("image.compat", "pass", node(**READ), ONE, "app:1: FORWARD"),
    ("image.compat", "pass", node(driver="575.57.08", **READ), ONE, "app:1: NATIVE"),
    ("image.compat", "fail", node("GeForce RTX 4090", **READ), ONE, "app:1 will not run here: the image's libcuda 575"),
    ("image.compat", "fail", node("NVIDIA A100", "470.82.01", **{"image.0": record(CUDA)}), ONE, "CUDA error 35"),
    # nvidia-smi lists it under this driver: that counts, whatever the tables say of Hopper.
    ("image.compat", "fail", node(driver="470.82.01", **{"image.0": record(CUDA)}), ONE, "CUDA error 35"),
    ("image.compat", "unknown", node(), ONE, "app:1: the image was not read"),
    ("image.compat", "unknown", node(**{"image.0": record({})}), ONE, "has neither CUDA_VERSION"),
    ("image.compat", "unknown", node(toolkit="", **READ), ONE, "the NVIDIA Container Toolkit is not"),
    ("image.compat", "skip", node(**READ), {}, "the spec names no images"),
    ("image.compat", "skip", node(driver=""), ONE, "no nvidia module is loaded"),
]

"""Verdicts of the check of images: id, status, node, spec, part of the summary."""

from typing import Any

from gpuready.base.facts import Answer
from gpuready.model.state import Driver, NodeState, Tool
from tests.compat.imagefiles import library, pieces, record
from tests.verdicts import Row, fails, held, is_unknown, passes, skips

CUDA = {"CUDA_VERSION": "12.9.1"}


def node(gpu: str = "NVIDIA H100", driver: str = "570.211.01", toolkit: str = "1.20.0", **active: Any) -> NodeState:
    smi = f"<gpu id='0'><product_name>{gpu}</product_name></gpu>"
    tools = {"nvidia-ctk": Tool(path="/usr/bin/nvidia-ctk", version_line=toolkit)} if toolkit else {}
    return NodeState(driver=Driver(proc_version=driver, smi=smi), tools=tools, active={"done": Answer(), **active})


READ = {"image.0": record(CUDA, *pieces(library()))}
ONE: dict[str, Any] = {"images": ["app:1"]}

VERDICTS: list[Row] = [
    passes("image.compat", "app:1: FORWARD", node(**READ), ONE),
    passes("image.compat", "app:1: NATIVE", node(driver="575.57.08", **READ), ONE),
    fails("image.compat", "app:1 will not run here: the image's libcuda 575", node("GeForce RTX 4090", **READ), ONE),
    fails("image.compat", "CUDA error 35", node("NVIDIA A100", "470.82.01", **{"image.0": record(CUDA)}), ONE),
    # nvidia-smi lists it under this driver: that counts, whatever the tables say of Hopper.
    fails("image.compat", "CUDA error 35", node(driver="470.82.01", **{"image.0": record(CUDA)}), ONE),
    is_unknown("image.compat", "app:1: the image was not read", node(), ONE),
    is_unknown("image.compat", "has neither CUDA_VERSION", node(**{"image.0": record({})}), ONE),
    is_unknown("image.compat", "the NVIDIA Container Toolkit is not", node(toolkit="", **READ), ONE),
    skips("image.compat", "the spec names no images", node(**READ)),
    skips("image.compat", "no nvidia module is loaded", node(driver=""), ONE),
]
test_verdict = held(VERDICTS)

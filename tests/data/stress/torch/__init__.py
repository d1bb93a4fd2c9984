"""A stand-in for PyTorch in a container: it answers each phase of the load with what two H200 printed (RECORDED).

STAND_IN: plain or slow (which document), cpu (built without CUDA), hang (the phase "memory" has no end).
It sees the GPUs only if the container was made with the CDI device nvidia.com/gpu=all, which sets LAB_GPUS.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

KIND = os.environ["STAND_IN"]
RECORDED = Path(__file__).with_name("slow.json" if KIND == "slow" else "plain.json")
ROWS = json.loads(RECORDED.read_text("utf-8"))["gpus"]
BEGUN = ROWS[0]["begin"]

__version__ = BEGUN["torch"]
version = SimpleNamespace(cuda=None if KIND == "cpu" else BEGUN["cuda"])
cuda = SimpleNamespace(
    device_count=lambda: len(ROWS) if os.environ.get("LAB_GPUS") == "all" else 0,
    set_device=lambda index: None,
    get_device_properties=lambda index: SimpleNamespace(uuid=ROWS[index]["uuid"], total_memory=BEGUN["memory"]),
    get_device_capability=lambda index: (9, 0),
    nccl=SimpleNamespace(version=lambda: tuple(map(int, BEGUN["nccl"].split(".")))),
)


def _phase(name):
    def answer(gpu, *given):
        if KIND == "hang" and name == "memory":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                time.sleep(60)
        return {"port": 7} if name == "store" else ROWS[gpu.index][name]

    return answer


for _name in ("products", "memory", "host", "peers", "store", "reduce"):
    setattr(sys.modules["__main__"].Gpu, _name, _phase(_name))

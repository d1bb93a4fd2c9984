"""What tests of several verbs share."""

import json
from pathlib import Path

import pytest


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    """The host h200, whose spec says all that a launch needs, and one with an empty spec."""
    spec = {"hardware": {"gpus": 8}, "verify": {"image": "app:1"}, "runtimes": {"docker": {"shm_size": "16g"}}}
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps({"all": {"hosts": {"h200": {"gpuready": spec}, "other": {"gpuready": {}}}}}))
    return str(path)

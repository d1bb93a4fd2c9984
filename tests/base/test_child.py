"""A process of gpuready's own runs nothing from the current directory."""

import subprocess
from pathlib import Path

import pytest

from gpuready.base.child import command, environment


@pytest.mark.parametrize("module", ["gpuready.base.places", "gpuready.run.process"])
def test_nothing_beside_the_inventory_is_imported(module: str, tmp_path: Path) -> None:
    for name in ("fsspec", "gevent", "runpy", "gpuready", "json"):
        (tmp_path / f"{name}.py").write_text("print('taken from the current directory')\n")
    done = subprocess.run(
        command(module), cwd=tmp_path, env=environment(), input=b"memory://x\n\n", capture_output=True, check=False
    )
    assert b"taken from" not in done.stdout + done.stderr
    assert b"No module named" not in done.stderr, "it finds what this process finds"

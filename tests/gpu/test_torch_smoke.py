"""The script that asks PyTorch: where there is none it says so in one line of JSON, under any Python."""

import json
import subprocess
import sys
from pathlib import Path

from gpuready.base import resources


def asked(tmp_path: Path, torch: str | None) -> dict[str, object]:
    script = tmp_path / "smoke.py"
    script.write_text(resources.document("gpu/torch-smoke.py"))
    if torch is not None:
        (tmp_path / "torch.py").write_text(torch)
    done = subprocess.run([sys.executable, "-B", script], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


def test_without_torch_it_says_why(tmp_path: Path) -> None:
    assert asked(tmp_path, None) == {"torch": {"error": "ModuleNotFoundError: No module named 'torch'"}, "warnings": []}


def test_a_failed_import_is_reported(tmp_path: Path) -> None:
    told = asked(tmp_path, "raise ImportError('libcudart.so.13: cannot open shared object file')")
    assert told["torch"] == {"error": "ImportError: libcudart.so.13: cannot open shared object file"}
    assert asked(tmp_path, "import sys; sys.exit(3)")["torch"] == {"error": "SystemExit: 3"}

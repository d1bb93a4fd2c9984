"""A wheel is enough: only ``gpuready`` inside, templates with it, and it runs from any directory."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", out, ROOT], check=True)
    return next(out.glob("gpuready-*.whl"))


def test_it_holds_one_package_and_every_template(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"gpuready"}
    inside = {name.removeprefix("gpuready/templates/") for name in names if name.startswith("gpuready/templates/")}
    templates = ROOT / "templates"
    assert inside == {path.relative_to(templates).as_posix() for path in templates.rglob("*") if path.is_file()}
    tables = [path.relative_to(ROOT / "deploys").as_posix() for path in ROOT.glob("deploys/gpuready/**/data/*.yaml")]
    assert {"gpuready/cuda/data/gpus.yaml", "gpuready/gpu/data/xids.yaml"} <= set(tables) <= set(names)


def test_it_runs_from_the_root_directory(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import gpuready.state.probe as probe, gpuready\n"
        f"assert gpuready.__file__.startswith({str(tmp_path)!r}), gpuready.__file__\n"
        "assert 'gpuready-probe' in probe.script()\n"
        "sys.argv = ['gpuready', 'explain', 'libcuda.ldcache']\n"
        "from gpuready.cli.main import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "libcuda.so cannot found!" in done.stdout

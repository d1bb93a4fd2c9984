"""What a package index gets: sdist, wheel and metadata; a wheel is enough to run from any directory. The zipapp."""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from tests.secure import Secure

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that is built from it: so the sdist is complete."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "-o", out, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return next(built.glob("gpuready-*.whl"))


def test_the_sdist_holds_sources_and_no_tests(built: Path) -> None:
    with tarfile.open(next(built.glob("gpuready-*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "PKG-INFO", "deploys/converge.py", "docs/gpuready.1"} <= names
    assert {name.split("/")[0] for name in names if "/" in name} == {"deploys", "docs", "inventories", "templates"}


def test_the_metadata_is_complete_and_its_page_has_no_relative_link(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        text = next(files.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
        points = next(files.read(name).decode() for name in names if name.endswith(".dist-info/entry_points.txt"))
        found = message_from_string(text)
    assert "[pytest11]\ngpuready.pytest = gpuready.pytest\n" in f"{points}\n"
    assert found["Name"] == "gpuready" and found["Requires-Python"] == "<3.14,>=3.10" and found["Author"]
    assert found["License-Expression"] == "Apache-2.0" and "nvidia" in found["Keywords"].split(",")
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names) and "gpuready/py.typed" in names
    assert {"ansible", "fleet", "remote", "pytest", "test", "lint", "docs"} == set(found.get_all("Provides-Extra", []))
    kinds = {each.partition(" :: ")[0] for each in found.get_all("Classifier", [])}
    assert {"Development Status", "Operating System", "Programming Language", "Topic", "Typing"} <= kinds
    page = str(found.get_payload())
    assert found["Description-Content-Type"] == "text/markdown" and page.lstrip().startswith("# gpuready")
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert links and [link for link in links if not link.startswith("https://")] == []
    assert "docs/plan.svg" not in page and "[CONTRIBUTING.md]" not in page and "CONTRIBUTING.md" in page


def test_the_zipapp_runs(wheel: Path, tmp_path: Path) -> None:
    """With the arguments of ./dev zipapp, but without the dependencies, which take a minute: it borrows them.

    Its Python has no gpuready, so a process of its own that fetches a spec must find the one in the zipapp.
    """
    text = (ROOT / "dev").read_text("utf-8").replace("\\\n", "")
    found = re.search(r"python -m shiv (.*) +--site-packages ", text)
    assert found is not None
    file = tmp_path / "gpuready.pyz"
    command = [sys.executable, "-m", "shiv", *shlex.split(found[1]), "-o", file, "--no-deps", wheel]
    subprocess.run(command, check=True, capture_output=True)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env["SHIV_ROOT"] = str(tmp_path / "root")
    python = Path(sys.base_prefix, "bin", "python3")
    start = (
        f"import runpy, sys; sys.path.append({sysconfig.get_path('purelib')!r}); "
        "del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    site = Secure(tmp_path)
    site.files["/spec.yaml"] = b"all: {}"
    url = f"{site.url}/spec.yaml#sha256={'0' * 64}"
    for code, arguments, says in (
        (0, ["--version"], "gpuready "),
        (0, ["explain", "libcuda.ldcache"], "libcuda.ldcache: level effective"),
        (5, ["plan", "-i", url, "-i", "h,"], f"error: {site.url}/spec.yaml: the SHA-256 is "),
    ):
        done = subprocess.run(
            [python, "-c", start, file, *arguments],
            cwd="/", env=env | site.trust, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, (done.stdout or done.stderr).startswith(says)) == (code, True), done
    site.stop()
    assert list((tmp_path / "root").glob("gpuready.pyz_*/site-packages/gpuready/cli/app.py"))


def test_it_holds_one_package_and_every_template(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"gpuready"}
    data = [name.partition(".data/")[2] for name in names if ".data/" in name]
    assert data == ["data/share/man/man1/gpuready.1"]
    inside = {name.removeprefix("gpuready/templates/") for name in names if name.startswith("gpuready/templates/")}
    templates = ROOT / "templates"
    assert inside == {path.relative_to(templates).as_posix() for path in templates.rglob("*") if path.is_file()}
    tables = [path.relative_to(ROOT / "deploys").as_posix() for path in ROOT.glob("deploys/gpuready/**/data/*.yaml")]
    assert {"gpuready/cuda/data/gpus.yaml", "gpuready/gpu/data/xids.yaml"} <= set(tables) <= set(names)


def test_it_runs_from_the_root_directory(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import gpuready.model.probe as probe, gpuready\n"
        f"assert gpuready.__file__.startswith({str(tmp_path)!r}), gpuready.__file__\n"
        "assert 'gpuready-probe' in probe.script()\n"
        "sys.argv = ['gpuready', 'explain', 'libcuda.ldcache']\n"
        "from gpuready.cli.main import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "libcuda.so cannot found!" in " ".join(done.stdout.split())

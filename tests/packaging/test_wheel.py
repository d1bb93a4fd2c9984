"""What a release consists of: sdist, wheel, metadata, index, SBOM, zipapp. Each runs, and has the same bytes again."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from email import message_from_string
from functools import partial
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests import release
from tests.lab.server import Server
from tests.secure import Secure

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def epoch() -> Iterator[int]:
    """The time of the commit; not one that a tool takes by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        yield 1_700_000_000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, epoch: int) -> Path:
    """A folder with the sdist and the wheel."""
    out = tmp_path_factory.mktemp("dist")
    release.packages(ROOT, out)
    return out


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with gpuready, as the zipapp gets it, but without the dependencies, which take a minute."""
    folder = tmp_path_factory.mktemp("needs") / "site"
    release.install(folder, "--no-deps", wheel)
    return folder


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


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_second_build_has_the_same_bytes(built: Path, tmp_path: Path) -> None:
    """Elsewhere, of files with other times and modes: those of the unpacked sdist."""
    with tarfile.open(next(built.glob("gpuready-*.tar.gz"))) as sdist:
        sdist.extractall(tmp_path)
    (source,) = tmp_path.iterdir()
    for path in source.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
        os.utime(path, (1, 1))
    release.packages(source, tmp_path / "again")
    assert hashes(tmp_path / "again") == hashes(built) and len(hashes(built)) == 2
    assert {file.date_time for file in zipfile.ZipFile(next(built.glob("*.whl"))).infolist()} == {
        (2023, 11, 14, 22, 13, 20)
    }


def test_a_second_zipapp_has_the_same_bytes(site: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "site"
    shutil.copytree(site, other)
    for path in (p for p in other.rglob("*") if p.is_file()):
        os.utime(path, (1, 1))
    files = [release.zipapp(each, each.parent).read_bytes() for each in (site, other)]
    assert files[0] == files[1]
    assert [path for path in site.rglob("*") if path.name in ("bin", "RECORD", "direct_url.json", "__pycache__")] == []


def test_pip_installs_it_from_the_index(built: Path, tmp_path: Path) -> None:
    """Into an environment that has all dependencies, so that pip asks the index for gpuready alone."""
    out = tmp_path / "out"
    shutil.copytree(built, out)
    release.index(out)
    release.sums(out)
    assert subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=out, check=False).returncode == 0
    assert len((out / "SHA256SUMS").read_text().splitlines()) == 3
    page = (out / "simple/gpuready/index.html").read_text()
    assert page.count('data-requires-python="&lt;3.14,&gt;=3.10"') == 2
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    purelib = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    )
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "gpuready" not in path.name and not path.name.startswith("pip"):
            (Path(purelib.strip()) / path.name).symlink_to(path)
    server = Server(out, "127.0.0.1")
    server.start()
    try:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
        words = ["--python", python, "--isolated", "install", "--no-cache-dir", "--disable-pip-version-check"]
        words += ["--index-url", f"http://127.0.0.1:{server.server_port}/simple/", "gpuready"]
        done = subprocess.run(
            [sys.executable, "-m", "pip", *words], env=own, capture_output=True, text=True, check=False
        )
    finally:
        server.stop()
    assert done.returncode == 0 and "Successfully installed gpuready-" in done.stdout, done.stdout + done.stderr
    said = subprocess.check_output([environment / "bin" / "gpuready", "--version"], env=own, cwd="/", text=True)
    assert said.startswith(f"gpuready {release.__version__}, pyinfra ")


def test_the_sbom_lists_each_pin_and_what_needs_it(site: Path, epoch: int) -> None:
    bom = release.sbom(epoch, site)
    assert bom == release.sbom(epoch, site) and bom["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    own, components = bom["metadata"]["component"], bom["components"]
    assert own["licenses"] == [{"expression": "Apache-2.0"}]
    pins = [Requirement(text) for text, _, _ in release.PINS]
    assert [each["purl"] for each in components] == [
        f"pkg:pypi/{pin.name}@{pin.specifier}".replace("==", "") for pin in pins
    ]
    needs = {each["ref"]: each["dependsOn"] for each in bom["dependencies"]}
    assert len(needs) == len(pins) + 1 and {below for each in needs.values() for below in each} == {*needs} - {
        own["bom-ref"]
    }
    names = {ref: {re.split("[/@]", below)[1] for below in each} for ref, each in needs.items()}
    declared = message_from_string((next(site.glob("*.dist-info")) / "METADATA").read_text())
    wanted = [Requirement(text) for text in declared.get_all("Requires-Dist", []) if "extra ==" not in text]
    assert {each.name.replace("_", "-") for each in wanted} <= names[own["bom-ref"]]
    (cffi,) = (each for ref, each in names.items() if ref.startswith("pkg:pypi/cffi@"))
    assert cffi == {"pycparser"}
    hashed = [each["hashes"] for one in components for each in one["externalReferences"]]
    assert sum(map(len, hashed)) == release.LOCK.count("--hash=sha256:") and all(hashed)
    assert hashed[0][0] == {"alg": "SHA-256", "content": re.findall(r"--hash=sha256:(\w+)", release.LOCK)[0]}
    marked = [each["properties"][0]["value"] for each in components if "properties" in each]
    assert marked == [str(pin.marker) for pin in pins if pin.marker]


def test_a_release_without_a_base_or_podman_has_no_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    """With both: tests/system/test_container.py."""
    made = partial(release.image, ROOT / "Containerfile", tmp_path, epoch)
    assert made() == (False, "no image: give its base, IMAGE@sha256:DIGEST")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert made("base") == (False, "no image: podman is not installed")


def test_one_place_is_left_to_the_owner() -> None:
    """And ./dev release says so until it is filled in."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert text.count(release.OWNER) == int("\n[project.urls]\n" not in text)


def test_the_zipapp_runs(site: Path, tmp_path: Path) -> None:
    """It borrows the dependencies.

    Its Python has no gpuready, so a process of its own that fetches a spec must find the one in the zipapp.
    """
    file = release.zipapp(site, tmp_path)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env["SHIV_ROOT"] = str(tmp_path / "root")
    python = Path(sys.base_prefix, "bin", "python3")
    start = (
        f"import runpy, sys; sys.path.append({sysconfig.get_path('purelib')!r}); "
        "del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    server = Secure(tmp_path)
    server.files["/spec.yaml"] = b"all: {}"
    url = f"{server.url}/spec.yaml#sha256={'0' * 64}"
    for code, arguments, says in (
        (0, ["--version"], "gpuready "),
        (0, ["explain", "libcuda.ldcache"], "libcuda.ldcache: level effective"),
        (5, ["plan", "-i", url, "-i", "h,"], f"error: {server.url}/spec.yaml: the SHA-256 is "),
    ):
        done = subprocess.run(
            [python, "-c", start, file, *arguments],
            cwd="/", env=env | server.trust, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, (done.stdout or done.stderr).startswith(says)) == (code, True), done
    server.stop()
    assert list((tmp_path / "root").glob("gpuready-*.pyz_*/site-packages/gpuready/cli/app.py"))


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

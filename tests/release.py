"""./dev release DIR [BASE]: all files of a release, made from the last commit. The same commit gives the same bytes.

With BASE, podman also makes the image, on this base image: see Containerfile.

The times in them are the commit's (SOURCE_DATE_EPOCH). Hashes are compared with the same Python, platform and tools:
the zipapp holds compiled wheels, and the wheel names the version of hatchling.
"""

import datetime
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import uuid
import zipfile
from collections.abc import Iterator
from email import message_from_string
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpuready import __version__

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.txt").read_text("utf-8")
#: A pin, its hashes, and what needs it, as uv writes them.
PIN = re.compile(r"^([^#\s].*?)((?: \\\n    --hash=\S+)*)(?:\n    # via((?: \S.*|(?:\n    #   .*)+)))?$", re.M)
PINS = PIN.findall(LOCK)
IMAGE = f"gpuready:{__version__}"
#: What only the owner can fill in.
OWNER = "OWNER:"


def main(argv: list[str]) -> int:
    """Write the files, and say what is left to do."""
    if len(argv) not in (1, 2) or argv[0].startswith("-"):
        print("usage: ./dev release DIR [BASE]", file=sys.stderr)
        return 64
    out = Path(argv[0]).resolve()
    if out.exists() and any(out.iterdir()):
        print(f"release: {out} is not empty", file=sys.stderr)
        return 1
    out.mkdir(parents=True, exist_ok=True)
    os.umask(0o022)
    if _git("status", "--porcelain"):
        print("release: uncommitted changes are left out", file=sys.stderr)
    epoch = int(_git("log", "-1", "--format=%ct"))
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch)
    with tempfile.TemporaryDirectory() as folder:
        source, site = Path(folder, "source"), Path(folder, "site")
        _git("clone", "--quiet", ".", str(source))
        packages(source, out)
        lock = source / "requirements.txt"
        install(site, "--require-hashes", "-r", lock)
        install(site, "--no-deps", next(out.glob("*.whl")))
        zipapp(site, out)
        bom = json.dumps(sbom(epoch, site, lock.read_text("utf-8")), indent=1)
        made, text = image(source / "Containerfile", out, epoch, *argv[1:])
        print(f"release: {text}", file=sys.stderr)
    (out / f"gpuready-{__version__}.cdx.json").write_text(f"{bom}\n", "utf-8")
    index(out)
    sums(out)
    if OWNER in (ROOT / "pyproject.toml").read_text("utf-8"):
        print(f'release: pyproject.toml has no [project.urls] yet: see "{OWNER}" there', file=sys.stderr)
    print((out / "SHA256SUMS").read_text("utf-8"), end="")
    return 0 if made or not argv[1:] else 1


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _python(*words: object) -> None:
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"release: {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")


def packages(source: Path, out: Path) -> None:
    """The sdist, and the wheel that is built from it: so the sdist is complete."""
    _python("-m", "build", "--no-isolation", "-o", out, source)


def install(site: Path, *words: object) -> None:
    """Install into a folder, without what depends on the paths of this machine."""
    quiet = ("--quiet", "--disable-pip-version-check", "--no-compile", "--root-user-action=ignore")
    _python("-m", "pip", "install", *quiet, "--target", site, *words)
    shutil.rmtree(site / "bin", ignore_errors=True)
    for name in ("RECORD", "direct_url.json"):
        for path in site.glob(f"*.dist-info/{name}"):
            path.unlink()


def zipapp(site: Path, out: Path) -> Path:
    """One file with gpuready and all that it needs, for this version of Python on this platform."""
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    file = out / f"gpuready-{__version__}-{python}-{sysconfig.get_platform().replace('-', '_')}.pyz"
    words = ("--reproducible", "-p", "/usr/bin/env python3", "-c", "gpuready", "-o", file, "--site-packages", site)
    _python("-m", "shiv", *words)
    return file


def sbom(epoch: int, site: Path, lock: str = LOCK) -> dict[str, Any]:
    """The locked requirements in the form of CycloneDX 1.6; ``site``, where they are installed, has their licences."""
    found = {canonicalize_name(each.metadata["Name"]): each for each in distributions(path=[str(site)])}
    own = {"type": "application", **_component("gpuready", __version__, found)}
    pins = [(Requirement(text), hashes, needed) for text, hashes, needed in PIN.findall(lock)]
    components, needs = [], {own["bom-ref"]: set[str]()}
    for pin, hashes, _ in pins:
        one = {"type": "library", **_component(pin.name, str(pin.specifier).removeprefix("=="), found)}
        one |= {"properties": [{"name": "python:marker", "value": str(pin.marker)}]} if pin.marker else {}
        digests = [{"alg": "SHA-256", "content": each} for each in re.findall(r"--hash=sha256:(\w+)", hashes)]
        one["externalReferences"] = [{"type": "distribution", "url": one["purl"], "hashes": digests}]
        components.append(one)
        needs[one["bom-ref"]] = set()
    for (*_, needed), one in zip(pins, components, strict=True):
        for name in re.findall(r"(?:^ |#   )([\w.-]+)", needed):
            for each in (own, *components):
                if each["name"] == name:
                    needs[each["bom-ref"]].add(one["bom-ref"])
    time = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {
        "metadata": {"timestamp": time, "component": own},
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": sorted(below)} for ref, below in needs.items()],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return {**head, **body}


def _component(name: str, version: str, found: dict[Any, Distribution]) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{version}"
    one: dict[str, Any] = {"bom-ref": purl, "name": name, "version": version, "purl": purl}
    installed = found.get(canonicalize_name(name))
    licences = list(_licences(installed)) if installed is not None and installed.version == version else []
    return one | ({"licenses": licences} if licences else {})


def _licences(installed: Distribution) -> Iterator[dict[str, Any]]:
    """As the package says it: an SPDX expression, or else the names of its classifiers."""
    expression = installed.metadata.get("License-Expression")
    if expression:
        yield {"expression": expression}
        return
    for kind in installed.metadata.get_all("Classifier", []):
        if kind.startswith("License :: "):
            yield {"license": {"name": kind.rpartition(" :: ")[2]}}


def index(out: Path) -> None:
    """A package index (PEP 503) of the sdist and the wheel: any web server can serve the folder."""
    files = sorted([*out.glob("*.whl"), *out.glob("*.tar.gz")])
    with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
        metadata = next(wheel.read(name).decode() for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    python = html.escape(message_from_string(metadata)["Requires-Python"])
    links = "".join(
        f'<a href="../../{file.name}#sha256={_sha256(file)}" data-requires-python="{python}">{file.name}</a><br>\n'
        for file in files
    )
    page = out / "simple" / "gpuready" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f"<!DOCTYPE html>\n<title>gpuready</title>\n{links}", "utf-8")


def image(file: Path, out: Path, epoch: int, base: str = "") -> tuple[bool, str]:
    """Make the image of the wheel. Return whether it was made, and its digest or the reason."""
    if not base:
        return False, "no image: give its base, IMAGE@sha256:DIGEST"
    if shutil.which("podman") is None:
        return False, "no image: podman is not installed"
    done = subprocess.run(build(file, out, epoch, base), capture_output=True, text=True, check=False)
    if done.returncode:
        return False, f"no image: podman build: {done.stderr.strip()}"
    return True, f"the image {IMAGE} is {done.stdout.strip()}"


def build(file: Path, out: Path, epoch: int, base: str, *options: str) -> list[str]:
    """The command that builds the image of the wheel in ``out``, on this base. ``options``: podman's own, too."""
    words = ("--timestamp", str(epoch), "--build-arg", f"BASE={base}", "-t", IMAGE, "-f", str(file), str(out))
    return ["podman", "build", "--quiet", *options, *words]


def sums(out: Path) -> None:
    """The SHA-256 of each file, as ``sha256sum -c`` reads it."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    lines = [f"{_sha256(file)}  {file.relative_to(out)}\n" for file in files]
    (out / "SHA256SUMS").write_text("".join(lines), "utf-8")


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

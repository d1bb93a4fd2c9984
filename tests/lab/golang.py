"""A Go that is new enough to build the toolkit: the host's own, else one that arrives as a Go module.

Debian 12 packages Go 1.19, which is too old to build with but does download and verify modules; and every Go release is
published as one (golang.org/toolchain). So no download site is needed, only Debian packages and the module proxy.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.lab import cache
from tests.lab.host import LabError, architecture, ensure_packages, sh

MINIMUM = (1, 25)  # the `go` line of the toolkit's go.mod
FALLBACK = "1.25.5"


def go() -> Path:
    """The go command to build with."""
    for candidate in _candidates():
        if _version(candidate) >= MINIMUM:
            return candidate
    recipe = {"version": FALLBACK, "architecture": architecture()}
    return cache.cached("go", recipe, _download) / "go/bin/go"


def module(name: str) -> Path:
    """The sources of a module, given as PATH@VERSION."""
    words = (go(), "mod", "download", "-json", name)
    return Path(json.loads(sh(*words, env=environment(), cwd=Path("/")))["Dir"])


def environment() -> dict[str, str]:
    """The environment of a build with that Go."""
    return {"PATH": f"{go().parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


def _candidates() -> Iterator[Path]:
    found = shutil.which("go")
    if found:
        yield Path(found)
    yield from (path for path in [Path("/usr/local/go/bin/go")] if path.exists())
    yield from sorted(Path("/usr/lib").glob("go-*/bin/go"), reverse=True)


def _version(command: Path) -> tuple[int, ...]:
    match = re.search(r"\bgo(\d+)\.(\d+)", sh(command, "version", env={"GOTOOLCHAIN": "local"}))
    if match is None:
        raise LabError(f"{command} does not tell its version")
    return int(match[1]), int(match[2])


def _download(into: Path) -> None:
    ensure_packages(("golang-go", "ca-certificates"))
    old = next(_candidates(), None)
    if old is None:
        raise LabError("the package golang-go brought no go command")
    module = f"golang.org/toolchain@v0.0.1-go{FALLBACK}.linux-{architecture()}"
    with tempfile.TemporaryDirectory(prefix="gpuready-lab-go-") as scratch:
        own = {"GOPATH": scratch, "GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local", "GO111MODULE": "on"}
        answer = json.loads(sh(old, "mod", "download", "-json", module, env=own, cwd=Path(scratch)))
        shutil.copytree(answer["Dir"], into / "go", symlinks=True)
    _complete(into / "go")


def _complete(root: Path) -> None:
    """Undo what a module zip does to a Go tree, as the go command itself does it after such a download."""
    for renamed in (root / "src/_go.mod", root / "src/cmd/_go.mod"):
        if renamed.exists():
            shutil.copyfile(renamed, renamed.with_name("go.mod"))
    for command in (*(root / "bin").iterdir(), *(root / "pkg/tool").glob("*/*")):
        command.chmod(0o755)

"""Things that are built once and kept, each under the hash of its recipe.

A recipe is all that the result depends on: change it and another thing is built beside the old one. A build
happens in a directory of its own and is renamed into place, under a lock of its own, so that a build which
is interrupted leaves nothing that looks finished and two runs at once build once.
"""

import fcntl
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.lab.host import cache_root


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file; it ends with the process at the latest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def entry(kind: str, recipe: Mapping[str, object]) -> Path:
    """Where the thing with this recipe is, or would be."""
    digest = hashlib.sha256(json.dumps([kind, recipe], sort_keys=True).encode()).hexdigest()
    return cache_root() / f"{kind}-{digest[:16]}"


def cached(kind: str, recipe: Mapping[str, object], build: Callable[[Path], None]) -> Path:
    """The directory that `build` fills for this recipe, built now if it is not there yet."""
    final = entry(kind, recipe)
    if final.is_dir():
        return final
    with locked(final.with_name(f"{final.name}.lock")):
        if final.is_dir():
            return final
        for stale in final.parent.glob(f".{final.name}.*"):
            shutil.rmtree(stale)
        print(f"lab: building {kind} ({final.name})", file=sys.stderr, flush=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.parent))
        try:
            scratch.chmod(0o755)
            build(scratch)
            (scratch / "recipe.json").write_text(json.dumps(recipe, indent=1, sort_keys=True), "utf-8")
            scratch.rename(final)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    return final

"""kubectl of Debian, fetched from its archive."""

import functools
import shutil
import tempfile
from pathlib import Path

from tests.lab import cache, deb, host
from tests.lab.image import SUITES

#: The package with kubectl, by the distribution or suite that has it.
_PACKAGES = {"debian12": "kubernetes-client", "debian13": "kubectl", "sid": "kubectl"}


@functools.cache
def kubectl(suite: str = "sid") -> Path:
    """A directory with kubectl: 1.20 of debian12, 1.32 of debian13, 1.36 of sid."""

    def build(into: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="gpuready-lab-apt-") as scratch:
            deb.unpack(SUITES.get(suite, suite), (_PACKAGES[suite],), Path(scratch))
            (into / "bin").mkdir()
            shutil.copy2(Path(scratch, "files/usr/bin/kubectl"), into / "bin/kubectl")

    return cache.cached("kubectl", {"suite": suite, "architecture": host.architecture()}, build) / "bin"

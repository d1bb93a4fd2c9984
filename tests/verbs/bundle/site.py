"""A site with an apt and an rpm repository of the toolkit, signed by a key of its own, and a wheel."""

import gzip
import hashlib
import lzma
from collections.abc import Callable, Iterable
from typing import Any

from gpuready.components.toolkit.state import PACKAGES
from tests.components.repository.gpg import Gpg
from tests.components.wheels.mirror import Mirror

WHEEL = "torch-2.2.1+cu121-py3-none-linux_x86_64.whl"
_XML = "http://linux.duke.edu/metadata"


class Site(Mirror):
    """What it serves is in ``files``; ``publish`` makes it new."""

    def __init__(self, gpg: Gpg) -> None:
        super().__init__()
        self.gpg = gpg
        self.publish()

    def publish(
        self, versions: Iterable[str] = ("1.19.1", "1.20.1"), signer: Gpg | None = None, head: str = ""
    ) -> None:
        """Serve repositories of these versions, and the key. ``head``: more lines of InRelease."""
        gpg = signer or self.gpg
        debs = {f"{name}_{version}-1_amd64.deb": (name, version) for version in versions for name in PACKAGES}
        rpms = {f"{name}-{version}-1.x86_64.rpm": (name, version) for version in versions for name in PACKAGES}
        apt = _apt({f"./{file}": each for file, each in debs.items()})
        release = f"Origin: site\n{head}SHA512:\n" + "".join(
            f" {hashlib.sha512(data).hexdigest()} {len(data)} {name}\n" for name, data in apt.items()
        )
        repodata = _repodata(rpms)
        found = {f"/deb/amd64/{name}": data for name, data in apt.items() if name != "Packages"}
        found |= {f"/deb/amd64/{file}": content(file) for file in debs}
        found |= {f"/rpm/x86_64/{file}": content(file) for file in rpms}
        found |= {f"/rpm/x86_64/{name}": data for name, data in repodata.items()}
        found["/deb/amd64/InRelease"] = gpg("--clearsign", data=release.encode())
        repomd = repodata["repodata/repomd.xml"]
        found["/rpm/x86_64/repodata/repomd.xml.asc"] = gpg("--armor", "--detach-sign", data=repomd)
        found["/gpgkey"] = self.gpg.key.armored
        found["/" + WHEEL.replace("+", "%2B")] = content(WHEEL)
        self.files = found

    def change_index(self, change: Callable[[str], str]) -> None:
        """Serve indices of packages that differ by this, signed again."""
        files, name = self.files, "Packages.xz"
        packed = lzma.compress(change(lzma.decompress(files[f"/deb/amd64/{name}"]).decode()).encode())
        files[f"/deb/amd64/{name}"] = packed
        release = f"SHA512:\n {hashlib.sha512(packed).hexdigest()} {len(packed)} {name}\n"
        files["/deb/amd64/InRelease"] = self.gpg("--clearsign", data=release.encode())
        repomd = _described(
            gzip.compress(change(gzip.decompress(files["/rpm/x86_64/repodata/primary.gz"]).decode()).encode())
        )
        files |= {f"/rpm/x86_64/{place}": data for place, data in repomd.items()}
        files["/rpm/x86_64/repodata/repomd.xml.asc"] = self.gpg(
            "--armor", "--detach-sign", data=repomd["repodata/repomd.xml"]
        )

    def spec(self, **repo: Any) -> dict[str, Any]:
        """The spec that names its repositories and its wheel."""
        places = {"url": f"{self.url}/deb/$(ARCH)", "rpm_url": f"{self.url}/rpm/$basearch", "key": f"{self.url}/gpgkey"}
        wheel = {"wheel": f"{self.url}/{WHEEL.replace('+', '%2B')}", "env": "/opt/train"}
        return {
            "toolkit": {"repo": {**places, "fingerprint": self.gpg.fingerprint, **repo}},
            "torch_wheels": [{**wheel, "sha256": hashlib.sha256(content(WHEEL)).hexdigest()}],
        }


def content(file: str) -> bytes:
    """The content of a package: nobody installs it."""
    return (file * 1000).encode()


def _apt(files: dict[str, tuple[str, str]]) -> dict[str, bytes]:
    text = ""
    for file, (name, version) in files.items():
        data = content(file.removeprefix("./"))
        text += f"Package: {name}\nVersion: {version}-1\nArchitecture: amd64\nFilename: {file}\nSize: {len(data)}\n"
        text += f"SHA256: {hashlib.sha256(data).hexdigest()}\nDescription: one\n more\n\n"
    return {"Packages": text.encode(), "Packages.xz": lzma.compress(text.encode())}


def _repodata(files: dict[str, tuple[str, str]]) -> dict[str, bytes]:
    primary = f'<metadata xmlns="{_XML}/common">'
    for file, (name, version) in files.items():
        data = content(file)
        primary += (
            f'<package type="rpm"><name>{name}</name><arch>x86_64</arch><version epoch="0" ver="{version}" rel="1"/>'
        )
        primary += f'<checksum type="sha256" pkgid="YES">{hashlib.sha256(data).hexdigest()}</checksum>'
        primary += f'<size package="{len(data)}" installed="9"/><location href="{file}"/></package>'
    return _described(gzip.compress(f"{primary}</metadata>".encode(), mtime=0))


def _described(packed: bytes) -> dict[str, bytes]:
    """The index of an rpm repository with the file that describes it."""
    repomd = f'<repomd xmlns="{_XML}/repo">'
    for kind in ("primary", "primary_db"):
        repomd += f'<data type="{kind}"><checksum type="sha512">{hashlib.sha512(packed).hexdigest()}</checksum>'
        repomd += f'<location href="repodata/{kind}.gz"/><size>{len(packed)}</size></data>'
    return {"repodata/repomd.xml": f"{repomd}</repomd>".encode(), "repodata/primary.gz": packed}

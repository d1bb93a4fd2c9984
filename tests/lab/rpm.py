"""The same toolkit as RPM packages: NVIDIA's own .spec packs what :mod:`tests.lab.packages` compiled; the lab signs it.

As with apt, libnvidia-container's two packages are empty and say so. What the machine's root is made of is no RPM, so
one empty package, `rocky-release`, provides what the toolkit's packages need of it.
"""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.lab import cache, host, packages, signing
from tests.lab.host import sh

HOST_PACKAGES = ("rpm", "createrepo-c")
_MACROS = {
    "_unitdir": "/usr/lib/systemd/system",
    "_presetdir": "/usr/lib/systemd/system-preset",
    "_udevrulesdir": "/usr/lib/udev/rules.d",
    # What the systemd-rpm-macros of these distributions come to on a machine that runs.
    "systemd_post()": "systemctl --no-reload preset %* || :",
    "systemd_preun()": "[ $1 != 0 ] || systemctl --no-reload disable --now %* || :",
    "systemd_postun()": "systemctl daemon-reload || :",
    "_build_id_links": "none",
    "debug_package": "%{nil}",
    "__os_install_post": "%{nil}",
    "_use_internal_dependency_generator": "0",
    "__find_requires": "%{nil}",
    "__find_provides": "%{nil}",
    "_binary_payload": "w1.gzdio",
    "release_date": "Thu Jan 01 2026",
    "git_commit": "lab",
}
_EMPTY = """Name: {name}
Version: {version}
Release: {release}
Summary: Empty stand-in for the package of this name
License: Apache-2.0
{fields}
%description
Made for gpuready's test machines: it contains nothing that is real.
%files
"""
#: What the RPM database of a machine has from the start.
_RELEASE = "Provides: system-release = 9.6, redhat-release = 9.6, /bin/sh, /usr/bin/sh\n"


def architecture() -> str:
    """The architecture by rpm's name."""
    return {"amd64": "x86_64", "arm64": "aarch64"}[host.architecture()]


def build(version: str) -> Path:
    """A cached directory with the four .rpm files of that version, signed by the lab's key."""
    compiled = packages.build(version)
    recipe = {"from": compiled.name, "macros": _MACROS, "empty": _EMPTY, "key": signing.fingerprint("lab"), "layout": 1}

    def fill(into: Path) -> None:
        host.ensure_packages(HOST_PACKAGES)
        work = into / "work"
        sources = work / "SOURCES"
        module = packages.source(version)
        shutil.copytree(module / "packaging/rpm", work, copy_function=shutil.copyfile)
        for found in (*module.glob("deployments/systemd/*"), *module.glob("deployments/udev/*")):
            shutil.copyfile(found, sources / found.name)
        for package in compiled.glob("nvidia-container-toolkit*.deb"):
            sh("dpkg-deb", "-x", package, work / "tree")
        for found in (work / "tree").glob("usr/bin/*"):
            shutil.copyfile(found, sources / found.name)
        spec = work / "SPECS/nvidia-container-toolkit.spec"
        spec.write_text(_without_operators(spec.read_text("utf-8")), "utf-8")
        pack(spec, work, {"version": version, "release": "1"})
        _stand_in(work, "libnvidia-container1", version)
        _stand_in(work, "libnvidia-container-tools", version, f"Requires: libnvidia-container1 == {version}-1\n")
        for package in work.glob("RPMS/*/*.rpm"):
            package.rename(into / package.name)
        shutil.rmtree(work)
        sign(sorted(into.glob("*.rpm")), "lab")

    return cache.cached("toolkit-rpm", recipe, fill)


def release() -> Path:
    """A cached directory with the one package that a machine's RPM database has from the start."""

    def fill(into: Path) -> None:
        host.ensure_packages(HOST_PACKAGES)
        _stand_in(into / "work", "rocky-release", "9.6", _RELEASE)
        for package in (into / "work").glob("RPMS/*/*.rpm"):
            package.rename(into / "rocky-release.rpm")
        shutil.rmtree(into / "work")

    return cache.cached("release-rpm", {"empty": _EMPTY, "fields": _RELEASE, "macros": _MACROS}, fill)


def publish(flat: Path, signer: str, versions: Sequence[str]) -> None:
    """Make a directory a repository of these versions, whose metadata that key signs."""
    _publish(flat, signer, [build(version) for version in versions])


def _publish(flat: Path, signer: str, folders: Sequence[Path]) -> None:
    flat.mkdir(parents=True)
    for package in (package for folder in folders for package in folder.glob("*.rpm")):
        shutil.copyfile(package, flat / package.name)
    sh("createrepo_c", "--quiet", "--no-database", flat)
    signing.sign_detached(flat / "repodata/repomd.xml", signer)


def offer(flat: Path, fields: Mapping[str, str], files: Mapping[str, Mapping[str, str]] = {}) -> None:
    """Make a directory a signed repository of stand-ins, with its key: what their .spec says, and their files."""

    def fill(into: Path) -> None:
        host.ensure_packages(HOST_PACKAGES)
        for name, more in fields.items():
            tree = into / "work" / name
            tree.mkdir(parents=True)
            for path, text in files.get(name, {}).items():
                file = tree / path[1:]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, "utf-8")
                file.chmod(0o755 if text.startswith("#!") else 0o644)
            _stand_in(into / "work", name, "1", more, tree, files.get(name, ()))
        for package in (into / "work").glob("RPMS/*/*.rpm"):
            package.rename(into / package.name)
        shutil.rmtree(into / "work")
        sign(sorted(into.glob("*.rpm")), "lab")

    recipe = {"empty": _EMPTY, "macros": _MACROS, "fields": fields, "files": files, "key": signing.fingerprint("lab")}
    _publish(flat, "lab", [cache.cached("offer-rpm", recipe, fill)])
    shutil.copyfile(signing.public("lab"), flat / "gpgkey")


def _without_operators(spec: str) -> str:
    """Leave out the package that NVIDIA does not publish; its commands are not built here."""
    head, _, tail = spec.partition("%package operator-extensions")
    comment = head.rfind("# The OPERATOR EXTENSIONS")
    assert tail, "the .spec has changed"
    lines = head[:comment].splitlines(keepends=True)
    gone = ("nvidia-container-runtime.cdi", "nvidia-container-runtime.legacy", "%{SOURCE4} %{SOURCE5} ")
    kept = (line.replace(gone[2], "") for line in lines if not any(name in line for name in gone[:2]))
    return "".join(kept)


def _stand_in(
    work: Path, name: str, version: str, fields: str = "", tree: Path | None = None, paths: Iterable[str] = ()
) -> None:
    (work / "SPECS").mkdir(parents=True, exist_ok=True)
    spec = work / f"SPECS/{name}.spec"
    text = _EMPTY.format(name=name, version=version, release=1, fields=fields) + "".join(f"{path}\n" for path in paths)
    copy = f"%install\nmkdir -p $RPM_BUILD_ROOT\ncp -a {tree}/. $RPM_BUILD_ROOT\n" if tree else ""
    spec.write_text(text + copy, "utf-8")
    pack(spec, work)


def pack(spec: Path, work: Path, more: Mapping[str, str] = {}) -> None:
    """Build the packages of a .spec below that directory."""
    sh("rpmbuild", "-bb", "--quiet", "--nodeps", *_defined({"_topdir": str(work), **_MACROS, **more}), spec)


def _defined(macros: Mapping[str, str]) -> list[str]:
    return [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]


def sign(files: Sequence[Path], signer: str) -> None:
    """Sign packages with that key."""
    with signing.keyring(signer) as gpg:
        defines = {"__gpg": host.command("gpg", "gnupg"), "_gpg_path": gpg[2], "_gpg_name": signing.fingerprint(signer)}
        sh("rpmsign", *_defined(defines), "--addsign", *files)

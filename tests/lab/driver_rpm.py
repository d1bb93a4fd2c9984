"""Stand-ins for the RPM packages of NVIDIA's driver: their names, epoch, relations and scriptlets, and nothing else.

NVIDIA's own packages are not available here, but the installation is real: dnf resolves these relations, rpm
runs these scriptlets, and modinfo reads the module that `dkms` (a stand-in, too) puts in place, or does not.
Sources: NVIDIA/yum-packaging-nvidia-driver, -dkms-nvidia and -precompiled-kmod (the .spec files, modules of RHEL 8 and
9); for Red Hat's precompiled packages their metadata, as the tests of mizdebsk/radii keep it.
"""

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.lab import cache, host, rpm, signing
from tests.lab.host import sh
from tests.lab.module import module

#: The kernel for which kernel-devel is published.
KERNEL = "5.14.0-570.12.1.el9_6.x86_64"
#: A newer one.
NEWER_KERNEL = "5.14.0-611.5.1.el9_7.x86_64"
#: While it exists on a machine, `dkms` cannot build.
BROKEN = "/etc/lab-dkms-fails"
#: module stream -> the package with the module that only this stream has, beside what all have.
_KMOD = {"open": "kmod-nvidia-open-dkms", "dkms": "kmod-nvidia-latest-dkms"}
_COMMON = tuple(
    f"nvidia-{name}" for name in ("driver-cuda", "driver-cuda-libs", "kmod-common", "persistenced", "fabricmanager")
)

_HEAD = """Name: {name}
Version: {version}
Release: {release}
Epoch: {epoch}
Summary: Stand-in for the package of this name
License: Apache-2.0
Vendor: NVIDIA Corporation
"""
_DESCRIPTION = "Made for gpuready's test machines: it contains nothing that is real."
_DRIVER = f"""%description
{_DESCRIPTION}
%package cuda
Summary: Stand-in
Requires: nvidia-driver-cuda-libs = 3:%{{version}}, nvidia-persistenced = 3:%{{version}}
%description cuda
{_DESCRIPTION}
%package cuda-libs
Summary: Stand-in
%description cuda-libs
{_DESCRIPTION}
%package -n nvidia-persistenced
Summary: Stand-in
%description -n nvidia-persistenced
{_DESCRIPTION}
%package -n nvidia-kmod-common
Summary: Stand-in
Requires: nvidia-kmod = 3:%{{version}}
%description -n nvidia-kmod-common
{_DESCRIPTION}
%package -n nvidia-fabricmanager
Summary: Stand-in
%description -n nvidia-fabricmanager
{_DESCRIPTION}
%files cuda
%files cuda-libs
%files -n nvidia-persistenced
%files -n nvidia-kmod-common
%files -n nvidia-fabricmanager
"""
_KMOD_SPEC = f"""Conflicts: {{other}}
Provides: nvidia-kmod = 3:{{version}}
Requires: nvidia-kmod-common = 3:{{version}}, dkms
%description
{_DESCRIPTION}
%install
mkdir -p $RPM_BUILD_ROOT/usr/src/{{dkms}}-{{version}}
cp $RPM_SOURCE_DIR/{{dkms}}.ko $RPM_BUILD_ROOT/usr/src/{{dkms}}-{{version}}/nvidia.ko
%post
dkms add -m {{dkms}} -v {{version}} -q || :
dkms build -m {{dkms}} -v {{version}} -q || :
dkms install -m {{dkms}} -v {{version}} -q --force || :
%preun
dkms remove -m {{dkms}} -v {{version}} -q --all || :
%files
/usr/src/{{dkms}}-{{version}}
"""
#: A precompiled module is put into place by a scriptlet, as NVIDIA's is linked on the node; its path is a %ghost.
_PRECOMPILED = f"""Provides: kernel-modules = {{kernel}}, nvidia-kmod = 3:{{version}}
Requires: (kernel = {{release}} if kernel)
Supplements: (nvidia-driver = 3:{{version}} and kernel = {{release}})
{{relations}}
%description
{_DESCRIPTION}
%install
mkdir -p $RPM_BUILD_ROOT{{parts}} $RPM_BUILD_ROOT{{folder}}
cp $RPM_SOURCE_DIR/{{source}}.ko $RPM_BUILD_ROOT{{parts}}/nvidia.o
touch $RPM_BUILD_ROOT{{folder}}/nvidia.ko
%post
mkdir -p {{folder}}
cp {{parts}}/nvidia.o {{folder}}/nvidia.ko
depmod {{kernel}}
%postun
depmod {{kernel}}
%files
{{parts}}
%ghost {{folder}}/nvidia.ko
"""
_RELATIONS = {
    "kmod-nvidia": "Conflicts: kmod-nvidia-latest-dkms",
    "kmod-nvidia-open": "Provides: kmod-nvidia-open = 3:{version}\n"
    "Conflicts: kmod-nvidia-latest-dkms, kmod-nvidia-open-dkms, kmod-nvidia\nRecommends: dnf-plugin-nvidia",
}
#: As NVIDIA's plugin for dnf 4, it hides kernels and all of their packages, and says so among what dnf prints.
_PLUGIN = """import dnf


class Nvidia(dnf.Plugin):
    name = "nvidia"

    def sack(self):
        self.base.sack.add_excludes(self.base.sack.query().available().filter(name__glob="kernel*"))
        print("NVIDIA driver: filtering kernels of a test machine")
"""
_META = f"""Requires: nvidia-driver-cuda = 3:{{version}}, {{kmod}} = 3:{{version}}
%description
{_DESCRIPTION}
%files
"""
_FILE = f"""{{fields}}
%description
{_DESCRIPTION}
%install
mkdir -p $RPM_BUILD_ROOT{{folder}}
cp $RPM_SOURCE_DIR/{{name}} $RPM_BUILD_ROOT{{folder}}/{{file}}
chmod 755 $RPM_BUILD_ROOT{{folder}}/{{file}}
%files
{{folder}}/{{file}}
"""
_DKMS = f"""#!/bin/sh
# Stand-in: dkms VERB -m NAME -v VERSION, or autoinstall -k KERNEL. What it would compile lies ready in /usr/src.
# Like the real one, it builds for the running kernel unless another is named. None of the machine's kernels runs.
case $1 in
  add) mkdir -p "/var/lib/dkms/$3/$5" ;;
  autoinstall)
    [ -e "/lib/modules/$3/build/Makefile" ] || exit 21
    for d in /var/lib/dkms/*/*; do
      if [ -e {BROKEN} ]; then
        mkdir -p "$d/build"
        echo "DKMS make.log: Bad return status for module build" >"$d/build/make.log"
        exit 11
      fi
      name=${{d#/var/lib/dkms/}}
      mkdir -p "/lib/modules/$3/extra"
      cp "/usr/src/${{name%/*}}-${{name##*/}}/nvidia.ko" "/lib/modules/$3/extra/nvidia.ko" && depmod "$3"
    done ;;
  remove)
    rm -r "/var/lib/dkms/$3/$5"
    for k in /lib/modules/*; do
      [ "$(modinfo -F version "$k/extra/nvidia.ko" 2>/dev/null)" != "$5" ] || rm "$k/extra/nvidia.ko"
      depmod "${{k##*/}}"
    done ;;
esac
"""
_MODULE = """---
document: modulemd
version: 2
data:
  name: nvidia-driver
  stream: {stream}
  version: 1
  context: lab
  arch: {arch}
  summary: Stand-in
  description: Stand-in
  license:
    module: [MIT]
  profiles:
    default:
      rpms: [nvidia-driver-cuda]
  artifacts:
    rpms:
{artifacts}...
"""


def publish(into: Path, streams: Sequence[str], modular: bool = False, precompiled: Sequence[str] = ()) -> None:
    """Make a folder a signed repository of these streams (``580.95.05-open``: version and kind) and what they need.

    ``precompiled``: packages with a module for one kernel, as in :func:`precompile`; NVIDIA's are part of streams, and
    its plugin lies beside them.
    """
    into.mkdir(parents=True)
    kmods = [file for name in precompiled for file in precompile(name).glob("*.rpm")]
    folders = [build(tuple(streams))] if streams else []
    folders += [plugin()] if streams and kmods else []
    for package in (*kmods, *(file for folder in folders for file in folder.glob("*.rpm"))):
        shutil.copyfile(package, into / package.name)
    sh("createrepo_c", "--quiet", "--no-database", into)
    if modular:
        (into / "modules.yaml").write_text(_modules(streams, kmods), "utf-8")
        sh("modifyrepo_c", "--mdtype=modules", into / "modules.yaml", into / "repodata")
    signing.sign_detached(into / "repodata/repomd.xml", "lab")
    shutil.copyfile(signing.public("lab"), into / "gpgkey")


def plugin() -> Path:
    """A cached directory with dnf-plugin-nvidia, for dnf 4 where Debian has it."""
    recipe = {"texts": [_HEAD, _FILE, _PLUGIN], "key": signing.fingerprint("lab"), "layout": 1}

    def fill(work: Path) -> None:
        folder = "/usr/lib/python3/dist-packages/dnf-plugins"
        _file(work, "dnf-plugin-nvidia", "2.4", "1.el9", _PLUGIN, folder, "nvidia.py")

    return cache.cached("plugin-rpm", recipe, _packed(fill))


def precompile(kmod: str) -> Path:
    """A cached directory with that package: ``kmod-nvidia[-open]-VERSION-KERNEL``, with the kernel's full name."""
    found = re.fullmatch(r"(kmod-nvidia(?:-open)?)-([\d.]+)-((\S+)\.(el\w+)\.x86_64)", kmod)
    assert found, kmod
    name, version, kernel, release, dist = found.groups()
    recipe = {"texts": [_HEAD, _PRECOMPILED, _RELATIONS], "kmod": kmod, "key": signing.fingerprint("lab"), "layout": 1}

    def fill(work: Path) -> None:
        license = "Dual MIT/GPL" if name.endswith("open") else "NVIDIA"
        (work / "SOURCES/precompiled.ko").write_bytes(module(version=version, license=license))
        text = _PRECOMPILED.format(
            version=version,
            kernel=kernel,
            release=f"{release}.{dist}",
            relations=_RELATIONS[name].format(version=version),
            source="precompiled",
            parts=f"/usr/lib64/nvidia/{version}/{release}",
            folder=f"/usr/lib/modules/{kernel}/extra/drivers/video/nvidia",
        )
        _spec(work, f"{name}-{version}-{release}", version, text, f"3.{dist}")

    return cache.cached("kmod-rpm", recipe, _packed(fill))


def build(streams: tuple[str, ...]) -> Path:
    """A cached directory with the packages of these streams, signed by the lab's key."""
    texts = [_HEAD, _DRIVER, _KMOD_SPEC, _META, _FILE, _DKMS, KERNEL]
    recipe = {"texts": texts, "streams": streams, "key": signing.fingerprint("lab"), "layout": 1}

    def fill(work: Path) -> None:
        _file(work, "dkms", "3.2.1", "1.el9", _DKMS, "/usr/sbin", "dkms")
        version, release = KERNEL.removesuffix(".x86_64").split("-")
        provides = f"Provides: kernel-devel-uname-r = {KERNEL}"
        _file(work, "kernel-devel", version, release, "all:\n", f"/usr/src/kernels/{KERNEL}", "Makefile", provides)
        for number in dict.fromkeys(each.split("-")[0] for each in streams):
            _spec(work, "nvidia-driver", number, _DRIVER)
        for number, kind in (each.split("-") for each in streams):
            dkms, meta = ("nvidia-open", "nvidia-open") if kind == "open" else ("nvidia", "cuda-drivers")
            license = "Dual MIT/GPL" if kind == "open" else "NVIDIA"
            (work / f"SOURCES/{dkms}.ko").write_bytes(module(version=number, license=license))
            other = _KMOD["dkms" if kind == "open" else "open"]
            _spec(work, _KMOD[kind], number, _KMOD_SPEC.format(version=number, other=other, dkms=dkms))
            _spec(work, meta, number, _META.format(version=number, kmod=_KMOD[kind]))

    return cache.cached("driver-rpm", recipe, _packed(fill))


def _packed(fill: Callable[[Path], None]) -> Callable[[Path], None]:
    """What fills a cached directory with the signed packages that `fill` builds in a folder for rpmbuild."""

    def packed(into: Path) -> None:
        host.ensure_packages(rpm.HOST_PACKAGES)
        work = into / "work"
        (work / "SOURCES").mkdir(parents=True)
        fill(work)
        for package in work.glob("RPMS/*/*.rpm"):
            package.rename(into / package.name)
        shutil.rmtree(work)
        rpm.sign(sorted(into.glob("*.rpm")), "lab")

    return packed


def _file(
    work: Path, name: str, version: str, release: str, text: str, folder: str, file: str, fields: str = ""
) -> None:
    """A package with one file."""
    (work / "SOURCES" / name).write_text(text, "utf-8")
    _spec(work, name, version, _FILE.format(name=name, folder=folder, file=file, fields=fields), release, epoch=0)


def _spec(work: Path, name: str, version: str, text: str, release: str = "1.el9", epoch: int = 3) -> None:
    (work / "SPECS").mkdir(exist_ok=True)
    spec = work / f"SPECS/{name}.spec"
    spec.write_text(_HEAD.format(name=name, version=version, release=release, epoch=epoch) + text, "utf-8")
    rpm.pack(spec, work)


def _modules(streams: Sequence[str], kmods: Sequence[Path]) -> str:
    """The module metadata of these streams, which NVIDIA's repository names after branch and kind: 580-open.

    The stream of precompiled modules has the branch alone for its name.
    """
    artifacts: dict[str, list[str]] = {}
    for version, kind in (each.split("-") for each in streams):
        names = (*_COMMON, _KMOD[kind], "nvidia-open" if kind == "open" else "cuda-drivers")
        rows = [f"      - {name}-3:{version}-1.el9.{rpm.architecture()}\n" for name in names]
        artifacts.setdefault(f"{version.split('.')[0]}-{kind}", []).extend(rows)
    for file in kmods:
        name, version, release = file.name.removesuffix(".rpm").rsplit("-", 2)
        rows = [f"      - {each}-3:{version}-1.el9.{rpm.architecture()}\n" for each in _COMMON]
        artifacts.setdefault(version.split(".")[0], []).extend([*rows, f"      - {name}-3:{version}-{release}\n"])
    documents = (
        _MODULE.format(stream=stream, arch=rpm.architecture(), artifacts="".join(rows))
        for stream, rows in artifacts.items()
    )
    return "".join(documents)

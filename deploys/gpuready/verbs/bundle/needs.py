"""What a host fetches for its spec, and what it still gets from elsewhere. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from gpuready.components.toolkit.spec import Repository
from gpuready.components.wheels.spec import TorchWheel
from gpuready.contract import owners
from gpuready.contract.package_manager import manager, refuse_to_install
from gpuready.model.images import named
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.node import NODE
from gpuready.verbs.bundle.contents import path_of
from gpuready.verbs.bundle.part import BundledFile

#: Machine, as uname -m prints it -> the architecture of Debian.
_DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Platform:
    """The package manager of a node, and its own word for the architecture."""

    dnf: bool
    architecture: str

    def __str__(self) -> str:
        return f"{'dnf' if self.dnf else 'apt'}-{self.architecture}"

    def url(self, repo: Repository) -> str:
        """The repository, as the node's package manager addresses it."""
        variable, url = ("$basearch", repo.rpm_url) if self.dnf else ("$(ARCH)", repo.url)
        return url.replace(variable, self.architecture).rstrip("/")


PLATFORMS = {
    str(platform): platform
    for machine, debian in _DEBIAN.items()
    for platform in (Platform(False, debian), Platform(True, machine))
}


@dataclass(frozen=True)
class Needs:
    """What one host fetches. ``platforms``: those that it may have; empty: it needs no packages."""

    spec: NodeSpec
    platforms: tuple[Platform, ...]

    @property
    def wheels(self) -> tuple[TorchWheel, ...]:
        """Those of the bundle. If one has a URL, local ones go along: ``bundle.yaml`` replaces the whole list."""
        wheels = self.spec.torch_wheels
        return wheels if any(wheel.sha256 for wheel in wheels) else ()

    def settings(self, base: str, key: str, local: Mapping[str, BundledFile]) -> dict[str, object]:
        """What its spec says of the bundle at the URL ``base``.

        ``key`` is the key's path in the bundle, and ``local`` has local wheels by their path on this machine.
        """
        repo, found = self.spec.toolkit.repo, dict[str, object]()
        if self.platforms:
            said: dict[str, object] = {"key": f"{base}/{key}"} | ({"proxy": None} if repo.proxy else {})
            for platform in self.platforms:
                name = "rpm_url" if platform.dnf else "url"
                said[name] = f"{base}/{quote(path_of(getattr(repo, name)), safe='/$()+~')}"
            found["toolkit"] = {"repo": said}
        if self.wheels:
            places = [
                (path_of(wheel.wheel), wheel.sha256)
                if wheel.sha256
                else (local[wheel.wheel].path, local[wheel.wheel].sha256)
                for wheel in self.wheels
            ]
            found["torch_wheels"] = [
                {"wheel": f"{base}/{quote(place)}", "env": wheel.env, "sha256": sha256}
                for wheel, (place, sha256) in zip(self.wheels, places, strict=True)
            ]
        return found


def platform_of(spec: NodeSpec, state: NodeState) -> tuple[Platform, ...]:
    """Return the platform of a node on which gpuready installs the toolkit. Raises NotComparable."""
    if owners.observed("toolkit", spec, state):
        return ()
    refuse_to_install(state)
    dnf = bool(manager(state).dnf)
    return (Platform(dnf, state.machine if dnf else _DEBIAN.get(state.machine, state.machine)),)


def left_out(spec: NodeSpec) -> str:
    """Return what a bundle does not have of the spec, as a note; empty if it has all."""
    asked = [name for component in NODE if (name := component.installs(spec))]
    images = sorted({image.ref for image in named(spec.images)} | ({spec.verify.image} if spec.verify.image else set()))
    parts = [f"packages from the node's own sources ({', '.join(asked)})"] if asked else []
    parts += [f"images ({', '.join(images)})"] if images else []
    return f"not in the bundle: {' and '.join(parts)}" if parts else ""

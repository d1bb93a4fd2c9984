"""Docker itself, if it is missing and the spec asks for it: docker.io, or with dnf what the repositories have.

An existing engine is never replaced. Docker's own packages and those of the distribution exclude each other
(containerd.io conflicts with containerd and runc). So if a node with apt has Docker's packages or repository, nothing
is installed. With dnf, it is the first that a repository has of moby-engine (Fedora), docker (Amazon Linux) and
docker-ce (Docker's own, because RHEL has none). The installation runs ``systemctl daemon-reload``, so it is class
*recreate*. ``remove`` purges Docker only if no container and no volume is left.
Sources: debian/control and postinst of docker.io; Docker's documentation, "Install on Debian".
"""

import re

from gpuready.base.facts import KEPT
from gpuready.base.step import Script, Step, Steps
from gpuready.contract import ignored_containers, need
from gpuready.contract.component import Applies, Change, Component, Disruption, NotComparable, Values
from gpuready.contract.package_manager import manager, refuse_to_install
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown

#: The packages that were installed with it, one per line (templates/docker_package/install.sh.j2).
CAME = f"{KEPT}/engine.installed"
_KEY, _INSTALLED = "engine.docker", "installed"
_DOCKERS = ("docker-ce", "docker-ee", "containerd.io", "docker-engine")
_SOURCE = re.compile(r"^[ \t]*[^# \t\n].*download\.docker\.com", re.M)


class DockerPackage(Component):
    """Docker, installed on request."""

    name = "engine"
    owned_as = "runtime"
    renews = True

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if spec.runtimes.installs_docker:
            return Applies(True, "the spec has Docker installed")
        return Applies(False, "no engine is to be installed (runtimes.docker.install)")

    def installs(self, spec: NodeSpec) -> str:
        return "Docker" if spec.runtimes.installs_docker else ""

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        if self.actual(spec, state)[_KEY] != _INSTALLED:
            _refuse(state)
        return {_KEY: _INSTALLED}

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        for part in (state.tools, state.packages):
            if isinstance(part, Unknown):
                return {_KEY: part}
        package = state.installed.get("docker.io")
        if package is not None and not package.configured:
            return {_KEY: "not configured"}
        return {_KEY: _INSTALLED if "dockerd" in state.commands or state.docker is not None else None}

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        return {_KEY: None} if CAME in state.files else {}

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.recreate

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        return ("component docker configures it once it is installed",)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        install = DockerPackageInstall(ignored_containers.words(spec), manager(state).dnf)
        yield Step("engine", install, timeout=1800, summary="install Docker")

    def notes_on_removal(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        return ("Docker came with gpuready: it is purged with its images, unless it has containers or volumes",)

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        remove = DockerPackageRemove(ignored_containers.words(spec), manager(state).dnf)
        yield Step("engine", remove, timeout=1800, summary="remove Docker")


class DockerPackageInstall(Script, template="docker_package/install"):
    """Install Docker with its dependencies, and record the new packages."""

    work: tuple[str, ...]
    dnf: int = 0


class DockerPackageRemove(Script, template="docker_package/remove"):
    """Remove the packages that came with Docker, unless it has containers or volumes."""

    work: tuple[str, ...]
    dnf: int = 0


def _refuse(state: NodeState) -> None:
    need.value(state.packages)
    refuse_to_install(state, "runtimes.docker.install")
    if "docker_snap" in state.marks:
        raise NotComparable("runtimes.docker.install: Docker's snap is here: snap remove docker, or leave the key out")
    if manager(state).dnf:
        return
    theirs = [name for name in _DOCKERS if name in state.packages]
    theirs += [path for path, file in state.glob("/etc/apt/sources.list").items() if _SOURCE.search(file.text)]
    if theirs:
        raise NotComparable(
            f"runtimes.docker.install: {theirs[0]} is Docker's own, which the distribution's packages exclude: install "
            "docker-ce from there and leave the key out, or take that away first"
        )

"""apt: Docker's package."""

from gpuready.components.docker_package.component import CAME, DockerPackageInstall, DockerPackageRemove
from gpuready.model.state import NodeState, Package, Tool
from tests.components.closing import Closed, file_of, without


def closed(state: NodeState, steps: Closed) -> NodeState:
    """apt-get installs docker.io, whose postinst starts it, or purges it."""
    if isinstance(steps.steps[0].args, DockerPackageRemove):
        packages = {name: package for name, package in state.installed.items() if name != "docker.io"}
        tools = {name: tool for name, tool in state.commands.items() if name != "dockerd"}
        return without(state, CAME).model_copy(update={"packages": packages, "tools": tools})
    assert steps.args(DockerPackageInstall)
    packages = {**state.installed, "docker.io": Package(version="26.1.5+dfsg1-9", arch="amd64")}
    came = file_of("docker.io\n", state)
    tools = {**state.commands, "dockerd": Tool(path="/usr/sbin/dockerd")}
    return state.model_copy(update={"packages": packages, "tools": tools, "files": state.files | {CAME: came}})

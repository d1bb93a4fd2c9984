"""apt: Docker's package."""

from gpuready.components.docker_package.component import DockerPackageInstall
from gpuready.model.state import NodeState, Package, Tool
from tests.components.closing import Closed


def closed(state: NodeState, steps: Closed) -> NodeState:
    """apt-get installs docker.io, whose postinst starts it."""
    assert steps.args(DockerPackageInstall)
    packages = {**state.installed, "docker.io": Package(version="26.1.5+dfsg1-9", arch="amd64")}
    tools = {**state.commands, "dockerd": Tool(path="/usr/sbin/dockerd")}
    return state.model_copy(update={"packages": packages, "tools": tools})

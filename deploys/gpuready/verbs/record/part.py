"""The part of record: the state of a node, for people in a few lines. Scripts take the state in the JSON."""

from collections.abc import Iterator

from gpuready.base.words import count
from gpuready.model.state import Docker, NodeState, Unknown
from gpuready.result.model import Run, VerbPart
from gpuready.result.text import Painter


class RecordPart(VerbPart):
    """A value of each host."""

    def blocks(self, run: Run, paint: Painter) -> Iterator[list[str]]:
        """A block for each host that was read."""
        for host in run.hosts:
            if "state" in host.parts:
                yield _lines(host.name, host.parts["state"], paint)


PART = RecordPart(
    verb="record",
    of_host={"state": (NodeState, "record: the node's state, masked.")},
    judges=False,
)


def _lines(name: str, state: NodeState, paint: Painter) -> list[str]:
    """The facts of one host, one a line."""
    facts = {
        "system": f"{state.os.name or 'unknown'}, Linux {state.kernel} {state.machine}, init {state.init or 'unknown'}",
        "driver": _driver(state),
        "libcuda": _libcuda(state),
        "docker": _docker(state.docker),
        "containerd": _plain(state.containerd),
        "toolkit": _toolkit(state),
        "rdma": ", ".join(f"{name} {what}" for name, what in state.rdma.items()) or "none",
        "asks": "a reboot" if state.reboot_required else "",
    }
    width = max(map(len, facts))
    told = [f"  {name:<{width}}  {text}" for name, text in facts.items() if text]
    return [paint("bold", name), *told]


def _plain(value: str | Unknown | None) -> str:
    if isinstance(value, Unknown):
        return f"unknown: {value.unknown}"
    return value or "none"


def _driver(state: NodeState) -> str:
    version = state.driver.loaded
    gpus = f"{count(len(state.driver.gpus), 'GPU')}, {count(len(state.driver.pci), 'NVIDIA device')} on PCI"
    return f"module {version}, {gpus}" if version else f"no module loaded, {gpus}"


def _libcuda(state: NodeState) -> str:
    if isinstance(state.linker, Unknown):
        return _plain(state.linker)
    return ", ".join(state.linker.cache.get("libcuda.so.1", ())) or "not in the linker cache"


def _docker(docker: Docker | Unknown | None) -> str:
    if not isinstance(docker, Docker):
        return _plain(docker)
    runtimes = ", ".join(sorted(docker.runtimes))
    running = f"{len(docker.containers)} running, {sum(c.gpu for c in docker.containers)} with a GPU"
    return f"{docker.version}, runtimes {runtimes} (default {docker.default_runtime}), containers: {running}"


def _toolkit(state: NodeState) -> str:
    if isinstance(state.packages, Unknown):
        return _plain(state.packages)
    package = state.packages.get("nvidia-container-toolkit")
    return f"{package.version}{', held' if package.held else ''}" if package else "none"

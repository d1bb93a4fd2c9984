"""What a host consists of: its driver, GPUs, kernel, system, toolkit and engines, and how hosts are found by them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuready.base.part import Count, Part

if TYPE_CHECKING:  # a run that fails at once needs none of these
    from gpuready.base.facts import Package
    from gpuready.model.state import NodeState

#: Each engine with its command, and the packages that have it.
_ENGINES = {
    "docker": ("dockerd", ("docker-ce", "docker.io", "moby-engine", "docker")),
    "containerd": ("containerd", ("containerd.io", "containerd")),
    "cri-o": ("crio", ("cri-o",)),
}
_GPU = "<gpu id="
_MODEL = re.compile(r"<product_name>([^<]*)</product_name>")
_UUID = re.compile(r"<uuid>(GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})</uuid>")


@dataclass(frozen=True)
class NodeFacts(Part):
    """What a node consists of, as it was read last. Empty: the node does not have it, or it could not be read."""

    driver: str = ""
    """The version of the loaded driver."""
    gpu: str = ""
    """The GPU model, as nvidia-smi names it; commas separate several models."""
    gpus: Count = 0
    """The GPUs that nvidia-smi lists; if it does not answer, those that the driver lists or the PCI bus has."""
    kernel: str = ""
    """The release of the running kernel."""
    os: str = ""
    """The distribution, as it names itself."""
    toolkit: str = ""
    """The version of the NVIDIA Container Toolkit."""
    engines: dict[str, str] = field(default_factory=dict)
    """The container engines on the node, each with its version; empty: the version is unknown."""
    uuids: tuple[str, ...] = ()
    """The UUIDs of the GPUs, as nvidia-smi lists them."""

    @classmethod
    def of(cls, state: NodeState) -> NodeFacts:
        from gpuready.components.docker.state import Docker
        from gpuready.components.toolkit.state import toolkit_version

        driver, installed, commands = state.driver, state.installed, state.commands
        smi = driver.smi if isinstance(driver.smi, str) else ""
        running = state.docker.version if isinstance(state.docker, Docker) else ""
        engines = {
            name: running if name == "docker" and running else _version(installed, packages)
            for name, (command, packages) in _ENGINES.items()
            if command in commands or (name == "docker" and running)
        }
        return cls(
            driver.loaded,
            ", ".join(dict.fromkeys(html.unescape(name).strip() for name in _MODEL.findall(smi))),
            smi.count(_GPU) or len(driver.gpus or driver.pci_gpus),
            state.kernel,
            state.os.name,
            toolkit_version(installed, commands),
            engines,
            tuple(dict.fromkeys(_UUID.findall(smi))),
        )

    @property
    def texts(self) -> dict[str, str]:
        """Each fact that can be searched for, as text; an engine by its own name, too. ``none``: as in the table."""
        found = {name: str(getattr(self, name)) or "none" for name in KEYS if name != "engine"}
        found |= {"gpus": str(self.gpus or "0 (none)"), "engine": self.shown_engines or "none"}
        return found | dict.fromkeys(_ENGINES, "none") | self.engines

    @property
    def shown_gpus(self) -> str:
        """``8 NVIDIA H200``."""
        return f"{self.gpus} {self.gpu or ('GPU' if self.gpus == 1 else 'GPUs')}" if self.gpus else "none"

    @property
    def shown_engines(self) -> str:
        """``docker 28.0.1, containerd 1.7.27``."""
        return ", ".join(f"{name} {version}".rstrip() for name, version in self.engines.items())

    @property
    def cells(self) -> tuple[str, ...]:
        """The facts in the order of :data:`HEAD`, for a table."""
        shown = (self.shown_gpus, self.driver, self.kernel, self.os, self.toolkit, self.shown_engines)
        return tuple(text or "none" for text in shown)


#: The keys that hosts can be found by; the name of an engine is one, too.
KEYS = ("driver", "gpu", "gpus", "kernel", "os", "toolkit", "engine")
#: The columns of a table of facts.
HEAD = ("GPUs", "Driver", "Kernel", "OS", "Toolkit", "Engines")


@dataclass(frozen=True)
class Where:
    """One condition, such as ``driver=580`` or ``driver!=580``."""

    key: str
    value: str
    negated: bool = False

    @classmethod
    def of(cls, text: str) -> Where | None:
        """None: it is not a condition."""
        found = re.fullmatch(r"\s*([a-z-]+)\s*(!?=)\s*(.*\S)\s*", text)
        if found is None or found[1] not in (*KEYS, *_ENGINES):
            return None
        return cls(found[1], found[3], found[2] == "!=")

    def matches(self, facts: NodeFacts | None) -> bool:
        """Whether the fact has the value: a word as a whole, and a number from the start of a version.

        580 is in 580.95.05; 95 is not, nor is 1.2 in 1.20, or 85 in 6.8.0-85. Case is ignored. A node that was not read
        matches nothing. The filter of the HTML page has the same rule: templates/report/filter.js.
        """
        if facts is None:
            return False
        within = "0-9a-z" if re.search("[a-z]", self.value, re.IGNORECASE) else "0-9a-z.-"
        pattern = rf"(?<![{within}]){re.escape(self.value)}(?![0-9a-z])"
        return bool(re.search(pattern, facts.texts[self.key], re.IGNORECASE)) is not self.negated


def _version(installed: Mapping[str, Package], packages: Iterable[str]) -> str:
    """Return the version of the first installed package, without epoch and revision: 5:28.0.1-1~debian -> 28.0.1."""
    version = next((installed[name].version for name in packages if name in installed), "")
    found = re.match(r"(?:[0-9]+:)?([0-9]+(?:\.[0-9]+)*)", version)
    return found[1] if found else ""


def values(key: str, found: Iterable[NodeFacts | None]) -> Sequence[str]:
    """Return the values of one fact on these nodes, sorted."""
    return sorted({facts.texts[key] for facts in found if facts is not None} - {""})

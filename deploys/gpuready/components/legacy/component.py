"""Files of older toolkits in wrong places, or that newer toolkits do not work with.

gpuready removes only files that are recognizably NVIDIA's, and only if nothing reads them or they do harm. It keeps a
copy. The old packages' OCI hook gives a container its GPUs a second time beside CDI. After an upgrade to 1.20.0, links
to units of nvidia-cdi-refresh lead nowhere; they stay, because systemd (seen with 257) uses their names.
Sources: nvidia-container-toolkit's changelog (1.18.1 for containerd's drop-in, issue 1404; 1.19.1 for CRI-O's) and its
commit 65f6f468.
"""

import re

from gpuready.base.step import Step, Steps
from gpuready.contract import ledger
from gpuready.contract.component import Applies, Change, Values
from gpuready.contract.removal import WholeFiles
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

CONTAINERD = "/etc/containerd/config.d/99-nvidia.toml"
CRIO = "/etc/crio/conf.d/99-nvidia.toml"
HOOK = "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json"
_NVIDIAS = re.compile(r'"(/[^"]*/)?nvidia-container-(runtime|runtime-hook|toolkit)"')
#: Path -> what it is.
_FILES = {
    CONTAINERD: "a drop-in of nvidia-ctk 1.18.0 that containerd does not read",
    CRIO: "a drop-in of nvidia-ctk before 1.19.1 that CRI-O does not read",
    HOOK: "the old packages' OCI hook, beside CDI",
}


class Legacy(WholeFiles):
    """Stale drop-ins of nvidia-ctk 1.18.0 to 1.19.0, and the old OCI hook if CDI is used."""

    name = "legacy"
    owned_as = "toolkit"

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if _stale(state):
            return Applies(True, "older toolkits left files behind")
        return Applies(False, "no stale file of an older toolkit is here")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        return {f"legacy.{path}": None for path in _FILES}

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        return ledger.actual("legacy", state, _FILES) | {f"legacy.{path}": what for path, what in _stale(state).items()}

    def touched(self, state: NodeState) -> tuple[str, ...]:
        return tuple(_FILES)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        stale = (c.key.removeprefix("legacy.") for c in diff)
        drops = tuple(ledger.Drop(path, state.sha256(path)) for path in stale)
        yield Step("legacy", ledger.WriteFiles((), drops), summary="remove what is stale")


def _stale(state: NodeState) -> dict[str, str]:
    """Return the files to remove: path -> what it is."""
    found = {path: what for path, what in _FILES.items() if _NVIDIAS.search(state.text(path))}
    if any("/etc/containerd/config.d" in file.text for file in state.glob("/etc/containerd/").values()):
        found.pop(CONTAINERD, None)  # the directory is imported, so the drop-in has an effect
    specs = {**state.glob("/etc/cdi/"), **state.glob("/var/run/cdi/")}
    if not any("nvidia.com/" in file.text for file in specs.values()):
        found.pop(HOOK, None)
    return found

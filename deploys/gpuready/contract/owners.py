"""Find out who owns the driver, the toolkit and the engines' configuration: the host, or other software.

gpuready only observes and reports a part that the host does not own, because the owner would overwrite any change. It
recognises an owner by its marks on the node. ``owners`` in the spec overrides the marks, in both directions.
Sources of the marks: the GPU Operator's operands (assets/state-container-toolkit, state-driver,
state-operator-validation); k3s, RKE2, k0s and MicroK8s keep their own containerd in the directory named here and
generate its configuration at every start; AWS and Google leave /opt/aws/dlami and /opt/deeplearning/metadata on their
Deep Learning images; DGX OS has /etc/dgx-release; os-release(5) identifies COS, Bottlerocket and Flatcar, whose /usr is
read-only; ostree-prepare-root creates /run/ostree-booted on every system that it boots.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gpuready.components.toolkit.state import OPERATOR_TOOLKIT
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Docker, NodeState, Unknown

#: The keys of ``owners`` in the spec, and their names in messages.
PARTS = {"driver": "the driver", "toolkit": "the toolkit", "runtime": "the engines' configuration"}
_PACKAGE = "nvidia-container-toolkit"
_OPERATOR = "the GPU Operator"
_TAKE_TURNS = "switch it off there (toolkit.enabled=false), otherwise it and gpuready overwrite each other's changes"
#: Mark -> (name, directory, file) of software that runs its own containerd and writes that file at each start.
CLUSTERS = {
    "k3s": ("k3s", "/var/lib/rancher/k3s", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"),
    "rke2": ("RKE2", "/var/lib/rancher/rke2", "/var/lib/rancher/rke2/agent/etc/containerd/config.toml"),
    "k0s": ("k0s", "/var/lib/k0s", "/etc/k0s/containerd.toml"),
    "microk8s": ("MicroK8s", "/var/snap/microk8s", "/var/snap/microk8s/current/args/containerd.toml"),
}
_IMAGES = {
    "dlami": ("the AWS Deep Learning AMI", "/opt/aws/dlami"),
    "dlvm": ("the Google Deep Learning VM image", "/opt/deeplearning/metadata"),
    "dgx": ("DGX OS", "/etc/dgx-release"),
}
#: ID in os-release -> (name, whether the image also owns the engines' configuration).
_READ_ONLY = {
    "cos": ("Container-Optimized OS", True),
    "bottlerocket": ("Bottlerocket", True),
    "flatcar": ("Flatcar", False),
}
_WORDS = {"operator": _OPERATOR, "image": "the image"}


@dataclass(frozen=True)
class Owner:
    """An owner other than the host. ``mark``: how gpuready recognised it.

    ``price``: the consequence if gpuready manages the part anyway. ``engines``: those that it configures; empty: all.
    """

    name: str
    mark: str
    price: str = ""
    engines: tuple[str, ...] = ()


def owner(part: str, spec: NodeSpec, state: NodeState, engine: str = "") -> Owner | None:
    """Return the owner of ``part``, for ``engine`` if given; None for the host."""
    word: str = getattr(spec.owners, part)
    if word == "host":
        return None
    if word != "auto":
        return Owner(_WORDS[word], f"owners.{part}: {word}")
    return next((o for o in recognise(part, state) if not o.engines or not engine or engine in o.engines), None)


def observed(part: str, spec: NodeSpec, state: NodeState, engine: str = "") -> str:
    """Return why gpuready leaves the part alone, as one sentence; empty if the host owns it."""
    found = owner(part, spec, state, engine)
    return f"{found.name} owns {_noun(part, found)} here ({found.mark}): observed only" if found else ""


def notes(spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
    """Return notes about the owners on this host: each one once, and each one that ``host`` in the spec overrides."""
    mine: dict[tuple[str, str], list[str]] = {}
    overridden: list[str] = []
    for part in PARTS:
        if found := owner(part, spec, state):
            mine.setdefault((found.name, found.mark), []).append(_noun(part, found))
        elif over := next(recognise(part, state), None):
            overridden.append(
                f"owners.{part}: host: gpuready manages {_noun(part, over)} although {over.name} is here "
                f"({over.mark}); {over.price}"
            )
    owned = (f"{name} owns {' and '.join(parts)} here ({mark}): observed only" for (name, mark), parts in mine.items())
    return (*owned, *overridden)


def _noun(part: str, found: Owner) -> str:
    return f"the configuration of {', '.join(found.engines)}" if found.engines else PARTS[part]


def recognise(part: str, state: NodeState) -> Iterator[Owner]:
    """Yield the owners of ``part`` by the marks on this node, the strongest first."""
    if part == "driver" and "operator_driver" in state.marks:
        yield Owner(_OPERATOR, "/run/nvidia/driver", "switch it off there (driver.enabled=false), or two drivers meet")
    if part in ("toolkit", "runtime") and (mark := _operators_toolkit(state)):
        yield Owner(_OPERATOR, mark, _TAKE_TURNS)
    if part == "runtime":
        for key, (name, place, _) in CLUSTERS.items():
            if key in state.marks:
                yield Owner(name, place, "it writes its configuration anew at every start", ("containerd",))
    yield from _of_the_image(part, state)


def _of_the_image(part: str, state: NodeState) -> Iterator[Owner]:
    name, engines_too = _READ_ONLY.get(state.os.id, ("", False))
    if name and (part != "runtime" or engines_too):
        yield Owner(name, f"ID={state.os.id} in os-release", "its root is read-only, so that installing will fail")
    if "ostree" in state.marks and part != "runtime":
        yield Owner("the ostree image", "/run/ostree-booted", "its root is read-only, so that installing will fail")
    # A toolkit that the image did not bring has no owner yet. The image writes daemon.json only once, so not "runtime".
    if part == "driver" or (part == "toolkit" and _has_package(state)):
        for key, (name, place) in _IMAGES.items():
            if key in state.marks:
                yield Owner(name, place, "gpuready holds these packages, so the image no longer updates them")


def _operators_toolkit(state: NodeState) -> str:
    """Return the mark of the GPU Operator's toolkit; empty if there is none."""
    if "operator_toolkit" in state.marks:
        return OPERATOR_TOOLKIT
    if isinstance(state.docker, Docker) and any(OPERATOR_TOOLKIT in path for path in state.docker.runtimes.values()):
        return f"Docker runs {OPERATOR_TOOLKIT}"
    for path, file in state.glob("/etc/containerd/", "/etc/crio/", "/etc/docker/").items():
        if f"{OPERATOR_TOOLKIT}/" in file.text:
            return f"{path} names {OPERATOR_TOOLKIT}"
    # The validator alone shows only that the operator runs. If the host has a toolkit, the operator may use that one.
    known = not isinstance(state.packages, Unknown)
    return "/run/nvidia/validations" if "operator" in state.marks and known and not _has_package(state) else ""


def _has_package(state: NodeState) -> bool:
    return _PACKAGE in state.installed

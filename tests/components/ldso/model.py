"""ldconfig: the linker's cache, and the links of sonames."""

from gpuready.components.ldso.state import BUILT_IN, library_version
from gpuready.model.state import Linker, NodeState
from tests.components.closing import Closed


def closed(state: NodeState, steps: Closed) -> NodeState:
    """ldconfig lists the directories of the configuration in their order, then its own, each real place once."""
    assert isinstance(state.linker, Linker)
    cache: dict[str, tuple[str, ...]] = {}
    places = []
    for path, file in state.glob("/etc/ld.so.conf").items():
        if path != "/etc/ld.so.conf":
            places += [line.strip() for line in file.text.splitlines() if line.startswith("/")]
    places += BUILT_IN
    seen = set()
    relinked: dict[str, str] = {}
    for place in places:
        libs = {path: real for path, real in state.linker.libs.items() if path.rpartition("/")[0] == place}
        real_places = {real.rpartition("/")[0] for real in libs.values()}
        relinked |= _soname_links(place, libs)
        if real_places & seen:
            continue
        seen |= real_places
        for base in ("libcuda.so", "libnvidia-ml.so"):
            if any(f"/{base}." in path for path in libs):
                cache[f"{base}.1"] = (*cache.get(f"{base}.1", ()), f"{place}/{base}.1")
    update = {"cache": cache, "libs": {**state.linker.libs, **relinked}}
    return state.model_copy(update={"linker": state.linker.model_copy(update=update)})


def _soname_links(place: str, libs: dict[str, str]) -> dict[str, str]:
    """ldconfig's links lead to the highest version beside them."""
    found: dict[str, str] = {}
    for base in ("libcuda.so", "libnvidia-ml.so"):
        versions = [v for path in libs if path.startswith(f"{place}/{base}.") and (v := library_version(path))]
        if versions:
            newest = max(versions, key=lambda v: [int(part) for part in v.split(".")])
            found[f"{place}/{base}.1"] = f"{place}/{base}.{newest}"
    return found

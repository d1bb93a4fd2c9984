"""Does a wheel fit an environment? gpuready checks this before it copies the wheel. Pure.

The node's interpreter reports the tags that it accepts (PEP 425). A wheel built at home declares no glibc and contains
no CUDA libraries, so gpuready compares the needs of its ELF files with what the environment has.
Sources: PEP 425; pip's changelog for its first version with PEP 610. Looked up on 2026-11-23.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuready.base.versions import Version, dotted, leading, numbers
from gpuready.components.wheels.state import Environment
from gpuready.cuda import tables
from gpuready.cuda.facts import Host, Image
from gpuready.cuda.predict import predict
from gpuready.gpu.compat_host import gpus_of
from gpuready.model.state import NodeState

if TYPE_CHECKING:
    from gpuready.components.wheels.archive import Needs, Wheel

#: The driver's libraries; the check libcuda.ldcache covers them.
_DRIVER = re.compile(r"lib(cuda|nvidia-ml|nvidia-ptxjitcompiler)\.so\.1$")
_WHOSE = {"GLIBC": "glibc", "GLIBCXX": "libstdc++", "CXXABI": "libstdc++"}
_NAMED = 6
#: The first pip that writes direct_url.json.
PIP: Version = (20, 1)


def wanted(needed: Needs) -> tuple[str, ...]:
    """Return the libraries that the node must have."""
    return tuple(sorted(name for name in needed.libraries if not _DRIVER.match(name)))


def misfit(wheel: Wheel, needed: Needs, env: Environment, prefix: str) -> str:
    """Return why the wheel does not fit, and what to do; empty if it fits."""
    if env.trouble:
        return f"{prefix}: {env.trouble}"
    file = wheel.file
    if not env.pip:
        return f"{prefix} has no pip: {prefix}/bin/python -m ensurepip"
    if leading(env.pip, 2) < PIP:
        return (
            f"pip {env.pip} of {prefix} does not record what it installed (direct_url.json): {prefix}/bin/python -m "
            f"pip install 'pip>={dotted(PIP)}'"
        )
    if not wheel.tags & set(env.tags):
        return (
            f"{file} does not fit the Python of {prefix}, which is {env.python} ({env.tag}): build the wheel for it, "
            "or name an environment with the wheel's Python"
        )
    for kind, floor in sorted(needed.floors.items()):
        if too_old := _too_old(kind, floor, env):
            return f"{file} {too_old}"
    missing = [name for name in wanted(needed) if name not in env.found]
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        return (
            f"{file} needs {', '.join(missing[:_NAMED])}{more}, which neither {prefix} nor the linker's cache has: "
            "install its dependencies into the environment, or its CUDA version on the node"
        )
    return ""


def _too_old(kind: str, floor: Version, env: Environment) -> str:
    has = env.versions.get(kind, "")
    if re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}", has) and numbers(has) >= floor:
        return ""
    return (
        f"needs {kind}_{dotted(floor)}, and the {_WHOSE[kind]} there has {f'{kind}_{has}' if has else 'none'}: build "
        "it on the oldest system that must run it"
    )


def driver_too_old(cuda: Version | None, state: NodeState) -> str:
    """Return CUDA's error for a program of that version under the loaded driver; empty if it runs or is unknown."""
    loaded = state.driver.loaded
    if cuda is None or cuda[:2] not in tables.known_cuda() or not re.fullmatch(r"[0-9]{3,4}(\.[0-9]+){1,2}", loaded):
        return ""
    if numbers(loaded)[0] < min(tables.branches()):
        return ""
    told = predict(Host(numbers(loaded), gpus_of(state)[0], "none"), Image(cuda))
    return "" if told.runs else f"is for CUDA {dotted(cuda)}: {told.reason}"

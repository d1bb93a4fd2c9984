"""Does a wheel fit an environment? Asked before a byte of it is copied. Pure.

Tags are the target interpreter's own answer (PEP 425). A wheel that was built at home says nothing of glibc and brings
no CUDA libraries along, so what its ELF files need is held against what the environment has.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuready.components.wheels.state import Environment
from gpuready.cuda import tables
from gpuready.cuda.facts import Host, Image
from gpuready.cuda.host import gpus_of
from gpuready.cuda.predict import predict
from gpuready.cuda.versions import Version, dotted, numbers
from gpuready.state.model import NodeState

if TYPE_CHECKING:
    from gpuready.components.wheels.archive import Needs, Wheel

#: The driver's own, which a check of its own looks after (libcuda.ldcache).
_DRIVER = re.compile(r"lib(cuda|nvidia-ml|nvidia-ptxjitcompiler)\.so\.1$")
_WHOSE = {"GLIBC": "glibc", "GLIBCXX": "libstdc++", "CXXABI": "libstdc++"}
_NAMED = 6
#: The first that writes direct_url.json.
PIP: Version = (20, 1)


def wanted(needed: Needs) -> tuple[str, ...]:
    """The libraries that the node has to have for it."""
    return tuple(sorted(name for name in needed.libraries if not _DRIVER.match(name)))


def misfit(wheel: Wheel, needed: Needs, env: Environment, prefix: str) -> str:
    """Why the wheel cannot go in there and what would help; empty where it can."""
    if env.trouble:
        return f"{prefix}: {env.trouble}"
    file = wheel.path.name
    if not env.pip:
        return f"{prefix} has no pip: {prefix}/bin/python -m ensurepip"
    if _numbers(env.pip) < PIP:
        return (
            f"pip {env.pip} of {prefix} does not write down what it installed (direct_url.json): "
            f"{prefix}/bin/python -m pip install 'pip>={dotted(PIP)}'"
        )
    if not wheel.tags & set(env.tags):
        return (
            f"{file} is not for the Python of {prefix}: that is {env.python} and takes {env.tag}; "
            "build the wheel for it, or name an environment of the wheel's Python"
        )
    for kind, floor in sorted(needed.floors.items()):
        if too_old := _too_old(kind, floor, env):
            return f"{file} {too_old}"
    missing = [name for name in wanted(needed) if name not in env.found]
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        return (
            f"{file} needs {', '.join(missing[:_NAMED])}{more}, which neither {prefix} nor the linker's cache has: "
            "install what it depends on into the environment, or the CUDA that it was built with on the node"
        )
    return ""


def _numbers(version: str) -> Version:
    return tuple(map(int, re.findall(r"[0-9]+", version)[:2]))


def _too_old(kind: str, floor: Version, env: Environment) -> str:
    has = env.versions.get(kind, "")
    if re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}", has) and numbers(has) >= floor:
        return ""
    return (
        f"needs {kind}_{dotted(floor)}, and the {_WHOSE[kind]} there has {f'{kind}_{has}' if has else 'none'}: "
        "build it on the oldest system that it is for"
    )


def driver_too_old(cuda: Version | None, state: NodeState) -> str:
    """What CUDA would answer to a program for that CUDA on the driver that is loaded; empty where it would run.

    Also empty where that is not known. Nothing of a container comes into it.
    """
    loaded = state.driver.loaded
    if cuda is None or cuda[:2] not in tables.known_cuda() or not re.fullmatch(r"[0-9]{3,4}(\.[0-9]+){1,2}", loaded):
        return ""
    if numbers(loaded)[0] < min(tables.branches()):
        return ""
    told = predict(Host(numbers(loaded), gpus_of(state)[0], "none"), Image(cuda))
    return "" if told.runs else f"is for CUDA {dotted(cuda)}: {told.reason}"

"""What keeps gpuready from changing a containerd: each reason says what it found and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuready.components.containerd import files, unit
from gpuready.components.containerd.files import CONFIG
from gpuready.components.containerd.state import SECTIONS, Effective, effective
from gpuready.core import toml_document
from gpuready.core.component import NotComparable, refuse_irregular
from gpuready.spec.model import ContainerdSpec, NodeSpec
from gpuready.state.model import NodeState, Unknown


def refuse(spec: NodeSpec, state: NodeState) -> Effective:
    """The configuration in force, or NotComparable with what stands in the way."""
    why = unit.missing(state)
    if why:
        raise NotComparable(f"the spec names containerd: {why}; say runtimes: {{containerd: auto}}")
    for what in (state.units, state.tools, state.containerd):
        if isinstance(what, Unknown):
            raise NotComparable(what.unknown)
    refuse_irregular(CONFIG, state)
    try:
        found = effective(str(state.containerd))
    except ValueError as e:
        raise NotComparable(str(e)) from None
    unit.refuse_command(state)
    if not found.serves_cri:
        raise NotComparable(
            f"the spec names containerd, which does not serve CRI here: take cri out of disabled_plugins in {CONFIG} "
            "(Docker's package puts it there), or say runtimes: {containerd: auto}"
        )
    if found.default_runtime not in {*found.runtimes, "runc", "nvidia"}:  # which are what we put there
        raise NotComparable(
            f"default_runtime_name is {found.default_runtime}, which is none of the runtimes "
            f"({', '.join(sorted(found.runtimes)) or 'there is none'}): "
            "after its next start containerd would serve no CRI; mend it by hand"
        )
    if "untrusted_workload_runtime" in found.deprecated and "untrusted" in found.listed:
        raise NotComparable(
            f"containerd serves no CRI: {CONFIG} defines the runtime untrusted twice, as untrusted_workload_runtime "
            "and in runtimes; keep the latter"
        )
    document = files.read(state, CONFIG)
    if found.version >= 3 and files.version(document, found) < 2:
        raise NotComparable(_version_one(document))
    asked = spec.runtimes.containerd
    if isinstance(asked, ContainerdSpec) and asked.cdi != "auto" and "enable_cdi" not in found.cri:
        raise NotComparable("this containerd knows no enable_cdi (1.7 does); leave runtimes.containerd.cdi out")
    return found


def decides(state: NodeState, found: Effective) -> str:
    """Why ``default_runtime_name`` cannot be changed beside the deprecated table ``default_runtime``."""
    path, where = files.place(state, found)
    table = ".".join(f'"{key}"' if "." in key else key for key in (*where, "containerd"))
    return (
        f"the deprecated table [{table}.default_runtime] in {path} decides the default runtime, whatever "
        f"default_runtime_name says; rename the table to [{table}.runtimes.default], and set default_runtime_name = "
        f'"default" in [{table}]: both mean the same to containerd, and the second can be changed to nvidia'
    )


def _version_one(document: Mapping[str, Any]) -> str:
    """Why containerd 2 takes no runtime from a file of version 1, and what to write instead."""
    said = f"{CONFIG} has no version, so containerd reads it as version 1"
    lost = toml_document.at(document, ("plugins", SECTIONS[1]))
    if lost is None:
        return (
            f"{said}, from which containerd 2 takes no runtime; write it anew with `containerd config migrate`, which "
            "keeps all that containerd reads of it today"
        )
    names = ", ".join(lost) if isinstance(lost, Mapping) else ""
    return (
        f"{said}, and containerd 2 does not read its CRI settings ({names or 'none'}); `containerd config migrate` "
        "leaves them out, too. To keep them, write the file as version 2: `version = 2` at the top, and each plugin "
        f'by its full name, [plugins."{SECTIONS[2]}"] for [plugins.cri]'
    )

"""The reasons for which gpuready does not change a containerd; each says what it found and what to do.

Sources: containerd.service of Debian and of docker.com; containerd's plugins/cri/runtime/plugin.go (configMigration),
tried with 1.6.20, 1.7.24 and 2.1.9 (2026-11-24); the documentation of k3s and RKE2 ("Configuring containerd"),
k0s and MicroK8s.
"""

from collections.abc import Mapping
from typing import Any

from gpuready.base import toml_document
from gpuready.components.containerd import files
from gpuready.components.containerd.files import CONFIG, UNIT
from gpuready.components.containerd.state import IMAGES, SECTIONS, Effective
from gpuready.contract import need, owners
from gpuready.contract.component import NotComparable, refuse_irregular
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown

#: What containerd 1.7 says to a file of a newer version; 1.6 reads it, and ignores sections that it does not know.
_REFUSED = "is not supported, the max version is `2`"


def refuse(spec: NodeSpec, state: NodeState) -> Effective:
    """Return the effective configuration. Raises NotComparable if gpuready cannot manage this containerd."""
    why = missing(state)
    if why:
        raise NotComparable(f"the spec names containerd, but {why}; set runtimes: {{containerd: auto}}")
    for what in (state.units, state.tools):
        need.value(what)
    refuse_irregular(CONFIG, state)
    if isinstance(state.containerd, Unknown) and _REFUSED in state.containerd.unknown:
        raise NotComparable(_too_new(CONFIG, files.read(state, CONFIG).get("version"), "does not start with"))
    found = files.readable(state)
    _refuse_command(state)
    if not found.serves_cri:
        raise NotComparable(
            f"the spec names containerd, but it does not serve CRI: remove cri from disabled_plugins in {CONFIG} "
            f"(Docker's package puts it there), or set runtimes: {{containerd: auto}}"
        )
    if found.default_runtime not in {*found.runtimes, "runc", "nvidia"}:  # gpuready can add these two
        raise NotComparable(
            f"default_runtime_name is {found.default_runtime}, which is not one of the runtimes "
            f"({', '.join(sorted(found.runtimes)) or 'there is none'}): after its next start containerd would not "
            'serve CRI; define it, or set default_runtime_name = "runc"'
        )
    if "untrusted_workload_runtime" in found.deprecated and "untrusted" in found.listed:
        raise NotComparable(
            f"containerd does not serve CRI: {CONFIG} defines the runtime untrusted twice, as "
            "untrusted_workload_runtime and in runtimes; keep the latter"
        )
    _refuse_sections(state, found)
    document = files.read(state, CONFIG)
    if found.version >= 3 and files.version(document, found) < 2:
        raise NotComparable(_version_one(document))
    if spec.runtimes.containerd_settings.cdi != "auto" and "enable_cdi" not in found.cri:
        raise NotComparable(
            "this containerd does not support enable_cdi (1.7 does); remove runtimes.containerd.cdi from the spec"
        )
    return found


def _refuse_sections(state: NodeState, found: Effective) -> None:
    """Raise NotComparable for a file whose CRI section containerd does not read, or reads only in part."""
    for path in files.order(state, found):
        document = files.read(state, path)
        version = document.get("version")
        if isinstance(version, int) and version > found.version and found.version < 3:
            raise NotComparable(_too_new(path, version, "does not know, so it ignores the CRI settings there"))
        sections = [name for name in (SECTIONS[2], SECTIONS[3]) if toml_document.at(document, ("plugins", name))]
        if found.version >= 3 and len(sections) == 2 and files.version(document, found) < 3:
            raise NotComparable(
                f'{path} has CRI settings in [plugins."{SECTIONS[2]}"] and in [plugins."{SECTIONS[3]}"]; containerd 2 '
                "takes from the first only what the second lacks. Keep the second and write version = 3: `containerd "
                f"-c {path} config migrate` prints what containerd reads today in that form"
            )


def _too_new(path: str, version: object, what: str) -> str:
    """Return why a file of that version is of no use to this containerd; ``what``: what containerd does about it."""
    return (
        f"{path} has version = {version}, which this containerd {what}; upgrade containerd to 2.0 or newer, or write "
        f'the file as version 2: `version = 2` at the top, and [plugins."{SECTIONS[2]}"] for '
        f'[plugins."{SECTIONS[3]}"] and [plugins."{IMAGES}"]'
    )


def missing(state: NodeState) -> str:
    """Return why there is no containerd to manage; empty if there is one."""
    there = "containerd" in state.commands
    if there and (isinstance(state.units, Unknown) or state.unit(UNIT).load == "loaded"):
        return ""
    for mark, (who, _, path) in owners.CLUSTERS.items():
        if mark in state.marks:
            return (
                f"{who} runs its own containerd and writes {path} at each start; gpuready leaves it to {who}, which "
                "finds the toolkit by itself when it restarts"
            )
    return f"no {UNIT} on this node" if there else "no containerd on this node"


def _refuse_command(state: NodeState) -> None:
    """Raise NotComparable if the service starts another containerd than the one in PATH, or uses another file."""
    words = state.unit(UNIT).exec_start
    found = state.commands["containerd"].path
    if words and words[0].removeprefix("/usr") != found.removeprefix("/usr"):
        raise NotComparable(f"{UNIT} starts {words[0]}, but containerd on root's PATH is {found}; keep one")
    for word, following in zip(words[1:], (*words[2:], ""), strict=False):
        flag, _, value = word.partition("=")
        if flag in ("-c", "--config") and (value or following) != CONFIG:
            raise NotComparable(
                f"{UNIT} starts containerd with {word} {following}".rstrip()
                + f"; gpuready manages only {CONFIG} so far"
            )


def decides(state: NodeState, found: Effective) -> str:
    """Return why ``default_runtime_name`` has no effect beside the deprecated table ``default_runtime``."""
    path, where = files.place(state, found)
    table = ".".join(f'"{key}"' if "." in key else key for key in (*where, "containerd"))
    return (
        f"the deprecated table [{table}.default_runtime] in {path} decides the default runtime, whatever "
        f"default_runtime_name says; rename the table to [{table}.runtimes.default], and set default_runtime_name = "
        f'"default" in [{table}]: both mean the same to containerd, and the second can be changed to nvidia'
    )


def _version_one(document: Mapping[str, Any]) -> str:
    """Return why containerd 2 accepts no runtime from a file of version 1, and what to do."""
    said = f"{CONFIG} has {'version = 1' if 'version' in document else 'no version, which means version 1'}"
    lost = toml_document.at(document, ("plugins", SECTIONS[1]))
    if lost is None:
        return (
            f"{said}: containerd 2 reads no runtime from it; convert the file with `containerd config migrate`, "
            "which keeps everything that containerd reads from it today"
        )
    names = ", ".join(lost) if isinstance(lost, Mapping) else ""
    return (
        f"{said}: containerd 2 does not read its CRI settings ({names or 'none'}); `containerd config migrate` "
        "leaves them out, too. To keep them, write the file as version 2: `version = 2` at the top, and each plugin "
        f'by its full name, [plugins."{SECTIONS[2]}"] for [plugins.cri]'
    )

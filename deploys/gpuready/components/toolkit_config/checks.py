"""Checks of the toolkit's config.toml: can it be parsed, and has it settings that break GPUs or weaken containers?

Sources: the toolkit's api/config/v1, NVIDIA's security bulletins (CVE-2025-23266, CVE-2025-23359), its issues 381, 580.
"""

from typing import Any

from gpuready.base import toml_document
from gpuready.base.toml_document import TomlError
from gpuready.components.toolkit_config import state as toolkit_config
from gpuready.components.toolkit_config.state import COMPAT, CONFIG, Document
from gpuready.contract.check import Check, EndCheck, Level, Verdict, fail, passed, skip, warn
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

_ESCAPES: dict[str, tuple[Any, str]] = {
    "features.allow-cuda-compat-libs-from-container": (
        True,
        "CVE-2025-23359: an image's files are mounted by the host",
    ),
    "features.allow-ldconfig-from-container": (True, "a program of the image runs with the host's privileges"),
    COMPAT: ("mount", "the behavior before 1.17.4, CVE-2025-23359"),
}


def _document(state: NodeState) -> Document:
    """Return the parsed config.toml. Without one, the check is skipped; one that cannot be parsed fails it."""
    if CONFIG not in state.files:
        raise EndCheck(skip(f"there is no {CONFIG}"))
    try:
        return toml_document.read(state.files[CONFIG].text)
    except TomlError as e:
        raise EndCheck(fail(f"{CONFIG}: {e}", "fix it by hand; meanwhile the toolkit uses its defaults")) from None


def _readable(spec: NodeSpec, state: NodeState) -> Verdict:
    _document(state)
    return passed(f"{CONFIG} can be read")


def _cgroups(spec: NodeSpec, state: NodeState) -> Verdict:
    if toolkit_config.given(_document(state), "nvidia-container-cli.no-cgroups") is True:
        return fail("no-cgroups is true, and this is no rootless host")
    return passed("no-cgroups is not set")


def _escape(spec: NodeSpec, state: NodeState) -> Verdict:
    document = _document(state)
    told = [f"{k} = {v}: {why}" for k, (v, why) in _ESCAPES.items() if toolkit_config.given(document, k) == v]
    if told:
        return warn("settings with which a container can get out", evidence="; ".join(told))
    return passed("nothing in it lets a container out")


CHECKS = (
    Check(
        "config.readable",
        "the toolkit's config.toml is valid",
        Level.config,
        "config.toml is not valid TOML: the runtime gives no container a GPU, and the toolkit's package cannot be "
        "configured at its next upgrade.",
        f"nvidia-ctk config --config-file={CONFIG}",
        "fix it by hand, or move it away and run nvidia-ctk config --in-place",
        _readable,
        component="config",
    ),
    Check(
        "config.cgroups",
        "no leftover no-cgroups = true",
        Level.config,
        "no-cgroups = true is for rootless engines. Left behind on another host, a container's GPUs are not allowed to "
        "it: 'Failed to initialize NVML: Unknown Error' right at its start.",
        f"grep -n no-cgroups {CONFIG}",
        "nvidia-ctk config --set nvidia-container-cli.no-cgroups=false --in-place; rootless engines get GPUs by CDI",
        _cgroups,
        component="config",
        after=("config.readable",),
    ),
    Check(
        "config.escape",
        "no setting undoes a security fix",
        Level.config,
        "A setting brings back what a security fix took away.",
        f"nvidia-ctk config --config-file={CONFIG} | grep -E 'allow-|cuda-compat-mode'",
        "take the setting out of config.toml; it holds for new containers at once",
        _escape,
        component="config",
        after=("config.readable",),
    ),
)

"""Judge what a node read of a container (:mod:`trace_facts`): which libcuda it got, why, and as predicted? Pure."""

import re
from collections.abc import Mapping
from dataclasses import replace

from gpuready.base.errors import brief
from gpuready.base.facts import Answer, Unknown
from gpuready.base.versions import driver
from gpuready.compat.trace import Trace
from gpuready.compat.trace_facts import Container, container
from gpuready.components.ldso.state import library_version
from gpuready.cuda.predict import BY_ENTRYPOINT, Prediction

#: What cuInit returns where a verdict says so.
_RETURNS = {"ERROR_803": 803, "ERROR_804": 804, "NATIVE": 0, "MINOR": 0, "FORWARD": 0, "NO_CODE": 0}
_MOST_PROOF = 20
_LONGEST = 300


def trace(active: Mapping[str, Answer | Unknown], number: int, found: Prediction | None, loaded: str) -> Trace:
    """Return what the records ``trace.NUMBER...`` say of an image, beside its prediction and the loaded driver."""
    name = f"trace.{number}"
    answer = active.get(name)
    if not isinstance(answer, Answer):
        return Trace(unknown=answer.unknown if answer else "the node did not answer")
    if answer.rc:
        return _not_started(brief(answer.out) or f"exit {answer.rc}", found)
    ran = container(active, name)
    if why := _unseen(ran):
        return Trace(unknown=why)
    traced = Trace(
        ran.path, ran.real, library_version(ran.real), ran.source, ran.mode, _why(ran), _cuinit(ran.said), _proof(ran)
    )
    return replace(traced, differs=_difference(traced, found) or _stale(traced, loaded))


def _not_started(why: str, found: Prediction | None) -> Trace:
    """Say why no container ran. If the toolkit refused to start it, compat should have said so."""
    if found is None or "unsatisfied condition" not in why:
        return Trace(unknown=f"no container ran: {why}")
    refused = Trace(why=f"the container does not start: {why}")
    if found.verdict == "REFUSED":
        return refused
    return replace(refused, differs=f"{_predicted(found)}, but the container does not start")


def _unseen(ran: Container) -> str:
    """Return why the loader was not seen at work."""
    if "\nloader\n" not in ran.said:
        return "the test program is not in the container: gpuready has none for this node, or found no place for it"
    if re.search(r"^\tlibcuda\.so\.1 => ", ran.said, re.M) or "find library=libcuda.so.1" in ran.said:
        return ""
    line = ran.said.partition("\nloader\n")[2].partition("\n")[0]
    return f"no CUDA program runs in this image: it has no glibc ({brief(line, 120)})"


def _cuinit(said: str) -> int | None:
    m = re.search(r"^cuInit=(-?[0-9]{1,9}) ", said, re.M)
    return int(m[1]) if m else None


def _why(ran: Container) -> str:
    """What brought the library, and what makes the loader use it."""
    if not ran.path:
        return f"the loader finds none; the runtime used mode {ran.mode or 'unknown'}"
    directory = ran.path.rpartition("/")[0]
    by = {"": "the loader has it", "LD_LIBRARY_PATH": f"LD_LIBRARY_PATH has {directory}"}.get(ran.by)
    by = by or f"the loader finds it by {ran.by}"
    if "enable-cuda-compat" in " ".join(ran.hooks) and "/00-compat-" in (file := ran.conf.get(directory, "")):
        by += f", in which the hook enable-cuda-compat put {directory} first ({file})"
    if ran.source == "host":
        return f"the toolkit mounts the host's file (mode {ran.mode or 'unknown'}); {by}"
    return f"the image has it in {ran.origin.rpartition('/')[0]}; {by}"


def _proof(ran: Container) -> tuple[str, ...]:
    """The lines that show it, at most _MOST_PROOF."""
    words = ("libcuda.so", " mode '", " mode as '", "driver version", "prestart hook", "cuda-compat")
    lines = [f"runtime log: {text}" for text in ran.runtime if any(word in text for word in words)]
    hooks = ("enable-cuda-compat", "update-ldcache", "nvidia-container-runtime-hook")
    lines += [f"hook: {hook}" for hook in ran.hooks if any(word in hook for word in hooks)]
    lines += [f"nvidia-container-cli: {text}" for text in ran.cli]
    if ran.mount is not None:
        lines.append(f"mountinfo: {ran.mount.root} is mounted at {ran.mount.at}")
    lines += [f"{file}: {directory}" for directory, file in ran.conf.items() if "/00-compat-" in file]
    lines += [f"loader: {ran.by}: {ran.path}"] if ran.path else []
    return tuple(brief(line, _LONGEST) for line in lines[:_MOST_PROOF])


def _predicted(found: Prediction) -> str:
    return f"compat predicts {found.verdict}{'' if found.certain else ' (but not for certain)'}"


def _difference(traced: Trace, found: Prediction | None) -> str:
    """Say what is not as predicted."""
    if found is None:
        return ""
    said = _predicted(found)
    if found.verdict == "REFUSED":
        return f"{said}, but the container starts"
    if not found.reason.startswith(BY_ENTRYPOINT):  # no entrypoint ran here
        own = found.library and driver(found.library.version)
        if (traced.source, traced.version if own else "") != (("compat", own) if own else ("host", "")):
            what = f"the image's libcuda {own}" if own else "the host's libcuda"
            return f"{said} with {what}, but the container gets {traced.got}"
    wanted = _RETURNS.get(found.verdict)
    if traced.cuinit is not None and wanted is not None and traced.cuinit != wanted:
        return f"{said}, so cuInit should return {wanted}, but it returns {traced.cuinit}"
    return ""


def _stale(traced: Trace, loaded: str) -> str:
    """Say if the toolkit mounts the library of another driver than the one that is loaded."""
    if traced.source == "host" and loaded and traced.version not in ("", loaded):
        return f"the loaded driver is {loaded}, but the container gets {traced.got}"
    return ""

"""The parts of verbs, which the layers below are handed. Each is imported when it is asked for, as commands are."""

import importlib
import importlib.util

from gpuready.result.model import NO_PART, VerbPart
from gpuready.result.verbs import VERBS


def parts() -> list[VerbPart]:
    """Those of all verbs that have one: a document may be of any verb."""
    return [part for verb in VERBS if (part := part_of(verb)) is not NO_PART]


def part_of(verb: str) -> VerbPart:
    """The part of one verb, such as ``rdma list``; NO_PART if it has none."""
    name = verb.partition(" ")[0]
    module = f"gpuready.verbs.{name.replace('-', '_')}.part"
    if name not in VERBS or importlib.util.find_spec(module) is None:
        return NO_PART
    part: VerbPart = importlib.import_module(module).PART
    return part

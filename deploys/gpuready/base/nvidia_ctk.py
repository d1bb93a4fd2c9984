"""The step that asks nvidia-ctk how it would register the runtime ``nvidia`` with an engine.

nvidia-ctk works on a copy: gpuready takes only its own keys from the result. Source: nvidia-ctk runtime configure.
"""

from collections.abc import Generator

from gpuready.base.errors import ConvergeError
from gpuready.base.step import Reply, Script, Step


class Configure(Script, template="lib/nvidia-ctk"):
    """Run nvidia-ctk on a copy of an engine's configuration, and print the result.

    ``smallest``: the document for a second try, if nvidia-ctk cannot read ``given``; empty for none.
    """

    engine: str
    given: bytes
    smallest: str = ""


def configure(engine: str, given: bytes, smallest: str = "") -> Generator[Step, Reply, str]:
    """Return what nvidia-ctk makes of the document ``given`` for docker, containerd or crio."""
    summary = "nvidia-ctk runtime configure, on a copy"
    reply = yield Step(f"{engine}-stage", Configure(engine, given, smallest), survives=False, summary=summary)
    return reply.out


def wrote(what: str) -> ConvergeError:
    """The error for a result that gpuready cannot use."""
    remedy = "run it on the node (nvidia-ctk runtime configure --dry-run); reinstall nvidia-container-toolkit-base"
    return ConvergeError(f"nvidia-ctk runtime configure wrote {what}; nothing was changed", remedy=remedy)

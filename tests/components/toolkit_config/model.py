"""The toolkit's config.toml."""

import base64

from gpuready.base.step import Script, Step
from gpuready.components.toolkit_config.component import ConfigInstall, ConfigRead
from gpuready.model.state import NodeState
from tests.components.closing import Closed


def answer(step: Step, state: NodeState, steps: Closed) -> str:
    """The file's bytes."""
    reads = isinstance(step.args, ConfigRead) and step.args.path in state.files
    return base64.b64encode(state.files[step.args.path].data).decode() if reads else ""


def wrote(args: Script, steps: Closed) -> None:
    if isinstance(args, ConfigInstall):
        steps.records[args.ours] = args.after
        steps.writes[args.path] = args.content

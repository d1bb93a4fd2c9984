"""Inspect the Python environments where a wheel must be installed, in one more exec.

The probe is the same for every spec, so it inspects only environments in which gpuready already installed a wheel. If
all recorded wheels are as they were, there is no second exec.
"""

import json
from collections.abc import Set

from pyinfra.api.host import Host

from gpuready.base import resources
from gpuready.base.records import ProbeError, Records
from gpuready.components.wheels.component import Wheels, asked
from gpuready.components.wheels.state import environment
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.operations.transport import run_script

#: Seconds for each environment: templates/wheels/look.sh.j2 waits up to 70 + 40; the rest is reserve.
TIMEOUT = 120


def look(host: Host, state: NodeState, spec: NodeSpec, selected: Set[str] | None) -> NodeState:
    """Return the state with ``environments``. If no environment needs inspection, no exec runs.

    ``selected``: the names of the components of this run (None: all).
    """
    wanted = asked(spec, state) if selected is None or Wheels.name in selected else ()
    if not wanted:
        return state
    script = resources.script(
        "wheels/look",
        program=resources.document("wheels/look.py"),
        environments=[(env, json.dumps(what)) for env, what in wanted],
    )
    runs = Records(run_script(host, script, TIMEOUT * len(wanted), "read Python environments")).runs
    if not {f"{kind}{number}" for kind in ("env", "users") for number in range(len(wanted))} <= runs.keys():
        raise ProbeError("the node's answer on its Python environments lacks records")
    found = {
        env: environment(*runs[f"env{number}"], runs[f"users{number}"][1]) for number, (env, _) in enumerate(wanted)
    }
    return state.model_copy(update={"environments": found})

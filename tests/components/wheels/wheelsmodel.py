"""What the steps of the wheels component leave behind, for closing.py: pip and the records in few words."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Sequence

from gpuready.components.wheels.record import WHEELS
from gpuready.components.wheels.state import Installed
from gpuready.core.step import Step
from gpuready.state.model import File, NodeState


def after(state: NodeState, steps: Sequence[Step]) -> NodeState:
    """The state after those steps; what is installed has to have been copied, and is then not there any more."""
    copied: set[str] = set()
    for step in steps:
        values = dict(re.findall(r"^([A-Z]+)=([^;\n ]*)$", step.script, re.M))
        values = {key: "".join(shlex.split(value)) for key, value in values.items() if "$" not in value}
        if step.name == "wheel-copy":
            assert step.sends and not step.survives
            copied.add(values["SHA"])
        elif step.name == "wheel-install":
            state = _installed(state, step, values, copied)
        else:
            state = _removed(state, step, values)
    assert not copied, "a copy stays behind"
    return state


def _installed(state: NodeState, step: Step, values: dict[str, str], copied: set[str]) -> NodeState:
    env, name = values["ENV"], values["NAME"]
    seen = state.environments[env]
    if values["PIP"]:
        assert values["SHA"] in copied and values["F"].startswith(f"{WHEELS}/{values['SHA']}/")
        version = values["INFO"].rpartition("/")[2].removesuffix(".dist-info").rpartition("-")[2]
        there = {**seen.installed, name: Installed(version=version, sha256=values["SHA"])}
        seen = seen.model_copy(update={"installed": there})
        if "\nKEEP=''\n" in step.script:
            copied.remove(values["SHA"])
    assert seen.installed[name].sha256 == values["SHA"]
    record = re.search(r"^save \"\$RECORD\" decode (\S+) ", step.script, re.M)
    assert record
    text = base64.b64decode(shlex.split(record[1])[0]).decode()
    file = File(text=text, mode=0o644, uid=0, gid=0, mtime=state.clock)
    return state.model_copy(
        update={
            "environments": {**state.environments, env: seen},
            "files": {**state.files, values["RECORD"]: file},
            "wheels": {**state.wheels, values["INFO"]: values["SHA"]} if isinstance(state.wheels, dict) else {},
        }
    )


def _removed(state: NodeState, step: Step, values: dict[str, str]) -> NodeState:
    gone = shlex.split(re.findall(r"^rm -f (.*)$", step.script, re.M)[-1])[0]
    info = state.files[gone].text.partition("\n")[0]
    files = {path: file for path, file in state.files.items() if path != gone}
    wheels = dict(state.wheels) if isinstance(state.wheels, dict) else {}
    if "\nUNINSTALL=1\n" in step.script:
        wheels.pop(info)
    return state.model_copy(update={"files": files, "wheels": wheels})

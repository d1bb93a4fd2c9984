"""Close a difference on a model of the node: what a component's steps print, write and leave behind.

The scripts themselves run on real machines in the other suites; here their values are read, and the state that they
would leave behind is compared again. A component whose steps do more than write files has its own model of the node in
``tests/components/NAME/model.py``, with one to three functions: ``answer(step, state, steps)``, what a step prints;
``wrote(args, steps)``, the files of a script that does not name them as others do; ``closed(state, steps)``, what else
becomes of the node.
"""

import importlib
import importlib.util
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gpuready.base.facts import KEPT
from gpuready.base.step import Reply, Script, Step
from gpuready.contract.compare import compare
from gpuready.contract.component import Component
from gpuready.contract.ledger import SECRET, WriteFiles
from gpuready.contract.removal import Removal
from gpuready.model.spec import NodeSpec
from gpuready.model.state import File, NodeState, Unit, Unknown

S = TypeVar("S", bound=Script)


@dataclass
class Closed:
    """What the steps did: their names, files written (path -> content) and removed.

    From outside come ``staged``, what nvidia-ctk makes of its copy, and ``key``, which the repository serves.
    """

    staged: str = ""
    key: bytes = b""
    steps: list[Step] = field(default_factory=list)
    writes: dict[str, str] = field(default_factory=dict)
    removes: list[str] = field(default_factory=list)
    records: dict[str, str] = field(default_factory=dict)

    def script(self, name: str) -> str:
        return next(step.script for step in self.steps if step.name == name)

    def args(self, kind: type[S]) -> S:
        """The arguments of the one step that runs this script."""
        (found,) = (step.args for step in self.steps if isinstance(step.args, kind))
        return found


def close(
    component: Component, spec: NodeSpec, state: NodeState, diff: tuple[Any, ...], staged: str = "", key: bytes = b""
) -> Closed:
    """Run ``converge`` to its end with the answers that a node gives."""
    closed = Closed(staged, key)
    answer, wrote = _own(component, "answer"), _own(component, "wrote")
    steps = component.converge(diff, spec, state)
    try:
        step = next(steps)
        while True:
            closed.steps.append(step)
            assert step.script, "it can be rendered"
            _names_its_files(step.args, closed)
            if wrote:
                wrote(step.args, closed)
            step = steps.send(Reply(0, answer(step, state, closed) if answer else ""))
    except StopIteration:
        return closed


def _own(component: Component, name: str) -> Any:
    """A function of the model of this component's folder; None if it has none."""
    item = component.of if isinstance(component, Removal) else component
    model = f"tests.components.{type(item).__module__.split('.')[2]}.model"
    return getattr(importlib.import_module(model), name, None) if importlib.util.find_spec(model) else None


def converged(component: Component, spec: NodeSpec, state: NodeState) -> Closed:
    """What the steps to the spec do."""
    return close(component, spec, state, compare(component, spec, state).diff)


def applied_to(component: Component, spec: NodeSpec, state: NodeState) -> NodeState:
    """The state after ``apply``."""
    return after(component, spec, state, converged(component, spec, state))


def taken_back(component: Component, spec: NodeSpec, state: NodeState) -> tuple[NodeState, Closed]:
    """The state after ``remove``, and what its steps do."""
    back = Removal(component)
    closed = close(back, spec, state, compare(back, spec, state).diff)
    return after(back, spec, state, closed), closed


def with_text(state: NodeState, path: str, text: str) -> NodeState:
    """The same with another text in a file that is there."""
    return state.model_copy(update={"files": state.files | {path: state.files[path].model_copy(update={"text": text})}})


def _names_its_files(args: Script, closed: Closed) -> None:
    closed.writes |= {put.path: text_of(put.content) for put in getattr(args, "puts", ())}
    closed.removes += [drop.path for drop in getattr(args, "drops", ())]
    closed.removes += [file.path for file in getattr(args, "files", ()) if not file.there]


def after(component: Component, spec: NodeSpec, state: NodeState, closed: Closed) -> NodeState:
    """The state that the steps leave behind."""
    files = {path: file for path, file in state.files.items() if path not in closed.removes}
    dropped = [drop.path for step in closed.steps for drop in getattr(step.args, "drops", ())]
    for path, text in (closed.writes | dict.fromkeys(dropped, "")).items():  # and what `keep` of lib.sh.j2 keeps
        copy = f"{KEPT}{path}"
        if f"{copy}.original" not in files and f"{copy}.absent" not in files:
            kept = state.files.get(path)
            files[f"{copy}.original" if kept else f"{copy}.absent"] = kept or file_of("", state)
        written = [step.args for step in closed.steps if isinstance(step.args, WriteFiles)]
        secret, program = (any(getattr(args, name) == path for args in written) for name in ("secret", "program"))
        mode = 0o600 if secret else 0o755 if program else 0o644
        if path not in dropped:
            files[path] = file_of(text, state).model_copy(update={"mode": mode})
        hash_of = SECRET if secret else files[path].sha256 if path in files else "absent"
        files[f"{copy}.ours"] = file_of(f"{hash_of}\n", state)
    back = [file for step in closed.steps for file in getattr(step.args, "files", ())]
    files |= {file.path: files[f"{KEPT}{file.path}.original"] for file in back if file.there}
    state = without(state.model_copy(update={"files": files}), *(f"{KEPT}{file.path}." for file in back))
    state = without(state, *closed.records)
    records = {path: file_of(text, state) for path, text in closed.records.items() if text}
    state = state.model_copy(update={"files": state.files | records})
    own = _own(component, "closed")
    return own(state, closed) if own else state


def without(state: NodeState, *gone: str) -> NodeState:
    """The same without the files whose paths begin so."""
    return state.model_copy(update={"files": {p: file for p, file in state.files.items() if not p.startswith(gone)}})


def units_of(state: NodeState) -> dict[str, Unit]:
    """The units that could be read."""
    return {} if isinstance(state.units, Unknown) else dict(state.units)


def file_of(text: str, state: NodeState) -> File:
    return File(text=text, mode=0o644, uid=0, gid=0, mtime=state.clock + 10)


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")

"""gpuready's records of what was there before. They are removed last."""

from gpuready.base.step import Script, Step, Steps
from gpuready.contract.component import Change, Component, Value
from gpuready.contract.image_boot import FILES
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState


class Ledger(Component):
    """gpuready's own records. ``gpuready remove`` deletes them last; no other verb uses this component."""

    name = "ledger"

    def original(self, spec: NodeSpec, state: NodeState) -> dict[str, Value]:
        return {"ledger.records": 0} if self.actual(spec, state)["ledger.records"] else {}

    def actual(self, spec: NodeSpec, state: NodeState) -> dict[str, Value]:
        return {"ledger.records": len(state.glob("/var/lib/gpuready/"))}

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        yield Step("ledger", Forget(), survives=False, alters=True, summary="forget them")


class Forget(Script, template="ledger/forget"):
    """Remove gpuready's records. Originals that are still needed move aside."""

    image_boot: tuple[str, ...] = FILES

"""A run as it stands in a result document, so that a document can be rendered later in any format.

The document is all there is: a node's state (but for ``probe``) and what a mended key was are lost. Keys that this
release does not know are ignored, as every reader of the document should.
"""

from dataclasses import replace
from ipaddress import ip_address, ip_interface
from typing import Any

from pydantic import ValidationError

from gpuready.base.errors import GpureadyError
from gpuready.base.versions import numbers
from gpuready.catalogue import BY_ID
from gpuready.contract.check import Check, Judged, Level, Verdict
from gpuready.contract.compare import Comparison
from gpuready.contract.component import Change, Disruption, Value
from gpuready.cuda.facts import CompatLib, Host, Image
from gpuready.cuda.predict import Prediction
from gpuready.cuda.tables import Gpu
from gpuready.gpu.stress_figures import Figure, Product
from gpuready.gpu.stress_figures import Gpu as Loaded
from gpuready.model.state import Unknown
from gpuready.network.discovery import Choices, Chosen, Refused
from gpuready.network.links import End, Unpaired
from gpuready.network.nccl_settings import Settings
from gpuready.network.ports import Port
from gpuready.network.tcp import Wire
from gpuready.report import result
from gpuready.report.nccl import NcclAnswer
from gpuready.report.run import SCHEMA, ComponentRun, HostRun, Run
from gpuready.tools.compat.answer import Answer
from gpuready.tools.compat.fixes import Fix
from gpuready.tools.compat.trace import Trace
from gpuready.tools.fabric.launch import Launch
from gpuready.tools.fabric.run import FabricRun, Wanted
from gpuready.tools.fabric.schedule import Pairing
from gpuready.tools.fabric.verdict import Finding

_OTHER = "use the release of gpuready that wrote it"


class DocumentError(GpureadyError):
    """A file that is no result document, or one that this release cannot read."""

    kind = "document"
    exit_code = 5


class RecordedError(GpureadyError):
    """An error of an earlier run."""

    def __init__(self, error: result.Error) -> None:
        super().__init__(error.message, remedy=error.remedy)
        self.recorded = error.kind

    def to_json(self) -> dict[str, str]:
        return {**super().to_json(), "kind": self.recorded}


def restored(document: object) -> tuple[Run, int]:
    """The run and its exit code. Raises :class:`DocumentError`."""
    found = _read(document)
    try:
        return _run(found), found.exit_code
    except ValueError as e:  # a text that should be a number or an address
        raise DocumentError(f"{e}; another release wrote it", remedy=_OTHER) from None


def _run(found: result.Result) -> Run:
    error = found.error
    hosts = [_host(name, host) for name, host in found.hosts.items()]
    unchosen = [host for host in hosts if host.outcome == "skipped" and not host.execs and not host.probed]
    return Run(
        found.verb or "",
        [host for host in hosts if host not in unchosen],
        RecordedError(error) if error is not None else None,
        error is not None and error.kind == "interrupted",
        found.seconds,
        found.source or "",
        [tuple(batch) for batch in found.batches],
        fabric=_fabric(found.fabric) if found.fabric else None,
        back=found.verb == "remove",
        answer=_answer("", found) if "certain" in found.model_fields_set else None,
        unchosen=unchosen,
        ended=found.ended or "",
    )


def _read(document: object) -> result.Result:
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(schema, str):
        raise DocumentError("this is not a result document", remedy="gpuready writes one with --output json:PATH")
    if schema != SCHEMA:
        raise DocumentError(f"the schema is {schema!r}; this release reads {SCHEMA!r}",
                            remedy=_OTHER)  # fmt: skip
    try:
        try:
            return result.Result.model_validate(document)
        except ValidationError as e:
            for error in e.errors(include_url=False, include_input=False):
                if error["type"] == "extra_forbidden":
                    _drop(document, error["loc"])
            return result.Result.model_validate(document)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the document"
        raise DocumentError(f"{place}: {first['msg']}; another release wrote it",
                            remedy=_OTHER) from None  # fmt: skip


def _drop(document: Any, place: tuple[int | str, ...]) -> None:
    *path, last = place
    for key in path:
        document = document[key]
    del document[last]


def _host(name: str, host: result.Host) -> HostRun:
    error = RecordedError(host.error) if host.error is not None else None
    return HostRun(
        name,
        host.outcome,
        error,
        host.execs,
        host.seconds,
        host.state,
        [_component(item, error) for item in host.components],
        [_judged(check) for check in host.checks],
        list(host.notes),
        [replace(_answer(image.image, image), trace=_trace(image.trace)) for image in host.images or ()],
        _nccl(host.nccl) if host.nccl is not None else None,
        None if host.docker_args is None else tuple(host.docker_args),
        attached=None if host.attached is None else tuple(host.attached),
        reboot=host.reboot.model_dump() if host.reboot is not None else None,
        reason=host.reason or "",
        listed=host.inventory,
        status=host.status,
        stress=None if host.stress is None else tuple(map(_loaded, host.stress)),
    )


def _loaded(gpu: result.LoadedGpu) -> Loaded:
    """One GPU of ``verify --level stress``. The document has no MIG mode: a GPU in it is not loaded."""
    figures = {name: Figure(**each.model_dump()) for name, each in gpu.figures.items()}
    products = {name: Product(checksum, 0, 0.0) for name, checksum in gpu.checksums.items()}
    found = gpu.model_dump(exclude={"figures", "checksums"})
    return Loaded(**found, mig=False, figures=figures, products=products)


def _component(item: result.Component, of_host: RecordedError | None) -> ComponentRun:
    diff = tuple(Change(each.key, _value(each.actual), _value(each.expected)) for each in item.diff)
    error = RecordedError(item.error) if item.error is not None else None
    if error is not None and of_host is not None and error.to_json() == of_host.to_json():
        error = of_host  # the host failed by this component
    blocked = error is not None and (not diff or any(isinstance(each.actual, Unknown) for each in diff))
    found = Comparison(item.name, item.applies, item.reason, diff, Disruption[item.disruption], tuple(item.hits),
                       tuple(item.notes), str(error) if blocked else "")  # fmt: skip
    pending = item.waits or "pending" if item.pending else ""
    return ComponentRun(found, item.changed, pending, error, item.attempted, "" if item.pending else item.waits)


def _value(value: result.Value) -> Value:
    return tuple(value) if isinstance(value, list) else value


def _judged(item: result.Check) -> Judged:
    verdict = Verdict(item.status, item.summary, item.evidence, item.remedy)
    component = BY_ID[item.id].component if item.id in BY_ID else ""
    level = Level[item.level]
    return Judged(Check(item.id, "", level, "", "", "", lambda spec, state: verdict, component, item.gpu), verdict)


def _answer(image: str, found: result.Image | result.Result) -> Answer:
    notes = tuple(found.notes or ())
    if found.verdict is None:
        return Answer(image, None, (), found.reason, notes, "gpuready compat --help")
    library = CompatLib(numbers(found.libcuda)) if found.libcuda else None
    # What the host and the image are after a fix is not in the document, and no renderer shows it.
    after = Host((), Gpu("", "")), Image(())
    fixes = tuple(Fix(fix.do, *after, Prediction(fix.verdict, fix.certain, "")) for fix in found.fixes or ())
    return Answer(image, Prediction(found.verdict, found.certain, found.reason, library), fixes, "", notes)


def _trace(found: result.Trace | None) -> Trace | None:
    return None if found is None else Trace(**{**found.model_dump(), "proof": tuple(found.proof)})


def _nccl(found: result.Nccl) -> NcclAnswer:
    launch = found.launch
    return NcclAnswer(
        Settings(
            Choices(tuple(map(_port, found.ports))),
            variables=dict(found.variables),
            problems=tuple(found.problems),
            wires=tuple(
                Wire(each.netdev, ip_interface(each.address), each.line_gbps, each.mtu) for each in found.wires or ()
            ),
            environment=dict(found.environment or {}),
        ),
        None if launch is None else Launch(launch.rank, dict(launch.environment), tuple(launch.argv), 0),
    )


def _port(each: result.NcclPort) -> Chosen | Refused:
    device, _, number = each.port.rpartition(":")
    port = Port(device, int(number) if number.isdecimal() else 0, each.transport, each.state, "", each.netdev, (),
                line_gbps=each.line_gbps)  # fmt: skip
    if each.refused:
        return Refused(port, "unknown", each.refused)
    return Chosen(port, each.gid_index, ip_address(each.address) if each.address else None, each.netdev)


def _fabric(found: result.Fabric) -> FabricRun:
    kind, _, number = found.pairs.partition(":")
    pairing = Pairing(kind, int(number) if number.isdecimal() else 0, found.seed)
    return FabricRun(
        Wanted(pairing, tuple(found.tests), 0),
        found.rounds,
        [_finding(each) for each in found.findings],
        [Unpaired(End(each.host, each.device, each.port), each.other, each.reason) for each in found.unpaired],
        [(each.server, each.client, each.reason) for each in found.not_attempted],
    )


def _finding(each: result.Finding) -> Finding:
    found = each.model_dump(exclude={"unit"})
    return Finding(**{**found, "server": End(**found["server"]), "client": End(**found["client"])})

"""The result document: what every other output is a rendering of, and what scripts read.

Its id is ``gpuready/result/1``; within a version it only grows. It is valid on every exit, also when nothing was done
at all: then ``error`` says why and ``hosts`` is empty. The models are the document and its JSON Schema at once; a
:data:`Text` masks itself. Consumers should ignore keys that they do not know.
"""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, NonNegativeFloat, NonNegativeInt
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import CoreSchema, core_schema

from gpuready import __version__
from gpuready.base.errors import GpureadyError
from gpuready.base.versions import driver
from gpuready.contract.check import STATUSES, Judged, Level
from gpuready.contract.component import Change as Difference
from gpuready.contract.component import Disruption
from gpuready.cuda.predict import VERDICTS
from gpuready.inventory.listing import Listed
from gpuready.model.state import NodeState, Unknown
from gpuready.network.discovery import Chosen
from gpuready.report.exitcode import ORDER
from gpuready.report.mask import mask, mask_state, mask_text, mask_value
from gpuready.report.nccl import NcclAnswer
from gpuready.report.run import OUTCOMES, SCHEMA, VERBS, ComponentRun, HostRun, Run
from gpuready.tools.attach.status import Attached
from gpuready.tools.compat.answer import Answer as Prediction
from gpuready.tools.compat.trace import SOURCES
from gpuready.tools.fabric.commands import TESTS
from gpuready.tools.fabric.run import FabricRun
from gpuready.tools.run_args.arguments import Argument
from gpuready.tools.status.status import Status as NodeStatus


@dataclass(frozen=True)
class OneOf:
    """Annotation: one of these values."""

    values: tuple[str | int, ...]

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        return core_schema.literal_schema(list(self.values))


def optional(description: str = "") -> Any:
    """A key that the document omits if it has no value."""
    return Field(default_factory=lambda: None, description=description or None)


def _rounded(digits: int) -> AfterValidator:
    return AfterValidator(lambda number: round(number, digits))


Text = Annotated[str, AfterValidator(mask_text)]
Texts = list[Text]
Masked = Annotated[dict[str, str], AfterValidator(mask)]
Number = int | float
Seconds = Annotated[NonNegativeFloat, _rounded(3)]
#: An address, in the document as text.
Address = Annotated[str, BeforeValidator(str)]
LevelName = Annotated[str, OneOf(tuple(item.name for item in Level))]
Status = Annotated[str, OneOf(STATUSES)]
Verdict = Annotated[str, OneOf(VERDICTS)]
Value = str | int | bool | list[str] | Unknown | None


class Part(BaseModel):
    """A mapping of the document. Strict on what we write: no other keys."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", from_attributes=True, populate_by_name=True, defer_build=True
    )


class Error(Part):
    kind: Annotated[Text, Field(min_length=1)]
    message: Annotated[Text, Field(min_length=1)]
    remedy: Text


class Change(Part):
    key: str
    actual: Value
    expected: Value


class Component(Part):
    name: str
    applies: bool
    reason: str
    disruption: Annotated[str, OneOf(tuple(item.name for item in Disruption))]
    hits: Texts
    notes: Texts
    attempted: bool
    changed: bool
    pending: bool
    waits: Text = Field(description="why it is pending; in a plan, why it would be")
    error: Error | None
    diff: list[Change]


class Check(Part):
    id: str
    level: LevelName
    gpu: bool
    status: Status
    summary: Text
    evidence: Text
    remedy: Text


class Reboot(Part):
    """The boot_ids, if the node was rebooted."""

    before: str
    after: str
    seconds: NonNegativeFloat


class Fix(Part):
    do: Text
    verdict: Verdict
    certain: bool


class Trace(Part):
    """compat --trace: what a new container of the image got."""

    path: Text = Field(description="libcuda.so.1 as a program in the container loads it; empty: none, or not traced")
    file: Text = Field(description="that path with its links resolved")
    version: Text
    source: Annotated[str, OneOf((*SOURCES, ""))] = Field(
        description="host: mounted from the host; compat, stub, own: a file of the image"
    )
    mode: Text = Field(description="of nvidia-container-runtime")
    why: Text
    cuinit: int | None = Field(description="what cuInit returned there")
    proof: Texts
    differs: Text = Field(description="what is not as predicted")
    unknown: Text = Field(description="why nothing was traced")


class Image(Part):
    """compat: one image on one host."""

    image: Text
    verdict: Verdict | None = Field(description="null: the image could not be judged")
    certain: bool
    reason: Text
    notes: Texts
    libcuda: str | None = Field(description="the image's libcuda, where that one is loaded")
    fixes: list[Fix] = Field(description="what makes it run, best first")
    trace: Trace = optional("compat --trace only")


class NcclPort(Part):
    port: str = Field(description="DEVICE:NUMBER")
    transport: Annotated[str, OneOf(("InfiniBand", "RoCE", "iWARP", "other"))]
    state: Text
    netdev: Text
    gid_index: int | None = Field(description="null: InfiniBand, or not used")
    address: Address | None
    line_gbps: Number | None = Field(description="the netdev's speed")
    refused: Text = Field(description="why it is not used; empty when it is")


class Wire(Part):
    """A network interface for TCP."""

    netdev: str
    address: Address = Field(description="with its prefix length")
    line_gbps: Number | None
    mtu: NonNegativeInt


class Launch(Part):
    rank: NonNegativeInt
    environment: Masked
    argv: Texts


class Nccl(Part):
    variables: Masked
    problems: Texts
    ports: list[NcclPort]
    launch: Launch | None
    wires: list[Wire] = optional("the interfaces, if NCCL uses TCP")
    environment: Masked = optional("variables that are not NCCL's own")


class Figure(Part):
    """verify --level stress: several passes."""

    median: NonNegativeFloat
    min: NonNegativeFloat
    max: NonNegativeFloat
    unit: str


class LoadedGpu(Part):
    """verify --level stress: one GPU."""

    index: NonNegativeInt
    uuid: Text
    slot: Text = Field(description="its PCI address")
    model: Text
    capped: bool = Field(description="its power limit is below the default")
    software: Text = Field(description="of torch; empty: it did not start")
    figures: dict[str, Figure] = Field(
        description="by fp32, tf32, bf16, fp16, fp8 (matrix products), memory, to_gpu, from_gpu, peer, reduce"
    )
    checksums: Masked = Field(description="of the product of each format")
    errors: Masked = Field(description="what did not run, and why")
    wrong: Masked = Field(description="wrong results other than a product's")


class Host(Part):
    outcome: Annotated[str, OneOf(OUTCOMES)]
    error: Error | None
    execs: NonNegativeInt
    seconds: Seconds
    level: LevelName | None
    gpu_checks: NonNegativeInt
    notes: Texts
    reboot: Reboot | None
    components: list[Component]
    checks: list[Check]
    reason: Text = optional("outcome skipped only: why the host was left alone")
    images: list[Image] = optional("compat only")
    nccl: Nccl = optional("nccl only")
    docker_args: Annotated[list[Argument], BeforeValidator(mask)] = optional("docker-args only")
    state: NodeState = optional("probe only")
    attached: Annotated[list[Attached], BeforeValidator(mask)] = optional("rdma: what is on record")
    stress: list[LoadedGpu] = optional("verify --level stress only: the GPUs that were loaded")
    inventory: Annotated[Listed, BeforeValidator(mask)] = optional("inventory only: what it says of this host")
    status: NodeStatus = optional("status only: the node's record, and what changed since")


class Line(Host):
    """jsonl: one host."""

    host: str


class End(Part):
    host: str
    device: str
    port: NonNegativeInt
    netdev: str
    address: str
    gid_index: int | None
    line_gbps: Number | None = Field(description="the netdev's speed in Gbit/s; null: unknown")


class Finding(Part):
    round: NonNegativeInt = Field(description="from 1")
    test: Annotated[str, OneOf(tuple(TESTS))]
    server: End
    client: End
    status: Status
    value: Number | None = Field(description="in unit; null: no figure")
    unit: str
    limit: Annotated[Number, _rounded(6)] | None = Field(
        description="verify.thresholds, in unit; null: none holds here"
    )
    more: dict[str, Number]
    summary: Text
    proof: Text = Field(description="what carried it, by the counters of both ports")
    remedy: Text
    server_said: Text
    client_said: Text
    seconds: Seconds


class Unpaired(Part):
    host: str
    device: str
    port: NonNegativeInt
    other: str
    reason: Text


class NotAttempted(Part):
    server: str
    client: str
    reason: Text


class Fabric(Part):
    pairs: str
    seed: int | None = Field(description="of random:N")
    rounds: NonNegativeInt
    tests: list[str]
    findings: list[Finding]
    unpaired: list[Unpaired]
    not_attempted: list[NotAttempted]


class Summary(Part):
    """All of the document that is not about a single host; jsonl: the last line."""

    schema_: Annotated[str, OneOf((SCHEMA,))] = Field(alias="schema")
    gpuready: str = Field(description="the release that wrote this")
    verb: Annotated[str, OneOf(VERBS)] | None = Field(description="null: none was recognised")
    exit_code: Annotated[int, OneOf(tuple(sorted(ORDER)))]
    error: Error | None
    seconds: Seconds
    level: LevelName | None = Field(description="the level that every judged host reached")
    gpu_checks: NonNegativeInt = Field(description="checks that really saw a GPU, on all hosts")
    batches: list[list[str]] = Field(description="plan, apply: the hosts that differ, in order")
    ended: Text = optional("when the result was written, UTC, such as 2026-11-22T21:00:00Z")
    source: Text = optional("the inventory, as the command line names it")
    verdict: Verdict | None = optional("compat without an inventory, with the keys below: as in images")
    certain: bool = optional()
    reason: Text = optional()
    notes: Texts = optional()
    libcuda: str | None = optional()
    fixes: list[Fix] = optional()
    fabric: Fabric = optional("fabric only: the tests between hosts")


class Result(Summary):
    hosts: dict[str, Host]


def document(run: Run, code: int) -> dict[str, Any]:
    """The whole run as JSON values; ``code`` is the exit code that goes with it."""
    return {**summary(run, code), "hosts": {host.name: host_document(run, host) for host in run.everyone}}


def summary(run: Run, code: int) -> dict[str, Any]:
    """All of the document that is not about a single host."""
    more: dict[str, Any] = {}
    if run.ended:
        more |= {"ended": run.ended, "source": run.probed}
    if run.answer is not None:
        more |= _answer(run.answer)
    if run.fabric is not None:
        more["fabric"] = _fabric(run.fabric)
    return _dumped(Summary.model_validate({
        "schema": SCHEMA,
        "gpuready": __version__,
        "verb": run.verb or None,
        "exit_code": code,
        "error": run.problem,
        "seconds": run.seconds,
        "level": _name(run.level),
        "gpu_checks": sum(host.gpu_checks for host in run.hosts),
        "batches": run.batches,
        **more,
    }))  # fmt: skip


def host_document(run: Run, host: HostRun) -> dict[str, Any]:
    """One host; only ``probe`` carries its state."""
    more: dict[str, Any] = {}
    if host.outcome == "skipped":
        more["reason"] = host.reason
    if run.verb == "compat":
        more["images"] = [
            {"image": item.image, **_answer(item), **({"trace": item.trace} if item.trace else {})}
            for item in host.answers
        ]
    if host.nccl is not None:
        more["nccl"] = _nccl(host.nccl)
    if host.docker_args is not None:
        more["docker_args"] = [asdict(each) for each in host.docker_args]
    if run.verb == "probe" and host.state is not None:
        more["state"] = mask_state(host.state)
    if host.listed is not None:
        more["inventory"] = asdict(host.listed)
    if host.attached is not None:
        more["attached"] = [asdict(each) for each in host.attached]
    if host.status is not None:
        more["status"] = mask(host.status.model_dump())
    if host.stress is not None:
        more["stress"] = host.stress
    return _dumped(Host.model_validate({
        "outcome": host.outcome,
        "error": _error(host.error),
        "execs": host.execs,
        "seconds": host.seconds,
        "level": _name(host.level),
        "gpu_checks": host.gpu_checks,
        "notes": host.notes,
        "reboot": host.reboot,
        "components": [_component(item) for item in host.components],
        "checks": [_check(judged) for judged in host.checks],
        **more,
    }))  # fmt: skip


def result_schema() -> dict[str, Any]:
    """The JSON Schema of one document, Draft 2020-12; ``Line`` and ``Summary`` are those of jsonl."""

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

        def encode_default(self, dft: Any) -> Any:
            """Dump a model by itself: it builds its serializer then. pydantic 2.13 fails on one that is not built."""
            return dft.model_dump(mode="json") if isinstance(dft, BaseModel) else super().encode_default(dft)

    models = [(model, "validation") for model in (Result, Line, Summary)]
    _, found = models_json_schema(models, schema_generator=Untitled)  # type: ignore[arg-type]
    result = found["$defs"].pop("Result")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **result,
        "title": SCHEMA,
        "$defs": found["$defs"],
    }


def _dumped(part: Part) -> dict[str, Any]:
    return part.model_dump(by_alias=True, exclude_unset=True)


def _name(reached: Level | None) -> str | None:
    return None if reached is None else reached.name


def _error(error: GpureadyError | None) -> dict[str, str] | None:
    return None if error is None else error.to_json()


def _component(item: ComponentRun) -> dict[str, Any]:
    found = item.found
    return {
        "name": found.name,
        "applies": found.applies,
        "reason": found.reason,
        "disruption": found.disruption.name,
        "hits": found.hits,
        "notes": found.notes,
        "attempted": item.attempted,
        "changed": item.changed,
        "pending": bool(item.pending),
        "waits": item.pending or item.forecast,
        "error": _error(item.error),
        "diff": [_change(change) for change in found.diff],
    }


def _change(change: Difference) -> dict[str, Any]:
    values = {"actual": change.actual, "expected": change.expected}
    for name, value in values.items():
        if isinstance(value, Unknown):
            values[name] = Unknown(unknown=mask_text(value.unknown))
        else:
            values[name] = mask_value(change.key, value)
    return {"key": change.key, **values}


def _check(judged: Judged) -> dict[str, Any]:
    check = judged.check
    return {"id": check.id, "level": check.level.name, "gpu": check.gpu, **asdict(judged.verdict)}


def _answer(answer: Prediction) -> dict[str, Any]:
    """``verdict`` is null where the image could not be judged, and ``reason`` says why."""
    found = answer.found
    return {
        "verdict": found.verdict if found else None,
        "certain": bool(found and found.certain),
        "reason": found.reason if found else answer.unknown,
        "notes": [*(found.notes if found else ()), *answer.notes],
        "libcuda": driver(found.library.version) if found and found.library else None,
        "fixes": [
            {"do": fix.do, "verdict": fix.then.verdict, "certain": fix.then.certain} for fix in answer.fixes
        ],
    }  # fmt: skip


def _nccl(answer: NcclAnswer) -> dict[str, Any]:
    found = answer.settings
    return {
        "variables": found.variables,
        "problems": found.problems,
        "ports": [
            {
                "port": each.port.name,
                "transport": each.port.transport,
                "state": each.port.state,
                "netdev": each.netdev if isinstance(each, Chosen) else each.port.netdev,
                "gid_index": each.gid_index if isinstance(each, Chosen) else None,
                "address": each.address if isinstance(each, Chosen) else None,
                "line_gbps": each.port.line_gbps,
                "refused": "" if isinstance(each, Chosen) else each.reason,
            }
            for each in found.choices.ports
        ],
        "launch": answer.launch,
        **({"wires": found.wires, "environment": found.environment} if found.wires else {}),
    }


def _fabric(fabric: FabricRun) -> dict[str, Any]:
    pairing = fabric.wanted.pairing
    return {
        "pairs": str(pairing),
        "seed": pairing.seed,
        "rounds": fabric.rounds,
        "tests": fabric.wanted.tests,
        "findings": fabric.findings,
        "unpaired": [
            {"host": each.end.host, "device": each.end.device, "port": each.end.port, "other": each.other,
             "reason": each.reason}
            for each in fabric.unpaired
        ],
        "not_attempted": [
            {"server": server, "client": client, "reason": reason} for server, client, reason in fabric.not_attempted
        ],
    }  # fmt: skip

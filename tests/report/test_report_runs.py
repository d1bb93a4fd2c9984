"""Made-up runs, one for every way in which a run can end, and the exit code of each; other tests use them, too."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpuready.base.errors import (
    EXIT_CODES,
    BugError,
    ConvergeError,
    GpureadyError,
    InventoryError,
    SpecError,
    SpecErrors,
    UnreachableError,
    UsageError,
    Where,
)
from gpuready.base.facts import Answer
from gpuready.catalogue import CATALOGUE
from gpuready.cli.parts import part_of, parts
from gpuready.contract.attempt import Attempt
from gpuready.contract.check import Check, Judged, Level, Verdict, fail, passed, skip, unknown, warn
from gpuready.contract.compare import Comparison
from gpuready.contract.component import Change, Disruption
from gpuready.model.state import OS, Container, Docker, Driver, File, NodeState, Unknown
from gpuready.result.exitcode import MEANING, exit_code
from gpuready.result.human import human
from gpuready.result.model import INTERRUPTED, CheckResult, ComponentResult, Error, HostResult, Run, Scope
from gpuready.result.verbs import VERBS

TOOLKIT = Comparison(
    "toolkit",
    True,
    "GPU containers need it",
    (
        Change("toolkit.nvidia-container-toolkit", "1.18.2-1", "1.20.0-1"),
        Change("toolkit.nvidia-container-toolkit.held", False, True),
    ),
    Disruption.recreate,
    ("trainer (nvcr.io/nvidia/pytorch:26.01-py3)",),
    ("its postinst runs systemctl daemon-reload",),
)
DOCKER = Comparison(
    "docker",
    True,
    "Docker is on the node",
    (
        Change("docker.runtimes.nvidia.path", None, "nvidia-container-runtime"),
        Change("docker.live-restore", False, True),
    ),
    Disruption.reload,
)
RESTART = Comparison(
    "docker",
    True,
    "",
    (Change("docker.running.default-shm-size", 67108864, 8589934592),),
    Disruption.restart,
    ("web (nginx)",),
)
BROKEN = Comparison(
    "docker", True, "", error="/etc/docker/daemon.json: line 3 is no JSON; fix it by hand; it was not changed"
)
ABSENT = Comparison("docker", False, "no Docker on this node")
SAME = Comparison("toolkit", True, "GPU containers need it")
STATE = NodeState(
    os=OS(id="debian", name="Debian GNU/Linux 13 (trixie)"),
    kernel="6.12.48+deb13-amd64",
    machine="x86_64",
    init="systemd",
    have=("apt-get", "systemctl"),
    driver=Driver(proc_version="580.95.05", gpus=("0000:17:00.0",), pci=("0000:17:00.0 0x030200",)),
    docker=Docker(
        version="26.1.5",
        runtimes={"runc": "runc", "nvidia": "nvidia-container-runtime"},
        default_runtime="runc",
        containers=(Container(id="4f", name="trainer", image="pytorch", gpu=True),),
    ),
    files={
        "/etc/docker/daemon.json": File(
            text='{"proxies": {"http-proxy": "http://joe:s3cret@proxy:3128"}}', mode=0o600, uid=0, gid=0, mtime=1
        ),
        "/etc/ld.so.conf.d/odd.conf": File(text="/opt/caf\udce9/lib\n", mode=0o644, uid=0, gid=0, mtime=1),
    },
)


def check(
    id: str, verdict: Verdict, component: str = "", *, level: Level = Level.effective, gpu: bool = False
) -> CheckResult:
    """A verdict of a check that exists only here."""
    made = Check(id, "title", level, "cause", "confirm", "fix", lambda spec, state: verdict, component, gpu)
    return CheckResult.of(Judged(made, verdict))


def component(found: Comparison, *, attempted: bool = True, **more: Any) -> ComponentResult:
    """A component with this comparison. ``more``: fields of an attempt."""
    return replace(ComponentResult.of(Attempt(found, **more)), attempted=attempted)


LDCACHE = check("libcuda.ldcache", passed("libcuda.so.1 is in the cache"))
NO_RUNTIME = check("docker.runtime", fail("docker info lists runc, not nvidia", "apply"), "docker")
RUNTIME = check("docker.runtime", passed("docker info lists nvidia"))
NO_GPU = check("driver.loaded", skip("no NVIDIA GPU on this node"), gpu=True)
LOADED = check("driver.loaded", passed("the nvidia module 580.95.05 is loaded"), gpu=True)
COUNTED = check("gpu.count", passed("8 GPUs seen"), gpu=True)
UNPINNED = check(
    "gpu.count", warn("8 GPUs seen, but the spec does not say how many to expect", "set hardware: {gpus: 8}"), gpu=True
)
UNSEEN = check("gpu.count", unknown("no GPU found; a GPU that fell off the bus is not listed"), gpu=True)
STUB = check(
    "libcuda.stub",
    fail("the cache lists a stub", "take the directory out of ld.so.conf.d", "/usr/local/cuda/lib64/stubs/libcuda.so"),
    level=Level.config,
)
LOST = check(
    "gpu.count", fail("7 of 8 GPUs seen, not 0000:9b:00.0", "power-cycle the node", "0000:9b:00.0: rev ff"), gpu=True
)
SEVEN = (
    check("libcuda.init", fail("CUDA sees 7 of 8 GPUs", because="gpu.count"), "ldso", gpu=True),
    check("docker.smoke", fail("a container has 7 of 8 GPU device nodes", because="gpu.count"), "docker"),
)
DIFFERS = check(
    "docker.config", fail("2 differences: docker.runtimes.nvidia.path, docker.live-restore"), level=Level.config
)


def host(
    name: str,
    outcome: str = "ok",
    *items: ComponentResult,
    checks: tuple[CheckResult, ...] = (LDCACHE, RUNTIME, NO_GPU),
    error: GpureadyError | None = None,
    notes: tuple[str, ...] = (),
) -> HostResult:
    """One host; unless it was never reached, it has been probed."""
    made = HostResult(name, outcome=outcome, seconds=10.0, components=list(items), notes=list(notes))
    made.error = Error.of(error) if error is not None else None
    if outcome not in ("unreachable", "not_attempted"):
        made.execs, made.seconds, made.checks = 1, 0.4, list(checks)
        made.read(STATE)
    return made


def run(verb: str, *hosts: HostResult, interrupted: bool = False) -> Run:
    """A run of a second and a half."""
    error = INTERRUPTED if interrupted else None
    made = Run(verb, list(hosts), error=error, seconds=1.5, source="hosts.yaml", part=part_of(verb))
    made.scope = Scope() if verb == "verify" else None
    made.choice = "-i hosts.yaml"
    return made


def differing(name: str, *checks: CheckResult) -> HostResult:
    """A host on which both components differ, and nothing was done yet."""
    return host(name, "would_change", component(TOOLKIT), component(DOCKER), checks=checks)


def blocked(outcome: str, *items: ComponentResult) -> HostResult:
    """A host on which Docker cannot be compared."""
    return host("gpu01", outcome, *items, component(BROKEN, error=ConvergeError(BROKEN.error)))


ROLLED_BACK = ConvergeError(
    "docker: dockerd did not answer within 60 s\n  Oct 06 10:00:01 failed to start daemon\n"
    "the former daemon.json was put back",
    remedy="journalctl -u docker -n 50",
)
NO_ROUTE = UnreachableError("10.0.0.4: no route to host", remedy="is it up, and is the address right?")
MISSPELT = SpecError("unknown key", where=Where("hosts.yaml", 3), given="gpuz", near="gpus")
WAITS = "until idle: class restart would affect web (nginx)"
HOSTILE = ConvergeError("evil \x1b[2J\x07 \u202e name \udc80 https://joe:s3cret@repo/ --password hunter2")


#: Exit code, verb, and the hosts of a run, made anew each time.
RUNS: dict[str, tuple[int, str, Callable[[], list[HostResult]]]] = {
    "converged": (0, "apply", lambda: [host("lab1", "ok", component(SAME), component(ABSENT)), host("lab2")]),
    "proven": (0, "verify", lambda: [
        host("gpu01", checks=(LOADED, COUNTED, LDCACHE)),
        host("gpu02", checks=(LOADED,)),
    ]),
    "half-blind": (0, "verify", lambda: [host("gpu01", checks=(LOADED, COUNTED)), host("gpu02")]),
    "would-change": (0, "plan", lambda: [
        differing("gpu01", LDCACHE, DIFFERS, NO_RUNTIME, UNSEEN),
        differing("gpu02", LDCACHE, DIFFERS, NO_RUNTIME, UNSEEN),
        host("gpu03", "would_change", component(SAME), component(DOCKER), checks=(LDCACHE, DIFFERS, NO_RUNTIME)),
    ]),
    "changed": (0, "apply", lambda: [
        host("lab1", "changed", component(TOOLKIT, changed=True), component(DOCKER, changed=True)),
    ]),
    "failed": (1, "apply", lambda: [
        host("gpu01", "failed", component(TOOLKIT, changed=True), component(DOCKER, error=ROLLED_BACK),
             error=ROLLED_BACK),
        host("gpu02", "failed", component(TOOLKIT, error=HOSTILE), component(DOCKER, attempted=False),
             error=HOSTILE),
    ]),
    "unreachable": (4, "plan", lambda: [
        host("gpu04", "unreachable", error=NO_ROUTE),
        host("gpu05", "not_attempted"),
        host("lab1"),
    ]),
    "pending": (7, "apply", lambda: [
        host("gpu01", "pending", component(TOOLKIT, changed=True), component(RESTART, pending=WAITS),
             checks=(LDCACHE, DIFFERS)),
    ]),
    "warnings": (0, "verify", lambda: [
        host(f"gpu{n:02}", checks=(LOADED, UNPINNED, LDCACHE), notes=("ignored: ansible_pipelining",))
        for n in range(1, 17)
    ]),
    "differs": (3, "verify", lambda: [differing("gpu01", DIFFERS, STUB, UNSEEN), host("gpu02", checks=(STUB,))]),
    "lost": (3, "verify", lambda: [
        host("gpu01", checks=(LOADED, LOST, *SEVEN)),
        host("gpu02", checks=(LOADED, LOST, *SEVEN)),
        host("gpu03", checks=(LOADED, LOST, SEVEN[0])),
        host("gpu04", checks=(LOADED, LOST)),
        host("gpu05", checks=(LOADED, COUNTED, LDCACHE)),
    ]),
    "uncomparable": (1, "plan", lambda: [blocked("would_change", component(TOOLKIT))]),
    "blind": (3, "verify", lambda: [blocked("failed")]),
    "probed": (0, "record", lambda: [host("gpu01", checks=())]),
    "host-bug": (70, "plan", lambda: [host("gpu01", "failed", error=BugError("KeyError: 'x'"))]),
    "interrupted-late": (130, "apply", lambda: [
        host("gpu01", "changed", component(DOCKER, changed=True)),
        host("gpu02", "not_attempted"),
    ]),
}  # fmt: skip
#: Exit code, verb, and the error of a run without hosts; None: it was interrupted.
ERRORS: dict[str, tuple[int, str, GpureadyError | None]] = {
    "usage": (64, "plan", UsageError("no inventory: -i is missing", remedy="gpuready plan -i hosts.yaml")),
    "no-verb": (64, "", UsageError("Missing command")),
    "spec": (5, "apply", SpecErrors([MISSPELT])),
    "nothing": (5, "plan", InventoryError("no host matches")),
    "bug": (70, "verify", BugError("bug in gpuready: ValueError: x")),
    "interrupted": (130, "apply", None),
}
CODES = {name: code for name, (code, *_) in {**RUNS, **ERRORS}.items()}


def sample(name: str) -> Run:
    """A fresh run by its name in :data:`CODES`."""
    if name in ERRORS:
        _, verb, error = ERRORS[name]
        return Run(verb, error=INTERRUPTED if error is None else Error.of(error))
    _, verb, hosts = RUNS[name]
    made = run(verb, *hosts(), interrupted=name == "interrupted-late")
    for host in made.hosts if verb == "record" else ():
        host.parts["state"] = host.state
    return made


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_exit_code(name: str, code: int) -> None:
    assert exit_code(sample(name)) == code


def test_plan_tells_changes_only_when_asked() -> None:
    assert exit_code(sample("would-change"), detailed=True) == 2
    assert exit_code(sample("converged"), detailed=True) == 0
    assert exit_code(sample("uncomparable"), detailed=True) == 1


def test_apply_fails_on_a_failed_check_but_not_on_an_unknown_one() -> None:
    assert exit_code(run("apply", host("lab1", "changed", checks=(STUB,)))) == 3
    assert exit_code(run("apply", host("lab1", "changed", checks=(UNSEEN,)))) == 0


def test_what_is_unknown_of_an_advisory_check_is_a_note() -> None:
    advice = replace(UNSEEN, advisory=True)
    assert exit_code(run("verify", host("lab1", checks=(UNSEEN,)))) == 3
    assert exit_code(run("verify", host("lab1", checks=(LOADED, advice)))) == 0
    text = human(run("verify", host("lab1", checks=(LOADED, advice))), 0)
    assert "UNKNOWN  gpu.count on lab1" in text and "CHECKS UNKNOWN" not in text
    failed = replace(advice, status="fail")
    assert exit_code(run("verify", host("lab1", checks=(failed,)))) == 3
    assert [check.id for check in CATALOGUE if check.advisory] == [
        "pcie.acs", "pcie.ordering", "slurm.gres", "image.compat", "rdma.mtu", "rdma.pfc", "rdma.trust", "rdma.ecn",
    ]  # fmt: skip


def test_apply_calls_ready_what_verify_passes_and_nothing_else() -> None:
    examined = STATE.model_copy(update={"active": {"done": Answer()}})
    for state, checks, ready in (
        (examined, (LOADED, COUNTED), True),
        (STATE, (LOADED, COUNTED), False),  # nothing changed, so the active checks did not run
        (examined, (LOADED, UNSEEN), False),
        (examined, (LOADED, replace(UNSEEN, advisory=True)), True),
    ):
        done = run("apply", host("gpu01", "changed", checks=checks))
        done.hosts[0].read(state)
        unknown = UNSEEN in checks
        words = "is ready" if ready else f"matches its spec{', but 1 check is unknown: verify fails' * unknown}"
        assert human(done, exit_code(done)).splitlines()[-1].startswith(f"OK: 1 node {words}; "), (state.active, checks)
        done.verb = "verify"
        assert not ready or exit_code(done) == 0


def test_the_worst_code_wins() -> None:
    outcomes = [host("a", "not_attempted"), host("b", "unreachable", error=NO_ROUTE), host("c", "pending")]
    assert exit_code(run("apply", *outcomes)) == 4
    assert exit_code(run("apply", *outcomes, host("d", "failed", error=ROLLED_BACK))) == 1
    assert exit_code(run("apply", outcomes[0], outcomes[2])) == 6
    assert exit_code(run("apply", *outcomes, interrupted=True)) == 130


def test_every_code_has_a_meaning() -> None:
    assert set(EXIT_CODES) == set(MEANING)


def test_a_verb_whose_part_can_fail_a_run_says_what_code_3_means() -> None:
    own = {part.verb for part in parts() if {"failing", "fails"} & vars(type(part)).keys()}
    assert own == {"compat"}
    assert all(f"{verb}: {VERBS[verb].code_3}" in MEANING[3] and VERBS[verb].code_3 for verb in own)


def test_unknown_is_shown_as_such() -> None:
    blind = Comparison(
        "toolkit",
        True,
        "",
        (Change("toolkit.x", Unknown(unknown="dpkg is locked"), "1"),),
        error="toolkit.x: dpkg is locked",
    )
    assert exit_code(run("verify", host("a", "failed", component(blind)))) == 3

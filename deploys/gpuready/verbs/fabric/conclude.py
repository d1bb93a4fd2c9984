"""Turn what a run of ``gpuready fabric`` found into its result: the part of the verb, and the checks of each host."""

from datetime import date

from gpuready.fabric.checks import judge_host
from gpuready.fabric.run import FabricRun
from gpuready.result.model import CheckResult, Run
from gpuready.verbs.fabric.part import Fabric, NotAttempted, Unpaired
from gpuready.verbs.fabric.rounds import Hosts


def conclude(run: Run, hosts: Hosts, found: FabricRun) -> Run:
    """Return the run with its result, also after an interrupt.

    A host is judged by its findings, unless no other host could be reached from it.
    """
    run.parts["fabric"] = fabric_of(found)
    for name, result in hosts.results.items():
        if result.outcome == "ok" and name in found.met:
            judged = judge_host(found, name, hosts.entries[name].spec, date.today())
            result.checks = list(map(CheckResult.of, judged))
        elif result.outcome == "ok":
            result.leave_out("none of its pairs could be tested")
    return run


def fabric_of(found: FabricRun) -> Fabric:
    """Return what was found, in the form of the result document."""
    pairing = found.wanted.pairing
    return Fabric(
        str(pairing),
        pairing.seed,
        found.rounds,
        found.wanted.tests,
        tuple(found.findings),
        tuple(Unpaired(p.end.host, p.end.device, p.end.port, p.other, p.reason) for p in found.unpaired),
        tuple(NotAttempted(*pair) for pair in found.not_attempted),
        found.measured or None,
        found.search,
        found.named or None,
    )

"""``gpuready verify``: check every node against its spec. Reads only, unless a test container or load is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gpuready.base.errors import UsageError
from gpuready.cli.options import STATE, HostVerb, Number, verify_options

if TYPE_CHECKING:
    from gpuready.model.spec import NodeSpec
    from gpuready.result.model import HostResult

#: Seconds of load, without --seconds.
SECONDS = 10
_HELP = """Compare every node with its spec, and test that it works.

\b
  gpuready verify -i hosts.yaml
  gpuready verify -i hosts.yaml --output human --output junit:report.xml
  gpuready verify -i hosts.yaml --passive
  gpuready verify -i hosts.yaml --state states.json
  gpuready verify -i hosts.yaml --output human --output intoto:evidence.json    a statement that can be signed
  gpuready verify -i hosts.yaml --level stress --seconds 60    load and measure every idle GPU
  gpuready stress -i hosts.yaml                                the same: short for verify --level stress
"""


@click.command("verify", cls=HostVerb, help=_HELP)
@verify_options
@STATE
@click.option("--passive", is_flag=True, help="Judge only what the probe reads; run no active tests.")
@click.option("--level", type=click.Choice(["config", "effective", "smoke", "stress"]),
              help="How deep to check, overriding verify.level in the spec. config: only files; effective: also "
              "running engines, and a new container if verify.image is set; smoke: as effective, with a note if "
              "verify.image is not set; stress: also loads all GPUs of idle nodes with the PyTorch of verify.torch or "
              "verify.image, or runs DCGM's diagnostic (dcgm.diag).")  # fmt: skip
@click.option("--seconds", type=Number(1, 3600), metavar="SECONDS",
              help=f"Seconds of load for --level stress; all GPUs at once.  [default: {SECONDS}]")  # fmt: skip
def command(state: str | None, passive: bool, level: str | None, seconds: int | None, **given: Any) -> int:
    from gpuready.cli.online import online, recorded_or_online
    from gpuready.cli.request import request
    from gpuready.result.model import Scope
    from gpuready.run.access import Work

    stress = level == "stress"
    if stress and (passive or state is not None):
        raise UsageError(f"--level stress needs the nodes: leave out {'--passive' if passive else '--state'}")
    if seconds is not None and not stress:
        raise UsageError("--seconds is for --level stress")
    if level and not stress:
        given["extra_vars"] = (*given["extra_vars"], (f"verify.level={level}", "--level"))
    wanted = request("verify", **given)
    if state is not None and any(target.form == "intoto" for target in wanted.outputs):
        raise UsageError("--output intoto is about nodes, and --state is a recording: leave out one of them")
    if stress:
        run = online(wanted, using=Work("gpuready.verbs.verify.stress:load", {"seconds": seconds or SECONDS}))
    else:
        run = recorded_or_online(wanted, state, passive=passive)
    from gpuready.run.evaluate import judge_racks  # loaded by now, unless the run was interrupted

    left = None if wanted.selected is None else tuple(sorted(wanted.selected))
    run.scope = Scope(run.recorded, passive, left)
    entries = {entry.name: entry for entry in wanted.entries}
    judge_racks(run.hosts, entries)
    for host in run.hosts:
        spec = entries[host.name].spec
        host.asked = "stress" if stress else spec.verify.level
        if host.checks and not host.reason:
            host.notes += _unreached(host, spec)
    return wanted.deliver(run)


def _unreached(host: HostResult, spec: NodeSpec) -> list[str]:
    """Return a note if a level was asked for at which nothing was tested, with the reason."""
    if not host.untested:
        return []
    checks = (check.summary for check in host.checks if check.level == host.asked)
    why = next(checks, "its checks need the second script")
    if host.asked == "smoke" and not spec.verify.image:
        why = "no container was started, because the spec names no verify.image"
    done = "loaded" if host.asked == "stress" else "tested"
    return [f"nothing was {done} at level {host.asked}: {why}"]

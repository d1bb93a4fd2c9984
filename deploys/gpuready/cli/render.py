"""``gpuready render``: print configuration for other systems, made from the spec. Does not connect."""

from __future__ import annotations

import json
from typing import Any

import click

from gpuready.cli.options import Verb, hosts
from gpuready.cli.output import tell_skipped
from gpuready.cli.request import Request, request
from gpuready.cli.sink import say
from gpuready.core.errors import UsageError
from gpuready.report.run import Run
from gpuready.spec.images import named
from gpuready.tools.render import dashboard, gcp_batch, prometheus

_HELP = """Print configuration for Prometheus and Grafana, or a job for Google Cloud Batch.

\b
  gpuready render prometheus -i hosts.yaml   scrape_configs, to go into prometheus.yml
  gpuready render rules                      alert rules, for rule_files
  gpuready render grafana                    the dashboard, to import
  gpuready render gcp-batch -i hosts.yaml --limit job --machine-type a3-highgpu-8g -- train.py
"""


@click.command("render", cls=Verb, help=_HELP)
@click.argument("what", type=click.Choice(["prometheus", "rules", "grafana", "gcp-batch"]))
@hosts
@click.option("--machine-type", default="", metavar="TYPE", help="gcp-batch: the VM's machine type.")
@click.option(
    "--accelerator",
    default="",
    metavar="TYPE",
    help="gcp-batch: GPUs to attach, for machine types without GPUs.",
)
@click.option("--boot-image", default="", metavar="IMAGE", help="gcp-batch: boot image (default: chosen by Batch).")
@click.argument("script", nargs=-1, metavar="[-- SCRIPT ARGS...]")
def command(what: str, inventory: tuple[str, ...], script: tuple[str, ...], **given: Any) -> int:
    """Print it."""
    machine = {name: given.pop(name) for name in ("machine_type", "accelerator", "boot_image")}
    if what == "gcp-batch":
        say(json.dumps(_job(request("render", inventory=inventory, **given), script, **machine), indent=2))
        return 0
    if script or any(machine.values()):
        raise UsageError("a script and the options of the machine are for gcp-batch")
    if what != "prometheus" and inventory:
        raise UsageError(f"render {what} is the same for all hosts", remedy="leave -i out")
    if what == "grafana":
        say(json.dumps(dashboard.dashboard(), indent=2))
    elif what == "rules":
        say(prometheus.rules().rstrip())
    else:
        found = request("render", inventory=inventory, **given)
        entries, run = found.entries, Run("render")
        run.leave_alone(found.skipped)
        tell_skipped(run, found.color)
        say(prometheus.scrape_configs(entries).rstrip())
        for name in prometheus.unreachable(entries):
            say(f"note: {name} listens on loopback only: set monitoring.listen, such as 0.0.0.0:9879", err=True)
    return 0


def _job(wanted: Request, script: tuple[str, ...], **machine: str) -> dict[str, Any]:
    names = [entry.name for entry in wanted.entries]
    if len(names) != 1:
        raise UsageError(f"gcp-batch takes exactly one host, and {len(names)} are chosen", remedy="--limit")
    entry, machine_type = wanted.entries[0], machine["machine_type"]
    spec = entry.spec
    image = spec.verify.image or next((one.ref for one in named(spec.images)), "")
    gpus = spec.hardware.expected_gpus
    lacking = {
        "a machine type": ("--machine-type, such as a3-highgpu-8g", machine_type),
        "a script": ("-- train.py", script),
        "an image": (f"verify: {{image: IMAGE}} in the spec of {entry.name}", image),
        "the number of GPUs": (f"hardware: {{gpus: NUMBER}} in the spec of {entry.name}", gpus),
        "GPUs (this machine type has none)": (
            "--accelerator, such as nvidia-tesla-t4, or another --machine-type",
            machine["accelerator"] or not machine_type or gcp_batch.has_gpus(machine_type),
        ),
    }
    if missing := {what: remedy for what, (remedy, there) in lacking.items() if not there}:
        raise UsageError(
            f"{entry.name} ({entry.source}): a job of Batch needs {'; '.join(missing)}",
            remedy="; ".join(missing.values()),
        )
    assert gpus is not None
    return gcp_batch.job(gcp_batch.Job(image, script=script, **machine), gpus, spec)

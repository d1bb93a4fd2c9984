"""``gpuready render``: what a monitoring system is given; nothing is connected."""

from __future__ import annotations

import json
from typing import Any

import click

from gpuready.cli.options import Verb, hosts, request
from gpuready.errors import UsageError
from gpuready.monitoring import dashboard, prometheus

_HELP = """Print what Prometheus and Grafana need for the nodes.

\b
  gpuready render prometheus -i hosts.yaml   scrape_configs, to go into prometheus.yml
  gpuready render rules                      alert rules, for rule_files
  gpuready render grafana                    the dashboard, to import
"""


@click.command("render", cls=Verb, help=_HELP)
@click.argument("what", type=click.Choice(["prometheus", "rules", "grafana"]))
@hosts
def command(what: str, inventory: tuple[str, ...], **given: Any) -> int:
    """Print it."""
    if what != "prometheus" and inventory:
        raise UsageError(f"render {what} is the same for all hosts", remedy="leave -i out")
    if what == "grafana":
        click.echo(json.dumps(dashboard.dashboard(), indent=2))
    elif what == "rules":
        click.echo(prometheus.rules(), nl=False)
    else:
        entries = request("render", inventory=inventory, **given).entries
        click.echo(prometheus.scrape_configs(entries), nl=False)
        for name in prometheus.unreachable(entries):
            click.echo(f"note: {name} answers only to itself: say monitoring.listen, such as 0.0.0.0:9879", err=True)
    return 0

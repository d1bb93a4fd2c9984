"""Options that several verbs share. Only declared here, so that ``--help`` needs nothing else.

:mod:`gpuready.cli.request` makes sense of what was given.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from gpuready.cli.main import held
from gpuready.report.render import FABRIC_FORMATS, FORMATS

F = TypeVar("F", bound=Callable[..., Any])
#: The names in :data:`gpuready.node.NODE` and those of the classes of disruption, in their order; a test holds them.
COMPONENTS = (
    "driver", "repository", "toolkit", "legacy", "config", "ldso", "devices", "cdi", "memlock", "rdma",
    "nccl", "engine", "docker", "containerd", "crio", "monitoring", "wheels", "reconverge",
)  # fmt: skip
DISRUPTIONS = ("none", "reload", "recreate", "restart", "reboot")
#: Seconds, as :data:`gpuready.state.probe.TIMEOUT`.
PROBE_TIMEOUT = 30
EXIT_CODES = "Exit codes: gpuready --help"


class Verb(click.Command):
    """A verb's help says where the exit codes are listed."""

    def __init__(self, name: str | None, **attributes: Any) -> None:
        super().__init__(name, **{**attributes, "epilog": EXIT_CODES})


class HostVerb(Verb):
    """A verb over hosts. What it needs is imported when it runs and not for its help; signals wait meanwhile."""

    def invoke(self, ctx: click.Context) -> Any:
        with held():
            importlib.import_module("gpuready.cli.request")
        return super().invoke(ctx)


_HOSTS = (
    click.option("-i", "--inventory", multiple=True, metavar="INVENTORY",
                 help="Ansible YAML or JSON, an executable that prints it, hosts: admin@10.0.0.7,  or @local "
                 "(this machine). Repeatable."),
    click.option("--limit", multiple=True, metavar="PATTERN",
                 help="Only these: name, group, glob, !without. Repeatable."),
    click.option("--allow-exec", is_flag=True, help="Run executable inventories, cmd: secrets and ProxyCommand."),
    click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto",
                 help="Default auto: on a terminal, unless NO_COLOR is set."),
)  # fmt: skip


def _output(forms: Sequence[str]) -> Callable[[F], F]:
    return click.option("--output", multiple=True, metavar="FORMAT[:PATH]",
                        help=f"{', '.join(forms)}; to stdout or into a file. Repeatable.")  # fmt: skip


_OUTPUT = _output(FORMATS)
_COMPONENTS = (
    click.option("--only", multiple=True, metavar="COMPONENT", help=f"One of {', '.join(COMPONENTS)}. Repeatable."),
    click.option("--skip", multiple=True, metavar="COMPONENT", help="All but this one. Repeatable."),
)
_REACH = (
    click.option("--host-keys", type=click.Choice(["strict", "accept-new"]), default="strict",
                 help="accept-new stores the key of a host that is not known yet; for CI."),
    click.option("--parallel", type=click.IntRange(1, 1024), default=64, show_default=True,
                 help="Hosts at a time."),
    click.option("--probe-timeout", type=click.IntRange(1, 3600), default=PROBE_TIMEOUT, show_default=True,
                 metavar="SECONDS", envvar="GPUREADY_PROBE_TIMEOUT", show_envvar=True,
                 help="How long a node may take to answer. Raise it for overloaded nodes."),
)  # fmt: skip
_CONSENT = (
    click.option("--allow-disruption", type=click.Choice(DISRUPTIONS), default="restart",
                 show_default=True, help="The most that may happen; the spec's maintenance may allow less."),
    click.option("--batch", default="", metavar="N|N%|N,N%",
                 help="Hosts at a time, batch after batch. Default: 1,25% where work could be hit, else all."),
)  # fmt: skip
_MAX_FAIL = click.option(
    "--max-fail",
    default="0",
    metavar="N|N%",
    show_default=True,
    help="Hosts that may go wrong; after one more, no further batch begins.",
)  # fmt: skip
STATE = click.option(
    "--state", metavar="FILE", help="Judge recorded states (gpuready probe; - is stdin) instead of connecting."
)


def hosts(function: F) -> F:
    """``-i``, ``--limit``, ``--allow-exec``, ``--color``."""
    return _apply(function, _HOSTS)


def run_options(function: F) -> F:
    """All that verbs which connect and compare have in common."""
    return _apply(function, (*_HOSTS, _OUTPUT, *_COMPONENTS, *_REACH))


def consent_options(function: F) -> F:
    """What may happen, and to how many at once."""
    return _apply(function, _CONSENT)


def change_options(function: F) -> F:
    """As :func:`consent_options`, and when to stop."""
    return _apply(function, (*_CONSENT, _MAX_FAIL))


def probe_options(function: F) -> F:
    """As :func:`run_options`, without components."""
    return _apply(function, (*_HOSTS, _OUTPUT, *_REACH))


def fabric_options(function: F) -> F:
    """As :func:`probe_options`, with the formats of the tests between hosts."""
    return _apply(function, (*_HOSTS, _output(FABRIC_FORMATS), *_REACH))


def _apply(function: F, options: Sequence[Callable[[F], F]]) -> F:
    for option in reversed(options):
        function = option(function)
    return function

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
#: The names of the classes of disruption, in their order; a test holds them.
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
                 help="Ansible YAML or JSON file, executable that prints JSON, host list (admin@10.0.0.7,) or @local "
                 "(this machine). Repeatable."),
    click.option("--limit", multiple=True, metavar="PATTERN",
                 help="Only these hosts: name, group, glob, !exclude. Repeatable."),
    click.option("--allow-exec", is_flag=True, help="Run executable inventories, cmd: secrets and ProxyCommand."),
    click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto",
                 help="auto: on a terminal, unless NO_COLOR is set (default)."),
)  # fmt: skip


def _output(forms: Sequence[str]) -> Callable[[F], F]:
    return click.option("--output", multiple=True, metavar="FORMAT[:PATH]",
                        help=f"{', '.join(forms)}; to stdout, or to the file PATH. Repeatable.")  # fmt: skip


_OUTPUT = _output(FORMATS)
_COMPONENTS = (
    click.option("--only", multiple=True, metavar="COMPONENT",
                 help="Only this component (gpuready explain lists them). Repeatable."),
    click.option("--skip", multiple=True, metavar="COMPONENT", help="All components but this one. Repeatable."),
)  # fmt: skip
_REACH = (
    click.option("--host-keys", type=click.Choice(["strict", "accept-new"]), default="strict",
                 help="accept-new stores the keys of unknown hosts without asking; for CI."),
    click.option("--parallel", type=click.IntRange(1, 1024), default=64, show_default=True,
                 help="Hosts at a time."),
    click.option("--probe-timeout", type=click.IntRange(1, 3600), default=PROBE_TIMEOUT, show_default=True,
                 metavar="SECONDS", envvar="GPUREADY_PROBE_TIMEOUT", show_envvar=True,
                 help="Time for a node to answer. Raise it for overloaded nodes."),
)  # fmt: skip
_CONSENT = (
    click.option("--allow-disruption", type=click.Choice(DISRUPTIONS), default="restart",
                 show_default=True, help="The most disruptive change allowed; maintenance in the spec may allow less."),
    click.option("--batch", default="", metavar="N|N%|N,N%",
                 help="Hosts to change at a time. Default: 1,25% if running work may be affected, else all."),
)  # fmt: skip
_MAX_FAIL = click.option(
    "--max-fail",
    default="0",
    metavar="N|N%",
    show_default=True,
    help="Stop before the next batch if more hosts than this failed.",
)  # fmt: skip
STATE = click.option(
    "--state", metavar="FILE", help="Read the states that gpuready probe recorded (- is stdin); do not connect."
)


def hosts(function: F) -> F:
    """``-i``, ``--limit``, ``--allow-exec``, ``--color``."""
    return _apply(function, _HOSTS)


def run_options(function: F) -> F:
    """Options of the verbs that connect and compare."""
    return _apply(function, (*_HOSTS, _OUTPUT, *_COMPONENTS, *_REACH))


def consent_options(function: F) -> F:
    """``--allow-disruption`` and ``--batch``."""
    return _apply(function, _CONSENT)


def change_options(function: F) -> F:
    """As :func:`consent_options`, and ``--max-fail``."""
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

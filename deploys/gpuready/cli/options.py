"""Options that several verbs share. Only declared here, so that ``--help`` needs nothing else.

:mod:`gpuready.cli.request` makes sense of what was given.
"""

import importlib
import os
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from gpuready.base.errors import UsageError
from gpuready.base.period import seconds
from gpuready.cli import complete
from gpuready.cli.main import held
from gpuready.cli.sink import say
from gpuready.result.formats import EVIDENCE_FORMATS, FORMATS, LISTING_FORMATS, MATRIX_FORMATS, VARIABLE_FORMATS

F = TypeVar("F", bound=Callable[..., Any])
#: The names of the classes of disruption, in their order; a test holds them.
DISRUPTIONS = ("none", "reload", "recreate", "restart", "reboot")
#: Seconds, as :data:`gpuready.model.probe.TIMEOUT`.
PROBE_TIMEOUT = 30
EXIT_CODES = "Exit codes: gpuready --help"
#: Headings of the help for the options that verbs share, in this order after a verb's own options.
CONSENT, HOSTS, CONNECTION, OUTPUT = "Permission and batches", "Hosts", "Connection", "Output"
#: Whether --list-hosts was given, in the metadata of a context.
_LIST_HOSTS = "gpuready.list_hosts"
#: The command line that repeats a verb on some hosts, there: the words before ``--limit``, and those after it.
REPEATED = "gpuready.repeated"
#: What it leaves out: the choice of all hosts, and the results of all, which it would overwrite.
_NOT_REPEATED = ("limit", "shard", "output")


class Number(click.IntRange):
    """A whole number; the error says which are allowed."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a number from {self.min} to {self.max}", param, ctx)


class Shared(click.Option):
    """An option that several verbs share; the help lists it in a section of its own."""

    def __init__(self, *words: Any, section: str, **attributes: Any) -> None:
        super().__init__(*words, **attributes)
        self.section = section


#: Seconds of the longest period: a century.
_LONGEST = 100 * 366 * 86400


def period(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """A time such as 12h, in seconds; 0 for an empty text."""
    found = seconds(value) if value else 0
    if found is None or value.isdigit() or found > _LONGEST:
        raise UsageError(
            f"{param.opts[0]} {value}: not a time", remedy="minutes, hours, days or weeks, such as 30m, 12h, 30d, 8w"
        )
    return found


class Verb(click.Command):
    """A verb; its function returns the exit code. Its help says where the codes are listed.

    ``--list-hosts`` replaces what the verb does.
    """

    def __init__(self, name: str | None, **attributes: Any) -> None:
        super().__init__(name, **{**attributes, "epilog": EXIT_CODES})

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verb's own options, then the shared ones by section."""
        sections: dict[str, list[tuple[str, str]]] = {
            name: [] for name in ("Options", CONSENT, HOSTS, CONNECTION, OUTPUT)
        }
        for param in self.get_params(ctx):
            if record := param.get_help_record(ctx):
                sections[param.section if isinstance(param, Shared) else "Options"].append(record)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        self._tell_environment(ctx)
        if not ctx.meta.get(_LIST_HOSTS):
            return super().invoke(ctx)
        with held():
            from gpuready.cli.listing import list_hosts

        return list_hosts(ctx.command_path.partition(" ")[2], ctx.params)

    def _tell_environment(self, ctx: click.Context) -> None:
        """Name the options that the environment sets: nobody sees them on the command line."""
        for param in self.params:
            if ctx.get_parameter_source(str(param.name)) is ParameterSource.ENVIRONMENT:
                name = str(param.envvar)
                say(f"note: {max(param.opts, key=len)} is from the environment: {name}={os.environ[name]}", err=True)


class HostVerb(Verb):
    """A verb over hosts. What it needs is imported when it runs and not for its help; signals wait meanwhile.

    ``own_script``: how to start a script that stands after ``--``, for a verb that takes none.
    """

    def __init__(self, name: str | None, own_script: str = "", **attributes: Any) -> None:
        super().__init__(name, **attributes)
        self._own_script = own_script

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Say what was meant by an inventory without ``-i``, by ``-i *.yaml``, or by a host of the inventory."""
        ctx.allow_extra_args = True
        given = tuple(args)
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            ctx.meta[REPEATED] = self._repeated(ctx, given)
        if rest and not ctx.resilient_parsing:
            if "--" in given and rest[-1:] == list(given[-1:]):
                after = shlex.join(given[given.index("--") :])
                raise UsageError(
                    f"unexpected argument {rest[0]!r}: {ctx.command_path} takes nothing after --",
                    remedy=f"leave out {after}{self._own_script and f': {self._own_script}'}",
                )
            words = [str(ctx.params[str(each.name)]) for each in self.params if isinstance(each, click.Argument)]
            from gpuready.inventory.sources import names_a_host  # only for this error

            hosts = [name for name in rest if names_a_host(name)]
            files = [*ctx.params["inventory"], *(name for name in rest if name not in hosts)]
            words += [word for name in files for word in ("-i", name)]
            words += [word for name in hosts for word in (("--limit", name) if files else ("-i", f"{name},"))]
            meant = f"{ctx.command_path} {shlex.join(words)}"
            raise UsageError(f"unexpected argument {rest[0]!r}", remedy=f"did you mean: {meant}")
        return rest

    def _repeated(self, ctx: click.Context, given: Sequence[str]) -> tuple[str, str]:
        """The words before and after ``--limit`` that repeat the command on some of its hosts."""
        values, _, order = self.make_parser(ctx).parse_args(list(given))
        words, operands = ctx.command_path.split(), list[str]()
        for param in dict.fromkeys(order):
            found: Any = values.get(str(param.name))
            if isinstance(param, click.Argument):
                operands += [found] if isinstance(found, str) else found if isinstance(found, (list, tuple)) else ()
            elif isinstance(param, click.Option) and param.name not in _NOT_REPEATED:
                plain = param.is_flag or param.count
                name = max(param.opts, key=len) if plain else param.opts[0]
                times = found if param.count else 1
                each = found if param.multiple else [found]
                words += [name] * times if plain else [word for value in each for word in (name, value)]
        if any(word.startswith("-") for word in operands):
            operands.insert(0, "--")
        return shlex.join(words), shlex.join(operands)

    def invoke(self, ctx: click.Context) -> Any:
        with held():
            importlib.import_module("gpuready.cli.request")
        return super().invoke(ctx)


def _environment(name: str) -> dict[str, Any]:
    """Arguments of an option whose default the environment may set; ``--help`` says so."""
    return {"envvar": f"GPUREADY_{name}", "show_envvar": True}


def _placed(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Each text of ``-e`` with the place that errors name."""
    environment = ctx.get_parameter_source(str(param.name)) is ParameterSource.ENVIRONMENT
    return tuple((text, str(param.envvar) if environment else "-e") for text in value)


def _named(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Sequence[str]:
    """Refuse an empty variable of the environment: click takes it for an unset one, which chooses every host."""
    name = str(param.envvar)
    if not value and name in os.environ and not ctx.resilient_parsing:
        raise UsageError(f"{name} is empty", remedy="unset it, or set it to all, to choose all hosts")
    return value


def _shared(section: str) -> Callable[..., Callable[[F], F]]:
    return partial(click.option, cls=Shared, section=section)


def _keep_list_hosts(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[_LIST_HOSTS] = value


_consent, _hosts, _connection, _output = map(_shared, (CONSENT, HOSTS, CONNECTION, OUTPUT))
COLOR = _output("--color", type=click.Choice(["auto", "always", "never"]), default="auto",
                     help="auto (default): only on a terminal, and not if NO_COLOR is set.",
                     **_environment("COLOR"))  # fmt: skip
#: Read without ``-i``, if it is in the current directory.
INVENTORY = "hosts.yaml"
_SOURCES = (
    "Ansible YAML, INI or JSON file, directory, executable that prints JSON, - (stdin), host list (admin@10.0.0.7,), "
    "ssh:PATTERN (hosts in ~/.ssh/config), @local (this machine), or the URL of a file "
    "(https://HOST/FILE#sha256=HEX). Repeatable."
)


def _default(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    return value if value or ctx.resilient_parsing or not Path(INVENTORY).is_file() else (INVENTORY,)


def _inventory(more: str, callback: Callable[..., Any] | None = None) -> Callable[[F], F]:
    return _hosts("-i", "--inventory", multiple=True, metavar="INVENTORY", shell_complete=complete.inventories,
                  help=f"{_SOURCES} {more}", callback=callback, **_environment("INVENTORY"))  # fmt: skip


_HOSTS = (
    _inventory(f"Default: {INVENTORY} in this directory.", _default),
    _hosts("-l", "--limit", multiple=True, metavar="PATTERN", shell_complete=complete.patterns, callback=_named,
                 help="Only these hosts: name, range, group, glob, !exclude. Repeatable.", **_environment("LIMIT")),
    _hosts("-e", "--extra-vars", multiple=True, metavar="KEY=VALUE", callback=_placed,
                 help="For all chosen hosts, a value of the spec (hardware.gpus=8) or a variable (ansible_user=admin); "
                 "overrides the inventory. Repeatable.", **_environment("EXTRA_VARS")),
    _hosts("--list-hosts", is_flag=True, expose_value=False, callback=_keep_list_hosts,
                 help="Print the names of the chosen hosts; do nothing else."),
    _hosts("--ansible", is_flag=True,
                 help="Let ansible-inventory read files and directories: plugins, encrypted files. Needs --allow-exec.",
                 **_environment("ANSIBLE")),
    _hosts("--allow-exec", is_flag=True,
                 help="Run executable inventories, cmd: secrets and ProxyCommand; read any secret.",
                 **_environment("ALLOW_EXEC")),
    _hosts("--allow-read", multiple=True, metavar="REFERENCE",
                 help="Let the inventory read this secret, env:NAME or file:PATH; env:GPUREADY_NAME needs no "
                 "permission. Repeatable.", **_environment("ALLOW_READ")),
    COLOR,
)  # fmt: skip

SHARD = _hosts("--shard", metavar="K/N",
                     help="Only shard K of N. Each host is in one shard. report --merge joins them.")  # fmt: skip
_SHARDED = (*_HOSTS[:2], SHARD, *_HOSTS[2:])


def _no_shard(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Refuse ``--shard`` for a verb that works on one host, or compares hosts with each other."""
    if value is not None:
        raise UsageError(
            f"{ctx.command_path} does not accept --shard: it needs one host, or all of them together",
            remedy="leave out --shard; --limit GROUP chooses hosts that belong together, such as a rack",
        )


_NO_SHARD = click.option("--shard", hidden=True, expose_value=False, callback=_no_shard)


def output(forms: Sequence[str]) -> Callable[[F], F]:
    """``--output``, of a verb's formats."""
    return _output("--output", multiple=True, metavar="FORMAT[:PATH]", shell_complete=complete.listed(forms),
                        help=f"{', '.join(forms)}; to stdout, or to PATH: a file, https://... (PUT) or s3://... "
                        "Repeatable.",
                        **_environment("OUTPUT"))  # fmt: skip


_OUTPUT = output(FORMATS)
_HISTORY = _output("--history", metavar="DIR_OR_URL", default="", shell_complete=complete.files,
                        help="Also keep the result as a new JSON file there, for gpuready history.",
                        **_environment("HISTORY"))  # fmt: skip
_COMPONENTS = (
    _hosts("--only", multiple=True, metavar="COMPONENT", shell_complete=complete.components,
                 help="Only these components: a,b (gpuready explain lists them). Repeatable."),
    _hosts("--skip", multiple=True, metavar="COMPONENT", shell_complete=complete.components,
                 help="All components but these: a,b. Repeatable."),
)  # fmt: skip
_REACH = (
    _connection("--host-keys", type=click.Choice(["strict", "accept-new"]), default="strict",
                 help="accept-new stores the keys of unknown hosts without asking; for CI.",
                 **_environment("HOST_KEYS")),
    _connection("-K", "--ask-become-pass", is_flag=True, help="Ask for sudo's password, once."),
    _connection("--parallel", type=Number(1, 1024), default=64, show_default=True,
                 help="How many hosts to work on at the same time.", **_environment("PARALLEL")),
    _connection("--probe-timeout", type=Number(1, 3600), default=PROBE_TIMEOUT, show_default=True,
                 metavar="SECONDS", help="Time for a node to answer. Raise it for overloaded nodes.",
                 **_environment("PROBE_TIMEOUT")),
    _output("-v", "--verbose", count=True,
                 help="Print each script that ran on a node, and its time, to stderr; the report counts execs and "
                 "names the known_hosts of an inventory. -vv adds connections and bytes.",
                 **_environment("VERBOSE")),
)  # fmt: skip
_WORKERS = (
    _connection("--workers", type=Number(1, 256), metavar="N",
                 help="Spread the hosts over N processes of this machine. Needs Dask (distributed).",
                 **_environment("WORKERS")),
    _connection("--scheduler", default="", metavar="ADDRESS",
                 help="Spread the hosts over the workers of this Dask scheduler: tls://10.0.0.5:8786.",
                 **_environment("SCHEDULER")),
    _connection("--plain-scheduler", is_flag=True,
                 help="Allow a scheduler without TLS on another machine, on a network that you trust."),
)  # fmt: skip
_CONSENT = (
    _consent("--allow-disruption", type=click.Choice(DISRUPTIONS), default="restart",
                 show_default=True, help="The most disruptive change allowed; maintenance in the spec may allow less.",
                 **_environment("ALLOW_DISRUPTION")),
    _consent("--batch", default="", metavar="N|N%|N,N%",
                 help="Hosts to change at a time. Default: 1,25% for changes of class recreate or above, else "
                      "all. A percentage counts the hosts to change.",
                 **_environment("BATCH")),
)  # fmt: skip
_MAX_FAIL = _consent(
    "--max-fail",
    default="0",
    metavar="N|N%",
    show_default=True,
    help="Stop before the next batch if more hosts than this failed while they were changed.",
    **_environment("MAX_FAIL"),
)
_AFTER_BATCH = _consent(
    "--after-batch",
    metavar="COMMAND",
    default="",
    help="Command to run on this machine after each batch (hosts: GPUREADY_BATCH_HOSTS); stop if it fails.",
)
_WAIT_LOCK = _consent(
    "--wait-lock",
    metavar="TIME",
    default="",
    callback=period,
    help="Wait so long for other runs that are changing these nodes, such as 5m. Default: fail at once.",
    **_environment("WAIT_LOCK"),
)
STATE = click.option(
    "--state",
    metavar="FILE",
    shell_complete=complete.files,
    help="Read the states that gpuready record printed (- is stdin); do not connect.",
)
RDMA_RESOURCE = click.option("--rdma-resource", metavar="NAME", default="rdma/rdma", show_default=True,
                             help="The RDMA device plugin's resource.")  # fmt: skip
#: For a verb that must read the nodes: it explains why it refuses the option, and does not offer it.
NO_STATE = click.option("--state", metavar="FILE", hidden=True, shell_complete=complete.files)


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds these options, in this order in the help."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


hosts = _all(*_HOSTS)
#: For ``gpuready inventory``.
inventory_options = _all(*_SHARDED, output(LISTING_FORMATS))
#: For the verbs that connect and compare.
run_options = _all(*_SHARDED, _OUTPUT, _HISTORY, *_COMPONENTS, *_REACH, *_WORKERS)
verify_options = _all(*_SHARDED, output(EVIDENCE_FORMATS), _HISTORY, *_COMPONENTS, *_REACH, *_WORKERS)
consent_options = _all(*_CONSENT)
change_options = _all(*_CONSENT, _MAX_FAIL, _AFTER_BATCH, _WAIT_LOCK)
#: For the verbs that read the nodes, and know no components.
probe_options = _all(*_HOSTS, _OUTPUT, _HISTORY, *_REACH, _NO_SHARD)
#: The same, for verbs that read each node by itself.
each_options = _all(*_SHARDED, _OUTPUT, _HISTORY, *_REACH)
#: The same, for verbs that do something else without an inventory.
if_named_options = _all(_inventory("Without it, no host is read."), *_SHARDED[1:], _OUTPUT, _HISTORY, *_REACH)
status_options = _all(*_SHARDED, output(LISTING_FORMATS), _HISTORY, *_REACH)
nccl_options = _all(*_HOSTS, output((*FORMATS, *VARIABLE_FORMATS)), _HISTORY, *_REACH, _NO_SHARD)
fabric_options = _all(*_HOSTS, output(MATRIX_FORMATS), _HISTORY, *_REACH, *_WORKERS, _NO_SHARD)

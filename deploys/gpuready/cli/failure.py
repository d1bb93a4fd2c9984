"""A run that could not be done: its result, its message and its exit code, in the format that was asked for.

The command line may be what is wrong, so the wanted outputs are read from it leniently, without click.
"""

import re
import sys
from collections.abc import Sequence

import click

from gpuready.base.errors import BugError, GpureadyError, InventoryError, OutputError, UsageError
from gpuready.cli.output import deliver, delivered, given, requested, use_color
from gpuready.cli.sink import complain, say
from gpuready.result.model import INTERRUPTED, Error, Run
from gpuready.result.page import problem
from gpuready.result.verbs import COMMANDS


def interrupted(argv: Sequence[str]) -> int:
    """Ctrl-C before there was a result, or after it."""
    code = delivered()
    return code if code is not None else _deliver(argv, _run(argv, INTERRUPTED))


def failed(argv: Sequence[str], error: Exception) -> int:
    """Any exception; a traceback is shown for our own bugs only."""
    if isinstance(error, GpureadyError):
        told = error
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):
        complain(f"{error.format_message()}\n")
        return UsageError.exit_code
    elif isinstance(error, click.ClickException):
        told = _other_option(error) or UsageError(
            error.format_message().rstrip(".") or type(error).__name__, remedy=_remedy(argv, error)
        )
    else:
        import traceback

        say("".join(traceback.format_exception(error)).rstrip(), err=True)
        told = BugError(
            f"bug in gpuready: {type(error).__name__}: {error}",
            remedy="report it with the traceback on stderr; it is not your mistake",
        )
    if isinstance(told, OutputError):  # there is nowhere to deliver a result to
        complain(problem(str(told), told.remedy, color=use_color(_color(argv), sys.stderr)))
        return told.exit_code
    run = _run(argv, Error.of(told))
    if isinstance(error, InventoryError):
        from gpuready.inventory.hosts import NothingChosen

        run.leave_alone(error.skipped if isinstance(error, NothingChosen) else ())
    return _deliver(argv, run)


def _run(argv: Sequence[str], error: Error) -> Run:
    from gpuready.cli.parts import part_of

    verb = verb_of(argv)
    return Run(verb, error=error, part=part_of(verb))


def _deliver(argv: Sequence[str], run: Run) -> int:
    return deliver(run, requested(argv, run.part.formats), color=_color(argv))


def verb_of(argv: Sequence[str]) -> str:
    """The verb of a command line, or nothing."""
    from gpuready.cli.app import ALIASES

    word, *rest = [*(word for word in argv if not word.startswith("-")), ""]
    word = ALIASES.get(word, (word,))[0]
    both = f"{word} {rest[0]}" if rest else ""
    return both if both in COMMANDS else word if word in COMMANDS else ""


def _color(argv: Sequence[str]) -> str:
    last = ["auto", *given(argv, "--color")][-1]
    return last if last in ("always", "never") else "auto"


#: Options of Ansible, terraform and others, and what to use here.
OTHERS = {
    ("--check", "-C", "--dry-run"): "gpuready plan shows what apply would change; remove and rdma have --dry-run",
    ("--diff", "-D"): "gpuready plan shows each difference",
    ("--auto-approve", "-auto-approve", "--force"): "--yes: do not ask",
    ("--forks", "-f"): "--parallel NUMBER",
    ("--user", "-u"): "-e ansible_user=NAME, -i NAME@HOST, or ansible_user in the inventory",
    ("--private-key", "--key-file"): "-e ansible_ssh_private_key_file=PATH, or IdentityFile in ~/.ssh/config",
    ("--become", "-b"): "leave it out: gpuready uses sudo if the login user is not root; -K asks for the password",
    ("--tags", "-t", "--skip-tags"): "--only COMPONENT, --skip COMPONENT",
    ("--json", "-json"): "--output json",
    ("--var", "-var"): "-e KEY=VALUE",
    ("--target", "--hosts"): "--limit PATTERN",
    ("-o",): "--output FORMAT:PATH",
    ("--format",): "--output FORMAT",
    ("--refresh", "--refresh-only"): "gpuready status, or gpuready plan",
}


def _other_option(error: click.ClickException) -> UsageError | None:
    """What to use in place of an option of another program, if this command has it."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return None
    remedy = next((remedy for names, remedy in OTHERS.items() if error.option_name in names), "")
    ours = re.match(r"(-[\w-]+)", remedy)
    if not remedy or (ours and not any(ours[1] in param.opts for param in error.ctx.command.params)):
        return None
    return UsageError(f"no option {error.option_name}", remedy=remedy)


def _remedy(argv: Sequence[str], error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return f"gpuready {verb_of(argv)}".rstrip() + " --help"
    if context.parent is None and isinstance(error, click.NoSuchOption):
        return "options stand after the command: gpuready plan -i hosts.yaml"
    if (
        isinstance(error, click.BadParameter)
        and error.param
        and error.param.name == "level"
        and ("'fabric' is not one of" in error.format_message())
    ):  # the level of the checks between hosts
        return "gpuready fabric -i hosts.yaml tests between the hosts"
    if isinstance(context.command, click.Group) and "k8s" in argv and "kubernetes" in context.command.commands:
        return f"{context.command_path} kubernetes"
    if isinstance(context.command, click.Group):
        return f"there are: {', '.join(context.command.list_commands(context))}"
    return f"{context.command_path} --help"

"""The command group: which verbs there are, and how whatever goes wrong becomes a result and an exit code."""

import contextlib
import importlib
import os

import click
from click.shell_completion import CompletionItem

from gpuready import __version__
from gpuready.base.errors import UsageError, did_you_mean
from gpuready.cli.output import begin
from gpuready.cli.sink import say, sinks
from gpuready.result.exitcode import MEANING
from gpuready.result.verbs import GROUPS, VERBS

#: Short names, and what they stand for.
ALIASES = {"stress": ("verify", "--level", "stress")}
#: Commands of Ansible, terraform and others, and what to use here.
OTHERS = {
    "list": "gpuready inventory shows hosts and specs; --list-hosts prints their names",
    "hosts": "gpuready inventory shows hosts and specs; --list-hosts prints their names",
    "check": "gpuready plan shows what would change; gpuready verify tests the nodes",
    "diff": "gpuready plan shows what would change; gpuready report BEFORE AFTER compares two results",
    "test": "gpuready verify",
    "doctor": "gpuready verify; gpuready explain says what a message or a check means",
    "ping": "gpuready status connects to each host, and changes nothing",
    "setup": "gpuready record prints the state of the nodes",
    "facts": "gpuready record prints the state of the nodes",
    "show": "gpuready report RESULT.json, or gpuready inventory",
    "run": "gpuready apply",
    "converge": "gpuready apply",
    "deploy": "gpuready apply",
    "install": "gpuready apply",
    "destroy": "gpuready remove",
    "rollback": "gpuready remove restores what was there before gpuready",
}
#: The variable by which a shell asks for words.
COMPLETING = "_GPUREADY_COMPLETE"

HELP = """Prepare GPU nodes for containers and multi-node training, over SSH, and prove that they are ready.

\b
  gpuready init   --host 'gpu[01:16]'           write hosts.yaml, an inventory to begin with
  gpuready trust  -i hosts.yaml                 store the SSH host keys, once
  gpuready plan   -i hosts.yaml                 show what would change, and what it affects
  gpuready apply  -i hosts.yaml                 show the plan, ask, change, verify
  gpuready apply  -i hosts.yaml --yes           the same in CI
  gpuready verify -i hosts.yaml --output junit:report.xml
  gpuready verify -i hosts.yaml --limit '!gpu13'
  gpuready stress -i hosts.yaml                 verify --level stress: load all GPUs, name the slow one
  gpuready fabric -i hosts.yaml --limit train   test RDMA between the hosts
  gpuready explain libcuda.ldcache              what a check means, and how to fix it
  gpuready compat --driver 535.54.03 --gpu 'NVIDIA L4' --image-cuda 12.6.3
                                                will this image run?
  gpuready launch hosts -i hosts.yaml -- train.py
                                                a torchrun line for each host, with its NCCL settings
"""


class Verbs(click.Group):
    """Loads a verb's module when it is asked for; names what does not exist."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name == "version":  # other programs have these as commands
            return click.Command(name, callback=_tell_versions)
        if name == "help":
            return click.Command(name, params=[click.Argument(["words"], nargs=-1)], callback=_tell_help)
        if name not in VERBS:
            if name in OTHERS:
                raise UsageError(f"no command {name!r}", remedy=OTHERS[name])
            raise UsageError(f"no command {name!r}{did_you_mean(name, VERBS)}", remedy=f"there are: {', '.join(VERBS)}")
        command: click.Command = importlib.import_module(f"gpuready.verbs.{name.replace('-', '_')}.command").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, also by its short name."""
        short = ALIASES.get(args[0])
        return super().resolve_command(ctx, [*short, *args[1:]] if short else args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Name the verbs without loading them."""
        verbs = [CompletionItem(name, help=verb.help) for name, verb in VERBS.items() if name.startswith(incomplete)]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, VERBS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), verb.help) for name, verb in group.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in sorted(MEANING.items())])


def _versions(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        _tell_versions()
        ctx.exit()


def _tell_versions() -> None:
    say(", ".join([f"gpuready {__version__}", *map(_named, ("pyinfra", "paramiko"))]))


def _tell_help(words: tuple[str, ...]) -> None:
    gpuready.main(args=[*words, "--help"], prog_name="gpuready", standalone_mode=False)


def _named(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (not installed)"


@click.group(
    cls=Verbs,
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    invoke_without_command=False,
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_versions,
              help="Show the versions of gpuready, pyinfra and paramiko.")  # fmt: skip
def gpuready() -> None:
    pass


def run(argv: list[str]) -> int:
    """The exit code of ``gpuready ARGV``. Nothing but the exit code leaves this function."""
    begin()
    # click gives a shell its words as bytes, which a sink does not take.
    with contextlib.nullcontext() if COMPLETING in os.environ else sinks():
        try:
            code = gpuready.main(args=list(argv), prog_name="gpuready", standalone_mode=False)
            return code if isinstance(code, int) else 0
        except (KeyboardInterrupt, click.Abort):
            from gpuready.cli.failure import interrupted

            return interrupted(argv)
        except Exception as e:
            from gpuready.cli.failure import failed

            return failed(argv, e)

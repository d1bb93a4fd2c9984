"""The command group: which verbs there are, and how whatever goes wrong becomes a result and an exit code."""

from __future__ import annotations

import difflib
import importlib
from importlib.metadata import PackageNotFoundError, version

import click

from gpuready import __version__
from gpuready.cli.failure import failed, interrupted
from gpuready.cli.output import begin, say
from gpuready.cli.sink import sinks
from gpuready.core.errors import UsageError
from gpuready.report.exitcode import MEANING

VERBS = (
    "plan",
    "apply",
    "verify",
    "probe",
    "remove",
    "fabric",
    "rdma",
    "explain",
    "schema",
    "trust",
    "compat",
    "render",
    "docker-args",
    "nccl",
)
NOT_YET = ("status", "inventory", "init", "report")

HELP = """Take GPU hosts from an address and a key to ready for containers, and prove it.

\b
  gpuready trust  -i hosts.yaml                 store the host keys, once
  gpuready plan   -i hosts.yaml                 what would change, and whom it would hit
  gpuready apply  -i hosts.yaml                 show the plan, ask, converge
  gpuready apply  -i hosts.yaml --yes           the same in CI
  gpuready verify -i hosts.yaml --output junit:report.xml
  gpuready verify -i admin@10.0.0.7, --limit '!gpu13'
  gpuready fabric -i hosts.yaml --limit train   RDMA between the hosts, with proof
  gpuready explain libcuda.ldcache              what a check means, and what to do
  gpuready compat --driver 535.54.03 --gpu 'NVIDIA L4' --image-cuda 12.6.3
                                                will this image run here?
  gpuready nccl   -i hosts.yaml --launch        NCCL's settings and the torchrun line of each host
"""


class Verbs(click.Group):
    """Loads a verb's module when it is asked for; names what does not exist, and what does not exist yet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in NOT_YET:
            raise UsageError(f"gpuready {name}: not yet in this release", remedy=f"there are: {', '.join(VERBS)}")
        if name not in VERBS:
            near = difflib.get_close_matches(name, VERBS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"no command {name!r}{hint}", remedy=f"there are: {', '.join(VERBS)}")
        command: click.Command = importlib.import_module(f"gpuready.cli.{name.replace('-', '_')}").command
        return command

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_exit_codes(formatter)


def write_exit_codes(formatter: click.HelpFormatter) -> None:
    """The exit codes, below the options."""
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code), meaning) for code, meaning in sorted(MEANING.items())])


def _versions(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        say(", ".join([f"gpuready {__version__}", *map(_named, ("pyinfra", "paramiko"))]))
        ctx.exit()


def _named(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (not installed)"


@click.group(cls=Verbs, help=HELP, no_args_is_help=False, invoke_without_command=False)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_versions,
              help="Show the versions of gpuready, pyinfra and paramiko.")  # fmt: skip
def gpuready() -> None:
    pass


def run(argv: list[str]) -> int:
    """The exit code of ``gpuready ARGV``. Nothing but the exit code leaves this function."""
    begin()
    with sinks():
        try:
            code = gpuready.main(args=list(argv), prog_name="gpuready", standalone_mode=False)
            return code if isinstance(code, int) else 0
        except (KeyboardInterrupt, click.Abort):
            return interrupted(argv)
        except Exception as e:
            return failed(argv, e)

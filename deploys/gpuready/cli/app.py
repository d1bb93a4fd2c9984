"""The command group: which verbs there are, and how whatever goes wrong becomes a result and an exit code."""

from __future__ import annotations

import importlib

import click

from gpuready import __version__
from gpuready.cli.output import begin
from gpuready.cli.sink import say, sinks
from gpuready.core.errors import UsageError
from gpuready.report.exitcode import MEANING

#: Each is a module of this package, which is imported when the verb is used.
VERBS = {
    "trust": "Store the SSH host keys of the hosts.",
    "plan": "Show what apply would change.",
    "apply": "Change the nodes to match their spec, then verify.",
    "verify": "Check every node against its spec.",
    "remove": "Restore what was there before gpuready.",
    "probe": "Print the state of the nodes as JSON.",
    "explain": "Explain a check or a component.",
    "fabric": "Test RDMA between the hosts.",
    "rdma": "Move an RDMA device into a container, or back.",
    "nccl": "Print NCCL settings and torchrun lines.",
    "compat": "Predict whether an image runs on a host.",
    "docker-args": "Print docker run options for each host.",
    "render": "Print configuration for Prometheus, Grafana or Google Cloud Batch.",
    "schema": "Print the JSON Schema of the inventory or of the result.",
}
NOT_YET = ("status", "inventory", "init", "report")

HELP = """Prepare GPU nodes for containers and multi-node training, over SSH, and prove that they are ready.

\b
  gpuready trust  -i hosts.yaml                 store the SSH host keys, once
  gpuready plan   -i hosts.yaml                 show what would change, and what it affects
  gpuready apply  -i hosts.yaml                 show the plan, ask, change, verify
  gpuready apply  -i hosts.yaml --yes           the same in CI
  gpuready verify -i hosts.yaml --output junit:report.xml
  gpuready verify -i admin@10.0.0.7, --limit '!gpu13'
  gpuready fabric -i hosts.yaml --limit train   test RDMA between the hosts
  gpuready explain libcuda.ldcache              what a check means, and how to fix it
  gpuready compat --driver 535.54.03 --gpu 'NVIDIA L4' --image-cuda 12.6.3
                                                will this image run?
  gpuready nccl   -i hosts.yaml --launch        NCCL settings, and a torchrun line for each host
"""


class Verbs(click.Group):
    """Loads a verb's module when it is asked for; names what does not exist, and what does not exist yet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in NOT_YET:
            raise UsageError(f"gpuready {name}: not yet in this release", remedy=f"there are: {', '.join(VERBS)}")
        if name not in VERBS:
            import difflib

            near = difflib.get_close_matches(name, VERBS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"no command {name!r}{hint}", remedy=f"there are: {', '.join(VERBS)}")
        command: click.Command = importlib.import_module(f"gpuready.cli.{name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in sorted(MEANING.items())])


def _versions(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        say(", ".join([f"gpuready {__version__}", *map(_named, ("pyinfra", "paramiko"))]))
        ctx.exit()


def _named(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

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
            from gpuready.cli.failure import interrupted

            return interrupted(argv)
        except Exception as e:
            from gpuready.cli.failure import failed

            return failed(argv, e)

"""``gpuready example``: print a training script for several nodes. Changes nothing."""

import click

from gpuready.cli.options import Verb

_HELP = """Print a PyTorch training script for several nodes (DistributedDataParallel, synthetic data).

\b
  gpuready example ddp > ddp.py
  gpuready launch --help               how to start it on several nodes

If a rank is lost, the training resumes from its checkpoint. Without GPUs, it uses gloo.
"""


@click.command("example", cls=Verb, help=_HELP)
@click.argument("what", type=click.Choice(["ddp"]))
def command(what: str) -> int:
    """The exit code."""
    from gpuready.base import resources
    from gpuready.cli.sink import write_stdout

    write_stdout(resources.document(f"verbs/example/{what}.py", measure=False))
    return 0

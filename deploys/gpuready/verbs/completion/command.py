"""``gpuready completion``: print the script that makes a shell complete gpuready's command lines."""

import click
from click.shell_completion import get_completion_class

from gpuready.cli.options import Verb
from gpuready.cli.sink import say

_HELP = """Print a script that completes commands, options, files, hosts, components and check ids.

\b
  gpuready completion bash > ~/.local/share/bash-completion/completions/gpuready
  gpuready completion zsh > ~/.zfunc/_gpuready             with ~/.zfunc in fpath
  gpuready completion fish > ~/.config/fish/completions/gpuready.fish
  eval "$(gpuready completion bash)"                       for this shell only
"""


@click.command("completion", cls=Verb, help=_HELP)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    from gpuready.cli.app import COMPLETING

    made = get_completion_class(shell)
    assert made is not None
    completion = made(click.get_current_context().find_root().command, {}, "gpuready", COMPLETING)
    say(completion.source_template % completion.source_vars())
    return 0

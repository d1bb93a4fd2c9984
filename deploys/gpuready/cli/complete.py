"""What the shell offers for a word that is not finished: files, hosts and groups, components, check ids.

Whatever goes wrong offers nothing: an error message in the middle of a command line helps nobody.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence

import click
from click.shell_completion import CompletionItem


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, as the shell completes them."""
    return [CompletionItem(incomplete, type="file")]


def listed(names: Iterable[str]) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """These names, also after a comma."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, _ = incomplete.rpartition(",")
        return _items([f"{before}{comma}{name}" for name in names], incomplete)

    return complete


def inventories(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, this machine, and the hosts of ~/.ssh/config."""
    if incomplete.startswith("ssh:"):
        from gpuready.inventory.own_ssh_config import host_names

        with contextlib.suppress(OSError):
            return _items([f"ssh:{name}" for name in host_names()], incomplete)
    return [*_items(["@local"], incomplete), CompletionItem(incomplete, type="file")]


def patterns(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Hosts and groups of the inventories that stand before, also behind ``!`` and after a comma."""
    before, comma, rest = incomplete.rpartition(",")
    mark = rest[:1] if rest[:1] in ("!", "&") else ""
    names = [name for kind in _names(ctx.params.get("inventory") or ()) for name in kind]
    return _items([f"{before}{comma}{mark}{name}" for name in names], incomplete)


def hosts(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Hosts of the inventories that stand before, or that the environment names."""
    return _items(_names(ctx.params.get("inventory") or ())[1], incomplete)


def components(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Components, also after a comma."""
    from gpuready.node import NODE

    return listed(item.name for item in NODE)(ctx, param, incomplete)


def explained(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of checks, and components."""
    from gpuready.catalogue import BY_ID
    from gpuready.node import NODE

    return _items([*BY_ID, *(item.name for item in NODE)], incomplete)


def _names(sources: Sequence[str]) -> tuple[list[str], list[str]]:
    """Groups and hosts."""
    from gpuready.inventory.hosts import read

    with contextlib.suppress(Exception):  # the command itself says what is wrong
        graph = read(sources)
        return list(graph.groups), list(graph.hosts)
    return [], []


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]

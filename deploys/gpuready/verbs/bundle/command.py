"""``gpuready bundle``: fetch what nodes without a route to the internet need, for a web server that they reach."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuready.base.errors import UsageError
from gpuready.base.fields import is_plain_url
from gpuready.cli.complete import files
from gpuready.cli.options import STATE, HostVerb, probe_options
from gpuready.verbs.bundle.needs import PLATFORMS

if TYPE_CHECKING:
    from gpuready.cli.request import Request
    from gpuready.result.model import Run
    from gpuready.verbs.bundle.needs import Needs

_HELP = """Fetch what nodes without internet access need, to a folder for a web server that they reach.

\b
  gpuready bundle -i hosts.yaml -o bundle --url http://10.0.0.5:8000
  python3 -m http.server --directory bundle 8000
  gpuready apply -i hosts.yaml -i bundle/bundle.yaml

The folder has the toolkit's packages, with the whole signed index of their repository and its key, and the wheels that
the specs name by URL. gpuready verifies each signature and hash, and the nodes verify them again. Images, the driver
and its companions, and packages of the distribution are not in it. Run it again to fetch what is missing or damaged.
"""


@click.command("bundle", cls=HostVerb, help=_HELP)
@click.option("-o", "--directory", required=True, metavar="DIR", shell_complete=files, help="The folder to write to.")
@click.option("--url", required=True, metavar="URL", help="The URL at which the nodes will find the folder.")
@click.option(
    "--platform",
    multiple=True,
    type=click.Choice(list(PLATFORMS)),
    help="Fetch for these package managers, and do not connect to the hosts. Repeatable.",
)
@STATE
@probe_options
def command(directory: str, url: str, platform: Sequence[str], state: str | None, **given: Any) -> int:
    """The exit code."""
    from gpuready.cli.request import request
    from gpuready.cli.sink import say
    from gpuready.verbs.bundle.work import bundle

    if not is_plain_url(url):
        raise UsageError(f"--url {url}: not a plain http(s) URL", remedy="such as http://10.0.0.5:8000")
    if platform and state is not None:
        raise UsageError("--platform and --state contradict each other", remedy="leave out --platform")
    wanted = request("bundle", **given)
    run, needs = _needs(wanted, platform, state)
    if needs:
        folder = Path(directory).expanduser()
        run.parts["bundle"] = bundle(needs, folder, url.rstrip("/"), lambda text: say(text, err=True))
    return wanted.deliver(run)


def _needs(wanted: Request, platform: Sequence[str], state: str | None) -> tuple[Run, dict[str, Needs]]:
    """What each host needs, by its name; not of a host that could not be read, or cannot be prepared."""
    from gpuready.base.errors import RefusedError
    from gpuready.contract.component import NotComparable
    from gpuready.result.model import HostResult, Run
    from gpuready.verbs.bundle.needs import Needs, left_out, platform_of

    if platform:
        run = wanted.complete(Run("bundle", [HostResult(entry.name, outcome="ok") for entry in wanted.entries]))
    else:
        from gpuready.cli.online import only_read

        run = only_read(wanted, state)
    specs, found = {entry.name: entry.spec for entry in wanted.entries}, dict[str, Needs]()
    for host in run.hosts:
        spec = specs[host.name]
        if host.error is not None:
            continue
        try:
            if host.state is not None:
                found[host.name] = Needs(spec, platform_of(spec, host.state))
            else:
                ours = spec.owners.toolkit in ("auto", "host")
                found[host.name] = Needs(spec, tuple(PLATFORMS[each] for each in platform) if ours else ())
        except NotComparable as e:
            host.fail(RefusedError(str(e)))
            continue
        if note := left_out(spec):
            host.notes.append(note)
    return run, found

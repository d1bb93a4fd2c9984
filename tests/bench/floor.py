"""The floor: what every tool pays that reaches these hosts over SSH, with gpuready's own connections.

Run as a program with ``true`` or ``probe`` and an inventory, it is a whole command, to compare other commands with.
"""

import sys

from pyinfra.api.host import Host

from gpuready.base import resources
from gpuready.contract.component import Disruption
from gpuready.inventory.hosts import HostEntry, load
from gpuready.model import probe
from gpuready.operations.transport import run_script
from gpuready.result.model import Run
from gpuready.run.access import Access
from gpuready.run.fleet import Fleet


def scripts() -> dict[str, str]:
    """The two floors by name: a script that does nothing, and the probe, whose answer nobody reads."""
    return {"true": f"{resources.script('lib/answer')}\nbegin; true; end 0", "probe": probe.script()}


def fleet(entries: list[HostEntry], selected: frozenset[str] | None = None) -> Fleet:
    """A silent fleet that may disturb nothing."""
    return Fleet(entries, Access(selected=selected, allowed=Disruption.none), lambda host, what: None)


def floor(hosts: Fleet, name: str) -> Run:
    """Connect to every host and run one of :func:`scripts`."""
    script = scripts()[name]

    def work(host: Host) -> None:
        hosts.connect(host)
        run_script(host, script, probe.TIMEOUT, name)
        hosts.results[host.name].outcome = "ok"

    return hosts.work(name, lambda run: hosts.each(work))


def main(name: str, inventory: str) -> int:
    """Exit 0 if all hosts answered."""
    run = floor(fleet(list(load([inventory]).chosen)), name)
    bad = [f"{host.name}: {host.error}" for host in run.hosts if host.outcome != "ok"]
    print("\n".join(bad[:3]), file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

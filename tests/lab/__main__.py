"""The lab's command line: python -m tests.lab up | inventory | status | down | prepare."""

import argparse
import sys

from tests.lab import access, inventory
from tests.lab.host import LabError, cache_root
from tests.lab.lab import DISTROS, Lab, ours
from tests.lab.node import Node


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description="Real test machines for gpuready.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    up = verbs.add_parser("up", help="start machines and return when they are ready")
    up.add_argument("--count", type=int, default=1)
    up.add_argument("--distro", choices=DISTROS, default="debian13")
    up.add_argument("--vm", action="store_true", help="virtual machines (QEMU), joined by a private wire")
    up.add_argument("--name", default="lab", metavar="PREFIX", help="machines are PREFIX1, PREFIX2, ...")
    listing = verbs.add_parser("inventory", help="print an inventory of this checkout's machines that gpuready takes")
    listing.add_argument("--plain", action="store_true", help="hosts and ssh only, no gpuready settings")
    verbs.add_parser("status", help="print the machines there are, also of other checkouts")
    down = verbs.add_parser("down", help="remove this checkout's machines and leftovers of dead test runs")
    down.add_argument("--name", default="", metavar="PREFIX", help="machines with that prefix, of any checkout")
    down.add_argument("--all", action="store_true", help="those of running tests, too")
    verbs.add_parser("prepare", help="build and cache everything, start nothing")
    return parser


def _status(lab: Lab) -> None:
    print(f"{'NAME':<16} {'ADDRESS':<15} {'DISTRO':<10} {'STATE':<8} OWNER")
    for found in lab.machines():
        state = "up" if found.running() else "down"
        owner = f"pid {found.record.owner}" if found.record.owner else found.checkout or "-"
        print(f"{found.name:<16} {found.address:<15} {found.distro:<10} {state:<8} {owner}")


def _listed(lab: Lab) -> list[Node]:
    """The machines for an inventory: this checkout's that `up` made."""
    found = [each for each in ours(lab.machines()) if not each.record.owner]
    if not found:
        raise LabError("this checkout has no machines; python -m tests.lab up boots one")
    for each in found:
        if str(cache_root()) not in each.record.image:  # which holds the key that logs in, and the repository
            raise LabError(f"{each.name} was made with another cache, {each.record.image}; set HOME as it was then")
    return found


def _next_steps(address: str) -> str:
    """How to log in, and how gpuready gets to know the machines."""
    login = f"ssh -i {access.client_key()} -o UserKnownHostsFile={access.known_hosts()} gpu@{address}"
    return (
        f"log in (gpu has sudo without a password; root works, too):\n  {login}\n"
        "write their inventory, then use gpuready as with other hosts:\n"
        f"  {sys.executable} -m tests.lab inventory >hosts.yaml\n  ./dev run plan -i hosts.yaml"
    )


def main() -> int:
    """Do what the command line says; 1 and one message when it cannot be done."""
    arguments = _parser().parse_args()
    lab = Lab()
    try:
        match arguments.verb:
            case "prepare":
                lab.prepare()
                lab.prepare_vms()
            case "up":
                lab.prepare([arguments.distro])
                if arguments.vm:
                    lab.prepare_vms([arguments.distro])
                start = lab.up_vms if arguments.vm else lab.up
                machines = start(arguments.count, arguments.distro, arguments.name)
                for made in machines:
                    print(f"{made.name} {made.address}")
                print(_next_steps(machines[0].address), file=sys.stderr)
            case "down":
                for name in lab.down(arguments.name, arguments.all):
                    print(f"{name} removed")
            case "status":
                _status(lab)
            case "inventory":
                hosts = _listed(lab)
                plain = inventory.text([(found.name, found.address) for found in hosts], None)
                print(plain if arguments.plain else lab.inventory(hosts), end="")
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

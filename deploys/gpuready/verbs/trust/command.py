"""``gpuready trust``: store the SSH host keys after you have confirmed them. It does not log in."""

import logging
import re
import resource
import shlex
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import click
from paramiko import PKey

from gpuready.base.errors import GpureadyError, UnreachableError, UsageError
from gpuready.base.words import count
from gpuready.cli.options import SHARD, HostVerb, hosts
from gpuready.cli.request import request
from gpuready.cli.sink import say
from gpuready.inventory.connection import LOCAL
from gpuready.inventory.hosts import HostEntry
from gpuready.operations.knownhosts import Judgement, KnownHosts, Status, stored
from gpuready.result.ending import limit_options
from gpuready.result.mask import options_to_paste
from gpuready.result.page import problem
from gpuready.verbs.trust.hostkey import Target, fetch, target

_HELP = """Show the SSH host keys, and store them in known_hosts after you confirm. It does not log in.

\b
  gpuready trust -i hosts.yaml
  gpuready trust -i hosts.yaml --limit gpu13 --replace     after a rebuild
  gpuready trust -i hosts.yaml --yes                       in a network that you trust
"""
#: A host that is off costs a thread the time to connect; so hundreds of them cost this time once.
_MOST_AT_ONCE = 256
_COMPARE = (
    "compare each fingerprint with what the host itself prints: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub; "
    "if all are equal, run this again with --yes"
)


@dataclass(frozen=True)
class Offer:
    """A host and the key that it shows, or why there is none."""

    host: str
    where: Target | None = None
    key: PKey | None = None
    judgement: Judgement | None = None
    error: GpureadyError | None = None


@click.command("trust", cls=HostVerb, help=_HELP)
@hosts
@SHARD
@click.option("-y", "--yes", is_flag=True, help="Store the keys without asking. Required without a terminal.")
@click.option("--replace", is_flag=True, help="Replace keys that have changed, or whose certificate is not valid.")
def command(yes: bool, replace: bool, **given: Any) -> int:
    """The exit code: 4 if a host is unreachable or its key has changed, 7 if you did not confirm."""
    logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)
    found = request("trust", secrets=False, **given)
    found.tell_skipped()
    if any(entry.name == LOCAL for entry in found.entries):
        raise UsageError(f"{LOCAL} is reached without SSH: there is no host key to trust")
    with ThreadPoolExecutor(_at_once()) as pool:
        offers = list(pool.map(_offer, found.entries))
    for line in _table(offers):
        say(line)
    storable = {Status.new, Status.changed, Status.invalid} if replace else {Status.new}
    wanted = [o for o in offers if o.judgement is not None and o.judgement.status in storable]
    refused = [o for o in offers if o.judgement is not None and o.judgement.status not in {Status.known, *storable}]
    options = options_to_paste(found.choice)
    choice = re.sub(r" --shard \S+", "", options)  # of one host, a shard may have none
    for offer in refused:
        storing = f"gpuready trust {choice} --limit {shlex.quote(offer.host)} --replace"
        say(_refusal(offer, storing).rstrip(), err=True)
    if wanted and not yes and not sys.stdin.isatty():
        raise UsageError("trust without a terminal needs --yes: no key was stored", remedy=_COMPARE)
    if wanted and not yes and not click.confirm(f"Trust {count(len(wanted), 'key')}?", err=True):
        say("no key was stored")
        return 7
    stored = sum(_store(offer) for offer in wanted)
    say(f"{count(stored, 'key')} stored")
    if stored:
        say(f"next: gpuready plan {options}{limit_options(found.limit)}", err=True)
    return 4 if refused or any(offer.error is not None for offer in offers) else 0


def _at_once() -> int:
    """How many hosts: each has a socket open, and the system may allow few files (macOS: 256)."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_AT_ONCE if allowed == resource.RLIM_INFINITY else min(_MOST_AT_ONCE, max(allowed // 4, 1))


def _offer(entry: HostEntry) -> Offer:
    try:
        where = target(entry.connection)
        known = stored(where.known_hosts)
        key = fetch(where, known)
    except OSError as e:
        return Offer(entry.name, error=UnreachableError(f"{e.filename}: {e.strerror}"))
    except GpureadyError as e:
        return Offer(entry.name, error=e)
    return Offer(entry.name, where, key, known.judge(where.name, key))


def _table(offers: Sequence[Offer]) -> list[str]:
    width = max((len(offer.host) for offer in offers), default=0)
    found = []
    for offer in offers:
        if offer.where is None or offer.key is None or offer.judgement is None:
            found.append(f"{offer.host:<{width}}  UNREACHABLE  {offer.error}")
            continue
        key = f"{offer.key.get_name()} {offer.key.fingerprint}"
        found.append(f"{offer.host:<{width}}  {offer.judgement.status.value:<7}  {offer.where.name}  {key}")
    return found


def _refusal(offer: Offer, storing: str) -> str:
    """Why the key is not stored; ``storing`` is the command that would store it."""
    assert offer.where is not None and offer.judgement is not None
    files = " ".join(map(str, offer.where.known_hosts))
    if offer.judgement.status is Status.revoked:
        return problem(f"{offer.host}: its key is marked @revoked in {files}")
    if offer.judgement.status is Status.invalid:
        return problem(
            f"{offer.host}: the certificate of {offer.where.name} does not prove its name: {offer.judgement.why}",
            f"renew the certificate; or {storing} stores the host's own key",
        )
    return problem(
        f"{offer.host}: the key of {offer.where.name} does not match {files}; nothing was stored",
        f"if the machine was rebuilt: {storing}; otherwise this is a possible man-in-the-middle attack",
    )


def _store(offer: Offer) -> bool:
    """Store the key. False if it is there by now: another host of this run may be the same machine."""
    assert offer.where is not None and offer.key is not None
    known = KnownHosts(*offer.where.known_hosts)
    try:
        if known.judge(offer.where.name, offer.key).status is Status.known:
            return False
        known.remove(offer.where.name)
        known.add(offer.where.name, offer.key)
        return True
    except OSError as e:
        raise UnreachableError(f"{known.path}: the key was not stored: {e.strerror or e}") from None

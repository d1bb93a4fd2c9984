"""``--ask-become-pass``: ask once for sudo's password, before the first connection."""

import functools
import getpass
import warnings
from collections.abc import Sequence
from dataclasses import replace

from gpuready.base.errors import UsageError
from gpuready.inventory.hosts import HostEntry
from gpuready.inventory.secrets import Secret


def with_password(entries: Sequence[HostEntry]) -> tuple[HostEntry, ...]:
    """The hosts with the password that the user enters; a host that has one in the inventory keeps it."""
    password = _asked()
    return tuple(
        replace(entry, connection=replace(entry.connection, become_password=password))
        if entry.connection.become_password is None
        else entry
        for entry in entries
    )


@functools.cache
def _asked() -> Secret:
    """Ask on the terminal; UsageError if there is none. One answer is enough for all steps of a command."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)  # it would show what is typed
            answer = getpass.getpass("sudo password: ")
    except (getpass.GetPassWarning, EOFError, OSError):
        raise UsageError(
            "--ask-become-pass needs a terminal",
            remedy="set ansible_become_password: env:GPUREADY_NAME in the inventory",
        ) from None
    if not answer:
        raise UsageError("--ask-become-pass: the password is empty")
    return Secret(answer)

"""``--list-hosts`` of all verbs over hosts."""

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from gpuready.base.errors import UsageError
from gpuready.cli.request import request
from gpuready.cli.sink import say


def list_hosts(verb: str, given: Mapping[str, Any]) -> int:
    """``--list-hosts`` of a verb: the names on stdout, one a line; on stderr the notes, and who is skipped."""
    asked = click.get_current_context().get_parameter_source("output")
    if given.get("output") and asked is ParameterSource.COMMANDLINE:
        raise UsageError(
            "--list-hosts prints only names, without --output", remedy="use gpuready inventory --output json"
        )
    shared = ("inventory", "limit", "ansible", "allow_exec", "allow_read", "color", "extra_vars")
    found = request(
        verb, host=given.get("host"), shard=given.get("shard"), secrets=False, **{name: given[name] for name in shared}
    )
    found.tell_skipped()
    for note in dict.fromkeys(note for entry in found.entries for note in entry.notes):
        say(f"note: {note}", err=True)
    for entry in found.entries:
        say(entry.name)
    return 0

"""How to reach a host: the ``ansible_*`` variables that we honour, checked, and those that we refuse.

Nothing of this reaches a shell, and still every value is plain: it ends in an ssh configuration. Sources:
Ansible's documentation of the ``ssh`` connection plugin (of two names the ``ansible_ssh_`` one wins),
ssh_config(5).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuready.core.errors import SpecError
from gpuready.inventory.host_names import NAME_ALLOWED, is_host
from gpuready.inventory.ssh_options import USER, ConfigFiles, Refused, check_jump, setting
from gpuready.spec.source_values import Located, OddInt, refuse, refuse_templates

#: The inventory, and the host, that is this very machine: no SSH, else all the same.
LOCAL = "@local"
_PATH = re.compile(r"[\w~./][\w.+/@~ :,=-]*")
_SUDO = ("sudo", "ansible.builtin.sudo")
_SSH = ("ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh", "ansible.builtin.paramiko_ssh")
#: As ssh reads them: one after another, and of a setting the first counts.
_ARGUMENTS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
_ARGUMENTS_ALLOWED = "-F FILE, -J HOST, -o Keyword=value"
#: Flags of ssh without a meaning for us: compression, verbosity, terminals, forwarding of agent and X11.
_IDLE_FLAGS = re.compile("-[CqvTtaAxXk]+")
_HONOURED = {
    "ansible_host",
    "ansible_ssh_host",
    "ansible_user",
    "ansible_ssh_user",
    "ansible_port",
    "ansible_ssh_port",
    "ansible_private_key_file",
    "ansible_ssh_private_key_file",
    *_ARGUMENTS,
    "ansible_become_method",
    "ansible_become_user",
    "ansible_connection",
}
_KEY_FILES = ("ansible_ssh_private_key_file", "ansible_private_key_file")
_PASSWORDS = ("ansible_become_password", "ansible_become_pass", "ansible_sudo_pass")


@dataclass(frozen=True)
class Connection:
    """Where and as whom to log in; None leaves it to the user's ssh configuration.

    ``key`` is a path as written (``~`` not expanded), ``jump`` is ssh's -J. ``config`` is the text of an ssh_config(5)
    file that takes the place of the user's own. Without --allow-exec nothing in it, or in ``options``, (keyword, value)
    pairs, runs a command.
    """

    address: str
    user: str | None = None
    port: int | None = None
    key: str | None = None
    config: str | None = None
    jump: str | None = None
    options: tuple[tuple[str, str], ...] = ()


def connection(
    name: str, variables: Mapping[str, Located], files: ConfigFiles, *, allow_exec: bool
) -> tuple[Connection | None, list[SpecError]]:
    """The connection of one host from its ``ansible_*`` variables, or all that is wrong with them.

    ``files`` reads what ``-F`` names.
    """
    args = _Args()
    found: dict[str, Any] = {}
    errors: list[SpecError] = []
    steps: tuple[tuple[str, Callable[[], object]], ...] = (
        ("become", lambda: _refuse_become(variables)),
        ("connection", lambda: _word(variables, "ansible_connection", _SSH, "ssh (other connections: not yet)")),
        ("arguments", lambda: _arguments(variables, args, files, allow_exec=allow_exec)),
        ("address", lambda: _address(name, variables)),
        ("user", lambda: _text(variables, ("ansible_ssh_user", "ansible_user"), USER, "a plain user name")),
        ("port", lambda: _port(variables)),
        ("key", lambda: _text(variables, _KEY_FILES, _PATH, "a plain path")),
    )
    for step, read in steps:
        try:
            found[step] = read()
        except SpecError as e:
            errors.append(e)
    if errors:
        return None, errors
    reach = Connection(found["address"], found["user"], found["port"], found["key"], *args.as_tuple())
    return reach, []


def ignored(variables: Mapping[str, Located]) -> list[str]:
    """The ``ansible_*`` variables that have no effect here."""
    silent = _HONOURED | {"ansible_become", "ansible_group_priority"}
    names = [name for name in variables if name not in silent]
    if "ansible_become" in variables and variables["ansible_become"].value is not True:
        names.append("ansible_become")
    return sorted(names)


@dataclass
class _Args:
    """What the variables with arguments of ssh say."""

    config: str | None = None
    jump: str | None = None
    options: list[tuple[str, str]] = field(default_factory=list)

    def as_tuple(self) -> tuple[str | None, str | None, tuple[tuple[str, str], ...]]:
        """The last three fields of a Connection."""
        return self.config, self.jump, tuple(self.options)


def _first(variables: Mapping[str, Located], names: tuple[str, ...]) -> tuple[str, Located] | None:
    """The first of some names for the same thing that is set and not null."""
    for name in names:
        value = variables.get(name)
        if value is not None and value.value is not None:
            refuse_templates(name, value)
            return name, value
    return None


def _text(variables: Mapping[str, Located], names: tuple[str, ...], form: re.Pattern[str], allowed: str) -> str | None:
    found = _first(variables, names)
    if found is None:
        return None
    name, value = found
    if not isinstance(value.value, str) or not form.fullmatch(value.value):
        refuse(name, value, allowed)
    return value.value


def _word(variables: Mapping[str, Located], name: str, words: tuple[str, ...], allowed: str) -> None:
    found = _first(variables, (name,))
    if found is not None and found[1].value not in words:
        refuse(name, found[1], allowed)


def _refuse_become(variables: Mapping[str, Located]) -> None:
    for name in _PASSWORDS:
        if name in variables and variables[name].value is not None:
            refuse(name, variables[name], "sudo without a password (NOPASSWD)", "not supported", secret=True)
    _word(variables, "ansible_become_method", _SUDO, "sudo")
    _word(variables, "ansible_become_user", ("root",), "root")


def _address(name: str, variables: Mapping[str, Located]) -> str:
    found = _first(variables, ("ansible_ssh_host", "ansible_host"))
    if found is None:
        return name
    if not isinstance(found[1].value, str) or not is_host(found[1].value):
        refuse(*found, NAME_ALLOWED)
    return found[1].value


def _port(variables: Mapping[str, Located]) -> int | None:
    found = _first(variables, ("ansible_ssh_port", "ansible_port"))
    if found is None:
        return None
    number = found[1].value
    if isinstance(number, OddInt):  # Ansible connects to port 8 where 010 is written
        refuse(*found, f"{number}, or quoted text", f"YAML reads {number.text} as {number}")
    if isinstance(number, str) and re.fullmatch(r"[0-9]{1,5}", number):
        number = int(number)
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= 65535:
        refuse(*found, "1 to 65535")
    return number


def _arguments(variables: Mapping[str, Located], args: _Args, files: ConfigFiles, *, allow_exec: bool) -> None:
    for name in _ARGUMENTS:
        found = _first(variables, (name,))
        if found is None:
            continue
        value = found[1]
        if not isinstance(value.value, str) or not value.value.isprintable():
            refuse(name, value, _ARGUMENTS_ALLOWED)
        try:
            words = shlex.split(value.value)
        except ValueError as e:
            refuse(name, value, _ARGUMENTS_ALLOWED, str(e).lower())
        while words:
            _argument(name, value, words, args, files, allow_exec=allow_exec)


def _argument(
    name: str, value: Located, words: list[str], args: _Args, files: ConfigFiles, *, allow_exec: bool
) -> None:
    """Take one argument of ssh, with its own argument, from ``words``."""
    word = words.pop(0)
    if _IDLE_FLAGS.fullmatch(word):
        return
    flag, argument = word[:2], word[2:]
    if flag not in ("-F", "-J", "-o") or not (argument or words):
        refuse(name, value, _ARGUMENTS_ALLOWED, f"{word} is not understood")
    argument = argument or words.pop(0)
    try:
        if flag == "-F":
            if not _PATH.fullmatch(argument):
                raise Refused("not accepted", "a plain path after -F")
            args.config = files.text(argument)
        elif flag == "-J":
            args.jump = args.jump or check_jump(argument)
        else:
            _option(args, argument, allow_exec=allow_exec)
    except Refused as e:
        refuse(name, value, e.allowed, str(e))


def _option(args: _Args, argument: str, *, allow_exec: bool) -> None:
    found = setting(argument, allow_exec=allow_exec)
    if found is None:
        return
    keyword, value = found
    if keyword.lower() != "proxyjump":
        args.options.append(found)
    elif value.lower() != "none":
        args.jump = args.jump or value

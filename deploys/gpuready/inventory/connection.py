"""The connection of a host, from its ``ansible_*`` variables.

No value reaches a shell. Each is still limited to plain characters, because it is written to an ssh configuration.
Sources: Ansible's documentation of the ``ssh`` connection plugin (of two names for one setting, ``ansible_ssh_`` wins),
ssh_config(5).
"""

import re
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from gpuready.base.errors import SpecError
from gpuready.inventory.host_names import NAME_ALLOWED, is_host
from gpuready.inventory.secrets import Secret, is_reference, resolve
from gpuready.inventory.source_values import Located, OddInt, Private, Refused, refuse, refuse_templates
from gpuready.inventory.ssh_options import USER, ConfigFiles, check_jump, setting

T = TypeVar("T")

#: The inventory, and the host in it, that mean this machine; it is reached without SSH.
LOCAL = "@local"
_PATH = re.compile(r"[\w~./][\w.+/@~ :,=-]*")
_SUDO = ("sudo", "ansible.builtin.sudo")
_SSH = ("ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh", "ansible.builtin.paramiko_ssh")
#: In the order in which ssh reads them; the first value of a setting wins.
_ARGUMENTS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
_ARGUMENTS_ALLOWED = "-F FILE, -J HOST, -o Keyword=value"
#: Flags of ssh that have a variable or an option of their own.
_INSTEAD = {
    "-i": "the variable ansible_ssh_private_key_file",
    "-l": "the variable ansible_user",
    "-p": "the variable ansible_port",
    "-4": "-o AddressFamily=inet",
    "-6": "-o AddressFamily=inet6",
}
#: Flags of ssh that have no effect here: compression, verbosity, terminals, forwarding of agent and X11.
_IGNORED_FLAGS = re.compile("-[CqvTtaAxXk]+")
#: sudo's password.
PASSWORDS = ("ansible_become_password", "ansible_become_pass", "ansible_sudo_pass")
#: Two names for one setting: the first one that is set counts.
_HOST = ("ansible_ssh_host", "ansible_host")
_USER = ("ansible_ssh_user", "ansible_user")
_PORT = ("ansible_ssh_port", "ansible_port")
_KEY_FILE = ("ansible_ssh_private_key_file", "ansible_private_key_file")
_TIMEOUT = ("ansible_ssh_timeout", "ansible_timeout")
_WORDS = ("ansible_connection", "ansible_become_method", "ansible_become_user")
HONOURED = {*_HOST, *_USER, *_PORT, *_KEY_FILE, *_TIMEOUT, *_WORDS, *_ARGUMENTS, *PASSWORDS}
_LONGEST_TIMEOUT = 3600
_CONNECT_TIMEOUT = re.compile(r"ConnectTimeout(?:\s*=\s*|\s+)([0-9]{1,4})", re.ASCII | re.IGNORECASE)
_KNOWN_HOSTS = re.compile(r"\s*UserKnownHostsFile(?:\s*=\s*|\s+)(\S.*)", re.ASCII | re.IGNORECASE)
_PASSWORD_ALLOWED = "env:GPUREADY_NAME, file:PATH, --ask-become-pass, or sudo without a password (NOPASSWD)"


@dataclass(frozen=True)
class Connection:
    """The address, user and SSH settings of a host; None leaves a setting to the user's ssh configuration.

    ``key`` is a path as written (``~`` is not expanded), ``jump`` is the argument of ssh's -J. ``config`` is the text
    of an ssh_config(5) file that replaces the user's own, ``options`` are pairs of keyword and value. Without
    --allow-exec, neither runs a command. ``become_password`` is sudo's. ``timeout``
    is the time to connect, in seconds.
    """

    address: str
    user: str | None = None
    port: int | None = None
    key: str | None = None
    config: str | None = None
    jump: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    become_password: Secret | None = field(default=None, repr=False)
    timeout: int | None = None


def connection(
    name: str,
    variables: Mapping[str, Located],
    files: ConfigFiles,
    *,
    allow_exec: bool,
    allow_read: Collection[str],
    secrets: bool = True,
) -> tuple[Connection | None, list[SpecError]]:
    """The connection of one host, or None and all errors of its variables; ``files`` reads what ``-F`` names.

    Without ``secrets``, a password is checked and not read.
    """
    errors: list[SpecError] = []

    def checked(read: Callable[[], T]) -> T | None:
        try:
            return read()
        except SpecError as e:
            errors.append(e)
            return None

    checked(lambda: _word(variables, "ansible_become_method", _SUDO, "sudo"))
    checked(lambda: _word(variables, "ansible_become_user", ("root",), "root"))
    password = checked(lambda: _password(variables, allow_exec, allow_read, read=secrets))
    leave_out = f"ssh; for this machine, -i @local; without this host, --limit '!{name}'"
    checked(lambda: _word(variables, "ansible_connection", _SSH, leave_out))
    args = checked(lambda: _arguments(variables, files, allow_exec=allow_exec))
    address = checked(lambda: _address(name, variables))
    user = checked(lambda: _text(variables, _USER, USER, "a plain user name"))
    port = checked(lambda: _port(variables))
    found = checked(lambda: _first(variables, _TIMEOUT))
    timeout = checked(lambda: _number(found, _LONGEST_TIMEOUT, f"seconds, 1 to {_LONGEST_TIMEOUT}"))
    key = checked(lambda: _text(variables, _KEY_FILE, _PATH, "a plain path"))
    if errors or args is None or address is None:
        return None, errors
    timeout = timeout or args.timeout
    return Connection(address, user, port, key, args.config, args.jump, tuple(args.options), password, timeout), []


def known_hosts_file(connection: Connection) -> str:
    """The known_hosts that the inventory names, with whole paths; empty for the user's own."""
    lines = [f"{key} {value}" for key, value in connection.options] + (connection.config or "").splitlines()
    files = next((found[1].split() for line in lines if (found := _KNOWN_HOSTS.match(line))), [])
    return " ".join(file if file.startswith(("~", "none")) else str(Path(file).absolute()) for file in files)


def ignored(variables: Mapping[str, Located]) -> list[str]:
    """The names of the ``ansible_*`` variables that have no effect here."""
    silent = HONOURED | {"ansible_become", "ansible_group_priority"}
    names = [name for name in variables if name not in silent]
    if "ansible_become" in variables and variables["ansible_become"].value is not True:
        names.append("ansible_become")
    return sorted(names)


@dataclass
class _Args:
    """The settings in the variables that hold arguments of ssh."""

    config: str | None = None
    jump: str | None = None
    options: list[tuple[str, str]] = field(default_factory=list)
    timeout: int | None = None


class _Variable(NamedTuple):
    name: str
    located: Located


def _first(variables: Mapping[str, Located], names: tuple[str, ...]) -> _Variable | None:
    """The first of several names for one setting that is set and not null."""
    for name in names:
        value = variables.get(name)
        if value is not None and value.value is not None:
            refuse_templates(name, value)
            return _Variable(name, value)
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
    if found is not None and found.located.value not in words:
        refuse(name, found.located, allowed)


def _password(
    variables: Mapping[str, Located], allow_exec: bool, allow_read: Collection[str], *, read: bool
) -> Secret | None:
    found = _first(variables, PASSWORDS)
    if found is None:
        return None
    name, value = found
    if isinstance(value.value, Private) and value.value.isprintable() and not is_reference(value.value):
        return Secret(str(value.value))
    if not isinstance(value.value, str) or not is_reference(value.value):
        refuse(name, value, _PASSWORD_ALLOWED, "not supported in clear text", secret=True)
    if not read:
        return None
    return resolve(value.value, allow_exec=allow_exec, allow_read=allow_read, where=value.where)


def missing_password(variables: Mapping[str, Located], allow_exec: bool, allow_read: Collection[str]) -> str:
    """Why sudo's password is not available now; empty if it is, if there is none, or if a command prints it."""
    found = _first(variables, PASSWORDS)
    if found is None or str(found.located.value).startswith("cmd:"):
        return ""
    try:
        _password(variables, allow_exec, allow_read, read=True)
    except SpecError as e:
        return f"{e.where}: {found.name} is {e.given}, which plan and apply need: {e.message}"
    return ""


def _address(name: str, variables: Mapping[str, Located]) -> str:
    found = _first(variables, _HOST)
    if found is None:
        return name
    if not isinstance(found.located.value, str) or not is_host(found.located.value):
        refuse(*found, NAME_ALLOWED)
    return found.located.value


def _port(variables: Mapping[str, Located]) -> int | None:
    found = _first(variables, _PORT)
    if found is not None and isinstance(odd := found.located.value, OddInt):  # Ansible connects to port 8 for 010
        refuse(*found, f"{odd}, or quoted text", f"YAML reads {odd.text} as {odd}")
    return _number(found, 65535, "1 to 65535")


def _number(found: _Variable | None, most: int, allowed: str) -> int | None:
    """A whole number from 1; text that holds one is accepted, too."""
    if found is None:
        return None
    number = found.located.value
    if isinstance(number, str) and re.fullmatch("[0-9]{1,5}", number) and len(number) <= len(str(most)):
        number = int(number)
    if type(number) is not int or not 1 <= number <= most:
        refuse(*found, allowed)
    return number


def _arguments(variables: Mapping[str, Located], files: ConfigFiles, *, allow_exec: bool) -> _Args:
    args = _Args()
    for name in _ARGUMENTS:
        found = _first(variables, (name,))
        if found is None:
            continue
        value = found.located
        if not isinstance(value.value, str) or not value.value.isprintable():
            refuse(name, value, _ARGUMENTS_ALLOWED)
        try:
            words = shlex.split(value.value)
        except ValueError as e:
            refuse(name, value, _ARGUMENTS_ALLOWED, str(e).lower())
        while words:
            _argument(name, value, words, args, files, allow_exec=allow_exec)
    return args


def _argument(
    name: str, value: Located, words: list[str], args: _Args, files: ConfigFiles, *, allow_exec: bool
) -> None:
    """Consume one argument of ssh, with its value, from ``words``."""
    word = words.pop(0)
    if _IGNORED_FLAGS.fullmatch(word):
        return
    flag, argument = word[:2], word[2:]
    if flag not in ("-F", "-J", "-o") or not (argument or words):
        refuse(name, value, _INSTEAD.get(flag, _ARGUMENTS_ALLOWED), f"{word} is not supported")
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
    limit = _CONNECT_TIMEOUT.fullmatch(argument)
    if limit and 1 <= int(limit[1]) <= _LONGEST_TIMEOUT:
        args.timeout = args.timeout or int(limit[1])
    found = setting(argument, allow_exec=allow_exec)
    if found is None:
        return
    keyword, value = found
    if keyword.lower() != "proxyjump":
        args.options.append(found)
    elif value.lower() != "none":
        args.jump = args.jump or value

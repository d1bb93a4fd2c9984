"""Values of an inventory that know the file and line they come from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from gpuready.base.errors import SpecError, Where


class Vault:
    """A placeholder for a value that only Ansible can decrypt."""

    def __repr__(self) -> str:
        return "!vault"


VAULT = Vault()


class OddInt(int):
    """A whole number that differs from its digits: YAML 1.1 reads 010 as 8, 1:30 as 90. ``text`` is as written."""

    text: str


class OddFloat(float):
    """Like :class:`OddInt`: YAML 1.1 reads 1:30.5 as 90.5."""

    text: str


def surprising(value: int | float, text: str) -> OddInt | OddFloat:
    """``value`` together with the text that YAML read it from."""
    odd: OddInt | OddFloat = OddInt(value) if isinstance(value, int) else OddFloat(value)
    odd.text = text
    return odd


class Private(str):
    """A password in clear text, as ansible-inventory prints it: gpuready accepts it, and no message shows it."""


@dataclass(frozen=True, eq=False)
class Located:
    """A scalar, a ``dict[key, Located]`` or a ``list[Located]``.

    ``where`` is the line of its key, or of its own first line for an entry of a list.
    """

    value: object
    where: Where


class Refused(ValueError):
    """A value that is not allowed: the message has the reason, ``allowed`` what is accepted."""

    def __init__(self, problem: str, allowed: str = "") -> None:
        super().__init__(problem)
        self.allowed = allowed


def label(name: object) -> str:
    """A key or name for a message; escaped and cut if it could harm the terminal."""
    text = str(name)
    return text if text.isprintable() and len(text) <= 80 else ascii(text[:80])


class Shown:
    """A value in an error message, as YAML would write it; text keeps Python's quotes."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        value = self._value
        if value is None or isinstance(value, bool):
            return {None: "null", True: "true", False: "false"}[value]
        if isinstance(value, dict):
            return f"a mapping of {', '.join(map(label, value))}" if value else "an empty mapping"
        if isinstance(value, (list, tuple)):
            return f"a list of {len(value)}" if value else "an empty list"
        return repr(value) if isinstance(value, (str, bytes)) else str(value)


def children(value: Located) -> Iterator[tuple[object, Located]]:
    """Key or list position, and value, of each entry of a mapping or list; nothing for a scalar."""
    if isinstance(value.value, dict):
        yield from value.value.items()
    elif isinstance(value.value, list):
        yield from enumerate(value.value)


def merge(below: Located | None, above: Located) -> Located:
    """``above`` merged over ``below``: mappings merge key by key, other values replace, null changes no mapping."""
    if below is None or not isinstance(below.value, dict):
        return above
    if above.value is None:
        return below
    if not isinstance(above.value, dict):
        return above
    merged = dict(below.value)
    for key, value in above.value.items():
        merged[key] = merge(merged.get(key), value)
    return Located(merged, above.where)


def plain(value: Located) -> object:
    """The value without file and line; lists become tuples."""
    if isinstance(value.value, dict):
        return {key: plain(entry) for key, entry in value.value.items()}
    if isinstance(value.value, list):
        return tuple(plain(entry) for entry in value.value)
    return value.value


def located(value: object, where: Where) -> Located:
    """A value of Python, such as a mapping of scalars and lists, all of it at one place."""
    if isinstance(value, dict):
        return Located({key: located(entry, where) for key, entry in value.items()}, where)
    if isinstance(value, (list, tuple)):
        return Located([located(entry, where) for entry in value], where)
    return Located(value, where)


def value_at(tree: Located, path: Sequence[object]) -> Located | None:
    """The value at a path of keys and list positions; None if there is none."""
    here: Located | None = tree
    for part in path:
        if here is not None and isinstance(here.value, dict):
            here = here.value.get(part)
        elif here is not None and isinstance(here.value, list) and isinstance(part, int) and part < len(here.value):
            here = here.value[part]
        else:
            return None
    return here


def refuse(name: str, value: Located, allowed: str, problem: str = "", *, secret: bool = False) -> NoReturn:
    """Raise a SpecError for the variable or key ``name``; the value of a secret is not shown."""
    given = None if secret or isinstance(value.value, Private) else Shown(value.value)
    raise SpecError(f"{name}: {problem or 'not accepted'}", where=value.where, given=given, allowed=allowed)


def refuse_templates(name: str, value: Located) -> None:
    """SpecError for a value that only Ansible could evaluate or decrypt."""
    if value.value is VAULT or (isinstance(value.value, dict) and "__ansible_vault" in value.value):
        allowed = "a plain value, or a secret as env:, file: or cmd:"
        refuse(name, value, allowed, "gpuready cannot decrypt ansible-vault values", secret=True)
    if isinstance(value.value, str) and any(mark in value.value for mark in ("{{", "{%", "{#")):
        refuse(name, value, "a plain value", "gpuready does not evaluate templates")

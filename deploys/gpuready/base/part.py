"""What the dataclasses of the result document share.

They need no pydantic, because most runs neither read a document nor print the schema.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

#: Metadata of a field that the document omits if it is None.
OPTIONAL = {"optional": True}
#: Metadata of a time: the document rounds it to milliseconds.
SECONDS = {"digits": 3}


class Part:
    """A mapping of the result document. The text below a field is its description in the JSON Schema.

    A reader ignores other keys, which a newer release may have written.
    """

    __pydantic_config__: ClassVar[Any] = {
        "use_attribute_docstrings": True,
        "allow_inf_nan": False,
        "json_schema_extra": {"additionalProperties": False},
    }
    derived: ClassVar[tuple[str, ...]] = ()
    """Properties that the document shows, too."""
    keyed: ClassVar[tuple[str, ...]] = ()
    """Fields with a value of the setting that the field ``key`` names; the document hides a secret's value."""


@dataclass(frozen=True)
class OneOf:
    """Annotation: one of these values."""

    values: tuple[str | int, ...]

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> "CoreSchema":
        from pydantic_core import core_schema

        return core_schema.literal_schema(list(self.values))


@dataclass(frozen=True)
class Bound:
    """Annotation: a bound of pydantic's, such as ``Bound("ge", 0)``."""

    name: str
    value: int

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], Any]) -> "CoreSchema":
        found: CoreSchema = {**handler(source), self.name: self.value}
        return found


#: Numbers from 0.
Count = Annotated[int, Bound("ge", 0)]
Amount = Annotated[float, Bound("ge", 0)]

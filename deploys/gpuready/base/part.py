"""What the dataclasses of the result document share.

They need no pydantic, because most runs neither read a document nor print the schema.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

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
        "json_schema_extra": {"additionalProperties": False},
    }
    derived: ClassVar[tuple[str, ...]] = ()
    """Properties that the document shows, too."""


@dataclass(frozen=True)
class OneOf:
    """Annotation: one of these values."""

    values: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> "CoreSchema":
        from pydantic_core import core_schema

        return core_schema.literal_schema(list(self.values))

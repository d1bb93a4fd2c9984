"""The base class of every mapping in the spec."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class Section(BaseModel):
    """A mapping in the spec. Null means empty, as when all keys under a heading are commented out.

    As with :class:`~gpuready.base.facts.Facts`, a default value is ``Model.model_construct()``, which builds nothing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_empty(cls, value: Any) -> Any:
        return {} if value is None else value

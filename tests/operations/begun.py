"""A host of a run that has begun, as far as an operation sees it."""

from typing import Any
from unittest.mock import Mock

from gpuready.model.spec import NodeSpec
from gpuready.operations.context import Context, begin


def begun(name: str = "gpu01", **attributes: Any) -> Mock:
    """A host with these attributes and an empty spec."""
    made = Mock(connector_data={}, **attributes)
    made.name = name
    begin(made, Context(NodeSpec()))
    return made

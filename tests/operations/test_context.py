"""What a run knows of a host is given, never assumed."""

from unittest.mock import Mock

import pytest

from gpuready.base.errors import BugError
from gpuready.contract.component import Disruption
from gpuready.model.spec import NodeSpec
from gpuready.operations.context import Context, context


def test_a_host_that_nothing_began_is_a_bug() -> None:
    host = Mock(connector_data={})
    with pytest.raises(BugError, match="has no context"):
        context(host)
    assert not host.connector_data


def test_without_a_word_no_disruption_is_allowed() -> None:
    assert Context(NodeSpec()).allowed is Disruption.none

"""A session at a node whose connection is gone."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from paramiko import Channel, SSHException

from gpuready.operations.transport import Session


@pytest.mark.parametrize("lost", [BrokenPipeError(), EOFError(), SSHException("no session")])
def test_what_a_node_said_before_its_connection_broke_is_still_read(lost: Exception) -> None:
    session = Session.__new__(Session)
    session._stream = Mock(Channel, shutdown_write=Mock(side_effect=lost))
    session.end_input()
    session._stream.shutdown_write.assert_called_once()

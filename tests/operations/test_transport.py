"""A session at a node whose connection is gone, and one that needs sudo's password."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from paramiko import Channel, SSHException

from gpuready.operations.ssh import HANDSHAKE, BoundedSocket
from gpuready.operations.transport import Session


@pytest.mark.parametrize("lost", [BrokenPipeError(), EOFError(), SSHException("no session")])
def test_what_a_node_said_before_its_connection_broke_is_still_read(lost: Exception) -> None:
    session = Session.__new__(Session)
    session._stream = Mock(Channel, shutdown_write=Mock(side_effect=lost))
    session.end_input()
    session._stream.shutdown_write.assert_called_once()


# As sudo -S: prompts on stderr, reads a line of stdin byte by byte, tries three times. tests/system has the real one.
_SUDO = """#!/bin/sh
echo "$@" >>{log}
case "$1" in
    -n) echo "sudo: a password is required" >&2; exit 1 ;;
esac
prompt=$3
shift 4
tries=0
while [ {asks} = yes ]; do
    printf %s "$prompt" >&2
    if ! IFS= read -r line; then
        echo "sudo: no password was provided" >&2
        exit 1
    fi
    echo "$line" >>{typed}
    [ "$line" = 'hunter2 %s \\' ] && break
    tries=$((tries + 1))
    echo "Sorry, try again." >&2
    [ $tries -lt 3 ] || exit 1
done
exec "$@"
"""


# In a process of its own: as in the engine, sockets are gevent's.
_RUN = """
from gevent import monkey
monkey.patch_all()
import sys
from unittest.mock import Mock
from pyinfra.api.host import Host
from pyinfra.connectors.local import LocalConnector
from gpuready.core.errors import UnreachableError
from gpuready.operations.transport import BECOME, run_script
from gpuready.spec.secrets import Secret
data = {BECOME: Secret(sys.argv[1])} if sys.argv[1] else {}
host = Mock(Host, connector=Mock(LocalConnector), data=data, connector_data={})
try:
    for _ in range(2):
        print(run_script(host, sys.argv[2], 20, "test"))
except UnreachableError as e:
    print(e)
"""
_PASSWORD = "hunter2 %s \\"


def ran(folder: Path, password: str, script: str, *, asks: bool = True) -> list[str]:
    """Run a script twice on this machine, as a user whom sudo asks for a password; what came back."""
    programs = {
        "id": "#!/bin/sh\necho 1000\n",
        "sudo": _SUDO.replace("{log}", f"{folder}/log").replace("{typed}", f"{folder}/typed"),
    }
    for name, text in programs.items():
        (folder / name).write_text(text.replace("{asks}", "yes" if asks else "no"))
        (folder / name).chmod(0o755)
    (folder / "typed").touch()
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    command = [sys.executable, "-c", _RUN, password, script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


@pytest.mark.fault("sudo-password")
def test_sudo_gets_its_password_by_stdin_and_the_script_is_whole(tmp_path: Path) -> None:
    script = 'echo "begin $NONCE"; echo "got $(cat | wc -c)"; echo "end 1 $NONCE"'
    assert ran(tmp_path, _PASSWORD, script) == ["['got 0', 'end 1']"] * 2
    assert (tmp_path / "typed").read_text().splitlines() == [_PASSWORD] * 2
    assert "hunter2" not in (tmp_path / "log").read_text()
    (tmp_path / "typed").unlink()
    assert ran(tmp_path, _PASSWORD, script, asks=False) == ["['got 0', 'end 1']"] * 2
    assert not (tmp_path / "typed").read_text()


@pytest.mark.fault("sudo-password")
def test_a_wrong_password_is_tried_once(tmp_path: Path) -> None:
    assert ran(tmp_path, "wrong", "true") == ["sudo refused the password"]
    assert (tmp_path / "typed").read_text() == "wrong\n"
    assert ran(tmp_path, "", "true") == ["sudo asks for a password"]


#: More than an answer may have, and then a good answer, so that a lost limit shows and costs no more memory.
_FLOOD = "head -c 25165824 /dev/zero | tr '\\0' x {}; printf '\\nbegin %s\\nend 0 %s\\n' $NONCE $NONCE"


@pytest.mark.fault("endless-line")
@pytest.mark.parametrize("stream", ["", ">&2"], ids=["stdout", "stderr"])
def test_a_session_counts_the_bytes_itself(tmp_path: Path, stream: str) -> None:
    """@local has no connection that would count them."""
    assert ran(tmp_path, _PASSWORD, _FLOOD.format(stream)) == [
        "the node sent more than 16 MiB where an answer was expected"
    ]


@pytest.mark.fault("endless-line")
def test_a_socket_delivers_no_more_than_its_allowance() -> None:
    sock = BoundedSocket(Mock(socket.socket, recv=lambda size: b"x" * size))
    read = 0
    with pytest.raises(OSError, match="the host sent more data than allowed"):
        while read <= HANDSHAKE:
            read += len(sock.recv(10_000))
    assert read == HANDSHAKE and sock.exhausted

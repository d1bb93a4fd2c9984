"""A session at a node whose connection is gone, and one that needs sudo's password."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from gevent import socket as cooperative
from paramiko import Channel, SSHException
from pyinfra.connectors.local import LocalConnector

from gpuready.core.errors import UnreachableError
from gpuready.operations import transport
from gpuready.operations.ssh import HANDSHAKE, BoundedSocket
from gpuready.operations.transport import EXECS, ConnectionLost, Session, ask, run_script


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


# --- what a node may print. Sessions of this process: only their sockets are gevent's.


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """This machine as a host, with small limits and without sudo."""
    for name, value in {
        "_ROOT": 'exec sh -c "$0"',
        "socket": cooperative,
        "ANSWER": 1000,
        "LINES": 10,
        "LINGER": 1,
    }.items():
        monkeypatch.setattr(transport, name, value)
    made = Mock(connector=Mock(LocalConnector), connector_data={}, data={})
    made.name = "gpu01"
    return made


BEGIN, END = 'echo "begin $NONCE"', 'echo "end 1 $NONCE"'


def lost(node: Mock, script: str, timeout: float = 60) -> str:
    """Why a script has no answer."""
    with pytest.raises(ConnectionLost) as caught:
        run_script(node, script, timeout, "test")
    return str(caught.value)


def test_only_lines_with_the_nonce_begin_and_end_an_answer(node: Mock) -> None:
    others = "echo begin; echo begin 0123456789abcdef; echo end 1 $NONCE of another"
    ends = "echo end 1; echo end 7 0123456789abcdef; echo x end 1 $NONCE; printf 'a\\r\\n'"
    found = run_script(node, f"{others}; {BEGIN}; {ends}; {END}; echo more", 60, "test")
    nonce = found[2].split()[-1]
    assert found == ["end 1", "end 7 0123456789abcdef", f"x end 1 {nonce}", "a", "end 1"] and len(nonce) == 16
    assert run_script(node, f"{BEGIN}; {END}", 60, "test") == ["end 1"]
    assert node.connector_data[EXECS] == 2


def test_an_answer_has_a_limit_of_bytes_on_both_streams_together(node: Mock) -> None:
    much = "the node sent more than 0 MiB where an answer was expected"
    zeros = "head -c {} /dev/zero | tr '\\0' x"
    assert len(run_script(node, f"{BEGIN}; {zeros.format(900)}; echo; {END}", 60, "test")[0]) == 900
    assert lost(node, f"{BEGIN}; {zeros.format(1100)}; echo; {END}") == much
    assert lost(node, f"{BEGIN}; {zeros.format(600)}; {zeros.format(600)} >&2; sleep 60") == much
    assert lost(node, f"{zeros.format(1100)}; echo; {BEGIN}; {END}") == much
    with Session(node, f"{zeros.format(1100)}; exit 3", "test") as session, pytest.raises(ConnectionLost, match=much):
        session.finish(60)


def test_an_answer_has_a_limit_of_lines(node: Mock) -> None:
    count = "n=0; while [ $n -lt {} ]; do echo; n=$((n+1)); done"
    assert run_script(node, f"{BEGIN}; {count.format(8)}; {END}", 60, "test") == [*[""] * 8, "end 1"]
    assert lost(node, f"{BEGIN}; {count.format(9)}; {END}") == (
        "the node sent more than 10 lines where an answer was expected"
    )


def test_an_answer_has_a_limit_of_time_before_and_after_it_begins(node: Mock) -> None:
    assert lost(node, "sleep 60", 2) == "no answer within 2 s"
    assert lost(node, f"{BEGIN}; echo x; sleep 60", 1) == "no answer within 1 s"
    assert lost(node, "while :; do echo; sleep 0.2; done", 1) == "no answer within 1 s"


def test_an_answer_without_an_end_is_none(node: Mock) -> None:
    incomplete = "the answer is incomplete: the script was killed on the node"
    for end in ("kill -9 $$", "exit", "printf 'end 1 0'", "echo end 1"):
        assert lost(node, f"{BEGIN}; echo x; {end}") == incomplete
    assert lost(node, "exit 0") == "the node closed the session without a message"


def test_a_script_that_does_not_arrive_whole_does_not_run(node: Mock, tmp_path: Path) -> None:
    with pytest.raises(UnreachableError):
        run_script(node, f": >{tmp_path}/ran\n(", 60, "test")
    assert list(tmp_path.iterdir()) == []


REFUSALS = {
    "sudo: 3 incorrect password attempts": "sudo refused the password",
    "sudo: a password is required": "sudo asks for a password",
    "sh: 1: exec: sudo: not found": "the login user is not root, and there is no sudo",
    "me is not in the sudoers file": "the login user may not use sudo",
    "Sorry, user me is not allowed to execute": "the login user may not use sudo",
    "This account is closed.": "no root shell: This account is closed.",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_why_there_is_no_root_shell(text: str, node: Mock) -> None:
    for stream in ("", " >&2"):
        with pytest.raises(UnreachableError) as caught:
            run_script(node, f"echo '{text}'{stream}; exit 1", 60, "test")
        assert str(caught.value) == REFUSALS[text]


def test_stdin_goes_to_the_script_and_its_end_and_status_come_back(node: Mock) -> None:
    with Session(node, 'read -r line; echo "got $line"; cat; echo why >&2; exit 3', "test") as session:
        assert session.is_open()
        session.send(b"one\ntwo\n", 60)
        session.end_input()
        assert session.finish(60) == (3, "got one\ntwo\n", "why\n")
        assert not session.is_open()
        session.send(b"late", 60)
    with Session(node, "kill -9 $$", "test") as session, pytest.raises(ConnectionLost, match="was killed on the node"):
        session.finish(60)


def test_words_are_heard_until_the_script_ends(node: Mock) -> None:
    script = 'for w in no one two; do echo "$w rest of $w $NONCE"; done; echo "three $NONCE x"'
    with Session(node, script, "test") as session:
        assert session.hear("one", "two", limit=60) == ("one", "rest of one")
        assert session.listen("two", "three", limit=60) == ("two", "rest of two")
        assert session.listen("three", limit=60) is None


def test_a_program_on_this_machine_waits_for_its_input(node: Mock) -> None:
    """gevent's sockets do not block; a program whose stdin did not would end before the script arrives."""
    words = [sys.executable, "-c", "import os; os.write(1, str([*map(os.get_blocking, range(3))]).encode())"]
    local = transport._Local(words)
    try:
        assert local.recv(100) == b"[True, True, True]"
    finally:
        local.close()


def test_the_first_line_of_a_command_is_asked(node: Mock) -> None:
    assert ask(node, "echo ' one '; echo two; echo why >&2", 60, "test") == "one"
    assert ask(node, "false", 60, "test") == ""


def test_a_host_without_ssh_is_not_reached() -> None:
    with pytest.raises(UnreachableError, match="only over SSH, or this machine as @local"):
        run_script(Mock(connector=object(), connector_data={}, data={}), "true", 60, "test")

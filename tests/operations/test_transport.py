"""A session at a node whose connection is gone, and one that needs sudo's password."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import gevent
import pytest
from gevent import socket as cooperative
from paramiko import Channel, ChannelException, SSHClient, SSHException
from pyinfra.api.host import Host
from pyinfra.connectors.local import LocalConnector

from gpuready.base.errors import UnreachableError
from gpuready.inventory.secrets import Secret
from gpuready.operations import ssh, transport
from gpuready.operations.context import context
from gpuready.operations.events import Event
from gpuready.operations.ssh import HANDSHAKE, BoundedSocket, BoundedTransport, Proxy
from gpuready.operations.transport import ConnectionLost, Session, ask, run_script
from tests.operations.begun import begun


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


# In a process of its own, because there sockets are gevent's, as in a run.
_RUN = """
from gevent import monkey
monkey.patch_all()
import sys
from unittest.mock import Mock
from pyinfra.connectors.local import LocalConnector
from gpuready.base.errors import UnreachableError
from gpuready.operations.transport import BECOME, run_script
from gpuready.inventory.secrets import Secret
from tests.operations.begun import begun
data = {BECOME: Secret(sys.argv[1])} if sys.argv[1] else {}
host = begun(connector=Mock(LocalConnector), data=data)
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
@pytest.mark.parametrize(("stream", "most"), [("", "16 MiB"), (">&2", "1 MiB of errors")], ids=["stdout", "stderr"])
def test_a_session_counts_the_bytes_itself(tmp_path: Path, stream: str, most: str) -> None:
    """@local has no connection that would count them."""
    assert ran(tmp_path, _PASSWORD, _FLOOD.format(stream)) == [
        f"the node sent more than {most} where an answer was expected"
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
        "ERRORS": 1000,
        "LINES": 10,
        "LINGER": 1,
    }.items():
        monkeypatch.setattr(transport, name, value)
    return begun(connector=Mock(LocalConnector), data={})


BEGIN, END = 'echo "begin $NONCE"', 'echo "end 1 $NONCE"'


def lost(node: Mock, script: str, timeout: float = 60) -> str:
    """Why a script has no answer."""
    with pytest.raises(ConnectionLost) as caught:
        run_script(node, script, timeout, "test")
    return str(caught.value)


def test_a_limit_counts_from_the_start_and_is_named_whole(node: Mock) -> None:
    assert lost(node, f"sleep 1; {BEGIN}; sleep 1.5; {END}", timeout=2) == "no answer within 2 s"


def test_only_lines_with_the_nonce_begin_and_end_an_answer(node: Mock) -> None:
    others = "echo begin; echo begin 0123456789abcdef; echo end 1 $NONCE of another"
    ends = "echo end 1; echo end 7 0123456789abcdef; echo x end 1 $NONCE; printf 'a\\r\\n'"
    found = run_script(node, f"{others}; {BEGIN}; {ends}; {END}; echo more", 60, "test")
    nonce = found[2].split()[-1]
    assert found == ["end 1", "end 7 0123456789abcdef", f"x end 1 {nonce}", "a", "end 1"] and len(nonce) == 16
    assert run_script(node, f"{BEGIN}; {END}", 60, "test") == ["end 1"]
    assert context(node).execs == 2


def test_each_stream_has_a_limit_of_bytes(node: Mock) -> None:
    much = "the node sent more than 0 MiB where an answer was expected"
    zeros = "head -c {} /dev/zero | tr '\\0' x"
    assert len(run_script(node, f"{BEGIN}; {zeros.format(900)}; echo; {END}", 60, "test")[0]) == 900
    assert lost(node, f"{BEGIN}; {zeros.format(1100)}; echo; {END}") == much
    assert lost(node, f"{BEGIN}; {zeros.format(1100)} >&2; sleep 60") == much.replace("MiB", "MiB of errors")
    assert (
        len(run_script(node, f"{BEGIN}; {zeros.format(900)}; {zeros.format(900)} >&2; echo; {END}", 60, "test")[0])
        == 900
    )
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


@pytest.mark.fault("interrupt")
def test_ctrl_c_at_the_terminal_does_not_reach_what_runs_on_this_machine() -> None:
    """The terminal signals its foreground process group, which is gpuready's. sudo finds its session unchanged."""
    local = transport._Local(["cat"])
    proxy = Proxy("cat")
    try:
        for process in (local._process, proxy.process):
            assert os.getpgid(process.pid) == process.pid != os.getpgrp()
        assert os.getsid(local._process.pid) == os.getsid(0) != os.getsid(proxy.process.pid)
    finally:
        local.close()
        proxy.close()


def test_the_first_line_of_a_command_is_asked(node: Mock) -> None:
    assert ask(node, "echo ' one '; echo two; echo why >&2", 60, "test") == "one"
    assert ask(node, "false", 60, "test") == ""


def test_a_host_without_ssh_is_not_reached() -> None:
    with pytest.raises(UnreachableError, match="only over SSH, or this machine as @local"):
        run_script(begun(connector=object(), data={}), "true", 60, "test")


# --- without a process: what SSH, a broken connection and a full answer do -----------------------------------------


def bare(**attributes: object) -> Session:
    """A session that never began, with a stream that is a mock unless given."""
    session = Session.__new__(Session)
    defaults: dict[str, object] = {
        "_stream": Mock(Channel), "_drain": Mock(), "_host": begun(), "_name": "test", "_nonce": "n",
        "_began": 0.0, "_sent": 0, "_read": 0, "_errors": 0, "_lines": 0, "_closed": False, "_text": bytearray(),
        "_position": 0, "_noise": "", "_complaint": bytearray(), "_password": None, "_prompt": "prompt",
    }  # fmt: skip
    for name, value in (defaults | attributes).items():
        setattr(session, name, value)
    return session


@pytest.fixture
def far() -> Mock:
    """A host over SSH whose connection is open."""
    tunnel = Mock(BoundedTransport, is_active=Mock(return_value=True), bounded=Mock(exhausted=False))
    made = begun(spec=Host, connector=Mock(client=Mock(SSHClient)), data={})
    context(made).probe_timeout = 120
    made.connector.client.get_transport.return_value = tunnel
    return made


def tunnel_of(far: Mock) -> Mock:
    return far.connector.client.get_transport.return_value  # type: ignore[no-any-return]


def failure(host: Mock) -> tuple[type, str, str]:
    """How a session at the host fails to begin: class, message and remedy."""
    with pytest.raises(UnreachableError) as caught:
        Session(host, "true", "test")
    return type(caught.value), str(caught.value), caught.value.remedy


AGAIN = "check the network, then run again"
SSHD = "see MaxSessions and ForceCommand in its sshd_config"


def test_a_session_is_one_channel_with_limits(far: Mock) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gevent, "spawn", Mock())
        with Session(far, "true", "test"):
            pass
    tunnel_of(far).allow.assert_called_once_with(transport.ANSWER, 120)
    tunnel_of(far).open_session.assert_called_once_with(timeout=120)
    (command,), _ = tunnel_of(far).open_session.return_value.exec_command.call_args
    assert command.startswith("sh -c 'LC_ALL=C; ") and "exec sudo -n -H sh -c" in command


@pytest.mark.parametrize(("granted", "silence"), [(5, 30), (30, 30), (120, 120), (3600, 3600)])
def test_a_silent_host_is_waited_for_as_long_as_it_may_take_to_answer(granted: int, silence: int) -> None:
    """By the kernel, and by the keepalive requests to its sshd."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sock:
        tunnel = BoundedTransport(sock)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gevent, "spawn", Mock())
            tunnel.allow(1, granted)
        names = ("USER_TIMEOUT", "KEEPIDLE", "KEEPINTVL", "KEEPCNT")
        kernel = [sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}")) for name in names]
    unacknowledged, idle, interval, count = kernel
    assert unacknowledged == silence * 1000 and silence - 4 < idle + interval * count <= silence
    limits = []

    class Timeout(gevent.Timeout):
        def __init__(self, seconds: float) -> None:
            limits.append(seconds)
            super().__init__()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gevent, "Timeout", Timeout)
        closing, lost = Mock(wait=Mock(return_value=False)), Mock(side_effect=EOFError)
        ssh._watch(Mock(closing=closing, silence=tunnel.silence, global_request=lost))
    assert limits == [silence]


def test_a_server_that_refuses(far: Mock) -> None:
    for error, text in ((ChannelException(1, "Prohibited"), " (Prohibited)"), (SSHException("x"), "")):
        tunnel_of(far).open_session.side_effect = error
        assert failure(far) == (UnreachableError, f"the SSH server refused a session{text}", SSHD)
    tunnel_of(far).open_session = Mock(return_value=Mock(exec_command=Mock(side_effect=SSHException("x"))))
    assert failure(far) == (UnreachableError, "the SSH server refused to run a command", SSHD)
    tunnel_of(far).is_active.side_effect = [True, False]
    assert failure(far) == (ConnectionLost, "the connection broke (x)", AGAIN)


def test_a_connection_that_is_closed_or_missing(far: Mock) -> None:
    tunnel_of(far).is_active.return_value = False
    assert failure(far) == (ConnectionLost, "the connection is closed", AGAIN) and not transport.is_up(far)
    far.connector.client.get_transport.return_value = None
    assert failure(far) == (ConnectionLost, "the connection is closed", AGAIN) and not transport.is_up(far)
    far.connector.client = None
    only = "gpuready reaches hosts only over SSH, or this machine as @local"
    assert failure(far) == (UnreachableError, only, "") and not transport.is_up(far)
    transport.hang_up(far)


def test_why_a_stream_ended(far: Mock) -> None:
    much = "the node sent more than 16 MiB where an answer was expected"
    shell = "check what root's shell prints at login"
    assert bare(_host=far)._broken() is None and bare(_host=far, _read=16 << 20, _errors=1 << 20)._broken() is None
    assert transport.is_up(far)

    def why(session: Session) -> tuple[str, str]:
        found = session._broken()
        assert found is not None
        return str(found), found.remedy

    assert why(bare(_host=far, _read=(16 << 20) + 1)) == (much, shell)
    assert why(bare(_host=far, _errors=(1 << 20) + 1)) == (much.replace("16 MiB", "1 MiB of errors"), shell)
    tunnel_of(far).bounded.exhausted = True
    assert why(bare(_host=far)) == (much, shell)
    tunnel_of(far).bounded.exhausted, tunnel_of(far).is_active.return_value = False, False
    assert why(bare(_host=far)) == ("the connection broke", AGAIN)


def test_the_answer_over_its_limit_closes_the_connection(far: Mock) -> None:
    session = bare(_host=far, _read=16 << 20, _errors=1 << 20)
    session._stop_flood()
    far.connector.client.close.assert_not_called()
    far.connector.client.close.side_effect = OSError
    session._read += 1
    with pytest.raises(ConnectionLost, match="more than 16 MiB"):
        session._stop_flood()
    far.connector.client.close.assert_called_once_with()


def test_errors_are_counted_over_all_that_arrive(far: Mock) -> None:
    stderr = Mock(side_effect=[b"x" * 600_000, b"x" * 600_000, b""])
    session = bare(_host=far, _stream=Mock(Channel, recv_stderr=stderr))
    session._read_stderr()
    assert "1 MiB of errors" in str(session._broken()) and stderr.call_count == 2


def test_remedies(node: Mock) -> None:
    def remedy(script: str) -> str:
        with pytest.raises(UnreachableError) as caught:
            run_script(node, script, 20, "test")
        return caught.value.remedy

    assert remedy("exit") == remedy(f"{BEGIN}; exit") == AGAIN
    assert remedy("echo askpass; exit 1") == (
        "use --ask-become-pass, set ansible_become_password to env:GPUREADY_NAME, or give the login user NOPASSWD in "
        "sudoers"
    )
    with Session(node, "kill -9 $$", "test") as session, pytest.raises(ConnectionLost) as caught:
        session.finish(20)
    assert (str(caught.value), caught.value.remedy) == ("the script was killed on the node", AGAIN)


BROKEN = [OSError(), EOFError(), SSHException(), ConnectionLost("x")]


@pytest.mark.parametrize("error", BROKEN, ids=lambda error: type(error).__name__)
def test_a_connection_that_breaks_at_the_end_is_no_error(error: Exception) -> None:
    stream = Mock(Channel, recv=Mock(side_effect=error), recv_stderr=Mock(side_effect=error))
    session = bare(_stream=stream)
    session.linger()
    session._read_stderr()
    if not isinstance(error, ConnectionLost):
        stream.close.side_effect = error
    session.close()
    session._drain.kill.assert_called_once_with(block=False)  # type: ignore[attr-defined]


def test_a_session_is_told_once_with_all_that_was_sent(node: Mock) -> None:
    seen: list[Event] = []
    context(node).observer = seen.append
    with Session(node, "cat; echo error >&2", "test") as session:
        session.send(b"x" * 500, 20)
        session.send(b"y" * 10, 20)
        session.end_input()
        assert session.finish(20) == (0, "x" * 500 + "y" * 10, "error\n")
        session.close()
    assert [event.name for event in seen] == ["test"] and 510 < seen[0].sent < 700
    assert seen[0].received == 510 + len("error\n")


def test_an_answer_may_take_all_of_its_time(node: Mock) -> None:
    assert run_script(node, f"{BEGIN}; sleep 1.5; {END}", 60, "test") == ["end 1"]


def test_a_program_left_behind_does_not_delay_the_error(node: Mock) -> None:
    with gevent.Timeout(20):
        assert lost(node, "sleep 40 </dev/null >/dev/null & exit") == "the node closed the session without a message"


def test_a_script_that_does_not_end_after_its_answer_is_waited_for_a_moment(node: Mock) -> None:
    with gevent.Timeout(30):
        assert run_script(node, f"{BEGIN}; {END}; exec sleep 100", 60, "test") == ["end 1"]


def test_texts_that_are_not_utf8(node: Mock) -> None:
    with Session(node, r"printf '\303\251\377'; printf '\376' >&2", "test") as session:
        assert session.finish(20) == (0, "\u00e9\udcff", "\udcfe")
    found = run_script(node, rf"{BEGIN}; printf 'X \r\r\n\303\251 \t\nX\r\n'; {END}", 20, "test")
    assert found == ["X ", "\ufffd\ufffd \t", "X", "end 1"]
    with pytest.raises(UnreachableError, match="no root shell: a\ufffdb"):
        run_script(node, r"printf 'a\377b\n' >&2; exit 1", 20, "test")


def test_sudos_prompt_is_answered_once_and_not_kept() -> None:
    session = bare(_password=Secret("hunter2"), _complaint=bytearray(b"a prompt"))
    session._answer_prompt()
    session._stream.sendall.assert_called_once_with(b"hunter2\n")  # type: ignore[union-attr]
    assert session._complaint == b"a "
    session._answer_prompt()
    session._stream.shutdown_write.assert_not_called()  # type: ignore[union-attr]
    session._complaint += b"prompt"
    session._answer_prompt()
    session._stream.sendall.assert_called_once()  # type: ignore[union-attr]
    session._stream.shutdown_write.assert_called_once_with()  # type: ignore[union-attr]


def test_the_read_end_of_this_machines_stream_is_empty_once_it_is_gone() -> None:
    local = transport._Local(["true"])
    try:
        local._io = Mock(recv=Mock(side_effect=OSError(errno.ECONNRESET, "x")))
        assert local.recv(1) == b""
        local._io.recv.side_effect = OSError(errno.EIO, "x")
        with pytest.raises(OSError, match="x"):
            local.recv(1)
    finally:
        local.close()

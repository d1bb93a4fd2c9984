"""SSH servers that lie, flood, stall and cut: one port, and the login name chooses the trick.

A trick gets the session once the script has arrived, so it knows the nonce: what it does, a compromised node can do.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import re
import socket
import struct
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import paramiko

from gpuready.base import resources
from gpuready.base.archive import members
from gpuready.components.memlock.component import LIMITS
from tests.model.probe_answers import h200_lines, lines, recorded
from tests.model.probe_answers import tar as packed

ESCAPES = "\x1b[2J\x1b]0;owned\x07\x1b[31m\x9b31m\u202e\u2066\x08\x7f\r"
#: Seconds after which a trick that stalls gives up, so that no thread outlives the tests.
STALL = 90


@dataclass
class Exec:
    """One command that a client began: its script has been read, nothing has been said."""

    channel: paramiko.Channel
    nonce: str
    kind: str
    """``probe``, ``lock``, ``step`` or ``other``."""
    server: Server
    user: str

    def say(self, data: str | bytes) -> None:
        """Print on stdout."""
        self.channel.sendall(data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data)

    def complain(self, data: str | bytes) -> None:
        """Print on stderr."""
        self.channel.sendall_stderr(data.encode() if isinstance(data, str) else data)

    def answer(self, rows: list[str]) -> None:
        """A proper answer with these records; their last line is ``end COUNT``."""
        self.say(f"\nbegin {self.nonce}\n" + "".join(f"{row}\n" for row in rows[:-1]) + f"{rows[-1]} {self.nonce}\n")

    def leave(self, status: int = 0) -> None:
        """End with an exit status."""
        self.channel.send_exit_status(status)
        self.channel.close()


Trick = Callable[[Exec], None]
TRICKS: dict[str, Trick] = {}
#: What a person must read in the host's one message; one of several parts.
SAYS: dict[str, str] = {}


def trick(says: str) -> Callable[[Trick], Trick]:
    """Register a trick under its name; ``says`` is a part of the message that the host must get."""

    def register(function: Trick) -> Trick:
        name = function.__name__.strip("_")
        TRICKS[name], SAYS[name] = function, says
        return function

    return register


def answers(says: str) -> Callable[[Callable[[], list[str]]], Trick]:
    """Register a trick that answers with these records."""

    def register(function: Callable[[], list[str]]) -> Trick:
        def play(session: Exec) -> None:
            session.answer(function())
            session.leave()

        play.__name__ = function.__name__
        return trick(says)(play)

    return register


def good(session: Exec) -> None:
    """A node with one H200, as it was recorded."""
    session.answer(h200_lines())
    session.leave()


# --- what takes no more than a table -------------------------------------------------------------------------


BEGIN, ROWS = "\nbegin NONCE\n", "".join(f"{row}\n" for row in h200_lines())
ANSWER = f"{BEGIN}{ROWS.rstrip()} NONCE\n"
NO_TAR = base64.b64encode(b"no tar" * 1000 + bytes(1024)).decode()
NO_TERMINAL = "sudo: a terminal is required to read the password\n"
PASSWORD = "sudo: a password is required\n"
#: Part of the message, stdout (NONCE stands for the probe's), stderr, and the exit status.
SAID = {
    "spoofed_sudo": ("sudo asks for a password", "", PASSWORD, 1),
    "spoofed_sudo_on_stdout": ("sudo asks for a password", NO_TERMINAL + PASSWORD, "", 1),
    "markers_without_nonce": ("no root shell", f"begin\n{ROWS}", "", 0),
    "markers_in_motd": ("", f"begin\nend 0\nbegin 1234\ntar AAAA\nend 1 1234\n{ANSWER}", "", 0),
    "noise_without_newline": ("", f"\x1b]0;title\x07Welcome to \udcff\udcfe{ANSWER}", "", 0),
    "wrong_nonce": ("no root shell", ANSWER.replace("NONCE", "0123456789abcdef"), "", 0),
    "answer_of_another_exec": ("the answer is incomplete", BEGIN + ANSWER.replace("NONCE", "feedfacefeedface"), "", 0),
    "not_utf8": ("damaged", f"{BEGIN}tar \udcff\udcfe\udcfd\nend 1 NONCE\n", "", 0),
    "wrong_count": ("cut: 1 records of 7", f"{BEGIN}{ROWS.rpartition('end')[0]}end 7 NONCE\n", "", 0),
    "early_close": ("the answer is incomplete", f"{BEGIN}tar QUFB", "", 0),
    "no_word": ("without a message", "", "", 0),
    "unknown_record": ("unknown line", f"{BEGIN}rm -rf / {ESCAPES!r}\nend 1 NONCE\n", "", 0),
    "escapes_in_the_refusal": ("no root shell", "", f"{ESCAPES}you shall not pass{ESCAPES}\n", 1),
    "not_base64": ("damaged", f"{BEGIN}tar !!!!\nend 1 NONCE\n", "", 0),
    "not_a_tar": ("damaged", f"{BEGIN}tar {NO_TAR}\nend 1 NONCE\n", "", 0),
}
#: Part of the message, how it begins on stdout, and what it repeats there for ever.
ENDLESS = {
    "endless_line": ("sent more than|no answer within", "", b"x" * 32768),
    "endless_lines": ("sent more than", "", b"line of nothing\n" * 2048),
    "endless_empty_lines": ("sent more than", BEGIN, b"\n" * 32768),
    "endless_record": ("sent more than|no answer within", f"{BEGIN}tar ", b"QUFB" * 8192),
    "flood_after_the_answer": ("", ANSWER, b"y" * 32768),
    "answer_without_end_of_stream": ("", ANSWER, b""),
    "silence": ("no answer within", "", b""),
}


def _says(out: str, err: str, status: int) -> Trick:
    def play(session: Exec) -> None:
        session.say(out.replace("NONCE", session.nonce))
        session.complain(err)
        session.leave(status)

    return play


def _repeats(begin: str, chunk: bytes) -> Trick:
    def play(session: Exec) -> None:
        session.say(begin.replace("NONCE", session.nonce))
        _forever(session.channel.sendall, chunk)

    return play


def _forever(send: Callable[[bytes], object], chunk: bytes, pause: float = 0) -> None:
    end = time.monotonic() + STALL
    while time.monotonic() < end:
        send(chunk)
        time.sleep(pause if chunk else STALL)


TRICKS |= {name: _says(*said) for name, (_, *said) in SAID.items()}
TRICKS |= {name: _repeats(*repeated) for name, (_, *repeated) in ENDLESS.items()}
SAYS |= {name: told for name, (told, *_) in (SAID | ENDLESS).items()}


@trick("no answer within")
def prompts_and_waits(session: Exec) -> None:
    session.say("[sudo] password for root: ")
    session.complain(PASSWORD)
    time.sleep(STALL)


# --- too much, too slow -------------------------------------------------------------------------------------


@trick("sent more than")
def endless_stderr(session: Exec) -> None:
    _forever(session.channel.sendall_stderr, b"e" * 32768)


@trick("no answer within")
def huge_stderr_then_silence(session: Exec) -> None:
    session.complain(b"e" * (900 << 10))
    time.sleep(STALL)


@trick("no answer within|sent more than")  # whichever comes first
def packets_without_meaning(session: Exec) -> None:
    transport = session.channel.get_transport()
    end = time.monotonic() + STALL
    while time.monotonic() < end and transport.is_active():
        transport.send_ignore(4000)


@trick("no answer within")
def slow_drip(session: Exec) -> None:
    session.say(f"\nbegin {session.nonce}\ntar ")
    _forever(session.channel.sendall, b"A", pause=0.2)


@trick("broke")
def disconnect(session: Exec) -> None:
    session.say(f"\nbegin {session.nonce}\n")
    session.channel.get_transport().sock.shutdown(socket.SHUT_RDWR)


# --- what is in the answer ----------------------------------------------------------------------------------


def _members(rows: list[str]) -> dict[str, bytes]:
    return {one.path[1:]: one.data for one in members(base64.b64decode(rows[0].removeprefix("tar ")))}


@answers("")
def escapes_in_every_field() -> list[str]:
    found: dict[str, bytes] = {}
    for name, data in _members(h200_lines()).items():
        text = data.decode("utf-8", "surrogateescape")
        if not name.endswith(".rc"):
            text = re.sub(r"(?m)([=\t :>]\s*)([^\s<>=:/]{2,})$", lambda m: m[1] + ESCAPES.strip() + m[2], text)
        found[name] = text.encode("utf-8", "surrogateescape")
    return [f"tar {base64.b64encode(packed({**found})).decode()}", "end 1"]


@answers("damaged")
def tar_bomb() -> list[str]:
    """Sparse members of GNU tar: 1 MiB of holes each, a few bytes on the wire."""
    blocks = b""
    for number in range(400):
        header = tarfile.TarInfo(f"etc/bomb{number}.conf")
        header.size = 512
        raw = bytearray(header.tobuf(tarfile.GNU_FORMAT))
        raw[156:157] = b"S"
        raw[386:398], raw[398:410] = b"%011o\0" % ((1 << 20) - 512), b"%011o\0" % 512
        raw[483:495] = b"%011o\0" % (1 << 20)
        raw[148:156] = b"        "
        raw[148:156] = b"%06o\0 " % sum(raw[:512])
        blocks += bytes(raw) + b"x" * 512
    return ["tar " + base64.b64encode(blocks + bytes(1024)).decode(), "end 1"]


@answers("")
def yaml_bomb() -> list[str]:
    rows = ["a0: &a0 {x: 1}"]
    rows += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)]
    spec = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: []\n" + "\n".join(rows) + "\n"
    return lines({"/etc/cdi/nvidia.yaml": spec})


@answers("")
def deep_json() -> list[str]:
    return lines(outs={"docker": "[" * 200_000}, files={"/etc/docker/daemon.json": '{"a":' * 100_000})


@answers("")
def slow_to_mask() -> list[str]:
    name = 'PRETTY_NAME="' + "auth-" * 3200 + '"\nID=debian\n'
    return lines({"/etc/os-release": name, "/etc/docker/daemon.json": json.dumps({"auth-" * 3200: "x"})})


@answers("")
def entity_bomb() -> list[str]:
    rows = "".join(f'<!ENTITY e{n} "{10 * f"&e{n - 1};"}">' for n in range(1, 12))
    bomb = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "ha">{rows}]><nvidia_smi_log>&e11;</nvidia_smi_log>'
    return lines({"/etc/os-release": recorded("etc-os-release.txt")}, outs={"smi": bomb})


@answers("")
def default_attributes() -> list[str]:
    """Each element gets a copy of the attribute's default: 120 KB of XML stand for 500 MB."""
    bomb = f'<!DOCTYPE l [<!ATTLIST x a CDATA "{"A" * 60_000}">]><l>{"<x/>" * 15_000}</l>'
    return lines({"/etc/os-release": recorded("etc-os-release.txt")}, outs={"smi": bomb})


MIB = 1 << 20


def _repeated(line: str, size: int) -> str:
    return line * (size // len(line))


@answers("")
def short_lines() -> list[str]:
    """As many lines as one part may have."""
    return lines(texts={"proc": _repeated("/proc/a:xxxxxxx\n", MIB)})


@answers("proc.text of the node's answer has|no answer within")
def too_many_short_lines() -> list[str]:
    return lines(texts={"proc": _repeated("/proc/a:xxxxxxx\n", 11 * MIB)})


@answers("of CPU time|no answer within")
def work_without_end() -> list[str]:
    """Each part is within its limit; together they are seconds of work."""
    found: dict[str, str | bytes] = {**_members(h200_lines()), "etc/nccl.conf": _repeated("x\n", MIB)}
    found |= {f"etc/ld.so.conf.d/{number}.conf": "\n" * MIB for number in range(9)}
    return [f"tar {base64.b64encode(packed(found)).decode()}", "end 1"]


@trick("")
def lies_about_steps(session: Exec) -> None:
    """A node that says yes to everything and does nothing."""
    if session.kind == "probe":
        good(session)
    elif session.kind == "lock":
        session.say(f"\nfree {session.nonce}\n")
        time.sleep(STALL)
    else:
        session.answer(["step 0 - -", "end 1"])
        session.leave()


@trick("another gpuready run is changing this node")
def holds_the_lock(session: Exec) -> None:
    if session.kind == "lock":
        session.say(f"\nheld {ESCAPES}mallory {session.nonce}\n")
        session.leave()
    else:
        good(session)


_AFTER = {**_members(h200_lines()), LIMITS.lstrip("/"): resources.document("memlock/memlock.limits").encode()}
#: What a node prints after a step of memlock.
UNLIMITED = [f"tar {base64.b64encode(packed({**_AFTER})).decode()}", "end 1"]


@trick("")
def converges(session: Exec) -> None:
    """A node that does what a step asks: the limits of locked memory are then as the step wrote them."""
    if session.kind == "lock":
        session.say(f"\nfree {session.nonce}\n")
        while session.channel.recv(1024):  # the heartbeat
            pass
    elif session.kind == "step":
        session.server.changed.add(session.user)
        lies_about_steps(session)
    else:
        answers = {"probe": UNLIMITED if session.user in session.server.changed else h200_lines(), "other": ["end 0"]}
        session.answer(answers[session.kind])
        session.leave()


@trick("damaged")
def garbage_from_steps(session: Exec) -> None:
    if session.kind == "step":
        session.answer(["step 0 !!! ???", "end 1"])
        session.leave()
    else:
        lies_about_steps(session)


@trick("")
def hangs_in_steps(session: Exec) -> None:
    """A step begins and says no more."""
    if session.kind == "step":
        session.say(f"\nbegin {session.nonce}\n")
        time.sleep(STALL)
    else:
        lies_about_steps(session)


@trick("")
def cut_after_the_probe(session: Exec) -> None:
    """As one that lies about steps, and its first connection breaks after the probe."""
    server, transport = session.server, session.channel.get_transport()
    lies_about_steps(session)
    if session.kind == "probe" and session.user not in server.cut:
        server.cut.add(session.user)
        transport.global_request("keepalive@openssh.com", wait=True)  # answered once the client has all of the answer
        transport.sock.shutdown(socket.SHUT_RDWR)


@trick("was refused")
def gone_after_the_probe(session: Exec) -> None:
    """Its connection breaks after the probe, and then nobody may log in."""
    cut_after_the_probe(session)


# --- before the login ---------------------------------------------------------------------------------------


def _ignored(size: int) -> bytes:
    """One SSH_MSG_IGNORE in clear text, as it may come before the keys (RFC 4253)."""
    padding = 4 + -(size + 6) % 8  # paramiko, as a client: all but the first 8 bytes come in blocks of 8
    return struct.pack(">IBBI", size + padding + 6, padding, 2, size) + bytes(size + padding)


#: What a socket sends at first, and then for ever.
RAW = {
    "banner_without_end": (b"", b"A" * 65536),  # no newline where the SSH version should be
    "banner_lines": (b"", b"hello there\r\n" * 1000),  # RFC 4253 allows some lines before the version
    "packets_before_the_login": (b"SSH-2.0-OpenSSH_9.9\r\n", _ignored(32_000) * 8),
    "huge_packet": (b"SSH-2.0-OpenSSH_9.9\r\n" + (0x7FFFFFF0).to_bytes(4, "big"), b"A" * 65536),  # it claims 2 GiB
}


class _Login(paramiko.ServerInterface):
    """Lets everyone in; the login name is the trick."""

    def __init__(self, server: Server, transport: paramiko.Transport) -> None:
        self.server, self.transport, self.user = server, transport, ""

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self.user = username
        gone = username == "refused" or (username in self.server.cut and username.startswith("gone"))
        return paramiko.AUTH_FAILED if gone else paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        refused = self.user == "refuses_channels"
        return paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED if refused else paramiko.OPEN_SUCCEEDED

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        try:
            there = socket.create_connection(destination)
        except OSError:
            return paramiko.OPEN_FAILED_CONNECT_FAILED
        threading.Thread(target=self._forward, args=(there,), daemon=True).start()
        return paramiko.OPEN_SUCCEEDED

    def _forward(self, there: socket.socket) -> None:
        """As a jump host does."""
        with contextlib.suppress(OSError, EOFError), there:
            here = self.transport.accept(STALL)
            threading.Thread(target=_pump, args=(there, here), daemon=True).start()
            _pump(here, there)

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if self.user == "refuses_commands":
            return False
        play = self._steal if self.user == "steals" else self._run
        threading.Thread(target=play, args=(channel, command), daemon=True).start()
        return True

    def _steal(self, channel: paramiko.Channel, command: bytes) -> None:
        """Ask as sudo would, and keep what is sent."""
        with contextlib.suppress(OSError, EOFError):
            if prompt := re.search(rb"sudo -S -p (\w+)", command):
                channel.sendall_stderr(prompt[1])
                self.server.stolen.append(channel.recv(1000))
            channel.close()

    def _run(self, channel: paramiko.Channel, command: bytes) -> None:
        with contextlib.suppress(OSError, EOFError, AttributeError, paramiko.SSHException):
            size = int(re.findall(rb"bs=(\d+)", command)[0])
            script = b""
            while len(script) < size and (chunk := channel.recv(65536)):
                script += chunk
            nonce = script.partition(b"\n")[0].partition(b"=")[2].decode()
            kinds = {"lock": b"/run/gpuready.lock", "step": b'echo "step', "probe": b"driver_values"}
            kind = next((kind for kind, part in kinds.items() if part in script), "other")
            self.server.begun.append(kind)
            name = self.user if self.user in TRICKS else self.user.rstrip("0123456789")
            TRICKS.get(name, good)(Exec(channel, nonce, kind, self.server, self.user))


def _pump(source: Any, target: Any) -> None:
    with contextlib.suppress(OSError, EOFError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError, EOFError):
        target.shutdown(socket.SHUT_RDWR)


#: Refused by the server itself.
SAYS |= {"refuses_channels": "refused a session", "refuses_commands": "refused to run a command"}


class Server:
    """A server on a loopback port of its own; ``raw`` replaces SSH altogether."""

    def __init__(self, key: paramiko.PKey, raw: tuple[bytes, bytes] | None = None) -> None:
        self.key, self.raw = key, raw
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = int(self._socket.getsockname()[1])
        self.accepted, self.peak = 0, 0
        """Connections in all, and at once."""
        self._transports: list[paramiko.Transport] = []
        self.begun: list[str] = []
        """The kinds of all execs, as they came."""
        self.cut: set[str] = set()
        """Users whose first connection was broken."""
        self.changed: set[str] = set()
        """Users whose node has done a step."""
        self.stolen: list[bytes] = []
        """What the user ``steals`` was sent as sudo's password."""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = self._socket.accept()[0]
                self.accepted += 1
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            if self.raw is not None:
                connection.sendall(self.raw[0])
                _forever(connection.sendall, self.raw[1])
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(self.key)
            self._transports = [each for each in self._transports if each.is_active()] + [transport]
            self.peak = max(self.peak, len(self._transports))
            transport.start_server(event=threading.Event(), server=_Login(self, transport))

    def close(self) -> None:
        """Accept no more."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def main() -> None:
    """Serve until stdin ends; the first line on stdout is the ports by trick and the host key, as JSON."""
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)  # clients that are gone
    key = paramiko.ECDSAKey.generate()
    servers = {"": Server(key), **{name: Server(key, raw) for name, raw in RAW.items()}}
    ports = {name: server.port for name, server in servers.items()}
    print(json.dumps({"ports": ports, "key": f"{key.get_name()} {key.get_base64()}"}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

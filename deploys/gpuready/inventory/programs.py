"""Programs that print an inventory: executables, ansible-inventory for plugins and encrypted files, and downloads.

Their output is bounded in bytes and time. ansible-inventory gets the paths of the inventory and this process's
environment, so Ansible's own settings work, such as ANSIBLE_VAULT_PASSWORD_FILE. Sources: Ansible's documentation of
``ansible-inventory`` and of ``INVENTORY_ANY_UNPARSED_IS_FAILED``.
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gpuready.base.errors import InventoryError
from gpuready.inventory.yaml_positions import MAX_BYTES, decode, is_json

#: Seconds that a program may take.
TIMEOUT = 60
_TAIL = 500
#: ansible-inventory else only warns about a file that it cannot read, and prints the rest.
_STRICT = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "True", "ANSIBLE_NOCOLOR": "1"}
INSTALL = "pip install ansible-core beside gpuready, or pipx inject gpuready ansible-core"


def script_output(path: str) -> str:
    return _json([str(Path(path).absolute()), "--list"], f"{path} --list")


def ansible_output(paths: Sequence[str]) -> str:
    """What ``ansible-inventory`` says about these files and directories, as JSON with the variables of groups."""
    program = _ansible_inventory()
    if program is None:
        raise InventoryError("--ansible: ansible-inventory is not installed", remedy=INSTALL)
    sources = [f"--inventory={path}" for path in paths]
    return _json([program, *sources, "--list", "--export"], "ansible-inventory", {**os.environ, **_STRICT})


def _ansible_inventory() -> str | None:
    """The one beside this Python, which pipx does not put on PATH; else that on PATH."""
    own = Path(sys.executable).with_name("ansible-inventory")
    return str(own) if os.access(own, os.X_OK) else shutil.which("ansible-inventory")


def _json(words: list[str], name: str, environment: Mapping[str, str] | None = None) -> str:
    code, out, tail = run(words, name, environment)
    if code:
        remedy = "set ANSIBLE_VAULT_PASSWORD_FILE" if "no vault secrets" in tail else ""
        raise InventoryError(f"{name}: exit {code}: {tail}", remedy=remedy)
    text = decode(out, name)
    if not is_json(text):
        raise InventoryError(f"{name}: did not print JSON")
    return text


def run(
    words: list[str], name: str, environment: Mapping[str, str] | None = None, stdin: Path = Path(os.devnull)
) -> tuple[int, bytes, str]:
    """The exit code, stdout, and the end of stderr. Raises InventoryError if it takes too long, or prints too much."""
    try:
        with (
            stdin.open("rb") as given,
            subprocess.Popen(
                words,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            ) as program,
        ):
            try:
                out, err = _read(program, name, time.monotonic() + TIMEOUT)
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)  # with the programs that it started
                raise
    except OSError as e:
        raise InventoryError(f"{name}: {e}") from None
    return program.returncode, out, err.decode("utf-8", "replace").strip()[-_TAIL:]


def _read(program: subprocess.Popen[bytes], name: str, deadline: float) -> tuple[bytes, bytes]:
    """All of stdout, and the end of stderr; InventoryError after the deadline, or for too much output."""
    assert program.stdout and program.stderr
    out, err = bytearray(), bytearray()
    late = InventoryError(f"{name}: took longer than {TIMEOUT} s")
    with selectors.DefaultSelector() as waiting:
        waiting.register(program.stdout, selectors.EVENT_READ, out)
        waiting.register(program.stderr, selectors.EVENT_READ, err)
        while waiting.get_map():
            ready = waiting.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise late
            for key, _ in ready:
                chunk = os.read(key.fd, 65536)
                key.data.extend(chunk)
                if not chunk:
                    waiting.unregister(key.fileobj)
            if len(out) > MAX_BYTES:
                raise InventoryError(f"{name}: printed more than {MAX_BYTES // 1_000_000} MB")
            del err[: -4 * _TAIL]
    try:
        program.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise late from None
    return bytes(out), bytes(err)

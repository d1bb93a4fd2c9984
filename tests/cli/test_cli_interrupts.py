"""An interrupt ends a run at any time, also while its result is rendered or written, and the result is still JSON."""

import json
import os
import signal
import subprocess
import sys

import pytest

#: A run whose rendering takes as long as it likes; it says on stderr when it has begun. Its sleeps are short: a signal
#: that arrives just before a long one would not end it.
SLOW = """
import sys, time
import gpuready.cli.output as output
from gpuready.cli.main import run
once = output.render
def render(found, code, form, **more):
    if not found.interrupted:
        print("rendering", file=sys.stderr, flush=True)
        [time.sleep(0.1) for _ in range(1200)]
    return once(found, code, form, **more)
output.render = render
sys.exit(run(["compat", "--driver", "535.54.03", "--image-cuda", "12.4.1", "--output", "json"]))
"""
#: A run whose document fills the pipe that nobody reads.
STALLED = SLOW.replace("[time.sleep(0.1) for _ in range(1200)]", 'return "x" * 1_000_000')


def started(code: str) -> subprocess.Popen[bytes]:
    program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert program.stderr is not None
    assert program.stderr.readline() == b"rendering\n"
    return program


@pytest.mark.fault("D3")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_the_rendering(number: int) -> None:
    program = started(SLOW)
    program.send_signal(number)
    out, err = program.communicate(timeout=60)
    assert program.returncode == 130 and b"Traceback" not in err
    found = json.loads(out)
    assert (found["exit_code"], found["error"]["kind"]) == (130, "interrupted")


@pytest.mark.fault("D3")
def test_the_first_interrupt_waits_for_a_reader_and_the_second_does_not() -> None:
    program = started(STALLED)
    assert program.stdout is not None and program.stderr is not None
    assert os.read(program.stdout.fileno(), 1) == b"x"  # it is being written
    program.send_signal(signal.SIGINT)
    assert b"interrupt again to give it up" in program.stderr.readline()
    program.send_signal(signal.SIGINT)
    program.stderr.read()
    assert program.wait(60) == 130


def test_an_interrupt_while_the_result_is_written_leaves_it_whole() -> None:
    program = started(STALLED)
    assert program.stdout is not None and program.stderr is not None
    first = os.read(program.stdout.fileno(), 1)
    program.send_signal(signal.SIGTERM)
    assert b"interrupt again" in program.stderr.readline()
    out, err = program.communicate(timeout=60)
    assert first + out == b"x" * 1_000_000 and program.returncode == 0 and b"Traceback" not in err


#: A run that is interrupted while a callback in C runs, where Python prints the exception and goes on.
IN_A_CALLBACK = SLOW.replace(
    "[time.sleep(0.1) for _ in range(1200)]",
    """
        import ctypes, signal
        ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()
        [time.sleep(0.1) for _ in range(1200)]""",
)


def test_an_interrupt_in_a_callback_of_c_is_not_lost() -> None:
    program = started(IN_A_CALLBACK)
    out, err = program.communicate(timeout=60)
    assert program.returncode == 130 and b"Traceback" not in err
    assert json.loads(out)["exit_code"] == 130

"""Start a module of gpuready in a process of its own.

Neither gevent's patches nor the user's current directory are in it: ``python -m`` would search that directory first, so
whoever can write there could run code.
"""

import os
import sys

_START = (
    "import sys; del sys.path[0]; import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def command(module: str) -> list[str]:
    """Return the words that run ``module`` as a program; its arguments can follow."""
    return [sys.executable, "-c", _START, module]


def environment() -> dict[str, str]:
    """Return its environment: it finds what this process finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

"""For all tests: a run that was put into the background has signals ignored, and what it starts would inherit that."""

from __future__ import annotations

import signal

for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda number, frame: None)  # children get the default back, this process stays deaf

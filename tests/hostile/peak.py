"""``python -m tests.hostile.peak FILE COMMAND ...``: run the command, and write its greatest memory, in bytes, to FILE.

The kernel counts the memory of the process that forks as that of its child: so a small one does it, not pytest.
"""

import resource
import signal
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    path, *command = sys.argv[1:]
    with subprocess.Popen(command) as child:
        signal.signal(signal.SIGINT, lambda number, frame: child.send_signal(number))
        signal.signal(signal.SIGTERM, lambda number, frame: child.kill())
        code = child.wait()
    Path(path).write_text(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10))
    sys.exit(code)

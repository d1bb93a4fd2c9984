"""``python -m gpuready``."""

from __future__ import annotations

from gpuready.cli.main import main

if __name__ == "__main__":
    main()

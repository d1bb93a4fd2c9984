"""``python -m gpuready``."""

from gpuready.cli.main import main

if __name__ == "__main__":
    main()

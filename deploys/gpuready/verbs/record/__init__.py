"""``gpuready record``."""

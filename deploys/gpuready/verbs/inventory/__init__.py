"""``gpuready inventory``."""

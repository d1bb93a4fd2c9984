"""``gpuready apply``."""

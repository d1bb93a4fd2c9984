"""``gpuready remove``."""

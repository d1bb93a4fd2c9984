"""``gpuready schema``."""

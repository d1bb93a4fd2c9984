"""``gpuready init``."""

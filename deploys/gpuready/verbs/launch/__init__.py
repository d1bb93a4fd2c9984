"""``gpuready launch``."""

"""``gpuready explain``."""

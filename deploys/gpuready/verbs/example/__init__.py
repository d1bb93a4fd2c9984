"""``gpuready example``."""

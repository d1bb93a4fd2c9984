"""``gpuready report``."""

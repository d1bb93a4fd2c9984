"""``gpuready verify``."""

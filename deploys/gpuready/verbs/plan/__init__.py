"""``gpuready plan``."""

"""``gpuready completion``."""

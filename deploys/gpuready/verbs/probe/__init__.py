"""``gpuready probe``."""

"""``gpuready status``."""

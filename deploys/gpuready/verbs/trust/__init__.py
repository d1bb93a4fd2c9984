"""``gpuready trust``."""

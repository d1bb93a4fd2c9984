"""``gpuready render``."""

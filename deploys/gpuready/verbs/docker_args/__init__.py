"""``gpuready docker-args``."""

"""``gpuready stress``: every GPU under load."""

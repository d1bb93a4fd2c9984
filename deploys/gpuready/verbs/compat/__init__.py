"""``gpuready compat``: whether an image runs on a driver and a GPU."""

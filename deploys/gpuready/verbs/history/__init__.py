"""``gpuready history``: how hosts and checks came to be as they are."""

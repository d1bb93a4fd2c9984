"""``gpuready bundle``: fetch what nodes without a route to the internet need."""

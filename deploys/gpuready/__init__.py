"""gpuready: take GPU hosts from an address and a key to ready for containers, and prove it."""

__version__ = "0.1.0"

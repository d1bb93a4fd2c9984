"""``gpuready nccl``."""

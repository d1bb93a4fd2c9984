"""``gpuready rdma``: an RDMA device for one container."""

"""``gpuready fabric``: RDMA, TCP and all-reduce between pairs of hosts."""

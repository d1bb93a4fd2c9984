"""The fabric between nodes: RDMA ports, their addresses, and what NCCL has to be told about them. Pure."""

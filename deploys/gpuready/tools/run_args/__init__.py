"""The options with which containers and jobs get a node's GPUs, shared memory and RDMA."""

"""Giving an RDMA device and its network interface to a container, and taking them back. Pure: facts in, steps out."""

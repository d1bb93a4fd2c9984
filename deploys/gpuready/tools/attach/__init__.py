"""Move an RDMA device and its network interface into a container, or back to the host. Pure: facts in, plans out."""

"""The tests: the tool, its package, its arguments at each end, and its time limit.

Sources: perftest's man pages and README, rping(1), NCCL's environment variables (docs.nvidia.com), torch.distributed's
env:// rendezvous. The server's port is not here: the node chooses a free one.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuready.network.links import End

PINGS = 10
PING_SIZE = 64
#: Bytes of a message: perftest's default for write_bw; for read_lat enough to exceed a packet's header.
WRITE_SIZE, READ_SIZE = 65536, 64
READS = 1000
ALL_REDUCE_BYTES = 1 << 30
ALL_REDUCES = 20
#: Seconds that a tool may need to find its peer, in addition to its measurement.
_CONNECT = 20


@dataclass(frozen=True)
class Test:
    """A test. ``listens``: what its server listens on, a TCP port (tcp) or the RDMA connection manager (cm).

    ``source``: the package with the tool.
    """

    name: str
    title: str
    unit: str
    tool: str
    source: str
    listens: str
    higher_is_better: bool
    both_ways: bool = False
    gpu: bool = False


TESTS = {
    test.name: test
    for test in (
        Test("rping", "rping: RDMA reads, writes and sends, checked", "pings", "rping",
             "rdmacm-utils (in the spec: rdma: {packages: [rdmacm-utils]})", "cm", True),
        Test("write_bw", "write_bw: ib_write_bw, average", "Gbit/s", "ib_write_bw",
             "perftest (in the spec: rdma: {packages: [perftest]})", "tcp", True, True),
        Test("read_lat", "read_lat: ib_read_lat, typical", "us", "ib_read_lat",
             "perftest (in the spec: rdma: {packages: [perftest]})", "tcp", False),
        Test("nccl", "nccl: all-reduce of torch, bus bandwidth", "Gbit/s", "python3",
             "python3 with torch and NCCL", "tcp", True, gpu=True),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Command:
    """The command of one end. ``before``: environment variables as NAME=VALUE; ``limit``: seconds."""

    test: Test
    arguments: tuple[str, ...]
    limit: int
    before: tuple[str, ...] = ()


def commands(test: Test, server: End, client: End, seconds: int) -> tuple[Command, Command]:
    """Return the commands of server and client. ``seconds``: how long write_bw measures."""
    if test.name == "rping":
        common = ("-C", str(PINGS), "-v", "-V", "-a", server.address)
        return (
            Command(test, ("-s", *common), 2 * _CONNECT),
            Command(test, ("-c", *common, *(("-I", client.address) if client.address else ())), _CONNECT),
        )
    if test.name == "nccl":
        return _nccl(test, server, 0, server), _nccl(test, client, 1, server)
    how = (
        ("-D", str(seconds), "-s", str(WRITE_SIZE))
        if test.name == "write_bw"
        else ("-n", str(READS), "-s", str(READ_SIZE))
    )
    limit = _CONNECT + (seconds if test.name == "write_bw" else _CONNECT)
    family = ("--ipv6-addr",) if ":" in server.address else ()
    both = tuple((*_perftest(end), *how, *family) for end in (server, client))
    return Command(test, both[0], limit + _CONNECT), Command(test, (*both[1], server.address), limit)


def _perftest(end: End) -> tuple[str, ...]:
    gid = () if end.gid_index is None else ("-x", str(end.gid_index))
    return ("-d", end.device, "-i", str(end.port), *gid, "-F", "--report_gbits")


def _nccl(test: Test, end: End, rank: int, master: End) -> Command:
    """One process on one GPU. NCCL may use only the port under test, and logs what it used."""
    own = {
        "MASTER_ADDR": master.address,
        "RANK": rank,
        "WORLD_SIZE": 2,
        "NCCL_DEBUG": "INFO",
        "NCCL_IB_HCA": f"={end.device}:{end.port}",
        "NCCL_SOCKET_IFNAME": f"={end.netdev}",
        **({} if end.gid_index is None else {"NCCL_IB_GID_INDEX": end.gid_index}),
    }
    return Command(
        test, (str(ALL_REDUCE_BYTES), str(ALL_REDUCES)), 180, tuple(f"{name}={value}" for name, value in own.items())
    )

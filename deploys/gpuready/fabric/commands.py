"""The tests: the tool, its package, its arguments at each end, and its time limit.

Sources: perftest's man pages and README, rping(1), NCCL's environment variables (docs.nvidia.com), torch.distributed's
env:// rendezvous. The server's port is not here: the node chooses a free one.
"""

from dataclasses import dataclass

from gpuready.fabric import tcp_tests
from gpuready.model.spec import NodeSpec
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
#: When a sender sends again what nobody acknowledged: 4.096 us x 2^20 = 4.3 s, as NCCL does. perftest's own 14 (67 ms)
#: is too short for 128 messages on their way to a software device, which does not survive what is then sent twice.
_TIMEOUT = 20


@dataclass(frozen=True)
class Test:
    """A test. ``listens``: what its server listens on, a TCP port (tcp) or the RDMA connection manager (cm).

    ``source``: the package with the tool. ``tcp``: it tests TCP. ``alone``: it needs no server. ``stays``: its server
    does not end by itself. ``together``: it runs on all hosts at once. ``itself``: each port of a host writes to
    itself. These two run only if the user names them, or after a search.
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
    tcp: bool = False
    alone: bool = False
    stays: bool = False
    together: bool = False
    itself: bool = False

    @property
    def of_pairs(self) -> bool:
        """Whether it tests pairs of hosts."""
        return not (self.together or self.itself)


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
             "torch with NCCL for python3, or name another Python: verify: {torch: PYTHON}", "tcp", True, gpu=True),
        Test("tcp_connect", "tcp_connect: ports that are reached", "ports", "bash", "bash", "", True, True,
             tcp=True, alone=True),
        Test("tcp_mtu", "tcp_mtu: largest packet that arrives whole", "bytes", "ping",
             "iputils-ping (Debian, Ubuntu) or iputils", "", True, True, tcp=True, alone=True),
        Test("tcp_lat", "tcp_lat: ping, average", "us", "ping",
             "iputils-ping (Debian, Ubuntu) or iputils", "", False, tcp=True, alone=True),
        Test("tcp_bw", "tcp_bw: iperf3, eight streams", "Gbit/s", "iperf3", "iperf3", "tcp", True, True,
             tcp=True, stays=True),
        Test("loopback", "loopback: ib_write_bw of a port to itself, average", "Gbit/s", "ib_write_bw",
             "perftest (in the spec: rdma: {packages: [perftest]})", "tcp", True, itself=True),
        Test("train", "train: DDP training on all hosts at once", "samples/s", "python3",
             "torch for python3, or name another Python: verify: {torch: PYTHON}", "tcp", True, gpu=True,
             together=True),
        Test("collective", "collective: all GPUs of all hosts, all-reduce, bus bandwidth", "GB/s", "python3",
             "torch for python3, or name another Python: verify: {torch: PYTHON}", "tcp", True, gpu=True,
             together=True),
    )
}  # fmt: skip
#: The names that stand for several tests, and the tests of a run that names none.
GROUPS = {"tcp": tuple(name for name, test in TESTS.items() if test.tcp)}
WITH_RDMA = tuple(name for name, test in TESTS.items() if test.of_pairs and not test.tcp)
WITHOUT_RDMA = (*GROUPS["tcp"], "nccl")


@dataclass(frozen=True)
class Command:
    """The command of one end. ``before``: environment variables as NAME=VALUE; ``limit``: seconds.

    ``shell``: a script for bash, which gets the arguments from $0 on; without it, they are the tool's own.
    ``tool``: see :func:`program`. ``launcher``: words for torchrun, if it starts the program. ``gloo``: torch needs no
    GPU. ``known``: torch was found there before.
    """

    test: Test
    arguments: tuple[str, ...]
    limit: int
    before: tuple[str, ...] = ()
    shell: str = ""
    tool: str = ""
    launcher: tuple[str, ...] = ()
    gloo: bool = False
    known: bool = False


def program(test: Test, spec: NodeSpec) -> str:
    """Return the test's command on a host; for torch, the Python of the spec if it names one."""
    return str(spec.verify.torch or test.tool) if test.gpu else test.tool


def commands(test: Test, server: End, client: End, seconds: int) -> tuple[Command, Command]:
    """Return the commands of server and client. ``seconds``: how long a bandwidth is measured."""
    if test.name == "rping":
        common = ("-C", str(PINGS), "-v", "-V", "-a", server.address)
        return (
            Command(test, ("-s", *common), 2 * _CONNECT),
            Command(test, ("-c", *common, *(("-I", client.address) if client.address else ())), _CONNECT),
        )
    if test.tcp:
        script, words, limit = tcp_tests.arguments(test.name, server, client, seconds)
        listener = Command(test, ("-s", "-B", server.address), limit + _CONNECT)
        return listener, Command(test, words, limit, ("LC_ALL=C",), script)
    if test.name == "nccl":
        return _nccl(test, server, 0, server), _nccl(test, client, 1, server)
    reads = test.name == "read_lat"
    how = ("-n", str(READS), "-s", str(READ_SIZE)) if reads else ("-D", str(seconds), "-s", str(WRITE_SIZE))
    limit = _CONNECT + (_CONNECT if reads else seconds)
    address = "127.0.0.1" if test.itself else server.address
    family = ("--ipv6-addr",) if ":" in address else ()
    both = tuple((*_perftest(end), *how, *family) for end in (server, client))
    return Command(test, both[0], limit + _CONNECT), Command(test, (*both[1], address), limit)


def _perftest(end: End) -> tuple[str, ...]:
    gid = () if end.gid_index is None else ("-x", str(end.gid_index))
    return ("-d", end.device, "-i", str(end.port), *gid, "-u", str(_TIMEOUT), "-F", "--report_gbits")


def _nccl(test: Test, end: End, rank: int, master: End) -> Command:
    """One process on one GPU. NCCL may use only the port or interface under test, and logs what it used."""
    rdma = {"NCCL_IB_HCA": f"={end.device}:{end.port}"}
    own = {
        "MASTER_ADDR": master.address,
        "RANK": rank,
        "WORLD_SIZE": 2,
        "NCCL_DEBUG": "INFO",
        **({"NCCL_NET": "Socket"} if end.over_tcp else rdma),
        "NCCL_SOCKET_IFNAME": f"={end.netdev}",
        **({} if end.gid_index is None else {"NCCL_IB_GID_INDEX": end.gid_index}),
    }
    return Command(
        test, (str(ALL_REDUCE_BYTES), str(ALL_REDUCES)), 180, tuple(f"{name}={value}" for name, value in own.items())
    )

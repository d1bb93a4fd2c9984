"""The proof: what a port's counters must have gained, by the counters that its driver has."""

import pytest

from gpuready.fabric.counters import Moved, Snapshot, judge, read

WRITES = Moved(16000, 64_000_000, 0, 0)
READS = Moved(1000, 0, 1000, 64_000)
RXE = ("hw_counters/sent_pkts", "hw_counters/rcvd_pkts", "net/tx_bytes", "net/rx_bytes")
IRDMA = tuple(f"hw_counters/{name}" for name in ("ip4OutOctets", "ip4InOctets", "ip6OutOctets", "ip6InOctets"))
MLX5 = ("counters/port_xmit_data", "counters/port_rcv_data", "net/tx_bytes", "net/rx_bytes")
BYTES = "counters/port_xmit_data, counters/port_rcv_data: sent {} B"
#: Driver, counters, their growth and what the test moved; then whether that is proof, and the words.
PROOFS: dict[str, tuple[str, tuple[str, ...], tuple[int, ...], Moved, bool | None, str]] = {
    "port data counts words of four bytes": ("mlx5_core", MLX5, (16_000_000, 0, 895, 0), WRITES, True,
         BYTES.format(64000000)),
    "too few": ("mlx5_core", MLX5, (15_000_000, 0, 895, 0), WRITES, False, BYTES.format(60000000)),
    "bytes in the kernel's network are no RDMA": ("mlx5_core", MLX5, (16_000_000, 0, 70_000_000, 0), WRITES, False,
         "tx_bytes of the netdev also grew by 7"),
    "soft RoCE sends its packets through the netdev itself": (
        "rdma_rxe", RXE, (62500, 390, 70_000_000, 9), WRITES, True, "sent_pkts",
    ),
    "soft RoCE without packets": ("rdma_rxe", RXE, (0, 0, 0, 0), WRITES, False, "sent_pkts"),
    "irdma adds both families up": ("irdma", IRDMA, (0, 0, 64_000_000, 0), WRITES, True, "sent 64000000 B"),
    "received bytes count, too": ("mlx5_core", MLX5[:2], (9000, 16000), READS, True, "received 64000"),
    "too few received": ("mlx5_core", MLX5[:2], (9000, 15999), READS, False, "received 63996"),
    "no counters, no proof": ("siw", ("net/tx_bytes",), (1 << 40,), WRITES, None, "siw"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROOFS)
def test_what_the_counters_prove(name: str) -> None:
    driver, counters, growth, moved, proved, words = PROOFS[name]
    before = Snapshot(driver, dict.fromkeys(counters, 5))
    after = Snapshot(driver, {each: 5 + more for each, more in zip(counters, growth, strict=True)})
    proof = judge(before, after, moved)
    assert proof.proved is proved and words in proof.text, proof


def test_files_become_counters_and_what_is_no_number_stays_out() -> None:
    base = "/sys/class/infiniband/rxe0/ports/1"
    text = (
        f"{base}/hw_counters/sent_pkts:12\n{base}/hw_counters/rcvd_pkts:3\n"
        f"{base}/counters/port_xmit_data:N/A (no PMA)\n"
        "/sys/class/net/eth1/statistics/tx_bytes:77\nnonsense\n"
    )
    found = read(text, "rdma_rxe")
    assert found.values == {"hw_counters/sent_pkts": 12, "hw_counters/rcvd_pkts": 3, "net/tx_bytes": 77}

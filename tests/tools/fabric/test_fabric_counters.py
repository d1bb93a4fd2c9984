"""The proof: what a port's counters must have gained, by the counters that its driver has."""

from __future__ import annotations

from gpuready.tools.fabric.counters import Moved, Snapshot, judge, read

WRITES = Moved(16000, 64_000_000, 0, 0)


def shot(driver: str, **values: int) -> Snapshot:
    return Snapshot(driver, {name.replace("__", "/"): value for name, value in values.items()})


def mlx5(words: int, net: int) -> Snapshot:
    return shot(
        "mlx5_core", counters__port_xmit_data=words, counters__port_rcv_data=7, net__tx_bytes=net, net__rx_bytes=9
    )


def test_port_data_counts_words_of_four_bytes() -> None:
    proof = judge(mlx5(100, 5), mlx5(100 + 16_000_000, 900), WRITES)
    assert proof.proved
    assert "sent 64000000 B" in proof.text
    assert judge(mlx5(100, 5), mlx5(100 + 15_000_000, 900), WRITES).proved is False


def test_bytes_in_the_kernels_network_are_no_rdma() -> None:
    proof = judge(mlx5(0, 0), mlx5(16_000_000, 70_000_000), WRITES)
    assert proof.proved is False
    assert "tx_bytes of the netdev also grew by 70000000" in proof.text


def test_soft_roce_sends_its_packets_through_the_netdev_itself() -> None:
    before = shot("rdma_rxe", hw_counters__sent_pkts=10, hw_counters__rcvd_pkts=10, net__tx_bytes=0, net__rx_bytes=0)
    after = shot(
        "rdma_rxe", hw_counters__sent_pkts=62510, hw_counters__rcvd_pkts=400, net__tx_bytes=70_000_000, net__rx_bytes=9
    )
    proof = judge(before, after, WRITES)
    assert proof.proved
    assert "sent_pkts" in proof.text
    assert judge(before, before, WRITES).proved is False


def test_irdma_adds_both_families_up() -> None:
    names = ("ip4OutOctets", "ip4InOctets", "ip6OutOctets", "ip6InOctets")
    before = Snapshot("irdma", {f"hw_counters/{name}": 5 for name in names})
    after = Snapshot("irdma", {**before.values, "hw_counters/ip6OutOctets": 64_000_005})
    assert judge(before, after, WRITES).proved


def test_received_bytes_count_too() -> None:
    reads = Moved(1000, 0, 1000, 64_000)
    before = shot("mlx5_core", counters__port_xmit_data=0, counters__port_rcv_data=0)
    assert judge(before, shot("mlx5_core", counters__port_xmit_data=9000, counters__port_rcv_data=16000), reads).proved
    assert not judge(
        before, shot("mlx5_core", counters__port_xmit_data=9000, counters__port_rcv_data=15999), reads
    ).proved


def test_without_counters_nothing_is_proved() -> None:
    proof = judge(Snapshot("siw", {}), Snapshot("siw", {"net/tx_bytes": 1 << 40}), WRITES)
    assert proof.proved is None
    assert "siw" in proof.text


def test_files_become_counters_and_what_is_no_number_stays_out() -> None:
    base = "/sys/class/infiniband/rxe0/ports/1"
    text = (
        f"{base}/hw_counters/sent_pkts:12\n{base}/hw_counters/rcvd_pkts:3\n"
        f"{base}/counters/port_xmit_data:N/A (no PMA)\n"
        "/sys/class/net/eth1/statistics/tx_bytes:77\nnonsense\n"
    )
    found = read(text, "rdma_rxe")
    assert found.values == {"hw_counters/sent_pkts": 12, "hw_counters/rcvd_pkts": 3, "net/tx_bytes": 77}

"""Ports, and findings of every status, for the tests of what the fabric's reports say."""

from dataclasses import replace
from ipaddress import ip_address

from gpuready.fabric.run import FabricRun, Wanted
from gpuready.fabric.schedule import Pairing
from gpuready.fabric.verdict import Finding
from gpuready.network.links import End, Unpaired
from gpuready.network.ports import Port
from gpuready.network.rdma_choice import Choices, Chosen, Refused

ALL = ("rping", "write_bw", "read_lat", "nccl")


def port(device: str, number: int = 1, state: str = "ACTIVE", line: float | None = 100.0) -> Port:
    return Port(device, number, "RoCE", state, "Ethernet", f"net-{device}", (), 100.0, line, 9000)


def chosen(device: str, address: str = "10.0.0.1", network: str = "", number: int = 1) -> Chosen:
    return Chosen(port(device, number), 3, ip_address(address), f"net-{device}", network)


def down(device: str) -> Refused:
    return Refused(port(device, state="DOWN"), "down", "its state is DOWN, not ACTIVE")


def unwanted(device: str) -> Refused:
    return Refused(port(device), "unwanted", "eth0 carries the default route")


def choices(*ports: Chosen | Refused) -> Choices:
    return Choices(ports)


def end(host: str, device: str = "mlx5_0", line: float | None = 100.0) -> End:
    return End(host, device, 1, "eth1", f"10.0.0.{host[-1]}", 3, line)


def finding(
    test: str, client: str, server: str, status: str, value: float | None, limit: float | None = None
) -> Finding:
    words = {
        "pass": "fine",
        "fail": f"{client} is slow",
        "warn": "slow",
        "skip": "there is no tool",
        "unknown": "no counters",
    }
    return Finding(test, end(server), end(client), status, words[status], value, limit, proof="port_xmit_data", round=1)


def sample() -> FabricRun:
    """A run over n1, n2, n3 with every status."""
    run = FabricRun(Wanted(Pairing("random", 2, 7), ALL, 5), rounds=3)
    run.findings = [
        finding("rping", "n2", "n1", "pass", 10.0),
        finding("write_bw", "n2", "n1", "pass", 92.4, 85.0),
        finding("write_bw", "n1", "n2", "fail", 41.2, 85.0),
        finding("read_lat", "n2", "n1", "pass", 3.25),
        finding("nccl", "n2", "n1", "skip", None),
        replace(finding("write_bw", "n3", "n1", "fail", None), summary="not tested: n3 mlx5_0:1: DOWN", blocked=True),
        finding("write_bw", "n3", "n2", "unknown", 80.0),
    ]
    run.unpaired = [Unpaired(end("n1", "mlx5_1"), "n2", "the other host has no port left for it")]
    run.not_attempted = [("n2", "n4", "n4: unreachable")]
    return run

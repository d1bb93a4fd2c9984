"""Write the scrape configuration for the exporters of an inventory's hosts, and the alert rules, for Prometheus.

The ports are dcgm-exporter's and node_exporter's defaults.
"""

from collections.abc import Sequence

from gpuready.base import resources
from gpuready.components.monitoring.spec import address
from gpuready.inventory.connection import LOCAL
from gpuready.inventory.hosts import HostEntry

DCGM_PORT, NODE_PORT = 9400, 9100


def scrape_configs(entries: Sequence[HostEntry]) -> str:
    """Return a ``scrape_configs`` section (YAML): RDMA exporter, node_exporter if it reads its file, dcgm-exporter."""
    rdma = [_listener(entry) for entry in entries if entry.spec.monitoring.rdma_exporter == "service"]
    node = [_target(entry, NODE_PORT) for entry in entries if entry.spec.monitoring.rdma_exporter == "textfile"]
    dcgm = [_target(entry, DCGM_PORT) for entry in entries if not entry.spec.hardware.without_gpus]
    jobs = {"rdma": rdma, "node": node, "dcgm": dcgm}
    return resources.document(
        "tools/render/prometheus-scrape.yml", jobs={job: targets for job, targets in jobs.items() if targets}
    )


def unreachable(entries: Sequence[HostEntry]) -> tuple[str, ...]:
    """Return the hosts whose exporter listens only on a loopback address."""
    return tuple(
        entry.name
        for entry in entries
        if entry.spec.monitoring.rdma_exporter == "service"
        and address(entry.spec.monitoring.listen)[0] in ("127.0.0.1", "::1")
    )


def rules() -> str:
    """Return the alert rules (YAML)."""
    return resources.document("tools/render/prometheus-rules.yml")


def _listener(entry: HostEntry) -> str:
    host, port = address(entry.spec.monitoring.listen)
    return _target(entry, port, "" if host in ("0.0.0.0", "::", "127.0.0.1", "::1") else host)


def _target(entry: HostEntry, port: int, listens: str = "") -> str:
    host = listens or ("localhost" if entry.name == LOCAL else entry.connection.address)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

"""Write the scrape configuration for the exporters of an inventory's hosts, and the alert rules, for Prometheus.

The ports are dcgm-exporter's and node_exporter's defaults.
"""

from collections.abc import Sequence

from gpuready.base import resources
from gpuready.inventory.connection import LOCAL
from gpuready.inventory.hosts import HostEntry

DCGM_PORT, NODE_PORT = 9400, 9100


def scrape_configs(entries: Sequence[HostEntry]) -> str:
    """Return a ``scrape_configs`` section (YAML): node_exporter if it serves RDMA counters, and dcgm-exporter."""
    node = [_target(entry, NODE_PORT) for entry in entries if entry.spec.monitoring.rdma_exporter == "textfile"]
    dcgm = [_target(entry, DCGM_PORT) for entry in entries if not entry.spec.hardware.without_gpus]
    jobs = {"node": node, "dcgm": dcgm}
    return resources.document(
        "verbs/render/prometheus-scrape.yml", jobs={job: targets for job, targets in jobs.items() if targets}
    )


def rules() -> str:
    """Return the alert rules (YAML)."""
    return resources.document("verbs/render/prometheus-rules.yml")


def _target(entry: HostEntry, port: int) -> str:
    host = "localhost" if entry.name == LOCAL else entry.connection.address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

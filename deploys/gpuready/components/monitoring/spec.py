"""The spec of what a node reports to a monitoring system."""

from typing import Literal

from gpuready.base.fields import Off, Path
from gpuready.base.section import Section


class Monitoring(Section):
    """What the node reports to a monitoring system."""

    rdma_exporter: Off | Literal["textfile"] = "off"
    """RDMA counters in a file for node_exporter, which serves them to Prometheus; off removes the exporter."""
    textfile_directory: Path = "/var/lib/prometheus/node-exporter"
    """node_exporter's --collector.textfile.directory; it must exist."""

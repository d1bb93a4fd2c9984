"""The spec of what a node reports to a monitoring system."""

import ipaddress
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gpuready.base.fields import Allowed, Off, Path
from gpuready.base.section import Section

_LISTEN = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):([0-9]{1,5})")


def address(listen: str) -> tuple[str, int]:
    """The IP address and the port of ``10.0.0.1:9879`` or ``[::1]:9879``; ValueError if it is neither."""
    match = _LISTEN.fullmatch(listen)
    if not match or not 0 < int(match[3]) < 65536:
        raise ValueError("not an IP address with a port")
    host = ipaddress.IPv6Address(match[1]) if match[1] else ipaddress.IPv4Address(match[2])
    if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped:
        raise ValueError("an IPv4-mapped IPv6 address; write it as an IPv4 address")
    return str(host), int(match[3])


def _listen(value: str) -> str:
    host, port = address(value)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


Listen = Annotated[
    str,
    AfterValidator(_listen),
    Field(json_schema_extra={"pattern": r"^(\[[0-9A-Fa-f:.]+\]|[0-9.]+):[0-9]{1,5}$"}),
    Allowed("an IP address of the node and a port, such as 10.0.0.1:9879, 0.0.0.0:9879 or [::]:9879"),
]


class Monitoring(Section):
    """What the node reports to a monitoring system."""

    rdma_exporter: Off | Literal["service", "textfile"] = "off"
    """RDMA counters for Prometheus: over HTTP, or in a file for node_exporter; off removes the exporter."""
    listen: Listen = "127.0.0.1:9879"
    """Where the service listens; it has no password and no TLS."""
    textfile_directory: Path = "/var/lib/prometheus/node-exporter"
    """node_exporter's --collector.textfile.directory; it must exist."""

"""The Grafana dashboard: RDMA counters of gpuready's exporter beside the GPU metrics of dcgm-exporter.

Each panel has a title, a unit of Grafana, and one legend and expression for each curve. Drivers give the same counter
different names, so a curve uses the first one that a port has (``or``). Sources: the exporter's names
(templates/monitoring/rdma-exporter.sh.j2) and dcgm-exporter's default-counters.csv; what that calls a counter of
NVLink is a rate in MB/s, and that of PCIe one in KB/s (dcgm-exporter issues 354 and 658).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NODE = 'instance=~"($node)(:[0-9]+)?"'
_PORT = "{{instance}} {{device}}/{{port}}"
_GPU = "{{instance}} GPU {{gpu}}"


@dataclass(frozen=True)
class Panel:
    """One panel: legend of a curve -> expression. ``kind``: Grafana's name of the visualisation."""

    title: str
    unit: str
    curves: Mapping[str, str]
    kind: str = "timeseries"


def _rate(*names: str) -> str:
    """Return the rate of the first counter that a port has; a name with + is a sum of counters."""
    return " or ".join(
        " + ".join(f"rate({part}{{{NODE}}}[$__rate_interval])" for part in name.split("+")) for name in names
    )


def _each(*names: str, start: str = "rdma_hw_") -> dict[str, str]:
    """Return one curve for each counter, with its name in the legend."""
    return {f"{_PORT} {start.removeprefix('rdma_')}{name}": _rate(f"{start}{name}_total") for name in names}


def _rdma(name: str) -> str:
    """Return a gauge of the RDMA exporter."""
    return f"rdma_{name}{{{NODE}}}"


def _dcgm(name: str) -> str:
    """Return a GPU metric of dcgm-exporter."""
    return f"DCGM_FI_DEV_{name}{{{NODE}}}"


def _pcie(direction: str) -> str:
    """Return the metric that dcgm-exporter has: it depends on its release and settings."""
    return f"DCGM_FI_PROF_PCIE_{direction}_BYTES{{{NODE}}} or {_dcgm(f'PCIE_{direction}_THROUGHPUT')} * 1000"


_SENT = _rate(
    "rdma_port_xmit_bytes_total", "rdma_hw_tx_bytes_total", "rdma_hw_ip4_out_bytes_total+rdma_hw_ip6_out_bytes_total"
)
_RECEIVED = _rate(
    "rdma_port_rcv_bytes_total", "rdma_hw_rx_bytes_total", "rdma_hw_ip4_in_bytes_total+rdma_hw_ip6_in_bytes_total"
)
_SENT_PACKETS = _rate(
    "rdma_port_xmit_packets_total", "rdma_hw_tx_pkts_total", "rdma_hw_sent_pkts_total",
    "rdma_hw_ip4_out_pkts_total+rdma_hw_ip6_out_pkts_total",
)  # fmt: skip
_RECEIVED_PACKETS = _rate(
    "rdma_port_rcv_packets_total", "rdma_hw_rx_pkts_total", "rdma_hw_rcvd_pkts_total",
    "rdma_hw_ip4_in_pkts_total+rdma_hw_ip6_in_pkts_total",
)  # fmt: skip
_CONGESTION = _each(
    "np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rx_ecn_mrkd", "cnp_sent", "cnp_handled"
)
_LOST = _each(
    "out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err",
    "out_of_buffer", "rcvd_seq_err", "retry_exceeded_err", "completer_retry_err", "tcp_retrans_segs",
)  # fmt: skip
_BAD = _each("symbol_error", "port_rcv_errors", "port_xmit_discards", "link_downed", start="rdma_")
_BAD |= _each("rx_icrc_encapsulated", "ip4_in_discards", "rx_vlan_errors", "link_downed")

ROWS: Mapping[str, tuple[Panel, ...]] = {
    "RDMA": (
        Panel("Sent", "Bps", {_PORT: _SENT}),
        Panel("Received", "Bps", {_PORT: _RECEIVED}),
        Panel(
            "Share of the line rate, sent", "percentunit", {_PORT: f"({_SENT}) / {_rdma('port_rate_bytes_per_second')}"}
        ),
        Panel("Link state", "none", {_PORT: _rdma("port_state_id")}, "state-timeline"),
        Panel("Packets sent", "pps", {_PORT: _SENT_PACKETS}),
        Panel("Packets received", "pps", {_PORT: _RECEIVED_PACKETS}),
        Panel("Congestion: ECN marks and CNPs", "pps", _CONGESTION),
        Panel("Lost and retransmitted", "cps", _LOST),
        Panel("Link and packet errors", "cps", _BAD),
        Panel("Counters that could not be read", "none", {"{{instance}} {{device}}": _rdma("exporter_read_errors")}),
    ),
    "GPU": (
        Panel("Utilization", "percent", {_GPU: _dcgm("GPU_UTIL")}),
        Panel("Memory used", "percentunit", {_GPU: f"{_dcgm('FB_USED')} / ({_dcgm('FB_USED')} + {_dcgm('FB_FREE')})"}),
        Panel("Temperature", "celsius", {_GPU: _dcgm("GPU_TEMP"), f"{_GPU} memory": _dcgm("MEMORY_TEMP")}),
        Panel("Power", "watt", {_GPU: _dcgm("POWER_USAGE")}),
        Panel("NVLink, both directions", "MBs", {_GPU: _dcgm("NVLINK_BANDWIDTH_TOTAL")}),
        Panel("PCIe", "Bps", {f"{_GPU} sent": _pcie("TX"), f"{_GPU} received": _pcie("RX")}),
        Panel("Last XID", "none", {_GPU: _dcgm("XID_ERRORS")}, "state-timeline"),
        Panel(
            "Memory rows and PCIe replays",
            "none",
            {
                f"{_GPU} uncorrectable rows": _dcgm("UNCORRECTABLE_REMAPPED_ROWS"),
                f"{_GPU} remap failure": _dcgm("ROW_REMAP_FAILURE"),
                f"{_GPU} PCIe replays": _dcgm("PCIE_REPLAY_COUNTER"),
            },
        ),
    ),
}

_SOURCE = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
_STATES = ("DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER")


def dashboard() -> dict[str, Any]:
    """Return the dashboard for import into Grafana (schema 39: Grafana 10 and later)."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS.items():
        panels.append({"type": "row", "title": title, "collapsed": False, "gridPos": _place(0, y, 24, 1), "panels": []})
        y += 1
        for n, panel in enumerate(row):
            panels.append({**_panel(panel), "gridPos": _place(12 * (n % 2), y + 8 * (n // 2), 12, 8)})
        y += 8 * ((len(row) + 1) // 2)
    for number, item in enumerate(panels, 1):
        item["id"] = number
    return {
        "title": "GPU nodes: RDMA and GPUs",
        "uid": "gpuready-rdma",
        "tags": ["gpuready"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_SOURCE, _nodes()]},
        "panels": panels,
    }


def _place(x: int, y: int, w: int, h: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": w, "h": h}


def _panel(panel: Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.title == "Link state":
        states = {
            str(n): {"text": name, "color": "green" if name == "ACTIVE" else "red"} for n, name in enumerate(_STATES, 1)
        }
        defaults["mappings"] = [{"type": "value", "options": states}]
    return {
        "type": panel.kind,
        "title": panel.title,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + n), "expr": expression, "legendFormat": legend}
            for n, (legend, expression) in enumerate(panel.curves.items())
        ],
    }


def _nodes() -> dict[str, Any]:
    """Return the variable of the hosts, without the port of the exporter."""
    return {
        "name": "node",
        "label": "Node",
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": 'label_values({__name__=~"rdma_exporter_devices|DCGM_FI_DEV_GPU_UTIL"}, instance)',
        "regex": "/^(.*?)(?::[0-9]+)?$/",
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "refresh": 2,
        "sort": 1,
    }

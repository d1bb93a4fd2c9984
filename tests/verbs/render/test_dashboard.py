"""The dashboard, the alert rules and the scrape configuration name only metrics that exist.

What the exporter prints is asked of itself, over the counters that the drivers have; what dcgm-exporter prints by
default is in data/dcgm-metrics.txt. That a real Prometheus takes every expression is shown in
tests/system/test_exporter.py.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from gpuready.verbs.render import dashboard, prometheus
from gpuready.verbs.render.command import command
from tests.components.monitoring.test_rdma_exporter import IRDMA, RXE, Tree, said, samples

DCGM = (Path(__file__).parents[2] / "data" / "dcgm-metrics.txt").read_text("ascii").split()
#: drivers/infiniband/hw/mlx5/counters.c, hw/bnxt_re/hw_counters.c, core/sysfs.c.
MLX5 = """rx_write_requests rx_read_requests out_of_buffer out_of_sequence duplicate_request rnr_nak_retry_err
packet_seq_err implied_nak_seq_err local_ack_timeout_err rp_cnp_ignored rp_cnp_handled
np_ecn_marked_roce_packets np_cnp_sent rx_icrc_encapsulated roce_adp_retrans roce_slow_restart"""
BNXT = "rx_pkts rx_bytes tx_pkts tx_bytes active_qps"
PORT = """excessive_buffer_overrun_errors link_downed link_error_recovery port_rcv_data port_rcv_errors port_rcv_packets
port_xmit_data port_xmit_discards port_xmit_packets port_xmit_wait symbol_error VL15_dropped"""
RECONVERGE = (Path(__file__).parents[3] / "templates" / "reconverge" / "result.sh.j2").read_text("utf-8")
#: Of node_exporter itself.
OTHERS = {"node_textfile_mtime_seconds"}


@pytest.fixture
def known(tmp_path: Path) -> set[str]:
    """Every metric that an expression may name."""
    tree = Tree(tmp_path / "sys")
    port = {"state": "4: ACTIVE", "link_layer": "Ethernet", "rate": "400 Gb/sec (4X NDR)"}
    tree.device("mlx5_0", names=MLX5, **port)
    tree.device("mlx5_0", names=PORT, kind="counters")
    tree.device("irdma0", names=" ".join(IRDMA))
    tree.device("rxe0", names=RXE)
    tree.device("bnxt_re0", names=BNXT)
    on_node = set(re.findall(r"^ +echo \"(gpuready_\w+)", RECONVERGE, re.M))
    return {sample.name for sample in samples(said(tree))} | set(DCGM) | OTHERS | on_node


EXPRESSIONS = tuple(each for row in dashboard.ROWS.values() for panel in row for each in panel.curves.values())


def named(expression: str) -> set[str]:
    """The metrics of an expression: words that are no function, label, keyword or part of a string."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(by|on) *\([^)]*\)', " ", expression)
    return {
        word for word in re.findall(r"[A-Za-z_:][\w:]*(?! *\()\b", bare) if word not in ("and", "or", "count", "unless")
    }


def test_the_reader_of_expressions() -> None:
    assert named('count by (instance) (a{b="c d"}) < max_over_time(count by (x) (e)[1d:5m])') == {"a", "e"}
    assert named('label_replace(rate(f_total[5m]), "error", "g", "", "") > 0 or up == 0') == {"f_total", "up"}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_panel_names_what_exists(expression: str, known: set[str]) -> None:
    assert named(expression)
    assert not named(expression) - known


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(prometheus.rules())["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_a_rule_names_what_exists(rule: dict[str, Any], known: set[str]) -> None:
    assert named(rule["expr"])
    assert not named(rule["expr"]) - known
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert "{{ $labels.instance }}" in rule["annotations"]["summary"]


def test_the_dashboard_is_whole() -> None:
    found = json.loads(CliRunner().invoke(command, ["grafana"]).stdout)
    assert found == dashboard.dashboard()
    panels = [panel for panel in found["panels"] if panel["type"] != "row"]
    assert [panel["id"] for panel in found["panels"]] == list(range(1, len(found["panels"]) + 1))
    shown = [target["expr"] for panel in panels for target in panel["targets"]]
    assert tuple(shown) == EXPRESSIONS
    places = [tuple(panel["gridPos"][key] for key in "xy") for panel in panels]
    assert len(set(places)) == len(places)
    for panel in panels:
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters) == len({target["legendFormat"] for target in panel["targets"]})


INVENTORY = """all:
  vars: {gpuready: {monitoring: {rdma_exporter: textfile}}}
  hosts:
    a: {ansible_host: 10.0.0.1}
    b: {ansible_host: "fd00::2", gpuready: {hardware: {gpus: none}}}
    c: {gpuready: {monitoring: {rdma_exporter: off}}}
"""


def test_where_to_scrape(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text(INVENTORY, "utf-8")
    done = CliRunner().invoke(command, ["prometheus", "-i", str(tmp_path / "hosts.yaml")])
    jobs = {
        job["job_name"]: job["static_configs"][0]["targets"] for job in yaml.safe_load(done.stdout)["scrape_configs"]
    }
    assert jobs == {"node": ["10.0.0.1:9100", "[fd00::2]:9100"], "dcgm": ["10.0.0.1:9400", "c:9400"]}
    (tmp_path / "hosts.yaml").write_text("all: {hosts: {a: {gpuready: {hardware: {gpus: none}}}}}")
    done = CliRunner().invoke(command, ["prometheus", "-i", str(tmp_path / "hosts.yaml")])
    assert yaml.safe_load(done.stdout) == {"scrape_configs": []}
    assert "# Empty: no host has GPUs for dcgm-exporter" in done.stdout

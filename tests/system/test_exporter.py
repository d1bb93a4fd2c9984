"""The RDMA exporter on a node: systemd serves it, Prometheus and node_exporter take it, remove leaves nothing.

The machine has no RDMA device; what is read from devices is shown in tests/components/monitoring and on a VM.
"""

import json
import urllib.parse
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.components.monitoring.component import FILES, NAME
from gpuready.tools.render import dashboard, prometheus
from tests.components.monitoring.test_rdma_exporter import IRDMA
from tests.lab import Machine
from tests.system.faults import footprint, until
from tests.system.host import Host, Hosts

TEXTFILES = "/var/lib/prometheus/node-exporter"


@pytest.fixture(scope="module")
def node(shared: Hosts) -> Host:
    machine = shared()
    machine.install("prometheus prometheus-node-exporter curl")
    return machine.only("monitoring")


def value(node: Machine, expression: str) -> str | None:
    """The one value of an expression that Prometheus has; None while it has none."""
    words = urllib.parse.quote(expression)
    answer = json.loads(node.run(f"curl -s 'http://127.0.0.1:9090/api/v1/query?query={words}'").stdout)
    found = answer.get("data", {}).get("result", [])
    return found[0]["value"][1] if len(found) == 1 else None


def service(node: Host, listen: str) -> Host:
    """The node with a spec that has the exporter listen there."""
    return node.with_spec(monitoring={"rdma_exporter": "service", "listen": listen})


def scraped(node: Machine, config: str) -> None:
    """Prometheus is started anew with that configuration, and scrapes each second."""
    settings = f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [/root/rules.yml]\n{config}"
    node.run("cat >/root/rules.yml", stdin=prometheus.rules())
    node.run("cat >/etc/prometheus/prometheus.yml", stdin=settings)
    node.run("promtool check config /etc/prometheus/prometheus.yml && systemctl restart prometheus")
    until(lambda: node.run("curl -sf http://127.0.0.1:9090/-/ready", check=False).returncode == 0)


def reloads(node: Machine) -> str:
    """How often systemd was asked to read all units anew, which could take GPUs away from containers."""
    return node.run("journalctl --sync; journalctl -q -o cat _PID=1 | grep -c 'Reload requested' || true").stdout


@pytest.mark.promise
def test_prometheus_scrapes_the_service(node: Host) -> None:
    wanted, before = service(node, "0.0.0.0:9879"), reloads(node)
    result = wanted.apply()
    assert result.changed() == {"monitoring"}, result.explain()
    assert result.component("monitoring")["disruption"] == "none"
    assert result.checks("pass") >= {"monitoring.config", "monitoring.exporter", "monitoring.scrape"}, result.explain()
    config = node.gpuready("render", "prometheus", inventory=wanted.where(), check_json=False, code=0).stdout
    assert f"{node.address}:9879" in config
    scraped(node, config)
    until(lambda: value(node, 'sum_over_time(up{job="rdma"}[1m])') not in (None, "0", "1", "2"), what="three scrapes")
    assert value(node, "rdma_exporter_devices") == "0"
    assert reloads(node) == before
    stale = node.run("systemctl show -p NeedDaemonReload --value docker.service ssh.service").stdout.split()
    assert stale == ["no", "no"]
    # Each scrape starts and ends a unit, of which the journal says nothing.
    assert "@" not in node.run(f"journalctl --sync; journalctl -q -o cat | grep {NAME}@ || true").stdout
    wanted.settled()


def test_prometheus_takes_every_expression(node: Machine) -> None:
    shown = [each for row in dashboard.ROWS.values() for panel in row for each in panel.curves.values()]
    plain = [each.replace("$node", ".*").replace("$__rate_interval", "1m") for each in shown]
    ask = 'curl -s --data-urlencode "query=$q" http://127.0.0.1:9090/api/v1/query | cut -c1-300'
    script = f"while IFS= read -r q; do {ask}; echo; done"
    answers = node.run(script, stdin="\n".join([*plain, "rate(x)", ""])).stdout.split("\n\n")
    refused = [q for q, answer in zip(plain, answers, strict=False) if not answer.startswith('{"status":"success"')]
    assert not refused
    assert answers[len(plain)].startswith('{"status":"error"')  # it would say so


def test_promtool_takes_rules_and_counters(node: Machine) -> None:
    base = "/root/sys/class/infiniband/irdma0"
    node.run(f"mkdir -p {base}/ports/1/hw_counters && cd {base} && echo '1: CA' >node_type && cd ports/1 && "
             f"for c in {' '.join(IRDMA)}; do echo 7 >hw_counters/$c; done; echo '4: ACTIVE' >state; "
             "echo '25 Gb/sec (1X EDR)' >rate; echo Ethernet >link_layer")  # fmt: skip
    node.run("cat >/root/exporter", stdin=resources.script("monitoring/rdma-exporter", sysfs="/root/sys", limit=5))
    assert node.run("sh /root/exporter | tee /root/answer | promtool check metrics").stdout == ""
    assert "rdma_hw_iw_in_rdma_writes_total" in node.run("cat /root/answer").stdout
    assert "SUCCESS: 14 rules found" in node.run("promtool check rules /root/rules.yml").stdout
    cases = (Path(__file__).parents[1] / "data" / "prometheus-rules-test.yml").read_text("utf-8")
    node.run("cat >/root/rules-test.yml", stdin=cases)
    assert "SUCCESS" in node.run("cd /root && promtool test rules rules-test.yml").stdout


def test_an_address_that_is_taken_changes_nothing(node: Host) -> None:
    before = footprint(node)
    service(node, "0.0.0.0:9090").fails("is its address taken?", "all is as it was")
    assert set(footprint(node)) == set(before)
    answers = node.run("curl -s http://127.0.0.1:9879/metrics").stdout
    assert "rdma_exporter_devices 0" in answers
    result = service(node, "127.0.0.1:9880").apply()
    assert result.component("monitoring")["disruption"] == "recreate", result.explain()
    assert result.checks("pass") >= {"monitoring.scrape"}, result.explain()
    assert node.run("curl -s http://127.0.0.1:9880/metrics").stdout == answers


def test_node_exporter_takes_the_textfile(node: Host) -> None:
    before = footprint(node)
    node.fails("there is no /nowhere", monitoring={"rdma_exporter": "textfile", "textfile_directory": "/nowhere"})
    assert footprint(node) == before
    # Elsewhere the directory may be node_exporter's own.
    node.run(f"chown prometheus: {TEXTFILES}")
    wanted = node.with_spec(monitoring={"rdma_exporter": "textfile"})
    result = wanted.apply()
    assert result.changed() == {"monitoring"}, result.explain()
    assert result.checks("pass") >= {"monitoring.exporter", "monitoring.scrape"}, result.explain()
    said = node.run("curl -s http://127.0.0.1:9100/metrics | grep 'rdma\\|textfile_scrape'").stdout
    assert "rdma_exporter_devices 0" in said and "node_textfile_scrape_error 0" in said
    assert node.run(f"ls {TEXTFILES}").stdout == "rdma.prom\n"
    assert node.run("ss -Hltn 'sport = :9880'").stdout == ""
    node.run(f"rm {TEXTFILES}/rdma.prom")
    until(lambda: node.run(f"ls {TEXTFILES}").stdout == "rdma.prom\n", 20, "the timer writes it again")
    wanted.settled()


def test_remove_takes_all_away(node: Host) -> None:
    assert "monitoring" in node.remove(monitoring={"rdma_exporter": "textfile"}).changed()
    there = node.run(f"ls {' '.join(FILES)} {TEXTFILES} 2>/dev/null; find /etc/systemd -name '{NAME}*'", check=False)
    assert there.stdout == f"{TEXTFILES}:\n"
    again = service(node, "127.0.0.1:9881")
    result = again.apply()
    assert result.diff("monitoring")["monitoring.listens"][1] == "127.0.0.1:9881", result.explain()
    assert "monitoring.scrape" in result.checks("pass")
    again.remove()
    # Units that systemd has read may stay in its memory until it reads all anew, but none runs.
    units = f"{NAME}.socket {NAME}.timer {NAME}.service"
    assert node.run(f"systemctl show -p ActiveState --value {units}").stdout.split() == ["inactive"] * 3
    assert node.run(f"systemctl daemon-reload; systemctl show -p LoadState --value {units}").stdout.split() == (
        ["not-found"] * 3
    )

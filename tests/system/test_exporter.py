"""The RDMA exporter on a node: node_exporter serves its file, Prometheus accepts that, remove leaves nothing.

The machine has no RDMA device; what is read from devices is shown in tests/components/monitoring and on a VM.
"""

import json
import urllib.parse
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpuready.base import resources
from gpuready.components.monitoring.component import FILES, NAME, TIMER, WRITER
from gpuready.verbs.render import dashboard, prometheus
from tests.components.monitoring.test_rdma_exporter import IRDMA
from tests.lab import Machine
from tests.system.faults import footprint, until
from tests.system.host import Host, Hosts

TEXTFILES = "/var/lib/prometheus/node-exporter"
METRICS = "curl -sf http://127.0.0.1:9100/metrics"


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
    assert len(found) < 2, found
    return found[0]["value"][1] if found else None


def scraped(node: Machine, config: str) -> None:
    """Prometheus is started anew with that configuration, scrapes each second, and has no series of before.

    Debian's own configuration scrapes localhost:9100 as well, each 15 seconds: at times a second series of a metric.
    """
    settings = f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [/root/rules.yml]\n{config}"
    node.run("cat >/root/rules.yml", stdin=prometheus.rules())
    node.run("cat >/etc/prometheus/prometheus.yml", stdin=settings)
    node.run("promtool check config /etc/prometheus/prometheus.yml && systemctl stop prometheus")
    node.run("find /var/lib/prometheus/metrics2 -mindepth 1 -delete; systemctl start prometheus")
    until(lambda: node.run("curl -sf http://127.0.0.1:9090/-/ready", check=False).returncode == 0)


def reloads(node: Machine) -> str:
    """How often systemd was asked to read all units anew, which could take GPUs away from containers."""
    return node.run("journalctl --sync; journalctl -q -o cat _PID=1 | grep -c 'Reload requested' || true").stdout


def test_node_exporter_serves_every_counter(node: Machine) -> None:
    base = "/root/sys/class/infiniband/irdma0"
    node.run(f"mkdir -p {base}/ports/1/hw_counters && cd {base} && echo '1: CA' >node_type && cd ports/1 && "
             f"for c in {' '.join(IRDMA)}; do echo 7 >hw_counters/$c; done; echo '4: ACTIVE' >state; "
             "echo '25 Gb/sec (1X EDR)' >rate; echo Ethernet >link_layer")  # fmt: skip
    node.run("cat >/root/exporter", stdin=resources.script("monitoring/rdma-exporter", sysfs="/root/sys", limit=5))
    node.run(f"sh /root/exporter textfile {TEXTFILES}")
    assert node.run(f"promtool check metrics <{TEXTFILES}/rdma.prom").stdout == ""
    written, served = read(node.run(f"cat {TEXTFILES}/rdma.prom").stdout), read(node.run(METRICS).stdout)
    assert served >= written and "rdma_hw_iw_in_rdma_writes_total" in {name for name, *_ in written}
    node.run(f"rm {TEXTFILES}/rdma.prom")


def read(text: str) -> set[tuple[str, str, float]]:
    """Every sample, as the parser of prometheus_client reads it."""
    families = text_string_to_metric_families(text)
    return {(s.name, str(sorted(s.labels.items())), s.value) for family in families for s in family.samples}


def test_prometheus_has_the_counters_of_node_exporter(node: Host) -> None:
    before, reloaded = footprint(node), reloads(node)
    node.fails("there is no /nowhere", monitoring={"rdma_exporter": "textfile", "textfile_directory": "/nowhere"})
    assert footprint(node) == before
    # Elsewhere the directory may be node_exporter's own.
    node.run(f"chown prometheus: {TEXTFILES}")
    wanted = node.with_spec(monitoring={"rdma_exporter": "textfile"})
    result = wanted.apply()
    assert result.changed() == {"monitoring"}, result.explain()
    assert result.component("monitoring")["disruption"] == "none"
    assert result.checks("pass") >= {"monitoring.config", "monitoring.exporter", "monitoring.scrape"}, result.explain()
    config = node.gpuready("render", "prometheus", inventory=wanted.where(), check_json=False, code=0).stdout
    assert f"{node.address}:9100" in config
    scraped(node, config)
    # A scrape that times out on a busy machine takes a sample away until the next one: the last that came counts.
    until(lambda: value(node, "count_over_time(rdma_exporter_devices[1m]) > 2"), what="three scrapes")
    assert value(node, "last_over_time(rdma_exporter_devices[1m])") == "0"
    assert value(node, "last_over_time(node_textfile_scrape_error[1m])") == "0"
    assert value(node, f'last_over_time(node_textfile_mtime_seconds{{file="{TEXTFILES}/rdma.prom"}}[1m])')
    assert reloads(node) == reloaded
    stale = node.run("systemctl show -p NeedDaemonReload --value docker.service ssh.service").stdout.split()
    assert stale == ["no", "no"]
    assert node.run(f"ls {TEXTFILES}").stdout == "rdma.prom\n"
    node.run(f"rm {TEXTFILES}/rdma.prom")
    until(lambda: node.run(f"ls {TEXTFILES}").stdout == "rdma.prom\n", 60, "the timer writes it again")
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


def test_promtool_takes_the_rules(node: Machine) -> None:
    assert "SUCCESS: 14 rules found" in node.run("promtool check rules /root/rules.yml").stdout
    cases = (Path(__file__).parents[1] / "data" / "prometheus-rules-test.yml").read_text("utf-8")
    node.run("cat >/root/rules-test.yml", stdin=cases)
    assert "SUCCESS" in node.run("cd /root && promtool test rules rules-test.yml").stdout


def test_a_directory_that_cannot_be_written_changes_nothing(node: Host) -> None:
    node.run("mkdir /srv/full /srv/textfile && mount -t tmpfs -o ro none /srv/full")
    before = footprint(node)
    node.fails(
        "the RDMA exporter does not start, so gpuready restored what was there",
        monitoring={"rdma_exporter": "textfile", "textfile_directory": "/srv/full"},
    )
    assert set(footprint(node)) == set(before)
    until(lambda: node.run(f"ls {TEXTFILES}").stdout == "rdma.prom\n", 60)
    moved = node.with_spec(monitoring={"rdma_exporter": "textfile", "textfile_directory": "/srv/textfile"})
    result = moved.apply()
    assert result.component("monitoring")["disruption"] == "recreate", result.explain()
    assert result.checks("pass") >= {"monitoring.scrape"}, result.explain()
    assert node.run(f"ls /srv/textfile {TEXTFILES}").stdout == f"/srv/textfile:\nrdma.prom\n\n{TEXTFILES}:\n"


def test_remove_leaves_nothing(node: Host) -> None:
    spec = node.with_spec(monitoring={"rdma_exporter": "textfile", "textfile_directory": "/srv/textfile"})
    assert "monitoring" in spec.remove().changed()
    there = node.run(f"ls {' '.join(FILES)} /srv/textfile 2>/dev/null; find /etc/systemd -name '{NAME}*'", check=False)
    assert there.stdout == "/srv/textfile:\n"
    # Units that systemd has read may stay in its memory until it reads all of them again, but none runs.
    units = f"{TIMER} {WRITER}"
    assert node.run(f"systemctl show -p ActiveState --value {units}").stdout.split() == ["inactive"] * 2
    result = spec.apply()
    assert "monitoring.scrape" in result.checks("pass"), result.explain()
    spec.remove()
    assert node.run(f"systemctl show -p ActiveState --value {units}").stdout.split() == ["inactive"] * 2
    assert node.run(f"systemctl daemon-reload; systemctl show -p LoadState --value {units}").stdout.split() == (
        ["not-found"] * 2
    )

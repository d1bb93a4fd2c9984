"""RDMA counters of real devices: two VMs with soft RoCE, a Prometheus that watches both, and traffic between them.

node_exporter on each VM serves the counters.

ib_core is in mode exclusive. A soft device cannot be moved to another network namespace by the kernels of Debian 12 and
13, so the exporter is: run in a namespace of its own, it has to find the device in another one, which is the host's.
"""

import json
import math
import re
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpuready.components.monitoring.component import SCRIPT, TIMER, WRITER
from tests.lab import VM, Lab, Machine, scale
from tests.system.faults import until
from tests.system.harness import Gpuready, Inventories

PROM = "/var/lib/prometheus/node-exporter/rdma.prom"
MODULES = "cut -d' ' -f1 /proc/modules | grep -x 'ib_core\\|rdma_rxe' || true"


@pytest.fixture(scope="module")
def every() -> int:
    """The seconds from one scrape to the next, within which each has to be answered."""
    return math.ceil(scale.seconds(6))


@pytest.fixture(scope="module")
def watcher(lab: Lab, pair: tuple[VM, ...], every: int) -> Iterator[Machine]:
    """A machine with Prometheus, which scrapes both."""
    with lab.machine() as machine:
        targets = ", ".join(f'"{vm.address}:9100"' for vm in pair)
        machine.install("prometheus curl")
        machine.run(
            "cat >/etc/prometheus/prometheus.yml && systemctl restart prometheus",
            stdin=f"global: {{scrape_interval: {every}s, scrape_timeout: {every}s}}\n"
            f"scrape_configs: [{{job_name: node, static_configs: [{{targets: [{targets}]}}]}}]\n",
        )
        yield machine


def counters(text: str) -> dict[str, float]:
    """Metric -> value of rxe0, as Prometheus' parser reads it."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {sample.name: sample.value for sample in samples if sample.labels.get("device") == "rxe0"}


def asked(watcher: Machine, expression: str) -> dict[str, float]:
    """Address -> value, as Prometheus answers."""
    words = urllib.parse.quote(expression)
    said = watcher.run(f"curl -sf 'http://127.0.0.1:9090/api/v1/query?query={words}'", check=False).stdout
    rows: list[dict[str, Any]] = json.loads(said)["data"]["result"] if said else []
    return {row["metric"]["instance"].partition(":")[0]: float(row["value"][1]) for row in rows}


@pytest.mark.core
def test_the_exporter_loads_no_module(pair: tuple[VM, ...], gpuready: Gpuready, inventory: Inventories) -> None:
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda vm: vm.run("systemctl start prometheus-node-exporter"), pair))
    where = inventory(pair, monitoring={"rdma_exporter": "textfile"})
    result = gpuready("apply", "--yes", "--only", "monitoring", "--batch", "100%", inventory=where, code=0)
    for vm in pair:
        assert "monitoring.scrape" in result.checks("pass", host=vm.name), result.explain()
        assert vm.run(MODULES).stdout == ""
        vm.run("modprobe ib_core netns_mode=0")
        assert vm.rxe() == "rxe0"
        read = partial(vm.run, f"systemctl start {WRITER} && cat {PROM}")
        until(lambda read=read: 'device="rxe0"' in read().stdout, 60)  # one that is not read in time is missing
    again = gpuready("verify", "--only", "monitoring", inventory=where)
    for vm in pair:
        said = again.check("monitoring.scrape", vm.name)
        assert (said["status"], said["summary"]) == ("pass", "has the counters of 1 RDMA devices")
        assert vm.run("ls /run/gpuready-rdma-exporter").stdout == "rxe0\n"  # the lock of what reads it


@pytest.mark.core
def test_every_file_of_the_device_is_there(pair: tuple[VM, ...]) -> None:
    vm = pair[0]
    files = vm.run("ls /sys/class/infiniband/rxe0/ports/1/hw_counters").stdout.split()
    found = counters(vm.run(f"sh {SCRIPT}").stdout)
    assert {f"rdma_hw_{name}_total" for name in files if name != "lifespan"} < set(found)
    assert (found["rdma_port_state_id"], found["rdma_port_info"]) == (4, 1)
    assert found["rdma_exporter_read_errors"] == 0


def test_a_device_in_another_network_namespace(pair: tuple[VM, ...]) -> None:
    vm = pair[0]
    vm.run("ip netns add elsewhere")
    inside = f"ip netns exec elsewhere sh {SCRIPT}"
    assert vm.run("ip netns exec elsewhere ls /sys/class/infiniband").stdout == ""
    answer = vm.run(inside).stdout
    assert 'rdma_hw_sent_pkts_total{device="rxe0",netns="' in answer
    assert "rdma_exporter_devices 1" in answer and 'rdma_exporter_read_errors{device="rxe0"} 0' in answer
    # The same from the unit, with what it may do, and nothing more.
    drop_in = f"/run/systemd/system/{WRITER}.d"
    vm.run(
        f"systemctl stop {TIMER} && mkdir -p {drop_in} && cat >{drop_in}/elsewhere.conf && systemctl daemon-reload",
        stdin="[Service]\nNetworkNamespacePath=/run/netns/elsewhere\n",
    )
    said = vm.run(f"systemctl start {WRITER} && cat {PROM}").stdout
    assert counters(said).keys() == counters(answer).keys()
    assert 'rdma_hw_sent_pkts_total{device="rxe0",netns="' in said
    vm.run(f"rm -r {drop_in} && systemctl daemon-reload && systemctl start {TIMER}")
    vm.run("ip netns del elsewhere")


def write_bw(one: VM, two: VM, seconds: int = 10) -> int:
    """Bytes that ib_write_bw says to have written from one to the other.

    An acknowledgement may take 4 s (-u 20: 4.096 us * 2^20), seven times, and not 67 ms: without KVM it may have to.
    """
    tool = f"ib_write_bw -d rxe0 -F -s 4096 -t 4 -u 20 -D {seconds}"
    two.run(f"systemd-run -q --collect --unit=write-bw {tool}")
    until(lambda: two.run("ss -Hltn 'sport = :18515'").stdout)
    said = one.run(f"{tool} {two.wire}").stdout
    row = re.search(r"^ *4096 +(\d+) ", said, re.M)
    assert row, said
    return 4096 * int(row[1])


@pytest.mark.core
def test_prometheus_sees_both_ends_of_the_traffic(pair: tuple[VM, ...], watcher: Machine, every: int) -> None:
    """A busy device that is not read in time is missing from that scrape, so the last ones are asked that had it."""
    one, two = pair
    both = {one.address, two.address}
    ways = [f"last_over_time(rdma_hw_{way}_pkts_total[{20 * every}s])" for way in ("sent", "rcvd")]
    counted = f"count_over_time(rdma_hw_sent_pkts_total[{20 * every}s]) > 2"
    until(lambda: asked(watcher, counted).keys() == both, 90, "scrapes")
    before = [asked(watcher, last) for last in ways]
    packets = write_bw(one, two) // 1024
    ended = float(watcher.run("date +%s").stdout)
    written = f'node_textfile_mtime_seconds{{file="{PROM}"}} > {ended}'
    until(lambda: asked(watcher, written).keys() == both, 90, "a last file")
    sent, received = (
        {at: value - then[at] for at, value in asked(watcher, last).items()}
        for last, then in zip(ways, before, strict=True)
    )
    # Four packets of 1024 bytes a message go there, acknowledgements come back.
    assert packets > 0 and sent[one.address] >= packets and received[two.address] >= packets, (packets, sent, received)
    assert sent[two.address] > 0 and received[one.address] > 0, (sent, received)
    rates = asked(watcher, f"rate(rdma_hw_sent_pkts_total[{60 * every}s])")
    assert rates.keys() == both and min(rates.values()) > 0, rates

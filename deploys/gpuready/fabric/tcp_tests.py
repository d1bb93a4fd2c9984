"""The tests over TCP: their commands and verdicts. No program of ours listens on a node.

tcp_connect tries ports that nothing needs to listen on: a host that refuses a connection was reached. A firewall that
answers with a reset looks the same; tcp_bw then fails to connect. tcp_mtu sends packets that routers must not fragment,
as large as the interface allows. tcp_bw is iperf3 with one stream and with eight.

Sources: ping(8), iperf3(1) and its JSON, bash(1) (/dev/tcp), ip-sysctl.rst (ephemeral ports), torchrun's default port;
NCCL's user guide (NCCL_SOCKET_NTHREADS: 1 to 16; times NCCL_NSOCKS_PERTHREAD: at most 64; its defaults on AWS and
gVNIC), looked up on 2026-11-28.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpuready.base.errors import brief
from gpuready.fabric.figures import last_line
from gpuready.network.links import End

#: torchrun's port, and two of the ephemeral range, in which NCCL and gloo listen.
PORTS = (29500, 40000, 60000)
STREAMS = (1, 8)
PINGS = 10
#: Sizes of packets to try when the interface's own MTU does not pass, in bytes; the last one shows that ping works.
SIZES = (8896, 4096, 1500, 1460, 1400, 1280, 100)
#: Seconds for one connection.
CONNECT = 5
#: Seconds during which a refused iperf3 is tried again.
AGAIN = 15

CONNECT_SCRIPT = f"""for port; do
  timeout {CONNECT} bash -c "exec 3<>/dev/tcp/$0/$port"
  echo "port $port: $?"
done
ip -o route get "$0"
true"""
#: $0: address, $1: bytes of the headers, then the sizes.
MTU_SCRIPT = """head=$1
shift
for size; do
  if ping -n -M do -c 2 -i 0.3 -W 1 -s $((size - head)) "$0"; then
    echo "passes $size"
    break
  fi
  echo "lost $size"
done"""
#: $0: address, $1: our own address, $2: seconds, $PORT. Between two tests, the server closes its port and opens it
#: again. A connection that comes in this moment, which takes seconds on a loaded node, is reset or told that the server
#: is busy, and tried again. With -J, iperf3 ends with 0 also after an error in the middle of a test.
BANDWIDTH_SCRIPT = f"""run() {{
  iperf3 -c "$0" -B "$1" -t "$2" -P "$streams" -p "$PORT" -i 0 -J --connect-timeout {CONNECT * 1000}
}}
for streams in {" ".join(map(str, STREAMS))}; do
  end=$((SECONDS + {AGAIN}))
  while began=$SECONDS; do
    said=$(run "$@")
    rc=$?
    [[ $said != *'"error":'* ]] || rc=$((rc ? rc : 1))
    if [ $rc = 0 ] || [ $((SECONDS - began)) -ge {CONNECT} ] || [ $SECONDS -ge $end ]; then break; fi
    sleep 1
  done
  printf '%s\\n' "$said"
  [ $rc = 0 ] || exit $rc
done"""


def arguments(name: str, server: End, client: End, seconds: int) -> tuple[str, tuple[str, ...], int]:
    """Return the client's script, its arguments and its time limit in seconds."""
    if name == "tcp_connect":
        return CONNECT_SCRIPT, (server.address, *map(str, PORTS)), CONNECT * len(PORTS) + 10
    if name == "tcp_mtu":
        sizes = [client.mtu, *(size for size in SIZES if size < client.mtu)]
        head = 48 if ":" in server.address else 28  # IP and ICMP
        return MTU_SCRIPT, (server.address, str(head), *map(str, sizes)), 40
    if name == "tcp_lat":
        return 'exec ping -n -c "$1" -i 0.2 -W 2 "$0"', (server.address, str(PINGS)), 20
    limit = len(STREAMS) * (seconds + CONNECT + AGAIN + 5)
    return BANDWIDTH_SCRIPT, (server.address, client.address, str(seconds)), limit


@dataclass(frozen=True)
class Outcome:
    """The verdict of one test. ``sent``: bytes that the client must have sent through its interface."""

    status: str
    summary: str
    value: float | None = None
    limit: float | None = None
    remedy: str = ""
    more: tuple[tuple[str, float], ...] = ()
    sent: int = 0


#: The most of a node's answer that is read, in characters, and of a message in it.
_MOST, _LONGEST = 200_000, 300
_PORT = re.compile(r"^port ([0-9]{1,5}): ([0-9]{1,3})$", re.M)
_ROUTE = re.compile(r"^\S{1,64} .{0,200}?\bdev (\S{1,32})", re.M)
_PINGED = re.compile(r"(?<![0-9])([0-9]{1,9}) packets transmitted, ([0-9]{1,9}) (?:packets )?received")
_TIMES = re.compile(r"= [0-9.]{1,20}/([0-9]{1,9}\.[0-9]{1,9})/([0-9]{1,9}\.[0-9]{1,9})/")
_FIREWALL = "open TCP between the hosts, all ports: NCCL and torchrun listen on ports that the kernel chooses"
_NO_PING = "ping got no answer, also with small packets: ICMP is filtered, or the host is not reached (see tcp_connect)"


def connected(text: str, server: End, client: End) -> Outcome:
    """Judge tcp_connect: each port is reached if it is open or refused."""
    parts = _PORT.split(text[:_MOST], len(PORTS))
    bad = []
    for said, port, code in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        if code != "0" and "Connection refused" not in said:
            why = f"no answer within {CONNECT} s" if code == "124" else _last(said) or f"exit {code}"
            bad.append((port, why))
    tried = len(parts) // 3
    if not tried:
        return Outcome("fail", f"no port was tried: {_last(text)}", remedy=_FIREWALL)
    reached = float(tried - len(bad))
    if bad:
        whys = list(dict.fromkeys(why for _, why in bad))
        listed = "; ".join(f"port {', '.join(port for port, its in bad if its == why)}: {why}" for why in whys)
        return Outcome("fail", f"{server.address} is not reached on {listed}", reached, remedy=_FIREWALL)
    route = _ROUTE.search(parts[-1])
    if route and route[1] not in (client.netdev, "lo"):
        way = f"add a route, or name the network of {route[1]} in nccl.subnets"
        return Outcome("fail", f"packets to {server.address} leave by {route[1]}, not by {client.netdev}", remedy=way)
    return Outcome("pass", f"ports {', '.join(map(str, PORTS))} are reached", reached)


def mtu(text: str, server: End, client: End) -> Outcome:
    """Judge tcp_mtu: packets as large as the interface allows must arrive whole."""
    if not client.mtu:
        return Outcome("unknown", f"the MTU of {client.netdev} was not read")
    passed = re.search(r"^passes ([0-9]{1,9})$", text[:_MOST], re.M)
    if passed is None:
        return Outcome("unknown", _NO_PING if "lost" in text else _last(text))
    size = int(passed[1])
    if size >= client.mtu:
        return Outcome("pass", f"packets of {size} bytes arrive whole", float(size), float(client.mtu))
    theirs = f", which has an MTU of {server.mtu}" if server.mtu and server.mtu != client.mtu else ""
    summary = (
        f"packets of {client.mtu} bytes, the MTU of {client.netdev}, do not reach {server.host} {server.netdev}"
        f"{theirs}; {size} bytes do"
    )
    remedy = "set one MTU on all hosts, and at least that on the switches between them"
    return Outcome("fail", summary, float(size), float(client.mtu), remedy)


def latency(text: str, limit: float | None) -> Outcome:
    """Judge tcp_lat; ``limit`` in microseconds."""
    counted, rtt = _PINGED.search(text[:_MOST]), _TIMES.search(text[:_MOST])
    if counted is None:
        return Outcome("unknown", f"ping printed no result: {_last(text)}")
    sent, back = int(counted[1]), int(counted[2])
    if not back or rtt is None:
        return Outcome("unknown", _NO_PING)
    average, most = float(rtt[1]) * 1000, float(rtt[2]) * 1000
    more = (("max", most), ("lost", float(sent - back)))
    if back < sent:
        why = "check cable, duplex and the interface's errors (ip -s link)"
        return Outcome("fail", f"{sent - back} of {sent} packets were lost", average, limit, why, more)
    if limit is not None and average > limit:
        summary = f"{average:.4g} us, above {limit:.4g} (verify.thresholds.tcp_lat)"
        return Outcome("fail", summary, average, limit, "", more)
    reason = "no limit set" if limit is None else "verify.thresholds.tcp_lat"
    return Outcome("pass", f"{average:.4g} us ({reason})", average, limit, "", more)


def bandwidth(text: str, server: End, client: End, fraction: float) -> Outcome:
    """Judge tcp_bw: eight streams against the slower interface's speed. Below is a warning: a CPU may be the limit."""
    runs = list(_documents(text[:_MOST]))
    said = next((brief(str(run["error"]), _LONGEST) for run in runs if "error" in run), "")
    said = said or ("" if runs else _last(text))
    if said or len(runs) < len(STREAMS):
        busy = "another iperf3 ran there" if "busy" in said else _FIREWALL
        return Outcome("fail", f"iperf3: {said or 'no result'}", remedy=busy)
    rates = [_figure(run, "sum_received", "bits_per_second") / 1e9 for run in runs]
    again = sum(_figure(run, "sum_sent", "retransmits") for run in runs)
    sent = int(sum(_figure(run, "sum_received", "bytes") for run in runs))
    more: tuple[tuple[str, float], ...] = (("one_stream", rates[0]), ("retransmits", again))
    if cores := max(_figure(runs[1], "cpu_utilization_percent", name) for name in ("host_total", "remote_total")):
        more = (*more, ("cpu_cores", cores / 100))
    shown = f"{rates[1]:.4g} Gbit/s with {STREAMS[1]} streams, {rates[0]:.4g} with one"
    if not sent:
        return Outcome("fail", "iperf3 ran, but no data arrived", 0.0, None, _FIREWALL, more)
    lines = [end.line_gbps for end in (server, client)]
    if None in lines:
        reason = "no limit: the speed of an interface is unknown"
        return Outcome("pass", f"{shown} ({reason})", rates[1], None, "", more, sent)
    line = min(rate for rate in lines if rate is not None)
    limit = fraction * line
    reason = f"{fraction:g} of the speed of {line:g}"
    if rates[1] < limit:
        remedy = (
            "compare rows and columns of the matrix; check other load, the MTU, the speed of the switch port, and on "
            "clouds the instance's own limit"
        )
        return Outcome("warn", f"{shown}, below {limit:.4g} ({reason})", rates[1], limit, remedy, more, sent)
    return Outcome("pass", f"{shown} ({reason})", rates[1], limit, "", more, sent)


#: NCCL's variables for the sockets of one connection: helper threads, and sockets of each thread.
SOCKETS = ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")
#: Drivers of AWS and Google, where NCCL itself opens several sockets, or uses several threads.
_BY_ITSELF = ("ena", "gve")
#: By how much eight streams must be faster than one, so that more sockets are worth their CPU time.
_GAIN = 1.2


def more_sockets(value: float, more: Mapping[str, float], driver: str) -> tuple[int, int] | None:
    """Return how many threads, and sockets of each, reach what eight streams of tcp_bw did; None: one socket does.

    There are as many sockets as streams were measured, and a thread for each CPU core that they took (a power of two).
    """
    if driver in _BY_ITSELF or value < _GAIN * more.get("one_stream", value):
        return None
    cores = min(math.ceil(more.get("cpu_cores", 1.0)), STREAMS[1])
    threads = 1 << (cores - 1).bit_length()
    return threads, STREAMS[1] // threads


def _documents(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON documents that follow each other in a text."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield found
        at = text.find("{", end)


def _figure(run: dict[str, Any], part: str, name: str) -> float:
    """Return a number of iperf3's summary; 0 for what is no number, which counts as nothing arrived."""
    end = run.get("end")
    found = end.get(part) if isinstance(end, dict) else None
    value = found.get(name) if isinstance(found, dict) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e18:
        return 0.0
    return float(value)


def _last(text: str) -> str:
    return last_line(text[-_MOST:]).removeprefix("bash: ")

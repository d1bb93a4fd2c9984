"""The node's network devices: addresses, speed, and which ones carry the default route or SSH.

Sources: Documentation/ABI/testing/sysfs-class-net (speed in Mbit/s, -1 or nothing when unknown; ``lower_*`` links of
bonds, bridges and VLANs; DEVTYPE in uevent; DRIVER in that of the hardware), ip-address(8) with -o, /proc/net/route
and ipv6_route (hexadecimal, main table only), ssh(1) for SSH_CONNECTION.
"""

import functools
import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from gpuready.base.facts import Facts


@functools.lru_cache(maxsize=1 << 12)  # each address is checked twice: here, and as a value of the model
def _interface(text: str) -> str:
    return str(ipaddress.ip_interface(text))


class NetDevice(Facts):
    """One network device. ``kind``: the kernel's DEVTYPE, empty for a plain device. ``lower``: the devices below it.

    ``speed``: in Mbit/s, None if the device does not report it. ``addresses``: in CIDR form with their host part.
    ``driver``: of the hardware; empty for a virtual device.
    """

    kind: str = ""
    state: str = ""
    mtu: int = 0
    speed: int | None = None
    addresses: tuple[Annotated[str, AfterValidator(_interface)], ...] = ()
    lower: tuple[str, ...] = ()
    driver: str = ""


class Network(Facts):
    """Network devices by name. ``default``: those with a default route. ``ssh``: the node's address in this session.

    ``rdma``: RDMA device -> the network devices of the same hardware, from sysfs. ``rdma_drivers``: RDMA device ->
    driver. ``plugins``: folders of a cloud's NCCL plugin that exist.
    """

    devices: dict[str, NetDevice] = Field(default_factory=dict)
    default: tuple[str, ...] = ()
    ssh: str = ""
    rdma: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    rdma_drivers: dict[str, str] = Field(default_factory=dict)
    plugins: tuple[str, ...] = ()


_SYSFS = re.compile(r"/sys/class/net/([^/]+)/(mtu|operstate|speed|uevent):(.*)")
_DRIVER = re.compile(r"/sys/class/(net|infiniband)/([^/]+)/device/uevent:DRIVER=(.+)")
_PLUGIN = re.compile(r"plugin=(/.+)")
_LOWER = re.compile(r"lower=/sys/class/net/([^/]+)/lower_(.+)")
_RDMA = re.compile(r"rdma=/sys/class/infiniband/([^/]+)/device/net/(.+)")
_PARENT = re.compile(r"/sys/class/infiniband/([^/]+)/parent:(.+)")
_ADDRESS = re.compile(r"\d+: (\S+) +inet6? (\S+)(?: peer (\S+))?")
_ROUTE4 = re.compile(r"(\S+)\t0{8}\t[0-9A-F]{8}\t[0-9A-F]{4}\t\d+\t\d+\t\d+\t0{8}\t")
_ROUTE6 = re.compile(r"0{32} 00 0{32} 00 [0-9a-f]{32} (?:[0-9a-f]{8} ){4} *(\S+)")
_SSH = re.compile(r"SSH_CONNECTION=\S+ \d+ (\S+) \d+")


def network(text: str) -> Network:
    """Parse what the probe's ``network`` printed: lines of several kinds, which differ in form."""
    found: dict[str, dict[str, str]] = {}
    addresses: dict[str, list[str]] = {}
    lower: dict[str, list[str]] = {}
    rdma: dict[str, list[str]] = {}
    drivers: dict[str, dict[str, str]] = {"net": {}, "infiniband": {}}
    default: list[str] = []
    plugins: list[str] = []
    ssh = ""
    for line in text.replace("\0", "\n").splitlines():
        if m := _SYSFS.fullmatch(line):
            key, _, value = m[3].rpartition("=") if m[2] == "uevent" else (m[2], "", m[3])
            found.setdefault(m[1], {})[key] = value
        elif m := _ADDRESS.match(line):
            if address := _own(m[2], m[3]):
                addresses.setdefault(m[1].partition("@")[0], []).append(address)
        elif m := _DRIVER.fullmatch(line):
            drivers[m[1]][m[2]] = m[3]
        elif m := _PLUGIN.fullmatch(line):
            plugins.append(m[1])
        elif m := _LOWER.fullmatch(line):
            lower.setdefault(m[1], []).append(m[2])
        elif m := _RDMA.fullmatch(line) or _PARENT.fullmatch(line):
            rdma.setdefault(m[1], []).append(m[2])
        elif m := _ROUTE4.match(line) or _ROUTE6.fullmatch(line.rstrip()):
            default += [m[1]] if m[1] != "lo" else []
        elif m := _SSH.match(line):
            ssh = m[1].partition("%")[0]
    devices = {
        name: NetDevice(
            kind=values.get("DEVTYPE", ""),
            state=values.get("operstate", ""),
            mtu=_number(values.get("mtu", "")) or 0,
            speed=_number(values.get("speed", "")),
            addresses=tuple(dict.fromkeys(addresses.get(name, ()))),
            lower=tuple(lower.get(name, ())),
            driver=drivers["net"].get(name, ""),
        )
        for name, values in found.items()
    }
    names = {name: tuple(dict.fromkeys(of)) for name, of in rdma.items()}
    return Network(
        devices=devices,
        default=tuple(dict.fromkeys(default)),
        ssh=ssh,
        rdma=names,
        rdma_drivers=drivers["infiniband"],
        plugins=tuple(plugins),
    )


def rdma_files(text: str) -> dict[str, str]:
    """Parse what the probe's ``rdma_ports`` printed: ``grep -H``; its paths contain no colon."""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def _own(address: str, peer: str | None) -> str:
    """Return the address with its prefix length. On a point-to-point link, the prefix follows the peer's address."""
    text = address if peer is None else f"{address}/{peer.rpartition('/')[2]}"
    try:
        return _interface(text)
    except ValueError:
        return ""


def _number(text: str) -> int | None:
    """Parse a positive number; drivers report an unknown one as -1 or 4294967295."""
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) < 2**31 else None

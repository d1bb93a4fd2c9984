"""Record a network interface and restore it with iproute2: what it loses when it moves between namespaces.

The kernel closes an interface that it moves. It loses its addresses, routes and per-interface settings, and keeps its
name, MTU and hardware address. Sources: ip-address(8), ip-route(8), ip-link(8), the kernel's ip-sysctl.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_interface
from typing import Any

from pydantic import Field

from gpuready.base.facts import Facts

#: Per-interface settings that decide whether RoCE works on an interface, as FAMILY.KEY below /proc/sys/net.
SYSCTLS = (
    "ipv4.rp_filter", "ipv4.arp_ignore", "ipv4.arp_announce", "ipv4.arp_filter", "ipv4.accept_local",
    "ipv6.disable_ipv6", "ipv6.addr_gen_mode", "ipv6.accept_ra", "ipv6.autoconf", "ipv6.use_tempaddr",
)  # fmt: skip
_FOREVER = 0xFFFFFFFF
#: The attributes of a route that are kept. `dev`, `flags` and `type` are handled; others are reported and dropped.
_ROUTE = ("tos", "table", "protocol", "scope", "metric", "prefsrc", "pref")
_KEYWORDS = {"prefsrc": "src", "protocol": "proto"}
_HANDLED = {"dst", "gateway", "via", "dev", "flags", "type", "metrics", "uid", *_ROUTE}
_TOKEN = re.compile(r"[A-Za-z0-9_.:/@%+-]+")


class Interface(Facts):
    """One interface. ``addresses`` and ``routes``: the arguments of ``ip address replace`` and ``ip route replace``.

    ``kind``: as in rtnetlink (veth, macvlan, ...), empty for hardware. ``place``: the device behind it. ``leased``:
    addresses that expire without renewal. ``lost``: attributes of routes that cannot be kept.
    """

    name: str = Field(pattern=r"^[^\s/\"'\\]{1,15}$")
    up: bool = False
    mtu: int = 1500
    mac: str = ""
    kind: str = ""
    place: str = ""
    addresses: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    sysctls: dict[str, str] = Field(default_factory=dict)
    leased: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def plain(self) -> tuple[str, ...]:
        """The addresses in ADDRESS/PREFIX form, without link-local ones."""
        found = (words.split(" ") for words in self.addresses)
        return tuple(words[0] for words in found if words[0].split(":")[0] != "fe80")

    def commands(self) -> str:
        """Return the ``ip -batch`` commands that configure the interface; they can run twice."""
        rows = [f"link set dev {self.name} mtu {self.mtu}", f"link set dev {self.name} {'up' if self.up else 'down'}"]
        rows += [f"address replace {words} dev {self.name}" for words in self.addresses]
        rows += [f"route replace {words} dev {self.name}" for words in self.routes]
        return "".join(f"{row}\n" for row in rows)

    def settings(self) -> tuple[str, ...]:
        """Return the per-interface settings, as ``ipv4.rp_filter=2``."""
        return tuple(f"{key}={value}" for key, value in self.sysctls.items())

    def inside(self) -> Interface:
        """Return the configuration for the container: addresses never expire, because nothing renews them there.

        Stable-privacy link-local addresses depend on a secret of the namespace, so they are set, not generated.
        """
        mode = {"ipv6.addr_gen_mode": "1"} if self.sysctls.get("ipv6.addr_gen_mode") in ("2", "3") else {}
        ends = re.compile(r" (valid|preferred)_lft \d+")
        return self.model_copy(
            update={"addresses": tuple(ends.sub("", a) for a in self.addresses), "sysctls": {**self.sysctls, **mode}}
        )


def interface(
    name: str,
    links: Iterable[Mapping[str, Any]],
    routes: Iterable[Mapping[str, Any]],
    sysctls: Mapping[str, str],
) -> Interface | None:
    """Read an interface from the JSON of ``ip -j -d addr`` and ``ip -j route show table all``; None if missing."""
    link = next((each for each in links if each.get("ifname") == name), None)
    if link is None:
        return None
    kept = [each for each in link.get("addr_info", ()) if _lasts(each)]
    if sysctls.get("ipv6.addr_gen_mode", "0") == "0":  # the kernel makes it from the hardware address, everywhere
        kept = [each for each in kept if each.get("protocol") != "kernel_ll"]
    implied = {_network(each) for each in kept if not each.get("noprefixroute")} | {"fe80::/64"}
    through = [each for each in routes if each.get("dev") == name and each.get("table") != "local"]
    through = [each for each in through if each.get("type", "unicast") == "unicast"]
    through = [each for each in through if each.get("protocol") != "kernel" or each["dst"] not in implied]
    return Interface(
        name=name,
        up="UP" in link.get("flags", ()),
        mtu=link.get("mtu", 1500),
        mac=link.get("address", ""),
        kind=link.get("linkinfo", {}).get("info_kind", ""),
        place=link.get("parentdev", ""),
        addresses=tuple(_address(each) for each in kept),
        # A gateway must be reachable before a route goes through it.
        routes=tuple(_route(each) for each in sorted(through, key=lambda each: "gateway" in each or "via" in each)),
        sysctls={key: sysctls[key] for key in SYSCTLS if key in sysctls},
        leased=tuple(f"{each['local']}/{each['prefixlen']}" for each in kept if each.get("dynamic")),
        lost=tuple(_lost(each) for each in through if set(each) - _HANDLED),
    )


def _lasts(found: Mapping[str, Any]) -> bool:
    return "local" in found and not found.get("temporary") and not found.get("dadfailed")


def _network(found: Mapping[str, Any]) -> str:
    """Return the destination of the route that the kernel adds with this address."""
    return str(ip_interface(f"{found.get('address', found['local'])}/{found['prefixlen']}").network)


def _address(found: Mapping[str, Any]) -> str:
    words = [f"{found['local']}/{found['prefixlen']}"]
    if "address" in found:  # point to point: `address` is the other end
        words = [str(found["local"]), "peer", f"{found['address']}/{found['prefixlen']}"]
    for key in ("broadcast", "scope", "label", "metric"):
        if key in found and (key != "label" or found["family"] == "inet"):
            words += [key, str(found[key])]
    words += [flag for flag in ("noprefixroute", "nodad", "home", "mngtmpaddr") if found.get(flag)]
    for key, word in (("valid_life_time", "valid_lft"), ("preferred_life_time", "preferred_lft")):
        if found.get(key, _FOREVER) != _FOREVER:
            words += [word, str(found[key])]
    return _safe(words)


def _route(found: Mapping[str, Any]) -> str:
    words = [str(found["dst"])]
    if "via" in found:  # an IPv4 route through an IPv6 neighbour
        words += ["via", str(found["via"]["family"]), str(found["via"]["host"])]
    elif "gateway" in found:
        words += ["via", str(found["gateway"])]
    for key in _ROUTE:
        if key in found:
            words += [_KEYWORDS.get(key, key), str(found[key])]
    for metrics in found.get("metrics", ()):
        for key, value in metrics.items():
            words += [key, str(value)] if isinstance(value, int) else []
    words += ["onlink"] if "onlink" in found.get("flags", ()) else []
    return _safe(words)


def _lost(found: Mapping[str, Any]) -> str:
    return f"{found['dst']} ({', '.join(sorted(set(found) - _HANDLED))})"


def _safe(words: Iterable[str]) -> str:
    """Join words to one line of a batch file; quote those with unusual characters."""
    return " ".join(word if _TOKEN.fullmatch(word) else '"' + re.sub(r'["\\\s]', "", word) + '"' for word in words)

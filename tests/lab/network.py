"""Networks of the test machines: a namespace and a /30 of 198.18.0.0/15 for each, masqueraded by the host.

That range is set aside for benchmarks (RFC 2544), so it collides with nobody's network. A machine never sees the host's
interfaces. The host end keeps one more address, on lo, where the lab's repository is served. All that is made here
carries the lab's name, and only that is taken away again.
"""

import json
import subprocess
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from tests.lab.host import LabError, run_root, sh

POOL = IPv4Network("198.18.0.0/15")
WIRE = IPv4Network("10.77.0.0/24")
SERVER = "198.19.255.254"
LAST = (POOL.num_addresses // 4) - 2  # the last /30 is the server's
_LABEL = "lo:gpuready-lab"
# Forwarding; and room for many systemds: they all count as one user's against the kernel's default of 128 instances.
_SYSCTLS = {
    "net/ipv4/ip_forward": 1,
    "fs/inotify/max_user_instances": 8192,
    "fs/inotify/max_user_watches": 524_288,
}
_OURS = ("-m", "comment", "--comment", "gpuready-lab")
_RULES = (
    ("nat", "POSTROUTING", ("-s", str(POOL), "!", "-d", str(POOL), *_OURS, "-j", "MASQUERADE")),
    # A host with Docker drops what it forwards, one with a firewall what it receives.
    ("filter", "FORWARD", ("-s", str(POOL), *_OURS, "-j", "ACCEPT")),
    ("filter", "FORWARD", ("-d", str(POOL), *_OURS, "-j", "ACCEPT")),
    ("filter", "FORWARD", ("-s", str(WIRE), "-d", str(WIRE), *_OURS, "-j", "ACCEPT")),  # br_netfilter asks it, too
    ("filter", "INPUT", ("-s", str(POOL), "-d", SERVER, *_OURS, "-j", "ACCEPT")),
)


def address(index: int) -> str:
    """The machine's own address."""
    return str(IPv4Address(int(POOL.network_address) + 4 * index + 2))


def gateway(index: int) -> str:
    """The host's end of that machine's link."""
    return str(IPv4Address(int(POOL.network_address) + 4 * index + 1))


def link(index: int) -> str:
    """The host's interface to that machine (15 characters at most)."""
    return f"gpuready-{index}"


def wire(place: int) -> str:
    """The address of a virtual machine on the private wire that joins several of them."""
    return str(WIRE[place])


def plug(index: int) -> str:
    """The host's end of a virtual machine's link to its wire (15 characters at most)."""
    return f"{link(index)}w"


def mac(index: int, interface: int) -> str:
    """The Ethernet address of a virtual machine's interface, locally administered."""
    return f"52:54:00:{index >> 8:02x}:{index & 255:02x}:{interface:02x}"


def guest(index: int, place: int) -> str:
    """What `ip -batch` has to set up inside a virtual machine."""
    return (
        "link set lo up\n"
        f"address add {address(index)}/30 dev eth0\n"
        "link set eth0 up\n"
        f"route add default via {gateway(index)}\n"
        f"address add {wire(place)}/24 dev eth1\n"
        "link set eth1 up\n"
    )


def namespace(name: str) -> Path:
    """The machine's network namespace, as systemd-nspawn wants it."""
    return Path("/run/netns") / f"gpuready-lab-{name}"


def open_host() -> None:
    """Let machines reach what the host reaches. Safe to repeat."""
    sysctls = {name: Path("/proc/sys", name) for name in _SYSCTLS}
    if not _before().exists():
        _before().write_text(json.dumps({name: int(path.read_text()) for name, path in sysctls.items()}), "utf-8")
    for name, path in sysctls.items():
        path.write_text(f"{max(_SYSCTLS[name], int(path.read_text()))}\n")
    for table, chain, rule in _RULES:
        if not _has(table, chain, rule):
            sh("iptables", "-w", "-t", table, "-I", chain, *rule)
    if SERVER not in sh("ip", "-o", "-4", "address", "show", "dev", "lo"):
        sh("ip", "address", "add", f"{SERVER}/32", "dev", "lo", "label", _LABEL)


def close_host() -> None:
    """Undo open_host; safe to repeat."""
    for table, chain, rule in _RULES:
        while _has(table, chain, rule):
            sh("iptables", "-w", "-t", table, "-D", chain, *rule)
    if SERVER in sh("ip", "-o", "-4", "address", "show", "dev", "lo"):
        sh("ip", "address", "del", f"{SERVER}/32", "dev", "lo")
    if _before().exists():
        for name, value in json.loads(_before().read_text("utf-8")).items():
            Path("/proc/sys", name).write_text(f"{value}\n")
        _before().unlink()


def _before() -> Path:
    """What the host's settings were before the lab changed them."""
    return run_root() / "host-before.json"


def _has(table: str, chain: str, rule: tuple[str, ...]) -> bool:
    argv = ["iptables", "-w", "-t", table, "-C", chain, *rule]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def attach(name: str, index: int) -> None:
    """Make the namespace and its link; one that is there stays as it is."""
    space = namespace(name)
    if space.exists():
        return
    sh("ip", "netns", "add", space.name)
    sh(
        "ip",
        "-batch",
        "-",
        stdin=(
            f"link add {link(index)} type veth peer name eth0 netns {space.name}\n"
            f"address add {gateway(index)}/30 dev {link(index)}\n"
            f"link set {link(index)} up\n"
        ),
    )
    sh(
        "ip",
        "-n",
        space.name,
        "-batch",
        "-",
        stdin=(
            "link set lo up\n"
            f"address add {address(index)}/30 dev eth0\n"
            "link set eth0 up\n"
            f"route add default via {gateway(index)}\n"
        ),
    )


def attach_taps(index: int, first: int) -> None:
    """Make the host's interfaces to a virtual machine, which QEMU takes; there is no namespace.

    The wire is a bridge, without the host. It has the number of the virtual machine that is ``first`` on it.
    """
    if _there(link(index)):
        return
    for name in (link(index), plug(index)):
        sh("ip", "tuntap", "add", "dev", name, "mode", "tap")
    sh("ip", "-batch", "-", stdin=f"address add {gateway(index)}/30 dev {link(index)}\nlink set {link(index)} up\n")
    bridge = f"{link(first)}b"
    if not _there(bridge):
        sh("ip", "link", "add", bridge, "type", "bridge", "mcast_snooping", "0")
    sh("ip", "-batch", "-", stdin=f"link set {plug(index)} master {bridge} up\nlink set {bridge} up\n")


def detach(name: str, index: int) -> None:
    """Remove the links, a bridge that joins no others, and the namespace, whichever of them is there."""
    bridge = Path("/sys/class/net", plug(index), "master").resolve()
    for end in (link(index), plug(index)):
        _remove_link(end)
    if (bridge / "brif").exists() and not any((bridge / "brif").iterdir()):
        _remove_link(bridge.name)
    space = namespace(name)
    if space.exists():
        try:
            sh("ip", "netns", "del", space.name)
        except LabError:
            # Left half-made by an interrupted `ip netns add`: a plain file that nothing is mounted on.
            space.unlink(missing_ok=True)


def _there(name: str) -> bool:
    return Path("/sys/class/net", name).exists()


def _remove_link(name: str) -> None:
    if _there(name):
        try:
            sh("ip", "link", "del", name)
        except LabError:  # another worker was quicker to clear up after a run that was cut
            if _there(name):
                raise

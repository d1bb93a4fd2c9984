"""Verdicts on the fabric's ports: the size of their packets, PFC, trust mode and ECN."""

import json
from typing import Any

from gpuready.model.network import NetDevice, Network
from gpuready.model.state import NodeState
from tests.components.rdma.test_rdma_verdicts import IRDMA, port
from tests.verdicts import Row, held, is_unknown, passes, root_files, skips, warns

#: As recorded on an Intel E810 (irdma), whose active_mtu is 1024 of 4096; and with an interface MTU of 9000.
SMALL = IRDMA.replace("irdma0", "mlx5_0")
LARGE = SMALL.replace("active_mtu:             1024 (3)", "active_mtu:             4096 (5)")


def pfc(*on: int) -> str:
    """What dcb prints: ``dcb -j pfc show dev``."""
    return json.dumps({"pfc_cap": 8, "macsec_bypass": False, "delay": 0, "prio_pfc": [n in on for n in range(8)]})


def qos(*on: int, app: str = '{"dscp_prio":[[26,3],[0,0]]}', ecn: str = "3", netdev: str = "eth1") -> str:
    marks = "".join(f"ecn {netdev} {role} {n} {int(n in ecn)}\n" for role in ("np", "rp") for n in "03") if ecn else ""
    return f"pfc {netdev} {pfc(*on)}\napp {netdev} {app}\n{marks}"


def node(verbs: str | None = None, roce: str | None = None, rc: int = 0, devices: int = 1, **fields: Any) -> NodeState:
    """A node with RoCE ports mlx5_0, mlx5_1 above eth1, eth2."""
    rdma, network, addresses = {}, {}, {}
    for number in range(devices):
        name, address = f"mlx5_{number}", f"10.0.{number}.5"
        gids = f"/sys/class/infiniband/{name}/ports/1"
        rdma |= port(name)
        rdma |= {f"{gids}/gids/3": f"0000:0000:0000:0000:0000:ffff:0a00:0{number}05"}
        rdma |= {f"{gids}/gid_attrs/types/3": "RoCE v2", f"{gids}/gid_attrs/ndevs/3": f"eth{number + 1}"}
        network[f"eth{number + 1}"] = NetDevice(mtu=fields.get("mtu", 1500), addresses=(f"{address}/24",))
        addresses[name] = (f"eth{number + 1}",)
    active: dict[str, Any] = {"done": {}}
    active |= {} if verbs is None else {"verbs": {"rc": rc, "out": verbs}}
    active |= {} if roce is None else {"roce": {"rc": rc, "out": roce}}
    conf = root_files({"/etc/nccl.conf": f"NCCL_IB_TC={fields['tc']}\n"} if "tc" in fields else {})
    return NodeState(
        rdma=rdma,
        network=Network(
            devices=network, rdma=addresses, rdma_drivers=dict.fromkeys(addresses, fields.get("driver", "mlx5_core"))
        ),
        active=active,
        files=conf,
        nccl=fields.get("env", ()),
    )


def vlan(state: NodeState) -> NodeState:
    """The same node, with its address on a VLAN of eth1."""
    devices = {
        "eth1": NetDevice(mtu=1500),
        "eth1.7": NetDevice(kind="vlan", lower=("eth1",), addresses=("10.0.0.5/24",)),
    }
    named = {path: "eth1.7" if "ndevs" in path else text for path, text in state.rdma.items()}
    assert isinstance(state.network, Network)
    network = state.network.model_copy(update={"devices": devices})
    return state.model_copy(update={"rdma": named, "network": network})


def bond(state: NodeState) -> NodeState:
    """The same node, with its address on a bond of eth1 and eth2."""
    devices = {
        **{name: NetDevice(mtu=1500) for name in ("eth1", "eth2")},
        "bond0": NetDevice(kind="bond", lower=("eth1", "eth2"), addresses=("10.0.0.5/24",)),
    }
    named = {path: "bond0" if "ndevs" in path else text for path, text in state.rdma.items()}
    assert isinstance(state.network, Network)
    network = state.network.model_copy(update={"devices": devices})
    return state.model_copy(update={"rdma": named, "network": network})


LOSSLESS = qos(3)
BY_PORT = qos(3, app='{"dgram_port_prio":[[4791,3]]}')
TWO = qos(3) + qos(netdev="eth2")
TC = {"nccl": {"extra": {"NCCL_IB_TC": "106"}}}
TCP = {"nccl": {"transport": "tcp"}}
UNASKED = node().model_copy(update={"active": {}})

VERDICTS: list[Row] = [
    passes("rdma.mtu", "RDMA packets carry 4096 bytes", node(LARGE, mtu=9000)),
    warns("rdma.mtu", "mlx5_0:1: 1024 of 4096 bytes, eth1 has an MTU of 1500", node(SMALL)),
    warns("rdma.mtu", "an MTU of 9000, enough for 4096", node(SMALL, mtu=9000)),
    skips("rdma.mtu", "ibv_devinfo is not installed", node()),
    skips("rdma.mtu", "NCCL uses TCP", node(SMALL), TCP),
    skips("rdma.mtu", "no active RoCE or InfiniBand port", NodeState()),
    is_unknown("rdma.mtu", "does not show mlx5_0:1", node(SMALL.replace("mlx5_0", "mlx5_7"))),
    is_unknown("rdma.mtu", "does not show mlx5_0:1", node(LARGE, rc=124)),
    is_unknown("rdma.mtu", "not checked", UNASKED),
    passes("rdma.pfc", "PFC is on for priority 3", node(roce=LOSSLESS), TC),
    passes("rdma.pfc", "PFC is on for priority 3", node(roce=LOSSLESS, tc=106)),
    passes("rdma.pfc", "priority 3", node(roce=LOSSLESS, env=("/etc/profile.d/a.sh:export NCCL_IB_TC=106",), tc=0)),
    passes("rdma.pfc", "priority 3", node(roce=LOSSLESS, tc="0x6a")),
    warns("rdma.pfc", "DSCP 0, priority 0", node(roce=LOSSLESS, tc="\u00b2")),  # a digit that is no number
    warns("rdma.pfc", "DSCP 0, priority 0", node(roce=LOSSLESS), {"nccl": {"extra": {"NCCL_IB_TC": "\u00b2"}}}),
    warns("rdma.pfc", "DSCP 0, priority 0", node(roce=LOSSLESS, tc="0\n# for switches: NCCL_IB_TC=106")),
    warns("rdma.pfc", "DSCP 0, priority 0", node(roce=LOSSLESS, tc="0\n#once: NCCL_IB_TC=106\nx:NCCL_IB_TC=106")),
    warns("rdma.pfc", "DSCP 0, priority 0", node(roce=LOSSLESS, env=("/etc/profile:A=1 # NCCL_IB_TC=106",))),
    passes("rdma.pfc", "priority 3",
           node(roce=LOSSLESS, env=("/etc/profile:export NCCL_DEBUG=WARN NCCL_IB_TC=106",))),
    passes("rdma.pfc", "priority 3", node(roce=f"tclass mlx5_0 Global tclass=106\n{LOSSLESS}")),
    # Right after the fix of rdma.trust: DSCP 0 has no rule, and so priority 0.
    warns("rdma.pfc", "DSCP 0, priority 0, but PFC is on for 3", node(roce=qos(3, app='{"dscp_prio":[[26,3]]}'))),
    skips("rdma.pfc", "nothing shows which priority NCCL's packets have: mlx5_0:1 (eth1)",
          node(roce=qos(3, app='{"dscp_prio":[[8,3]]}')), TC),
    skips("rdma.pfc", "nothing shows which priority", node(roce=BY_PORT, driver="bnxt_en")),
    skips("rdma.pfc", "nothing shows which priority", vlan(node(roce=qos(3, app="{}")))),
    # Without a VLAN, trust mode pcp gives all packets priority 0.
    warns("rdma.pfc", "DSCP 26, priority 0, but PFC is on for 3", node(roce=qos(3, app="{}")), TC),
    warns("rdma.pfc", "packets have DSCP 0, priority 0, but PFC is on for 3: mlx5_0:1 (eth1)", node(roce=LOSSLESS)),
    warns("rdma.pfc", "DSCP 26, priority 3, but PFC is on for 4, 5", node(roce=qos(4, 5)), TC),
    warns("rdma.pfc", "differ in the priorities with PFC: mlx5_0:1 (eth1): 3; mlx5_1:1 (eth2): none",
          node(roce=TWO, devices=2)),
    warns("rdma.pfc", "mlx5_0:1 (eth1): 3; mlx5_0:1 (eth2): none", bond(node(roce=qos(3) + qos(netdev="eth2")))),
    passes("rdma.pfc", "PFC is on for priority 3", bond(node(roce=qos(3) + qos(3, netdev="eth2"))), TC),
    skips("rdma.pfc", "nothing shows PFC of mlx5_0:1 (eth2)", bond(node(roce=LOSSLESS)), TC),
    passes("rdma.pfc", "PFC is off; ECN slows senders down", node(roce=qos()), TC),
    skips("rdma.pfc", "PFC is off, and nothing shows ECN", node(roce=qos(ecn="")), TC),
    warns("rdma.pfc", "PFC is off, and ECN is off, too", node(roce=qos())),  # not for priority 0
    skips("rdma.pfc", "nothing shows PFC of mlx5_0:1 (eth1): needs dcb", node(roce="trust eth1 dscp\n")),
    skips("rdma.pfc", "nothing shows PFC", node(roce='pfc eth1 {"prio_pfc":[true]}\npfc eth1 [\napp eth1 []\n')),
    skips("rdma.pfc", "virtual or software", node()),
    is_unknown("rdma.pfc", "dcb gave no answer", node(roce=LOSSLESS, rc=124)),
    is_unknown("rdma.pfc", "not checked", UNASKED),
    passes("rdma.trust", "trust mode dscp", node(roce=LOSSLESS)),
    passes("rdma.trust", "trust mode dscp", node(roce=f"trust eth1 dscp\n{qos(3, app='{}')}")),
    passes("rdma.trust", "trust mode pcp", vlan(node(roce=qos(3, app="{}")))),
    warns("rdma.trust", "without a VLAN have no priority in it: mlx5_0:1 (eth1)", node(roce=qos(3, app="{}"))),
    skips("rdma.trust", "PFC is off", node(roce=qos(app="{}"))),
    skips("rdma.trust", "nothing shows the trust mode", node(roce=f"pfc eth1 {pfc(3)}\n")),
    # Broadcom's bnxt_re takes the priority from the UDP port, Intel's irdma from the TOS into VLAN 0.
    skips("rdma.trust", "nothing shows the trust mode", node(roce=BY_PORT, driver="bnxt_en")),
    skips("rdma.trust", "nothing shows the trust mode", node(roce=qos(3, app="{}"), driver="ice")),
    is_unknown("rdma.trust", "not checked", UNASKED),
    passes("rdma.ecn", "ECN is on: mlx5_0:1 (eth1)", node(roce=LOSSLESS), TC),
    warns("rdma.ecn", "ECN is off for priority 0, which NCCL's packets have: mlx5_0:1 (eth1)", node(roce=LOSSLESS)),
    warns("rdma.ecn", "ECN is off for any priority", node(roce="ecn eth1 np 3 1\necn eth1 rp 3 0\n")),
    skips("rdma.ecn", "nothing shows ECN of mlx5_0:1 (eth1)", node(roce=qos(3, ecn="")), TC),
    is_unknown("rdma.ecn", "not checked", UNASKED),
]  # fmt: skip
test_verdict = held(VERDICTS)

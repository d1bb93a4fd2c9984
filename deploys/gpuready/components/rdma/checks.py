"""Checks of RDMA: the running mode, conflicts about it, the ports, and access to GPU memory.

They assume no device names: rdma-core renames devices (rocep193s0f0), and clouds have their own names.
Sources: the kernel's sysfs-class-infiniband; READMEs of rdma-cni and k8s-rdma-shared-dev-plugin; Intel's irdma README
and the ice driver's devlink parameters; NCCL's gdr.cc; the NVIDIA driver's README on dma-buf; openucx/ucx#9736 (RC of
UCX needs SRQs, UD on an E810 ends with a timeout, 2024-03), #11933 (RC without SRQs, still open in 2026-09) and
src/uct/ib/base/ib_device.c (a newer UCX leaves such a device out).
Looked up on 2026-11-24.
"""

import re

from gpuready.base.versions import leading
from gpuready.components.rdma.component import managed, running
from gpuready.components.rdma.conf import OPERATOR, by_files, by_next_boot, settings
from gpuready.components.rdma.state import CONF
from gpuready.contract import need
from gpuready.contract.check import Check, Level, Verdict, fail, has_gpu, passed, skip, unknown, warn
from gpuready.contract.question import Question
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network.ports import Port, ports

_MOVE = "gpuready rdma attach, or by hand: rdma dev set DEVICE netns NAME (ip netns), for each new container"


def _netns(spec: NodeSpec, state: NodeState) -> Verdict:
    now, wanted = running(state), managed(spec, state)
    if now is None:
        said = by_files(state)
        if "ib_core_loaded" in state.marks:
            return skip("ib_core of this kernel does not support netns_mode")
        return skip(f"ib_core is not loaded; it will be {said}" if wanted else "ib_core is not loaded")
    evidence = f"boot {state.boot_id}: ib_core.netns_mode={state.ib_netns_mode}; modprobe.d says {by_files(state)}"
    if wanted and now != wanted:
        holders = f"; network namespaces: {', '.join(state.netns)}" if state.netns else ""
        return fail(f"mode is {now}, expected {wanted}", evidence=evidence + holders)
    if now == "exclusive" and not wanted and state.rdma and state.netns:
        told = "mode is exclusive, but the spec does not ask for it: containers see no RDMA device"
        return warn(told, _MOVE, evidence)
    return passed(f"mode is {now}", evidence)


def _conflict(spec: NodeSpec, state: NodeState) -> Verdict:
    now, wanted, marks = running(state), spec.rdma.netns_mode, set(state.marks)
    said = {s.path: s.mode or "a value that the kernel refuses" for s in settings(state)}
    told = "; ".join(f"{path}: {mode}" for path, mode in said.items())
    if now == "exclusive" and "rdma_shared_plugin" in marks:
        told = "k8s-rdma-shared-dev-plugin runs here, but does not work in exclusive mode"
        return fail(told, "rdma: {netns_mode: shared}")
    if now == "shared" and "rdma_cni" in marks:
        return fail("rdma-cni is installed, but cannot start a pod in shared mode", "rdma: {netns_mode: exclusive}")
    if OPERATOR in state.files and wanted not in ("unmanaged", said.get(OPERATOR, wanted)):
        return fail(f"the SR-IOV network operator sets {said[OPERATOR]}, but the spec says {wanted}", evidence=told)
    if len({mode for path, mode in said.items() if not path.startswith("/usr/lib/") or path == CONF}) > 1:
        return fail("files of modprobe.d disagree on ib_core's netns_mode", evidence=told)
    line = by_next_boot(state)
    if line and said and line != by_files(state):
        return fail(f"the kernel command line says {line}, but modprobe.d says {by_files(state)}", evidence=told)
    return passed("all sources agree on netns_mode", told) if said or line else skip("nothing sets netns_mode")


def _ports(spec: NodeSpec, state: NodeState) -> Verdict:
    want, least = spec.hardware.rdma.ports, spec.hardware.rdma.gbps
    if state.rdma_stuck:
        return unknown(f"the RDMA devices could not be read: {state.rdma_stuck}")
    if want is None and least is None:
        return skip("hardware.rdma is not set")
    found = ports(state)
    active = [port for port in found if port.state == "ACTIVE"]
    evidence = ", ".join(f"{p.name} {p.state}, {_rate(p)}" for p in found)
    if want is not None and len(active) != want:
        hidden = " (exclusive mode: ports in containers are not counted)"
        note = hidden if running(state) == "exclusive" else ""
        return fail(f"{len(active)} of {want} RDMA ports are active{note}", evidence=evidence)
    if least is not None and want is None and not active:
        return fail(f"no RDMA port is active; expected {least} Gbit/s", evidence=evidence)
    if least is not None:
        if slow := [port for port in active if (_gbps(port) or least) < least]:
            return fail(
                f"{', '.join(f'{p.name}: {_rate(p)}' for p in slow)}; expected {least} Gbit/s", evidence=evidence
            )
        if blind := [port.name for port in active if _gbps(port) is None]:
            return unknown(f"{', '.join(blind)}: its network device reports no speed")
    return passed(f"active RDMA ports: {len(active)}", evidence)


def _gbps(port: Port) -> float | None:
    """Return the speed. On Ethernet, RDMA's own figure is the driver's guess, so the network device's figure counts."""
    return port.rate_gbps if port.transport == "InfiniBand" else port.line_gbps


def _rate(port: Port) -> str:
    known = _gbps(port)
    return "of unknown speed" if known is None else f"{known:g} Gbit/s"


def _iwarp(spec: NodeSpec, state: NodeState) -> Verdict:
    found = ports(state)
    if not found:
        return skip("no RDMA port on this node")
    iwarp = sorted({port.device for port in found if port.transport == "iWARP"})
    if not iwarp:
        return passed(f"no device speaks iWARP: {', '.join(sorted({port.device for port in found}))}")
    fix = (
        "devlink dev param set pci/ADDRESS name enable_roce value true cmode driverinit; devlink dev reload pci/ADDRESS"
    )
    if "irdma_roce_ena" in state.marks:  # Intel's own driver; that of the kernel has no such parameter
        fix = "options irdma roce_ena=1 in /etc/modprobe.d, rebuild the initramfs, reboot"
    told = f"{', '.join(iwarp)}: iWARP, which NCCL cannot use"
    return fail(told, fix) if spec.hardware.rdma.ports is not None else warn(told, fix)


def _gdr(spec: NodeSpec, state: NodeState) -> Verdict:
    if not ports(state):
        return skip("no RDMA port on this node")
    if not has_gpu(state) or not state.driver.loaded:
        return skip("no NVIDIA driver is loaded")
    if "peermem" in state.marks:
        return passed("nvidia_peermem is loaded")
    kernel = leading(state.kernel, 2)
    if state.driver.open_module and kernel >= (5, 12):
        return passed(f"dma-buf: the open kernel module on Linux {'.'.join(map(str, kernel))}")
    old = f"Linux {state.kernel} is too old"
    why = old if state.driver.open_module else "the driver's module is not the open one"
    return warn(f"NICs cannot reach GPU memory: no nvidia_peermem, and no dma-buf ({why})",
                "install the open kernel modules; with DOCA-OFED's ib_core: modprobe nvidia_peermem")  # fmt: skip


def _srq(spec: NodeSpec, state: NodeState) -> Verdict:
    if not ports(state):
        return skip("no RDMA port on this node")
    if "done" in state.active and "verbs" not in state.active:
        return skip("ibv_devinfo is not installed (package ibverbs-utils or libibverbs-utils), and sysfs does not say")
    answer = need.answer(state, "verbs")
    if answer.rc:
        return unknown(f"ibv_devinfo exits with {answer.rc}: {(answer.out.strip().splitlines() or ['no message'])[-1]}")
    found = [_VERBS.search(part) for part in answer.out.split("hca_id:")[1:]]
    queues = {m[1]: int(m[2]) for m in found if m}
    if not queues:
        return skip("no device on this node speaks InfiniBand or RoCE")
    if without := sorted(device for device, most in queues.items() if not most):
        return warn(f"{', '.join(without)}: no shared receive queues (max_srq is 0), which UCX needs for RDMA")
    return passed(f"shared receive queues: {', '.join(f'{device} {most}' for device, most in queues.items())}")


#: A device's name and max_srq in ibv_devinfo -v. Other transports are iWARP and EFA, where UCX needs no such queue.
_VERBS = re.compile(r"\A[ \t]*(\S{1,64})\n\s*transport:\s*InfiniBand\b[^\0]*?^\s*max_srq:\s*(\d{1,12})$", re.M)


class AskVerbs(Question, template="rdma/ask-verbs"):
    """Ask the RDMA devices what they can do."""


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    return (AskVerbs({"verbs": 20}),)


CHECKS = (
    Check(
        "rdma.netns",
        "the RDMA namespace mode is as the spec says",
        Level.effective,
        "In exclusive mode, an RDMA device belongs to one network namespace, at first the host's. A container sees no "
        "device (/sys/class/infiniband is empty, NCCL logs NET/Socket) until one is moved to it. In shared mode, every "
        "container sees every device, and no device can be moved (rdma dev set: Operation not supported). The running "
        "mode changes only by a reboot, or while no network namespace but the host's exists (else EBUSY).",
        "cat /sys/module/ib_core/parameters/netns_mode (Y is shared); modprobe -c | grep ib_core; lsns -t net",
        f"gpuready apply, with maintenance: {{reboot: idle}} and --allow-disruption reboot; in exclusive mode: {_MOVE}",
        _netns,
        component="rdma",
    ),
    Check(
        "rdma.conflict",
        "no two parties want different modes",
        Level.config,
        "Two settings contradict each other. rdma-cni needs exclusive mode, k8s-rdma-shared-dev-plugin needs shared "
        "mode. In modprobe.d, the file whose name sorts last takes effect. The kernel command line overrides all "
        "files.",
        "grep -rs netns_mode /etc/modprobe.d /run/modprobe.d /usr/lib/modprobe.d /proc/cmdline; ls /opt/cni/bin",
        "choose one mode, and set netns_mode in one place only",
        _conflict,
        component="rdma",
    ),
    Check(
        "rdma.ports",
        "RDMA ports are up and fast enough",
        Level.effective,
        "If a port is down, NCCL does not use its NIC. If a port is slow, it slows the whole job.",
        "rdma link show; grep -H . /sys/class/infiniband/*/ports/*/state /sys/class/infiniband/*/device/net/*/speed",
        "check cable, transceiver, switch port and dmesg; or correct hardware.rdma in the spec",
        _ports,
        component="rdma",
    ),
    Check(
        "rdma.iwarp",
        "no device speaks iWARP instead of RoCE",
        Level.effective,
        "Intel's E810 and X722 can speak iWARP instead of RoCE v2; then there are no RoCE GIDs, and NCCL uses TCP.",
        "grep -H . /sys/class/infiniband/*/node_type (4: RNIC); ibv_devinfo | grep transport",
        "switch the device to RoCE v2",
        _iwarp,
        component="rdma",
    ),
    Check(
        "rdma.gdr",
        "GPUDirect RDMA is available",
        Level.effective,
        "Without GPUDirect RDMA, all data goes through host memory: NCCL's log has NET/IB without GDRDMA.",
        "head -n 1 /proc/driver/nvidia/version (Open Kernel Module or not); ls -d /sys/module/nvidia_peermem",
        "install the open kernel modules (dma-buf, Linux 5.12 or newer)",
        _gdr,
        component="rdma",
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "rdma.srq",
        "RDMA devices have the queues that UCX needs",
        Level.effective,
        "UCX needs a shared receive queue for its reliable RDMA transport. On a device that has none (Intel E810), MPI "
        "and NIXL over UCX fail: 'ibv_create_srq() failed: Operation not supported', 'Failed to create UCP worker'; "
        "a newer UCX leaves the device out and uses TCP. NCCL and perftest need no such queue.",
        "ibv_devinfo -v | grep -E 'hca_id|max_srq:'; ucx_info -d",
        "nothing for NCCL; for programs over UCX set UCX_TLS=^ib, which keeps UCX off RDMA, or name another RDMA "
        "device in UCX_NET_DEVICES; UCX_TLS=ud does not help on an E810 (it ends with a timeout)",
        _srq,
        component="rdma",
        active=True,
    ),
)

"""Parse the probe's records to a NodeState. Pure. For invalid input, it raises only ProbeError.

Formats: dpkg-query(1), systemctl(1) show, os-release(5).
"""

import functools
import re
import shlex
from collections.abc import Callable

from gpuready.base.records import ProbeError, Records
from gpuready.components.containerd.state import cri
from gpuready.components.crio.state import crio
from gpuready.components.docker.state import docker
from gpuready.components.driver.state import Module, boots
from gpuready.components.ldso.state import linker
from gpuready.components.wheels.state import on_record
from gpuready.model.kernel_log import kernel_log
from gpuready.model.leftovers import leftovers
from gpuready.model.network import network, rdma_files
from gpuready.model.readiness import not_yet
from gpuready.model.slurm import slurm_node
from gpuready.model.smi import lean
from gpuready.model.state import OS, Dma, Driver, NodeState, Package, Tool, Unit, Unknown

__all__ = ["ProbeError", "parse"]


def parse(lines: list[str], pause: Callable[[], None] = lambda: None) -> NodeState:
    """Parse one probe's output (its lines, without newlines). Raises :class:`ProbeError`.

    ``pause`` is called before each part of the answer, so that the caller can serve other hosts in between.
    """
    r = Records(lines, pause)
    if not r.text("values"):
        raise ProbeError("the node's answer holds nothing of the node")
    values = _pairs(r.text("values"))
    proc = _proc(r.text("proc"))
    links = dict(v.split(" ", 1) for v in values.get("link", []) if " " in v)
    linked = {path: r.files[path].model_copy(update={"realpath": links[path]}) for path in links if path in r.files}
    files = r.files | linked
    one = {key: found[-1] for key, found in values.items()}
    devices, modules = r.run("network"), r.run("modules")
    units = _units(r.run("units"), r.text("limits"))
    packages = _packages(r.run("dpkg") if r.run("dpkg") is not None else r.run("rpm"))
    next_boot = boots(values, *_output_of(modules), r.text("grub"))
    return NodeState(
        os=os_release(files["/etc/os-release"].text if "/etc/os-release" in files else ""),
        kernel=one.get("kernel", ""),
        machine=one.get("machine", ""),
        boot_id=proc.get("/proc/sys/kernel/random/boot_id", "").strip(),
        init=one.get("init", ""),
        systemd="systemd" in one,
        cmdline=proc.get("/proc/cmdline", "").strip(),
        clock=_int(one.get("clock")),
        uptime=_int(one.get("uptime", "").split(".")[0]),
        dockerd_command=tuple(values.get("dockerd", [])),
        cloud_init="none" if "cloud_init" not in one else "done" if "cloud_init_done" in one else "running",
        reboot_required="reboot_required" in one,
        have=tuple(values.get("have", [])),
        marks=tuple(sorted(set(one) & (MARKS | RDMA_MARKS | NVLINK_MARKS))),
        memlock=one.get("memlock", ""),
        capabilities="".join(re.findall(r"^[0-9a-f]+$", one.get("capabilities", ""))),
        files=files,
        not_files=tuple(values.get("notfile", [])),
        packages=packages,
        units=units,
        docker=docker(r) or not_yet(units, "docker.service"),
        containerd=r.run("containerd"),
        cri=cri(r),
        crio=crio(r),
        unloaded=tuple(dict.fromkeys(values.get("unloaded", []))),
        tools=_tools(r.run("versions")),
        driver=_driver(r, values, proc, packages, next_boot.module(one.get("kernel", ""))),
        dma=Dma(
            numa_nodes=len(values.get("numa", [])),
            numa_balancing=one.get("numa_balancing", ""),
            governors=tuple(dict.fromkeys(values.get("governor", []))),
            iommu=dict(v.split(" ", 1) for v in values.get("iommu", []) if " " in v),
        ),
        boots=next_boot,
        leftovers=leftovers(values, *_output_of(r.run("holders"))),
        linker=linker(r),
        rdma=rdma_files(ports) if isinstance(ports := r.run("ports"), str) else rdma_files(r.text("rdma")),
        rdma_stuck=ports.unknown if isinstance(ports, Unknown) else "",
        abandoned=r.abandoned(),
        network=network(devices) if isinstance(devices, str) else devices,
        slurm=slurm_node(found) if isinstance(found := r.run("slurm"), str) else found,
        nccl=tuple(r.text("nccl").splitlines()),
        ib_netns_mode=one.get("ib_netns_mode", ""),
        netns=tuple(values.get("netns", [])),
        initramfs=tuple(values.get("initramfs", [])),
        initramfs_old=tuple(values.get("initramfs_old", [])),
        boot_options=tuple(" ".join(re.findall(r"ib_core\.\S+", line)) for line in r.text("boot").splitlines()),
        mounts=tuple(r.text("mounts").splitlines()),
        cdi_missing=tuple(r.text("cdi").splitlines()),
        lock=one.get("lock", "")[:_OWNER],
        step=one.get("step.lock", "")[:_OWNER],
        wheels=on_record(wheels) if isinstance(wheels := r.run("wheels"), str) else wheels or {},
    )


#: Characters of the names in the node's locks.
_OWNER = 400

#: Marks that show who owns a part of the node.
MARKS = {
    "operator_toolkit", "operator_driver", "operator", "k3s", "rke2", "k0s", "microk8s", "dlami", "dlvm", "dgx",
    "docker_snap", "nvidia_installer", "oci_hook", "ostree", "rootless_docker", "rootless_podman",
}  # fmt: skip
#: Marks that show how RDMA is built on this node, and what else manages its mode.
RDMA_MARKS = {
    "ib_core_loaded", "ib_core_builtin", "irdma_roce_ena", "rdma_cni", "rdma_shared_plugin", "dranet", "efa", "peermem",
}  # fmt: skip
#: Marks of NVLink 5: ib_umad is loaded, Kubernetes' DRA driver starts IMEX, IMEX's first channel exists.
NVLINK_MARKS = {"ib_umad", "dra_imex", "imex_channel0"}


def _output_of(found: str | Unknown | None) -> tuple[str, str]:
    """Return a command's output, and why there is none."""
    return ("", found.unknown) if isinstance(found, Unknown) else (found or "", "")


def _pairs(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, eq, value = line.partition("=")
        if eq:
            found.setdefault(key, []).append(value)
    return found


def _proc(text: str) -> dict[str, str]:
    """Parse ``grep -H '' /proc/...``: several lines per file. A PCI address in a path has colons, so match the path."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        m = re.match(r"(/proc/driver/nvidia/gpus/[^/]*/information|/proc/[^:]*):(.*)", line)
        if m:
            found.setdefault(m[1], []).append(f"{m[2]}\n")
    return {path: "".join(lines) for path, lines in found.items()}


@functools.lru_cache(maxsize=64)  # most hosts of a fleet have the same
def os_release(text: str) -> OS:
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, eq, value = line.partition("=")
        if eq:
            try:
                values[key.strip()] = "".join(shlex.split(value)) if " " not in value else " ".join(shlex.split(value))
            except ValueError:
                continue
    return OS(
        id=values.get("ID", ""),
        id_like=tuple(values.get("ID_LIKE", "").split()),
        version_id=values.get("VERSION_ID", ""),
        name=values.get("PRETTY_NAME", ""),
    )


def _packages(text: str | Unknown | None) -> dict[str, Package] | Unknown:
    if text is None:
        return Unknown(unknown="neither dpkg nor rpm on this node")
    if isinstance(text, Unknown):
        return text
    found: dict[str, Package] = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) not in (4, 5, 6) or len(fields[3]) < 2 or fields[3][1] in "nc":
            continue
        name, arch, version, status, maker, told = (*fields, "", "")[:6]
        key = name if name not in found else f"{name}:{arch}"
        held, configured = status[0] == "h", status[1] == "i"
        found[key] = Package(
            version=version,
            arch=arch,
            held=held,
            configured=configured,
            maker=maker,
            transitional="transitional" in told.lower(),
        )
    return found


_LIMIT = re.compile(r"^/proc/(\d+)/limits:Max locked memory +(\S+)", re.M)


def _units(text: str | Unknown | None, limits: str) -> dict[str, Unit] | Unknown:
    if text is None:
        return {}
    if isinstance(text, Unknown):
        return text
    found: dict[str, Unit] = {}
    locked = dict(_LIMIT.findall(limits))
    for block in text.split("\n\n"):
        p = {key: v[-1] for key, v in _pairs(block).items()}
        if not p.get("Id") or p.get("LoadState") == "not-found":
            continue
        argv, ended, _ = p.get("ExecStart", "").partition("argv[]=")[2].partition(" ; ")
        found[p["Id"]] = Unit(
            load=p.get("LoadState", ""),
            active=p.get("ActiveState", ""),
            enabled=p.get("UnitFileState", ""),
            main_pid=_int(p.get("MainPID")),
            need_daemon_reload=p.get("NeedDaemonReload") == "yes",
            exec_start=tuple(argv.split()) if ended else (),
            started_us=_int(p.get("ActiveEnterTimestampMonotonic")),
            changed_us=_int(p.get("StateChangeTimestampMonotonic")),
            limit_memlock=p.get("LimitMEMLOCK", ""),
            process_memlock=locked.get(p.get("MainPID", ""), ""),
            kill_mode=p.get("KillMode", ""),
            starting=_int(p.get("Job")) > 0 and p.get("ActiveState") in ("inactive", "activating", "failed"),
            takes_along=tuple(f"{p.get('RequiredBy', '')} {p.get('BoundBy', '')} {p.get('ConsistsOf', '')}".split()),
        )
    return found


def _int(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else 0


def _tools(text: str | Unknown | None) -> dict[str, Tool] | Unknown:
    if text is None or isinstance(text, Unknown):
        return text if isinstance(text, Unknown) and "abandoned" in text.unknown else {}
    rows = (line.split("\t", 2) for line in text.splitlines())
    return {row[0]: Tool(path=row[1], version_line="".join(row[2:])) for row in rows if len(row) > 1}


_OF_GPU = re.compile(r"/proc/driver/nvidia/gpus/([^/]*)/information")
_EXCLUDED = re.compile(r"^GPU Excluded:\s*Yes", re.M)


def _driver(
    r: Records,
    values: dict[str, list[str]],
    proc: dict[str, str],
    packages: dict[str, Package] | Unknown,
    on_disk: Module | None,
) -> Driver:
    said = proc.get("/proc/driver/nvidia/version", "").partition("NVRM version:")[2].partition("\n")[0]
    version = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", said)
    smi, log = r.run("smi"), r.run("xids")
    return Driver(
        owner=_owner(values, packages, r.text("mounts")),
        module_version=values.get("module_version", [""])[-1].strip(),
        proc_version=version[1] if version else "",
        open_module="Open Kernel Module" in proc.get("/proc/driver/nvidia/version", ""),
        on_disk_version=on_disk.version if on_disk else "",
        nodes=tuple(values.get("dev", [])),
        gpus=tuple(values.get("gpu", [])),
        excluded=tuple(m[1] for path in proc if (m := _OF_GPU.fullmatch(path)) and _EXCLUDED.search(proc[path])),
        pci=tuple(line for line in r.text("pci").splitlines() if line),
        smi=lean(smi) if isinstance(smi, str) else smi,
        log=kernel_log(log) if isinstance(log, str) else log,
    )


_DRIVER_PACKAGE = re.compile(
    r"(nvidia-driver|nvidia-open|nvidia-kernel|nvidia-dkms|kmod-nvidia|libnvidia-compute|libcuda1)\b"
)


def _owner(values: dict[str, list[str]], packages: dict[str, Package] | Unknown, mounts: str) -> str:
    if "operator_driver" in values:
        return "operator"
    if not isinstance(packages, Unknown) and any(_DRIVER_PACKAGE.match(name) for name in packages):
        return "packages"
    if "nvidia_installer" in values:
        return "runfile"
    return "mount" if mounts.strip() else ""

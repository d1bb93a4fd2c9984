"""From the probe's records to a NodeState. Pure: text in, state out; no input makes it raise anything but ProbeError.

Formats: dpkg-query(1), systemctl(1) show, ldconfig(8) -p, ld.so(8) LD_TRACE_LOADED_OBJECTS, os-release(5),
``docker info`` and ``docker inspect`` as JSON.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import re
import shlex
import tarfile
from typing import Any

from gpuready.errors import GpureadyError
from gpuready.state.model import (
    OS,
    Container,
    Docker,
    Driver,
    File,
    Linker,
    NodeState,
    Package,
    Tool,
    Unit,
    Unknown,
)


class ProbeError(GpureadyError):
    """The probe's answer is incomplete or not what our script prints."""

    kind = "probe"
    exit_code = 4


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as e:
        raise ProbeError(f"the probe's output is damaged ({e})") from None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


class Records:
    """The probe's records by kind and name; ``run`` and ``stuck`` are looked up together."""

    def __init__(self, lines: list[str]) -> None:
        self.files: dict[str, File] = {}
        self.texts: dict[str, str] = {}
        self.runs: dict[str, tuple[int, str]] = {}
        self.stuck: dict[str, str] = {}
        for seen, line in enumerate(lines):
            word, *rest = line.split(" ")
            if word == "end":
                if rest != [str(seen)]:
                    raise ProbeError(f"the probe's output is cut: {seen} records of {' '.join(rest)}")
                return
            self._take(word, rest, line)
        raise ProbeError("the probe's output is cut: its end marker is missing")

    def _take(self, word: str, rest: list[str], line: str) -> None:
        if word == "tar" and len(rest) == 1:
            self._unpack(_decode(rest[0]))
        elif word == "run" and len(rest) == 3 and rest[1].isascii() and rest[1].isdigit():
            self.runs[rest[0]] = (int(rest[1][:4]), _text(_decode(rest[2])))
        elif word == "failed" and len(rest) == 1:
            raise ProbeError(_text(_decode(rest[0])).strip() or "the probe could not begin")
        else:
            raise ProbeError(f"the probe printed a line that is none of its own: {line[:80]!r}")

    def _unpack(self, data: bytes) -> None:
        own: dict[str, str] = {}
        for path, file in _untar(data).items():
            if path.startswith("/P/"):
                own[path[3:]] = file.text
            else:
                self.files[path] = file
        for key, text in own.items():
            name, _, kind = key.rpartition(".")
            if kind == "text":
                self.texts[name] = text
            elif kind == "stuck":
                self.stuck[name] = text
            elif kind == "rc" and text.strip().isdecimal():
                rc = int(text.strip()[:4])
                self.runs[name] = (rc, own.get(f"{name}.err" if rc else f"{name}.out", ""))

    def text(self, name: str) -> str:
        return self.texts.get(name, "")

    def run(self, name: str) -> str | Unknown | None:
        """A command's output, why it is unknown, or None where the probe had no reason to run it."""
        if name in self.stuck:
            pids = re.findall(r"^[^:\n]*:?Pid:\s*(\d+)", self.stuck[name], re.M)
            states = re.findall(r"State:\s*(\S)", self.stuck[name])
            who = ", ".join(f"pid {p} in state {s}" for p, s in zip(pids, states, strict=False)) or "no process left"
            return Unknown(unknown=f"{name}: no answer within the probe's limit, abandoned ({who})")
        if name not in self.runs:
            return None
        rc, text = self.runs[name]
        if rc:
            return Unknown(unknown=f"{name}: exit {rc}: {_first(text)}")
        return text


def _first(text: str) -> str:
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "no message")


def parse(lines: list[str]) -> NodeState:
    """Read one probe's output (its lines, without newlines); raises :class:`ProbeError`."""
    r = Records(lines)
    values = _pairs(r.text("values"))
    proc = _proc(r.text("proc"))
    links = dict(v.split(" ", 1) for v in values.get("link", []) if " " in v)
    files = {path: file.model_copy(update={"realpath": links.get(path, "")}) for path, file in r.files.items()}
    one = {key: found[-1] for key, found in values.items()}
    system = r.run("system")
    return NodeState(
        os=_os(files["/etc/os-release"].text if "/etc/os-release" in files else ""),
        kernel=one.get("kernel", ""),
        machine=one.get("machine", ""),
        boot_id=proc.get("/proc/sys/kernel/random/boot_id", "").strip(),
        init=one.get("init", ""),
        systemd="systemd" in one,
        system_state=_pairs(system).get("SystemState", [""])[0] if isinstance(system, str) else "",
        cmdline=proc.get("/proc/cmdline", "").strip(),
        clock=_int(one.get("clock")),
        uptime=_int(one.get("uptime", "").split(".")[0]),
        dockerd_command=tuple(values.get("dockerd", [])),
        cloud_init="none" if "cloud_init" not in one else "done" if "cloud_init_done" in one else "running",
        reboot_required="reboot_required" in one,
        have=tuple(values.get("have", [])),
        marks=tuple(sorted(set(one) & MARKS)),
        memlock=one.get("memlock", ""),
        files=files,
        not_files=tuple(values.get("notfile", [])),
        packages=_packages(r.run("dpkg") if r.run("dpkg") is not None else r.run("rpm")),
        units=_units(r.run("units")),
        docker=_docker(r),
        containerd=r.run("containerd"),
        tools=_tools(r.run("versions")),
        driver=_driver(r, values, proc),
        linker=_linker(r.run("ldcache"), r.text("libs"), r.run("loader")),
        rdma=_colons(r.text("rdma")),
        ib_netns_mode=one.get("ib_netns_mode", ""),
        mounts=tuple(r.text("mounts").splitlines()),
    )


MARKS = {
    "operator_toolkit",
    "operator_driver",
    "k3s",
    "rke2",
    "docker_snap",
    "nvidia_installer",
    "ostree",
}


def _pairs(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, eq, value = line.partition("=")
        if eq:
            found.setdefault(key, []).append(value)
    return found


def _colons(text: str) -> dict[str, str]:
    """``grep -H`` output; RDMA paths hold no colon."""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def _proc(text: str) -> dict[str, str]:
    """``grep -H '' /proc/...``: several lines a file; a PCI address in a path holds colons, so match the path."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        m = re.match(r"(/proc/driver/nvidia/gpus/[^/]*/information|/proc/[^:]*):(.*)", line)
        if m:
            found[m[1]] = found.get(m[1], "") + m[2] + "\n"
    return found


def _os(text: str) -> OS:
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
        codename=values.get("VERSION_CODENAME", ""),
        name=values.get("PRETTY_NAME", ""),
    )


def _untar(data: bytes) -> dict[str, File]:
    found: dict[str, File] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for member in tar:
                body = tar.extractfile(member) if member.isreg() else None
                if body is not None:
                    found["/" + member.name.lstrip("/")] = File(
                        text=_text(body.read()),
                        mode=member.mode & 0o7777,
                        uid=member.uid,
                        gid=member.gid,
                        mtime=int(member.mtime),
                    )
    except (tarfile.TarError, EOFError, ValueError, OSError, OverflowError) as e:
        raise ProbeError(f"the probe's files are damaged ({e})") from None
    return found


def _packages(text: str | Unknown | None) -> dict[str, Package] | Unknown:
    if text is None:
        return Unknown(unknown="neither dpkg nor rpm on this node")
    if isinstance(text, Unknown):
        return text
    found: dict[str, Package] = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 4 or len(fields[3]) < 2 or fields[3][1] in "nc":
            continue
        name, arch, version, status = fields
        key = name if name not in found else f"{name}:{arch}"
        found[key] = Package(version=version, arch=arch, held=status[0] == "h", configured=status[1] == "i")
    return found


_ARGV = re.compile(r"argv\[\]=(.*?) ; ")


def _units(text: str | Unknown | None) -> dict[str, Unit] | Unknown:
    if text is None:
        return {}
    if isinstance(text, Unknown):
        return text
    found: dict[str, Unit] = {}
    for block in text.split("\n\n"):
        p = {key: v[-1] for key, v in _pairs(block).items()}
        if not p.get("Id") or p.get("LoadState") == "not-found":
            continue
        argv = _ARGV.search(p.get("ExecStart", ""))
        found[p["Id"]] = Unit(
            load=p.get("LoadState", ""),
            active=p.get("ActiveState", ""),
            enabled=p.get("UnitFileState", ""),
            main_pid=_int(p.get("MainPID")),
            invocation=p.get("InvocationID", ""),
            need_daemon_reload=p.get("NeedDaemonReload") == "yes",
            exec_start=tuple(argv[1].split()) if argv else (),
            drop_ins=tuple(p.get("DropInPaths", "").split()),
            started_us=_int(p.get("ActiveEnterTimestampMonotonic")),
            limit_memlock=p.get("LimitMEMLOCK", ""),
        )
    return found


def _int(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else 0


def _docker(r: Records) -> Docker | Unknown | None:
    answer = r.run("docker")
    if answer is None or isinstance(answer, Unknown):
        return answer
    info, *inspected = answer.splitlines() or [""]
    try:
        found = json.loads(info)
        rows = [json.loads(line) for line in inspected]
        return _docker_model(found, rows)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as e:
        return Unknown(unknown=f"docker: its answer is not understood ({type(e).__name__}: {str(e)[:120]})")


def _docker_model(info: dict[str, Any], rows: list[dict[str, Any]]) -> Docker:
    if info.get("ServerErrors"):
        raise ValueError("; ".join(info["ServerErrors"]))
    return Docker(
        version=info.get("ServerVersion") or "",
        runtimes={name: (r or {}).get("path") or "" for name, r in (info.get("Runtimes") or {}).items()},
        default_runtime=info.get("DefaultRuntime") or "",
        live_restore=bool(info.get("LiveRestoreEnabled")),
        swarm=(info.get("Swarm") or {}).get("LocalNodeState") not in (None, "", "inactive"),
        rootless=any("rootless" in o for o in info.get("SecurityOptions") or []),
        cgroup_driver=info.get("CgroupDriver") or "",
        cdi_spec_dirs=tuple(info.get("CDISpecDirs") or ()),
        root_dir=info.get("DockerRootDir") or "",
        images=int(info.get("Images") or 0),
        containers=tuple(_container(row) for row in rows),
    )


def _container(row: dict[str, Any]) -> Container:
    runtime = row.get("runtime") or ""
    devices = row.get("devices") or []
    gpu = runtime.startswith("nvidia") or any(
        "gpu" in (c for caps in d.get("Capabilities") or [] for c in caps) or d.get("Driver") in ("nvidia", "cdi")
        for d in devices
    )
    return Container(
        id=row["id"],
        name=(row.get("name") or "").lstrip("/"),
        image=row.get("image") or "",
        runtime=runtime,
        gpu=gpu,
        restart=row.get("restart") or "no",
        pid=int(row.get("pid") or 0),
    )


def _tools(text: str | Unknown | None) -> dict[str, Tool] | Unknown:
    if text is None or isinstance(text, Unknown):
        return text if isinstance(text, Unknown) and "abandoned" in text.unknown else {}
    rows = (line.split("\t", 2) for line in text.splitlines())
    return {row[0]: Tool(path=row[1], version_line=row[2]) for row in rows if len(row) == 3}


def _driver(r: Records, values: dict[str, list[str]], proc: dict[str, str]) -> Driver:
    version = re.search(r"NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", proc.get("/proc/driver/nvidia/version", ""))
    modinfo = r.run("modinfo")
    return Driver(
        module_version=values.get("module_version", [""])[-1].strip(),
        proc_version=version[1] if version else "",
        on_disk_version=modinfo.strip() if isinstance(modinfo, str) else "",
        nodes=tuple(values.get("dev", [])),
        gpus=tuple(values.get("gpu", [])),
        pci=tuple(line for line in r.text("pci").splitlines() if line),
        smi=r.run("smi"),
        installer_log="nvidia_installer" in values,
    )


_CACHED = re.compile(r"^\s+(\S+) \(([^)]*)\) => (.+)$", re.M)


def _linker(cache: str | Unknown | None, libs: str, loader: str | Unknown | None) -> Linker | Unknown:
    if cache is None or isinstance(cache, Unknown):
        return cache or Unknown(unknown="no /sbin/ldconfig on this node")
    found: dict[str, list[str]] = {}
    for soname, flags, path in _CACHED.findall(cache):
        # Only libcuda and NVML matter; the 32-bit libraries of the same name would be false friends.
        if soname.startswith(("libcuda.so", "libnvidia-ml.so")) and ("x86-64" in flags or "AArch64" in flags):
            found.setdefault(soname, []).append(path)
    traced = re.search(r"libcuda\.so\.1 => (\S+)", loader) if isinstance(loader, str) else None
    rows = (line.split("\t", 1) for line in libs.splitlines())
    return Linker(
        cache={k: tuple(v) for k, v in found.items()},
        libs={row[0]: row[1] for row in rows if len(row) == 2},
        loader=traced[1] if traced else "",
    )

"""Answers of the probe, made from outputs: recorded ones (data/h200) and hand-made ones of the documented form."""

import base64
import io
import json
import tarfile
from pathlib import Path

from gpuready.model.parse import parse
from gpuready.model.state import NodeState

DATA = Path(__file__).parents[1] / "data"
H200 = DATA / "h200"
DRIVER = "580.159.04"


def recorded(name: str) -> str:
    """A recorded output."""
    return (H200 / name).read_text(encoding="utf-8")


def tar(files: dict[str, str | bytes], *, mode: int = 0o644, mtime: int = 1_700_000_000) -> bytes:
    """A tar as GNU tar writes one with -C /: names without their leading slash."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in files.items():
            data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
            member = tarfile.TarInfo(name.lstrip("/"))
            member.size, member.mode, member.mtime = len(data), mode, mtime
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def lines(
    files: dict[str, str | bytes] | None = None,
    texts: dict[str, str] | None = None,
    outs: dict[str, str] | None = None,
    failed: dict[str, tuple[int, str]] | None = None,
    stuck: dict[str, str] | None = None,
) -> list[str]:
    """The lines of an answer, as ``read`` takes them: files, collected texts, outputs, failures (rc, stderr)."""
    members: dict[str, str | bytes] = dict(files or {})
    for name, text in {"values": "kernel=6.1.0\n", **(texts or {})}.items():
        members[f"P/{name}.text"] = text
    for name, text in (outs or {}).items():
        members |= {f"P/{name}.out": text, f"P/{name}.err": "", f"P/{name}.rc": "0\n"}
    for name, (rc, text) in (failed or {}).items():
        members |= {f"P/{name}.out": "", f"P/{name}.err": text, f"P/{name}.rc": f"{rc}\n"}
    for name, text in (stuck or {}).items():
        members[f"P/{name}.stuck"] = text
    return [f"tar {base64.b64encode(tar(members)).decode()}", "end 1"]


LIB64 = "/usr/local/nvidia/lib64"
_NAMES = [f"lib{lib}.so{end}" for lib in ("cuda", "nvidia-ml") for end in ("", ".1", f".{DRIVER}")]
H200_LIBS = {
    f"{d}/{n}": f"{LIB64}/{n.split('.so')[0]}.so.{DRIVER}" for d in (LIB64, "/usr/local/nvidia/lib") for n in _NAMES
}
H200_LIBS |= {f"/lib/{name}": f"{LIB64}/{name.split('.so')[0]}.so.{DRIVER}" for name in _NAMES if DRIVER not in name}


def h200_lines(pci: str = "0000:00:06.0 0x030200 0x2335\n", smi: str = "") -> list[str]:
    """One NVIDIA H200, driver 580.159.04, Ubuntu 24.04: recorded outputs; PCI and loader in the documented form.

    ``pci``, ``smi``: what the node prints instead.
    """
    version = recorded("proc-driver-nvidia-version.txt").splitlines()
    information = recorded("proc-driver-nvidia-gpus-information.txt").splitlines()
    proc = [f"/proc/driver/nvidia/version:{line}" for line in version]
    proc += [f"/proc/driver/nvidia/gpus/0000:00:06.0/information:{line}" for line in information]
    conf = "/etc/ld.so.conf.d"
    return lines(
        files={
            "/etc/os-release": recorded("etc-os-release.txt"),
            "/etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n\n",
            f"{conf}/000_cuda.conf": "/usr/local/cuda/targets/x86_64-linux/lib\n",
            f"{conf}/nvidia-driver-dirs.conf": "/usr/local/nvidia/lib64\n/usr/local/nvidia/lib\n",
            f"{conf}/libc.conf": "# libc default configuration\n/usr/local/lib\n",
            f"{conf}/nvidia.conf": "/usr/local/cuda/lib64\n",
        },
        texts={
            "values": "kernel=6.12.0\nmachine=x86_64\nclock=1795223688\nuptime=1234.56\ninit=sh\nhave=apt-get\n"
            "have=gpg\nhave=nvidia-smi\ndev=/dev/nvidia0\ndev=/dev/nvidiactl\ndev=/dev/nvidia-uvm\ngpu=0000:00:06.0\n"
            f"module_version={DRIVER}\nmemlock=unlimited\n",
            "proc": "\n".join(proc) + "\n",
            "pci": pci,
            "libs": "".join(f"{path}\t{real}\n" for path, real in H200_LIBS.items()),
        },
        outs={
            "smi": smi or recorded("nvidia-smi-q-x.xml"),
            "ldcache": recorded("ldconfig-p-cuda-nvidia.txt"),
            "loader": "\tlinux-vdso.so.1 (0x00007f3b78e27000)\n"
            f"\tlibcuda.so.1 => {LIB64}/libcuda.so.1 (0x00007f3b70000000)\n"
            "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f3b78c15000)\n",
            "dpkg": "libcudart13\tamd64\t13.0\tii \ncuda-compat-13-0\tamd64\t580.95.05-0ubuntu1\tii \n",
            "versions": "",
        },
    )


def h200() -> NodeState:
    """The state of that machine."""
    return parse(h200_lines())


def docker_info(name: str) -> str:
    """``docker info --format '{{json .}}'`` on one line."""
    return json.dumps(json.loads((DATA / "docker" / f"{name}.json").read_text(encoding="utf-8")))

"""The host that the lab runs on: may it run here, what must be installed, which archive its own apt uses.

The archive is read from the host's sources, because a test machine should download from where the host does
and because no mirror's name belongs into this project. What is installed is only what is missing.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGES = (
    "systemd-container",
    "mmdebstrap",
    "iproute2",
    "iptables",
    "openssh-client",
    "gnupg",
    "apt-utils",
    "debhelper",
    "gcc",
    "libc6-dev",
)
# Installed together with the others, never alone: an old release of it lacks the key of a newer Debian.
KEYRING = "debian-archive-keyring"
#: Workers of the tests install one after another, as apt waits for nobody.
_INSTALLING = "/run/gpuready-tests-apt.lock"


class LabError(RuntimeError):
    """A test machine, or something it is made of, could not be had."""


def sh(
    *argv: str | Path,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> str:
    """Run a command of the host and return its stdout; LabError with the end of its output when it fails."""
    words = [str(word) for word in argv]
    done = subprocess.run(
        words,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
        cwd=cwd,
        timeout=timeout,
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
        raise LabError(f"{' '.join(words)[:300]}: exit {done.returncode}\n{tail}")
    return done.stdout


def cache_root() -> Path:
    """Where built things are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(base) / "gpuready-lab"


def run_root() -> Path:
    """Where running machines live. Not /run: a machine's disk can be large, and /run is memory."""
    return Path("/var/tmp/gpuready-lab")


def unavailable() -> str | None:
    """None where the lab can run, else one line that says why not."""
    if not sys.platform.startswith("linux"):
        return f"test machines need Linux, this is {sys.platform}"
    if os.geteuid() != 0:
        return "test machines need root (namespaces and mounts)"
    if shutil.which("apt-get") is None or shutil.which("dpkg-query") is None:
        return "test machines need a host with apt (Debian or Ubuntu)"
    probes = {
        "network namespaces": "exec unshare --net true",
        f"overlay mounts over {run_root()} (a directory on a plain file system)": "cd {dir} && mkdir l u w m && "
        "exec unshare --mount mount -t overlay -o lowerdir=l,upperdir=u,workdir=w overlay m",
    }
    run_root().mkdir(parents=True, exist_ok=True)
    for what, script in probes.items():
        with tempfile.TemporaryDirectory(prefix=".probe-", dir=run_root()) as scratch:
            done = subprocess.run(["sh", "-c", script.format(dir=scratch)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            why = (done.stderr.strip() or f"exit {done.returncode}").splitlines()[0]
            return f"test machines need {what}, which this host refuses: {why}"
    return None


def no_vms() -> str | None:
    """None where virtual machines can run, too (if only slowly), else one line that says why not."""
    if architecture() != "amd64":
        return f"virtual machines are amd64, this host is {architecture()}"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "virtual machines need /dev/net/tun, which this host does not have"
    return None


def missing(packages: tuple[str, ...]) -> list[str]:
    """Those of the packages that dpkg does not have installed."""
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages],
        capture_output=True,
        text=True,
        check=False,
    )
    present = {
        name for name, _, status in (row.partition(" ") for row in done.stdout.splitlines()) if status == "installed"
    }
    return [name for name in packages if name not in present]


def ensure_packages(packages: tuple[str, ...] = PACKAGES) -> list[str]:
    """Install what is missing of the packages, and return what that was."""
    wanted = missing(packages)
    if wanted:
        quiet = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1"}
        alone = ("flock", _INSTALLING, "apt-get", "-q", "-o", "Acquire::Retries=5")
        sh(*alone, "update", env=quiet)
        sh(*alone, "-y", "install", "--no-install-recommends", KEYRING, *wanted, env=quiet)
    return wanted


def command(name: str, package: str) -> str:
    """Where a command is, for root or not; its package is installed where it is not there and that is possible."""
    places = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    if shutil.which(name, path=places) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"installing {package}", file=sys.stderr)
        ensure_packages((package,))
    found = shutil.which(name, path=places)
    if found is None:
        raise LabError(f"{name} is not on this machine; install {package}")
    return found


def compilers() -> None:
    """Have what builds the program that calls cuInit, for both machines."""
    for machine in ("x86_64", "aarch64"):
        command(f"{machine}-linux-gnu-gcc", f"gcc-{machine.replace('_', '-')}-linux-gnu")


def architecture() -> str:
    """The architecture by its Debian name."""
    return sh("dpkg", "--print-architecture").strip()


def archives() -> tuple[str, str | None] | None:
    """(archive, security archive) of the host's own apt; None on a host that is not Debian.

    GPUREADY_LAB_MIRROR replaces the first. With None, mmdebstrap falls back to the mirror that it knows itself.
    """
    override = os.environ.get("GPUREADY_LAB_MIRROR")
    release = platform.freedesktop_os_release()
    codename = release.get("VERSION_CODENAME", "")
    found = list(_sources()) if release.get("ID") == "debian" else []
    main = override or next((uri for uri, suite in found if suite == codename), None)
    if main is None:
        return None
    return main, next((uri for uri, suite in found if suite == f"{codename}-security"), None)


def _sources(etc: Path = Path("/etc/apt")) -> Iterator[tuple[str, str]]:
    """(URI, suite) of every binary source that apt is configured with, in both of its formats."""
    for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list"))]:
        text = path.read_text("utf-8", "replace") if path.is_file() else ""
        for match in re.finditer(r"^deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)", text, re.MULTILINE):
            yield from ((uri, match[2]) for uri in _uris(match[1]))
    for path in sorted((etc / "sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text("utf-8", "replace")):
            rows = (row.partition(":") for row in stanza.splitlines() if not row.startswith("#"))
            field = {key.lower(): value.split() for key, sep, value in rows if sep}
            if "deb" in field.get("types", []) and field.get("enabled") != ["no"]:
                for word in field.get("uris", []):
                    for uri in _uris(word):
                        yield from ((uri, suite.rstrip("/")) for suite in field.get("suites", []))


def _uris(word: str) -> Iterator[str]:
    """A source's URI as it stands, or the first one of the mirror list that it names."""
    listed = re.fullmatch(r"mirror\+file:(?://)?(/.*)", word)
    if listed and Path(listed[1]).is_file():
        rows = Path(listed[1]).read_text("utf-8", "replace").splitlines()
        yield from [row.split()[0] for row in rows if row.strip() and not row.startswith("#")][:1]
    elif word.startswith(("http://", "https://")):
        yield word.rstrip("/")

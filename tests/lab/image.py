"""Root images of the test machines: a small Debian with what a GPU host has before anyone has prepared it.

There is no Python in it, because gpuready promises to need none. What only costs a test time (timers, gettys, mounts
of the host's kernel file systems) is masked, and so is systemd-networkd, which must never meet an interface here.
"""

import shutil
from pathlib import Path

from tests.lab import cache, host, rpm

SUITES = {"debian13": "trixie", "debian12": "bookworm", "rocky9": "trixie", "fedora43": "forky"}
#: With dnf 4 or 5 as the package manager, an RPM database and the name of Rocky or Fedora, but with Debian's programs;
#: see tests/lab/rpm.py. Of Debian's releases, only the next one has dnf 5.
DNF, DNF5 = "rocky9", "fedora43"
COMPONENTS = "main contrib non-free non-free-firmware"
# Its machines have none of Debian's package lists, as many an image that never ran `apt-get update`, the others' have
# all: apt goes through their 60 MB at every call, which is half of what a first apply costs a machine.
UNLISTED = "debian13"
DOCKER_IMAGE = "busybox:lab"  # what every machine's Docker has
PASSWORD = "lab"  # what sudo asks the user `pw` for

_COMMON = "apt ca-certificates containerd dbus docker.io iproute2 iptables kmod openssh-server procps sudo systemd-sysv"
# Debian 12's docker.io contains the client; in Debian 13 it is a package of its own.
_EXTRA = {
    "debian13": " docker-cli",
    "debian12": "",
    DNF: " docker-cli curl dnf dnf-plugins-core rpm",
    DNF5: " docker-cli curl dnf5 rpm",
}

_MASKED = (
    "systemd-networkd.service systemd-networkd.socket systemd-networkd-wait-online.service systemd-resolved.service "
    "systemd-timesyncd.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer "
    "e2scrub_all.timer e2scrub_reap.service systemd-pstore.service getty@tty1.service console-getty.service "
    "sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount dev-hugepages.mount dev-mqueue.mount "
    "systemd-modules-load.service systemd-journal-catalog-update.service systemd-hwdb-update.service"
)
# The last line tells systemd that /etc and /var are as new as /usr: else every boot would rebuild caches.
_CUSTOMISE = f"""
useradd -m -s /bin/bash -u 1000 gpu
useradd -m -s /bin/bash -u 1001 -G sudo pw
usermod -p '*' gpu
echo 'pw:{PASSWORD}' | chpasswd
echo 'gpu ALL=(ALL:ALL) NOPASSWD: ALL' > /etc/sudoers.d/gpu
chmod 440 /etc/sudoers.d/gpu
for unit in {_MASKED}; do ln -sf /dev/null /etc/systemd/system/$unit; done
rm -f /etc/ssh/ssh_host_* /etc/docker/key.json /etc/resolv.conf /etc/hostname
echo LANG=C.UTF-8 > /etc/default/locale
echo 'HostKey /etc/ssh/ssh_host_ed25519_key' > /etc/ssh/sshd_config.d/lab.conf
: > /etc/machine-id
ldconfig
apt-cache gencaches
touch /etc/.updated /var/.updated
"""
# What Debian adds to dnf goes, and so does its own package manager: as a program, its files stay.
_DNF = """
rpm -i /rocky-release.rpm
rm -f /rocky-release.rpm /etc/os-release /usr/bin/apt /usr/bin/apt-* /usr/bin/dpkg /usr/bin/dpkg-*
cat >/etc/os-release <<'END'
NAME="Rocky Linux"
VERSION="9.6 (Blue Onyx)"
ID="rocky"
ID_LIKE="rhel centos fedora"
VERSION_ID="9.6"
PLATFORM_ID="platform:el9"
PRETTY_NAME="Rocky Linux 9.6 (Blue Onyx)"
END
cd /usr/lib/python3/dist-packages/dnf-plugins
rm -f local.py leaves.py show_leaves.py system_upgrade.py debuginfo-install.py
mkdir -p /etc/yum.repos.d /etc/pki/rpm-gpg
"""
# rpm 6 refuses packages without a signature.
_DNF5 = """
rpm -i --nosignature /rocky-release.rpm
rm -f /rocky-release.rpm /etc/os-release /usr/bin/apt /usr/bin/apt-* /usr/bin/dpkg /usr/bin/dpkg-*
cat >/etc/os-release <<'END'
NAME="Fedora Linux"
VERSION="43 (Server Edition)"
ID=fedora
VERSION_ID=43
PLATFORM_ID="platform:f43"
PRETTY_NAME="Fedora Linux 43 (Server Edition)"
END
ln -s dnf5 /usr/bin/dnf
sed -i '0,/^enabled.*/s//enabled = 0/' /etc/dnf/libdnf5-plugins/local.conf
mkdir -p /etc/yum.repos.d /etc/pki/rpm-gpg
"""
_OTHERS = {DNF: _DNF, DNF5: _DNF5}


def root_image(distro: str) -> Path:
    """The cached root directory of a distribution."""
    sources = archive_lines(distro)
    options = _options(distro)
    recipe = {"options": options, "sources": sources, "customise": _CUSTOMISE, "architecture": host.architecture()}
    if distro in _OTHERS:
        recipe |= {"dnf": _OTHERS[distro], "release": rpm.release().name}

    def build(into: Path) -> None:
        root = into / "root"
        # In a mount namespace of its own: what mmdebstrap mounts must not outlive it, whatever ends it.
        host.sh(
            "unshare",
            "--mount",
            "mmdebstrap",
            *options,
            SUITES[distro],
            root,
            *(["-"] if sources else []),
            stdin=sources,
        )
        chroot = ("chroot", root, "sh", "-euc")
        host.sh(*chroot, _CUSTOMISE, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        if distro in _OTHERS:
            shutil.copyfile(rpm.release() / "rocky-release.rpm", root / "rocky-release.rpm")
            host.sh(*chroot, _OTHERS[distro], env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})

    return cache.cached(f"image-{distro}", recipe, build) / "root"


def _options(distro: str) -> list[str]:
    return [
        "--quiet",
        "--mode=root",
        "--variant=minbase",
        f"--components={COMPONENTS.replace(' ', ',')}",
        f"--include={(_COMMON + _EXTRA[distro]).replace(' ', ',')}",
        '--aptopt=Acquire::Languages "none"',
        "--skip=cleanup/apt/lists",  # a test that runs apt must not wait for 10 MB of package lists
    ]


def archive_lines(distro: str) -> str | None:
    """A sources.list for the distribution on the host's own mirror; None lets mmdebstrap take its default."""
    found = host.archives()
    if found is None:
        return None
    archive, security = found
    suite = SUITES[distro]
    options = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
    if distro == DNF5:  # the next release has no updates yet, and its signed list ends after a week, even on a mirror
        return f"deb [{options} check-valid-until=no] {archive} {suite} {COMPONENTS}\n"
    rows = [(archive, suite), (archive, f"{suite}-updates")]
    rows += [(security, f"{suite}-security")] if security else []
    return "".join(f"deb [{options}] {uri} {name} {COMPONENTS}\n" for uri, name in rows)

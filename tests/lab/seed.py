"""Docker data for machines to start from: an image `busybox:lab` with a shell, made without any registry.

It is made by the distribution's own Docker, in a machine of that distribution, because the layout on disk is Docker's
business. The busybox in it is the distribution's static one.
"""

from pathlib import Path

from tests.lab.host import sh
from tests.lab.image import DOCKER_IMAGE
from tests.lab.machine import Machine

# engine-id is what makes two Docker hosts distinct: each machine gets one of its own.
_SCRIPT = f"""
cd "$(mktemp -d)"
apt-get -q update >/dev/null
apt-get -q -o APT::Sandbox::User=root download busybox-static >/dev/null
dpkg-deb -x busybox-static_*.deb deb
mkdir -p image/bin image/proc image/tmp image/etc
cp "$(find deb -name busybox -type f -path '*bin*')" image/bin/busybox
for applet in $(image/bin/busybox --list | grep -v '^busybox$'); do ln -s busybox "image/bin/$applet"; done
tar -C image -c . | docker import --change 'CMD ["/bin/sh"]' - {DOCKER_IMAGE}
docker run --rm {DOCKER_IMAGE} true
systemctl stop docker.socket docker.service containerd.service
rm -f /var/lib/docker/engine-id
"""


def recipe(image: Path) -> dict[str, object]:
    """What a seed depends on: the root image, and what is done in it."""
    return {"image": image.parent.name, "script": _SCRIPT}


def fill(into: Path, machine: Machine) -> None:
    """Make the seed in a running machine that has none."""
    machine.run(f"set -eu\n{_SCRIPT}")
    machine.poweroff()
    for part in ("docker", "containerd"):
        sh("cp", "-a", machine.home / part, into / part)

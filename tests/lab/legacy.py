"""The packages that people installed before the container toolkit had four, as Debian stand-ins.

NVIDIA no longer serves them. What counts here are their relations, their conffiles and the places of their files, which
are those of the debian/ directories of NVIDIA/nvidia-docker and NVIDIA/nvidia-container-runtime (2.6.0 with 3.5.0 is
the last set with a package for each command, 2.13.0 with 3.13.0 the last that ships daemon.json). Their commands are
shell scripts that say what they are, or call runc.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab import cache, deb

DAEMON_JSON = '{\n    "runtimes": {\n        "nvidia": {\n            "path": "nvidia-container-runtime",\n'
DAEMON_JSON += '            "runtimeArgs": []\n        }\n    }\n}\n'
_DOCKER = "docker-ce (>= 18.06.0~ce~3-0~debian) | docker-ee (>= 18.06.0~ce~3-0~debian) | docker.io (>= 18.06.0)"
_HOOK = {"version": "1.0.0", "hook": {"path": "/usr/bin/nvidia-container-toolkit", "args": ["prestart"]}}
_COMMAND = "#!/bin/sh\n# Stand-in of gpuready's test machines for NVIDIA's command of this name.\n"


_CONTROL = """Package: {name}
Version: {version}
Architecture: all
Maintainer: gpuready lab <lab@localhost>
Section: utils
Priority: optional
{relations}Description: stand-in for the old package of this name
 Made for gpuready's test machines: relations and places of files are those of
 the package that it stands for, its commands are not.
"""


@dataclass(frozen=True)
class Old:
    """One package: its relations as lines of the control file, and its files (those below /etc are conffiles)."""

    version: str
    relations: str
    files: dict[str, str] = field(default_factory=dict)


_DOCKER2 = {"/etc/docker/daemon.json": DAEMON_JSON, "/usr/bin/nvidia-docker": f'{_COMMAND}exec docker "$@"\n'}
_BREAKS = "Breaks: nvidia-docker (<< 2.0.0)\nReplaces: nvidia-docker (<< 2.0.0)\n"
#: Year -> package -> what it is.
SETS: dict[str, dict[str, Old]] = {
    "2021": {
        "libnvidia-container1": Old("1.4.0-1", ""),
        "libnvidia-container-tools": Old("1.4.0-1", "Depends: libnvidia-container1 (>= 1.4.0-1)\n"),
        "nvidia-container-toolkit": Old(
            "1.5.1-1",
            "Depends: libnvidia-container-tools (>= 1.4.0-1), libnvidia-container-tools (<< 2.0.0)\n"
            "Breaks: nvidia-container-runtime (<< 2.0.0), nvidia-container-runtime-hook\n"
            "Replaces: nvidia-container-runtime (<< 2.0.0), nvidia-container-runtime-hook\n",
            {
                "/usr/bin/nvidia-container-toolkit": f"{_COMMAND}exit 0\n",
                "/etc/nvidia-container-runtime/config.toml": "disable-require = false\n\n[nvidia-container-cli]\n",
                "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json": json.dumps(_HOOK),
            },
        ),
        "nvidia-container-runtime": Old(
            "3.5.0-1",
            "Depends: nvidia-container-toolkit (>= 1.5.0), nvidia-container-toolkit (<< 2.0.0)\n",
            {"/usr/bin/nvidia-container-runtime": f'{_COMMAND}exec runc "$@"\n'},
        ),
        "nvidia-docker2": Old(
            "2.6.0-1", f"Depends: nvidia-container-runtime (>= 3.4.0), {_DOCKER}\n{_BREAKS}", _DOCKER2
        ),
    },
    "2023": {
        "nvidia-container-runtime": Old(
            "3.13.0-1", "Depends: nvidia-container-toolkit (>= 1.13.0-1), nvidia-container-toolkit (<< 2.0.0)\n"
        ),
        "nvidia-docker2": Old(
            "2.13.0-1", f"Depends: nvidia-container-toolkit (>= 1.13.0-1), {_DOCKER}\n{_BREAKS}", _DOCKER2
        ),
    },
    # Somebody's own, which needs nvidia-docker2 and would go with it.
    "own": {"site-gpu-tools": Old("1.0", "Depends: nvidia-docker2\n")},
}


def build(year: str) -> Path:
    """A cached directory with the .deb files of that set."""
    packages = {name: [old.version, old.relations, old.files] for name, old in SETS[year].items()}

    def fill(into: Path) -> None:
        for name, old in SETS[year].items():
            deb.build(into, _CONTROL.format(name=name, version=old.version, relations=old.relations), old.files)

    return cache.cached(f"legacy-{year}", {"packages": packages, "layout": 1}, fill)

"""From the packages of 2021 and 2023 to the four of today, on a Debian 12 that people have worked on."""

import json

import pytest

from gpuready.base.facts import KEPT
from gpuready.components.docker.component import CONFIG
from gpuready.components.legacy import component
from gpuready.components.toolkit.component import LEGACY
from gpuready.components.toolkit.state import PACKAGES
from tests.lab import Machine, legacy
from tests.system.faults import problem
from tests.system.host import Host, Hosts

LIST = "/etc/apt/sources.list.d/nvidia-docker.list"
LISTED = "deb https://nvidia.github.io/nvidia-docker/debian11/$(ARCH) /\n"
USERS = {
    "log-driver": "json-file",
    "log-opts": {"max-size": "10m"},
    "default-runtime": "nvidia",
    "runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime", "runtimeArgs": []}},
}
CONTAINERD = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]\n'
CONTAINERD += '  BinaryName = "/usr/bin/nvidia-container-runtime"\n'
CRIO = '[crio.runtime.runtimes.nvidia]\nruntime_path = "/usr/bin/nvidia-container-runtime"\n'


@pytest.fixture(scope="module")
def node(shared: Hosts) -> Host:
    """A Debian 12 with all that a GPU host of 2021 has, and a daemon.json that its user extended."""
    machine = shared("debian12")
    install(machine, "2021")
    install(machine, "own")
    write(machine, CONFIG, json.dumps(USERS))
    write(machine, LIST, LISTED)
    write(machine, component.CONTAINERD, CONTAINERD)
    write(machine, component.CRIO, CRIO)
    machine.run("systemctl restart docker && docker run --rm busybox:lab true")
    return machine


def write(machine: Machine, path: str, text: str) -> None:
    machine.run(f"mkdir -p {path.rpartition('/')[0]} && cat >{path}", stdin=text)


def install(machine: Machine, year: str) -> None:
    """Install a set with dpkg, which has no repository for it; an existing daemon.json stays."""
    machine.put(legacy.build(year), f"/root/{year}")
    machine.run(f"dpkg --force-confold --force-confdef -i /root/{year}/*.deb")


def states(machine: Machine, *names: str) -> dict[str, str]:
    """What dpkg says of packages: `ii`, `rc` (removed, its conffiles are there), or nothing."""
    rows = machine.run(
        f"dpkg-query -W -f '${{Package}} ${{db:Status-Abbrev}}\n' {' '.join(names)} 2>/dev/null", check=False
    )
    return {name: state for name, state in (row.split() for row in rows.stdout.splitlines()) if state != "un"}


def as_wanted(machine: Machine, version: str = "1.20.1-1") -> None:
    """The four at that version and held, the user's daemon.json, and containers under both runtimes."""
    assert states(machine, *PACKAGES) == dict.fromkeys(PACKAGES, "hi")
    assert set(machine.run(f"dpkg-query -W -f '${{Version}}\n' {' '.join(PACKAGES)}").stdout.split()) == {version}
    document = json.loads(machine.run(f"cat {CONFIG}").stdout)
    assert {key: document[key] for key in ("log-driver", "log-opts", "default-runtime")} == {
        key: USERS[key] for key in ("log-driver", "log-opts", "default-runtime")
    }
    assert document["runtimes"]["nvidia"]["path"] in ("nvidia-container-runtime", "/usr/bin/nvidia-container-runtime")
    assert machine.run("docker info -f '{{.DefaultRuntime}}'").stdout.strip() == "nvidia"
    for runtime in ("nvidia", "runc"):
        machine.run(f"docker run --rm --runtime={runtime} busybox:lab true")


def test_a_package_that_would_go_with_them_stops_it(node: Host) -> None:
    before = states(node, *LEGACY, *PACKAGES, "site-gpu-tools")
    result = node.apply(code=1)
    assert "apt would remove site-gpu-tools as well; nothing was changed" in problem(result)
    assert states(node, *LEGACY, *PACKAGES, "site-gpu-tools") == before
    node.run("dpkg --purge site-gpu-tools")


def test_from_2021_in_one_apply(node: Host) -> None:
    planned = node.plan()
    assert any("must not be purged" in note for note in planned.component("toolkit")["notes"]), planned.explain()
    assert planned.diff("toolkit")["toolkit.nvidia-docker2"] == ("2.6.0-1", None)
    result = node.mends()
    assert result.changed() >= {"toolkit", "legacy"}, result.explain()
    assert states(node, *LEGACY) == {"nvidia-docker2": "rc"}
    as_wanted(node)
    for path, text in ((component.CONTAINERD, CONTAINERD), (component.CRIO, CRIO), (LIST, LISTED)):
        assert node.run(f"test ! -e {path} && cat {KEPT}{path}.original").stdout == text


def test_from_2023_in_one_apply(node: Host) -> None:
    pins = " ".join(f"{name}=1.18.2-1" for name in PACKAGES)
    node.run(
        f"DEBIAN_FRONTEND=noninteractive apt-get install -qy --allow-downgrades --allow-change-held-packages {pins}"
    )
    install(node, "2023")
    assert states(node, *LEGACY) == {"nvidia-docker2": "ii", "nvidia-container-runtime": "ii"}
    result = node.mends()
    assert result.changed() == {"toolkit"}, result.explain()
    assert states(node, *LEGACY) == {"nvidia-docker2": "rc"}
    as_wanted(node)


def test_the_old_hook_goes_only_beside_cdi(node: Host) -> None:
    write(node, component.HOOK, '{"hook": {"path": "/usr/bin/nvidia-container-runtime-hook"}}')
    node.settled()
    write(node, "/etc/cdi/nvidia.yaml", "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: []\n")
    assert node.apply("--only", "legacy").changed() == {"legacy"}
    node.run(f"test ! -e {component.HOOK} && test -e {KEPT}{component.HOOK}.original")
    node.remove("--only", "legacy")
    node.run(f"test -e {component.HOOK} && test -e {component.CRIO} && test -e {component.CONTAINERD}")

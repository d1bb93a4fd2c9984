"""The driver's packages and the next boot, on a machine with Debian's real libcuda and unattended-upgrades.

Nothing here can load a module, and no kernel is booted: what the next boot would find are files (tests/lab/module.py).
"""

import pytest

from gpuready.components.driver.component import FILES, UNATTENDED
from tests.lab.module import install as install_module
from tests.lab.module import module
from tests.lab.upgrades import ORIGIN, offer
from tests.system.driver_node import asked, summary, waits_for_a_reboot
from tests.system.host import Host, Hosts

NEWER = "550.999.01-1"
NOW, NEXT = "6.12.48+deb13-amd64", "6.12.57+deb13-amd64"
PACKAGES = "libcuda1 unattended-upgrades initramfs-tools-core cpio"
ALLOWED = f"""
#clear Unattended-Upgrade::Origins-Pattern;
Unattended-Upgrade::Origins-Pattern {{ "origin={ORIGIN}"; }};
"""
SET = "dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' '*nvidia*' libcuda1 | grep ' 55[01][.]'"


@pytest.fixture(scope="module")
def node(shared: Hosts) -> Host:
    machine = shared()
    machine.install(PACKAGES)
    return machine


def upgrade(node: Host) -> str:
    return node.run("unattended-upgrade --debug 2>&1").stdout


def packages(node: Host) -> dict[str, tuple[str, str]]:
    rows = (row.split() for row in node.run(SET).stdout.splitlines())
    return {row[0]: (row[1], row[2]) for row in rows}


def upstream(found: dict[str, tuple[str, str]]) -> str:
    """The driver's version: Debian's package has whichever is its newest of branch 550."""
    return found["libcuda1"][0].partition("-")[0]


def test_the_next_boot_is_told_before_it_comes(node: Host) -> None:
    version = upstream(packages(node))
    ours = module(version=version, license="NVIDIA")
    install_module(node, NOW, nvidia_current=ours, nouveau=module(license="GPL"))
    install_module(node, NEXT, nouveau=module(license="GPL"))
    dkms = f"/var/lib/dkms/nvidia-current/{version}"
    log = f"DKMS (dkms-3.2.2) make.log for nvidia-current/{version} for kernel {NEXT} (x86_64)"
    error = f"{dkms}/build/nvidia/nv-pci.c:237:9: error: too few arguments"
    node.run(
        f"mkdir -p {dkms}/build; ln -s /usr/src {dkms}/source\nprintf '%s\\n' '{log}' '{error}' >{dkms}/build/make.log"
    )
    seen = asked(node, "observe")
    result = seen.verify("--passive", code=None)
    assert f"{NEXT} has no nvidia module" in summary(result, "driver.nextboot"), result.explain()
    check = result.check("driver.nextboot")
    assert check["evidence"] == "nvidia/nv-pci.c:237:9: error: too few arguments"
    assert f"dkms autoinstall -k {NEXT}" in check["remedy"]
    assert summary(result, "driver.owner") == "the driver came from packages of Debian"
    assert version in summary(result, "driver.packages")
    assert "unattended-upgrades may change the driver" in summary(result, "driver.held")

    # The initramfs was made with the module in it; then another one came, of another version.
    node.run(
        f"cd / && mkdir -p /tmp/x && find usr/lib/modules/{NOW} | cpio -o -H newc >/boot/initrd.img-{NEXT} 2>/dev/null"
    )
    node.run('until [ "$(date +%s)" -gt "$(stat -c %Z /boot/initrd.img-*)" ]; do sleep 0.1; done')
    install_module(node, NEXT, nvidia_current=module(version="535.247.01", license="NVIDIA"))
    result = seen.verify(code=None)
    assert "the next boot loads module 535.247.01" in summary(result, "driver.nextboot"), result.explain()
    install_module(node, NEXT, nvidia_current=ours)
    result = seen.verify(code=None)
    assert f"{NEXT} has nvidia {version}" in summary(result, "driver.nextboot"), result.explain()
    assert f"/boot/initrd.img-{NEXT} contains an older nvidia module" in summary(result, "driver.initramfs")
    node.run(f"echo x | cpio -o -H newc >/boot/initrd.img-{NEXT} </dev/null 2>/dev/null")
    assert "driver.initramfs" in seen.verify(code=None).checks("skip")


def test_unattended_upgrades_cannot_move_a_driver_that_is_held(node: Host) -> None:
    held, before = asked(node, "hold"), packages(node)
    assert {"libcuda1", "libnvidia-ptxjitcompiler1", "nvidia-alternative"} <= set(before), before
    node.run("apt-mark hold nvidia-alternative")  # somebody's own hold
    before = packages(node)
    node.run("rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*; rm -rf /var/lib/apt/lists/*")  # apt reads less
    offer(node, [(name, NEWER) for name in before])
    (node.root / "etc/apt/apt.conf.d/60lab").write_text(ALLOWED, "utf-8")
    held.apply("--only", "driver")
    assert {name: (version, "hi") for name, (version, _) in before.items()} == packages(node)
    said = upgrade(node)
    assert "libcuda1" in said and {v for v, _ in packages(node).values()} == {v for v, _ in before.values()}, said

    node.run("apt-mark unhold libcuda1")  # by mistake: the list of names still keeps it
    result = held.verify("--passive", code=None)
    assert result.diff("driver") == {"driver.libcuda1.held": (False, True)}
    assert "libcuda1 is not held" in summary(result, "driver.held")
    said = upgrade(node)
    assert "skipping blacklisted package libcuda1" in said
    assert packages(node)["libcuda1"][0] == before["libcuda1"][0], said
    assert held.apply("--only", "driver").changed() == {"driver"}
    assert held.apply("--only", "driver").changed() == set()

    held.remove("--only", "driver")
    assert packages(node) == before, "and somebody's own hold stays"
    assert node.run(f"test ! -e {UNATTENDED} && echo gone").stdout == "gone\n"
    said = upgrade(node)
    after = packages(node)
    assert after["libcuda1"] == (NEWER, "ii"), said
    assert after["nvidia-alternative"] == before["nvidia-alternative"]
    error = held.plan("--only", "driver", code=1).component("driver")["error"]
    assert f"different versions ({upstream(before)}, 550.999.01)" in error["message"]


def test_one_version_is_installed_in_one_transaction(node: Host) -> None:
    # What the test above left of Debian's goes; a libcuda of another version stays.
    gone = " ".join(set(packages(node)) - {"libcuda1"})
    node.run(f"dpkg --force-depends --purge {gone}; apt-mark hold libcuda1")
    before = packages(node)
    names = {*before, "libnvidia-ml1", "nvidia-smi", "nvidia-open-kernel-dkms"}
    version, newer = "551.10", "551.20-1"
    offer(node, [(name, each) for name in names for each in (f"{version}-1", newer)])

    wanted, auto, other = (
        asked(node, "install", version=number, flavor=flavor).only("driver")
        for number, flavor in ((version, "open"), (version, "auto"), ("580.95.05", "open"))
    )
    assert "there is no GPU to choose" in str(auto.plan(code=1).component("driver")["error"])
    wanted.fails(f"there is no linux-headers-{NEXT}")
    other.fails("driver 580.95.05 (open) is not available", "the repositories have 551.10, 551.20")
    node.run("touch /usr/bin/nvidia-uninstall; chmod 755 /usr/bin/nvidia-uninstall")
    wanted.fails("does not mix drivers: nvidia-uninstall")
    node.run("rm /usr/bin/nvidia-uninstall")
    assert packages(node) == before and not [f for f in FILES if (node.root / f[1:]).exists()]

    node.run(f"mkdir -p /lib/modules/{NEXT}/build; touch /lib/modules/{NEXT}/build/Makefile")
    node.run(f"rm /lib/modules/{NEXT}/updates/dkms/nvidia-current.ko")  # the closed one's package took it along
    install_module(node, NEXT, nvidia_current_open=module(version=version))
    planned = wanted.plan().diff("driver")
    wanted.apply()
    assert planned["driver.version"] == ("550.999.01", version) and planned["driver.module"] == (None, "open")
    assert packages(node) == dict.fromkeys(names, (f"{version}-1", "hi"))
    wanted.settled()
    said = node.run("apt-mark unhold nvidia-smi >/dev/null; apt-cache policy nvidia-smi").stdout
    assert f"Candidate: {version}-1" in said, "the pin alone keeps it"
    assert wanted.apply().changed() == {"driver"}

    # With a GPU the module counts, too; here none can be loaded, so that it takes a reboot, and knows so the next time.
    waits_for_a_reboot(node, wanted, auto)

    asked(node, "hold").remove("--only", "driver")
    assert {name: status for name, (_, status) in packages(node).items()} == {
        name: "hi" if name == "libcuda1" else "ii" for name in names
    }, "the driver stays, and so does somebody's hold"
    assert not [f for f in FILES if (node.root / f[1:]).exists()]

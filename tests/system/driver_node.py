"""What tests of the driver's packages share, whichever package manager installs them."""

from tests.system.harness import Result
from tests.system.host import Host

#: A host of which the spec says that it has no GPU is refused.
COMES_LATER: dict[str, object] = {
    "hardware": {"gpus": 1},
    "verify": {"waive": [{"check": "gpu.count", "reason": "no GPU in a test machine", "until": "2099-01-01"}]},
}
GPU = """
mount -t tmpfs none /sys/bus/pci/devices; mkdir /sys/bus/pci/devices/0000:00:06.0; cd /sys/bus/pci/devices/0000:00:06.0
echo 0x10de >vendor; echo 0x030200 >class; echo 0x2335 >device
"""


def asked(node: Host, policy: str, **driver: str) -> Host:
    """The node with a spec that says what becomes of the driver."""
    spec = COMES_LATER if policy == "install" else {}
    return node.with_spec(driver={"policy": policy, **driver}, ldso="off", **spec)


def summary(result: Result, check: str) -> str:
    """What a check says."""
    return str(result.check(check)["summary"])


def waits_for_a_reboot(node: Host, *wanted: Host) -> None:
    """With a GPU, the module counts, too: none can be loaded here, so it takes a reboot, and the next run knows it."""
    node.sh(GPU)
    first, *later = wanted
    assert "for a reboot: nvidia cannot be loaded" in first.apply(code=7).component("driver")["pending_reason"]
    for each in later:
        result = each.apply(code=7)
        assert result.component("driver")["disruption"] == "reboot", result.explain()
        assert "maintenance: {reboot: idle}" in result.component("driver")["pending_reason"]
    node.run("umount /sys/bus/pci/devices")

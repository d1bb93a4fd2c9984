"""needrestart, set to restart services by itself, does nothing of the kind during our package calls."""

from gpuready.model.spec import TOOLKIT_VERSION
from tests.lab import Machine
from tests.system.host import Hosts

#: A service whose library is replaced under it, which is what needrestart looks for.
VICTIM = """
printf '$nrconf{restart} = "a";\\n' >/etc/needrestart/conf.d/automatic.conf
cp -L /lib/*/libm.so.6 /usr/lib/libvictim.so
U=/etc/systemd/system/victim.service
printf '[Service]\\nEnvironment=LD_PRELOAD=/usr/lib/libvictim.so\\nExecStart=/bin/sleep infinity\\n' >$U
systemctl daemon-reload
systemctl start victim.service
until grep -q libvictim "/proc/$(systemctl show -p MainPID --value victim.service)/maps"; do sleep 0.1; done
cp -L /lib/*/libm.so.6 /usr/lib/libvictim.so.new
mv /usr/lib/libvictim.so.new /usr/lib/libvictim.so
"""


def services(machine: Machine) -> dict[str, str]:
    """Every service that runs, with the pid of its process."""
    running = "systemctl list-units -q --plain --no-legend --state=running -t service | cut -d' ' -f1"
    blocks = machine.run(f"systemctl show -p Id -p MainPID $({running})").stdout.strip().split("\n\n")
    rows = (dict(line.split("=", 1) for line in block.splitlines()) for block in blocks)
    return {row["Id"]: row["MainPID"] for row in rows}


def test_no_service_restarts(fresh: Hosts) -> None:
    node = fresh()
    node.install("needrestart")
    node.sh(VICTIM)
    before = services(node)
    assert {"victim.service", "docker.service", "ssh.service"} <= before.keys()

    result = node.apply()
    assert "toolkit" in result.changed(), result.explain()
    assert TOOLKIT_VERSION in node.run("nvidia-ctk --version").stdout
    after = services(node)
    assert {name: after.get(name) for name in before} == before

    # The same call without our care restarts it: there was something to keep quiet.
    node.run("DEBIAN_FRONTEND=noninteractive apt-get install -q -y --reinstall libnvidia-container1")
    assert services(node)["victim.service"] != before["victim.service"]

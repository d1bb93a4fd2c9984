"""DCGM from apt to a verdict, and back, on a machine where stand-ins bear the names of NVIDIA's packages.

They are no DCGM: ``dcgmi`` prints documents of the shape that DCGM 4 prints, ``nvidia-smi`` prints rows of two H200,
and the module is the lab's stand-in.
"""

import json

import pytest

from tests.components.dcgm.test_diag import CARDS, ECC, SECOND, UUIDS, discovery, four
from tests.components.dcgm.test_diag import test as tested
from tests.lab.module import load
from tests.lab.upgrades import offer
from tests.system.host import Host, Hosts

CORE, PLUGINS, CLOSED = (f"datacenter-gpu-manager-4-{name}" for name in ("core", "cuda12", "proprietary-cuda12"))
VERSION = "1:4.5.2-1"
DCGMI = """#!/bin/sh
systemctl -q is-active nvidia-dcgm || { echo 'Error: unable to establish a connection to the specified host'; exit 1; }
case $* in
  'discovery -l') cat /usr/share/dcgm/gpus ;;
  'diag -r 1 -j') cat /usr/share/dcgm/diag; exit 226 ;;
  *) exit 9 ;;
esac
"""
UNIT = """[Service]
ExecStart=/usr/bin/nv-hostengine -n
[Install]
WantedBy=multi-user.target
"""
XML = '<nvidia_smi_log><gpu id="0"><product_name>NVIDIA H200</product_name></gpu></nvidia_smi_log>'
SMI = f"#!/bin/sh\ncase $* in *compute-apps*) ;; '-q -x') echo '{XML}' ;; *) cat <<'END'\n{CARDS}END\n;; esac\n"
FAULT = {"error_category": 3, "error_id": 49, "error_severity": 2, "warning": ECC}
FILES = {
    CORE: {
        "/usr/bin/dcgmi": DCGMI,
        "/usr/bin/nv-hostengine": "#!/bin/sh\nexec sleep infinity\n",
        "/usr/lib/systemd/system/nvidia-dcgm.service": UNIT,
        "/usr/share/dcgm/gpus": discovery(*UUIDS),
        "/usr/share/dcgm/diag": json.dumps(four(tested("memory", "Pass", "Fail", warnings=[FAULT]))),
    }
}
RELATIONS = {PLUGINS: f"Depends: {CORE} (= {VERSION})\nRecommends: {CLOSED} (= {VERSION})\n"}
SHOWN = "dpkg-query -W -f '${Package} ${db:Status-Abbrev}\\n' 'datacenter*' 2>/dev/null"


@pytest.fixture(scope="module")
def node(shared: Hosts) -> Host:
    machine = shared()
    load(machine, "550.163.01")
    machine.script("/usr/local/bin/nvidia-smi", SMI)
    return machine.with_spec(hardware={"gpus": 2}, ldso="off", dcgm={"install": True, "diag": 1})


def test_dcgm_is_installed_tests_the_gpus_and_goes_again(node: Host) -> None:
    alone = node.only("dcgm")

    def service() -> str:
        return node.run("systemctl is-enabled nvidia-dcgm; systemctl is-active nvidia-dcgm", check=False).stdout

    def packages() -> dict[str, str]:
        rows = (row.split() for row in node.run(SHOWN, check=False).stdout.splitlines())
        return {row[0]: row[1] for row in rows if row[1] == "ii"}

    alone.fails(f"apt has no {PLUGINS}", "cuda-keyring")
    assert not packages()

    offer(node, [(name, VERSION) for name in (CORE, PLUGINS, CLOSED)], RELATIONS, FILES)
    assert alone.apply(code=None).changed() == {"dcgm"}
    assert set(packages()) == {CORE, PLUGINS, CLOSED} and service() == "enabled\nactive\n"
    again = alone.apply(code=None)
    assert (again.diff("dcgm"), again.changed(), again.host()["execs"]) == ({}, set(), 1), again.explain()

    found = node.verify("--level", "stress", code=3)
    diag, loaded = found.check("dcgm.diag"), found.check("stress.run")
    assert (diag["status"], diag["summary"]) == ("fail", f"{SECOND}: memory: {ECC}")
    assert "dcgm.config" in found.checks("pass")
    assert loaded["status"] == "skip" and "dcgm.diag tests the GPUs" in loaded["summary"]

    node.run("systemctl disable -q --now nvidia-dcgm")
    diag = node.verify("--level", "stress", code=3).check("dcgm.diag")
    assert diag["status"] == "unknown" and "does nvidia-dcgm run?" in diag["remedy"]
    assert alone.apply(code=None).changed() == {"dcgm"} and service() == "enabled\nactive\n"

    assert alone.remove().changed() == {"dcgm"}
    assert not packages() and "active\n" not in service().replace("inactive", "")
    assert node.run("find /etc/systemd /var/lib/gpuready -name '*dcgm*'").stdout == ""

    # DCGM that somebody else installed stays, and its service is as it was.
    node.run(f"apt-get -q -y install {PLUGINS} >&2")
    assert alone.apply(code=None).changed() == {"dcgm"} and service() == "enabled\nactive\n"
    assert alone.remove().changed() == {"dcgm"}
    assert set(packages()) == {CORE, PLUGINS, CLOSED} and service() == "disabled\ninactive\n"
    assert alone.remove().changed() == set()

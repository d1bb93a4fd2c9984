"""Slurm on one test machine: munge, slurmctld and slurmd of its distribution.

22.05 on Debian 12, 24.11 on Debian 13, and 26.05 on Debian's next release, which stands for Fedora here.

The node's GPUs are gres by file. slurmd takes any file for one, so these two are device nodes that every machine has,
and nothing pretends to be a GPU. No cgroup is used, because a machine is a container.
"""

import shutil
import tempfile
import time
from pathlib import Path

from tests.lab import cache, deb, host, image, scale
from tests.lab.host import LabError
from tests.lab.machine import Machine

_PACKAGES = ("munge", "slurm-client", "slurmctld", "slurmd")
#: What the packages' scripts would make, and what their units want to find.
_USERS = """
useradd -r -M -d /nonexistent -s /usr/sbin/nologin munge
useradd -r -M -d /nonexistent -s /usr/sbin/nologin slurm
install -d -o munge -g munge -m 0700 /etc/munge /var/lib/munge /var/log/munge
install -d -o slurm -g slurm /var/lib/slurm /var/lib/slurm/slurmctld /var/lib/slurm/slurmd /var/log/slurm
head -c 1024 /dev/urandom >/etc/munge/munge.key
chown munge:munge /etc/munge/munge.key
chmod 0400 /etc/munge/munge.key
ldconfig
systemctl daemon-reload
systemctl start munge slurmctld slurmd
"""
CONF = "etc/slurm/slurm.conf"
_CONF = """ClusterName=lab
SlurmctldHost={name}(127.0.0.1)
SlurmUser=slurm
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ReturnToService=1
SlurmctldTimeout=300
SlurmdTimeout=300
MessageTimeout=5
KillWait=60
GresTypes=gpu
NodeName={name} NodeAddr=127.0.0.1 CPUs=2 Gres=gpu:h200:2
NodeName={spare} NodeAddr=127.0.0.1 Port=7999 State=DOWN
PartitionName=gpu Nodes={name} Default=YES MaxTime=INFINITE
"""
#: A node that is down from the beginning.
SPARE = "spare"
_FILES = {
    CONF: _CONF,
    "etc/slurm/gres.conf": "Name=gpu Type=h200 File=/dev/null,/dev/zero\n",
    "etc/slurm/cgroup.conf": "CgroupPlugin={cgroup}\n",
}
#: 22.05 loads a plugin in any case. What the tests' plugins use of this one is nothing.
_CGROUP = {"debian12": "cgroup/v1", "debian13": "disabled", image.DNF5: "disabled"}


def layer(distro: str) -> Path:
    """A directory to lay over a machine's root: the packages' files."""
    root = image.root_image(distro)

    def build(into: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="gpuready-lab-apt-") as scratch:
            deb.unpack(image.SUITES[distro], _PACKAGES, Path(scratch), root)
            apart = shutil.ignore_patterns("doc", "man", "lintian", "bug", "init.d")
            for part, place in (("etc", "etc"), ("usr", "usr"), ("lib", "usr/lib")):  # Debian 12 has its units in lib
                if (found := Path(scratch, "files", part)).is_dir():
                    shutil.copytree(found, into / "root" / place, symlinks=True, ignore=apart, dirs_exist_ok=True)
            for program in into.glob("root/usr/*bin/*-wlm"):  # the packages' scripts make these links
                (program.parent / program.name.removesuffix("-wlm")).symlink_to(program.name)

    recipe = {"packages": _PACKAGES, "layout": 3, "root": root.parent.name, "architecture": host.architecture()}
    return cache.cached(f"slurm-{distro}", recipe, build) / "root"


def start(machine: Machine) -> None:
    """Give a running machine Slurm, and wait until its node is idle."""
    machine.put(layer(machine.distro), "/")
    for path, text in _FILES.items():
        place = machine.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text.format(name=machine.name, spare=SPARE, cgroup=_CGROUP[machine.distro]), "utf-8")
    machine.run(f"set -e\n{_USERS}")
    await_state(machine, "IDLE")


def shown(machine: Machine, key: str) -> str:
    """A value of the node, as scontrol shows it; empty if there is none."""
    said = machine.run(f"scontrol show node {machine.name} -o").stdout
    return said.partition(f" {key}=")[2].partition(" [" if key == "Reason" else " ")[0].strip()


def await_state(machine: Machine, *states: str) -> None:
    """Wait until the node has one of these states, as State= of scontrol."""
    limit = scale.Limit(60)
    while (state := shown(machine, "State").rstrip("*")) not in states:
        if limit.over():
            logs = machine.run("tail -n 20 /var/log/slurm/*.log", check=False).stdout
            raise LabError(f"Slurm's node is {state}, not {' or '.join(states)}:\n{logs}")
        time.sleep(0.2)

"""What goes wrong on a node or with its repository: one clear message, nothing half-applied, a second apply mends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuready.components.repository.source import AptSource
from gpuready.model import probe
from tests.lab import Lab, Machine, Repository, network, processes, scale, signing
from tests.system.faults import footprint, leftovers, mends, problem, settled, until
from tests.system.harness import Gpuready, Inventories
from tests.system.host import Hosts


@pytest.fixture(scope="module")
def repo(lab: Lab) -> Iterator[Repository]:
    """A repository of this module's own, with the newest version only, and wrong keys beside the right one."""
    with lab.publish(versions=("1.20.1",)) as published:
        folder = published.directory
        keys = [signing.public(name).read_bytes() for name in ("lab", "other")]
        (folder / "two").write_bytes(b"".join(keys))
        (folder / "page").write_text("<!doctype html><title>Sign in to the guest network</title>\n" * 40)
        (folder / "endless").touch()
        os.truncate(folder / "endless", 1 << 40)
        yield published


@dataclass(frozen=True)
class Silence:
    """A run over two machines whose packets to the repository go nowhere: one lacks the key, one has it."""

    machines: tuple[Machine, Machine]
    path: Path
    process: subprocess.Popen[str]


@pytest.fixture(scope="module")
def silence(lab: Lab, gpuready: Gpuready, inventory: Inventories) -> Iterator[Silence]:
    """Begun before the other tests of this module, because it takes time and no work."""
    with lab.machine() as first, lab.machine() as second:
        prepared = gpuready("apply", "--yes", "--only", "repository", inventory=inventory(second))
        assert prepared.changed() == {"repository"}, prepared.explain()
        for m in (first, second):
            m.run(_DROP.format(what="-I"), timeout=20)
        path = inventory([first, second])
        process = gpuready.start("apply", "--yes", "--batch", "100%", inventory=path)
        yield Silence((first, second), path, process)
        process.kill()


_DROP = f"iptables -w {{what}} OUTPUT -p tcp -d {network.SERVER} -j DROP"


@pytest.mark.fault("D1", "key-not-served", "key-is-a-page", "two-keys", "huge-key")
@pytest.mark.usefixtures("silence")
def test_no_key_but_the_right_one_is_written(fresh: Hosts, repo: Repository) -> None:
    m = fresh()
    lab_key, other = signing.fingerprint("lab"), signing.fingerprint("other")
    before = footprint(m)
    nothing = "nothing was written"
    cases = {
        "gone": ("404",),
        "page": ("not a usable key", nothing),
        "two": ("line 10: the file goes on after the key", nothing),
        "endless": ("larger than any key",),
    }
    wrong = {"toolkit": {"repo": {"fingerprint": other}}}
    assert not m.fails(lab_key, other, nothing, "NVIDIA's", repo=repo, **wrong).changed()
    for name, words in cases.items():
        url = f"{repo.base}/{name}"
        assert not m.fails(url, *words, repo=repo, toolkit={"repo": {"key": url}}).changed()
        assert footprint(m) == before
    assert not leftovers(m)
    m.mends(repo=repo)


@pytest.mark.fault("wrong-signature")
def test_a_repository_in_trouble_changes_nothing_of_the_node(fresh: Hosts, lab: Lab) -> None:
    m = fresh()
    with lab.publish(versions=("1.20.1",)) as repo:
        key = {"key": f"{repo.base}/gpgkey-lab", "fingerprint": signing.fingerprint("lab")}
        before = footprint(m)
        repo.stop()
        m.fails(repo.base, "refused", repo=repo, toolkit={"repo": key})
        assert footprint(m) == before

        repo.start()
        repo.rotate("other")  # the key is the right one, the signature is not
        result = m.fails(signing.fingerprint("other")[-16:], repo.base, repo=repo, toolkit={"repo": key})
        assert result.changed() == {"repository"}, result.explain()
        before = footprint(m)

        repo.rotate("lab")
        wanted = {"repo": key, "version": "1.20.7"}
        assert not m.fails("1.20.7-1", "it has: 1.20.1-1", repo=repo, toolkit=wanted).changed()
        repo.stop()
        assert not m.fails(f":{repo.port}", "refused", repo=repo, toolkit={"repo": key}).changed()
        assert footprint(m) == before

        repo.start()
        assert m.mends(repo=repo, toolkit={"repo": key}).changed() == {"toolkit", "docker"}
        assert not leftovers(m)


_HOLD = r"""
use Fcntl;
($seconds, @files) = @ARGV;
for $f (@files) {
  open($h{$f}, ">>", $f) or die "$f: $!";
  $lock = pack("s s x4 q q i x4", F_WRLCK, 0, 0, 0, 0);
  fcntl($h{$f}, F_SETLK, $lock) or die "$f: $!";
}
open($out, ">", "/run/held"); close $out;
select(undef, undef, undef, 0.1) until `pgrep -x apt-get`;
sleep $seconds;
"""


@pytest.mark.fault("package-locks")
def test_locks_of_apt_and_dpkg_are_waited_for(fresh: Hosts, gpuready: Gpuready, inventory: Inventories) -> None:
    machines = [fresh("debian12"), fresh("debian13")]
    slow = scale.factor()
    seconds = {"/var/lib/apt/lists/lock": 2, "/var/cache/apt/archives/lock": 4, "/var/lib/dpkg/lock-frontend": 8}
    for m in machines:
        (m.root / "var/tmp/hold.pl").write_text(_HOLD, "utf-8")
        for path, number in seconds.items():
            m.run(f"rm -f /run/held; systemd-run -q --collect perl /var/tmp/hold.pl {number * slow:.0f} {path}")
            m.run("until [ -e /run/held ]; do sleep 0.02; done", timeout=5)
    result = mends(gpuready, inventory(machines))
    for m in machines:
        assert result.host(m.name)["seconds"] > 8 * slow, "the locks were not held for long enough to prove anything"


_SLOW = r"""
set -e
mkfifo /var/tmp/go
mkdir -p /srv/slow/DEBIAN
cd /srv/slow/DEBIAN
printf 'Package: slow\nVersion: 1\nArchitecture: all\nMaintainer: lab <lab@localhost>\nDescription: slow\n' >control
printf '#!/bin/sh\necho configuring\nread -r word </var/tmp/go\n' >postinst
chmod 755 postinst
dpkg-deb -b /srv/slow /srv/slow.deb >/dev/null
cd /usr/local/sbin
printf '#!/bin/sh\n[ "$1" != --configure ] || echo asked >>/var/tmp/asked\nexec /usr/bin/dpkg "$@"\n' >dpkg
chmod 755 dpkg
systemd-run -q --unit=other apt-get install -q -y /srv/slow.deb
"""


@pytest.mark.fault("D5", "lock-and-unpacked-package")
def test_an_apt_that_has_a_package_unpacked_is_waited_for(
    fresh: Hosts, gpuready: Gpuready, inventory: Inventories
) -> None:
    """As unattended-upgrades on a first boot: it holds the locks, and its package's script takes its time."""
    machines = [fresh("debian12"), fresh("debian13")]
    for m in machines:
        m.run(_SLOW)
        m.run("until dpkg-query -W slow 2>/dev/null && dpkg --audit | grep -q slow; do sleep 0.1; done", timeout=60)
    path = inventory(machines)
    process = gpuready.start("apply", "--yes", "--batch", "100%", inventory=path)
    for m in machines:  # gpuready has looked twice, and is still waiting
        m.run("until [ $(grep -c . /var/tmp/asked) -gt 1 ]; do sleep 0.1; done 2>/dev/null", timeout=120)
        assert m.run("systemctl is-active gpuready-toolkit other").stdout.split() == ["active", "active"]
        m.run("echo go >/var/tmp/go", timeout=20)
    result = gpuready.finish(process, code=0)
    for m in machines:
        assert "toolkit" in result.changed(m.name)
        assert m.run("dpkg-query -W -f '${db:Status-Abbrev}' slow").stdout == "ii "
        assert m.run("dpkg --audit").stdout == ""
    settled(gpuready, path)


_LINKS = r"""
use strict;
for my $pid (1..65536) { for my $name ("apt", "list") { symlink("/etc/victim", "/tmp/gpuready-$name.$pid"); } }
"""


@pytest.mark.fault("D7")
def test_links_that_a_user_laid_in_tmp_lead_nowhere(fresh: Hosts) -> None:
    m = fresh()
    (m.root / "etc/victim").write_text("untouched\n")
    (m.root / "var/tmp/links.pl").write_text(_LINKS)
    m.run("perl /var/tmp/links.pl && [ -L /tmp/gpuready-apt.4242 ]", user="gpu")
    m.apply()
    assert m.run("cat /etc/victim").stdout == "untouched\n"
    assert m.run("find /tmp -name 'gpuready*' -type l | wc -l").stdout.strip() == "131072"


_SMALL = """
set -e
mkdir -p /small && mount -t tmpfs -o size={size} small /small
cp -a -x {place}/. /small/
for sub in $(awk '$5 ~ "^{place}/" {{print $5}}' /proc/self/mountinfo); do
  mount --rbind $sub /small/${{sub#{place}/}}
done
mount --rbind /small {place}
"""
_FREE = "umount -R -l {place}; umount -R -l /small; rmdir /small"


def _fill(m: Machine, place: str) -> None:
    """Make a place of the machine a file system of its own that is full."""
    if place in ("/etc", "/var"):
        size = {"/etc": "16m", "/var": "250m"}[place]
        m.run(_SMALL.format(place=place, size=size))
    else:  # a tmpfs already: shrink it to what is in it
        m.run(f"used=$(df -k --output=used {place} | tail -n 1); mount -o remount,size=$((used + 64))k {place}")
    m.run(f"dd if=/dev/zero of={place}/filler bs=4k 2>/dev/null; true")


def _free(m: Machine, place: str) -> None:
    m.run(f"rm -f {place}/filler")
    m.run(_FREE.format(place=place) if place in ("/etc", "/var") else f"mount -o remount,size=200m {place}")


@pytest.mark.fault("full-disk")
def test_a_full_disk_is_named_and_nothing_changes(fresh: Hosts) -> None:
    m = fresh()

    def refused(*places: str) -> None:
        before = footprint(m)
        for place in places:
            _fill(m, place)
        result = m.apply(code=None)
        assert result.code in (1, 4) and all(place in problem(result) for place in places), result.explain()
        assert not result.changed(), result.explain()
        for place in places:
            _free(m, place)
        assert footprint(m) == before

    for places in (("/etc",), ("/var",), ("/tmp",), ("/run",), ("/run", "/tmp")):
        refused(*places)
    m.apply("--skip", "docker")
    (m.root / "etc/docker").mkdir(exist_ok=True)
    (m.root / "etc/docker/daemon.json").write_text('{"log-level": "warn"}')
    for place in ("/etc", "/tmp"):  # now it is daemon.json's turn
        refused(place)
        m.run("docker info >/dev/null", timeout=20)
    m.mends()
    assert not leftovers(m)


_FROZEN_SMI = """
import sys
from gpuready.model import probe

text = probe.script().replace("/proc/driver/nvidia/version", "/etc/hostname")
probe.script = lambda: text
from gpuready.cli.main import run

sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture
def freezer() -> Iterator[Callable[[int], None]]:
    """Makes a process of this host one that no signal ends and that sleeps in state D, until the test is over."""
    v1, name = Path("/sys/fs/cgroup/freezer"), f"gpuready-test-{os.getpid()}"
    if v1.is_dir():
        group, knob, frozen, thawed = v1 / name, "freezer.state", "FROZEN", "THAWED"
    else:
        group, knob, frozen, thawed = Path("/sys/fs/cgroup") / name, "cgroup.freeze", "1", "0"
    group.mkdir()
    (group / knob).write_text(frozen)
    caught: list[int] = []

    def freeze(pid: int) -> None:
        caught.append(pid)
        (group / "cgroup.procs").write_text(str(pid))

    yield freeze
    (group / knob).write_text(thawed)
    processes.send(caught, signal.SIGKILL)
    until(lambda: not (group / "cgroup.procs").read_text(), 10, "the frozen process is gone")
    group.rmdir()


@pytest.mark.fault("process-in-d")
def test_a_process_in_state_d_costs_the_probe_its_limit_and_no_more(
    fresh: Hosts, freezer: Callable[[int], None], tmp_path: Path
) -> None:
    m = fresh()
    m.script("/usr/local/bin/nvidia-smi", "#!/bin/sh\nexec sleep 7171\n")
    driver = tmp_path / "frozen.py"
    driver.write_text(_FROZEN_SMI)
    words, pipe = [sys.executable, str(driver), "record", "-i", str(m.where()), "--output", "json"], subprocess.PIPE
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)
    sleeping = ["sleep", "7171"]
    until(lambda: processes.matching(lambda argv: argv == sleeping), 10, "nvidia-smi runs")
    (pid,) = processes.matching(lambda argv: argv == sleeping)
    freezer(pid)
    result = m.gpuready.finish(process, code=0)
    state = result.host()["state"]
    unknown = state["driver"]["smi"]["unknown"]
    inside = Path(f"/proc/{pid}/status").read_text().partition("NSpid:")[2].split("\n")[0].split()[-1]
    assert "abandoned" in unknown and f"pid {inside} in state D" in unknown, unknown
    assert result.host()["seconds"] >= probe.LIMIT
    assert state["packages"]["docker.io"] and state["docker"]["version"] and state["linker"]["cache"] is not None
    assert not leftovers(m)


@pytest.mark.fault("login-noise")
def test_what_a_login_prints_is_not_taken_for_an_answer(fresh: Hosts) -> None:
    m = fresh()
    noise = "echo begin of a long story\necho held by nobody\nprintf 'caf\\351 \\377\\n' | tee /dev/stderr\n"
    home = m.root / "home/gpu"
    (home / ".bashrc").write_text(noise + (home / ".bashrc").read_text() if (home / ".bashrc").exists() else noise)
    (m.root / "etc/profile.d/noise.sh").write_text(noise)
    (home / ".ssh/rc").write_text(noise)
    m.run("chown gpu: /home/gpu/.bashrc /home/gpu/.ssh/rc; usermod -s /bin/bash gpu", timeout=20)
    assert "held by nobody" in m.run("true", user="gpu", timeout=20).stdout
    m.mends()


@pytest.mark.fault("csh-fish-login-shell", "noise-without-newline")
@pytest.mark.parametrize(("shell", "size"), [("tcsh", "1g"), ("fish", "2g"), ("dash", "3g")])
def test_the_login_shell_may_be_any_and_leave_a_line_open(shared: Hosts, shell: str, size: str) -> None:
    m = shared()
    m.run("command -v tcsh fish || { apt-get -q update && apt-get -qy install --no-install-recommends tcsh fish; }")
    noise = "printf '\\033]0;title\\007no newline'\n"
    for name in (".cshrc", ".config/fish/config.fish"):
        path = m.root / "home/gpu" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(noise)
    m.run(f"chown -R gpu: /home/gpu; usermod -s /bin/{shell} gpu || usermod -s /usr/bin/{shell} gpu", timeout=20)
    assert shell == "dash" or "no newline" in m.run("true", user="gpu", timeout=20).stdout
    assert "docker" in m.mends(runtimes={"docker": {"shm_size": size}}).changed()


@pytest.mark.fault("repository-silent")
def test_a_repository_that_swallows_packets_costs_bounded_time(gpuready: Gpuready, silence: Silence) -> None:
    first = silence.machines[0]
    result = gpuready.finish(silence.process, code=1)
    for m in silence.machines:
        told = problem(result, m.name)
        assert network.SERVER in told and "timed out" in told, told
        assert not result.changed(m.name), result.explain()
        m.run(_DROP.format(what="-D"), timeout=20)
    assert not (first.root / AptSource.keyring[1:]).exists() and not (first.root / AptSource.path[1:]).exists()
    mends(gpuready, silence.path)

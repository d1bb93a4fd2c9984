"""Files that are relied on, on real machines: whole scripts cut at their calls, and directories that are links.

The scripts are those that an apply sent, as the machine keeps them; they run there again, traced from outside
(tests/cut.py), from the state before. An apply that comes after a cut mends it.
"""

import base64
import errno
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import pytest

from tests import cut
from tests.lab import Machine, nspawn
from tests.system.faults import leftovers
from tests.system.host import LIBRARIES, Hosts
from tests.system.test_remove import differences, used, whole

KEPT = "/var/lib/gpuready/backup"
ENGINES = {"containerd": "auto", "docker": {"default_runtime": True}}


@pytest.mark.fault("D6", "linked-parent-directory")
def test_directories_that_are_links(fresh: Hosts) -> None:
    """/etc/docker, /etc/containerd and /etc/ld.so.conf.d lead elsewhere: all is found again, and goes back."""
    m = fresh().with_spec(ldso=[LIBRARIES], runtimes=ENGINES)
    folders = "docker containerd ld.so.conf.d"
    m.run("mkdir -p /data /etc/docker /etc/containerd")
    m.run(f"for d in {folders}; do mv /etc/$d /data/$d && ln -s ../data/$d /etc/$d || exit; done")
    m.run("containerd config default >/data/containerd/config.toml; systemctl restart containerd")
    used(m)
    before, data = whole(m), m.run("cd /data && find . -type f | sort | xargs sha256sum").stdout

    assert m.apply().changed() >= {"containerd", "docker", "ldso"}
    m.settled()
    removed = m.remove()
    assert removed.changed() >= {"containerd", "docker", "ldso"}, removed.explain()
    assert differences(before, whole(m)) == {}
    assert m.run("cd /data && find . -type f | sort | xargs sha256sum").stdout == data


@dataclass(frozen=True)
class Script:
    """A step's script, the file that it changes, what that was (None: there was none), and how to go back."""

    step: str
    file: str
    before: str | None
    reset: str


_SCRIPTS = (
    Script("docker", "/etc/docker/daemon.json", json.dumps({"labels": ["a=b"]}), "systemctl reload docker.service"),
    Script(
        "containerd",
        "/etc/containerd/config.toml",
        "version = 2\n",
        "systemctl reset-failed containerd.service; systemctl restart containerd.service",
    ),
    Script("ldso", "/etc/ld.so.conf.d/gpuready-nvidia.conf", None, "ldconfig"),
)


class Bench:
    """One machine on which a script runs again and again."""

    def __init__(self, machine: Machine, script: Script) -> None:
        self.machine, self.script = machine, script
        found = machine.run(
            f'grep -lE "^FILE={script.file}$|put {script.file} " /var/lib/gpuready/tx/*/script | head -n 1'
        ).stdout.strip()
        assert found, f"no script of {script.step}"
        self.text = machine.run(f"cat {found}").stdout
        (self.init,) = nspawn.inits(machine.name)

    def content(self) -> str | None:
        """The file now."""
        path = self.machine.root / self.script.file[1:]
        return path.read_text() if path.exists() else None

    def reset(self) -> None:
        """As before the first touch."""
        folder = self.script.file.rpartition("/")[0]
        put = f"echo {base64.b64encode((self.script.before or '').encode()).decode()} | base64 -d >{self.script.file}"
        own = f"rm -rf {KEPT} /var/lib/gpuready/*.ours /var/lib/gpuready/*.next* {self.script.file} {folder}/.gpuready*"
        self.machine.run(f"{own}; {put if self.script.before is not None else ':'}; {self.script.reset}")

    def cut(self, pool: ProcessPoolExecutor, nth: int = 0, error: int = 0) -> cut.Cut:
        """Run the script in the machine; before its nth call that writes, kill it or let that fail."""
        argv = ["nsenter", "-t", str(self.init), "-m", "-u", "-i", "-n", "-p", "-r", "-w", "sh", "-c", self.text]
        folder = self.script.file.rpartition("/")[0]
        return pool.submit(cut.run, argv, ["/var/lib/gpuready", folder], nth, error).result(300)

    def wrong(self, new: str | None) -> list[str]:
        """What a cut may not leave."""
        now, record = self.content(), self.machine.root / f"{KEPT[1:]}{self.script.file}"
        original = record.with_name(f"{record.name}.original")
        found = [] if now in (self.script.before, new) else [f"the file is {str(now)[:80]!r}"]
        if original.exists() and original.read_text() != self.script.before:
            found.append("the original is not the true one")
        if now != self.script.before and not (original.exists() or record.with_name(f"{record.name}.absent").exists()):
            found.append("the file is ours, and its original is not on record")
        return found


def sample(calls: tuple[str, ...]) -> list[int]:
    """Each rename over the file itself and what surrounds it, and every ninth call."""
    near = {
        n + d for n, call in enumerate(calls, 1) if call.startswith("rename") and "/backup/" not in call for d in (0, 1)
    }
    return sorted(near | set(range(5, len(calls) + 1, 9)))


@pytest.mark.fault("D4", "kill-inside-backup")
def test_scripts_as_a_whole_cut_at_their_calls(fresh: Hosts) -> None:
    """A sample of the calls, because each takes an engine's reload or restart; the unit tests have them all."""
    if why := cut.unavailable():
        pytest.skip(why)
    m = fresh().with_spec(ldso=[LIBRARIES], runtimes=ENGINES)
    m.put_libraries()
    m.run("mkdir -p /etc/docker /etc/containerd")
    for script in _SCRIPTS:
        if script.before is not None:
            (m.root / script.file[1:]).write_text(script.before)
    m.run("systemctl reset-failed containerd.service; systemctl restart containerd.service docker.service")
    m.apply()
    new = {script.step: (m.root / script.file[1:]).read_text() for script in _SCRIPTS}
    benches = [Bench(m, script) for script in _SCRIPTS]

    complaints = []
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for bench in benches:
            bench.reset()
            plain = bench.cut(pool)
            assert plain.code == 0 and bench.content() == new[bench.script.step], (bench.script.step, plain)
            for number, nth in enumerate(sample(plain.calls)):
                error = (0, errno.ENOSPC, 0, errno.EIO)[number % 4]
                bench.reset()
                done = bench.cut(pool, nth, error)
                if not done.reached:  # a loop that waits for an engine does not always take as many rounds
                    continue
                how = errno.errorcode[error] if error else "killed"
                at = f"{bench.script.step}, {how} at {nth} ({done.calls[nth - 1]})"
                complaints += [f"{at}: {each}; {done.said}" for each in bench.wrong(new[bench.script.step])]
            m.apply()  # of the last cut
            assert bench.content() == new[bench.script.step]
    assert not complaints, "\n".join(complaints)
    assert leftovers(m) == []

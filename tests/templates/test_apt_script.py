"""Another package manager at work: the scripts wait, bounded, and look again. apt and dpkg are stubs here."""

import base64
import subprocess
from pathlib import Path

import pytest

from gpuready.base import resources

#: What dpkg 1.20, 1.21 and 1.22 print when another one holds a lock.
LOCKED = (
    "dpkg: error: dpkg frontend lock is locked by another process",
    "dpkg: error: dpkg frontend lock was locked by another process with pid 812",
    "dpkg: error: dpkg database lock was locked by apt-get process with pid 812",
)


def stub(tmp_path: Path, **stubs: str) -> None:
    for name, text in stubs.items():
        program = tmp_path / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\ncd {tmp_path}\n{text}\n")
        program.chmod(0o755)


def run(tmp_path: Path, call: str, patience: int = 20, **stubs: str) -> subprocess.CompletedProcess[str]:
    """One of the functions, with programs that are these scripts; `patience` in place of its 900 seconds."""
    stub(tmp_path, **stubs)
    return sh(tmp_path, resources.script("lib/lib") + resources.script("lib/packages", dnf=0), call, patience)


def sh(tmp_path: Path, script: str, call: str = "", patience: int = 20) -> subprocess.CompletedProcess[str]:
    """A script that finds the stubs first, and keeps what it keeps below tmp_path."""
    assert "PATH=/usr/local" in script and "900" in script
    script = script.replace("PATH=/usr/local", f"PATH={tmp_path}:/usr/local").replace("900", str(patience))
    script = script.replace("/var/lib/dpkg/updates", f"{tmp_path}/updates").replace("KEPT=/", f"KEPT={tmp_path}/")
    return subprocess.run(["sh"], input=script + call, capture_output=True, text=True, check=False, timeout=60)


def at_work(locked: str, times: int) -> str:
    """A dpkg beside another one, which ends after that many looks at its lock."""
    return f"""case $1 in
--audit) [ -e done ] || echo 'half-configured: slow' ;;
--configure) echo x >>tries; [ "$(wc -l <tries)" -lt {times} ] || : >done; echo '{locked}' >&2; exit 2 ;;
esac"""


@pytest.mark.fault("D5")
@pytest.mark.parametrize("locked", LOCKED)
def test_a_package_that_another_dpkg_has_unpacked_is_waited_for(locked: str, tmp_path: Path) -> None:
    done = run(tmp_path, "mend_dpkg; echo went on", dpkg=at_work(locked, 2))
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
    assert (tmp_path / "tries").read_text() == "x\nx\n" and "interrupted" not in done.stderr


@pytest.mark.fault("D5")
def test_every_wait_has_a_limit(tmp_path: Path) -> None:
    done = run(tmp_path, "mend_dpkg; echo went on", 2, dpkg=at_work(LOCKED[2], 1_000_000))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"another package manager is still at work after 2 s: {LOCKED[2]}\n"


@pytest.mark.parametrize("updates", ["", "0001"])
def test_a_dpkg_that_was_cut_off_is_finished_at_once(updates: str, tmp_path: Path) -> None:
    (tmp_path / "updates").mkdir()
    (tmp_path / "updates" / updates).touch()
    dpkg = "case $1 in --audit) [ -e done ] || echo 'half-configured: cut' ;; --configure) : >done ;; esac"
    done = run(tmp_path, "mend_dpkg; echo went on", 0, dpkg=dpkg)
    assert (done.returncode, done.stdout, (tmp_path / "done").exists()) == (0, "went on\n", True), done.stderr


def test_a_dpkg_that_cannot_be_finished_is_an_error_at_once(tmp_path: Path) -> None:
    dpkg = "case $1 in --audit) echo bad ;; *) echo 'postinst of bad failed' >&2; exit 1 ;; esac"
    done = run(tmp_path, "mend_dpkg; echo went on", dpkg=dpkg)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("postinst of bad failed\npackages are half-configured"), done.stderr


BUSY = "echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 812 (apt-get)'; exit 100"


def test_the_lock_of_the_lists_is_waited_for_within_a_limit(tmp_path: Path) -> None:
    twice = f"echo x >>tries; [ $(wc -l <tries) -gt 2 ] || {{ {BUSY}; }}"
    done = run(tmp_path, "apt_update && echo went on", apt_get=twice)
    assert done.stdout == "went on\n", done.stderr
    done = run(tmp_path, 'apt_update || echo "$APT_WHY"', 2, apt_get=BUSY)
    assert done.stdout.startswith("Could not get lock /var/lib/apt/lists/lock"), done.stderr


def test_why_apt_failed_is_told_without_a_file(tmp_path: Path) -> None:
    out = "printf '%s\\n' '  Could not resolve \\\\host' 'E: Some index files failed'; exit 100"
    done = run(tmp_path, 'apt_update || echo "$APT_WHY"', apt_get=out)
    assert done.stdout == "Could not resolve \\host \n", done.stderr


def test_which_packages_of_the_spec_came_with_gpuready(tmp_path: Path) -> None:
    """`remove` purges those that were new here: perftest was there already, in an older version."""
    script = resources.script("rdma/packages", packages=("rdma-core", "perftest"), work=("",), dnf=0)
    simulated = "Inst rdma-core (50 Debian:13)\nInst libibverbs1 (50 Debian:13)\nInst perftest [23] (24 Debian:13)"
    stub(tmp_path, apt_get=f"case $* in *' -s '*) printf '{simulated}\\n' ;; esac", dpkg="")
    done = sh(tmp_path, script.replace("LIST=", "idle() { :; }\nLIST=", 1))
    assert done.returncode == 0, done.stderr
    listed = (tmp_path / "var/lib/gpuready/backup/rdma.installed").read_text()
    assert listed == "asked:rdma-core\nlibibverbs1\nrdma-core\n"


@pytest.mark.parametrize(
    ("needed", "expected"),
    [
        ("nothing", (0, "asked-for came-along\n", "")),
        ("came-along", (0, "asked-for\n", "")),
        ("asked-for", (1, "", "apt would remove theirs as well, which came to need what gpuready installed;")),
    ],
)
def test_what_came_to_need_our_packages_is_not_purged(
    needed: str, expected: tuple[int, str, str], tmp_path: Path
) -> None:
    (tmp_path / "list").write_text("asked-for\nasked:asked-for\ncame-along\ngone\n")
    purge = f"for p; do echo Purg $p; [ $p != {needed} ] || echo Remv theirs; done"
    purge = f"while [ $1 != purge ]; do shift; done; shift; {purge}"
    query = "case $* in *gone) ;; *) echo installed ;; esac"
    call = f"came {tmp_path}/list 'asked:*'; printf '%s\\n' $TAKE | sort -u | joined ' '"
    done = run(tmp_path, call, dpkg_query=query, apt_get=purge)
    assert (done.returncode, done.stdout) == expected[:2] and done.stderr.startswith(expected[2])


@pytest.mark.fault("D9", "proxy-secret")
def test_the_proxy_reaches_apt_by_a_file_of_roots(tmp_path: Path) -> None:
    proxy = 'Acquire::http::Proxy::h "http://me:hunter2@h";'
    script = resources.script("repository/fetch-key", url="http://h/key", proxy=proxy, dnf=0)
    helper = 'echo "$@" >arguments; stat -c %a "${2%/*}" "$2" >modes; cat "$2" >given; for f; do :; done; echo key >$f'
    stub(tmp_path, apt_helper=helper)
    assert script.count("/usr/lib/apt/apt-helper") == 1
    script = script.replace("/usr/lib/apt/apt-helper", f"{tmp_path}/apt-helper")
    done = subprocess.run(["sh"], input=f"umask 0\n{script}", capture_output=True, text=True, check=True)
    assert (base64.b64decode(done.stdout), done.stderr) == (b"key\n", "")
    assert (tmp_path / "modes").read_text() == "700\n600\n"
    assert (tmp_path / "given").read_text() == f"{proxy}\n"
    assert "hunter2" not in (tmp_path / "arguments").read_text()

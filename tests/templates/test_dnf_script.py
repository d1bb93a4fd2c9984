"""What the scripts read of dnf's transactions, as dnf 4.23 printed them, and its locks. dnf is a stub here."""

import subprocess
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.contract.package_manager import DNF_RELEASES, manager
from gpuready.model.parse import os_release
from gpuready.model.state import NodeState
from tests.templates.test_apt_script import sh, stub

#: The table of a transaction, between its lines of =; a name that is too long stands alone in its line.
TRANSACTION = """Dependencies resolved.
====================================================================
 Package                  Architecture Version   Repository      Size
====================================================================
Installing:
 nvidia-container-toolkit x86_64       1.20.1-1  gpuready-x     1.8 M
     replacing  nvidia-container-runtime-hook.x86_64 1.4.0-2
Downgrading:
 libnvidia-container1     x86_64       1.20.1-1  gpuready-x     5.6 k
Removing:
 libnvidia-container-of-another-company-with-a-long-name
                          x86_64       1.18.2-1  @gpuready-x      0
Removing dependent packages:
 site-gpu                 noarch       1-1       @System          0

Transaction Summary
====================================================================
Remove  3 Packages

 not a package
"""
LOCKS = "/etc/dnf/plugins/versionlock.list"


def holds(tmp_path: Path, call: str, listed: str, dnf: str) -> tuple[int, str, str]:
    """A call of lib/holds.sh.j2 with that list: exit code, stderr, and how dnf was called."""
    stub(tmp_path, dnf=f'echo "$*" >>called\n{dnf}')
    (tmp_path / "list").write_text(listed)
    script = resources.script("lib/lib") + resources.script("lib/holds", dnf=True) + "\n: 900\n"
    done = sh(tmp_path, script.replace(LOCKS, f"{tmp_path}/list"), call)
    return done.returncode, done.stderr, (tmp_path / "called").read_text()


@pytest.mark.parametrize("have", [("dnf",), ("dnf", "apt-get"), ("apt-get",), ()])
@pytest.mark.parametrize(
    "release",
    [
        *(f"ID={id}\nVERSION_ID=9\n" for id in DNF_RELEASES),
        'ID="scientific"\nID_LIKE="centos fedora"\n',
        "ID=debian\n",
        'ID=ubuntu\nID_LIKE="debian"\nHOME_URL="https://rhel.example/ rhel "\n',
        "ID=ol-like\n",
        "",
    ],
)
def test_probe_and_plan_agree_on_apt_or_dnf(tmp_path: Path, release: str, have: tuple[str, ...]) -> None:
    (tmp_path / "os-release").write_text(release)
    script = resources.script("lib/reader", what="test").replace("/etc/os-release", f"{tmp_path}/os-release")
    script += f'has() {{ case " {" ".join(have)} " in *" $1 "*) ;; *) return 1 ;; esac; }}\n'
    done = subprocess.run(["sh"], input=f"{script}by_dnf && echo dnf", capture_output=True, text=True, check=False)
    assert (done.stdout == "dnf\n") == manager(NodeState(os=os_release(release), have=have)).dnf


def test_what_would_go_is_read_from_the_transaction(tmp_path: Path) -> None:
    script = resources.script("lib/lib") + resources.script("lib/dnf") + "\n: 900\n"
    done = sh(tmp_path, script, f"removals <<'END'\n{TRANSACTION}END\n")
    long = "libnvidia-container-of-another-company-with-a-long-name"
    assert done.stdout.split() == ["nvidia-container-runtime-hook", long, "site-gpu"]


def test_why_dnf_failed_is_read_from_its_output(tmp_path: Path) -> None:
    said = "No match for argument: a-9\nError: Unable to find a match: a-9\nComplete!\n"
    script = resources.script("lib/lib") + resources.script("lib/dnf") + "\n: 900\n"
    done = sh(tmp_path, script, f"dnf_said <<'END'\n{said}END\n")
    assert done.stdout.strip() == "No match for argument: a-9 Unable to find a match: a-9"


def test_a_lock_of_an_older_version_goes_before_the_new_one_comes(tmp_path: Path) -> None:
    code, _, called = holds(tmp_path, "hold a b", "a-0:1-1.*\n", '[ "$4" = add ]')
    words = "-q --disablerepo=* versionlock"
    assert (code, called) == (0, f"{words} delete a b\n{words} add a b\n")


@pytest.mark.parametrize(("listed", "code"), [("", 0), ("ab-0:1-1.*\n", 0), ("a-0:1-1.*\n", 1)])
def test_no_lock_is_nothing_to_release_but_one_that_stays_is_an_error(tmp_path: Path, listed: str, code: int) -> None:
    found, said, _ = holds(tmp_path, "release a", listed, "exit 1")
    assert found == code and ("could not be set" in said) == bool(code)

"""What the scripts read of dnf's transactions, as dnf 4.23 and 5.4 printed them, and its locks. dnf is a stub here."""

import subprocess
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.contract.component import NotComparable
from gpuready.contract.package_manager import DNF, DNF5, DNF_RELEASES, LOCKS, LOCKS5, manager
from gpuready.model.parse import os_release
from gpuready.model.state import File, NodeState, Package
from tests.scripts import renderings
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


def holds(tmp_path: Path, call: str, listed: str | None, dnf: int = 4) -> str:
    """The list after a call of lib/holds.sh.j2; installed are a at 2-1, and kmod at two versions."""
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed/a").write_text("0:2-1\n")
    (tmp_path / "installed/kmod").write_text("1:5~rc-1.el9\n1:6+x-1.el9\n")
    stub(tmp_path, rpm='for p; do :; done; cat "installed/$p"')
    file = tmp_path / "list"
    if listed is not None:
        file.write_text(listed)
        file.chmod(0o640)
    script = resources.script("lib/lib") + resources.script("lib/holds", dnf=dnf) + "\n: 900\n"
    done = sh(tmp_path, script.replace(LOCKS, str(file)).replace(LOCKS5, str(file)), call)
    assert done.returncode == 0, done.stderr
    assert listed is None or not file.exists() or file.stat().st_mode & 0o777 == 0o640
    assert not list(tmp_path.glob(".gpuready-*"))
    return file.read_text() if file.exists() else ""


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
    assert (done.stdout == "dnf\n") is bool(manager(NodeState(os=os_release(release), have=have)).dnf)


def test_what_would_go_is_read_from_the_transaction(tmp_path: Path) -> None:
    script = resources.script("lib/lib") + resources.script("lib/dnf", dnf=4) + "\n: 900\n"
    done = sh(tmp_path, script, f"removals <<'END'\n{TRANSACTION}END\n")
    long = "libnvidia-container-of-another-company-with-a-long-name"
    assert done.stdout.split() == [long, "nvidia-container-runtime-hook", "site-gpu"]


#: dnf 5.4: it says of a downgrade what it replaces, too, and has an epoch in each version.
TRANSACTION5 = """Updating and loading repositories:
Repositories loaded.
Package                                    Arch   Version    Repository                  Size
Installing:
 kmod-nvidia-open-dkms                     x86_64 3:580.105.08-1.el9 cuda-rhel9-x86_64 316.0   B
   replacing kmod-nvidia-latest-dkms       x86_64 3:580.95.05-1.el9 cuda-rhel9-x86_64 309.0   B
Installing dependencies:
 dkms                                      x86_64 0:3.2.1-1.el9 cuda-rhel9-x86_64 978.0   B
Downgrading:
 libnvidia-container1                      x86_64 0:1.19.1-1 gpuready-x   0.0   B
   replacing libnvidia-container1          x86_64 0:1.20.1-1 gpuready-x   0.0   B
Removing dependent packages:
 site-gpu                                  noarch 0:1-1      <unknown>    0.0   B

Transaction Summary:
 Installing:         2 packages
 Replacing:          1 package

Operation aborted by the user.
"""


def test_the_table_of_dnf_5_is_read_as_well(tmp_path: Path) -> None:
    script = resources.script("lib/lib") + resources.script("lib/packages", dnf=5) + "\n: 900\n"
    done = sh(tmp_path, script, f"removals <<'END'\n{TRANSACTION5}END\n")
    assert done.stdout.split() == ["kmod-nvidia-latest-dkms", "site-gpu"]
    table = [line for line in TRANSACTION5.splitlines() if "replacing kmod" not in line and "site-gpu" not in line]
    stub(tmp_path, dnf="cat <<'END'\n" + "\n".join((*table, "END")), rpm="")
    done = sh(tmp_path, script, "install() { dnf_get install x; }; look_ahead x; echo $NEW")
    assert done.stdout.split() == ["kmod-nvidia-open-dkms", "dkms"], done.stderr


def test_a_simulation_by_dnf_5_is_as_that_of_apt(tmp_path: Path) -> None:
    script = resources.script("lib/lib") + resources.script("driver/dnf", pins=("a=1-1",), dnf=5)
    stub(tmp_path, dnf=f"cat <<'END'\n{TRANSACTION5}END", rpm="exit 1")
    assert sh(tmp_path, script, "would").stdout.splitlines() == [
        "Inst dkms (0:3.2.1-1.el9)",
        "Inst kmod-nvidia-open-dkms (3:580.105.08-1.el9)",
        "Inst libnvidia-container1 [installed] (0:1.19.1-1)",
        "Remv kmod-nvidia-latest-dkms [3:580.95.05-1.el9]",
        "Remv site-gpu [0:1-1]",
    ]


def test_another_dnf_5_is_waited_for_although_it_only_says_so(tmp_path: Path) -> None:
    script = resources.script("lib/lib") + resources.script("lib/dnf", dnf=5)
    busy = "echo 'Transaction failed: Failed to obtain rpm transaction lock. Another transaction is in progress.' >&2"
    stub(tmp_path, dnf=f'echo x >>tries; [ "$(wc -l <tries)" = 2 ] || {{ {busy}; exit 1; }}')
    assert sh(tmp_path, script, "dnf_get x && echo went on").stdout == "went on\n"
    done = sh(tmp_path, script, "dnf_get x", 0)
    assert (done.returncode, done.stderr.endswith("is still at work: run again later\n")) == (200, True)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "No match for argument: a-9\nError: Unable to find a match: a-9\n",
            "No match for argument: a-9 Unable to find a match: a-9",
        ),
        (
            "Waiting\nError: \n Problem: conflict\n  - nothing provides b\n\n(try '--skip-broken')\n",
            "Problem: conflict nothing provides b",
        ),
        ("x\nPublic key for a.rpm is not installed\nError: GPG check FAILED\n", "Public key for a.rpm is not installed "
         "GPG check FAILED"),
        ("Error: RPMDB already locked by 7\n  The application with PID 7\n\nError: no\n", "no"),
        ("[Errno 28] No space left on device\n", "[Errno 28] No space left on device"),
        ("first\nlast words\n\n", "last words"),
        (
            " cuda  100% |  25.6 KiB/s |   1.7 KiB |  00m00s\n>>> repomd.xml GPG signature verification error: no\n"
            "Repositories loaded.\n",
            "repomd.xml GPG signature verification error: no",
        ),
        (
            "Repositories loaded.\nFailed to resolve the transaction:\nProblem: conflicting requests\n"
            "  - package a-1.x86_64 from x is filtered out by exclude filtering\n"
            "You can try to add to command line:\n  --skip-broken to skip uninstallable packages\n",
            "Problem: conflicting requests package a-1.x86_64 from x is filtered out by exclude filtering",
        ),
        (
            "The key was successfully imported.\nTransaction failed: Signature verification failed.\n"
            'OpenPGP check for package "a-1.x86_64" has failed: wrong key?\n',
            'Signature verification failed. OpenPGP check for package "a-1.x86_64" has failed: wrong key?',
        ),
    ],
)  # fmt: skip
def test_why_dnf_failed_is_read_from_its_output(tmp_path: Path, said: str, why: str) -> None:
    script = resources.script("lib/lib") + resources.script("lib/dnf", dnf=4)
    done = sh(tmp_path, script, f"dnf_said <<'END'\n{said}END\n")
    assert " ".join(done.stdout.split()) == why


def test_another_dnf_is_waited_for_with_a_limit(tmp_path: Path) -> None:
    script = resources.script("lib/lib") + resources.script("lib/dnf", dnf=4)
    busy = 'case $* in *exit_on_lock=1*) ;; *) exit 1 ;; esac; echo x >>tries; [ "$(wc -l <tries)" = 2 ] || exit 200'
    stub(tmp_path, dnf=busy)
    assert sh(tmp_path, script, "dnf_get x && echo went on").stdout == "went on\n"
    done = sh(tmp_path, script, "dnf_get x", 0)
    assert (done.returncode, done.stderr) == (200, "another package manager is still at work: run again later\n")


def toolkit(tmp_path: Path, call: str, version: int = 4, **stubs: str) -> tuple[int, str]:
    """A call of toolkit/dnf.sh.j2, with a database of keys: exit code and stderr."""
    stub(tmp_path, rpm=_RPM, **stubs)
    values = {"packages": ("a",), "pins": ("a=1-1",), "purge": ("a",), "key": "f796ecb0", "dnf": version}
    script = "".join(resources.script(name, **more) for name, more in (
        ("lib/lib", {}), ("toolkit/dnf", values), ("lib/holds", {"dnf": version})))  # fmt: skip
    done = sh(tmp_path, script, call)
    return done.returncode, done.stderr


#: -qa lists the keys, -e removes one, -q asks for one.
_RPM = """case $1 in
-qa) [ ! -e broken ] && cat keys ;;
-e) grep -vxF "$2" keys >rest; mv rest keys ;;
-q) grep -qxF "$2" keys ;;
esac"""
_OTHER, _OURS = "gpg-pubkey-12345678-0", "gpg-pubkey-f796ecb0-1"


def test_a_key_that_the_look_ahead_imported_goes_if_nothing_is_installed(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{_OTHER}\n")
    code, said = toolkit(tmp_path, "look_ahead a", dnf=f"echo {_OURS} >>keys; echo Error: no space; exit 1")
    assert (code, "no space" in said) == (1, True), said
    assert (tmp_path / "keys").read_text() == f"{_OTHER}\n"


def test_a_key_stays_only_with_packages_from_the_repository(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{_OTHER}\n")
    script = resources.script("lib/lib") + resources.script("lib/packages", dnf=5) + "\n: 900\n"
    call = "install() { dnf_get install x; }; look_ahead x"
    for said in ("Error: no space'; false '", "Removing:\n y 1-1"):
        stub(tmp_path, rpm=_RPM, dnf=f"echo {_OURS} >>keys; printf '{said}\n'")
        assert sh(tmp_path, script, call).returncode == 1
        assert (tmp_path / "keys").read_text() == f"{_OTHER}\n"
    stub(tmp_path, dnf=f"echo {_OURS} >>keys")
    assert sh(tmp_path, script, call).returncode == 0
    assert (tmp_path / "keys").read_text() == f"{_OTHER}\n{_OURS}\n"
    (tmp_path / "broken").touch()
    done = sh(tmp_path, script, call)
    assert done.stderr.startswith("rpm's database cannot be read") and _OTHER in (tmp_path / "keys").read_text()


def test_a_failed_question_is_not_the_answer_that_there_is_no_package(tmp_path: Path) -> None:
    script = resources.script("lib/lib") + resources.script("lib/packages", dnf=4) + "\n: 900\n"
    stub(tmp_path, dnf="echo aa; [ ! -e broken ]")
    assert sh(tmp_path, script, "offers aa && ! offers a && echo told").stdout == "told\n"
    (tmp_path / "broken").touch()
    done = sh(tmp_path, script, "offers a || echo none")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "dnf cannot list the packages a*; nothing was changed\n",
    )


@pytest.mark.parametrize("warning", ["Ignoring repositories: fedora", ">>> Curl error (6): no host"])
def test_a_package_of_a_repository_that_dnf_passed_over_is_not_called_missing(tmp_path: Path, warning: str) -> None:
    script = resources.script("lib/lib") + resources.script("lib/packages", dnf=4) + "\n: 900\n"
    stub(tmp_path, dnf=f'case "$*" in *makecache*) echo "{warning}" ;; *) echo docker-ce ;; esac')
    done = sh(tmp_path, script, "refresh && offers docker-ce && echo there; offers moby-engine; echo none")
    assert (done.returncode, done.stdout) == (1, "there\n")
    assert done.stderr.startswith("whether a repository has moby-engine is not known; nothing was changed: ")
    assert warning.removeprefix(">>> ") in done.stderr


@pytest.mark.parametrize(
    ("there", "chosen"),
    [("docker docker-ce moby-engine", "moby-engine"), ("docker docker-ce", "docker"), ("docker-ce", "docker-ce")],
)
def test_the_distributions_docker_comes_before_dockers_own(tmp_path: Path, there: str, chosen: str) -> None:
    script = resources.script("docker_package/install", work=(), dnf=4)
    choice = script[script.index("\nDOCKER=") : script.index("\ninstall() {")]
    offers = f'offers() {{ case " {there} " in *" $1 "*) ;; *) return 1 ;; esac; }}'
    assert sh(tmp_path, "PATH=/usr/local:$PATH # 900\n", f"{offers}{choice}\necho $DOCKER").stdout == f"{chosen}\n"


def test_a_docker_that_would_not_start_at_boot_is_a_failure(tmp_path: Path) -> None:
    script = resources.script("docker_package/install", work=(), dnf=4)
    stub(tmp_path, systemctl="exit 1")
    done = sh(
        tmp_path,
        resources.script("lib/lib") + "\n: 900\nDOCKER=moby-engine\n",
        script[script.index("! has systemctl") :],
    )
    assert (done.returncode, done.stderr) == (1, "moby-engine is installed, but docker.service could not be enabled\n")


def test_mounts_of_the_node_reach_a_dnf_5_without_locks(tmp_path: Path) -> None:
    script = resources.script("lib/lib") + resources.script("driver/dnf", pins=("a=1-1",), dnf=5)
    stub(tmp_path, unshare='echo "$*"', dnf="echo none")
    assert sh(tmp_path, script.replace(LOCKS5, str(tmp_path / "list")), "run_dnf x").stdout == "none\n"
    (tmp_path / "list").touch()
    done = sh(tmp_path, script.replace(LOCKS5, str(tmp_path / "list")), "run_dnf x")
    assert done.stdout.startswith("-m --propagation slave sh -c mount --bind /dev/null ") and done.stdout.endswith(
        " dnf x\n"
    )


def test_a_key_goes_with_gpuready_if_it_came_with_it(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{_OTHER}\n")
    calls = "look_ahead a; look_ahead a"
    assert toolkit(tmp_path, calls, dnf=f"grep -q {_OURS} keys || echo {_OURS} >>keys") == (0, "")
    assert _OURS in (tmp_path / "keys").read_text()
    assert toolkit(tmp_path, "KEY=another; forget_keys", dnf="") == (0, "")
    assert (tmp_path / "keys").read_text() == f"{_OTHER}\n"


def test_a_key_that_was_there_before_stays(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{_OURS}\n")
    assert toolkit(tmp_path, "look_ahead a; forget_keys", dnf="") == (0, "")
    assert toolkit(tmp_path, "look_ahead a", dnf="exit 1")[0] == 1
    assert (tmp_path / "keys").read_text() == f"{_OURS}\n"


def test_a_removal_that_cannot_be_tried_ends_the_script(tmp_path: Path) -> None:
    code, said = toolkit(tmp_path, "left=$(also_purged) || exit 1; echo went on >&2", dnf="echo Error: no; exit 1")
    assert (code, said) == (1, "dnf cannot remove the packages; nothing was changed: no \n")


def test_exclusions_of_dnf_conf_and_the_plugins_of_subscriptions_do_not_count(tmp_path: Path) -> None:
    asks = "case $* in *--disableplugin=subscription-manager,*--disableexcludes=all*) ;; *) exit 1 ;; esac"
    assert toolkit(tmp_path, "refresh && offered && install", dnf=asks) == (0, "")


def test_an_unreadable_database_is_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    assert toolkit(tmp_path, "before") == (1, "rpm's database cannot be read; nothing was changed\n")


#: What is not a lock of `a`: comments, exclusions, other packages, and what nobody can tell.
OTHERS = "# ours, since 2024\n!a-0:1-1.*\nab-0:1-1.*\na-b-0:1-1.*\na-b-1\n\nx-a-1-1.*\n"


def test_of_a_list_of_locks_only_those_of_the_package_change(tmp_path: Path) -> None:
    assert holds(tmp_path, "hold a", f"a-0:1-1.*\n{OTHERS} a-1-1\na-1") == f"{OTHERS}a-0:2-1.*\n"
    assert is_held("a", "2-1", f"{OTHERS}a-0:2-1.*\n")


@pytest.mark.parametrize("line", ["a-0:2-1.*", "a-2-1.x86_64", " a-2-1 "])
def test_a_lock_that_is_right_stays_as_it_is(tmp_path: Path, line: str) -> None:
    assert holds(tmp_path, "hold a; is_locked a 2-1 || exit 9", f"{OTHERS}{line}\n") == f"{OTHERS}{line}\n"
    assert is_held("a", "2-1", line)


@pytest.mark.parametrize("line", ["!a-0:2-1.*", "a-0:2-10.*", "a-0:2x1.*", "ba-2-1", "#a-2-1", "a-2-1.* x"])
def test_what_is_no_lock_of_this_version_does_not_count(tmp_path: Path, line: str) -> None:
    holds(tmp_path, "is_locked a 2-1 && exit 9 || exit 0", f"{line}\n")
    assert not is_held("a", "2-1", line)


def test_each_installed_version_is_locked_and_release_takes_all(tmp_path: Path) -> None:
    both = "kmod-1:5~rc-1.el9.*\nkmod-1:6+x-1.el9.*\n"
    assert holds(tmp_path, "hold kmod; hold kmod", None) == both
    (tmp_path / "again").mkdir()
    assert holds(tmp_path / "again", "release kmod a", f"{OTHERS}{both}a-3-1.*\n") == OTHERS
    (tmp_path / "none").mkdir()
    assert holds(tmp_path / "none", "release a", None) == ""


def has_list(listed: str, dnf: int, **packages: Package) -> NodeState:
    """A node with that list."""
    path = LOCKS if dnf == 4 else LOCKS5
    return NodeState(files={path: File(text=listed, mode=0o644, uid=0, gid=0, mtime=0)}, packages=packages)


def is_held(name: str, version: str, listed: str, dnf: int = 4, beside: str = "") -> bool:
    """What the plan makes of that list. ``beside``: another version of the package that is installed, too."""
    found = [Package(version=each, arch="x") for each in (version, beside) if each]
    state = has_list(listed, dnf, **dict(zip((name, f"{name}:x"), found, strict=False)))
    return (DNF if dnf == 4 else DNF5).held(name, found[0], state)


def table(name: str, version: str, comparator: str = "=", more: str = "") -> str:
    """An entry of dnf 5's file, as gpuready writes it."""
    return (
        f'\n[[packages]]\nname = "{name}"\n[[packages.conditions]]\nkey = "evr"\ncomparator = "{comparator}"\n'
        f'value = "{version}"\n{more}'
    )


HEAD = 'version = "1.0"\n'
#: As `dnf5 versionlock add` writes them, with dnf5 5.4.6.
WRITTEN = """
[[packages]]
name = "b"
comment = "Added by 'versionlock add' command on 2026-11-29 06:09:58"

[[packages.conditions]]
key = "evr"
comparator = "="
value = "1-1"
"""


def test_tables_of_other_packages_stay_as_they_are(tmp_path: Path) -> None:
    others = f"# ours\n{HEAD}{WRITTEN}{table('ab', '2-1')}# a comment\n{table('x', '3', '<')}[[packages]]\nname = 'a'\n"
    held = holds(tmp_path, "hold a; is_locked a 2-1 || exit 9", others + table("a", "1-1") + table("a", "3-1"), 5)
    assert held == others + table("a", "0:2-1")
    assert is_held("a", "2-1", held, 5) and not is_held("b", "2-1", held, 5)
    (tmp_path / "again").mkdir()
    assert holds(tmp_path / "again", "release a", held, 5) == others


_CONDITIONS = "[[packages.conditions]]\nkey = 'evr' # the version\ncomparator = '='\n  value = '2-1'\n"


@pytest.mark.parametrize(
    ("listed", "right"),
    [
        (table("a", "2-1"), True),
        (table("a", "9:2-1", "=="), True),
        (WRITTEN.replace('"b"', '"a"').replace("1-1", "2-1"), True),
        (f" [[ packages ]]\n# name = 'b'\n\tname='a'\n# value = '3-1'\n{_CONDITIONS}", True),
        (table("a", "2-1") + table("?", "2-1"), True),
        (table("a", "2-1") + "[[packages]]\nname = '*'\n", True),
        (table("*", "2-1") + table("[!a]*", "3-1"), True),
        (table("a", "2-1") + table("b[", "1-1") + table("[[c]x[", "1-1"), True),
        (table("a", "2-1") + table("a", "3-1"), False),
        (table("a", "2-1") + table("a*", "3-1"), False),
        (table("a", "2-10"), False),
        (table("ab", "2-1"), False),
        (table("a", "2-1", ">="), False),
        (table("a", "2-1") + table("a", "3", "<"), False),
        (table("a", "2-1") + table("*", "3", "<"), False),
        (table("a", "2-1", more='[[packages.conditions]]\nkey = "arch"\ncomparator = "="\nvalue = "x"\n'), False),
    ],
)
def test_script_and_plan_agree_on_what_a_lock_of_dnf_5_is(tmp_path: Path, listed: str, right: bool) -> None:
    holds(tmp_path, f"is_locked a 2-1 {'||' if right else '&&'} exit 9 || exit 0", HEAD + listed, 5)
    assert is_held("a", "2-1", HEAD + listed, 5) is right


def test_a_file_without_its_version_is_ignored_by_dnf_5_and_not_brought_to_life(tmp_path: Path) -> None:
    listed = table("a", "2-1") + table("b", "1-1")
    assert not is_held("a", "2-1", listed, 5)
    with pytest.raises(NotComparable, match=r'it has no version = "1\.0", so dnf ignores it'):
        DNF5.refuse_to_hold(has_list(listed, 5), ["a"])
    calls = (
        "is_locked a 2-1 && exit 8; said=$(can_hold a 2>&1) && exit 9; case $said in *ignores*) ;; *) exit 7 ;; esac"
    )
    assert holds(tmp_path, f"{calls}; (hold a); exit 0", listed, 5) == listed


@pytest.mark.parametrize("listed", [None, HEAD, f" packages = [ ]\n{HEAD}", f"\t{HEAD}# none\n", "# none\n"])
def test_a_file_of_dnf_5_begins_and_ends_without_locks(tmp_path: Path, listed: str | None) -> None:
    """What dnf leaves after `versionlock clear` has another order. Where nothing stays, no file does."""
    DNF5.refuse_to_hold(has_list(listed or "", 5), ["kmod"])
    both = holds(tmp_path, "hold kmod; hold kmod", listed, 5)
    assert both.endswith(table("kmod", "1:5~rc-1.el9") + table("kmod", "1:6+x-1.el9"))
    assert both.count("version =") == 1 and "packages = " not in both
    versions = ("6+x-1.el9", "5~rc-1.el9")
    assert is_held("kmod", versions[0], both, 5, versions[1]) and not is_held("kmod", versions[0], both, 5)
    (tmp_path / "again").mkdir()
    left = holds(tmp_path / "again", f"is_locked kmod '{' '.join(versions)} ' || exit 9; release kmod a", both, 5)
    assert "kmod" not in left and ("# none" in left or left == "")


def test_a_package_with_two_versions_was_held_if_both_were(tmp_path: Path) -> None:
    stub(tmp_path, rpm='for v in 5-1 6-1; do echo "$3" | sed "s/%{VERSION}-%{RELEASE}/$v/" | tr -d "\\n"; done')
    parts = (
        ("lib/lib", {}),
        ("lib/holds", {"dnf": 5}),
        ("driver/record", {"dnf": 5, "holds_before": f"{tmp_path}/was"}),
    )
    script = "".join(resources.script(name, **values) for name, values in parts) + "\n: 900\n"
    for locked, said in (("5-1", "free"), ("6-1", "hold")):
        (tmp_path / "list").write_text(HEAD + table("kmod", "1:5-1") + table("kmod", locked))
        done = sh(tmp_path, script.replace(LOCKS5, f"{tmp_path}/list"), "record_holds kmod")
        assert (tmp_path / "was").read_text() == f"kmod {said}\n", done.stderr
        (tmp_path / "was").unlink()


_BOTH = '[[packages.conditions]]\nkey = "evr"\ncomparator = "<"\nvalue = "3:571"\n'


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        (table("a*", "3:570", ">=", _BOTH), 'the entry "a*" can allow other versions of a beside a lock: remove'),
        (table("a", "3:590", "<"), 'the entry "a" can allow'),
        (table("a", "0:2-1", "!="), 'the entry "a" can allow'),
        (table("?", "2-1"), 'the entry "?" can allow'),
        ("packages = [{name = 'b', conditions = []}]\n", "gpuready cannot edit line 2 (packages = [{name = 'b', "),
        (
            '[[packages]]\nname = "a"\nconditions = [{key = "evr", comparator = "=", value = "2-1"}]\n',
            "cannot edit line 4",
        ),
        (table("a", "1-1") + "[site]\nowner = 'us'\n", "cannot edit line 9 ([site])"),
        (table("a", "1-1") + "  [site]\nowner = 'us'\n", "cannot edit line 9 ([site])"),
        (table("b", "1-1").replace('"b"', '"b"\ncomment = """\n[[packages]]\n"""'), "cannot edit line 5"),
        (table("b", "1-1").replace('"b"', r'"\u0061"'), r'cannot edit line 4 (name = "\u0061")'),
    ],
)
def test_plan_and_script_refuse_the_same_lists_and_change_nothing(tmp_path: Path, listed: str, why: str) -> None:
    with pytest.raises(NotComparable) as caught:
        DNF5.refuse_to_hold(has_list(HEAD + listed, 5), ["a"])
    said = str(caught.value).replace(LOCKS5, str(tmp_path / "list"))
    assert why in said
    (tmp_path / "said").write_text(f"{said}; nothing was changed\n")
    calls = f'said=$(can_hold a 2>&1); [ $? = 1 ] || exit 8; [ "$said" = "$(cat {tmp_path}/said)" ] || exit 9'
    assert holds(tmp_path, f"{calls}; (hold a); exit 0", HEAD + listed, 5) == HEAD + listed


def test_a_list_that_does_not_name_the_package_needs_no_release(tmp_path: Path) -> None:
    listed = f'"version" = "1.0"\n{table("b", "1-1")}'
    assert holds(tmp_path, "can_release kmod; release kmod", listed, 5) == listed
    with pytest.raises(NotComparable, match=r'cannot edit line 1 \("version" = "1\.0"\)'):
        DNF5.refuse_to_hold(has_list(listed, 5), [])


@pytest.mark.parametrize("dnf", [4, 5])
def test_a_list_that_cannot_be_read_is_not_written_anew(tmp_path: Path, dnf: int) -> None:
    listed = HEAD + table("b", "1-1") if dnf == 5 else OTHERS
    assert holds(tmp_path, "cat() { return 1; }; (hold a); [ $? = 1 ] || exit 9", listed, dnf) == listed


def test_what_could_not_be_held_is_not_installed(tmp_path: Path) -> None:
    stub(tmp_path, dnf=": >asked")
    (tmp_path / "list").write_text(HEAD + table("*", "3", "<"))
    values = {"packages": ("a",), "pins": ("a=1-1",), "version": "1", "hold": ("a",), "key": "", "dnf": 5}
    empty = dict.fromkeys(("old", "purge", "unhold", "work", "leave"), ())
    script = resources.script("toolkit/converge", **values, **empty).replace(LOCKS5, str(tmp_path / "list"))
    done = sh(tmp_path, script)
    assert (done.returncode, done.stderr[-22:]) == (1, "; nothing was changed\n"), done.stderr
    assert not (tmp_path / "asked").exists()
    driver = renderings("a")["driver/install (dnf 5)"]
    assert driver.index("\ncan_hold a\n") < driver.index("\nfetch ")


def test_the_driver_is_installed_from_the_judged_metadata_and_patience_stays(tmp_path: Path) -> None:
    script = resources.script("lib/lib") + resources.script("driver/dnf", pins=("a=1-1", "b-"), dnf=4)
    stub(tmp_path, dnf='echo "$*" >>asked; exit 200', rpm="echo b 1-1; [ $1 != -e ] || exit 1")
    done = sh(tmp_path, script, 'P=$PATIENT_UNTIL; install; [ "$P" = "$PATIENT_UNTIL" ] && echo same; remove_rest', 0)
    assert "same" in done.stdout and done.returncode == 1, "what cannot be removed ends nothing by itself"
    assert " install -C --allowerasing a-1-1" in (tmp_path / "asked").read_text()

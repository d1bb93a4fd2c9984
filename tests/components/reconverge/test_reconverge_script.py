"""Parts of the run on the node itself, alone: what it writes is JSON, whom it waits for, and that the hook is cheap."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.base import resources
from tests.lab import scale
from tests.system.faults import until

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
SCRIPT = resources.script(
    "reconverge/reconverge", mode="report", directory="/nowhere", target="", unit="", settings="", make="1", shadows=()
)
LIB = resources.script("lib/lib")
DEBIAN = "lib/x86_64-linux-gnu"


def part(name: str) -> str:
    """A part of the script."""
    return resources.script(f"reconverge/{name}")


def run(shell: str, script: str, *words: str) -> str:
    done = subprocess.run(
        [shell, "-c", script, "sh", *words], capture_output=True, text=True, check=False, timeout=scale.seconds(30)
    )
    assert done.stderr == ""
    return done.stdout


def quoted(text: str) -> str:
    """What the script makes of a text, as JSON reads it."""
    made: str = json.loads('"' + run("sh", part("result") + '\ntext "$1"', text) + '"')
    return made


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80))
def test_any_text_becomes_json(text: str) -> None:
    assert quoted(text) == "".join(c for c in text if " " <= c <= "~")


@pytest.mark.parametrize("tail", ['"', "\\"])
def test_a_long_text_is_cut_before_it_is_escaped(tail: str) -> None:
    assert quoted("x" * 999 + tail * 9) == "x" * 999 + tail


def test_rows_are_json(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_text('cdi.stale\t/a "b" is\told\ndriver.nodes\t\n')
    said = run("sh", part("result") + '\nrows "$1" check said', str(file))
    assert json.loads(f"[{said}]") == [
        {"check": "cdi.stale", "said": '/a "b" isold'},
        {"check": "driver.nodes", "said": ""},
    ]


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the kernel shows no locks")
def test_the_holder_of_dpkgs_lock_is_seen(tmp_path: Path) -> None:
    lock = tmp_path / "lock-frontend"
    script = part("packages").replace("/var/lib/dpkg/lock-frontend", str(lock)) + "\npackage_manager"
    script = script.replace("/var/lib/dpkg/lock ", f"{tmp_path}/none ")
    assert run("sh", script) == ""
    with lock.open("w") as file:
        assert run("sh", script) == ""
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert run("sh", script).split() == [str(os.getpid())]
    assert run("sh", script) == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_the_hook_asks_systemd_only_when_the_driver_is_another_one(shell: str, tmp_path: Path) -> None:
    """systemctl stands in for by one that leaves a mark: that it is called, and how often, is all that counts here."""
    for folder in ("lib", "systemd", "gpuready", "bin"):
        (tmp_path / folder).mkdir()
    libraries = ('/usr/lib64/"$l".so.*.*', f'{tmp_path}/lib/"$l".so.*.*')
    script = SCRIPT.replace("/run/systemd/system", f"{tmp_path}/systemd").replace(*libraries)
    (tmp_path / "script").write_text(script.replace("KEEP=/var/lib/gpuready", f"KEEP={tmp_path}/gpuready"))
    (tmp_path / "bin/systemctl").write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/calls\nexit 1\n')
    (tmp_path / "bin/systemctl").chmod(0o755)
    env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}

    def hook() -> None:
        done = subprocess.run([shell, tmp_path / "script", "hook"], capture_output=True, env=env, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def calls() -> list[str]:
        return (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []

    (tmp_path / "lib/libcuda.so.535.1").touch()
    hook()
    assert calls() == ["--no-block start gpuready-reconverge.service"], "nothing is known yet"
    stamp = run(shell, part("stamp").replace(*libraries) + '\nstamp; printf "%s\\n" "$NOW"')
    assert stamp.split()[-1].endswith("/lib/libcuda.so.535.1")
    (tmp_path / "gpuready/reconverge.stamp").write_text(stamp)
    hook()
    assert len(calls()) == 1
    (tmp_path / "lib/libcuda.so.535.1").rename(tmp_path / "lib/libcuda.so.550.1")
    hook()
    assert len(calls()) == 2
    (tmp_path / "systemd").rmdir()  # in a chroot, or an image that is being built
    hook()
    assert len(calls()) == 2


def begun(tmp_path: Path, directory: Path) -> str:
    """The beginning of a run that has found nothing yet, with what tells its result."""
    (work := tmp_path / "w").mkdir()
    for file in ("found", "before", "mended", "failed"):
        (work / file).touch()
    head = f"KEEP={tmp_path}; W={work}; MODE=mend; DIRECTORY={directory}; BEGAN=1; DRIVER=580.1"
    return "\n".join([LIB, head, part("result"), ""])


@pytest.mark.parametrize("name", [".gpuready.prom.new", "gpuready.prom"])
@pytest.mark.parametrize("kind", ["file", "directory", "nothing"])
def test_no_link_in_node_exporters_directory_is_followed(tmp_path: Path, name: str, kind: str) -> None:
    """Who may write into the directory may leave a link there; the script is root's."""
    for path in (folder := tmp_path / "textfile", other := tmp_path / "other"):
        path.mkdir()
    (other / "file").write_text("theirs\n")
    (folder / name).symlink_to({"file": other / "file", "directory": other, "nothing": other / "new"}[kind])
    assert run("sh", begun(tmp_path, folder) + "tell ok ''") == ""
    assert [(path.name, path.read_text()) for path in other.iterdir()] == [("file", "theirs\n")]
    assert [(path.name, path.is_symlink()) for path in folder.iterdir()] == [("gpuready.prom", False)]
    assert 'gpuready_reconverge_stale{check="cdi.spec"} 0\n' in (folder / "gpuready.prom").read_text()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "folder", [DEBIAN, f"{DEBIAN}/nvidia/tesla-535", "lib/aarch64-linux-gnu/nvidia/current", "lib64", "lib"]
)
def test_the_drivers_libraries_are_found(shell: str, folder: str, tmp_path: Path) -> None:
    """Where Debian (three packagings), RHEL and NVIDIA's own installer put them."""
    (tmp_path / folder).mkdir(parents=True)
    files = [tmp_path / folder / f"{library}.so.535.216.03" for library in ("libcuda", "libnvidia-ml")]
    for file in files:
        file.touch()
    script = part("stamp").replace("/usr/lib", f"{tmp_path}/lib").replace("/proc/driver", f"{tmp_path}/none")
    assert run(shell, script + '\nstamp; printf %s "$NOW"').split() == [str(file) for file in files]


def guarded(tmp_path: Path, then: str, seconds: float) -> str:
    """The guard, and what the run does after it."""
    return begun(tmp_path, Path("/nowhere")) + part("guard") + f"guard {seconds}\n{then}"


def test_a_driver_that_hangs_ends_in_a_result(tmp_path: Path) -> None:
    """What hangs ignores all signals that can be ignored."""
    script = guarded(tmp_path, "trap '' TERM HUP INT\nsleep 20", 0.3)
    done = subprocess.run(["sh", "-c", script], timeout=scale.seconds(30), check=False)
    assert done.returncode == -9
    said = json.loads((tmp_path / "reconverge.json").read_text())
    assert (said["outcome"], said["driver"], said["reason"][:27]) == ("failed", "580.1", "this run did not end within")


def in_session(session: int) -> list[str]:
    """The commands of a session's processes, but for those that ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = stat.read_text().partition(" (")[2].rpartition(") ")
            fields = rest.split()
            found += [name] if int(fields[3]) == session and fields[0] != "Z" else []
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no proc(5) to look for what is left")
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("then", ["echo ok", "sleep 0.2; watched=$DOG; unguard; guard 900; echo ok; exit 3"])
def test_nothing_outlives_a_run(shell: str, then: str, tmp_path: Path) -> None:
    """By hand nobody ends what is left: an ssh would wait for it, and its late word would be a wrong one."""
    process = subprocess.Popen(
        [shell, "-c", guarded(tmp_path, then, 900)], start_new_session=True, stdout=subprocess.PIPE
    )
    out, _ = process.communicate(timeout=scale.seconds(20))
    assert (out, process.returncode) == (b"ok\n", 3 if "exit 3" in then else 0)
    until(lambda: not in_session(process.pid), 10, "the processes of the run go")
    assert not (tmp_path / "reconverge.json").exists()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("words", [[], ["--help"], ["Run"]])
def test_an_unknown_word_prints_the_usage(shell: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "script").write_text(SCRIPT)
    done = subprocess.run([shell, tmp_path / "script", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("usage: ") and "systemctl start gpuready-reconverge.service" in done.stderr


def test_a_user_other_than_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
    (tmp_path / "id").chmod(0o755)
    (tmp_path / "script").write_text(SCRIPT)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["sh", tmp_path / "script", "run"], capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stderr) == (1, "run as root\n")

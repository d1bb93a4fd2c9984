"""As whom an environment's Python is run, by the shell functions that decide it, on real files of several owners."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuready.components.wheels.state import environment
from gpuready.core import resources
from gpuready.core.records import Records
from gpuready.core.records import unmarked as records
from tests.lab import scale
from tests.lab.processes import wait_gone

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of several owners")
PACKAGES = "lib/python3.11/site-packages"
ALICE = 12345


@pytest.fixture
def env() -> Iterator[Path]:
    """A venv of root's in a directory that everybody may enter, its Python a program that says who runs it."""
    with tempfile.TemporaryDirectory() as place:  # below /tmp, which is sticky
        Path(place).chmod(0o755)
        made = Path(place) / "env"
        (made / PACKAGES / "torch").mkdir(parents=True)
        (made / PACKAGES / "torch" / "__init__.py").touch()
        (made / "bin").mkdir()
        (made / "bin" / "python").write_text("#!/bin/sh\nid -u\n", "utf-8")
        (made / "bin" / "python").chmod(0o755)
        (made / "pyvenv.cfg").touch()
        yield made


def ran(script: str, *words: object, shell: str = "sh") -> subprocess.CompletedProcess[str]:
    argv = [shell, "-c", script, "-", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=scale.seconds(60), check=True)


def asked(env: Path, shell: str = "sh") -> str:
    """Who ran its Python, or why nobody did."""
    script = 'if usable "$1"; then as_owner "$1/bin/python"; else echo "$WHY"; fi\n'
    done = ran(f"{resources.script('wheels/env')}\n{script}", env, shell=shell)
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.parametrize("shell", [s for s in ("dash", "bash") if shutil.which(s)])
def test_root_runs_an_environment_of_roots_and_its_owner_any_other(env: Path, shell: str) -> None:
    (env / "lib64").symlink_to("lib")
    assert asked(env, shell) == "0"
    link = env.parent / "train"
    link.symlink_to("env")
    assert asked(link, shell) == "0"
    subprocess.run(["chown", "-R", str(ALICE), env], check=True)
    assert asked(env, shell) == asked(link, shell) == str(ALICE)


@pytest.mark.fault("foreign-environment")
@pytest.mark.parametrize(
    "path", [".", "bin", "bin/python", "lib", PACKAGES, f"{PACKAGES}/torch", f"{PACKAGES}/torch/__init__.py", ".."]
)
@pytest.mark.parametrize("mode", [0o2775, 0o757])
def test_root_runs_nothing_where_another_may_write(env: Path, path: str, mode: int) -> None:
    (env / path).chmod(mode)
    assert f"others can change {(env / path).resolve()} (root:root, mode {mode:o})" in asked(env)


def test_a_file_is_no_environment_and_the_one_that_is_meant_is_named(env: Path) -> None:
    said = "is a file on this node; env names the directory of an environment"
    assert asked(env / "bin/python") == f"{env}/bin/python {said}: {env}"
    assert asked(env / "pyvenv.cfg") == f"{env}/pyvenv.cfg {said}"
    assert asked(env / "none").startswith(f"there is no {env}/none on this node; make it first")


def test_a_sticky_directory_is_safe_on_the_way_and_not_inside(env: Path) -> None:
    env.parent.chmod(0o1777)
    assert asked(env) == "0"
    (env / PACKAGES).chmod(0o1777)
    assert f"others can change {env / PACKAGES} " in asked(env)


@pytest.mark.fault("foreign-environment")
@pytest.mark.parametrize("path", ["bin/python", "lib", f"{PACKAGES}/torch/__init__.py", ".."])
def test_root_runs_nothing_that_is_anothers(env: Path, path: str) -> None:
    os.chown(env / path, ALICE, 0)
    assert f"others can change {(env / path).resolve()} " in asked(env)


@pytest.mark.fault("foreign-environment")
def test_links_and_paths_that_lead_to_what_is_anothers(env: Path) -> None:
    theirs = env.parent / "alice"
    (theirs / "bin").mkdir(parents=True)
    shutil.move(env / "bin" / "python", theirs / "bin" / "python3.11")  # the file itself is root's
    os.chown(theirs, ALICE, 0)
    (env / "bin" / "python").symlink_to(theirs / "bin" / "python3.11")
    assert f"others can change {theirs} " in asked(env)
    (env / "bin" / "python").unlink()
    shutil.move(theirs / "bin" / "python3.11", env / "bin" / "python")
    assert asked(env) == "0"
    # As pip writes it where somebody works on a package (pip install --editable).
    (env / PACKAGES / "editable.pth").write_text(f"import site\n{theirs}\n", "utf-8")
    assert f"others can change {theirs} " in asked(env)
    (env / PACKAGES / "editable.pth").unlink()
    (env / PACKAGES / "triton").symlink_to(theirs)
    assert f"others can change {theirs} " in asked(env)
    (env / PACKAGES / "triton").unlink()
    # A link that is another's can lead elsewhere in a moment.
    (env.parent / "link").symlink_to("env")
    os.chown(env.parent / "link", ALICE, 0, follow_symlinks=False)
    assert f"others can change {env.parent / 'link'} " in asked(env.parent / "link")


# --- what hangs ---------------------------------------------------------------------------------------------------


def within(limit: str, command: str) -> tuple[int, str]:
    """Exit status and output of what is run with a limit, in seconds."""
    script = resources.script("lib/prelude") + resources.script("lib/within")
    script += f'o=$(mktemp); within {limit} "$o" {command}; echo $?; cat "$o"; rm "$o"\n'
    rc, _, out = ran(script).stdout.partition("\n")
    return int(rc), out


def test_a_run_with_a_limit_ends_or_is_killed_with_its_children() -> None:
    assert within("10", "sh -c 'echo said; echo more >&2; exit 3'") == (3, "said\nmore\n")
    hang = """sh -c 'trap "" TERM; sleep 987 & echo $!; sleep 986'"""
    rc, out = within("0.5", hang)
    assert rc == 124
    wait_gone([int(out)], 5)  # a signal that was sent takes its time


def test_an_environment_that_hangs_is_reported_and_the_next_is_checked(env: Path) -> None:
    """A reader of a pipe without a writer waits for ever, like one of a file system whose server is gone."""
    shutil.copytree(env, other := env.parent / "other")
    os.mkfifo(env / PACKAGES / "hangs.pth")
    script = resources.script("wheels/look", program="", environments=[(str(env), "{}"), (str(other), "{}")])
    assert script.count("within 70 ") == 1
    runs = Records(records(ran(script.replace("within 70 ", "within 1 ")).stdout)).runs
    assert runs["env0"][0] == 124 and "no answer within a minute" in environment(*runs["env0"], "").trouble
    assert runs["env1"] == (0, "0\n")
    assert (runs["users0"], runs["users1"]) == ((0, ""), (0, ""))


def test_processes_that_do_not_tell_what_they_use_count_as_users(env: Path) -> None:
    script = resources.script("wheels/env") + 'using() { echo "python3 (pid 1)"; sleep 985; }\nenv_users "$1"\n'
    assert script.count('within 40 "$u"') == 1
    told = environment(0, "{}", ran(script.replace('within 40 "$u"', 'within 0.5 "$u"'), env).stdout).users
    assert told[0] == "python3 (pid 1)" and "/proc gave no answer" in told[1]

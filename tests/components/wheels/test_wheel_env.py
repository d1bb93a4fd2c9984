"""As whom an environment's Python is run, by the shell functions that decide it, on real files of several owners."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.base.records import Records
from gpuready.base.records import unmarked as records
from gpuready.components.wheels.state import environment
from tests.lab import scale
from tests.lab.processes import wait_gone
from tests.operations.gpu_node import NO_NAMESPACES

pytestmark = [pytest.mark.long, pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of several owners")]
PACKAGES = "lib/python3.11/site-packages"
ALICE, NOBODY = 12345, 65534


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


def ran(script: str, *words: object, shell: str = "sh", **environ: str) -> subprocess.CompletedProcess[str]:
    argv = [shell, "-c", resources.script("lib/prelude") + script, "-", *map(str, words)]
    limit = scale.seconds(60)
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=limit, check=True, env={**os.environ, **environ}
    )


def asked(env: Path, shell: str = "sh") -> str:
    """Who ran its Python, or why nobody did."""
    script = 'if usable "$1"; then as_owner 30 "$1/bin/python"; else echo "$WHY"; fi\n'
    done = ran(f"{resources.script('wheels/env')}\n{script}", env, shell=shell)
    assert done.stderr == ""
    return done.stdout.strip()


def pip(env: Path, *loads: object, shell: str = "sh") -> str:
    """Who would run pip there, or why nobody does, if its Python tells that it loads this, too."""
    told = [f"       12:\tinitialize program: {env}/bin/python", f"searches {env}/{PACKAGES}", *map(str, loads)]
    script = """as_owner() { [ "$2" != env ] || printf '%s\\n' "$TOLD"; }
if installable "$1"; then echo "$OWNER"; else echo "$WHY"; fi\n"""
    done = ran(f"{resources.script('wheels/env')}\n{script}", env, shell=shell, TOLD="\n".join(told))
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.fault("foreign-environment")
@pytest.mark.parametrize("shell", [s for s in ("dash", "bash") if shutil.which(s)])
def test_nobody_runs_an_environment_of_roots_and_its_owner_any_other(env: Path, shell: str) -> None:
    (env / "lib64").symlink_to("lib")
    assert (asked(env, shell), pip(env, shell=shell)) == (str(NOBODY), "0:0")
    link = env.parent / "train"
    link.symlink_to("env")
    assert (asked(link, shell), pip(link, shell=shell)) == (str(NOBODY), "0:0")
    (env / "bin" / "python").write_text("#!/bin/sh\nid -G\n", "utf-8")
    assert asked(env, shell) == str(NOBODY), "it has none of root's groups"
    subprocess.run(["chown", "-R", f"{ALICE}:{ALICE}", env], check=True)
    assert asked(env, shell) == asked(link, shell) == str(ALICE)


def test_nobody_sees_of_a_directory_of_roots_only_the_environment_and_its_python(env: Path) -> None:
    """As with /root/venv, made by a Python that lies below /root, too."""
    base, place = env.parent / "some" / "base", env.parent
    (base / "bin").mkdir(parents=True)
    (env / "bin" / "python").rename(base / "bin" / "python3.11")
    (base.parent / "current").symlink_to(base)
    (env / "bin" / "python").symlink_to(base.parent / "current" / "bin" / "python3.11")
    (place / "secret").write_text("secret", "utf-8")
    looks = f'for f in {place}/*/* {place}/secret {env}/lib {base}/bin; do [ ! -e "$f" ] || echo "$f"; done'
    (base / "bin" / "python3.11").write_text(f"#!/bin/sh\nid -u\n{looks}\n", "utf-8")
    place.chmod(0o700)
    assert asked(env).splitlines() == [str(NOBODY), f"{env}/lib", f"{base}/bin"]
    assert sorted(each.name for each in place.iterdir()) == ["env", "secret", "some"]


@pytest.mark.parametrize(("path", "mode"), [("bin", 0o700), ("pyvenv.cfg", 0o600), (PACKAGES, 0o700)])
def test_what_nobody_can_read_is_named(env: Path, path: str, mode: int) -> None:
    (env / path).chmod(mode)
    assert f"who cannot read {env} or the Python that it needs: chmod -R go+rX {env}" in asked(env)


@pytest.mark.fault("foreign-environment")
@pytest.mark.parametrize(
    "path", [".", "bin", "bin/python", "lib", PACKAGES, f"{PACKAGES}/torch", f"{PACKAGES}/torch/__init__.py", ".."]
)
@pytest.mark.parametrize("mode", [0o2775, 0o757])
def test_root_runs_nothing_where_another_may_write(env: Path, path: str, mode: int) -> None:
    (env / path).chmod(mode)
    assert f"others can change {(env / path).resolve()} (root:root, mode {mode:o})" in pip(env)
    assert asked(env) == str(NOBODY)


def test_a_file_is_no_environment_and_the_one_that_is_meant_is_named(env: Path) -> None:
    said = "is a file on this node; env names the directory of an environment"
    assert asked(env / "bin/python") == f"{env}/bin/python {said}: {env}"
    assert asked(env / "pyvenv.cfg") == f"{env}/pyvenv.cfg {said}"
    assert asked(env / "none").startswith(f"there is no {env}/none on this node; make it first")


def test_a_sticky_directory_is_safe_on_the_way_and_not_inside(env: Path) -> None:
    env.parent.chmod(0o1777)
    assert pip(env) == "0:0"
    assert f"others can change {env.parent}/. " in pip(env, f"searches {env.parent}/python311.zip")  # not there yet
    (env / PACKAGES).chmod(0o1777)
    assert f"others can change {env / PACKAGES} " in pip(env)


@pytest.mark.fault("foreign-environment")
@pytest.mark.parametrize("path", ["bin/python", "lib", f"{PACKAGES}/torch/__init__.py", ".."])
def test_root_runs_nothing_that_is_anothers(env: Path, path: str) -> None:
    os.chown(env / path, ALICE, 0)
    assert f"others can change {(env / path).resolve()} " in pip(env)


@pytest.mark.fault("foreign-environment")
def test_links_and_paths_that_lead_to_what_is_anothers(env: Path) -> None:
    theirs = env.parent / "alice"
    (theirs / "bin").mkdir(parents=True)
    shutil.move(env / "bin" / "python", theirs / "bin" / "python3.11")  # the file itself is root's
    os.chown(theirs, ALICE, 0)
    (env / "bin" / "python").symlink_to(theirs / "bin" / "python3.11")
    assert f"others can change {theirs} " in pip(env)
    (env / "bin" / "python").unlink()
    shutil.move(theirs / "bin" / "python3.11", env / "bin" / "python")
    assert pip(env) == "0:0"
    (env / PACKAGES / "triton").symlink_to(theirs)
    assert f"others can change {theirs} " in pip(env)
    (env / PACKAGES / "triton").unlink()
    # A link that is another's can lead elsewhere in a moment.
    (env.parent / "link").symlink_to("env")
    os.chown(env.parent / "link", ALICE, 0, follow_symlinks=False)
    assert f"others can change {env.parent / 'link'} " in pip(env.parent / "link")


@pytest.mark.fault("foreign-environment")
@pytest.mark.parametrize(
    "line",
    [
        "searches {}",
        "       12:\t  trying file={}/libm.so.6",
        "       12:\tcalling init: {}/_json.so",
        "       12:\tinitialize program: {}/python",
        "# code object from '{}/json.pyc'",
        "# code object from {}/json.py",
        "# zipimport: found 12 names in '{}/python311.zip'",
    ],
)
def test_what_python_loads_from_another_users_place_is_found(env: Path, line: str) -> None:
    theirs = env.parent / "alice"
    theirs.mkdir()
    assert pip(env, line.format(theirs)) == "0:0"
    os.chown(theirs, ALICE, 0)
    assert f"others can change {theirs} " in pip(env, line.format(theirs))


@pytest.mark.parametrize("line", ['# code object from "/home/al\'ice/json.pyc"', "       1:\t  trying file=libm.so.6"])
def test_a_path_that_cannot_be_told_is_not_trusted(env: Path, line: str) -> None:
    assert "loads from a place that has no whole name" in pip(env, line)


def test_a_python_that_is_another_program_is_not_trusted(env: Path) -> None:
    script = resources.script("wheels/env") + '\nusable "$1" && provable "$1"; echo "$WHY"\n'
    assert "bin/python does not tell what it loads" in ran(script, env).stdout


# --- another user's code, with a real Python ----------------------------------------------------------------------

BASE = Path(sys.base_prefix)
STDLIB = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
#: Who ran alice's code goes to the file `ran`.
SAYS = "import os\nwith open({ran!r}, 'a') as f:\n    f.write(f'{{os.geteuid()}}\\n')\n"
WHO = "import os; print(os.geteuid())"
FINDER = """import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, {theirs!r}) if name == "theirs" else None
sys.meta_path.append(Finder)
"""


def copied_python(base: Path) -> Path:
    """Copy the Python of the tests to ``base``."""
    program = (BASE / "bin" / "python3").resolve()
    ignored = shutil.ignore_patterns("__pycache__", "site-packages", "dist-packages", "test", "idlelib", "config-*")
    shutil.copytree(STDLIB, base / "lib" / STDLIB.name, ignore=ignored, dirs_exist_ok=True)
    (base / "bin").mkdir(exist_ok=True)
    return Path(shutil.copy(program, base / "bin" / program.name))


@dataclass
class Foreign:
    """An environment of root's with a real Python; ``alice``: what is in there belongs to her in the end."""

    env: Path
    alice: Path

    @property
    def site(self) -> Path:
        return self.env / "lib" / STDLIB.name / "site-packages"

    def relative(self) -> None:
        """A line of a .pth file that begins with no slash."""
        (self.site / "b.pth").write_text(f"{os.path.relpath(self.alice, self.site)}\nimport theirs\n", "utf-8")

    def finder(self) -> None:
        """As setuptools makes one for pip install -e."""
        (self.site / "__finder.py").write_text(FINDER.format(theirs=str(self.alice / "theirs.py")), "utf-8")
        (self.site / "c.pth").write_text("import __finder; import theirs\n", "utf-8")

    def copied(self) -> None:
        """python -m venv --copies, by a Python of alice's: its standard library stays where it is."""
        self._use(self.alice / "python")
        library = self.alice / "python" / "lib" / STDLIB.name
        with (library / "sysconfig.py").open("a", encoding="utf-8") as file:
            file.write((self.alice / "theirs.py").read_text("utf-8"))
        (self.site / "d.pth").write_text("import sysconfig\n", "utf-8")

    def hidden(self) -> None:
        """The same, where only root and alice can see it: Python takes another standard library as nobody."""
        self.copied()
        self.alice.chmod(0o700)

    def shared(self) -> None:
        """The packages beside the base Python, a Python of root's, belong to alice."""
        base = self.env.parent / "base"
        self._use(base)
        shutil.move(self.alice, base / "lib" / STDLIB.name / "site-packages")
        self.alice = base / "lib" / STDLIB.name / "site-packages"
        (self.alice / "e.pth").write_text("import theirs\n", "utf-8")
        (self.env / "pyvenv.cfg").write_text(f"home = {base}/bin\ninclude-system-site-packages = true\n", "utf-8")

    def _use(self, base: Path) -> None:
        """Make a copied Python that of the environment."""
        program = copied_python(base)
        (self.env / "bin" / "python").unlink()
        shutil.copy(program, self.env / "bin" / "python")
        (self.env / "pyvenv.cfg").write_text(f"home = {base}/bin\n", "utf-8")

    def run(self) -> tuple[list[str], str]:
        """Let a program of gpuready's run there, then pip: as whom alice's code ran, and what pip says."""
        ran = self.env.parent / "ran"
        ran.touch()
        ran.chmod(0o666)
        subprocess.run(["chown", "-R", str(ALICE), self.alice], check=True)
        script = """run_in usable "$1" 60 /dev/null
if installable "$1"; then pip "$1" list 2>&1; else echo "$WHY"; fi\n"""
        script = f"{resources.script('lib/prelude')}\n{resources.script('wheels/env')}\n{script}"
        done = subprocess.run(["sh", "-c", script, "-", self.env], capture_output=True, text=True,
                              timeout=scale.seconds(120), check=False)  # fmt: skip
        return ran.read_text("utf-8").split(), done.stdout + done.stderr


@pytest.fixture
def foreign(env: Path) -> Foreign:
    shutil.rmtree(env)
    made = Foreign(env, env.parent / "alice")
    made.alice.mkdir()
    (made.alice / "theirs.py").write_text(SAYS.format(ran=str(env.parent / "ran")), "utf-8")
    (made.site / "pip").mkdir(parents=True)
    (made.site / "pip" / "__init__.py").touch()
    (made.site / "pip" / "__main__.py").write_text("import os; print('pip as', os.geteuid())\n", "utf-8")
    (env / "bin").mkdir()
    (env / "bin" / "python").symlink_to((BASE / "bin" / "python3").resolve())
    (env / "pyvenv.cfg").write_text(f"home = {BASE}/bin\n", "utf-8")
    return made


@pytest.mark.fault("foreign-environment")
@pytest.mark.parametrize("way", ["way-relative", "way-finder", "way-copied", "way-hidden", "way-shared"])
def test_code_of_another_user_runs_as_nobody_and_never_in_pip(foreign: Foreign, way: str) -> None:
    getattr(foreign, way.removeprefix("way-"))()
    ran, told = foreign.run()
    assert {*ran} == (set() if way == "way-hidden" else {str(NOBODY)}), told
    if way in ("way-copied", "way-hidden"):
        assert f"others can change {foreign.alice}" in told and "so root runs no pip there" in told
    else:
        assert told.strip() == "pip as 0"


def test_a_conda_prefix_is_an_environment_with_its_own_standard_library(foreign: Foreign) -> None:
    """Laid out as conda does it: conda-meta, no pyvenv.cfg, bin/python a link to the program beside it."""
    (foreign.env / "pyvenv.cfg").unlink()
    (foreign.env / "bin" / "python").unlink()
    (foreign.env / "bin" / "python").symlink_to(copied_python(foreign.env).name)
    assert foreign.run()[1] == "it is neither a venv nor a conda environment\n" * 2
    (foreign.env / "conda-meta").mkdir()
    assert foreign.run() == ([], "pip as 0\n")
    (module := foreign.env / "lib" / STDLIB.name / "json" / "__init__.py").chmod(0o666)
    assert f"others can change {module} (root:root, mode 666), so root runs no pip there" in foreign.run()[1]
    subprocess.run(["chown", "-R", str(ALICE), foreign.env], check=True)
    script = f"{resources.script('wheels/env')}\ninstallable $1 && as_owner 30 $1/bin/python -IS -c '{WHO}'"
    assert ran(script, foreign.env).stdout == f"{ALICE}\n"


# --- a node where no namespace can be made, such as a container without CAP_SYS_ADMIN -----------------------------


def without_namespaces(env: Path, does: str) -> str:
    """What runs there prints."""
    script = (
        f"{resources.script('lib/prelude')}\n{resources.script('wheels/env')}\nunshare --mount true && exit 9\n{does}"
    )
    done = subprocess.run([*NO_NAMESPACES, "-c", script, "-", env], capture_output=True, text=True,
                          timeout=scale.seconds(60), check=False)  # fmt: skip
    assert done.stderr.splitlines() == ["unshare: unshare failed: Operation not permitted"], done
    return done.stdout


def test_without_namespaces_root_runs_no_more_than_with_them(env: Path) -> None:
    runs = 'if usable "$1"; then as_owner 30 "$1/bin/python"; else echo "$WHY"; fi'
    assert without_namespaces(env, runs) == f"{NOBODY}\n"
    env.parent.chmod(0o700)
    assert f"its Python runs as nobody, who cannot read {env}" in without_namespaces(env, runs)
    env.parent.chmod(0o755)
    subprocess.run(["chown", "-R", str(ALICE), env], check=True)
    assert without_namespaces(env, runs) == f"{ALICE}\n"


def test_without_namespaces_a_program_ends_at_its_limit(env: Path) -> None:
    (env / "bin" / "python").write_text("#!/bin/sh\nsleep 1000\n", "utf-8")
    limit = f"{scale.seconds(2):.0f}"
    assert without_namespaces(env, f'usable "$1"; as_owner {limit} "$1/bin/python" || echo "rc=$?"') == "rc=124\n"


def test_without_a_change_of_user_nothing_runs(env: Path) -> None:
    script = f"""{resources.script("lib/prelude")}\n{resources.script("wheels/env")}
if usable "$1"; then as_owner 30 "$1/bin/python"; else echo "$WHY"; fi"""
    words = ["setpriv", "--bounding-set=-setuid,-setgid", "--inh-caps=-setuid,-setgid", "sh", "-c", script, "-", env]
    done = subprocess.run(words, capture_output=True, text=True, timeout=scale.seconds(60), check=False)
    assert done.stdout.startswith(
        f"{env} belongs to root, so its Python runs as nobody, which this node does not allow"
    )
    assert "setpriv: set" in done.stdout and "CAP_SETUID" in done.stdout


# --- what it may do meanwhile --------------------------------------------------------------------------------------

FLOODS = """#!/bin/sh
setsid sh -c 'sleep SECONDS & exec sleep SECONDS' &
while :; do echo 0123456789012345678901234567890123456789012345678901234567890123456789; done
"""
#: A number of seconds that no other run of these tests waits, by which its processes are found.
SECONDS = str(10_000_000 + os.getpid())
FILLS = "#!/bin/sh\nhead -c 2000000000 /dev/zero >{}/full\n"


@pytest.mark.fault("venv-fills-run")
@pytest.mark.parametrize("owner", [0, ALICE])
def test_a_program_that_prints_for_ever_is_cut_and_leaves_nothing_behind(env: Path, owner: int) -> None:
    (env / "bin" / "python").write_text(FLOODS.replace("SECONDS", SECONDS), "utf-8")
    subprocess.run(["chown", "-R", str(owner), env], check=True)
    script = 'usable "$1"; as_owner 600 "$1/bin/python" | wc -c; echo; pgrep -fx "sleep SECONDS" || true\n'
    script = script.replace("SECONDS", SECONDS)
    printed, *left = ran(f"{resources.script('wheels/env')}\n{script}", env).stdout.split()
    assert (int(printed), left) == (1 << 20, [])


@pytest.mark.fault("venv-fills-run")
def test_a_file_that_it_writes_has_a_limit(env: Path) -> None:
    room = env.parent / "room"
    room.mkdir()
    room.chmod(0o777)
    (env / "bin" / "python").write_text(FILLS.format(room), "utf-8")
    script = 'usable "$1"; LARGEST=2048; as_owner 60 "$1/bin/python" || echo "rc=$?"\n'
    assert "rc=" in ran(f"{resources.script('wheels/env')}\n{script}", env).stdout
    assert (room / "full").stat().st_size == 1 << 20


def test_a_program_without_an_end_is_ended_at_its_limit(env: Path) -> None:
    (env / "bin" / "python").write_text(
        "#!/bin/sh\ntrap '' TERM\necho begun\nsleep SECONDS\n".replace("SECONDS", SECONDS)
    )
    script = 'usable "$1"; as_owner LIMIT "$1/bin/python" || echo "rc=$?"; pgrep -fx "sleep SECONDS" || true\n'
    script = script.replace("LIMIT", f"{scale.seconds(2):.0f}").replace("SECONDS", SECONDS)
    begun, *_, rc = ran(f"{resources.script('wheels/env')}\n{script}", env).stdout.split()  # the shell adds "Killed"
    assert (begun, rc) == ("begun", "rc=137")


@pytest.mark.fault("wheel-record-link")
@pytest.mark.parametrize("there", ["fifo", "link", "file", "two lines", "half installed"])
def test_pips_record_is_read_without_what_its_owner_put_in_its_place(env: Path, there: str) -> None:
    info, kept = env / PACKAGES / "torch-1.dist-info", env.parent / "kept"
    info.mkdir()
    (info / "RECORD").touch()
    (path := info / "direct_url.json").write_text("abc", "utf-8")
    if there == "fifo":
        path.unlink()
        os.mkfifo(path)
    elif there == "half installed":
        (info / "RECORD").unlink()
    elif there == "two lines":
        info = info.rename(env / PACKAGES / "a\n{}.dist-info")
    elif there != "file":
        path.rename(env.parent / "secret")
        path.symlink_to(env.parent / "secret")
    values = {"file": "/none/a/x.whl", "record": str(kept), "said": "said", "sha256": "abc", "places": (info.parent,)}
    script = resources.script("wheels/install", env=str(env), dist="torch", pip="", replaces="", keep="1", **values)
    done = subprocess.run(
        ["sh", "-c", script.replace('installable "$ENV"', "true")],
        capture_output=True, text=True, timeout=scale.seconds(20),
    )  # fmt: skip
    assert (done.returncode, kept.exists()) == ((0, True) if there == "file" else (1, False)), done.stderr
    if there in ("two lines", "half installed"):
        return
    # The probe sends what it reads to the controller.
    probe = resources.root() / "probe" / "probe.sh.j2"
    text = probe.read_text("utf-8")
    function = text[text.index("wheels() {") : text.index("for f in /var/lib/gpuready/wheel-*; do\n  [ -e")]
    (env.parent / "wheel-1").write_text(f"{info}\n{{}}\n", "utf-8")
    script = function.replace("/var/lib/gpuready", str(env.parent)) + "wheels\n"
    expected = {"file": f"{info}\tabc\n", "link": f"{info}\t\n"}
    assert ran(script).stdout == expected.get(there, "")


# --- what hangs ---------------------------------------------------------------------------------------------------


def within(limit: str, command: str) -> tuple[int, str]:
    """Exit status and output of what is run with a limit, in seconds."""
    script = resources.script("lib/within")
    script += f'o=$(mktemp); within {limit} "$o" {command}; echo $?; cat "$o"; rm "$o"\n'
    rc, _, out = ran(script).stdout.partition("\n")
    return int(rc), out


def test_a_run_with_a_limit_ends_or_is_killed_with_its_children() -> None:
    assert within("10", "sh -c 'echo said; echo more >&2; exit 3'") == (3, "said\nmore\n")
    hang = """sh -c 'trap "" TERM; sleep 987 & echo $!; sleep 986'"""
    rc, out = within(f"{scale.seconds(3):.0f}", hang)
    assert rc == 124
    wait_gone([int(out)], 5)  # a signal that was sent takes its time


def test_an_environment_that_hangs_is_reported_and_the_next_is_checked(env: Path) -> None:
    """A reader of a pipe without a writer waits for ever, like one of a file system whose server is gone."""
    shutil.copytree(env, other := env.parent / "other")
    (env / "bin" / "python").write_text("#!/bin/sh\nread -r _ <hangs\n".replace("hangs", str(env / "hangs")), "utf-8")
    os.mkfifo(env / "hangs", 0o644)
    script = resources.script("wheels/look", program="", environments=[(str(env), "{}"), (str(other), "{}")])
    assert script.count("within 70 ") == script.count("\nlook() {") == 1
    script = script.replace("within 70 ", f"within {scale.seconds(3):.0f} ").replace(
        "\nlook() {", "\nprovable() { :; }\nlook() {"
    )
    runs = Records(records(ran(script).stdout)).runs
    assert runs["env0"][0] == 124 and "no answer within a minute" in environment(*runs["env0"], "").trouble
    assert runs["env1"] == (0, f"{NOBODY}\n")
    assert (runs["users0"], runs["users1"]) == ((0, ""), (0, ""))


def test_processes_that_do_not_tell_what_they_use_count_as_users(env: Path) -> None:
    script = resources.script("wheels/env") + 'using() { echo "python3 (pid 1)"; sleep 985; }\nenv_users "$1"\n'
    assert script.count('within 40 "$u"') == 1
    script = script.replace('within 40 "$u"', f'within {scale.seconds(3):.0f} "$u"')
    told = environment(0, "{}", ran(script, env).stdout).users
    assert told[0] == "python3 (pid 1)" and "/proc gave no answer" in told[1]

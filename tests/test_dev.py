"""Every verb of ./dev runs once, as small as it can be, in a copy of the checkout, so that no verb rots unseen."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
#: `test --all` is what CI runs; `test --kubernetes` takes long.
_LONG = {"test --all", "test --kubernetes"}
VERBS = set(re.findall(r"^\./dev (\S.*?)  ", (ROOT / "dev").read_text("utf-8"), re.M)) - _LONG
_LEFT = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "site", "dist")
_TOOLS = pytest.mark.skipif(os.geteuid() != 0, reason="root installs the tools of this verb")


class Smoke(NamedTuple):
    """A command of ./dev, and what shows that it did its work: words that it prints, or a file that it makes."""

    words: str
    says: str = ""
    makes: str = ""


SMOKES = {
    "demo": pytest.param(
        Smoke("demo", "demo: converged, converged again with nothing to do, verified"),
        marks=[pytest.mark.lab, pytest.mark.promise],
    ),
    "unit": pytest.param(Smoke("unit -k test_changelog", " passed"), marks=pytest.mark.long),
    "test": Smoke("test -q tests/test_changelog.py", " passed"),
    "lint": pytest.param(Smoke("lint", "shellcheck: no findings"), marks=pytest.mark.long),
    "mutants": Smoke("mutants --list", "lock-mode"),
    "docs": pytest.param(Smoke("docs", makes="site/index.html"), marks=pytest.mark.long),
    "release DIR": pytest.param(Smoke("release dist", "  simple/gpuready/index.html"), marks=pytest.mark.long),
    "bench [N]": pytest.param(Smoke("bench 1", "apply, nothing to do"), marks=[_TOOLS, pytest.mark.long]),
    "bench peers": pytest.param(
        # Ansible takes a minute, and Mitogen runs the same playbook.
        Smoke(
            "bench peers --hosts 2 --delay 20 --rounds 1 --only gpuready --only pyinfra --only Mitogen", "| Mitogen |"
        ),
        marks=[pytest.mark.lab, pytest.mark.long],
    ),
    "bench page ...": pytest.param(
        Smoke("bench page docs/explanation/performance.json", makes="docs/explanation/performance.svg"),
        marks=pytest.mark.long,
    ),
    "bench fleet N": pytest.param(
        Smoke("bench fleet 40", "apply: {'changed': 40}, 11 batches"), marks=pytest.mark.long
    ),
    "bench startup": pytest.param(Smoke("bench startup", "gpuready --version"), marks=pytest.mark.long),
    "run ARG ...": Smoke("run --version", "gpuready "),
    "cuinit": pytest.param(Smoke("cuinit", makes="deploys/gpuready/binaries/cuinit.aarch64"), marks=_TOOLS),
}


def test_a_demo_installs_no_tools(tmp_path: Path) -> None:
    """pip shows its progress on a terminal. An environment with everything serves the demo, too."""
    shutil.copy(ROOT / "dev", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "bin").mkdir()
    stub = tmp_path / "bin/python3"
    stub.write_text(
        '#!/bin/sh\n[ "$1" != -c ] || exit 0\necho "$@" >>log\n'
        'if [ "$2" = venv ]; then mkdir -p .venv/bin; cp "$0" .venv/bin/python; fi\n'
    )
    stub.chmod(0o755)

    def said(verb: str, terminal: bool = False) -> list[str]:
        words = ["script", "-qec", f"./dev {verb}", "/dev/null"] if terminal else ["./dev", verb]
        subprocess.run(words, cwd=tmp_path, env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}, check=True)
        log = (tmp_path / "log").read_text().splitlines()
        (tmp_path / "log").write_text("")
        return [line for line in log if "venv" not in line]

    pip = "-m pip install{} --disable-pip-version-check -e {}"
    assert said("demo", terminal=True) == [pip.format("", "."), "-m tests.demo"]
    assert said("demo") == ["-m tests.demo"]
    assert said("mutants") == [pip.format(" --quiet", ".[test,lint,docs]"), "-m tests.mutants"]
    assert said("demo") == ["-m tests.demo"]


def test_every_verb_has_a_smoke_test() -> None:
    assert set(SMOKES) == VERBS


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout as one commit, with the same environment, into which ./dev installs nothing."""
    made = tmp_path_factory.mktemp("dev") / "gpuready"
    shutil.copytree(ROOT, made, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT))
    (made / ".venv").mkdir()
    for part in (ROOT / ".venv").iterdir():
        if part.name != ".made-for":
            (made / ".venv" / part.name).symlink_to(part)
    current = subprocess.check_output(["cksum", "pyproject.toml"], cwd=made)
    (made / ".venv/.made-for").write_bytes(current)
    own = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet"), ("add", "--all"), (*own, "commit", "--quiet", "--message=x")):
        subprocess.run(["git", *words], cwd=made, check=True)
    return made


@pytest.mark.parametrize("smoke", SMOKES.values(), ids=SMOKES)
def test_a_verb_does_its_work(smoke: Smoke, checkout: Path) -> None:
    (checkout / (smoke.makes or "none")).unlink(missing_ok=True)
    # A job of CI without test machines runs this, too; and the tests' own pytest is none of the one that it starts.
    environment = {key: value for key, value in os.environ.items() if key != "CI" and not key.startswith("PYTEST_")}
    done = subprocess.run(
        ["./dev", *smoke.words.split()], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert smoke.says in done.stdout
    assert not smoke.makes or (checkout / smoke.makes).stat().st_size > 1000

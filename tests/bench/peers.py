"""./dev bench peers: one wanted state on the same hosts, by gpuready, pyinfra, Ansible and Ansible with Mitogen.

The hosts are one test machine that is already as wanted, behind a relay that delays its answers. Every command runs
whole, once to warm up and then once a round; a command that takes over a minute runs in the first round only. The two
floors are what SSH alone costs (:mod:`tests.bench.floor`). Figures are of this machine; quote the ratios.
"""

import argparse
import datetime
import json
import os
import platform
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.bench import nodes, report
from tests.bench.measure import Cost, measured
from tests.bench.wanted import playbook, wanted
from tests.lab import cache
from tests.lab.host import LabError, sh
from tests.lab.machine import Machine

ROOT = Path(__file__).parents[2]
_BIN = Path(sys.executable).parent
_LIMIT = 3600
_LONG = 60
#: No change was needed: what the last lines of a tool must say, for each host.
_UNCHANGED = {
    "pyinfra": r"Grand total +(\d+) +- +- +\1 ",
    "Ansible": r"changed=0 .*failed=0",
    "Mitogen": r"changed=0 .*failed=0",
}


def main(arguments: Sequence[str]) -> int:
    """Measure, print the table, and write the figures; ``./dev bench page`` puts them into the documentation."""
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__.splitlines()[0].partition(": ")[2])
    parser.add_argument("--hosts", default="1,16,64", help="numbers of hosts (default: %(default)s)")
    parser.add_argument("--delay", default="0,50,100", help="milliseconds of round trip (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each command is measured (default: 3)")
    parser.add_argument(
        "--only", action="append", choices=[*report.COLOURS, *_EXTRA], help="measure this command alone"
    )
    parser.add_argument("--json", type=Path, default="/dev/null", help="write the figures to this file, too")
    options = parser.parse_args(arguments)
    chosen = "".join(f" --only '{name}'" for name in options.only or ())
    command = f"./dev bench peers --hosts {options.hosts} --delay {options.delay} --rounds {options.rounds}{chosen}"
    document = _measure(options, command)
    print(report.tables(document))
    options.json.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    return 0


#: Where one of these fails, as Mitogen with 64 connections to one machine, the others are still measured.
_PEERS = ("pyinfra", "Mitogen", "Ansible")
#: Commands that are measured only if they are asked for.
_EXTRA = ("gpuready verify", "gpuready verify --passive")


def _measure(options: argparse.Namespace, command: str) -> dict[str, Any]:
    chosen = options.only or [*report.COLOURS]
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        items = wanted(nodes.VERSION)
        (folder / "playbook.yaml").write_text(json.dumps(playbook(items, folder / "wanted")))
        with nodes.converged(_BIN / "gpuready", folder) as machine:
            words = {name: each for name, each in _commands(folder).items() if name in chosen}
            _warm_up(machine, words, folder)
            for hosts in map(int, options.hosts.split(",")):
                for delay in map(int, options.delay.split(",")):
                    runs += _cell(machine, words, folder, hosts, delay, options.rounds)
    return {
        "command": command,
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} CPUs ({_processor()}), Python {platform.python_version()}",
        "versions": {name: version(name) for name in ("pyinfra", "ansible-core")} | {"mitogen": _MITOGEN},
        "items": len(items),
        "runs": runs,
    }


def _warm_up(machine: Machine, words: Mapping[str, list[str | Path]], folder: Path) -> None:
    """Run every command twice over one host: the first may change what only it wants, the second nothing."""
    with nodes.relays(machine, 1, 0) as hosts:
        nodes.write_inventories(machine, hosts, folder)
        for name, command in words.items():
            for _ in range(2):
                done = _run(command, folder)
            if name in _UNCHANGED and not re.search(_UNCHANGED[name], done.output):
                raise LabError(f"{name} finds something to change on a converged node:\n{done.output[-3000:]}")


def _cell(
    machine: Machine, words: Mapping[str, list[str | Path]], folder: Path, hosts: int, delay: int, rounds: int
) -> list[dict[str, Any]]:
    """Measure all commands over so many hosts with this delay, one after another, in so many rounds."""
    found: list[dict[str, Any]] = []
    long: set[str] = set()
    with nodes.relays(machine, hosts, delay) as listed:
        nodes.write_inventories(machine, listed, folder)
        for at in range(rounds):
            for name, command in words.items():
                if name in long:
                    continue
                load, before = os.getloadavg()[0], nodes.seen(machine)
                try:
                    cost = _run(command, folder)
                except LabError as e:
                    if name not in _PEERS:
                        raise
                    print(f"bench: {hosts} hosts, {delay} ms, {name} fails, and is left out: {e}", file=sys.stderr)
                    long.add(name)
                    continue
                after = nodes.seen(machine)
                print(f"bench: {hosts} hosts, {delay} ms, {name}: {cost.wall:.1f} s", file=sys.stderr, flush=True)
                found.append({
                    "hosts": hosts, "delay": delay, "round": at, "tool": name, "load": round(load, 1),
                    "wall": round(cost.wall, 3), "cpu": round(cost.cpu, 3), "memory": cost.memory,
                    "node_cpu": round(after.cpu - before.cpu, 3), "bytes": after.bytes - before.bytes,
                    "sessions": after.sessions - before.sessions,
                })  # fmt: skip
                if cost.wall > _LONG:
                    long.add(name)
    return found


def _run(command: Sequence[str | Path], folder: Path) -> Cost:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {
        "BENCH_WANTED": f"{folder}/wanted:{nodes.VERSION}",
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_FORKS": "64",
        "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
    }
    return measured(command, environment, ROOT, _LIMIT)


def _commands(folder: Path) -> dict[str, list[str | Path]]:
    """The measured commands by name. ``env`` gives Mitogen its strategy."""
    yaml = folder / "hosts.yaml"
    found: dict[str, list[str | Path]] = {
        "connect + true": [sys.executable, "-m", "tests.bench.floor", "true", yaml],
        "connect + probe": [sys.executable, "-m", "tests.bench.floor", "probe", yaml],
        # All hosts are one machine here: more probes at once would be too slow for the limit of each.
        "gpuready": [_BIN / "gpuready", "plan", "--detailed-exitcode", "--parallel", "16", "-i", yaml],
        "pyinfra": [_BIN / "pyinfra", "--sudo", "-y", folder / "hosts.py", ROOT / "tests/bench/deploy.py"],
    }
    found |= {name: [_BIN / "gpuready", *name.split()[1:], "-i", yaml] for name in _EXTRA}
    peers = environment()
    play: list[str | Path] = [peers / "bin/ansible-playbook", "-i", yaml, folder / "playbook.yaml"]
    plugins = next(peers.glob("lib/python*/site-packages/ansible_mitogen/plugins/strategy"))
    strategy = (f"ANSIBLE_STRATEGY_PLUGINS={plugins}", "ANSIBLE_STRATEGY=mitogen_linear")
    return found | {"Mitogen": ["env", *strategy, *play], "Ansible": play}


_MITOGEN = "0.3.54"


def environment() -> Path:
    """An environment of Ansible, as in this one, with Mitogen, and with matplotlib for the picture."""
    needs = [f"ansible-core=={version('ansible-core')}", f"mitogen=={_MITOGEN}", "matplotlib==3.10.8"]

    def build(into: Path) -> None:
        sh(sys.executable, "-m", "venv", into / "venv")
        sh(into / "venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needs)
        # A virtual environment cannot be moved, so its programs name the place where it will be.
        for program in (into / "venv/bin").iterdir():
            if program.is_file() and not program.is_symlink():
                text = program.read_text("utf-8")
                program.write_text(text.replace(str(into), str(cache.entry("peers", recipe))), "utf-8")

    recipe = {"needs": needs, "python": platform.python_version()}
    return cache.cached("peers", recipe, build) / "venv"


def _processor() -> str:
    rows = Path("/proc/cpuinfo").read_text().splitlines()
    return next((row.partition(":")[2].strip() for row in rows if row.startswith("model name")), platform.machine())

"""./dev bench startup: CPU seconds until a command answers, beside starting Python, pyinfra and Ansible.

Each figure is the best of five, user and system time of the process and its children. The bytecode of all that is
imported is written first. The host of ``plan`` is a port on which nothing listens. Once, plan ends at the audit event
of its first connection: what comes before is what a user waits for without any node.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_BIN = Path(sys.executable).parent
_ROUNDS = 5
_COMPAT = ("compat", "--driver", "535.54.03", "--gpu", "NVIDIA L4", "--image-cuda", "12.6.3")
_UNTIL_CONNECTED = """
import os, sys
sys.addaudithook(lambda event, _: os._exit(0) if event == "socket.connect" else None)
from gpuready.cli.main import main
main()
"""
_HOSTS = "all: {hosts: {nobody: {ansible_host: 127.0.0.1, ansible_port: 1, gpuready: {}}}}\n"


def seconds(words: list[str]) -> float:
    """CPU seconds of the cheapest of five runs."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    found = []
    for _ in range(_ROUNDS + 1):  # the first one writes the bytecode
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, env=environment, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found[1:])


def commands(inventory: str) -> dict[str, list[str]]:
    """What is measured, by the name under which it is printed."""
    ours = {
        "gpuready --version": ["--version"],
        "gpuready --help": ["--help"],
        "gpuready plan --help": ["plan", "--help"],
        "gpuready explain": ["explain"],
        "gpuready schema": ["schema"],
        "gpuready schema result": ["schema", "result"],
        "gpuready compat --driver ...": [*_COMPAT],
        "gpuready plan, no host answers": ["plan", "-i", inventory],
    }
    found = {"python -c pass": [sys.executable, "-c", "pass"]}
    found |= {name: [str(_BIN / "gpuready"), *words] for name, words in ours.items()}
    found["gpuready plan, until it connects"] = [sys.executable, "-c", _UNTIL_CONNECTED, "plan", "-i", inventory]
    for name in ("pyinfra", "ansible"):
        if program := shutil.which(name, path=f"{_BIN}:{os.environ.get('PATH', '')}"):
            found[f"{name} --version"] = [program, "--version"]
    return found


def main(words: Sequence[str]) -> int:
    """Print one line per command."""
    argparse.ArgumentParser(
        prog="./dev bench startup", description=__doc__.splitlines()[0].partition(": ")[2]
    ).parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        inventory = Path(folder) / "hosts.yaml"
        inventory.write_text(_HOSTS)
        for name, words in commands(str(inventory)).items():
            print(f"{seconds(words):6.3f} s  {name}", flush=True)
    return 0

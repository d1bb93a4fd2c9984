"""What all system tests share: running the real command line, reading its result, counting sessions on the node.

Every document is validated against the result schema, whatever the run came to.
"""

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from gpuready.cli.parts import parts
from gpuready.result.document import result_schema
from tests.lab import Lab, Machine, Node, Repository, scale
from tests.system.warm import Forked, Warm

GPUREADY = str(Path(sys.executable).parent / "gpuready")
PYINFRA = str(Path(sys.executable).parent / "pyinfra")
ROOT = Path(__file__).parents[2]


@functools.cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(result_schema(parts()))


@dataclass(frozen=True)
class Result:
    """One run: exit code, the result document (empty when it was not asked for), and stderr."""

    code: int
    document: dict[str, Any]
    stderr: str
    stdout: str = ""

    def host(self, name: str = "") -> dict[str, Any]:
        """That host's part of the document; without a name, the only host's."""
        hosts: dict[str, dict[str, Any]] = self.document["hosts"]
        if not name:
            (name,) = hosts
        return hosts[name]

    def component(self, name: str, host: str = "") -> dict[str, Any]:
        """A component's part of a host."""
        return next(item for item in self.host(host)["components"] if item["name"] == name)

    def diff(self, name: str, host: str = "") -> dict[str, Any]:
        """A component's differences: key -> (actual, expected)."""
        return {c["key"]: (c["actual"], c["expected"]) for c in self.component(name, host)["diff"]}

    def changed(self, host: str = "") -> set[str]:
        """The components that changed the host."""
        return {item["name"] for item in self.host(host)["components"] if item["changed"]}

    def checks(self, *statuses: str, host: str = "") -> set[str]:
        """The ids of the checks with one of these statuses."""
        return {item["id"] for item in self.host(host)["checks"] if item["status"] in statuses}

    def check(self, check_id: str, host: str = "") -> dict[str, Any]:
        """The result of one check."""
        return next(item for item in self.host(host)["checks"] if item["id"] == check_id)

    def explain(self) -> str:
        """All of it, for the message of a failed assertion."""
        return f"exit {self.code}\n{self.stderr}\n{json.dumps(self.document, indent=1)[:20000] or self.stdout}"


class Gpuready:
    """``gpuready(*args, inventory=...)``: one run of the command line, in a home directory of its own.

    It is forked by :mod:`tests.system.warm`; one that is begun by :meth:`start` is a process of the real executable.
    """

    def __init__(self, home: Path, warm: Warm, probe_timeout: int = 0) -> None:
        self.home, self.warm, self.probe_timeout = home, warm, probe_timeout

    def start(
        self, *args: str, inventory: Path | str | None = None, json_output: bool = True, env: Mapping[str, str] = {}
    ) -> subprocess.Popen[str]:
        """Begin a run; :meth:`finish` waits for it."""
        words, own = self._words(args, inventory, json_output), self._env(env)
        pipe = subprocess.PIPE
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, cwd=self.home, env=own
        )

    def _words(self, args: Iterable[str], inventory: Path | str | None, json_output: bool) -> list[str]:
        words = [GPUREADY, *args]
        words += ["-i", str(inventory)] if inventory is not None else []
        return words + (["--output", "json"] if json_output else [])

    def _env(self, env: Mapping[str, str]) -> dict[str, str]:
        own = {key: value for key, value in os.environ.items() if key not in ("SSH_AUTH_SOCK", "NO_COLOR")}
        if self.probe_timeout:
            own["GPUREADY_PROBE_TIMEOUT"] = str(min(3600, round(scale.seconds(self.probe_timeout))))
        return {**own, "HOME": str(self.home), **env}

    def finish(
        self,
        process: subprocess.Popen[str] | Forked,
        check_json: bool = True,
        timeout: float = 600,
        code: int | None = None,
    ) -> Result:
        """The result of a run that :meth:`start` began, which ends with that exit code (None: with any)."""
        try:
            stdout, stderr = process.communicate(timeout=scale.seconds(timeout))
        finally:
            process.kill()
        document: dict[str, Any] = {}
        if check_json:
            assert stdout.strip(), f"no document on stdout; exit {process.returncode}\n{stderr}"
            document = json.loads(stdout)
            errors = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in _validator().iter_errors(document)]
            assert not errors, "the document does not fit its schema:\n" + "\n".join(errors)
            assert document["exit_code"] == process.returncode
        assert "Traceback" not in stderr or process.returncode == 70, stderr
        found = Result(process.returncode, document, stderr, stdout)
        assert code in (None, found.code), found.explain()
        return found

    def __call__(
        self,
        *args: str,
        inventory: Path | str | None = None,
        check_json: bool = True,
        env: Mapping[str, str] = {},
        timeout: float = 600,
        code: int | None = None,
    ) -> Result:
        """Run it to its end, which has that exit code. ``check_json=False`` leaves out ``--output json``."""
        process = self.warm.start(self._words(args, inventory, check_json), self.home, self._env(env))
        return self.finish(process, check_json, timeout, code)


def here(script: str, folder: Path) -> tuple[list[str], str]:
    """What a script prints, by lines and on stderr: it runs $GPUREADY on this very machine, in namespaces of its own.

    Who mounts in there mounts for nobody else; the folder is the script's directory, and its home.
    """
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-uc", script]
    own = {**os.environ, "GPUREADY": GPUREADY, "HOME": str(folder)}
    limit = scale.seconds(240)
    done = subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, timeout=limit, check=False)
    return done.stdout.splitlines(), done.stderr


def pyinfra(folder: Path, *words: str, code: int = 0) -> str:
    """What pyinfra's own command line prints, which runs in a folder and ends with that exit code.

    It gets "Enter", for which it asks without ``-y``.
    """
    limit = scale.seconds(240)
    command = [PYINFRA, *words]
    done = subprocess.run(command, cwd=folder, input="\n", capture_output=True, text=True, timeout=limit, check=False)
    told = done.stdout + done.stderr
    assert done.returncode == code and "Traceback" not in told, told
    return told


def door(folder: Path, inventory: Path, *deploys: str, code: int = 0) -> str:
    """The same for our deploys, over the hosts of our inventory."""
    loads = f"from gpuready.pyinfra import hosts as load\n\nhosts = load({str(inventory)!r})\n"
    (folder / "inv.py").write_text(loads)
    files = (str(ROOT / "deploys" / f"{deploy}.py") for deploy in deploys)
    return pyinfra(folder, "-y", "inv.py", *files, code=code)


#: For ``verify`` of a spec: machines that share the CPU with other tests may be slow.
ANY_SPEED = {"thresholds": {"tcp_bw": 0.0001}}


class Inventories:
    """``inventory(machines, **spec)``: an inventory file whose spec is laid over the lab's own.

    The lab's own spec: no GPU is expected, the lab's repository, the image that every machine has.
    """

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder, self.made = lab, folder, 0

    def __call__(
        self, machines: Node | Iterable[Node], repo: Repository | None = None, user: str = "gpu", **spec: object
    ) -> Path:
        """Write it, and return where it lies."""
        listed = [machines] if isinstance(machines, Node) else list(machines)
        self.made += 1
        path = self.folder / f"inventory{self.made}.yaml"
        path.write_text(self.lab.inventory(listed, repo, user, **{"hardware": {"gpus": "none"}, **spec}), "utf-8")
        return path


class Sessions:
    """Counts the commands that a user began over SSH, as the machine's sshd logs them."""

    def __init__(self, machine: Machine, user: str = "gpu") -> None:
        self.machine, self.user = machine, user
        drop_in = machine.root / "etc/ssh/sshd_config.d/verbose.conf"
        if not drop_in.exists():
            drop_in.write_text("LogLevel VERBOSE\n", "utf-8")
            machine.run("systemctl restart ssh")  # which returns when it listens; a reload would not wait
        self.before = self._all()

    def _all(self) -> int:
        mark = f"Starting session: .* for {self.user} from"
        log = "journalctl -q --no-pager -o cat -t sshd -t sshd-session"
        return int(self.machine.run(f"journalctl --sync; {log} | grep -c '{mark}' || true").stdout)

    def count(self) -> int:
        """How many there were since the last count, or since the beginning."""
        before, self.before = self.before, self._all()
        return self.before - before


#: All of a machine that lasts. /run is memory, /dev and /proc are the kernel's.
LASTING = ("/boot", "/etc", "/home", "/opt", "/root", "/usr", "/var", "/tmp")
#: What logging in writes by itself: journal, sshd's and sudo's session records.
LOGINS = ("/var/log/journal", "/var/log/lastlog", "/var/log/wtmp", "/var/log/btmp")


def listing(machine: Machine) -> frozenset[str]:
    """One line for every file that lasts: path, type, mode, owner, size, inode, both times, target of a link."""
    leave_out = " -o ".join(f"-path {path}" for path in LOGINS)
    row = r"%p %y %m %U:%G %s %i %T@ %C@ %l\n"
    # The files of a container that runs are mounted below Docker's data a second time, with its own /proc.
    # After one that ended containerd cleans up its database in its own time.
    # SQLite makes these two anew whenever rpm reads its database.
    others = "-path '/var/lib/docker/*/merged' -o -path '*/io.containerd.metadata.v1.bolt/meta.db'"
    others += " -o -path '/var/lib/rpm/rpmdb.sqlite-*'"
    script = rf"find {' '.join(LASTING)} \( {leave_out} -o {others} \) -prune -o -printf '{row}'"
    return frozenset(machine.run(script).stdout.splitlines())


def processes(machine: Machine) -> frozenset[str]:
    """Pid and command line of every process but the kernel's and those of sessions over SSH."""
    rows = machine.run("ps -eo pid=,args=").stdout.splitlines()
    return frozenset(row for row in rows if "sshd" not in row and " ps -eo" not in row and "[" not in row.split()[1])


def await_processes(machine: Machine, before: frozenset[str]) -> None:
    """No process is there that was not there before; an SSH session takes a moment to end."""
    limit = scale.Limit(5)
    while left := processes(machine) - before:
        assert not limit.over(), f"still there: {sorted(left)}"
        time.sleep(0.05)

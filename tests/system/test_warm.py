"""A forked run is a run of the executable: exit code, output, arguments, directory, environment, and its end."""

import json
import re
import signal
import time
from pathlib import Path

import pytest

from tests.lab import scale
from tests.system.harness import Gpuready
from tests.system.warm import Warm

HOSTS = "all: {hosts: {lab1: {ansible_host: 127.0.0.1, ansible_port: 1, gpuready: {}}}}\n"


def test_both_say_the_same(gpuready: Gpuready, tmp_path: Path) -> None:
    where = tmp_path / "hosts.yaml"
    where.write_text(HOSTS)
    for words, json_output, code in (
        (("verify", "--passive"), True, 4),
        (("remove", "--dry-run"), True, 4),
        (("record",), True, 4),
        (("apply",), True, 64),
        (("explain", "libcuda.ldcache"), False, 0),
        (("--version",), False, 0),
    ):
        inventory = where if json_output else None
        real = gpuready.finish(gpuready.start(*words, inventory=inventory, json_output=json_output), json_output)
        forked = gpuready(*words, inventory=inventory, check_json=json_output)
        assert forked.code == real.code == code
        for run in (real, forked):
            for host in run.document.get("hosts", {}).values():
                assert host.pop("seconds") >= 0
            for key in ("seconds", "ended"):
                run.document.pop(key, None)
        assert forked.document == real.document
        assert re.sub(r"\d+\.\d s", "", forked.stderr) == re.sub(r"\d+\.\d s", "", real.stderr)
        assert json_output or forked.stdout == real.stdout


def test_a_run_is_a_python_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(
        "import atexit, json, os, signal, sys\n"
        "atexit.register(print, 'the end')\n"
        "fds = [int(n) for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n)]\n"
        "defaults = [signal.getsignal(n) == signal.SIG_DFL for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)]\n"
        "print(json.dumps([sys.argv, sys.path[0], os.getcwd(), dict(os.environ), max(fds), defaults, __name__]))\n"
        "sys.exit(int(sys.argv[1]))\n"
    )
    with Warm() as warm:
        runs = [warm.start([str(script), str(code)], tmp_path, {"A": "b"}) for code in (0, 70)]
        for run, code in zip(runs, (0, 70), strict=True):
            out, err = run.communicate(20)
            argv, path, cwd, env, highest, defaults, name = json.loads(out.splitlines()[0])
            assert (argv, path, cwd) == ([str(script), str(code)], str(tmp_path), str(tmp_path))
            assert (env, highest, defaults, name) == ({"A": "b"}, 2, [True, True, True], "__main__")
            assert (out.splitlines()[1:], err, run.returncode) == (["the end"], "", code)


def test_one_that_does_not_end_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(
        "import os, pathlib, signal, sys\npathlib.Path('pid').write_text(str(os.getpid()))\n"
        "if 'die' in sys.argv: os.kill(os.getpid(), signal.SIGTERM)\nsignal.pause()\n"
    )
    with Warm() as warm:
        died = warm.start([str(script), "die"], tmp_path, {})
        assert died.communicate(20) == ("", "") and died.returncode == -signal.SIGTERM
        (tmp_path / "pid").unlink()
        hangs = warm.start([str(script)], tmp_path, {})
        while not (tmp_path / "pid").exists() or not (pid := (tmp_path / "pid").read_text()):
            time.sleep(0.01)
        with pytest.raises(TimeoutError):
            hangs.communicate(0.1)
        limit = scale.Limit(20)
        while Path(f"/proc/{pid}").exists():
            assert not limit.over()
            time.sleep(0.01)

"""One run of gpuready on the control node, over the hosts of the play: it keeps batches, racks and drains in order.

The hosts' own results are read from the result document, and what is wrong in words from the JUnit report, whose cases
fail if the exit code counts them. gpuready itself need not be in Ansible's environment, so nothing of it is imported.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, ClassVar

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

#: Exit codes of an apply that did what it may: 7 means that changes wait for permission or for an idle node.
_WELL = (0, 7)
_LISTS = {"inventory": "[hosts.yaml]", "arguments": "[--allow-disruption, reboot]", "hosts": "[gpu01]"}
#: A host of the play that is not in the result.
_ABSENT: dict[str, Any] = {
    "outcome": "not_attempted", "failed": True, "components": [], "checks": [],
    "reason": "gpuready does not find this host in the inventories: add it there (not with add_host)",
}  # fmt: skip


class GpureadyAction(ActionBase):
    """``verb`` over all hosts of the play; in check mode, ``checking`` instead. It needs no connection of Ansible's."""

    BYPASS_HOST_LOOP = True
    _requires_connection = False
    verb: ClassVar[str]
    checking: ClassVar[str]

    def run(self, tmp: object = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        for name in ("inventory", "arguments", "hosts"):
            if isinstance(self._task.args.get(name), str):  # Ansible would split it at commas
                raise AnsibleActionFail(f"{name}: not a list; write {_LISTS[name]}")
        _, given = self.validate_argument_spec({
            "inventory": {"type": "list", "elements": "str"},
            "arguments": {"type": "list", "elements": "str", "default": []},
            "hosts": {"type": "list", "elements": "str"},
            "executable": {"type": "str"},
        })  # fmt: skip
        if any(re.match(r"--limit(=|$)|-[vy]*l", word) for word in given["arguments"]):
            raise AnsibleActionFail(
                "arguments: --limit is not possible here; "
                "the play chooses the hosts (hosts:, or ansible-playbook --limit)"
            )
        batch = [str(host) for host in task_vars["ansible_play_batch"]]
        hosts = batch if given["hosts"] is None else [host for host in batch if host in given["hosts"]]
        if not hosts:  # without --limit, gpuready would take the whole inventory
            raise AnsibleActionFail(
                "no host of the play is left: all have failed; run gpuready in a play of its own"
                if not batch else "hosts: none of them is left in the play"
            )  # fmt: skip
        verb = self.checking if self._task.check_mode else self.verb
        folder = self._loader.get_basedir()
        command = [_executable(given["executable"], folder), verb]
        for source in given["inventory"] or task_vars["ansible_inventory_sources"]:
            command += ["-i", str(source)]
        for host in hosts:
            command += ["--limit", host]
        command += ["--color", "never", *(["--yes"] if verb == "apply" else []), *given["arguments"]]
        return result | _result(command, folder, hosts)


def _result(command: list[str], cwd: str, names: list[str]) -> dict[str, Any]:
    """What the action returns of a run over the hosts ``names``."""
    with tempfile.TemporaryDirectory(prefix="gpuready-") as folder:
        document, junit = Path(folder, "result.json"), Path(folder, "junit.xml")
        outputs = ("human", f"json:{document}", f"junit:{junit}")
        for output in outputs:
            command += ["--output", output]
        result = _run(command, cwd, Path(folder))
        try:
            found, wrong = json.loads(document.read_text("utf-8")), _wrong(junit)
        except (OSError, ValueError, ET.ParseError):
            return result | {"failed": True, "msg": f"gpuready wrote no result; exit code {result['rc']}"}
    if error := found["error"]:
        fix = f"; fix: {error['remedy']}" if error["remedy"] else ""
        return result | {"failed": True, "msg": f"{error['message']}{fix}"}
    if others := found["hosts"].keys() - names:
        return result | {"failed": True, "msg": f"gpuready ran on hosts outside the play: {', '.join(sorted(others))}"}
    planned = found["verb"] == "plan"
    hosts = {name: _host(host, wrong.get(name, []), planned) for name, host in found["hosts"].items()}
    hosts |= {name: _host(_ABSENT, [_ABSENT["reason"]], planned) for name in names if name not in hosts}
    failed = [name for name, host in hosts.items() if host["failed"]]
    if failed or result["rc"] not in _WELL:
        result |= {"failed": True, "msg": f"failed: {', '.join(failed) or 'exit code ' + str(result['rc'])}"}
    else:
        result["failed"] = False  # Ansible takes another rc than 0 for a failure if this key is missing
    # Otherwise the exit code is that of something else, such as an output that cannot be written.
    result["only_hosts_failed"] = bool(failed) and result["rc"] == found["exit_code"]
    return result | {"hosts": hosts, "changed": any(host["changed"] for host in hosts.values())}


def _run(command: list[str], cwd: str, folder: Path) -> dict[str, Any]:
    """Run it to its end, also when Ansible's time for the task is up: nodes must not be left half done."""
    out, err = folder / "stdout", folder / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        try:
            child = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        except OSError as e:
            raise AnsibleActionFail(f"{command[0]}: {e.strerror}") from None
        try:
            child.wait()
        except BaseException as e:
            if not isinstance(e, KeyboardInterrupt):  # Ctrl-C reached it, too
                child.send_signal(signal.SIGINT)
            try:
                child.wait()
            except BaseException:
                child.kill()
                raise
            raise
    text = out.read_text("utf-8", "replace")
    return {
        "rc": child.returncode, "stdout": text, "stdout_lines": text.splitlines(),
        "stderr": err.read_text("utf-8", "replace"),
    }  # fmt: skip


def _executable(given: str | None, folder: str) -> str:
    """The path of gpuready: as it is given, beside Ansible's Python, or on PATH. ``folder``: that of the playbook."""
    if given and "/" in given:
        given = str(Path(folder, given).absolute())
    own = Path(sys.executable).with_name("gpuready")
    found = shutil.which(given) if given else str(own) if own.exists() else shutil.which("gpuready")
    if found is None:
        raise AnsibleActionFail(
            f"{given or 'gpuready'}: no such program on the control node; install gpuready there, or set executable"
        )
    return found


def _wrong(junit: Path) -> dict[str, list[str]]:
    """What is wrong, a line for each component or check, by host."""
    return {
        suite.get("name", ""): [
            f"{case.get('name')}: {case[0].get('message')}"
            for case in suite
            if len(case) and case[0].tag in ("failure", "error")
        ]
        for suite in ET.parse(junit).getroot()
    }


def _host(host: dict[str, Any], wrong: list[str], planned: bool) -> dict[str, Any]:
    """What a playbook gets of a host. ``wrong``: what fails, in words. ``planned``: a difference counts as a change."""
    pending = {item["name"]: item["pending_reason"] for item in host["components"] if item["pending"]}
    if planned:
        pending |= {item["name"]: "check mode" for item in host["components"] if item["diff"] and not item["error"]}
    changed = [item["name"] for item in host["components"] if item["changed"]]
    return {
        "outcome": host["outcome"],
        "failed": host["failed"],
        "changed": bool(changed) or (planned and host["outcome"] == "would_change"),
        "message": "\n".join(wrong) or host["reason"],
        "components_changed": changed,
        "components_pending": pending,
        "checks": {check["id"]: check["status"] for check in host["checks"]},
    }

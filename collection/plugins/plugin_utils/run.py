"""One run of gpuready on the control node, over the hosts of the play: it keeps batches, racks and drains in order.

The hosts' own results are read from the result document and the JUnit report, whose cases fail if the exit code counts
them. gpuready itself need not be in Ansible's environment, so nothing of it is imported.
"""

import json
import shutil
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


class GpureadyAction(ActionBase):
    """``verb`` over all hosts of the play; in check mode, ``checking`` instead. It needs no connection of Ansible's."""

    BYPASS_HOST_LOOP = True
    _requires_connection = False
    verb: ClassVar[str]
    checking: ClassVar[str]

    def run(self, tmp: object = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, given = self.validate_argument_spec({
            "inventory": {"type": "list", "elements": "str"},
            "arguments": {"type": "list", "elements": "str", "default": []},
            "executable": {"type": "str"},
        })  # fmt: skip
        verb = self.checking if self._task.check_mode else self.verb
        command = [_executable(given["executable"]), verb]
        for source in given["inventory"] or task_vars["ansible_inventory_sources"]:
            command += ["-i", str(source)]
        for host in task_vars["ansible_play_batch"]:
            command += ["--limit", str(host)]
        command += ["--color", "never", *(["--yes"] if verb == "apply" else []), *given["arguments"]]
        return result | self._result(command)

    def _result(self, command: list[str]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="gpuready-") as folder:
            document, junit = Path(folder, "result.json"), Path(folder, "junit.xml")
            outputs = ("human", f"json:{document}", f"junit:{junit}")
            done = subprocess.run(
                [*command, *(word for output in outputs for word in ("--output", output))],
                cwd=self._loader.get_basedir(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            )  # fmt: skip
            result = {"cmd": command, "rc": done.returncode, "stdout": done.stdout, "stderr": done.stderr}
            result["stdout_lines"] = done.stdout.splitlines()
            if not document.exists():
                return result | {"failed": True, "msg": f"gpuready wrote no result; exit code {done.returncode}"}
            found = json.loads(document.read_text("utf-8"))
            wrong = _wrong(junit)
        if error := found["error"]:
            fix = f"; fix: {error['remedy']}" if error["remedy"] else ""
            return result | {"failed": True, "msg": f"{error['message']}{fix}"}
        planned = found["verb"] == "plan"
        hosts = {name: _host(host, wrong.get(name, []), planned) for name, host in found["hosts"].items()}
        failed = [name for name, host in hosts.items() if host["failed"]]
        if failed or done.returncode not in _WELL:
            result |= {"failed": True, "msg": f"failed: {', '.join(failed) or f'exit code {done.returncode}'}"}
        return result | {"hosts": hosts, "changed": any(host["changed"] for host in hosts.values())}


def _executable(given: str | None) -> str:
    """The path of gpuready: as it is given, beside Ansible's Python, or on PATH."""
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
    """What a playbook gets of one host. ``wrong``: what makes it fail. ``planned``: a difference counts as a change."""
    pending = {item["name"]: item["pending_reason"] for item in host["components"] if item["pending"]}
    changed = [item["name"] for item in host["components"] if item["changed"]]
    return {
        "outcome": host["outcome"],
        "failed": bool(wrong),
        "changed": bool(changed) or (planned and host["outcome"] == "would_change"),
        "message": "\n".join(wrong) or host["reason"],
        "components_changed": changed,
        "components_pending": pending,
        "checks": {check["id"]: check["status"] for check in host["checks"]},
    }

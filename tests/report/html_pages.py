"""Result documents for the tests of the HTML page: as many hosts as wanted, and one in which every text is hostile."""

import copy
from typing import Any

from gpuready.cli.parts import parts
from gpuready.result import changes
from gpuready.result.document import read
from gpuready.result.html import html
from gpuready.result.text import printable
from tests.report.test_results_recorded import recorded

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e</style></title>javascript:alert(3)"
#: Keys whose values are texts of nodes; the others are of our own making, and the schema holds them.
TEXTS = {
    "summary", "evidence", "remedy", "message", "actual", "expected", "reason", "pending_reason", "source", "key",
    "name", "driver", "gpu", "kernel", "os", "toolkit", "docker",
}  # fmt: skip
#: Two kinds of nodes.
FACTS: tuple[dict[str, Any], ...] = (
    {"driver": "580.95.05", "gpu": "NVIDIA H200", "gpus": 8, "kernel": "6.8.0-85-generic", "os": "Ubuntu 24.04.3 LTS",
     "toolkit": "1.20.1", "engines": {"docker": "28.0.1", "containerd": "1.7.27"}},
    {"driver": "570.172.08", "gpu": "NVIDIA H100 80GB HBM3", "gpus": 7, "kernel": "5.15.0-161-generic",
     "os": "Ubuntu 22.04.5 LTS", "toolkit": "1.17.8", "engines": {"containerd": "2.1.4"}},
)  # fmt: skip


def page(document: Any) -> str:
    """What ``--output html:PATH`` writes of a document."""
    return printable(html(*read(copy.deepcopy(document), parts())))


def compared(before: Any, after: Any) -> str:
    """The page of a comparison."""
    return printable(
        changes.html(changes.changes(read(copy.deepcopy(before), parts()), read(copy.deepcopy(after), parts())))
    )


def fleet(size: int) -> Any:
    """An apply of a recorded H200 node, ``size`` times: most changed, some failed, waiting or unreachable."""
    base = recorded("plan-h200")
    (node,) = base["hosts"].values()
    text = "docker: dockerd did not answer within 60 s"
    refused = {"kind": "converge", "message": text, "remedy": "journalctl", "exit_code": 1}
    hosts: dict[str, Any] = {}
    for number in range(1, size + 1):
        host = copy.deepcopy(node)
        host |= {"outcome": "changed", "seconds": number / 7, "execs": 3, "facts": FACTS[number % 7 == 4]}
        for check in host["checks"]:
            check["summary"] += f" ({number})" if check["status"] == "pass" else ""  # as serials and addresses differ
        for item in host["components"]:
            item["changed"] = bool(item["diff"])
        if number % 17 == 5:
            host |= {"outcome": "failed", "error": refused}
            next(item for item in host["components"] if item["diff"]).update(error=refused, changed=False)
        elif number % 29 == 3:
            lost = {"kind": "unreachable", "message": f"10.0.0.{number}: no route to host", "remedy": "is it up?"}
            host |= {"outcome": "unreachable", "error": lost, "components": [], "checks": [], "execs": 0, "facts": None}
        elif number % 31 == 7:
            host["checks"][3] |= {"status": "fail", "evidence": f"serial {number}", "remedy": "replace it"}
        hosts[f"gpu{number:03}"] = host
    return {**base, "verb": "apply", "exit_code": 1, "hosts": hosts, "ended": "2026-11-22T21:00:00Z",
            "source": "hosts.yaml"}  # fmt: skip


def hostile(document: Any) -> Any:
    """The document with an attack behind each text that a node can choose, and in each host's name."""

    def spoilt(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {f"{name}{EVIL}" if key == "hosts" else name: spoilt(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [f"{each}{EVIL}" if isinstance(each, str) and key in ("affected", "notes") else spoilt(each, key)
                    for each in value]  # fmt: skip
        return f"{value}{EVIL}" if isinstance(value, str) and key in TEXTS else value

    found = spoilt(document)
    for host in found["hosts"].values():
        for item, plain in zip(host["components"], host["components"], strict=True):
            item["name"] = plain["name"]
    return found

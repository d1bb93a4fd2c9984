"""The way back of the rdma component: what is ours goes, and the running mode is owed until it is back."""

from __future__ import annotations

from typing import Any

from gpuready.components.rdma.component import CAME, GRUBBY, OURS, Rdma
from gpuready.components.rdma.state import CONF, GRUB
from gpuready.core import ledger
from gpuready.core.compare import compare
from gpuready.core.component import Disruption
from tests.components.cases import Case, spec_of, state_of

APPLIED: dict[str, Any] = {
    "kernel": "6.12.57",
    "have": ["apt-get", "rdma", "update-initramfs"],
    "marks": ["ib_core_loaded"],
    "ib_netns_mode": "N",
    "initramfs": ["/boot/initrd.img-6.12.57"],
    "packages": {"perftest": "24", "rdma-core": "56", "libibverbs1": "56"},
}
FILES = {
    CONF: "options ib_core netns_mode=0\n",
    f"{ledger.KEPT}{CONF}.absent": "",
    OURS: "ib_core.netns_mode=0\n",
    CAME: "asked:perftest\nlibibverbs1\nperftest\n",
}


def back(files: dict[str, str], **state: Any) -> tuple[dict[str, Any], Disruption, list[str], str]:
    """The difference to what was before, its class, the steps that close it and their scripts."""
    case = Case("rdma", "here", "", {"spec": {}, "state": {**APPLIED, "files": files, **state}})
    item, spec, node = Rdma(), spec_of(case), state_of(case)
    found = compare(item, spec, node, original=True)
    assert not found.error
    steps = list(item.converge(found.diff, spec, node)) if found.diff else []
    diff = {c.key: (c.actual, c.expected) for c in found.diff}
    return diff, found.disruption, [step.name for step in steps], "\n".join(step.script for step in steps)


def test_all_of_it_goes_and_what_runs_is_switched_last() -> None:
    diff, disruption, steps, script = back(FILES)
    assert diff == {
        f"rdma.files.{CONF}": ("gpuready's, edited since", None),
        "rdma.running": ("exclusive", "shared"),
        "rdma.package.perftest": ("installed", None),
    }
    assert (steps, disruption) == (["rdma", "rdma-packages", "rdma-mode"], Disruption.recreate)
    assert f"putback {CONF} ''" in script and "\nMODE=shared\n" in script and "apt_get purge " in script


def test_beside_a_container_the_running_mode_is_owed() -> None:
    left = {path: text for path, text in FILES.items() if path == OURS}
    diff, disruption, steps, _ = back(left, netns=["sleep (pid 1)"])
    assert (diff, disruption, steps) == ({"rdma.running": ("exclusive", "shared")}, Disruption.reboot, [])
    assert back(left, ib_netns_mode="Y")[0] == {}


def test_what_others_say_counts_without_us() -> None:
    mine = {**FILES, "/etc/modprobe.d/hpc.conf": "options ib_core netns_mode=0\n"}
    assert "rdma.running" not in back(mine)[0]
    line = {**FILES, GRUB: "x", f"{ledger.KEPT}{GRUB}.absent": ""}
    assert back(line, boot_options=["ib_core.netns_mode=0"])[0]["rdma.running"] == ("exclusive", "shared")
    assert "rdma.running" not in back(FILES, cmdline="ib_core.netns_mode=0")[0]


def test_a_command_line_set_by_grubby_is_put_back() -> None:
    diff, _, steps, script = back({GRUBBY: "ib_core.netns_mode=1\n"})
    assert diff == {"rdma.grubby": ("ib_core.netns_mode=1", None)}
    assert steps == ["rdma"] and "--remove-args=ib_core.netns_mode" in script and f"\nGRUBBY={GRUBBY}\n" in script


def test_nothing_of_ours_is_nothing_to_take_back() -> None:
    assert back({})[0] == {}

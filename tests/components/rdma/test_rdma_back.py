"""The way back of the rdma component: what is ours goes, and the running mode is owed until it is back."""

from typing import Any

from gpuready.base.facts import KEPT
from gpuready.base.step import Step
from gpuready.components.rdma.component import CAME, GRUBBY, OURS, Rdma, SetOption, SetPackages, SwitchMode
from gpuready.components.rdma.state import CONF, GRUB
from gpuready.contract.compare import compare
from gpuready.contract.component import Disruption
from gpuready.contract.removal import Removal
from tests.components.cases import node_of

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
    f"{KEPT}{CONF}.absent": "",
    OURS: "ib_core.netns_mode=0\n",
    CAME: "asked:perftest\nlibibverbs1\nperftest\n",
}


def back(files: dict[str, str], **state: Any) -> tuple[dict[str, Any], Disruption, list[Step]]:
    """The difference to what was before, its class, and the steps that close it."""
    spec, node = node_of("rdma", {}, {**APPLIED, "files": files, **state})
    found = compare(Removal(Rdma()), spec, node)
    assert not found.error
    steps = list(Rdma().restore(found.diff, spec, node)) if found.diff else []
    diff = {c.key: (c.actual, c.expected) for c in found.diff}
    return diff, found.disruption, steps


def test_remove_takes_all_back_and_switches_the_running_mode_last() -> None:
    diff, disruption, steps = back(FILES)
    assert diff == {
        f"rdma.files.{CONF}": ("gpuready's, edited since", None),
        "rdma.running": ("exclusive", "shared"),
        "rdma.package.perftest": ("installed", None),
    }
    option, packages, mode = steps
    assert isinstance(option.args, SetOption) and option.args.back
    assert [(file.path, file.there) for file in option.args.files] == [(CONF, False)]
    assert isinstance(packages.args, SetPackages) and not packages.args.packages
    assert mode.args == SwitchMode("shared")
    assert "\npurge_them\n" in packages.script and disruption == Disruption.recreate


def test_beside_a_container_the_running_mode_waits_for_a_reboot() -> None:
    left = {path: text for path, text in FILES.items() if path == OURS}
    diff, disruption, steps = back(left, netns=["sleep (pid 1)"])
    assert (diff, disruption, steps) == ({"rdma.running": ("exclusive", "shared")}, Disruption.reboot, [])
    assert back(left, ib_netns_mode="Y")[0] == {}


def test_settings_of_others_count_after_remove() -> None:
    mine = {**FILES, "/etc/modprobe.d/hpc.conf": "options ib_core netns_mode=0\n"}
    assert "rdma.running" not in back(mine)[0]
    line = {**FILES, GRUB: "x", f"{KEPT}{GRUB}.absent": ""}
    assert back(line, boot_options=["ib_core.netns_mode=0"])[0]["rdma.running"] == ("exclusive", "shared")
    assert "rdma.running" not in back(FILES, cmdline="ib_core.netns_mode=0")[0]


def test_a_command_line_set_by_grubby_is_put_back() -> None:
    diff, _, (step,) = back({GRUBBY: "ib_core.netns_mode=1\n"})
    assert diff == {"rdma.grubby": ("ib_core.netns_mode=1", None)}
    assert isinstance(step.args, SetOption) and step.args.back and step.args.grubby == GRUBBY
    assert "--remove-args=ib_core.netns_mode" in step.script


def test_remove_finds_nothing_without_files_of_ours() -> None:
    assert back({})[0] == {}

"""The way back of the driver's hold, and the steps of its installation that no case file can answer."""

from __future__ import annotations

from typing import Any

import pytest

from gpuready.components.base import Reply, compare
from gpuready.components.driver import BEFORE, UNATTENDED, Driver
from gpuready.components.ledger import KEPT
from gpuready.components.repository import SOURCE, Repository
from gpuready.errors import ConvergeError
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState
from tests.components.cases import Case, spec_of, state_of

FRESH: dict[str, Any] = {"os": {"id": "debian"}, "have": ["apt-get"]}
INSTALL = {"driver": {"policy": "install", "version": "550.163.01", "flavor": "open"}}
NAMES = ("libcuda1", "libnvidia-ml1", "nvidia-smi", "nvidia-open-kernel-dkms")
MADISON = "".join(f" {name} | 550.163.01-2 | http://x trixie/non-free amd64 Packages\n" for name in NAMES)


def built(spec: dict[str, Any], state: dict[str, Any]) -> tuple[NodeSpec, NodeState]:
    case = Case("driver", "here", "", {"spec": spec, "state": state})
    return spec_of(case), state_of(case)


def test_remove_goes_back_to_the_holds_of_before() -> None:
    held = {"version": "550.163.01-2", "held": True}
    files = {
        BEFORE: "libcuda1 hold\nlibnvidia-ml1 free\nnvidia-smi free\n",
        UNATTENDED: "ours\n",
        f"{KEPT}{UNATTENDED}.absent": "",
    }
    spec, state = built({}, FRESH | {"packages": {"libcuda1": held, "libnvidia-ml1": held}, "files": files})
    found = compare(Driver(), spec, state, original=True)
    assert {c.key: (c.actual, c.expected) for c in found.diff} == {
        "driver.libnvidia-ml1.held": (True, False),
        f"driver.files.{UNATTENDED}": ("gpuready's, edited since", None),
    }
    (step,) = Driver().converge(found.diff, spec, state)
    assert "\nhold unhold libnvidia-ml1\n" in step.script
    assert f"\nrestore {UNATTENDED} ''\n" in step.script and "\nhold hold" not in step.script
    assert step.script.endswith('rm -f "$BEFORE"\nexit 0\n'), "a hold of somebody's later on is his"


def test_what_the_hold_wrote_is_not_the_repositorys_to_take_back() -> None:
    files = dict.fromkeys((UNATTENDED, "/etc/apt/apt.conf.d/90gpuready-reconverge", SOURCE), "ours\n")
    spec, state = built({}, FRESH | {"files": files | {f"{KEPT}{path}.absent": "" for path in files}})
    assert list(Repository().original(spec, state)) == [f"repository.files.{SOURCE}"]


def test_an_installation_is_asked_judged_done_and_held() -> None:
    installed = "".join(f"{name}\t550.163.01-2\n" for name in (*NAMES, "nvidia-alternative")) + "dkms\t3.2\n"
    simulated = "".join(f"Inst {name} (550.163.01-2 x [amd64])\n" for name in NAMES)
    spec, state = built(INSTALL, FRESH)
    going = Driver().converge(compare(Driver(), spec, state).diff, spec, state)
    assert next(going).name == "driver-available"
    simulate = going.send(Reply(0, MADISON))
    assert (simulate.name, simulate.survives) == ("driver-simulate", False), "it changes nothing"
    assert "install libcuda1=550.163.01-2 libnvidia-ml1=550.163.01-2" in simulate.script
    install = going.send(Reply(0, f"{simulated}Remv nvidia-kernel-dkms [550.163.01-2]\n"))
    assert (install.name, install.summary) == ("driver-install", "install driver 550.163.01, remove nvidia-kernel-dkms")
    hold = going.send(Reply(0, installed))
    assert hold.name == "driver-hold"
    wanted = "hold hold " + " ".join(sorted((*NAMES, "nvidia-alternative")))
    assert wanted in hold.script.splitlines(), "what came along is held, too; dkms is not the driver's"
    with pytest.raises(StopIteration):
        going.send(Reply(0, ""))


def test_nothing_is_installed_when_apt_would_do_more() -> None:
    spec, state = built(INSTALL, FRESH)
    going = Driver().converge(compare(Driver(), spec, state).diff, spec, state)
    next(going)
    going.send(Reply(0, MADISON))
    with pytest.raises(ConvergeError, match="apt would remove gdm3 as well; nothing was changed"):
        going.send(Reply(0, "Remv gdm3 [48.0-2]\n"))

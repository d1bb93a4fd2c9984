"""containerd after apply, and on the way back: from every closed case to the very files from before.

What the user wrote since stays.
"""

from typing import Any

import pytest

from gpuready.base.facts import KEPT
from gpuready.components.containerd.component import Containerd, ContainerdInstall
from gpuready.components.containerd.files import CONFIG, leaves
from gpuready.components.containerd.removal import OURS
from gpuready.components.containerd.state import effective
from gpuready.contract.compare import compare
from gpuready.contract.removal import Removal
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Cri, NodeState, Unknown
from tests.components.cases import Case, cases, spec_of, state_of
from tests.components.closing import applied_to, converged, taken_back, with_text
from tests.components.containerd import containerdmodel

CASES = [c for c in cases() if c.component == "containerd" and c.data.get("diff") and "error" not in c.data]
# The file is given back only by who changed it; without a change of the file nothing is ours.
WRITTEN = [c for c in CASES if set(c.data["diff"]) - {"containerd.running", "containerd.runtimes.runc.runtime_type"}]


def contents(state: NodeState) -> dict[str, str]:
    return {path: file.text for path, file in state.files.items() if not path.startswith(KEPT)}


def meaning(state: NodeState) -> dict[tuple[str, ...], object]:
    return {k: v for k, v in leaves(effective(str(state.containerd)).whole).items() if k[0] != "imports"}


def applied(case: Case) -> tuple[NodeSpec, NodeState, NodeState]:
    spec, before = spec_of(case), state_of(case)
    return spec, before, applied_to(Containerd(), spec, before)


def withdrawn(spec: NodeSpec, state: NodeState) -> NodeState:
    found = compare(Removal(Containerd()), spec, state)
    assert found.diff and not found.error
    left, closed = taken_back(Containerd(), spec, state)
    assert "containerd-stage" not in [step.name for step in closed.steps]
    return left


@pytest.mark.parametrize("case", WRITTEN, ids=str)
def test_remove_restores_the_original_files_and_keeps_what_the_user_wrote(case: Case) -> None:
    spec, before, state = applied(case)
    left = withdrawn(spec, state)
    assert contents(left) == contents(before)
    assert meaning(left) == meaning(before)
    assert not Containerd().original(spec, left)
    assert not [path for path in left.files if path.startswith(KEPT)]
    if CONFIG in state.files:
        left = withdrawn(spec, with_text(state, CONFIG, f"# mine\n{state.files[CONFIG].text}"))
        assert left.files[CONFIG].text.startswith("# mine\n")
        assert "nvidia" not in left.files[CONFIG].text or "nvidia" in contents(before).get(CONFIG, "")
        assert meaning(left) == meaning(before)
        assert not Containerd().original(spec, left)


def test_remove_finds_nothing_on_an_untouched_node() -> None:
    for case in CASES:
        assert not Containerd().original(spec_of(case), state_of(case))


def test_remove_keeps_a_default_that_the_user_changed() -> None:
    spec, _, state = applied(node(RUNC, default_runtime=True))
    mine = edited(state, 'default_runtime_name = "nvidia"', 'default_runtime_name = "runc"')
    assert "containerd.default_runtime_name" not in Containerd().original(spec, mine)
    assert 'default_runtime_name = "runc"' in withdrawn(spec, mine).files[CONFIG].text


@pytest.mark.parametrize(
    "answer", [Unknown(unknown="containerd: exit 1: bad TOML"), "version = ["], ids=["none", "odd"]
)
def test_an_unreadable_configuration_stops_remove(answer: str | Unknown) -> None:
    spec, before, state = applied(next(c for c in WRITTEN if CONFIG in state_of(c).files))
    blind = compare(Removal(Containerd()), spec, state.model_copy(update={"containerd": answer}))
    assert blind.error and not blind.diff
    never = compare(Removal(Containerd()), spec, before.model_copy(update={"containerd": answer}))
    assert not never.error and not never.applies


OTHER = """version = 2

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
options = {BinaryName = "/opt/was"}
"""
RUNC = OTHER.partition('\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]')[0]
CRI = '[plugins."io.containerd.grpc.v1.cri"'


def node(config: str, version: str = "1.7", **containerd: Any) -> Case:
    given = {"containerd": {"version": version, "config": config}}
    return Case("containerd", "here", "", {"spec": {"runtimes": {"containerd": containerd or "auto"}}, "state": given})


def edited(state: NodeState, old: str, new: str) -> NodeState:
    assert old in state.files[CONFIG].text
    return with_files(state, {CONFIG: state.files[CONFIG].text.replace(old, new, 1)})


def with_files(state: NodeState, texts: dict[str, str]) -> NodeState:
    files = state.files | {path: state.files[CONFIG].model_copy(update={"text": t}) for path, t in texts.items()}
    dump = containerdmodel.dump("1.7", {path: f.text for path, f in files.items() if path.startswith("/etc/")})
    running = Cri.model_validate(containerdmodel.cri(dump))  # the engine was started again since
    return state.model_copy(update={"files": files, "containerd": dump, "cri": running})


def test_remove_keeps_a_binary_that_the_user_chose() -> None:
    spec, _, state = applied(node(OTHER))
    mine = edited(state, "/usr/bin/nvidia-container-runtime", "/opt/mine")
    assert not Containerd().original(spec, mine)
    assert '"/opt/was"' in withdrawn(spec, state).files[CONFIG].text


def test_remove_keeps_what_the_user_enabled() -> None:
    spec, _, state = applied(node(RUNC))
    left = withdrawn(spec, edited(state, "version = 2\n", f"version = 2\n{CRI}]\nenable_cdi = true\n"))
    assert "enable_cdi = true" in left.files[CONFIG].text
    assert "nvidia" not in left.files[CONFIG].text


def test_remove_takes_out_the_whole_runtime_and_the_default() -> None:
    spec, _, state = applied(node(RUNC))
    mine = edited(state, "version = 2\n", f'version = 2\n{CRI}.containerd]\ndefault_runtime_name = "nvidia"\n')
    program = 'BinaryName = "/usr/bin/nvidia-container-runtime"\n'
    left = withdrawn(spec, edited(mine, program, f'{program}Root = "/r"\n'))
    assert "nvidia" not in left.files[CONFIG].text


def test_a_missing_runc_stays_and_the_plan_says_so() -> None:
    """A file that names only nvidia takes CRI down before containerd 2; remove does not take it down again."""
    alone = OTHER.replace(RUNC.removeprefix("version = 2\n"), "")
    spec, before, state = applied(node(alone))
    assert "remove leaves it there" in compare(Containerd(), spec, before).notes[0]
    found = compare(Removal(Containerd()), spec, state)
    assert found.notes == ("runtimes.runc stays: without it CRI is not served, as before gpuready",)
    left = withdrawn(spec, state).files[CONFIG].text
    assert left.startswith(alone)
    assert left.removeprefix(alone).split("\n", 1)[1] == RUNC.removeprefix("version = 2\n\n")
    _, _, usual = applied(node(OTHER))
    assert compare(Removal(Containerd()), spec, usual).notes == ()


def test_a_default_stays_on_record_until_it_is_replaced() -> None:
    spec, _, state = applied(node(RUNC, default_runtime=True))
    off = NodeSpec.model_validate({"runtimes": {"containerd": {"default_runtime": False}}})
    closed = converged(Containerd(), off, state)
    cut = with_text(state, OURS, closed.args(ContainerdInstall).between)
    assert Containerd().original(spec, cut) == Containerd().original(spec, state)


LATER = {"/etc/containerd/conf.d/later.toml": RUNC}


def test_an_overridden_file_stays_on_record() -> None:
    spec, _, state = applied(node(f'imports = ["/etc/containerd/conf.d/*.toml"]\n{RUNC}'))
    hidden = with_files(state, LATER)
    found = compare(Removal(Containerd()), spec, hidden)
    assert f"{CONFIG} still contains gpuready's" in found.error and next(iter(LATER)) in found.error
    again = compare(Containerd(), spec, hidden)
    assert again.diff and not again.error
    applied_again = applied_to(Containerd(), spec, hidden)
    assert compare(Removal(Containerd()), spec, applied_again).error
    by_hand = with_files(applied_again, {CONFIG: f'imports = ["/etc/containerd/conf.d/*.toml"]\n{RUNC}'})
    assert "nvidia" not in withdrawn(spec, by_hand).files[next(iter(LATER))].text


def test_a_damaged_record_stops_apply_and_remove() -> None:
    spec, _, state = applied(node(RUNC))
    lost = with_text(state, OURS, "{")
    for item in (Containerd(), Removal(Containerd())):
        error = compare(item, spec, lost).error
        assert f"{OURS}, the record of gpuready's changes, cannot be read" in error


# --- what apply writes ------------------------------------------------------------------------------------------


def text_after(case: Case) -> str:
    """The file after ``apply``, which a second run would not change."""
    spec, _, state = applied(case)
    again = compare(Containerd(), spec, state)
    assert not again.diff and not again.error
    return state.files[CONFIG].text


@pytest.mark.fault("D16")
def test_nvidia_stays_like_the_default_runtime_from_before_it_was_the_default() -> None:
    other = RUNC.replace(".runc]", ".other]").replace("version = 2\n", "")
    config = f'{RUNC}{CRI}.containerd]\ndefault_runtime_name = "other"\n{other}options = {{SystemdCgroup = true}}\n'
    text = text_after(node(config, default_runtime=True))
    assert "SystemdCgroup = true" in text.rpartition("runtimes.nvidia.options]")[2]


@pytest.mark.fault("D16")
def test_the_name_of_an_option_may_begin_in_lower_case() -> None:
    """As Kubespray writes it; containerd takes it for the same option."""
    asked = node(f"{RUNC}options = {{systemdCgroup = true}}\n")
    found = compare(Containerd(), spec_of(asked), state_of(asked))
    assert {c.key: c.expected for c in found.diff}["containerd.runtimes.nvidia.options.SystemdCgroup"] is True
    assert text_after(asked).rpartition("runtimes.nvidia")[2].lower().count("systemdcgroup") == 1


@pytest.mark.fault("D17")
def test_a_file_without_a_cri_section_is_taken_as_it_is() -> None:
    text = text_after(node('root = "/srv/containerd" # the big disk\n[debug]\nlevel = "info"\n', "2.1"))
    assert "version = 3" in text and 'root = "/srv/containerd" # the big disk' in text and "nvidia" in text


@pytest.mark.fault("D17")
def test_lines_that_end_as_windows_has_them_stay_so() -> None:
    text = text_after(node(f"{RUNC}# kept\n".replace("\n", "\r\n")))
    assert "nvidia" in text and text.count("\n") == text.count("\r\n") and "# kept\r\n" in text

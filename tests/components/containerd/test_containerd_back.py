"""containerd's way back: from every closed case to the very files from before; what the user wrote since stays."""

from __future__ import annotations

from typing import Any

import pytest

from gpuready.components.containerd.component import Containerd, ContainerdInstall
from gpuready.components.containerd.files import CONFIG, leaves
from gpuready.components.containerd.removal import OURS
from gpuready.components.containerd.state import effective
from gpuready.core.compare import compare
from gpuready.spec.model import NodeSpec
from gpuready.state.model import Cri, NodeState, Unknown
from tests.components.cases import Case, cases, spec_of, state_of
from tests.components.closing import KEPT, after, applied_to, close, converged, with_text
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
    found = compare(Containerd(), spec, state, original=True)
    assert found.diff and not found.error
    closed = close(Containerd(), spec, state, found.diff)
    assert "containerd-stage" not in [step.name for step in closed.steps]
    return after(Containerd(), spec, state, closed)


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
    case = next(c for c in CASES if "nvidia as the default runtime" in c.title)
    spec, _, state = applied(case)
    words = ('default_runtime_name = "nvidia"', 'default_runtime_name = "runc"')
    edited = with_text(state, CONFIG, state.files[CONFIG].text.replace(*words))
    edited = edited.model_copy(update={"containerd": str(state.containerd).replace(*words)})
    assert "containerd.default_runtime_name" not in Containerd().original(spec, edited)
    assert 'default_runtime_name = "runc"' in withdrawn(spec, edited).files[CONFIG].text


@pytest.mark.parametrize(
    "answer", [Unknown(unknown="containerd: exit 1: bad TOML"), "version = ["], ids=["none", "odd"]
)
def test_an_unreadable_configuration_stops_remove(answer: str | Unknown) -> None:
    spec, before, state = applied(next(c for c in WRITTEN if CONFIG in state_of(c).files))
    blind = compare(Containerd(), spec, state.model_copy(update={"containerd": answer}), original=True)
    assert blind.error and not blind.diff
    never = compare(Containerd(), spec, before.model_copy(update={"containerd": answer}), original=True)
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


def node(config: str, **containerd: Any) -> Case:
    runs = {"version": "1.7", "config": config}
    return Case("containerd", "here", "", {"spec": {"runtimes": {"containerd": containerd or "auto"}},
                                           "state": {"containerd": runs}})  # fmt: skip


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
    found = compare(Containerd(), spec, hidden, original=True)
    assert f"{CONFIG} still contains gpuready's" in found.error and next(iter(LATER)) in found.error
    again = compare(Containerd(), spec, hidden)
    assert again.diff and not again.error
    applied_again = applied_to(Containerd(), spec, hidden)
    assert compare(Containerd(), spec, applied_again, original=True).error
    by_hand = with_files(applied_again, {CONFIG: f'imports = ["/etc/containerd/conf.d/*.toml"]\n{RUNC}'})
    assert "nvidia" not in withdrawn(spec, by_hand).files[next(iter(LATER))].text


def test_a_damaged_record_stops_apply_and_remove() -> None:
    spec, _, state = applied(node(RUNC))
    lost = with_text(state, OURS, "{")
    for back in (False, True):
        error = compare(Containerd(), spec, lost, original=back).error
        assert f"{OURS}, the record of gpuready's changes, cannot be read" in error

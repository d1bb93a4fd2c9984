"""containerd is converged when the engine that runs says so: neither its file nor its dump will do."""

from __future__ import annotations

from typing import Any

import pytest

from gpuready.components.containerd.component import Containerd
from gpuready.components.containerd.files import CONFIG
from gpuready.core.compare import Comparison, compare
from tests.components.cases import Case, spec_of, state_of
from tests.components.closing import after, close, converged

CRI = '[plugins."io.containerd.grpc.v1.cri".containerd'
TABLE = f'{CRI}.default_runtime]\nruntime_type = "io.containerd.runc.v2"\noptions = {{SystemdCgroup = true}}\n'
RUNC = f'{CRI}.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'


def case(config: str, version: str = "1.7", **spec: Any) -> Case:
    state = {"containerd": {"version": version, "config": config}, "tools": {"nvidia-ctk": "/usr/bin/nvidia-ctk"}}
    return Case("containerd", "here", "", {"spec": {"runtimes": {"containerd": spec or "auto"}}, "state": state})


def compared(found: Case) -> Comparison:
    return compare(Containerd(), spec_of(found), state_of(found))


@pytest.mark.fault("D16")
@pytest.mark.parametrize("version", ["1.6", "1.7"])
@pytest.mark.parametrize("config", [f"version = 2\n{TABLE}{RUNC}", TABLE.replace('"io.containerd.grpc.v1.cri"', "cri")])
def test_no_default_runtime_is_promised_that_containerd_would_not_run(config: str, version: str) -> None:
    found = compared(case(config, version, default_runtime=True))
    assert not found.diff
    assert "decides the default runtime, whatever default_runtime_name says; rename the table to" in found.error
    like = {c.key: c.expected for c in compared(case(config, version)).diff}
    assert like["containerd.runtimes.nvidia.options.SystemdCgroup"] is True, "the default runtime of the table"


@pytest.mark.fault("D16")
def test_nvidia_stays_like_the_default_runtime_from_before_it_was_the_default() -> None:
    config = (
        f'version = 2\n{CRI}]\ndefault_runtime_name = "other"\n{RUNC}{RUNC.replace(".runc]", ".other]")}'
        "options = {SystemdCgroup = true}\n"
    )
    asked = case(config, default_runtime=True)
    spec, before = spec_of(asked), state_of(asked)
    closed = converged(Containerd(), spec, before)
    state = after(Containerd(), spec, before, closed)
    assert "SystemdCgroup = true" in state.files[CONFIG].text.rpartition("runtimes.nvidia.options]")[2]
    again = compare(Containerd(), spec, state)
    assert not again.diff and not again.error


@pytest.mark.fault("D16")
def test_the_name_of_an_option_may_begin_in_lower_case() -> None:
    """As Kubespray writes it; containerd takes it for the same option."""
    config = f"version = 2\n{RUNC}options = {{systemdCgroup = true}}\n"
    found = compared(case(config))
    assert {c.key: c.expected for c in found.diff}["containerd.runtimes.nvidia.options.SystemdCgroup"] is True
    spec, before = spec_of(case(config)), state_of(case(config))
    state = after(Containerd(), spec, before, close(Containerd(), spec, before, found.diff))
    assert state.files[CONFIG].text.rpartition("runtimes.nvidia")[2].lower().count("systemdcgroup") == 1
    assert not compare(Containerd(), spec, state).diff


@pytest.mark.fault("D17")
def test_the_advice_on_version_one_says_what_migrate_would_lose() -> None:
    mirrors = (
        '[plugins.cri]\nsandbox_image = "m/pause:3"\n[plugins.cri.registry.mirrors."docker.io"]\nendpoint = ["m"]\n'
    )
    lost = compared(case(mirrors, "2.1")).error
    assert (
        "does not read its CRI settings (sandbox_image, registry); `containerd config migrate` leaves them out" in lost
    )
    assert "To keep them, write the file as version 2: `version = 2` at the top" in lost
    assert "CRI settings" not in compared(case('[plugins.opt]\npath = "/opt/x"\n', "2.1")).error


@pytest.mark.fault("D17")
def test_a_file_without_a_cri_section_is_taken_as_it_is() -> None:
    config = 'root = "/srv/containerd" # the big disk\n[debug]\nlevel = "info"\n'
    asked = case(config, "2.1")
    spec, before = spec_of(asked), state_of(asked)
    found = compare(Containerd(), spec, before)
    assert found.diff and not found.error
    state = after(Containerd(), spec, before, close(Containerd(), spec, before, found.diff))
    assert (
        "version = 3" in state.files[CONFIG].text
        and 'root = "/srv/containerd" # the big disk' in state.files[CONFIG].text
    )
    assert not compare(Containerd(), spec, state).diff


@pytest.mark.fault("D17")
def test_lines_that_end_as_windows_has_them_stay_so() -> None:
    asked = case(f"version = 2\n{RUNC}# kept\n".replace("\n", "\r\n"))
    spec, before = spec_of(asked), state_of(asked)
    closed = converged(Containerd(), spec, before)
    text = closed.writes[CONFIG]
    assert "nvidia" in text and text.count("\n") == text.count("\r\n") and "# kept\r\n" in text

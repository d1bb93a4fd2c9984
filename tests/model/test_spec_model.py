"""The models: defaults, YAML's traps, and that nothing heavy is imported for them."""

import datetime

import pytest
from pydantic import ValidationError

from gpuready.model.schema_help import allowed_at, elsewhere, words_at
from gpuready.model.sizes import to_bytes
from gpuready.model.spec import TOOLKIT_VERSION, ContainerdSpec, CrioSpec, DockerSpec, NodeSpec
from tests.command import python


def test_defaults_are_the_first_values_of_the_design() -> None:
    spec = NodeSpec()
    assert spec == NodeSpec.model_validate({}) == NodeSpec.model_validate(None)
    assert (spec.hardware.gpus, spec.hardware.model, spec.hardware.nvswitch) == ("auto", None, "auto")
    assert (spec.owners.driver, spec.owners.toolkit, spec.owners.runtime) == ("auto", "auto", "auto")
    assert (spec.toolkit.version, spec.toolkit.hold) == (TOOLKIT_VERSION, True) == ("1.20.1", True)
    assert spec.toolkit.repo.url == "https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH)"
    assert spec.toolkit.repo.fingerprint == "C95B321B61E88C1809C4F759DDCAE044F796ECB0"
    assert spec.toolkit.repo.proxy is None and spec.toolkit.floor_exception is None
    assert (spec.driver.policy, spec.ldso, spec.memlock) == ("observe", "auto", "auto")
    assert (spec.runtimes.docker, spec.runtimes.containerd, spec.runtimes.podman) == ("auto", "auto", "auto")
    assert (spec.rdma.netns_mode, spec.reconverge.on_driver_change) == ("unmanaged", "report")
    assert (spec.maintenance.restart, spec.maintenance.reboot, spec.maintenance.drain) == ("idle", "never", "none")
    assert (spec.verify.level, spec.verify.image, spec.verify.waive) == ("effective", None, ())
    assert DockerSpec() == DockerSpec(default_runtime=False, live_restore="auto", shm_size=None, cdi="auto")


def test_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        NodeSpec().ldso = "off"


@pytest.mark.parametrize("off", [False, "off"])
def test_yaml_takes_off_for_false(off: object) -> None:
    spec = NodeSpec.model_validate({"ldso": off, "reconverge": {"on_driver_change": off}})
    assert (spec.ldso, spec.reconverge.on_driver_change) == ("off", "off")


def test_an_empty_heading_is_an_empty_mapping() -> None:
    assert NodeSpec.model_validate({"toolkit": None, "verify": None}) == NodeSpec()
    assert NodeSpec.model_validate({"runtimes": {"docker": None}}).runtimes.docker == DockerSpec()


def test_values_are_normalised() -> None:
    spec = NodeSpec.model_validate(
        {
            "ldso": ["/usr/local/nvidia/lib64/"],
            "runtimes": {"docker": {"shm_size": "8G"}},
            "toolkit": {"repo": {"fingerprint": "c95b 321b 61e8 8c18 09c4  f759 ddca e044 f796 ecb0"}},
            "verify": {"waive": [{"check": "gpu.count", "reason": "x", "until": "2027-01-31"}]},
        }
    )
    assert spec.ldso == ("/usr/local/nvidia/lib64",)
    assert isinstance(spec.runtimes.docker, DockerSpec) and spec.runtimes.docker.shm_size == "8g"
    assert spec.toolkit.repo.fingerprint == NodeSpec().toolkit.repo.fingerprint
    assert spec.verify.waive[0].until == datetime.date(2027, 1, 31) and spec.verify.waive[0].host == "*"
    assert NodeSpec.model_validate(spec.model_dump(mode="json")) == spec


@pytest.mark.parametrize(
    ("version", "until", "good"),
    [
        ("1.19.1", None, True),
        ("1.19.0", None, False),
        ("1.9.9", None, False),
        ("2.0.0", None, True),
        ("1.18.2", datetime.date(2026, 11, 2), True),
        ("1.18.2", datetime.date(2026, 11, 1), True),
        ("1.18.2", datetime.date(2026, 10, 31), False),
        ("1.20.1", datetime.date(2020, 1, 1), True),
    ],
)
def test_floor(version: str, until: datetime.date | None, good: bool) -> None:
    block = {"version": version, "floor_exception": {"reason": "old", "until": until} if until else None}
    context = {"today": datetime.date(2026, 11, 1)}
    if good:
        assert NodeSpec.model_validate({"toolkit": block}, context=context).toolkit.version == version
    else:
        with pytest.raises(ValidationError, match="floor"):
            NodeSpec.model_validate({"toolkit": block}, context=context)


@pytest.mark.parametrize(
    ("size", "count"),
    [("8g", 8 << 30), ("64M", 64 << 20), ("64mb", 64 << 20), ("1.5GiB", 3 << 29), ("10", 10), (7, 7), ("1 k", 1024)],
)
def test_sizes(size: object, count: int) -> None:
    assert to_bytes(size) == count


@pytest.mark.parametrize("size", ["", "g", "8x", "-1", -1, True, None, 1.5, "1e3", "٣g", "8g\n", "1..5g"])
def test_no_sizes(size: object) -> None:
    with pytest.raises(ValueError, match="not a size"):
        to_bytes(size)


@pytest.mark.parametrize(("gpus", "expected"), [("auto", None), ("none", None), (8, 8)])
def test_expected_gpus(gpus: object, expected: int | None) -> None:
    hardware = NodeSpec.model_validate({"hardware": {"gpus": gpus}}).hardware
    assert hardware.expected_gpus == expected
    assert hardware.without_gpus is (gpus == "none")


@pytest.mark.parametrize(
    ("given", "size"),
    [("4gb", 4 << 30), ("4GiB", 4 << 30), ("512mb", 512 << 20), ("64k", 65536), ("100b", 100), ("1t", 1 << 40), (7, 7)],
)
def test_a_size_is_spelt_as_docker_reads_it(given: str | int, size: int) -> None:
    spec = DockerSpec.model_validate({"shm_size": given})
    assert to_bytes(spec.shm_size) == size


@pytest.mark.parametrize("given", ["4ib", "4bb", "gb", "0g", "4 gb", "-1g", "4gbs"])
def test_what_is_no_size_is_refused(given: str) -> None:
    with pytest.raises(ValidationError):
        DockerSpec.model_validate({"shm_size": given})


def test_a_mapping_requires_an_engine() -> None:
    runtimes = NodeSpec.model_validate({"runtimes": {"docker": {"shm_size": "8g"}, "containerd": "absent"}}).runtimes
    assert runtimes.docker_settings == DockerSpec(shm_size="8g")
    assert [runtimes.requires(engine) for engine in ("docker", "containerd", "crio")] == [True, False, False]
    assert runtimes.containerd_settings == ContainerdSpec() and runtimes.crio_settings == CrioSpec()


def test_words() -> None:
    assert allowed_at(NodeSpec, ("hardware", "gpus")) == "auto | none | a number from 1"
    assert allowed_at(NodeSpec, ("toolkit", "hold")) == "true | false"
    assert allowed_at(NodeSpec, ("ldso", 3)).startswith("an absolute directory")
    assert allowed_at(NodeSpec, ("verify", "waive", 0, "until")) == "a date, such as 2026-12-31"
    assert allowed_at(NodeSpec, ("owners", "driver")) == "auto | host | operator | image"
    assert words_at(NodeSpec, ("runtimes", "docker"))[:3] == ["auto", "absent", "default_runtime"]
    assert elsewhere(NodeSpec, "docker") == ["runtimes.docker"]
    assert elsewhere(NodeSpec, "nothing") == []


def test_the_spec_does_not_import_pyinfra() -> None:
    heavy = "[m for m in sys.modules if m.split('.')[0] in ('pyinfra', 'pyinfra_cli', 'gevent', 'paramiko')]"
    code = f"import sys, gpuready.inventory.hosts, gpuready.model.schema; print({heavy})"
    assert python("-c", code).stdout.strip() == "[]"


def test_each_repository_has_the_placeholder_of_its_package_manager() -> None:
    for key, placeholder in (("url", "$basearch"), ("rpm_url", "$(ARCH)")):
        with pytest.raises(ValidationError, match="not a plain repository URL"):
            NodeSpec.model_validate({"toolkit": {"repo": {key: f"https://mirror.example/{placeholder}"}}})

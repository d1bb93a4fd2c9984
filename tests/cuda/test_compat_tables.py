"""The compatibility tables: dated, with source, and free of contradictions among themselves."""

import itertools
import re

import pytest

from gpuready.base.versions import driver, numbers, padded
from gpuready.cuda import tables
from gpuready.cuda.facts import stack_of


def test_there_are_the_files_that_are_read() -> None:
    files = sorted(path.stem for path in tables.DATA.glob("*.yaml"))
    assert files == ["branches", "container-toolkit", "forward", "gpus", "images", "toolkits"]


def test_a_newer_toolkit_never_needs_an_older_driver() -> None:
    for (older, needs), (newer, more) in itertools.pairwise(tables.toolkits().items()):
        assert padded(needs) <= padded(more), (older, newer)


def test_a_newer_branch_never_speaks_an_older_cuda() -> None:
    for (older, speaks), (newer, more) in itertools.pairwise(tables.branches().items()):
        assert older < newer
        assert speaks <= more


def test_toolkits_and_branches_agree() -> None:
    for cuda, needs in tables.toolkits().items():
        assert needs[0] in tables.branches(), cuda
        assert tables.newest_cuda(needs) == cuda[:2], cuda


def test_a_floor_is_a_driver_of_the_first_toolkit_of_its_major_or_newer() -> None:
    for major, floor in tables.floors().items():
        first = min(cuda for cuda in tables.toolkits() if cuda[0] == major)
        assert floor[0] == tables.toolkits()[first][0]
        assert tables.newest_cuda(floor)[0] == major
    assert {cuda[0] for cuda in tables.known_cuda() if cuda[0] >= 11} == set(tables.floors())


def test_forward_compatibility_goes_from_older_branches_only() -> None:
    known = [cuda for cuda in tables.known_cuda() if cuda >= (11, 0)]
    rows = {cuda: tables.forward_branches(cuda) for cuda in known}
    assert sum(bool(current) for current, _ in rows.values()) == 11
    for cuda, lists in rows.items():
        for branch in itertools.chain(*lists):
            assert tables.newest_cuda((branch,)) < cuda, (cuda, branch)
            assert branch in tables.branches()


def test_the_matrix_only_loses_a_branch_when_it_reaches_its_own_cuda() -> None:
    current = {cuda: tables.forward_branches(cuda)[0] for cuda in tables.known_cuda()}
    for (older, has), (newer, more) in itertools.pairwise((c, b) for c, b in current.items() if b):
        assert has <= more, (older, newer)


def test_support_ends_in_the_future_of_the_data() -> None:
    until = tables.supported_until()
    assert {b: (end.month, end.sure) for b, end in until.items()} == {
        580: ("2028-06", True), 595: ("2027-03", True), 620: ("2029-09", False)
    }  # fmt: skip
    assert all(re.fullmatch(r"20\d\d-\d\d", end.month) for end in until.values())
    assert str(until[580]) == "2028-06" and str(until[620]) == "2029-09, by one source only"


def test_a_branch_with_an_open_end_is_not_called_ended() -> None:
    assert not any(tables.ended(branch) for branch in (580, 595, 610, 615, 620, 630))
    assert all(tables.ended(branch) for branch in (470, 535, 550, 570, 590))
    assert {610, 615} <= set(tables.security_floors()) - set(tables.supported_until())


def test_a_security_floor_is_a_release_of_its_branch() -> None:
    """A branch that is newer than the last bulletin has none."""
    floors = tables.security_floors()
    assert all(floor[0] == branch for branch, floor in floors.items())
    assert {b for b in tables.supported_until() if b in tables.branches() and b <= max(floors)} <= set(floors)


@pytest.mark.parametrize(
    ("id", "architecture"),
    [
        (0x2901, "Blackwell"), (0x2941, "Blackwell"), (0x2B85, "Blackwell"), (0x2E12, "Blackwell"),
        (0x3182, "Blackwell"), (0x31C2, "Blackwell"), (0x3041, ""), (0x307F, ""), (0x3200, ""),
    ],
)  # fmt: skip
def test_rubin_is_not_blackwell(id: int, architecture: str) -> None:
    assert tables.device(id).architecture == architecture


@pytest.mark.parametrize(
    ("cuda", "needs"),
    [
        ("11.2.2", "460.32.03"),
        ("11.2", "460.27.03"),
        ("12.4.9", "550.54.15"),
        ("8.0.61", "375.26"),
        ("8.0.44", "367.48"),
    ],
)
def test_the_driver_of_a_toolkit(cuda: str, needs: str) -> None:
    assert driver(tables.bundled_driver(numbers(cuda))) == needs


def test_a_cuda_that_does_not_exist() -> None:
    with pytest.raises(KeyError):
        tables.bundled_driver((12, 7))


def test_versions_are_not_compared_as_text() -> None:
    assert numbers("450.102.04") > numbers("450.80.02")
    assert driver(numbers("450.80.02")) == "450.80.02"
    assert driver(numbers("460.80")) == "460.80"
    for wrong in ("", "450.", "a", "1.2.3.4.5", "450.80.02-1", "٤٥٠.1"):
        with pytest.raises(ValueError, match="not a version"):
            numbers(wrong)


#: What a GPU is, and its last branch of drivers if that has come: the names.
GPUS = {
    ("consumer", "Turing", None): ("GeForce RTX 2080 Ti", "RTX 2080 Ti", "GTX 1650", "TITAN RTX"),
    ("consumer", "Ada", None): ("NVIDIA GeForce RTX 4090",),
    ("consumer", "Pascal", 580): ("GeForce GTX 1080 Ti",),
    ("consumer", "Blackwell", None): ("NVIDIA GeForce RTX 5090",),
    ("consumer", "Volta", 580): ("TITAN V",),
    ("consumer", "Maxwell", 580): ("GeForce GTX 750 Ti",),
    ("consumer", "Kepler", 470): ("GeForce GTX 780 Ti",),
    ("pro", "Turing", None): ("Quadro RTX 6000", "Quadro RTX 5000", "Quadro RTX 4000", "Quadro RTX 3000",
                              "NVIDIA T1000"),
    ("pro", "Ada", None): ("NVIDIA RTX 5000 Ada Generation", "NVIDIA RTX 2000 Ada Generation",
                           "NVIDIA RTX 4000 SFF Ada Generation", "NVIDIA RTX 6000 Ada Generation"),
    ("pro", "Maxwell", 580): ("Quadro K2200",),
    ("pro", "Kepler", 470): ("Quadro K4200",),
    ("pro", "Ampere", None): ("NVIDIA RTX A6000",),
    ("pro", "Blackwell", None): ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA RTX PRO 5000 Blackwell",
                                 "NVIDIA RTX PRO 4500 Blackwell", "NVIDIA RTX 6000D"),
    ("pro", "Pascal", 580): ("Quadro P4000",),
    ("datacenter", "Volta", 580): ("Tesla V100-SXM2-32GB",),
    ("datacenter", "Pascal", 580): ("Tesla P100-PCIE-16GB",),
    ("datacenter", "Kepler", 470): ("Tesla K80",),
    ("datacenter", "Maxwell", 580): ("Tesla M60",),
    ("datacenter", "Turing", None): ("Tesla T4",),
    ("datacenter", "Ampere", None): ("NVIDIA A100-SXM4-80GB", "NVIDIA A10G", "NVIDIA A10M",
                                     "GRID A100X-20C"),
    ("datacenter", "Hopper", None): ("NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA GH200 480GB"),
    ("datacenter", "Ada", None): ("NVIDIA L40S", "NVIDIA L4"),
    ("datacenter", "Blackwell", None): ("NVIDIA B200", "NVIDIA GB300"),
    ("unknown", "Blackwell", None): ("NVIDIA GB10",),
    ("jetson", "Blackwell", None): ("NVIDIA Thor", "NVIDIA Thor (nvgpu)"),
    ("unknown", "", None): ("NVIDIA VR200", "Orin", ""),
}  # fmt: skip


@pytest.mark.parametrize(("name", "found"), [(name, found) for found, names in GPUS.items() for name in names])
def test_what_a_gpu_is(name: str, found: tuple[str, str, int | None]) -> None:
    gpu = tables.gpu(name)
    assert (gpu.kind, gpu.architecture, gpu.newest_branch) == found


def test_an_architecture_begins_with_a_driver_that_speaks_its_first_cuda() -> None:
    data = tables._load("gpus")
    made = {rule["name"] for rule in data["architectures"]}
    for key in ("oldest_branch", "newest_branch", "newest_toolkit", "open_module"):
        assert set(data[key]) <= made, key
    by_capability = set(data["oldest_toolkit"]) - set(data["oldest_branch"])
    assert by_capability <= {rule["capability"] for rule in data["architectures"]}
    for name in data["oldest_branch"]:
        first = data["oldest_toolkit"][name]
        assert numbers(first) <= tables.newest_cuda(tables.driver_branches(name)[:1]), name


def test_a_capability_may_need_a_newer_compiler_than_its_architecture() -> None:
    assert tables.gpu("NVIDIA Thor").oldest_toolkit == (13, 0)
    assert tables.gpu("NVIDIA B200").oldest_toolkit == (12, 8)


@pytest.mark.parametrize(
    ("architecture", "branch", "why"),
    [
        ("Hopper", 470, "no support for Hopper GPUs (the first branch is 520)"),
        ("Kepler", 580, "no support for Kepler GPUs (the last branch is 470)"),
        ("Kepler", 470, ""),
        ("Blackwell", 570, ""),
        ("Blackwell", 700, ""),
        ("", 346, ""),
    ],
)
def test_which_branches_drive_it(architecture: str, branch: int, why: str) -> None:
    assert tables.no_support(architecture, branch) == why


@pytest.mark.parametrize(
    ("id", "model", "module", "first"),
    [
        (0x2342, "GH200", "only", ()),
        (0x2348, "GH200", "only", ()),
        (0x2335, "Hopper", "", ()),  # H200
        (0x2901, "Blackwell", "only", (570, 133, 20)),  # B200
        (0x2941, "Blackwell", "only", ()),  # GB200
        (0x3182, "Blackwell", "only", (580, 82, 7)),  # B300
        (0x31C2, "Blackwell", "only", (580, 82, 7)),  # GB300
        (0x2E12, "Blackwell", "only", (575, 51, 3)),  # GB10
        (0x1DB4, "Volta", "never", ()),
        (0xFFFF, "", "", ()),
    ],
)
def test_a_gpu_by_its_pci_id(id: int, model: str, module: str, first: tuple[int, ...]) -> None:
    found = tables.device(id)
    oldest = found.oldest_driver.driver if found.oldest_driver else ()
    assert (found.model, found.open_module, oldest) == (model, module, first)


@pytest.mark.parametrize(
    ("name", "first"), [("NVIDIA B200", "570.133.20"), ("NVIDIA GB200", ""), ("NVIDIA GB300", "580.82.07")]
)
def test_a_first_driver_by_name_is_newer_than_the_first_branch(name: str, first: str) -> None:
    gpu = tables.gpu(name)
    assert (driver(gpu.oldest_driver.driver) if gpu.oldest_driver else "") == first
    assert not gpu.oldest_driver or gpu.oldest_driver.driver[0] >= tables.driver_branches(gpu.architecture)[0]


@pytest.mark.parametrize(
    ("id", "place"),
    [
        (0x2901, "baseboard"), (0x2909, "baseboard"), (0x3182, "baseboard"), (0x2941, "rack"), (0x31C2, "rack"),
        (0x2335, ""), (0x2342, ""), (0x2BB5, ""), (0x2E12, ""), (0x3041, ""),
    ],
)  # fmt: skip
def test_where_the_switches_of_nvlink_5_are(id: int, place: str) -> None:
    assert tables.device(id).nvlink5 == place


def test_the_brand_goes_before_the_name() -> None:
    assert tables.gpu("NVIDIA Thor", "NVIDIA").kind == "jetson", "but for a GPU with a driver of its own"
    assert tables.gpu("NVIDIA H200", "NVIDIA").brands == {"nvidia"}
    assert tables.gpu("Graphics Device", "GeForce RTX").kind == "consumer"
    assert tables.gpu("Graphics Device", "NVIDIA RTX").kind == "pro"
    assert tables.gpu("Graphics Device", "N/A").kind == "unknown"


def test_every_brand_has_a_kind_its_number_and_a_word() -> None:
    brands = tables._load("gpus")["brands"]
    assert sorted(brand["nvml"] for brand in brands.values()) == list(range(1, 17))
    assert {brand["kind"] for brand in brands.values()} == {"consumer", "pro", "datacenter"}
    words = {brand["word"] for brand in brands.values()}
    for rule in tables._load("gpus")["names"]:
        assert set(rule["brands"]) <= words, rule


@pytest.mark.parametrize(
    ("toolkit", "stack"),
    [("1.17.3", "mount"), ("1.17.4", "disabled"), ("1.17.5", "hook"), ("1.17.6", "hook"), ("1.17.7", "ldconfig"),
     ("1.17.8", "ldconfig"), ("1.18.0", "hook")],
)  # fmt: skip
def test_what_a_toolkit_does_by_itself(toolkit: str, stack: str) -> None:
    assert stack_of(numbers(toolkit)) == stack


def test_a_published_image_has_a_known_cuda() -> None:
    for year, month in itertools.product(range(22, 27), range(1, 13)):
        found = tables.published(f"nvcr.io/nvidia/pytorch:{year}.{month:02}-py3")
        assert found is None or (found.cuda in tables.known_cuda() and found.libcuda == "own")
    assert tables.published_releases("nvcr.io/nvidia/pytorch:22.04-py3") == ("22.10", "26.08")
    assert tables.published_releases("pytorch/pytorch:latest") == ("", "")


def test_newer_releases_of_a_published_image_never_have_an_older_cuda() -> None:
    names = [f"{year}.{month:02}" for year in range(22, 27) for month in range(1, 13)]
    found = [tables.published(f"nvcr.io/nvidia/pytorch:{name}-py3") for name in names]
    known = [each.cuda for each in found if each is not None]
    assert known == sorted(known) and len(known) == names.index("26.08") - names.index("22.10") + 1


@pytest.mark.parametrize(
    "reference",
    [
        "nvcr.io/nvidia/pytorch:22.09-py3",
        "nvcr.io/nvidia/pytorch:25.08-py3-igpu",
        "example.com/nvidia/cuda:12.4.1-base",
        "pytorch/pytorch:latest",
        "nvidia/cuda:12.4.1-base@sha256:" + "0" * 64,
    ],
)
def test_what_the_table_of_images_does_not_have(reference: str) -> None:
    assert tables.published(reference) is None


def test_the_releases_of_a_branch() -> None:
    assert [driver(one) for one in tables.releases(450)] == ["450.36.06", "450.51.05", "450.51.06", "450.80.02"]
    assert tables.releases(565) == ()

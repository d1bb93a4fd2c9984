"""The predictor: what was seen in the field, and what must hold for any host and any image."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpuready.base.versions import Version, numbers
from gpuready.compat.answer import answer
from gpuready.compat.fixes import fixes, official
from gpuready.compat.note import read_note
from gpuready.cuda import tables
from gpuready.cuda.facts import STACKS, CompatLib, Host, Image, Note, cannot_be, gated
from gpuready.cuda.predict import Prediction, predict
from tests.compat.imagefiles import NOTE
from tests.cuda.test_compat_require import FIRST, SECOND, THIRD

#: The note of a released library, as the container toolkit's tests have it.
NOTE_OF_575 = read_note(NOTE)


def case(
    driver: str,
    gpu: str,
    cuda: str,
    library: str = "",
    stack: str = "hook",
    toolkit: str = "",
    require: tuple[str, ...] = (),
    noted: bool = False,
) -> tuple[Host, Image]:
    """A host and an image; ``noted``: the library, 575.57.08, has its real note."""
    known = numbers(toolkit) if toolkit else None
    libraries = (CompatLib(numbers(library), NOTE_OF_575 if noted else None),) if library else ()
    return (
        Host(numbers(driver), tables.gpu(gpu), stack, known, gated(stack, known)),
        Image(numbers(cuda), libraries, requires=require),
    )


#: driver, GPU, CUDA, library, stack, toolkit, requirements, noted -> verdict, certain
FIELD = [
    (case("450.102.04", "GeForce RTX 2080 Ti", "11.2.2", "460.32.03", "mount"), "ERROR_804", True),
    (case("450.102.04", "GeForce RTX 2080 Ti", "11.0.3", "450.51.06", "mount"), "NATIVE", True),
    (case("460.80", "GeForce RTX 2080 Ti", "11.3.1", "465.19.01", "mount", "1.4.0"), "ERROR_804", True),
    (case("460.80", "GeForce RTX 2080 Ti", "11.3.1", "465.19.01", "ldconfig", "1.17.7"), "ERROR_804", True),
    (case("460.80", "GeForce RTX 2080 Ti", "11.3.1", "465.19.01", "hook"), "ERROR_804", True),
    (case("460.80", "GeForce RTX 2080 Ti", "11.3.1", "465.19.01", "hook", "1.20.0"), "ERROR_804", True),
    (case("460.80", "GeForce RTX 2080 Ti", "11.3.1", "465.19.01", "disabled"), "MINOR", True),
    (case("460.80", "GeForce RTX 2080 Ti", "11.3.1", "", "mount"), "MINOR", True),
    (case("465.19.01", "GeForce RTX 2080 Ti", "11.3.1", "465.19.01", "mount"), "NATIVE", True),
    (case("470.42.01", "GeForce RTX 2080 Ti", "11.3.1", "465.19.01", "hook"), "NATIVE", True),
    (case("465.19.01", "GeForce RTX 2080 Ti", "11.3.1", "465.19.01", "none"), "NATIVE", True),
    (case("570.211.01", "NVIDIA H100", "12.9.1", "575.57.08", "hook", "1.19.1", noted=True), "FORWARD", True),
    (case("570.211.01", "NVIDIA H100", "12.9.1", "575.57.08", "hook", "1.20.0", noted=True), "FORWARD", True),
    (case("570.211.01", "datacenter", "12.9.1", "575.57.08", "hook"), "FORWARD", True),
    (case("440.33", "GeForce GTX 1080 Ti", "11.0.3", "450.51.06", "mount"), "ERROR_804", True),
]

DERIVED = [
    # Without a container: whatever the loader takes first.
    (case("460.80", "GeForce RTX 2080 Ti", "11.3.1", "465.19.01", "none"), "ERROR_804", True),
    (case("580.65.06", "NVIDIA H100", "12.9.1", "575.57.08", "none"), "ERROR_803", False),
    # The floors of minor-version compatibility, and below them.
    (case("450.80.02", "NVIDIA A100", "11.8.0"), "MINOR", True),
    (case("450.36.06", "NVIDIA A100", "11.0.1"), "NATIVE", True),
    (case("450.36.06", "NVIDIA A100", "11.1.1"), "NEEDS_DRIVER", True),
    (case("580.65.06", "NVIDIA A100", "13.3.0"), "MINOR", True),
    (case("575.57.08", "NVIDIA A100", "13.0.0"), "NEEDS_DRIVER", True),
    (case("418.39", "Tesla V100", "10.2"), "NEEDS_DRIVER", True),
    (case("440.33", "Tesla V100", "10.2"), "NATIVE", True),
    # A driver of a branch that came after the tables speaks at least what the newest known one does, most likely.
    (case("700.10.01", "NVIDIA B200", "13.4.0"), "NATIVE", False),
    # Branches that neither the matrix nor the note lists.
    (case("525.60.13", "NVIDIA A100", "12.9.1", "575.57.08", "hook"), "ERROR_803", False),
    (case("525.60.13", "NVIDIA A100", "12.9.1", "575.57.08", "mount", noted=True), "ERROR_803", True),
    (case("545.23.08", "NVIDIA A100", "12.9.1", "575.57.08", "hook", "1.20.0", noted=True), "MINOR", True),
    (case("545.23.08", "NVIDIA A100", "12.9.1", "575.57.08", "hook", "1.18.2", noted=True), "ERROR_803", True),
    # A branch that has ended: the matrix forgot it, the images of that time admit it.
    (case("450.102.04", "Tesla V100", "11.2.2", "460.32.03", "mount"), "FORWARD", True),
    (case("550.54.15", "NVIDIA L4", "12.8.1", "570.124.06", "hook"), "FORWARD", True),
    # A newer library of the same branch is taken by 1.20, which reads its note, and by nothing older.
    (case("575.10.10", "NVIDIA H100", "12.9.1", "575.57.08", "hook", "1.20.0", noted=True), "FORWARD", True),
    (case("575.10.10", "GeForce RTX 4090", "12.9.1", "575.57.08", "hook", "1.20.0", noted=True), "ERROR_804", True),
    (case("575.10.10", "GeForce RTX 4090", "12.9.1", "575.57.08", "hook", "1.19.1", noted=True), "NATIVE", True),
    (case("575.99.99", "NVIDIA H100", "12.9.1", "575.57.08", "hook", "1.20.0", noted=True), "NATIVE", True),
    # Workstation boards: only selected ones.
    (case("535.54.03", "NVIDIA RTX A6000", "12.4.1", "550.54.15", "hook"), "FORWARD", False),
    # Nobody knows it.
    (case("535.54.03", "NVIDIA VR200", "12.4.1", "550.54.15", "hook"), "ERROR_804", False),
    (case("535.54.03", "NVIDIA VR200", "12.4.1", "550.54.15", "disabled"), "MINOR", False),
    # Drivers from before the GPU, and from after its last branch; of a GPU that nobody knows nothing is said.
    (case("470.82.01", "NVIDIA H100", "11.4"), "NEEDS_DRIVER", True),
    (case("535.54.03", "NVIDIA B200", "12.2"), "NEEDS_DRIVER", True),
    # The first branch alone is too coarse for these.
    (case("570.124.06", "NVIDIA B200", "12.8"), "NEEDS_DRIVER", True),
    (case("570.133.20", "NVIDIA B200", "12.8"), "NATIVE", True),
    (case("570.124.06", "NVIDIA GB200", "12.8"), "NATIVE", True),
    (case("570.124.06", "NVIDIA GB300", "12.9.1", "575.57.08", "hook"), "NEEDS_DRIVER", False),
    (case("580.82.07", "NVIDIA B300 SXM6 AC", "12.9"), "NATIVE", True),
    (case("580.65.06", "Tesla K80", "11.4"), "NEEDS_DRIVER", True),
    (case("470.82.01", "NVIDIA H200", "12.1", "530.30.02", "mount"), "NEEDS_DRIVER", True),
    (case("470.82.01", "Tesla K80", "11.4"), "NATIVE", True),
    (case("520.61.05", "NVIDIA H100", "11.8"), "NATIVE", True),
    (case("470.82.01", "datacenter", "11.4"), "NATIVE", True),
    (case("470.82.01", "Orin", "11.4"), "NATIVE", False),
    # A libcuda that no longer knows what the driver still drives.
    (case("470.82.01", "Tesla K80", "12.1", "530.30.02", "mount"), "ERROR_804", False),
    (case("580.65.06", "Tesla V100", "13.1", "590.44.01", "hook"), "ERROR_804", False),
    # The gate: evaluated in legacy mode, whatever becomes of libcuda, and never by CDI.
    (case("535.54.03", "GeForce RTX 4090", "12.9.1", "575.57.08", "ldconfig", "", (THIRD,)), "REFUSED", True),
    (case("535.54.03", "GeForce RTX 4090", "12.9.1", "575.57.08", "disabled", "", (THIRD,)), "REFUSED", True),
    (case("535.54.03", "GeForce RTX 4090", "12.9.1", "575.57.08", "hook", "1.17.8", (THIRD,)), "REFUSED", True),
    (case("535.54.03", "GeForce RTX 4090", "12.9.1", "575.57.08", "hook", "1.20.0", (THIRD,)), "ERROR_804", True),
    (case("535.54.03", "GeForce RTX 4090", "12.9.1", "575.57.08", "none", "", (THIRD,)), "ERROR_804", True),
    (case("470.82.01", "GeForce RTX 3090", "11.8.0", "520.61.05", "mount", "", (SECOND,)), "ERROR_804", False),
    (case("450.102.04", "GeForce RTX 2080 Ti", "11.2.2", "460.32.03", "mount", "", (FIRST,)), "ERROR_804", True),
    (case("550.54.15", "NVIDIA L4", "12.4.1", "", "mount", "", ("cuda>=x",)), "REFUSED", True),
    (case("550.54.15", "NVIDIA L4", "12.4.1", "", "mount", "", ("cuda>=12.4", "driver>=560")), "REFUSED", True),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "verdict", "certain"), [*FIELD, *DERIVED])
def test_what_was_seen_and_what_follows_from_it(asked: tuple[Host, Image], verdict: str, certain: bool) -> None:
    found = predict(*asked)
    assert (found.verdict, found.certain) == (verdict, certain), found.reason


def test_the_fixes_of_the_field_report_in_their_order() -> None:
    host, image = case("450.102.04", "GeForce RTX 2080 Ti", "11.2.2", "460.32.03", "mount")
    found = fixes(host, image, predict(host, image))
    assert [fix.do.split(" ")[0] for fix in found] == ["upgrade", "set", "build", "use"]
    assert [fix.then.verdict for fix in found] == ["NATIVE", "MINOR", "MINOR", "NATIVE"]
    assert "460.32.03 or newer; branch 580 is supported until 2028-06" in found[0].do
    assert 'cuda-compat-mode = "disabled"' in found[1].do
    assert "CUDA 11.0 or older" in found[3].do


@pytest.mark.parametrize(
    ("asked", "first", "part"),
    [
        (case("460.80", "GeForce RTX 2080 Ti", "11.3.1", "465.19.01", "mount", "1.4.0"), 1, "update the container"),
        (case("460.80", "GeForce RTX 2080 Ti", "11.3.1", "465.19.01", "hook"), 1, "disable-cuda-compat-lib-hook"),
        (case("460.80", "GeForce RTX 2080 Ti", "11.3.1", "465.19.01", "none"), 0, "from LD_LIBRARY_PATH"),
        (case("535.54.03", "NVIDIA H100", "13.0.0"), 1, "install cuda-compat-13-0 in the image"),
        (case("535.54.03", "GeForce RTX 4090", "12.9.1", "", "ldconfig", "", (THIRD,)), 1, "NVIDIA_DISABLE_REQUIRE=1"),
        (case("418.39", "Tesla V100", "13.1.0"), 0, "use an image of CUDA 10.1 or older"),  # no driver for both
        (case("470.82.01", "NVIDIA H100", "11.4"), 0, "upgrade the driver to 520.61.05 or newer"),
        (case("535.54.03", "NVIDIA H200", "13.4.1"), 0, "branch 620 is supported until 2029-09, by one source only"),
        (case("535.54.03", "NVIDIA B200", "12.2"), 0, "upgrade the driver to 570.133.20 or newer"),
        (case("570.124.06", "NVIDIA B300", "12.8"), 0, "upgrade the driver to 580.82.07 or newer"),
        (case("470.82.01", "NVIDIA H200", "12.1", "530.30.02", "mount"), 0, "upgrade the driver to 530.30.02 or newer"),
        (case("580.65.06", "Tesla K80", "11.4"), 0, "use a driver of branch 470, such as 470.82.01, the last for Kep"),
        (case("580.65.06", "Tesla K80", "12.4"), 0, "for Kepler GPUs, and use an image of CUDA 11.4 or older"),
        (case("580.65.06", "Tesla K80", "11.4", "470.82.01", "none"), 0, "compat directory from the linker's path"),
        (case("367.48", "Tesla V100", "13.1"), 0, "branch 580, such as 580.95.05, the last for Volta GPUs"),
    ],
)
def test_a_fix_for_each_case(asked: tuple[Host, Image], first: int, part: str) -> None:
    assert part in fixes(*asked, predict(*asked))[first].do


def test_a_newer_driver_is_only_spoken_of_where_it_helps() -> None:
    for gpu, require, part in (
        ("NVIDIA A100", "cuda>=12.9", "cuda>=12.9, please update your driver; driver 535.54.03 supports CUDA 12"),
        ("NVIDIA A100", "arch>=9.0", "condition: arch>=9.0; no newer driver changes that for NVIDIA A100, and"),
        ("Orin", "brand=tesla,cuda>=12.9", "please update your driver"),
    ):
        found = predict(*case("535.54.03", gpu, "12.2", "", "ldconfig", "", (require,)))
        assert found.verdict == "REFUSED"
        assert part in found.reason


def test_the_driver_that_a_cuda_needs_at_least() -> None:
    for cuda, least in (("11.0.3", "450.36.06"), ("11.1", "450.80.02"), ("12.4", "525.60.13")):
        assert f"needs driver {least} or newer" in predict(*case("440.33", "Tesla V100", cuda)).reason


def test_what_is_not_known_of_the_gpu_is_named() -> None:
    for gpu, driver, require, part in (
        ("Orin", "535.54.03", THIRD, "container start: the GPU's brand is unknown"),
        ("GeForce RTX 3090", "470.82.01", SECOND, "the GPU's brand may be geforce or geforcertx"),
        ("Orin", "535.54.03", "arch>=9.0", "the GPU's compute capability is unknown"),
        ("NVIDIA A100", "700.10.01", "cuda>=14.0", "start: the CUDA version of such a new driver is unknown"),
    ):
        found = predict(*case(driver, gpu, "11.4", "", "mount", "", (require,)))
        assert (found.runs, found.certain) == (True, False)
        assert found.notes[-1].endswith(part)


def test_a_note_that_excludes_the_library_is_shown() -> None:
    asked = case("545.23.08", "NVIDIA A100", "12.9.1", "575.57.08", "hook", "1.20.0", noted=True)
    said = "the image's libcuda 575.57.08 is ignored: its ELF note does not list driver branch 545"
    assert predict(*asked).notes[0] == said
    for driver, toolkit in (("570.211.01", "1.20.0"), ("545.23.08", "1.18.2"), ("590.44.01", "1.20.0")):
        found = predict(*case(driver, "NVIDIA A100", "12.9.1", "575.57.08", "hook", toolkit, noted=True))
        assert not any("is ignored" in note for note in found.notes)


def test_several_libraries() -> None:
    host, image = case("535.54.03", "GeForce RTX 4090", "12.4.1", "550.54.15", "hook")
    image = replace(image, compat=(*image.compat, CompatLib(numbers("545.23.08"))))
    assert predict(host, image).verdict == "MINOR"  # the hook warns and takes none
    for stack in ("mount", "ldconfig"):
        found = predict(replace(host, stack=stack), image)
        assert (found.verdict, found.library) == ("ERROR_804", CompatLib(numbers("550.54.15")))


def test_a_mounted_library_that_is_older_loses_the_soname() -> None:
    host, image = case("550.54.15", "GeForce RTX 4090", "12.2.2", "535.104.05", "mount")
    assert predict(host, image) == predict(replace(host, stack="disabled"), image)


def test_an_image_that_looks_for_itself() -> None:
    library = CompatLib(numbers("550.54.15"))
    for gpu, verdict in (("NVIDIA A100", "FORWARD"), ("GeForce RTX 4090", "NEEDS_DRIVER"), ("Orin", "NEEDS_DRIVER")):
        host, image = case("470.82.01", gpu, "12.4.1")
        found = predict(host, replace(image, own_compat=(library,)))
        assert (found.verdict, found.certain) == (verdict, verdict != "FORWARD")


def test_what_a_cuda_no_longer_supports_does_not_run() -> None:
    for gpu, name in (("Tesla V100", "Volta"), ("Tesla P100", "Pascal"), ("GeForce GTX 1080 Ti", "Pascal")):
        host, image = case("580.65.06", gpu, "13.0.0")
        found = predict(host, image)
        assert (found.verdict, found.certain, found.runs) == ("NO_CODE", True, False)
        assert f"CUDA 13 does not support {name} (the last one that did is CUDA 12): CUDA error" in found.reason
        (fix,) = fixes(host, image, found)
        assert (fix.do, fix.then.verdict) == ("use an image of CUDA 12.9 or older", "NATIVE")
        older = predict(host, replace(image, cuda=(12, 9, 1)))
        assert older.verdict == "NATIVE" and not older.notes
    assert predict(*case("580.65.06", "Tesla T4", "13.0.0")).verdict == "NATIVE"


def test_a_driver_after_the_tables_is_no_certain_answer() -> None:
    found = predict(*case("999.99", "NVIDIA A100", "12.4"))
    assert (found.verdict, found.certain) == ("NATIVE", False) and "branch 999 is newer than the tables" in found.reason


def test_what_one_source_says_is_no_certain_answer() -> None:
    found = predict(*case("620.70.06", "NVIDIA H200", "13.5"))
    assert (found.verdict, found.certain) == ("NATIVE", False)
    assert "branch 620 supports is known from one source" in found.reason
    assert predict(*case("620.70.06", "NVIDIA H200", "13.4.1")).certain  # as with the branch before
    for driver, cuda, version, certain in (
        ("525.85.12", "12.2", "535.54.03", False),  # Triton's notes alone
        ("535.54.03", "12.3", "545.23.06", True),  # also the support matrix
        ("535.54.03", "13.2", "595.45.04", True),
    ):
        found = predict(*case(driver, "NVIDIA A100", cuda, version))
        assert (found.verdict, found.certain) == ("FORWARD", certain), (found, driver)
        assert found.reason.endswith(", according to one source only") is not certain


def test_what_a_compiler_does_not_know_yet_is_said() -> None:
    for gpu, cuda, first in (("NVIDIA B200", "11.4", "12.8"), ("NVIDIA H100", "11.7", "11.8"), ("A10", "10.2", "11.0")):
        found = predict(*case("580.65.06", gpu, cuda))
        assert found.verdict == "NATIVE"
        assert f"CUDA {cuda} has no machine code for" in found.notes[0]
        assert f"(the first is CUDA {first}): programs without PTX" in found.notes[0]
    for gpu, cuda in (("NVIDIA B200", "12.8"), ("NVIDIA L4", "11.0"), ("Tesla T4", "9.0")):
        assert not predict(*case("580.65.06", gpu, cuda)).notes  # Ampere's code runs on Ada, Volta's on Turing


def test_a_gpu_that_the_tables_lack_is_no_certain_answer() -> None:
    host, image = case("535.54.03", "NVIDIA B2000", "12.2")
    found = predict(host, image)
    assert (found.verdict, found.certain) == ("NATIVE", False)
    assert found.notes == ("the tables do not know the GPU 'NVIDIA B2000': it may need a newer driver or CUDA",)
    assert predict(replace(host, drives=host.driver), image).certain  # nvidia-smi lists it


def test_a_jetson_is_never_certain_because_its_driver_is_jetpacks() -> None:
    host, image = case("580.95.05", "NVIDIA Thor", "12.9")
    found = predict(host, image)
    assert (found.verdict, found.certain) == ("NATIVE", False)
    assert "no machine code for Blackwell, compute capability 11.0 (the first is CUDA 13.0)" in found.notes[0]
    assert found.notes[1].startswith("NVIDIA Thor has JetPack's driver")
    found = predict(*case("580.95.05", "NVIDIA Thor", "13.2", "595.58.03", "hook", "1.20.0"))
    assert (found.verdict, found.certain) == ("ERROR_804", False)
    assert "unless JetPack's driver supports that on NVIDIA Thor" in found.reason


def test_why_a_driver_does_not_drive_a_gpu_is_said() -> None:
    found = predict(*case("580.65.06", "Tesla K80", "11.4"))
    assert "has no support for Kepler GPUs (the last branch is 470): CUDA finds no device (Tesla K80)" in found.reason


def test_the_worst_gpu_of_a_node_counts_and_a_fix_is_one_for_all() -> None:
    host, image = case("535.54.03", "NVIDIA L4", "12.4.1", "550.54.15", "hook")
    consumer = replace(host, gpu=tables.gpu("GeForce RTX 4090"))
    pascal = replace(host, gpu=tables.gpu("Tesla P100"))
    assert answer([host], image).runs
    both = answer([host, consumer], image, "x")
    assert both.prediction is not None
    assert (both.image, both.prediction.verdict) == ("x", "ERROR_804")
    newest = replace(image, cuda=(13, 1, 0), compat=(CompatLib(numbers("590.48.01")),))
    assert any(fix.do.startswith("upgrade") for fix in answer([consumer], newest).fixes)
    assert all(predict(fix.host, fix.image).runs for fix in answer([pascal, consumer], newest).fixes)


# --- what holds for all ---------------------------------------------------------------------------------------------

DRIVERS = sorted({*tables.toolkits().values(), *tables.floors().values(), numbers("450.102.04"), numbers("575.10.10"),
                  numbers("525.53.01"), numbers("700.10.01")})  # fmt: skip
NAMES = ["GeForce RTX 4090", "GeForce GTX 1080 Ti", "NVIDIA RTX A6000", "NVIDIA H100", "NVIDIA B200", "Orin",
         "Tesla V100", "Tesla K80"]  # fmt: skip
LIBRARIES = [needs for needs in tables.toolkits().values() if needs[0] >= 384]


@st.composite
def notes(draw: st.DrawFn) -> Note | None:
    branches = draw(st.none() | st.frozensets(st.sampled_from(sorted(tables.branches())), max_size=6))
    return None if branches is None else Note("", branches)


@st.composite
def images(draw: st.DrawFn) -> Image:
    libraries = st.builds(CompatLib, st.sampled_from(LIBRARIES), notes())
    return Image(
        draw(st.sampled_from(list(tables.toolkits()))),
        tuple(draw(st.lists(libraries, max_size=2))),
        tuple(draw(st.lists(libraries, max_size=1))),
        tuple(draw(st.lists(st.sampled_from([FIRST, SECOND, THIRD, "cuda>=11.0"]), max_size=1))),
    )


@st.composite
def hosts(draw: st.DrawFn) -> Host:
    stack = draw(st.sampled_from(STACKS))
    toolkit = draw(st.sampled_from([None, *map(numbers, ("1.4.0", "1.17.4", "1.17.5", "1.17.8", "1.18.2", "1.20.0"))]))
    assume(toolkit is None or not cannot_be(stack, toolkit))
    gpu = tables.gpu(draw(st.sampled_from(NAMES)))
    return Host(draw(st.sampled_from(DRIVERS)), gpu, stack, toolkit, gated(stack, toolkit))


@given(hosts(), images())
def test_a_fix_that_is_offered_never_fails(host: Host, image: Image) -> None:
    found = predict(host, image)
    ways = fixes(host, image, found)
    assert not (found.runs and ways)
    for fix in ways:
        assert fix.then.runs
        assert predict(fix.host, fix.image) == fix.then
        first, last = tables.driver_branches(host.gpu.architecture)
        assert first <= fix.host.driver[0] <= last
        assert (fix.host, fix.image) != (host, image)


@given(hosts(), images(), st.sampled_from(DRIVERS))
def test_or_newer_is_true(host: Host, image: Image, newer: Version) -> None:
    """A driver that is offered "or newer" may be any newer one that knows the GPU."""
    for fix in fixes(host, image, predict(host, image)):
        if " or newer" not in fix.do or "driver to" not in fix.do or newer < fix.host.driver:
            continue
        if host.gpu.newest_branch is None or newer[0] <= host.gpu.newest_branch:
            assert predict(replace(fix.host, driver=newer), fix.image).runs, fix.do


def test_or_newer_is_not_said_where_the_gate_lists_branches() -> None:
    host, image = case("525.60.13", "NVIDIA RTX A6000", "12.2", "", "mount", "", (THIRD,))
    first = fixes(host, image, predict(host, image))[0]
    assert first.do == "upgrade the driver to 535.54.03"  # the gate names branch 535, and knows nothing of 545


@given(hosts(), images(), st.sampled_from(DRIVERS))
def test_a_newer_driver_breaks_nothing_that_used_the_drivers_own_libcuda(
    host: Host, image: Image, newer: Version
) -> None:
    """NATIVE stays NATIVE and MINOR at least MINOR, unless a note lists the newer branch or the gate shuts.

    A hook that reads notes may take the image's library on the newer branch only: see the test below.
    """
    assume(newer >= host.driver and host.stack != "none")
    image = replace(image, requires=(), own_compat=(), compat=tuple(CompatLib(one.version) for one in image.compat))
    before, after = predict(host, image), predict(replace(host, driver=newer), image)
    if before.verdict in ("NATIVE", "MINOR") and not tables.no_support(host.gpu.architecture, newer[0]):
        assert after.verdict in ("NATIVE", before.verdict), (before, after)


def test_a_newer_driver_may_break_an_image_with_a_note() -> None:
    host, image = case("545.23.08", "GeForce RTX 4090", "12.9.1", "575.57.08", "hook", "1.20.0", noted=True)
    assert predict(host, image).verdict == "MINOR"
    assert predict(replace(host, driver=numbers("550.54.15")), image).verdict == "ERROR_804"


@given(hosts(), images())
def test_an_unknown_gpu_and_a_consumer_one_never_work_by_forward_compatibility(host: Host, image: Image) -> None:
    for name in ("Orin", "NVIDIA Thor", "GeForce RTX 4090", ""):
        found = predict(replace(host, gpu=tables.gpu(name)), image)
        assert found.verdict != "FORWARD"
        if found.library is not None:
            assert not found.runs
            assert found.certain is (name == "GeForce RTX 4090") or host.gate


@given(hosts(), images())
def test_every_prediction_says_why(host: Host, image: Image) -> None:
    found: Prediction = predict(host, image)
    assert found.reason
    assert (found.library is None) or found.library in (*image.compat, *image.own_compat)


@given(st.sampled_from(list(tables.toolkits())), st.sampled_from(NAMES), st.sampled_from(STACKS))
def test_an_official_image_runs_on_its_own_driver(cuda: Version, name: str, stack: str) -> None:
    image = official(cuda)
    assume(not tables.no_support(tables.gpu(name).architecture, image.compat[0].version[0]))
    first = tables.gpu(name).oldest_driver
    assume(first is None or image.compat[0].version >= first.driver)
    host = Host(image.compat[0].version, tables.gpu(name), stack, None, gated(stack, None))
    dropped = cuda[0] > tables.gpu(name).newest_toolkit
    assert predict(host, image).verdict == ("NO_CODE" if dropped else "NATIVE")

"""NVIDIA_REQUIRE_CUDA: all three generations of it, and what nobody can tell."""

import pytest

from gpuready.base.versions import numbers
from gpuready.cuda.require import Properties, RequireError, of_image, satisfied

#: As published images have it: 11.2 (the last clause has no brand), 11.8 (with geforce), 12.9 (without).
FIRST = "cuda>=11.2 brand=tesla,driver>=418,driver<419 brand=tesla,driver>=440,driver<441 driver>=450"


def generation(cuda: str, brands: str, branches: str) -> str:
    parts = [f"brand={w},driver>={b},driver<{int(b) + 1}" for b in branches.split() for w in brands.split()]
    return " ".join([f"cuda>={cuda}", *parts])


CONSUMER = "tesla unknown nvidia nvidiartx geforce geforcertx quadro quadrortx titan titanrtx"
OTHERS = "unknown grid tesla nvidia quadro quadrortx nvidiartx vapps vpc vcs vws cloudgaming"
SECOND = generation("11.8", CONSUMER, "470 510 515")
THIRD = generation("12.9", OTHERS, "535 550 560 565 570")


def host(driver: str, cuda: str, *brands: str, arch: str = "8.0") -> Properties:
    return Properties(numbers(cuda), numbers(driver), numbers(arch) if arch else None, frozenset(brands))


@pytest.mark.parametrize(
    ("requirement", "on", "expected"),
    [
        (FIRST, host("450.102.04", "11.0", "geforce", "geforcertx"), True),  # passes, and then 804
        (FIRST, host("440.33", "10.2", "geforce"), False),
        (FIRST, host("440.33", "10.2", "tesla"), True),
        (FIRST, host("460.32.03", "11.2", "geforce"), True),
        (SECOND, host("470.82.01", "11.4", "geforce", "geforcertx"), None),  # which of its two words is not known
        (SECOND, host("470.82.01", "11.4", "geforcertx"), True),
        (SECOND, host("460.32.03", "11.2", "geforcertx"), False),
        (SECOND, host("525.60.13", "12.0", "geforcertx"), True),
        (THIRD, host("535.54.03", "12.2", "geforcertx"), False),
        (THIRD, host("535.54.03", "12.2", "nvidia"), True),
        (THIRD, host("525.60.13", "12.0", "nvidia"), False),
        (THIRD, host("575.57.08", "12.9", "geforcertx"), True),
        ("arch>=8.0", host("550.54.15", "12.4", arch="7.5"), False),
        ("arch>=8.0", host("550.54.15", "12.4", arch=""), None),
        ("cuda>=12", host("550.54.15", "12.0"), True),
        ("cuda>=12.0.0", host("550.54.15", "12.0"), True),
        ("cuda!=12.0", host("550.54.15", "12.0"), False),
        ("cuda<=12.0,driver>550", host("550.54.15", "12.0"), True),
        ("cuda>12.0 driver=550.54.15", host("550.54.15", "12.0"), True),
        ("brand!=geforce", host("550.54.15", "12.4", "nvidia"), True),
        ("brand!=geforce", host("550.54.15", "12.4", "geforce"), False),
        ("brand=Tesla", host("550.54.15", "12.4", "tesla"), True),
        ("brand=tesla", host("550.54.15", "12.4"), None),
        ("brand=tesla cuda>=12.4", host("550.54.15", "12.4"), True),
        ("brand=tesla,cuda>=12.5", host("550.54.15", "12.4"), False),
        ("", host("550.54.15", "12.4"), True),
        ("  cuda>=12.4 , ", host("550.54.15", "12.4"), True),
    ],
)
def test_a_requirement_is_met_or_not(requirement: str, on: Properties, expected: bool | None) -> None:
    assert satisfied(requirement, on) is expected


@pytest.mark.parametrize(
    "requirement", ["cuda", "cuda>=", ">=12", "cuda=>12", "cuda>=12.x", "speed>=3", "brand>tesla", "cuda>=1=2"]
)
def test_what_cannot_be_read_is_an_error(requirement: str) -> None:
    with pytest.raises(RequireError):
        satisfied(requirement, host("550.54.15", "12.4", "nvidia"))


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.4", "CUDA_VERSION": "12.4.1"}, ("cuda>=12.4",)),
        ({"CUDA_VERSION": "9.0.176"}, ("cuda>=9.0",)),
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.4", "NVIDIA_REQUIRE_DRIVER": "driver>=550"}, ("cuda>=12.4", "driver>=550")),
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.4", "NVIDIA_DISABLE_REQUIRE": "true"}, ()),
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.4", "NVIDIA_DISABLE_REQUIRE": "1"}, ()),
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.4", "NVIDIA_DISABLE_REQUIRE": "yes"}, ("cuda>=12.4",)),
        ({"NVIDIA_REQUIRE_JETPACK": "csv-mounts=all"}, ()),
        ({"NVIDIA_REQUIRE_CUDA": " "}, ()),
        ({}, ()),
    ],
)
def test_what_an_image_requires(env: dict[str, str], expected: tuple[str, ...]) -> None:
    assert of_image(env) == expected

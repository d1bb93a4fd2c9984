"""Which packages a driver is installed as, whether apt would do only that, and what is refused before apt is asked."""

from typing import Any

import pytest

from gpuready.base.errors import ConvergeError
from gpuready.components.driver import install as driverinstall
from gpuready.components.driver.recipes import Wanted, available, choose, judge, names
from gpuready.components.driver.state import Module
from gpuready.contract.component import NotComparable
from gpuready.model.spec import NodeSpec
from gpuready.model.state import OS, Driver, NodeState, Package
from tests.components.driver.test_driver_verdicts import (
    DEBIAN,
    MOUNTED,
    NEXT,
    NOW,
    NVIDIA,
    UBUNTU,
    node,
    packages,
    pinning,
)
from tests.verdicts import root_files

KERNEL = "6.8.0-90-generic"
EL9, RPM = "5.14.0-570.12.1.el9_6.x86_64", "580.95.05-1.el9"
DEVEL = {f"kernel-devel-{EL9}": ["1"]}
EL97 = "5.14.0-611.5.1.el9_7.x86_64"
KMOD, KMOD97 = (f"kmod-nvidia-open-580.95.05-{kernel.partition('.el')[0]}" for kernel in (EL9, EL97))
PRECOMPILED = {KMOD: ["580.95.05-3.el9_6", "580.95.05-2.el9_6"]}
CLOSED = "kmod-nvidia-580.95.05-5.14.0-570.12.1"
EL10, LARGE = "6.12.0-211.51.1.el10_2.aarch64+64k", "kmod-64k-nvidia-open-580.95.05-6.12.0-211.51.1"
EARLIER = ("nvidia-fabric-manager", "libnvidia-nscq-575")
RPMS = ("nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-driver-cuda-libs", "nvidia-persistenced")
DEBIANS = ("libcuda1", "libnvidia-ml1", "nvidia-smi", "nvidia-open-kernel-dkms", "nvidia-kernel-dkms")
CURRENT = "550.163.01-2"
TESLAS = (
    "libnvidia-tesla-535-cuda1", "libnvidia-tesla-535-ml1", "nvidia-tesla-535-smi", "nvidia-tesla-535-kernel-dkms",
)  # fmt: skip
LIBRARIES = ("nvidia-utils-580-server", "libnvidia-compute-580-server")
NEWEST, SWITCHES = ("nvidia-utils", "libnvidia-compute", "nvidia-dkms-open"), ("nvidia-fabricmanager", "libnvidia-nscq")


def debian(**fields: Any) -> Wanted:
    return Wanted(**{"os": "debian", "version": "550.163.01", "flavor": "open", **fields})


def ubuntu(**fields: Any) -> Wanted:
    return Wanted(**{"os": "ubuntu", "version": "580.95.05", "flavor": "open", "kernels": (KERNEL,), **fields})


def rhel(**fields: Any) -> Wanted:
    return Wanted(**{"os": "rhel", "version": "580.95.05", "flavor": "open", "kernels": (EL9,), **fields})


def there(version: str, *names: str) -> dict[str, list[str]]:
    return {name: [version] for name in names}


def at(version: str, *names: str) -> list[str]:
    return [f"{name}={version}" for name in names]


ARCHIVE = "580.95.05-0ubuntu0.24.04.2"
UBUNTUS = there(
    ARCHIVE, *LIBRARIES, "nvidia-headless-no-dkms-580-server-open", "nvidia-headless-580-server-open",
    "nvidia-dkms-580-server-open",
)  # fmt: skip
SIGNED = there("6.8.0-90.91", f"linux-modules-nvidia-580-server-open-{KERNEL}")
NVIDIAS = there("580.95.05-0ubuntu1", "nvidia-utils-580", "libnvidia-compute-580", "nvidia-headless-580-open",
                "nvidia-dkms-580-open")  # fmt: skip
RESOLUTE = ("nvidia-utils-595-server", "libnvidia-compute-595-server", "nvidia-headless-no-dkms-595-server-open")
RESOLUTE_MODULES = tuple(f"linux-modules-nvidia-595-server-open-{each}" for each in ("7.0.0-1018-nvidia", "nvidia"))
HEADERS = there("6.8.0-90.91", f"linux-headers-{KERNEL}")


def test_madison_is_read() -> None:
    text = " libcuda1 | 550.163.01-2 | http://x trixie/non-free amd64 Packages\n" * 2
    text += "  libcuda1 | 535.247.01-1~deb12u1 | http://x bookworm/non-free amd64 Packages\nN: Unable\nheaders 6.1\n"
    assert available(text) == {"libcuda1": ["550.163.01-2", "535.247.01-1~deb12u1"]}


@pytest.mark.parametrize(
    ("wanted", "has", "pins"),
    [
        (debian(), there(CURRENT, *DEBIANS), at(CURRENT, *DEBIANS[:4])),
        (
            debian(flavor="proprietary", installed=("libnvidia-encode1",), replaced=("nvidia-open-kernel-dkms",)),
            there(CURRENT, *DEBIANS, "libnvidia-encode1"),
            [*at(CURRENT, *DEBIANS[:3], "nvidia-kernel-dkms", "libnvidia-encode1"), "nvidia-open-kernel-dkms-"],
        ),
        (
            debian(version="535.274.02", flavor="proprietary"),
            there(CURRENT, *DEBIANS) | there("535.274.02-1", *TESLAS),
            at("535.274.02-1", *TESLAS),
        ),
        (
            debian(installed=("libnvidia-tesla-535-cuda1", "libcuda1")),
            there(CURRENT, *DEBIANS) | there("535.274.02-1", TESLAS[0]),
            [*at(CURRENT, *DEBIANS[:4]), "libnvidia-tesla-535-cuda1-"],
        ),
        (
            debian(version="580.95.05"), there("580.95.05-1", "nvidia-driver-cuda", "nvidia-kernel-open-dkms"),
            at("580.95.05-1", "nvidia-driver-cuda", "nvidia-kernel-open-dkms"),
        ),
        (
            ubuntu(), UBUNTUS | SIGNED | NVIDIAS | HEADERS,
            [*at(ARCHIVE, *LIBRARIES, "nvidia-headless-no-dkms-580-server-open"), *SIGNED],
        ),
        (
            ubuntu(), UBUNTUS | HEADERS,
            [*at(ARCHIVE, *LIBRARIES, "nvidia-headless-580-server-open", "nvidia-dkms-580-server-open"), *HEADERS],
        ),
        (
            ubuntu(maker="NVIDIA's repository"), UBUNTUS | SIGNED | NVIDIAS | HEADERS,
            [*at("580.95.05-0ubuntu1", *NVIDIAS), *HEADERS],
        ),
        (
            # Companions come from a build of their own, with another revision; what has none of that version goes.
            ubuntu(maker="NVIDIA's repository", installed=("nvidia-imex-580", "cuda-drivers-580", "nvidia-utils-580",
                   "libnvidia-fbc1-580")),
            NVIDIAS | HEADERS | {"nvidia-imex-580": ["580.105.08-1", "580.95.05-1"]}
            | {"cuda-drivers-580": ["580.95.05-0ubuntu2", "580.95.05-0ubuntu1"]}
            | there("580.105.08-0ubuntu1", "libnvidia-fbc1-580"),
            [*at("580.95.05-0ubuntu1", *NVIDIAS, "cuda-drivers-580"), *HEADERS, "nvidia-imex-580=580.95.05-1",
             "libnvidia-fbc1-580-"],
        ),
        (
            ubuntu(version="610.43.02", maker="NVIDIA's repository", fabric_manager=True),
            there("610.43.02-1ubuntu1", *NEWEST, *SWITCHES) | HEADERS,
            [*at("610.43.02-1ubuntu1", *NEWEST), *HEADERS, *at("610.43.02-1ubuntu1", *SWITCHES)],
        ),
        (
            # HGX B200 on Ubuntu 26.04: NVLSM has a version of its own.
            ubuntu(version="595.91.07", fabric_manager=True, nvlsm=True, release="26.04"),
            there("595.91.07-1ubuntu1", *NEWEST, *SWITCHES) | {"nvlsm": ["2025.10.14-1", "2025.06.5-1"]} | HEADERS,
            [*at("595.91.07-1ubuntu1", *NEWEST), *HEADERS, *at("595.91.07-1ubuntu1", *SWITCHES), "nvlsm"],
        ),
        (
            # Ubuntu's own packages for 26.04, with a prebuilt module.
            ubuntu(version="595.91.07", kernels=("7.0.0-1018-nvidia",), release="26.04"),
            there("595.91.07-0ubuntu0.26.04.1", *RESOLUTE) | there("7.0.0-1018.18", *RESOLUTE_MODULES),
            [*at("595.91.07-0ubuntu0.26.04.1", *RESOLUTE), RESOLUTE_MODULES[0], f"{RESOLUTE_MODULES[1]}=7.0.0-1018.18"],
        ),
        (rhel(), there(RPM, *RPMS) | DEVEL, [*at(RPM, *RPMS), *DEVEL]),
        (
            rhel(flavor="proprietary", installed=("nvidia-driver-cuda",), replaced=("kmod-nvidia-open-dkms",)),
            there(RPM, *RPMS, "kmod-nvidia-latest-dkms") | DEVEL,
            [*at(RPM, RPMS[0], "kmod-nvidia-latest-dkms", *RPMS[2:]), *DEVEL, "kmod-nvidia-open-dkms-"],
        ),
        (
            rhel(), there(RPM, *RPMS) | DEVEL | PRECOMPILED | {"dnf-plugin-nvidia": ["2.4-1.el9"]},
            [*at(RPM, RPMS[0], *RPMS[2:]), f"{KMOD}=580.95.05-3.el9_6", "dnf-plugin-nvidia"],
        ),
        (
            rhel(flavor="proprietary"), there(RPM, *RPMS) | there("580.95.05-3.el9_6", CLOSED) | PRECOMPILED,
            [*at(RPM, RPMS[0], *RPMS[2:]), f"{CLOSED}=580.95.05-3.el9_6"],
        ),
        (
            rhel(kernels=(EL10,)), there("580.95.05-3.el10_2", *RPMS, LARGE),
            at("580.95.05-3.el10_2", RPMS[0], *RPMS[2:], LARGE),
        ),
        # A kernel that was built again, or a second one, has no such module.
        (
            rhel(kernels=("5.14.0-570.12.1.el9_6.0.1.x86_64",)),
            there(RPM, *RPMS) | PRECOMPILED | there("1", "kernel-devel-5.14.0-570.12.1.el9_6.0.1.x86_64"),
            [*at(RPM, *RPMS), "kernel-devel-5.14.0-570.12.1.el9_6.0.1.x86_64"],
        ),
        (
            rhel(kernels=(EL9, EL97), installed=(KMOD, "nvidia-driver-cuda")),
            there(RPM, *RPMS) | DEVEL | PRECOMPILED | there("1", f"kernel-devel-{EL97}"),
            [*at(RPM, *RPMS), *DEVEL, f"kernel-devel-{EL97}", f"{KMOD}-"],
        ),
        (
            # What DKMS builds here is not replaced.
            rhel(installed=("kmod-nvidia-open-dkms",)), there(RPM, *RPMS) | DEVEL | PRECOMPILED,
            [*at(RPM, *RPMS), *DEVEL],
        ),
        (
            # With Secure Boot it is.
            rhel(signed=True, installed=("kmod-nvidia-open-dkms",)), there(RPM, *RPMS) | DEVEL | PRECOMPILED,
            [*at(RPM, RPMS[0], *RPMS[2:]), f"{KMOD}=580.95.05-3.el9_6", "kmod-nvidia-open-dkms-"],
        ),
        (
            # Of an older version, the module for each kernel goes.
            rhel(installed=(KMOD.replace("580.95.05", "570.195.03"), KMOD97.replace("580.95.05", "570.195.03"))),
            there(RPM, *RPMS) | PRECOMPILED | there("570.195.03-3.el9_6", KMOD.replace("580.95.05", "570.195.03")),
            [*at(RPM, RPMS[0], *RPMS[2:]), f"{KMOD}=580.95.05-3.el9_6",
             *(f"{name.replace('580.95.05', '570.195.03')}-" for name in (KMOD, KMOD97))],
        ),
        (
            # Before branch 580, the fabric manager has another name, and NSCQ the branch in its own.
            rhel(version="575.57.08", fabric_manager=True),
            there("575.57.08-1.el9", *RPMS[:2]) | there("575.57.08-1", *EARLIER) | DEVEL,
            [*at("575.57.08-1.el9", *RPMS[:2]), *DEVEL, *at("575.57.08-1", *EARLIER)],
        ),
        (
            ubuntu(imex=True), NVIDIAS | HEADERS | {"nvidia-imex-580": ["580.105.08-1", "580.95.05-1"]},
            [*at("580.95.05-0ubuntu1", *NVIDIAS), *HEADERS, "nvidia-imex-580=580.95.05-1"],
        ),
    ],
)  # fmt: skip
def test_what_is_chosen(wanted: Wanted, has: dict[str, list[str]], pins: list[str]) -> None:
    assert list(choose(wanted, has, ())) == pins
    assert {pin.partition("=")[0] for pin in pins if not pin.endswith("-")} <= set(names(wanted)), "apt was asked"


@pytest.mark.parametrize(
    ("wanted", "has", "part"),
    [
        (debian(), {}, "the repositories have no driver"),
        (debian(version="580.95.05"), there(CURRENT, *DEBIANS), "the repositories have 550.163.01"),
        (debian(), there(CURRENT, *DEBIANS[:3]) | there("550.163.01-1", DEBIANS[3]), "of one version"),
        (debian(kernels=("6.12",)), there(CURRENT, *DEBIANS), "Debian: there is no linux-headers-6.12"),
        (ubuntu(signed=True), UBUNTUS | NVIDIAS | HEADERS, "so the module must be signed"),
        (rhel(signed=True, kernels=(EL9, EL97)), there(RPM, *RPMS) | DEVEL | PRECOMPILED, f": there is no {KMOD97}; "),
        (rhel(kernels=(EL97,)), there(RPM, *RPMS) | PRECOMPILED, f"no {KMOD97}; by DKMS, for dnf: there is no kernel"),
        (ubuntu(maker="NVIDIA's repository"), UBUNTUS | SIGNED, "is not available"),
        (debian(fabric_manager=True), there(CURRENT, *DEBIANS), "no fabric manager 550.163.01"),
        (
            debian(fabric_manager=True),
            there(CURRENT, *DEBIANS, "libnvidia-nscq") | there("580.1.1-1", "nvidia-fabricmanager"),
            "no fabric manager 550.163.01",
        ),
        (ubuntu(nvlsm=True), NVIDIAS | HEADERS, "no NVLink Subnet Manager (nvlsm)"),
        (ubuntu(imex=True), NVIDIAS | HEADERS | there("580.105.08-1", "nvidia-imex-580"), "no IMEX 580.95.05"),
    ],
)  # fmt: skip
def test_what_is_not_available(wanted: Wanted, has: dict[str, list[str]], part: str) -> None:
    with pytest.raises(ConvergeError, match="nothing was changed") as caught:
        choose(wanted, has, ())
    assert part in str(caught.value)


OLD = packages("libcuda1", "nvidia-smi", version="535.247.01-1")
FINE = """Remv nvidia-tesla-470-alternative [470.256.02-1]
Inst libcuda1 [535.247.01-1] (550.163.01-2 Debian:13 [amd64])
Inst nvidia-smi [535.247.01-1] (550.163.01-2 Debian:13 [amd64])
Inst nvidia-modprobe [535.161.07-1] (570.133.07-1 Debian:13 [amd64])
Inst dkms (3.2.2-1 Debian:13 [all])
"""


OLDER = f"linux-modules-nvidia-570-server-open-{KERNEL}"
#: What a node with prebuilt modules of branch 570 is asked, and what apt would do about it (names as of Ubuntu 24.04).
MOVED = f"""Remv linux-modules-nvidia-570-server-open-generic [6.8.0-90.91+1]
Remv {OLDER} [6.8.0-90.91+1]
Remv linux-signatures-nvidia-6.8.0-90-generic [6.8.0-90.91+1]
Remv nvidia-kernel-common-570-server [570.195.03-0ubuntu0.24.04.1]
Inst linux-objects-nvidia-580-server-{KERNEL} [6.8.0-90.91] (6.8.0-90.91+1 Ubuntu:24.04 [amd64])
Inst nvidia-kernel-common-580-server ({ARCHIVE} Ubuntu:24.04 [amd64])
"""


def test_prebuilt_modules_follow_to_another_branch() -> None:
    meta = "linux-modules-nvidia-580-server-open-generic"
    has = UBUNTUS | SIGNED | {meta: ["6.8.0-91.92+1", "6.8.0-90.91+1"]}
    old = ("linux-modules-nvidia-570-server-open-generic", OLDER)
    wanted = ubuntu(prebuilt=old, release="24.04")
    pins = choose(wanted, has, ())
    assert set(pins) >= {*SIGNED, f"{meta}=6.8.0-90.91+1", *(f"{name}-" for name in old)}
    assert meta in names(wanted), "apt was asked"
    assert judge(MOVED, wanted, packages("nvidia-kernel-common-570-server", version="570.195.03-0ubuntu0.24.04.1"))


@pytest.mark.parametrize(
    ("kernel", "meta", "version", "taken"),
    [
        ("6.8.0-90-generic", "generic", "6.8.0-90.91+1", True),
        ("6.14.0-33-generic", "generic-hwe-24.04", "6.14.0-33.33~24.04.1+1", True),
        ("6.8.0-1012-aws", "aws", "6.8.0-1012.13", True),
        ("6.8.0-1012-aws", "aws-lts-24.04", "6.8.0-1012.13", True),
        ("6.8.0-9-generic", "generic", "6.8.0-90.91+1", False),
        ("6.8.0-90-generic", "generic", "6.8.0-91.92+1", False),
    ],
)
def test_modules_for_the_next_kernel_come_only_from_the_same_release(
    kernel: str, meta: str, version: str, taken: bool
) -> None:
    name = f"linux-modules-nvidia-580-server-open-{meta}"
    has = UBUNTUS | {f"linux-modules-nvidia-580-server-open-{kernel}": [version], name: [version]}
    wanted = ubuntu(kernels=(kernel,), release="24.04")
    assert (f"{name}={version}" in choose(wanted, has, ())) is taken
    kept = ubuntu(kernels=(kernel,), release="24.04", prebuilt=(name,))
    assert not [pin for pin in choose(kept, has, ()) if pin.startswith(name)], "what is there stays as it is"


def test_prebuilt_modules_of_the_other_flavor_go() -> None:
    closed = (f"linux-modules-nvidia-580-server-{KERNEL}", "linux-modules-nvidia-580-server-generic")
    assert set(choose(ubuntu(prebuilt=closed), UBUNTUS | SIGNED, ())) >= {f"{name}-" for name in closed}
    of = packages("nvidia-utils-580-server", maker=UBUNTU) | packages(*closed, version="6.8.0-90.91", maker=UBUNTU)
    wanted = driverinstall.wanted(install(), bare(H200, of=of, os="ubuntu"))
    assert (wanted.prebuilt, wanted.installed) == (tuple(sorted(closed)), ("nvidia-utils-580-server",))


def test_an_installation_and_nothing_else_is_fine() -> None:
    assert judge(FINE, debian(), OLD) == ("nvidia-tesla-470-alternative",), "what goes is told"
    assert judge("", debian(), packages("libcuda1")) == ()


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("Remv gdm3 [48.0-2]", "the installation would also remove gdm3"),
        ("Purg nvidia-container-toolkit [1.20.0-1]", "remove nvidia-container-toolkit"),
        ("Remv nvidia-mig-manager [0.10.0]", "remove nvidia-mig-manager"),
        ("Remv nvidia-system-core [24.01-1]", "remove nvidia-system-core"),
        ("Remv libnvidia-nscq", "remove libnvidia-nscq"),
        ("Inst libc6 [2.36-9] (2.41-12 Debian:13 [amd64]) []", "change libc6 to 2.41-12"),
        ("Inst nvidia-container-toolkit [1.20.0-1] (1.21.0-1 x [amd64])", "change nvidia-container-toolkit"),
        ("Inst libnvidia-ml1 (560.35.03-1 x [amd64])", "would not be at 550.163.01: libnvidia-ml1 560.35.03-1"),
    ],
)
def test_anything_else_is_refused(line: str, part: str) -> None:
    with pytest.raises(ConvergeError, match="nothing was changed") as caught:
        judge(f"{FINE}{line}\n", debian(), OLD)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "Inst kernel-core (5.14.0-611.el9)",
        "Inst kernel-modules-core (5.14.0-611.el9)",
        "Inst kernel (5.14.0-611.el9)",
        "Inst kernel-uek-core (6.12.0-1.el9uek)",
        "Inst kernel-64k-core (5.14.0-611.el9)",
        "Inst kernel6.12 (6.12.1-1.amzn2023)",
        "Inst linux-image-6.8.0-91-generic (6.8.0-91.92 x [amd64])",
        "Inst linux-image-generic (6.8.0-91.92 x [amd64])",
    ],
)
def test_no_installation_brings_another_kernel(line: str) -> None:
    with pytest.raises(ConvergeError, match=rf"another kernel.*nothing was changed.*reboot first.*kernel-devel-{EL9}"):
        judge(f"{line}\nInst kernel-devel-matched (5.14.0-611.el9)\nInst dkms (3.2)\n", rhel(), {})


def test_what_belongs_to_a_kernel_of_the_node_comes_along() -> None:
    version = EL9.removesuffix(".x86_64")
    names = ("kernel-modules-extra", "kernel-devel", "kernel-devel-matched", "kernel-headers")
    assert judge("".join(f"Inst {name} ({version})\n" for name in names), rhel(), {}) == ()
    newer = "Inst kernel-devel (5.14.0-611.el9)\nInst kernel-uek-devel (6.12.0-1)\nInst kernel-srpm-macros (1.0-1)\n"
    assert judge(newer, rhel(), {}) == (), "headers boot nothing"
    assert judge(f"Inst linux-image-{KERNEL} (6.8.0-90.91 x [amd64])", ubuntu(), {}) == ()


def test_a_package_that_goes_for_two_reasons_is_named_once() -> None:
    twice = "Remv nvidia-old [3:580.1.1-1]\nRemv nvidia-old [580.1.1-1]\n"
    assert judge(twice, rhel(), {}) == ("nvidia-old",)


def test_a_package_that_would_stay_behind_is_named() -> None:
    with pytest.raises(ConvergeError, match=r"libnvidia-encode1 535\.247\.01-1"):
        judge(FINE, debian(), OLD | packages("libnvidia-encode1", version="535.247.01-1"))


# --- what is refused, and the flavor -----------------------------------------------------------------------------

H200, GH200, B200, B300, V100, T4, UNKNOWN = (
    f"0000:00:06.0 0x030200 {each}" for each in ("0x2335", "0x2342", "0x2901", "0x3182", "0x1db4", "0x1eb8", "0xffff")
)
SWITCH = "0000:07:00.0 0x068000 0x22a3"


def bare(*pci: str, of: dict[str, Package] | None = None, os: str = "debian", **fields: Any) -> NodeState:
    """A node without a loaded driver."""
    return node(of=of or {}, driver=Driver(pci=pci), os=OS(id=os), **fields)


def install(version: str = "580.95.05", **driver: Any) -> NodeSpec:
    return NodeSpec.model_validate({"driver": {"policy": "install", "version": version, **driver}})


PREBUILT = Module(kernel=NOW, path=f"/lib/modules/{NOW}/kernel/nvidia-580srv/nvidia.ko", version="580.95.05")

FRESH: dict[str, Any] = {"driver": Driver(pci=(H200,)), "os": OS(id="ubuntu")}


@pytest.mark.parametrize(
    ("state", "spec", "flavor"),
    [
        (bare(H200), install(), "open"),
        (bare(H200), install("550.163.01"), "proprietary"),
        (bare(B200), install("570.133.20"), "open"),
        (bare(GH200), install("550.163.01"), "open"),
        (bare(B300), install("580.65.06"), "open"),
        (bare(V100), install(), "proprietary"),
        (bare(T4), install(), "open"),
        (bare(T4, of=packages("nvidia-kernel-dkms")), install(), "proprietary"),
        (bare(of=packages("nvidia-open-kernel-dkms")), install(), "open"),
        (bare(H200), install(flavor="proprietary"), "proprietary"),
        # Ubuntu's desktop packages with a prebuilt module, and no package but the module says it.
        (bare(H200, of=packages("nvidia-driver-580-server", "nvidia-utils-580-server")), install(), "proprietary"),
        (bare(H200, of=packages("nvidia-kernel-source-580-server-open")), install("550.163.01"), "open"),
        (node(PREBUILT, of=packages("nvidia-utils-580"), **FRESH), install(), "proprietary"),
        (node(PREBUILT, of={}, **FRESH), install(), "open"),
        # From branch 615 on there is only one.
        (bare(T4, of=packages("nvidia-kernel-dkms")), install("615.71.09"), "open"),
        (bare(T4, of=packages("nvidia-kernel-dkms")), install("610.57.04"), "proprietary"),
        (bare(), install("615.71.09"), "open"),
        # A pin that includes the version is no obstacle.
        (bare(H200, of=pinning("595")), install("595.91.07"), "open"),
        (bare(H200, of=pinning("595.91.07")), install("595.91.07"), "open"),
    ],
)
def test_the_flavor_fits_the_gpu(state: NodeState, spec: NodeSpec, flavor: str) -> None:
    assert driverinstall.expected(spec, state)["driver.module"] == flavor


@pytest.mark.parametrize("b", ["-580", "-580-server", ""])
def test_every_package_of_the_other_flavor_is_replaced(b: str) -> None:
    carries = [f"nvidia-{each}{b}" for each in ("kernel-source", "dkms", "headless", "headless-no-dkms")]
    carries += [f"nvidia-driver{b}"] if b else []
    neither = [f"nvidia-utils{b}", f"libnvidia-compute{b}", f"nvidia-kernel-common{b}", f"nvidia-compute-utils{b}"]
    for now, other in ((carries, "open"), ([f"{name}-open" for name in carries], "proprietary")):
        state = bare(H200, os="ubuntu", of=packages(*now, *neither, maker=UBUNTU))
        wanted = driverinstall.wanted(install(flavor=other), state)
        assert (set(wanted.replaced), set(wanted.installed)) == (set(now), set(neither))
        there = {name: ["580.95.05-1"] for name in names(wanted)}
        assert {f"{name}-" for name in now} <= {*choose(wanted, there, ())}


@pytest.mark.parametrize(
    ("dnf", "version", "flavor"),
    [(True, "580.95.05", "proprietary"), (True, "615.71.09", None), (False, "580.95.05", None)],
)
def test_only_with_dnf_cuda_drivers_requires_the_proprietary_module(dnf: bool, version: str, flavor: str) -> None:
    system: dict[str, Any] = {"os": "rocky", "have": ("dnf",), "modules_unknown": "x"} if dnf else {}
    state = bare(H200, of=packages("cuda-drivers", version=f"{version}-1", maker=NVIDIA), **system)
    assert driverinstall.actual(state)["driver.module"] == flavor
    assert driverinstall.wanted(install(flavor="open"), state).replaced == (("cuda-drivers",) if flavor else ())


BUILT = packages("nvidia-driver-cuda", "kmod-nvidia-open-dkms", version="580.95.05-1.el9", maker=NVIDIA)


@pytest.mark.parametrize(
    ("version", "fields", "there"),
    [
        ("580.95.05", {}, True),
        ("575.57.08", {}, False),
        ("", {}, False),
        ("", {"modules_unknown": "no modinfo"}, True),
        ("", {"have": ("apt-get",), "os": "debian"}, True),
    ],
)
def test_a_module_that_dkms_could_not_build_is_missing(version: str, fields: dict[str, Any], there: bool) -> None:
    built = (Module(kernel=NEXT, path="/x", version=version, open=True),) if version else ()
    state = bare(H200, of=BUILT, **{"os": "rocky", "have": ("dnf",), "modules": built, **fields})
    assert driverinstall.actual(state)["driver.module"] == ("open" if there else None)
    assert driverinstall.wanted(install(), state).flavor == "open", "the packages tell the flavor"


def rocky(*of: str, version: str = "580.95.05-3.el9_6", **fields: Any) -> NodeState:
    """A node with dnf, streams, and one of its kernels."""
    boots: dict[str, Any] = {"kernel": EL9, "kernels": (EL9,), "installed": (EL9,), "grub": (), "have": ("dnf",)}
    state = bare(H200, of=packages(*of, version=version, maker=NVIDIA), **boots | fields)
    return state.model_copy(update={"os": OS(id="rocky", version_id="9.6")})


@pytest.mark.parametrize(
    ("flavor", "of", "version", "stream", "enabled"),
    [
        ("open", (), "580.95.05", "580-open", "580-open"),
        ("proprietary", (), "580.95.05", "580 or 580-dkms", "580-dkms"),
        ("proprietary", ("nvidia-driver-cuda", CLOSED), "580.95.05", "580", "580"),
        ("proprietary", ("nvidia-driver-cuda", CLOSED), "580.105.08", "580", "580"),
        ("proprietary", ("nvidia-driver-cuda", "kmod-nvidia-latest-dkms"), "580.105.08", "580-dkms", "580-dkms"),
        ("proprietary", ("nvidia-driver-cuda",), "580.95.05", "580-dkms", "580-dkms"),
    ],
)
def test_the_stream_has_the_kind_of_module(
    flavor: str, of: tuple[str, ...], version: str, stream: str, enabled: str
) -> None:
    spec = install(version, flavor=flavor)
    assert driverinstall.expected(spec, rocky(*of))["driver.stream"] == stream
    put = driverinstall.pin(spec, rocky(*of), of)
    assert put and f"\nstream={enabled}\n" in put.content.decode()


def test_secure_boot_takes_precompiled_modules_and_names_their_key() -> None:
    for flavor, kmod, key in (("open", KMOD, "Red Hat's key"), ("proprietary", CLOSED, "NVIDIA2019-public_key.der")):
        spec = install(flavor=flavor)
        assert f"installs {kmod}, if the repositories have" in driverinstall.note(spec, rocky())
        note = driverinstall.note(spec, rocky(secure_boot=True))
        assert f"Secure Boot is on, so apply installs only {kmod}: " in note and key in note
    assert driverinstall.note(install(), rocky("kmod-nvidia-open-dkms")) == "", "DKMS stays"
    other: dict[str, Any] = {"kernel": NEXT, "installed": (NEXT,), "kernels": (NEXT,)}
    assert driverinstall.note(install(), rocky(**other)) == ""
    with pytest.raises(NotComparable, match="Secure Boot is on"):
        driverinstall.expected(install(), rocky(secure_boot=True, **other))


def test_secure_boot_does_not_take_dkms_in_place_of_a_precompiled_module() -> None:
    """The key of the module that runs is not that of DKMS."""
    runs = {"modules": (Module(kernel=EL9, path="/x", version="570.1.1", signer="NVIDIA"),), "secure_boot": True}
    for kmod, signed in ((CLOSED, True), ("kmod-nvidia-latest-dkms", False)):
        state = rocky(kmod, **runs).model_copy(update={"driver": Driver(pci=(H200,), proc_version="570.1.1")})
        assert driverinstall.wanted(install(), state).signed is signed


@pytest.mark.parametrize("name", [KMOD, CLOSED, LARGE])
def test_a_precompiled_module_belongs_to_the_driver(name: str) -> None:
    state = rocky(name, "nvidia-driver-cuda")
    flavor = "proprietary" if name == CLOSED else "open"
    wanted = driverinstall.wanted(install("580.105.08"), state)
    assert (wanted.flavor, set(wanted.installed)) == (flavor, {name, "nvidia-driver-cuda"})
    other = install("580.105.08", flavor="open" if name == CLOSED else "proprietary")
    assert driverinstall.wanted(other, state).replaced == (name,)


def test_packages_of_32_bits_are_refused_only_with_dnf() -> None:
    of = BUILT | packages("nvidia-driver-cuda-libs:i686", version="580.95.05-1.el9", maker=NVIDIA)
    newer = install("580.105.08")
    with pytest.raises(NotComparable, match=r"dnf remove nvidia-driver-cuda-libs\.i686 first"):
        driverinstall.expected(newer, bare(H200, of=of, os="rocky", have=("dnf",)))
    driverinstall.expected(newer, bare(H200, of=of))


@pytest.mark.parametrize(
    ("state", "spec", "part"),
    [
        (bare(), install(), "set it to open or proprietary"),
        (bare(UNKNOWN), install(), "set it to open or proprietary"),
        (bare(B200), install(flavor="proprietary"), "Blackwell GPUs need the open module"),
        (bare(GH200), install("550.163.01", flavor="proprietary"), "GH200 GPUs need the open module"),
        (bare(B200), install("570.124.06"), "570.124.06 does not support B200 GPUs: the first version is 570.133.20"),
        (bare(V100), install(flavor="open"), "Volta GPUs need the proprietary module"),
        (bare(V100), install("590.48.01"), "the last branch is 580"),
        (bare(B200), install("550.163.01"), "the first branch is 570"),
        (bare(H200, mounts=(MOUNTED,)), install(), "a mount"),
        (bare(H200, have=("apt-get", "nvidia-uninstall")), install(), "nvidia-uninstall --silent first"),
        (
            bare(H200, of=packages("libcuda1") | packages("nvidia-driver-cuda", maker=NVIDIA)),
            install(),
            "are mixed on this node",
        ),
        (bare(H200, os="linuxmint"), install(), "supports Debian and Ubuntu"),
        (bare(H200, os="azurelinux", have=("dnf",)), install(), "does not support"),
        (bare(H200, secure_boot=True), install(), "Secure Boot is on"),
        (bare(H200), install("615.71.09", flavor="proprietary"), "615.71.09 has only the open module: set it to open"),
        (bare(), install("620.1.1", flavor="proprietary"), "620.1.1 has only the open module"),
        (bare(V100), install("615.71.09"), "no support for Volta GPUs"),
        (bare(H200, of=pinning("610")), install("595.91.07"), "replace it with nvidia-driver-pinning-595.91.07"),
        (bare(H200, of=pinning("595.71.05")), install("595.91.07"), "nvidia-driver-pinning-595.71.05 pins another"),
    ],
)
def test_what_is_refused_before_anything_is_asked(state: NodeState, spec: NodeSpec, part: str) -> None:
    with pytest.raises(NotComparable) as caught:
        driverinstall.expected(spec, state)
    assert part in str(caught.value)


def test_secure_boot_takes_what_it_took_before_and_signed_modules() -> None:
    signed = Module(kernel="6.12.48+deb13-amd64", path="/x", version="570.1.1", signer="key")
    running = Driver(pci=(H200,), proc_version="570.1.1")
    driverinstall.expected(install(), node(signed, of={}, driver=running, os=OS(id="debian"), secure_boot=True))
    state = bare(H200, os="ubuntu", secure_boot=True)
    driverinstall.expected(install(), state)
    assert driverinstall.wanted(install(), state).signed


def test_the_fabric_manager_comes_where_a_switch_or_an_older_one_is() -> None:
    manager = packages("nvidia-fabricmanager-570", version="570.1.1-1", maker=NVIDIA)
    of = packages("libcuda1", version="570.1.1-1")
    for state in (bare(H200, SWITCH), bare(H200, of=of | manager)):
        assert driverinstall.expected(install(), state)["driver.fabric-manager"] == "580.95.05"
        assert driverinstall.wanted(install(), state).fabric_manager
        assert "driver.fabric-manager" not in driverinstall.expected(install(fabric_manager="absent"), state)
    assert "driver.fabric-manager" not in driverinstall.expected(install(), bare(H200))


SUBNET = packages("nvlsm", version="2025.10.14-1", maker=NVIDIA)
LOADED_AT_BOOT = root_files({"/usr/lib/modules-load.d/x.conf": "# for NVLink\nib_umad\n"})


@pytest.mark.parametrize(
    ("ids", "keys"),
    [
        (["0x2901"] * 8, {"fabric-manager", "nvlsm", "ib_umad"}),
        (["0x2909"] * 8, {"fabric-manager", "nvlsm", "ib_umad"}),
        (["0x3182"] * 8, {"fabric-manager", "nvlsm", "ib_umad"}),
        (["0x2941"] * 4, {"imex"}),
        (["0x31c2"] * 4, {"imex"}),
        (["0x2901"], set()),  # in a virtual machine
        (["0x31c2"], set()),  # DGX Station
        (["0x2bb5"] * 8, set()),  # RTX PRO 6000
    ],
)
def test_what_nvlink_5_needs_is_known_by_the_device_ids(ids: list[str], keys: set[str]) -> None:
    state = bare(*(f"0000:{n}8:00.0 0x030200 {id}" for n, id in enumerate(ids)), os="ubuntu")
    spec = install("580.105.08")
    fabric = {f"driver.{name}" for name in ("fabric-manager", "nvlsm", "ib_umad", "imex")}
    assert fabric & set(driverinstall.expected(spec, state)) == {f"driver.{key}" for key in keys}
    wanted = driverinstall.wanted(spec, state)
    assert (wanted.fabric_manager, wanted.nvlsm) == ("fabric-manager" in keys, "nvlsm" in keys)
    assert wanted.imex is ("imex" in keys)
    assert bool(driverinstall.umad(spec, state)) is bool(driverinstall.modules(spec, state)) is ("ib_umad" in keys)
    for none in ({"driver": {"fabric_manager": "absent"}}, {"hardware": {"nvswitch": False}}):
        given = spec.model_dump(exclude_unset=True)
        other = NodeSpec.model_validate(given | none | {"driver": given["driver"] | none.get("driver", {})})
        assert not fabric & set(driverinstall.expected(other, state))
        assert driverinstall.umad(other, state) is None


def test_a_rack_gets_no_fabric_manager_even_if_an_older_one_is_installed() -> None:
    of = packages("libcuda1", "nvidia-fabricmanager-570", version="570.1.1-1", maker=NVIDIA)
    state = bare(*[B200.replace("0x2901", "0x2941")] * 4, of=of, os="ubuntu")
    assert not driverinstall.wanted(install(), state).fabric_manager
    assert "nvidia-fabricmanager-570" in driverinstall.wanted(install(), state).installed, "it moves with the driver"


def test_what_a_board_of_nvlink_5_has_stays_as_it_is() -> None:
    state = bare(*[B200] * 8, of=SUBNET, os="ubuntu", files=LOADED_AT_BOOT)
    found = driverinstall.actual(state)
    assert (found["driver.nvlsm"], found["driver.ib_umad"]) == ("installed", "loaded at boot")
    assert not driverinstall.wanted(install(), state).nvlsm, "apt is not asked for it: its version is its own"
    assert driverinstall.umad(install(), state) is None, "somebody else loads it"
    assert driverinstall.modules(install(), state), "but not yet, perhaps"
    for text in ("#ib_umad\n", "ib_umad_x\n", ""):
        assert driverinstall.umad(install(), bare(*[B200] * 8, files=root_files({"/etc/modules-load.d/x.conf": text})))


def test_packages_come_from_the_maker_of_the_installed_driver() -> None:
    for maker, said in ((DEBIAN, "Debian"), (UBUNTU, "Ubuntu"), ("", "")):
        assert driverinstall.wanted(install(), bare(H200, of=packages("libcuda1", maker=maker))).maker == said

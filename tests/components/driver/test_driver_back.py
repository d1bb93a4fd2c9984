"""The way back of the driver's hold, and the steps of its installation that no case file can answer."""

import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from gpuready.base.errors import ConvergeError
from gpuready.base.facts import KEPT
from gpuready.base.step import Reply, Step
from gpuready.components.driver.component import BEFORE, UNATTENDED, Driver, Hold, InstallPackages, Load, Simulate
from gpuready.components.driver.install import UMAD
from gpuready.components.repository.component import Repository
from gpuready.components.repository.source import AptSource
from gpuready.contract import ledger
from gpuready.contract.compare import compare
from gpuready.contract.removal import Removal
from tests.components.cases import node_of
from tests.lab import scale

KERNEL = "6.12.48+deb13-amd64"
DEBIAN: dict[str, Any] = {"os": {"id": "debian"}, "have": ["apt-get"]}
FRESH = DEBIAN | {"kernel": KERNEL, "boots": {"installed": [KERNEL]}}
INSTALL = {"driver": {"policy": "install", "version": "550.163.01", "flavor": "open"}}
NAMES = ("libcuda1", "libnvidia-ml1", "nvidia-smi", "nvidia-open-kernel-dkms")
MADISON = "".join(f" {name} | 550.163.01-2 | http://x trixie/non-free amd64 Packages\n" for name in NAMES)
MADISON += f"headers {KERNEL}\n"


def installing(**state: Any) -> Generator[Step, Reply, None]:
    """The steps of an installation on a fresh node, after its repositories were asked."""
    spec, node = node_of("driver", INSTALL, FRESH | state)
    steps = Driver().converge(compare(Driver(), spec, node).diff, spec, node)
    assert next(steps).name == "driver-available"
    return steps


def test_remove_goes_back_to_the_holds_of_before() -> None:
    held = {"version": "550.163.01-2", "held": True}
    files = {
        BEFORE: "libcuda1 hold\nlibnvidia-ml1 free\nnvidia-smi free\n",
        UNATTENDED: "ours\n",
        f"{KEPT}{UNATTENDED}.absent": "",
    }
    spec, state = node_of("driver", {}, FRESH | {"packages": {"libcuda1": held, "libnvidia-ml1": held}, "files": files})
    found = compare(Removal(Driver()), spec, state)
    assert {c.key: (c.actual, c.expected) for c in found.diff} == {
        "driver.libnvidia-ml1.held": (True, False),
        f"driver.files.{UNATTENDED}": ("gpuready's, edited since", None),
    }
    (step,) = Driver().restore(found.diff, spec, state)
    back = ledger.Putback(UNATTENDED, state.sha256(UNATTENDED), False)
    assert step.args == Hold((), ("libnvidia-ml1",), (), (back,), dnf=False)
    assert step.script.endswith('rm -f "$HOLDS_BEFORE"\nexit 0\n'), "a hold of somebody's later on is his"


def test_remove_takes_the_module_of_the_fabric_manager_back() -> None:
    files = {UMAD: "mlx5_ib\nib_umad\n", f"{KEPT}{UMAD}.absent": ""}
    spec, state = node_of("driver", {}, FRESH | {"files": files})
    found = compare(Removal(Driver()), spec, state)
    assert [c.key for c in found.diff] == [f"driver.files.{UMAD}"]
    (step,) = Driver().restore(found.diff, spec, state)
    assert isinstance(step.args, Hold)
    assert step.args.files == (ledger.Putback(UMAD, state.sha256(UMAD), False),)


def test_the_repository_does_not_remove_the_files_of_the_hold() -> None:
    files = dict.fromkeys((UNATTENDED, "/etc/apt/apt.conf.d/90gpuready-reconverge", AptSource.path), "ours\n")
    spec, state = node_of("driver", {}, FRESH | {"files": files | {f"{KEPT}{path}.absent": "" for path in files}})
    assert list(Repository().original(spec, state)) == [f"repository.files.{AptSource.path}"]


def test_an_installation_is_simulated_checked_done_and_held() -> None:
    installed = "".join(f"{name}\t550.163.01-2\n" for name in (*NAMES, "nvidia-alternative")) + "dkms\t3.2\n"
    simulated = "".join(f"Inst {name} (550.163.01-2 x [amd64])\n" for name in NAMES)
    going = installing()
    simulate = going.send(Reply(0, MADISON))
    assert (simulate.name, simulate.survives) == ("driver-simulate", False), "it changes nothing"
    assert isinstance(simulate.args, Simulate)
    assert simulate.args.pins[:2] == ("libcuda1=550.163.01-2", "libnvidia-ml1=550.163.01-2")
    install = going.send(Reply(0, f"{simulated}Remv nvidia-kernel-dkms [550.163.01-2]\n"))
    assert (install.name, install.summary) == ("driver-install", "install driver 550.163.01, remove nvidia-kernel-dkms")
    hold = going.send(Reply(0, installed))
    assert isinstance(hold.args, Hold)
    wanted = tuple(sorted((*NAMES, "nvidia-alternative")))
    assert hold.args.hold == wanted, "what came along is held, too; dkms is not the driver's"
    with pytest.raises(StopIteration):
        going.send(Reply(0, ""))


def test_nothing_is_installed_when_apt_would_do_more() -> None:
    going = installing()
    going.send(Reply(0, MADISON))
    with pytest.raises(ConvergeError, match="the installation would also remove gdm3; nothing was changed"):
        going.send(Reply(0, "Remv gdm3 [48.0-2]\n"))


def sh(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh"], input=script, capture_output=True, text=True, check=False, timeout=scale.seconds(30))


LOADED = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "gdrdrv", "nvidia_peermem")


#: What Debian's kernel and modprobe said of Debian's module on a virtual machine without a GPU.
REFUSES = """echo '[    9.1] NVRM: {2}' >>{0}/kernel
echo "libkmod: ERROR: kmod_config_parse: /etc/modprobe.d/x.conf line 1: ignoring bad line" >&2
echo "could not insert '$1': {1}" >&2
echo "could not insert '$1': Invalid argument" >&2"""


#: As posted in Witko/nvidia-xrun#151.
OFF_THE_BUS = "The GPU at 01:00 has fallen off the bus and is not responding to commands."


def load(
    sys: Path, modprobe: str = "", rmmod: str = "", why: str = "", kernel: str = "No NVIDIA GPU found."
) -> subprocess.CompletedProcess[str]:
    """The script that reloads the module, on these directories in place of the kernel's modules."""
    for name in LOADED:
        (sys / name).mkdir()
    (sys / "nvidia/version").write_text("535.1.1\n")
    refuses = REFUSES.format(sys, why, kernel)
    (sys / "kernel").write_text("[    8.1] NVRM: said before\n")
    around = f"""
dmesg() {{ cat "{sys}/kernel" 2>/dev/null; }}
modinfo() {{ echo NVIDIA; }}
rmmod() {{ case $1 in "{rmmod}") echo "rmmod: $1 is in use" >&2; return 1 ;; esac; rm -r "{sys}/$1"; }}
modprobe() {{
  m=$(echo "$1" | tr - _); case $m in "{modprobe}") {refuses}; return 1 ;; esac
  mkdir "{sys}/$m" && {{ [ $m != nvidia ] || echo 550.1.1 >"{sys}/$m/version"; }} && echo $m >>"{sys}/order"
}}
"""
    script = Load("550.1.1", (), stuck=str(sys / "d/stuck")).render()
    script = script.replace("/sys/module", str(sys)).replace("/run/systemd/system", "/nonexistent")
    return sh(around + script.replace("idle restart gpu", ":").replace("has nvidia-modprobe", "false"))


GONE = ("nvidia",)


@pytest.mark.parametrize(
    ("fails", "code", "says", "missing"),
    [
        ({}, 0, "", ()),
        ({"modprobe": "gdrdrv"}, 1, "were loaded before, are not: gdrdrv (", ("gdrdrv",)),
        (
            {"modprobe": "nvidia", "why": "No such device"},
            1,
            "No NVIDIA GPU found.; not loaded any more: nvidia",
            LOADED,
        ),
        (
            {"modprobe": "nvidia", "why": "No such device", "kernel": OFF_THE_BUS},
            77,
            "not responding to commands",
            GONE,
        ),
        (
            {"modprobe": "nvidia", "why": "Key was rejected"},
            77,
            "(could not insert 'nvidia': Key was rejected; the key that signed it: NVIDIA;",
            GONE,
        ),
        ({"rmmod": "nvidia_uvm"}, 77, "nvidia_uvm cannot be unloaded", ()),
    ],
)
def test_a_reload_brings_back_every_module_that_it_took_out(
    fails: dict[str, str], code: int, says: str, missing: tuple[str, ...], tmp_path: Path
) -> None:
    done = load(tmp_path, **fails)
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr
    assert tuple(name for name in LOADED if not (tmp_path / name).is_dir()) == missing
    if missing != LOADED:
        order = (tmp_path / "order").read_text().split()
        assert order.index("nvidia_modeset") < order.index("nvidia_drm"), "which needs it"


TRANSACTION = """
die() {{ echo "$*" >&2; exit 1; }}
MANAGER=apt-get D={there}; JUDGED=fine; N=0
would() {{ cat "$D/would"; }}
apt_said() {{ cat; }}
transact() {{ N=$((N+1)); echo "$N $* $LOCK_TIMEOUT" >>"$D/log"; case $N in {installs} esac; }}
record_holds() {{ :; }}
idle() {{ :; }}
patient() {{ :; }}
same() {{ :; }}
put() {{ :; }}
"""


@pytest.mark.parametrize(
    ("installs", "said", "log"),
    [
        ('2) echo "E: Could not get lock /var/lib/dpkg/lock-frontend"; return 100 ;;', "", 3),
        ("1) echo other >$D/would ;;", "changed while the packages were fetched; nothing was changed", 1),
        ('2) echo "E: Could not get lock"; echo other >$D/would; return 100 ;;', "was changed, run again", 2),
        ('2) echo "E: Sub-process dpkg returned an error code (1)"; return 100 ;;', "apt-get install failed", 2),
    ],
)
def test_apt_does_only_what_was_checked_after_any_wait(installs: str, said: str, log: int, tmp_path: Path) -> None:
    going = installing()
    going.send(Reply(0, MADISON))
    script = going.send(Reply(0, "Inst nvidia-smi (550.163.01-2 x [amd64])\n")).script
    assert "nvidia-fabricmanager" not in script
    end = '\ncat "$D/said" >&2\n'
    part = script[script.index("\nwhy()") : script.index("\nready()")]
    part += script[script.index("\njudged()") : script.index(end)] + end
    stubs = TRANSACTION.format(there=tmp_path, installs=installs)
    (tmp_path / "would").write_text("fine\n")
    done = sh(stubs + part)
    assert (done.returncode, said in done.stderr) == (1 if said else 0, True), done.stderr
    assert len((tmp_path / "log").read_text().splitlines()) == log


#: From the end of apt's output, and of the log, when Debian's 550.163.01-2 met a newer kernel of Debian 13.
BROKEN = """The following additional packages will be installed:
  binutils binutils-common
{consult}dpkg: error processing package nvidia-open-kernel-dkms (--configure):
 installed nvidia-open-kernel-dkms package post-installation script subprocess returned error exit status 10
"""
LOG = """DKMS (dkms-3.2.2) make.log for nvidia-current-open/550.163.01 for kernel 6.12.118+deb13-amd64 (x86_64)
// Kernel version:             "6.12.118+deb13-amd64"
{error}make[4]: *** [/usr/src/linux/scripts/Makefile.build:234: /var/lib/dkms/x/1/build/nvidia/nv-pci.o] Error 1
"""
ERROR = "/var/lib/dkms/nvidia-current-open/550.163.01/build/nvidia/nv-pci.c:237:9: error: too few arguments\n"


@pytest.mark.parametrize(
    ("consult", "error", "said"),
    [
        (True, ERROR, "DKMS cannot build the module: nvidia/nv-pci.c:237:9: error: too few arguments ("),
        (True, "", "DKMS cannot build the module: make[4]: *** [/usr/src/linux/scripts/Makefile.build:234"),
        (False, "", "installed nvidia-open-kernel-dkms package post-installation script"),
    ],
)
def test_a_build_that_fails_is_the_reason(consult: bool, error: str, said: str, tmp_path: Path) -> None:
    going = installing()
    going.send(Reply(0, MADISON))
    script = going.send(Reply(0, "Inst nvidia-smi (550.163.01-2 x [amd64])\n")).script
    starts = (script.index(f"\n{name}()") for name in ("dkms_error", "why", "apt_said"))
    parts = (script[start : script.index("\n}", start) + 2] for start in starts)
    (tmp_path / "make.log").write_text(LOG.format(error=error))
    output = BROKEN.format(consult=f"Consult {tmp_path}/make.log for more information.\n" if consult else "")
    done = sh(f"D={tmp_path}" + "".join(parts) + f"\nwhy <<'END'\n{output}END\n")
    assert done.stdout.startswith(said) and "binutils" not in done.stdout, done.stdout + done.stderr


BOARD = {"driver": {"pci": [f"0000:{n}8:00.0 0x030200 0x2901" for n in range(8)]}}
SUBNET = " nvidia-fabricmanager | {} | x\n nvlsm | 2025.10.14-1 | x\n".format("580.95.05-1")
BLACKWELL = MADISON.replace("550.163.01-2", "580.95.05-1") + SUBNET


def on_a_board(**state: Any) -> InstallPackages:
    """What is installed on an HGX B200."""
    spec, node = node_of("driver", {"driver": {"policy": "install", "version": "580.95.05"}}, FRESH | BOARD | state)
    going = Driver().converge(compare(Driver(), spec, node).diff, spec, node)
    next(going)
    going.send(Reply(0, BLACKWELL))
    step = going.send(Reply(0, ""))
    assert isinstance(step.args, InstallPackages)
    return step.args


def test_a_board_of_nvlink_5_gets_nvlsm_and_loads_its_module_now_and_at_boot() -> None:
    args = on_a_board()
    assert args.pins[-2:] == ("nvidia-fabricmanager=580.95.05-1", "nvlsm")
    assert (args.fabric_manager, args.modules) == (True, ("mlx5_ib", "ib_umad"))
    (umad,) = (put for put in args.puts if put.path == UMAD)
    assert umad.content.decode().splitlines()[1:] == ["mlx5_ib", "ib_umad"]
    script = args.render()
    load, start = script.index('modprobe "$m"'), script.index("systemctl enable nvidia-fabricmanager")
    assert script.index("until install") < load < start


@pytest.mark.parametrize("booted", [True, False])
def test_in_an_image_no_module_of_the_builder_is_loaded(booted: bool, tmp_path: Path) -> None:
    script = on_a_board().render()
    end = script.index("\nfi\n", script.index('modprobe "$m"'))
    part = script[script.rindex("\nif ", 0, end) : end + 4].replace("/run/systemd", str(tmp_path))
    if booted:
        (tmp_path / "system").mkdir()
    done = sh(f'modprobe() {{ echo "$1" >&2; }}\n{part}')
    assert done.returncode == 0 and done.stderr.split() == (["mlx5_ib", "ib_umad"] if booted else [])


@pytest.mark.parametrize(("lacks", "code"), [("ib_umad", 1), ("mlx5_ib", 1), ("", 0)])
def test_a_kernel_without_the_module_is_found_before_anything_changes(lacks: str, code: int) -> None:
    script = on_a_board().render()
    part = script[script.rindex("for k in", 0, script.index("modinfo -k")) : script.index("\nfirst_boot\n")]
    stubs = f'die() {{ echo "$*" >&2; exit 1; }}\nmodinfo() {{ [ "$3" != "{lacks}" ]; }}\n'
    done = sh(stubs + part)
    assert done.returncode == code, done.stderr
    assert (f"{KERNEL} has no module {lacks}" in done.stderr) is bool(lacks)
    assert ("nothing was changed" in done.stderr) is bool(lacks)


def test_the_fabric_manager_is_enabled_also_where_no_module_is_reloaded() -> None:
    going = installing(driver={"pci": ["0000:07:00.0 0x068000 0x22a3"]})
    going.send(Reply(0, f"{MADISON} nvidia-fabricmanager | 550.163.01-1 | http://x cuda amd64 Packages\n"))
    script = going.send(Reply(0, "")).script
    assert script.index("install --download-only") < script.index("systemctl enable nvidia-fabricmanager")
    assert '[ "$(module_version)" != "$VERSION" ] || systemctl start nvidia-fabricmanager' in script

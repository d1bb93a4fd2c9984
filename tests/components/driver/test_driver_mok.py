"""DKMS's key and Secure Boot: which certificate it is, whether it is enrolled, and how it is queued and taken back."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.base.errors import SpecErrors
from gpuready.base.step import Reply
from gpuready.components.driver import install
from gpuready.components.driver.component import Driver, EnrolMok, RevokeMok
from gpuready.components.driver.state import Module
from gpuready.contract.compare import compare
from gpuready.contract.component import Change, Disruption, NotComparable
from gpuready.contract.removal import Removal
from gpuready.inventory import secrets
from gpuready.inventory.hosts import load
from gpuready.model.state import NodeState
from tests.command import write_hosts
from tests.components.driver.test_driver_recipes import H200, bare
from tests.components.driver.test_driver_recipes import install as spec_of
from tests.components.driver.test_driver_verdicts import NEXT, NOW, SET
from tests.gpu.test_boots import read
from tests.lab import scale
from tests.verdicts import root_files

MOK = "/var/lib/dkms/mok.pub"
SIGN = {"sign": "mok", "mok_password": "env:GPUREADY_MOK"}
SHIM = "605dab50-e046-4300-abb6-3dd810dd8b23"
#: Attributes of an EFI variable; then a list's type and sizes, and a certificate's owner (the UEFI specification).
ATTRIBUTES, LIST = b"\7\0\0\0", b"L" * 28 + b"O" * 16


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate, made with DKMS's own command line."""
    folder = tmp_path_factory.mktemp("mok")
    words = 'req -new -x509 -nodes -days 36500 -subj "/CN=DKMS module signing key" -newkey rsa:2048 -outform DER'
    out = ["-keyout", str(folder / "mok.key"), "-out", str(folder / "mok.pub")]
    subprocess.run(["openssl", *shlex.split(words), *out], capture_output=True, check=True)
    return folder / "mok.pub"


def on(root: Path, script: str) -> subprocess.CompletedProcess[str]:
    """A script with this directory in place of the node's root."""
    moved = re.sub(r"(?<![\w.$}/])/(sys/firmware|etc/dkms|etc/os-release|var/lib|lib/modules)", rf"{root}/\1", script)
    return subprocess.run(["dash"], input=moved, capture_output=True, text=True, check=False, timeout=scale.seconds(30))


def variable(root: Path, name: str, *certificates: bytes) -> None:
    place = root / "sys/firmware/efi/efivars"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}-{SHIM}").write_bytes(ATTRIBUTES + b"".join(LIST + each for each in certificates))


def part(root: Path, call: str) -> str:
    return on(root, f"{resources.script('driver/mok')}\n{call}").stdout


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({}, "{0}/var/lib/dkms/mok.pub"),
        ({"os-release": "ID=ubuntu\n"}, "{0}/var/lib/shim-signed/mok/MOK.der"),
        ({"dkms/framework.conf": "# mok_certificate=/a\n"}, "{0}/var/lib/dkms/mok.pub"),
        (
            {"dkms/framework.conf": 'mok_certificate="/my keys/a.der" # ours\n', "os-release": "ID=ubuntu\n"},
            "/my keys/a.der",
        ),
        (
            {"dkms/framework.conf": "mok_certificate=/a\n", "dkms/framework.conf.d/x.conf": " mok_certificate='/b'\n"},
            "/b",
        ),
    ],
)
def test_which_certificate_dkms_signs_with(files: dict[str, str], path: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / "etc" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "etc" / name).write_text(text)
    assert part(tmp_path, "mok_certificate") == f"{path.format(tmp_path)}\n"


@pytest.mark.parametrize(
    ("name", "says"),
    [("MokListRT", "enrolled"), ("MokListRT1", "enrolled"), ("MokNew", "queued"), ("MokListXRT", "not enrolled")],
)
def test_whether_a_certificate_is_enrolled(name: str, says: str, certificate: Path, tmp_path: Path) -> None:
    mine = certificate.read_bytes()
    variable(tmp_path, "MokListRT", b"another")
    variable(tmp_path, name, b"one more", mine)
    assert part(tmp_path, f"mok_state {certificate}") == f"{says}\n"
    assert part(tmp_path, f"mok_state {certificate}.gone") == "not enrolled\n"


def test_the_serial_number_is_that_of_the_modules_signature(certificate: Path, tmp_path: Path) -> None:
    shown = subprocess.check_output(
        ["openssl", "x509", "-inform", "DER", "-in", certificate, "-noout", "-serial"], text=True
    )
    serial = shown.strip().partition("=")[2]
    key = ":".join(re.findall("..", serial))  # as modinfo shows it
    head = part(tmp_path, f"hex -j13 -N24 {certificate}")
    modinfo = f"filename: /lib/modules/{NOW}/updates/dkms/nvidia.ko\nsigner: DKMS module signing key\nsig_key: {key}\n"
    boots = read(f"mok={MOK}\nmok_serial={head}\nmok_state=queued\n", modinfo).boots
    assert (boots.mok, boots.mok_state, boots.signed_by_dkms(boots.modules[0])) == (MOK, "queued", True)
    assert not boots.signed_by_dkms(boots.modules[0].model_copy(update={"key": "1434"}))
    assert not read("mok_serial=30\n", modinfo).boots.signed_by_dkms(boots.modules[0])


PASSWORD = "Enrol4567"
#: As mokutil reads it: twice, from a pipe. It keeps what it was given, and queues the certificate.
MOKUTIL = """
has() {{ :; }}
modinfo() {{ echo '{signer}'; }}
mokutil() {{
  echo "$*" >>{root}/called
  case $1 in
    --import) cat >{root}/password && printf '\\7\\0\\0\\0{filler}' >{new} && cat "$2" >>{new} ;;
    --revoke-import) rm {new} ;;
  esac
}}
"""


def asked(root: Path, script: str, signer: str = "DKMS module signing key") -> subprocess.CompletedProcess[str]:
    """A step on a node with one kernel, whose module has that signer."""
    place = root / "lib/modules" / NOW
    place.mkdir(parents=True, exist_ok=True)
    (place / "modules.dep").write_text("updates/dkms/nvidia.ko:\n")
    new = root / f"sys/firmware/efi/efivars/MokNew-{SHIM}"
    around = MOKUTIL.format(root=root, new=new, signer=signer, filler="L" * 44)
    head, marker, rest = script.partition("\nPASSWORD=" if "\nPASSWORD=" in script else "\nRECORD=")
    return on(root, head + around + marker + rest)


def placed(root: Path, certificate: Path) -> None:
    (root / "var/lib/dkms").mkdir(parents=True)
    (root / "var/lib/dkms/mok.pub").write_bytes(certificate.read_bytes())
    variable(root, "MokListRT", b"another")


def enrol(root: Path, **given: str) -> subprocess.CompletedProcess[str]:
    return asked(root, EnrolMok((NOW,), PASSWORD, install.QUEUED).render(), **given)


def revoke(root: Path) -> subprocess.CompletedProcess[str]:
    return asked(root, RevokeMok(install.QUEUED).render())


def test_the_key_is_queued_once_and_taken_back(certificate: Path, tmp_path: Path) -> None:
    placed(tmp_path, certificate)
    first, second = enrol(tmp_path), enrol(tmp_path)
    assert (first.returncode, first.stderr) == (0, "")
    assert second.returncode == 77 and "Enroll MOK, Continue, Yes" in second.stderr
    assert (tmp_path / "password").read_text() == f"{PASSWORD}\n" * 2
    calls = (tmp_path / "called").read_text()
    assert calls == f"--import {tmp_path}{MOK}\n", "and the password is no argument"
    assert (tmp_path / install.QUEUED[1:]).read_text() == f"{tmp_path}{MOK}\n"
    assert revoke(tmp_path).returncode == 0
    assert part(tmp_path, f"mok_state {certificate}") == "not enrolled\n"
    assert not (tmp_path / install.QUEUED[1:]).exists()


def test_the_keys_that_others_queued_stay(certificate: Path, tmp_path: Path) -> None:
    placed(tmp_path, certificate)
    assert enrol(tmp_path).returncode == 0
    variable(tmp_path, "MokNew", certificate.read_bytes(), b"theirs")
    refused = revoke(tmp_path)
    assert refused.returncode == 1 and "others queued keys" in refused.stderr
    assert "revoke" not in (tmp_path / "called").read_text()


@pytest.mark.parametrize(
    ("signer", "code", "says"),
    [("", 1, "DKMS did not sign the nvidia module"), ("Canonical Ltd. Kernel Module Signing", 0, "")],
)
def test_nothing_is_queued_for_another_signature(
    signer: str, code: int, says: str, certificate: Path, tmp_path: Path
) -> None:
    placed(tmp_path, certificate)
    done = enrol(tmp_path, signer=signer)
    assert done.returncode == code and says in done.stderr
    assert not (tmp_path / "called").exists()


KEY = "3e41"
MINE = tuple(
    Module(kernel=k, path="/x", version="550.163.01", signer="DKMS module signing key", key=KEY, open=True)
    for k in (NOW, NEXT)
)


def built(state: str, **fields: object) -> NodeState:
    """A Debian with the driver, which Secure Boot does not load before the key of the module is enrolled."""
    given = {"of": SET, "os": "debian", "modules": MINE, "secure_boot": True, "mok": MOK, "mok_serial": KEY}
    return bare(H200, **{**given, "mok_state": state, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        (bare(H200, secure_boot=True), True),
        (bare(H200, secure_boot=False), False),
        (bare(H200, secure_boot=True, shim_insecure=True), False),
        (bare(H200, os="ubuntu", secure_boot=True), False),
        (built("not enrolled"), True),
        (built("enrolled"), True),
    ],
)
def test_where_the_key_must_be_enrolled(state: NodeState, wanted: bool) -> None:
    assert (install.MOK in install.expected(spec_of("550.163.01", flavor="open", **SIGN), state)) is wanted
    assert install.MOK not in install.expected(spec_of("550.163.01", flavor="open"), bare(H200))


def test_without_secure_boot_no_key_can_be_enrolled() -> None:
    with pytest.raises(NotComparable, match="no key can be enrolled"):
        install.expected(spec_of(**SIGN), bare(H200, lockdown="integrity"))


def test_a_queued_key_waits_and_nothing_else_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_resolved", {})
    monkeypatch.setenv("GPUREADY_MOK", PASSWORD)
    diff = (Change(install.MOK, "queued", "enrolled"), Change(install.RUNNING, None, "550.163.01"))
    spec, state = spec_of("550.163.01", flavor="open", **SIGN), built("queued")
    steps = Driver().converge(diff, spec, state)
    first = next(steps)
    assert (first.name, first.survives, first.alters) == ("driver-mok", False, True)
    assert first == steps.send(Reply(0, "")), "the second time it waits"
    assert Driver().disruption(diff[:1], state) == Disruption.none


def test_remove_takes_back_only_what_gpuready_queued() -> None:
    spec = spec_of("550.163.01", flavor="open", **SIGN)
    ours = {"files": root_files({install.QUEUED: f"{MOK}\n"})}
    found = compare(Removal(Driver()), spec, built("queued", **ours))
    assert {c.key: (c.actual, c.expected) for c in found.diff} == {install.MOK: ("queued", "not enrolled")}
    assert next(Driver().restore(found.diff, spec, built("queued", **ours))).args == RevokeMok(install.QUEUED)
    assert not compare(Removal(Driver()), spec, built("queued")).diff
    enrolled = built("enrolled", **ours)
    assert not compare(Removal(Driver()), spec, enrolled).diff
    assert any("mokutil --delete" in note for note in Driver().notes_on_removal((), spec, enrolled))


@pytest.mark.parametrize(
    ("driver", "says"),
    [
        ({"policy": "install", "version": "550.163.01", "sign": "mok"}, "driver.mok_password is missing"),
        ({"policy": "install", "version": "550.163.01", "mok_password": "env:GPUREADY_MOK"}, "driver.sign is missing"),
        ({"policy": "hold", **SIGN}, "no effect with policy: hold"),
        ({"policy": "install", "version": "550.163.01", **SIGN}, "not a password"),
    ],
)
def test_what_the_spec_refuses(
    driver: dict[str, str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "_resolved", {})
    monkeypatch.setenv("GPUREADY_MOK", "y|z")
    with pytest.raises(SpecErrors) as caught:
        load([write_hosts(tmp_path, json.dumps({"all": {"hosts": {"a": {"gpuready": {"driver": driver}}}}}))])
    assert says in str(caught.value) and "y|z" not in str(caught.value)

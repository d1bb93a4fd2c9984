"""UEFI with Secure Boot for virtual machines: Debian's OVMF with Microsoft's keys, and a boot partition with shim.

The firmware starts shim, which Microsoft signed; shim starts Debian's signed GRUB, and that the kernel, which Debian
signed. The boot partition is a directory of the host, which QEMU shows as a FAT file system.
"""

import contextlib
import re
import shutil
import socket
import time
from pathlib import Path

from tests.lab import scale
from tests.lab.host import LabError

HOST_PACKAGES = ("ovmf",)
#: What the machine has to have installed: the signed programs, of its own release.
PACKAGES = "shim-signed grub-efi-amd64-signed mokutil"
_FIRMWARE = Path("/usr/share/OVMF")
#: shim at the path of removable media starts the GRUB beside it, or MokManager if a key is queued.
_PROGRAMS = {
    "BOOTX64.EFI": "usr/lib/shim/shimx64.efi.signed",
    "mmx64.efi": "usr/lib/shim/mmx64.efi.signed",
    "grubx64.efi": "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed",
}
#: Debian's signed GRUB reads /EFI/debian/grub.cfg of the partition that it came from.
_GRUB_CFG = "search --set=root --file /boot/grub/grub.cfg\nconfigfile /boot/grub/grub.cfg\n"
#: How the firmware moves its cursor and sets colours.
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
DOWN, ENTER = "\x1b[B", "\r"


def fill(into: Path, root: Path) -> None:
    """Write the boot partition of a VM from what is installed in a root directory."""
    for name, program in _PROGRAMS.items():
        target = into / "EFI/BOOT" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / program, target)
    (into / "EFI/debian").mkdir()
    (into / "EFI/debian/grub.cfg").write_text(_GRUB_CFG, "utf-8")


def variables(into: Path) -> None:
    """Write the firmware's variables of one VM: Secure Boot is on, with Microsoft's keys."""
    shutil.copyfile(_FIRMWARE / "OVMF_VARS_4M.ms.fd", into)


def devices(boot: Path, variables: Path) -> list[str]:
    """QEMU's options for the firmware, and for the boot partition as the last disk.

    This build of OVMF does not use SMM, which protects the variables from the kernel: that plays no part here.
    """
    return [
        *("-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={_FIRMWARE}/OVMF_CODE_4M.fd"),
        *("-drive", f"if=pflash,unit=1,format=raw,file={variables}"),
        *("-drive", f"if=none,id=boot,format=raw,read-only=on,file=fat:{boot}"),
        *("-device", "virtio-blk-pci,drive=boot,bootindex=0"),
    ]


class Console:
    """A person at the serial console, for MokManager: waits for words on the screen, and types.

    The firmware writes byte by byte, and after some 280 bytes that nobody read it loses what it paints: so there is no
    pause without reading.
    """

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._socket.settimeout(0.2)
        self._seen = ""

    def __enter__(self) -> "Console":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def expect(self, words: str, seconds: float = 240) -> None:
        """Read on until these words have come since the last ones, or since the last key."""
        limit = scale.Limit(seconds)
        while words not in (plain := _ESCAPES.sub("", self._seen)):
            if limit.over():
                raise LabError(f"the console does not say {words!r}; it said:\n{plain[-2000:]}")
            self._read()
        self._seen = plain.partition(words)[2]

    def type(self, *keys: str) -> None:
        """Press keys one by one: the firmware reads an escape sequence as one key only if it comes at once."""
        for key in keys:
            self._rest(1)
            self._seen = ""
            self._socket.sendall(key.encode())

    def choose(self, words: str) -> None:
        """Choose the second line of MokManager's menu, which has these words."""
        self.expect(words)
        self._rest(scale.seconds(2))  # until it is painted
        self.type(DOWN, ENTER)

    def _rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read()

    def _read(self) -> None:
        with contextlib.suppress(TimeoutError):
            self._seen += self._socket.recv(4096).decode("utf-8", "replace")

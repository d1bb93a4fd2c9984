"""Facts about the next boot: kernels, their nvidia modules, DKMS, nouveau, Secure Boot.

Sources: modules.dep(5), modinfo(8) (``license`` shows the open module: Dual MIT/GPL), dkms(8), GRUB's manual,
the Boot Loader Specification, kernel_lockdown(7). Nothing here judges.
"""

import re
from collections.abc import Mapping

from gpuready.base.facts import Facts


class Module(Facts):
    """The driver's main module in /lib/modules for one kernel.

    ``signer`` is empty for an unsigned module. ``key``: the serial number of the signer's certificate, hexadecimal.
    """

    kernel: str
    path: str
    version: str = ""
    signer: str = ""
    key: str = ""
    open: bool = False


class Boots(Facts):
    """What a boot depends on.

    ``kernels``: the kernels in /boot. ``installed``: the kernels that have modules. ``nouveau_for``: the kernels that
    have nouveau. ``nouveau_bound``: PCI addresses. ``grub``: the lines of grub.cfg and grubenv that decide which entry
    boots. ``older_initramfs``: images that are older than the nvidia module on disk. ``dkms``: NAME/VERSION of its
    sources. ``dkms_failed``: first line and first error of the log of a failed build. ``modules_unknown``: why
    ``modules`` could not be read. ``secure_boot``: as UEFI reports it, None without UEFI. ``shim_insecure``: shim
    validates nothing. ``mok``: the certificate with which DKMS signs modules, ``mok_serial`` its serial number, and
    ``mok_state`` whether it is enrolled, queued or not enrolled.
    """

    kernels: tuple[str, ...] = ()
    installed: tuple[str, ...] = ()
    modules: tuple[Module, ...] = ()
    modules_unknown: str = ""
    nouveau_for: tuple[str, ...] = ()
    nouveau_bound: tuple[str, ...] = ()
    older_initramfs: tuple[str, ...] = ()
    grub: tuple[str, ...] = ()
    dkms: tuple[str, ...] = ()
    dkms_failed: tuple[str, ...] = ()
    secure_boot: bool | None = None
    shim_insecure: bool = False
    lockdown: str = ""
    sig_enforce: bool = False
    mok: str = ""
    mok_serial: str = ""
    mok_state: str = ""

    @property
    def signed_only(self) -> bool:
        """Whether the kernel loads only signed modules: because of Secure Boot, lockdown or its own setting."""
        return self.enrols or self.lockdown in ("integrity", "confidentiality") or self.sig_enforce

    @property
    def enrols(self) -> bool:
        """Whether a key that the owner enrols (MOK) makes the kernel load what it signed."""
        return bool(self.secure_boot) and not self.shim_insecure

    def signed_by_dkms(self, module: Module) -> bool:
        """Tell whether the key of ``mok`` signed a module. Its name does not tell: every node's is the same."""
        return bool(module.key) and module.key == self.mok_serial

    def module(self, kernel: str) -> Module | None:
        """Return the kernel's nvidia module, if any. Of several, modprobe uses the one that depmod lists first."""
        return next((found for found in self.modules if found.kernel == kernel), None)


def boots(values: Mapping[str, list[str]], modules: str, unknown: str, grub: str) -> Boots:
    """Parse the probe's ``values``, the output of its driver_modules (or why there is none), and GRUB's lines."""
    one = {key: found[-1].strip() for key, found in values.items()}
    lines = modules.splitlines()
    lockdown = re.search(r"\[(\w+)\]", one.get("lockdown", ""))
    return Boots(
        kernels=tuple(k for k in values.get("vmlinuz", []) if "rescue" not in k),
        installed=tuple(values.get("modules_of", [])),
        modules=tuple(_modules(lines)),
        modules_unknown=unknown,
        nouveau_for=_values(lines, "nouveau"),
        nouveau_bound=tuple(values.get("nouveau", [])),
        older_initramfs=_values(lines, "older"),
        grub=tuple(line.strip() for line in grub.splitlines()),
        dkms=tuple(values.get("dkms", [])),
        dkms_failed=tuple(values.get("dkms_failed", [])),
        secure_boot=one["secure_boot"] == "1" if "secure_boot" in one else None,
        shim_insecure=one.get("shim_insecure") == "1",
        lockdown=lockdown[1] if lockdown else "",
        sig_enforce=one.get("sig_enforce") == "Y",
        mok=one.get("mok", ""),
        mok_serial=_serial(one.get("mok_serial", "")),
        mok_state=one.get("mok_state", ""),
    )


def _serial(der: str) -> str:
    """Return the integer at the start of ``der``, as modinfo shows a serial number: without leading zeros."""
    tag, length, value = der[:2], der[2:4], der[4:]
    return _hex(value[: 2 * int(length, 16)]) if tag == "02" and re.fullmatch("[0-9a-f]{2}", length) else ""


def _hex(digits: str) -> str:
    return digits.replace(":", "").lower().lstrip("0")


def _values(lines: list[str], word: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line.removeprefix(f"{word}: ") for line in lines if line.startswith(f"{word}: ")))


def _modules(lines: list[str]) -> list[Module]:
    """Parse modinfo, which prints one file after the other, each beginning with its name."""
    found: list[dict[str, str]] = []
    for line in lines:
        key, colon, value = line.partition(":")
        if key == "filename":
            found.append({})
        if found and colon:
            found[-1].setdefault(key, value.strip())
    return [
        Module(
            kernel=m["filename"].removeprefix("/lib/modules/").partition("/")[0],
            path=m["filename"],
            version=m.get("version", ""),
            signer=m.get("signer", ""),
            key=_hex(m.get("sig_key", "")),
            open="GPL" in m.get("license", ""),
        )
        for m in found
    ]

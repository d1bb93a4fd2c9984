"""Checks of the next boot: does its kernel have an nvidia module of the right version that Secure Boot accepts?

A faulty update of the kernel or the driver shows only after a reboot. These checks find it before that.
Sources: dkms(8), modinfo(8), kernel_lockdown(7), update-initramfs(8), the driver's README ("Known Issues", nouveau).
"""

from __future__ import annotations

from gpuready.components.driver import next_boot, packages
from gpuready.core import need
from gpuready.core.check import Check, Level, Verdict, fail, has_gpu, passed, skip, unknown, warn
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState


def _no_module_expected(state: NodeState) -> Verdict | None:
    """Return a verdict if the node should have no module of its own, or if its modules are unknown."""
    if state.boots.modules_unknown:
        return unknown(state.boots.modules_unknown)
    if "operator_driver" in state.marks:
        return skip("the GPU Operator's driver container provides the module")
    if state.boots.modules or state.boots.dkms:
        return None
    if state.driver.loaded:
        return skip("the loaded module is not below /lib/modules: the platform provides it")
    return skip("no nvidia module on this node")


def _next(spec: NodeSpec, state: NodeState) -> Verdict:
    if verdict := _no_module_expected(state):
        return verdict
    kernels, sure = next_boot.kernels(state)
    if not kernels:
        return skip("no kernel to check: /boot has none, and the running kernel has no modules here")
    without = [kernel for kernel in kernels if state.boots.module(kernel) is None]
    if without:
        failed = "; ".join(state.boots.dkms_failed)
        said = f"{', '.join(without[:3])} {'have' if len(without) > 1 else 'has'} no nvidia module"
        fix = f"apt-get install linux-headers-{without[0]} (or kernel-devel), then dkms autoinstall -k {without[0]}"
        if sure:
            return fail(f"the next boot fails to load the driver: {said}", fix, failed)
        return warn(f"{said}, but the node may boot an entry other than the first", fix, failed)
    found = {kernel: module for kernel in kernels if (module := state.boots.module(kernel))}
    libraries = {packages.version(p) for p in packages.members(need.value(state.packages)).values()} - {""}
    wrong = {k: m.version for k, m in found.items() if libraries and m.version not in libraries}
    if wrong:
        said = ", ".join(f"{version} for {kernel}" for kernel, version in wrong.items())
        return fail(
            f"the next boot loads module {said}, but the packages are {', '.join(sorted(libraries))}",
            "rebuild it: dkms status, then dkms autoinstall; or install the matching linux-modules-nvidia package",
        )
    return passed(", ".join(f"{kernel} has nvidia {module.version}" for kernel, module in found.items()))


def _nouveau(spec: NodeSpec, state: NodeState) -> Verdict:
    away = next_boot.nouveau_kept_away(state)
    if state.boots.nouveau_bound:
        devices = ", ".join(state.boots.nouveau_bound)
        if away:
            return fail(f"nouveau holds {devices}; it is blacklisted by {away}", "rebuild the initramfs, then reboot")
        return fail(f"nouveau holds {devices}")
    if not has_gpu(state):
        return skip("no GPU on this node, so nouveau does not matter")
    if not state.boots.modules:
        why = _no_module_expected(state)
        return skip(f"nouveau holds no GPU; {why.summary if why else 'no nvidia module is built yet'}")
    kernels, _ = next_boot.kernels(state)
    if away or not set(kernels) & set(state.boots.nouveau_for):
        return passed(f"nouveau is blacklisted by {away}" if away else "the next kernel has no nouveau")
    return warn("nothing keeps nouveau from taking the GPUs at the next boot")


def _secure_boot(spec: NodeSpec, state: NodeState) -> Verdict:
    boots = state.boots
    if not boots.signed_only:
        return skip("Secure Boot is off" if boots.secure_boot is not None else "no Secure Boot on this node")
    if verdict := _no_module_expected(state):
        return verdict
    found = [module for kernel in next_boot.kernels(state)[0] if (module := boots.module(kernel))]
    if unsigned := [module.kernel for module in found if not module.signer]:
        return fail(f"Secure Boot is on, and the nvidia module of {', '.join(unsigned)} is not signed")
    running = boots.module(state.kernel)
    trusted = running.signer if running and state.driver.loaded else ""
    if other := [module for module in found if trusted and module.signer != trusted]:
        return warn(
            f"the module for {other[0].kernel} is signed by {other[0].signer}, the loaded one by {trusted}",
            "check that mokutil --list-enrolled lists that key",
        )
    return passed(f"signed by {', '.join(sorted({module.signer for module in found}))}" if found else "no module yet")


def _initramfs(spec: NodeSpec, state: NodeState) -> Verdict:
    kernels, _ = next_boot.kernels(state)
    old = [
        image for image in state.boots.older_initramfs if any(image.endswith((f"-{k}", f"-{k}.img")) for k in kernels)
    ]
    if not old:
        return skip("no initramfs of the next kernel is older than its nvidia module")
    if "initramfs" not in state.active:
        return skip("only verify reads the images")
    answer = need.answer(state, "initramfs")
    if answer.rc:
        return unknown(f"the images cannot be read: {(answer.out.strip().splitlines() or ['no message'])[-1]}")
    carry = [image for image in old if f"{image}\n" in answer.out]
    if carry:
        return fail(f"{', '.join(carry)} contains an older nvidia module than the one on disk")
    return passed(f"no nvidia module in {', '.join(old)}")


CHECKS = (
    Check(
        "driver.nextboot",
        Level.config,
        "A new kernel or driver is installed, but the module for the next kernel is missing or has another version: "
        "DKMS had no headers, a build failed, or a package was not updated. The node works until the reboot.",
        "dkms status; for k in /lib/modules/*; do modinfo -k ${k##*/} -F version nvidia; done",
        "install the headers of that kernel, then dkms autoinstall -k KERNEL; or its linux-modules-nvidia package",
        _next,
    ),
    Check(
        "driver.nouveau",
        Level.config,
        "The kernel's own driver for NVIDIA GPUs takes the devices first: nvidia-smi finds none, and no CUDA runs.",
        "lspci -k -d 10de: | grep 'driver in use'; grep -rs nouveau /etc/modprobe.d /usr/lib/modprobe.d /proc/cmdline",
        "echo 'blacklist nouveau' >/etc/modprobe.d/blacklist-nouveau.conf, rebuild the initramfs, reboot",
        _nouveau,
    ),
    Check(
        "driver.secureboot",
        Level.config,
        "With Secure Boot, the kernel loads only signed modules ('Key was rejected by service'). A module that DKMS "
        "built needs the signature of a key that was enrolled at the machine's console.",
        "mokutil --sb-state; modinfo -F signer nvidia; mokutil --list-enrolled",
        "install signed modules (Ubuntu: linux-modules-nvidia-*), or have DKMS sign them and enrol its key: mokutil "
        "--import, and confirm it at the console in the next boot; or turn Secure Boot off",
        _secure_boot,
    ),
    Check(
        "driver.initramfs",
        Level.config,
        "The initramfs contains an nvidia module from before the update, which loads before the one on disk.",
        "lsinitramfs IMAGE | grep nvidia (or lsinitrd)",
        "update-initramfs -u -k KERNEL, or dracut -f IMAGE KERNEL",
        _initramfs,
        active=True,
        after=("driver.nextboot",),
    ),
)

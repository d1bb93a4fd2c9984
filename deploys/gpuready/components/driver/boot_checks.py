"""What the next boot makes of the driver: a module for its kernel, of the libraries' version, that Secure Boot takes.

An update of the kernel or the driver is harmless until the reboot that somebody else orders; these checks tell before.
Sources: dkms(8), modinfo(8), kernel_lockdown(7), update-initramfs(8), the driver's README ("Known Issues", nouveau).
"""

from __future__ import annotations

from gpuready.components.driver import next_boot, packages
from gpuready.core.check import Check, Level, Verdict, fail, has_gpu, passed, skip, unknown, unread, warn
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Unknown


def _concerned(state: NodeState) -> Verdict | None:
    """A verdict where no module of this node's own is to be expected: none of its concern, or not to be told."""
    if state.boots.modules_unknown:
        return unknown(state.boots.modules_unknown)
    if {"operator_driver"} & set(state.marks):
        return skip("the GPU Operator's driver container brings the module")
    if state.boots.modules or state.boots.dkms:
        return None
    if state.driver.loaded:
        return skip("the module that runs is not below /lib/modules: the platform brings it")
    return skip("no nvidia module on this node")


def _next(spec: NodeSpec, state: NodeState) -> Verdict:
    """The next kernel's module is there, and of the packages' version."""
    if verdict := _concerned(state):
        return verdict
    kernels, sure = next_boot.kernels(state)
    if not kernels:
        return skip("no kernel to judge: /boot has none, and the running kernel has no modules here")
    without = [kernel for kernel in kernels if state.boots.module(kernel) is None]
    if without:
        failed = "; ".join(state.boots.dkms_failed)
        said = f"{', '.join(without[:3])} {'have' if len(without) > 1 else 'has'} no nvidia module"
        fix = f"apt-get install linux-headers-{without[0]} (or kernel-devel), then dkms autoinstall -k {without[0]}"
        if sure:
            return fail(f"the kernel that boots next, {said}", fix, failed)
        return warn(f"{said}, and the node may boot another entry than the first", fix, failed)
    found = {kernel: module for kernel in kernels if (module := state.boots.module(kernel))}
    if isinstance(state.packages, Unknown):
        return unread(state.packages)
    libraries = {packages.version(p) for p in packages.members(state.packages).values()} - {""}
    wrong = {k: m.version for k, m in found.items() if libraries and m.version not in libraries}
    if wrong:
        said = ", ".join(f"{version} for {kernel}" for kernel, version in wrong.items())
        return fail(
            f"the next boot loads the module {said}, the packages are {', '.join(sorted(libraries))}",
            "build it anew: dkms status, then dkms autoinstall; or install the matching linux-modules-nvidia package",
        )
    return passed(", ".join(f"{kernel} has nvidia {module.version}" for kernel, module in found.items()))


def _nouveau(spec: NodeSpec, state: NodeState) -> Verdict:
    """nouveau holds no GPU, and will hold none."""
    away = next_boot.nouveau_kept_away(state)
    if state.boots.nouveau_bound:
        devices = ", ".join(state.boots.nouveau_bound)
        if away:
            return fail(f"nouveau holds {devices}; it is blacklisted by {away}", "rebuild the initramfs, then reboot")
        return fail(f"nouveau holds {devices}")
    if not has_gpu(state) or not state.boots.modules:
        return skip("no GPU or no nvidia module, so nouveau does not matter")
    kernels, _ = next_boot.kernels(state)
    if away or not set(kernels) & set(state.boots.nouveau_for):
        return passed(f"nouveau is blacklisted by {away}" if away else "the next kernel has no nouveau")
    return warn("nothing keeps nouveau from taking the GPUs at the next boot")


def _secure_boot(spec: NodeSpec, state: NodeState) -> Verdict:
    """Will the kernel take the next module?"""
    boots = state.boots
    enforced = (boots.secure_boot and not boots.shim_insecure) or boots.lockdown in ("integrity", "confidentiality")
    if not enforced and not boots.sig_enforce:
        return skip("Secure Boot is off" if boots.secure_boot is not None else "no Secure Boot on this node")
    if verdict := _concerned(state):
        return verdict
    found = [module for kernel in next_boot.kernels(state)[0] if (module := boots.module(kernel))]
    if unsigned := [module.kernel for module in found if not module.signer]:
        return fail(f"Secure Boot is on, and the nvidia module of {', '.join(unsigned)} is not signed")
    running = boots.module(state.kernel)
    trusted = running.signer if running and state.driver.loaded else ""
    if other := [module for module in found if trusted and module.signer != trusted]:
        return warn(
            f"the module of {other[0].kernel} is signed by {other[0].signer}, the one that runs by {trusted}",
            "mokutil --list-enrolled: is that key among them?",
        )
    return passed(f"signed by {', '.join(sorted({module.signer for module in found}))}" if found else "no module yet")


def _initramfs(spec: NodeSpec, state: NodeState) -> Verdict:
    """An image that carries the module of before loads it before anything else can."""
    kernels, _ = next_boot.kernels(state)
    old = [
        image for image in state.boots.older_initramfs if any(image.endswith((f"-{k}", f"-{k}.img")) for k in kernels)
    ]
    if not old:
        return skip("no initramfs of the next kernel is older than its nvidia module")
    answer = state.active.get("initramfs")
    if answer is None:
        return skip("only verify looks into the images")
    if answer["rc"]:
        return unknown(
            f"the images cannot be looked into: {(answer['out'].strip().splitlines() or ['no message'])[-1]}"
        )
    carry = [image for image in old if f"{image}\n" in answer["out"]]
    if carry:
        return fail(f"{', '.join(carry)} holds an nvidia module from before the one on disk")
    return passed(f"no nvidia module in {', '.join(old)}")


CHECKS = (
    Check(
        "driver.nextboot",
        Level.config,
        "A new kernel or driver is installed, and the module for the kernel that boots next is missing or of another "
        "version: DKMS had no headers, a build failed, or a package was left behind. All is well until the reboot.",
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
        "With Secure Boot the kernel loads signed modules only; one that DKMS built has to be signed by a key that was "
        "enrolled at the machine's console ('Key was rejected by service').",
        "mokutil --sb-state; modinfo -F signer nvidia; mokutil --list-enrolled",
        "install signed modules (Ubuntu: linux-modules-nvidia-*), or have DKMS sign them and enrol its key: mokutil "
        "--import, and confirm it at the console in the next boot; or switch Secure Boot off",
        _secure_boot,
    ),
    Check(
        "driver.initramfs",
        Level.config,
        "The initramfs carries an nvidia module from before the update, which is loaded before the one on disk can be.",
        "lsinitramfs IMAGE | grep nvidia (or lsinitrd)",
        "update-initramfs -u -k KERNEL, or dracut -f IMAGE KERNEL",
        _initramfs,
        active=True,
        after=("driver.nextboot",),
    ),
)

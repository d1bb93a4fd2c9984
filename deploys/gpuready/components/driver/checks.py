"""Checks of the driver: its packages, the loaded module with its libraries and GPUs, and the next boot.

A faulty update of the kernel or the driver shows only after a reboot. The checks of the next boot find it before that.
Sources: dpkg's Maintainer and rpm's Vendor, nvidia-installer's README, unattended-upgrade(8); /proc/driver/nvidia (the
driver's README, "proc interface", "Known Issues"), nvidia-smi -q -x, modinfo(8); dkms(8), kernel_lockdown(7),
update-initramfs(8); cuda/data/branches.yaml for security fixes.
"""

import re

from gpuready.base.versions import driver, leading
from gpuready.base.words import count
from gpuready.components.driver import next_boot, packages, recipes
from gpuready.components.ldso.state import SONAMES, is_old_link, library_version, newest_versions
from gpuready.contract import need
from gpuready.contract.check import (
    Check,
    EndCheck,
    Level,
    Verdict,
    fail,
    gpu_count,
    has_gpu,
    passed,
    skip,
    unknown,
    warn,
)
from gpuready.contract.package_manager import manager
from gpuready.contract.question import Question
from gpuready.cuda import tables
from gpuready.gpu import bus
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Package, Unknown

_RUNFILE = "NVIDIA's .run installer"


def _owner(spec: NodeSpec, state: NodeState) -> Verdict:
    if state.have:
        need.value(state.packages)
    found = packages.owners(state)
    said = "; ".join(f"{owner.name} ({owner.evidence})" for owner in found)
    if len(found) > 1:
        return fail(f"{len(found)} drivers on one node: {said}", _way_out([owner.name for owner in found]))
    if found:
        return passed(f"the driver came from {found[0].name}", said)
    runs = state.driver.loaded
    return skip("the source of the running driver is unknown" if runs else "no driver")


def _way_out(names: list[str]) -> str:
    if _RUNFILE in names:
        return "keep one: remove the installer's driver with nvidia-uninstall --silent, then reinstall the packages"
    if len(names) == 2 and all(name.startswith("packages") for name in names):
        return "keep one: purge the packages of the other, and use only one repository for them"
    return "keep one: purge the packages (apt-get purge, dnf remove), or unmount what covers them"


def _members(state: NodeState) -> dict[str, Package]:
    """Return the driver's packages. If there are none, the check is skipped."""
    if isinstance(state.packages, Unknown) and not state.have:
        raise EndCheck(skip("no packages on this node"))
    if not (found := packages.members(need.value(state.packages))):
        raise EndCheck(skip("no packages of the driver"))
    return found


def _set(spec: NodeSpec, state: NodeState) -> Verdict:
    members = _members(state)
    versions: dict[str, list[str]] = {}
    for name, package in members.items():
        versions.setdefault(packages.version(package), []).append(name)
    broken = [name for name, package in members.items() if not package.configured]
    if broken:
        return fail(f"half-configured: {', '.join(broken[:6])}", "dpkg --configure -a, then apt-get -f install")
    if len(versions) > 1:
        fewest = sorted(versions.items(), key=lambda item: len(item[1]))
        said = "; ".join(f"{version}: {', '.join(names[:6])}" for version, names in fewest)
        return fail(f"the driver's packages have {len(versions)} versions", evidence=said)
    (version,) = versions
    return passed(f"{count(len(members), 'package')} at {version}")


def _held(spec: NodeSpec, state: NodeState) -> Verdict:
    members = _members(state)
    held = manager(state).held
    loose = [name for name, package in members.items() if not held(packages.plain(name), package, state)]
    if not loose:
        return passed(f"all {len(members)} packages of the driver are held")
    pin, versions = packages.pinning(state), packages.versions(members)
    if versions == [pin]:
        return passed(f"{packages.PINNING}{pin} keeps apt from other versions")
    said = f"{', '.join(loose[:6])}{' and more' if len(loose) > 6 else ''} {'are' if len(loose) > 1 else 'is'} not held"
    if pin:
        said += f"; {packages.PINNING}{pin} is installed, which does not keep {', '.join(versions)}"
    if spec.driver.policy != "observe":
        return fail(said)
    if pin and not all(packages.pins(pin, version) for version in versions):
        return warn(f"apt upgrade replaces the driver: {said}", _ONE_VERSION)
    if "unattended-upgrades" in state.packages:
        return warn(f"unattended-upgrades may change the driver while its module is loaded: {said}")
    return skip("driver.policy: observe")


_ONE_VERSION = f"install {packages.PINNING}VERSION of the driver that is there, or set driver: {{policy: hold}}"


def _loaded(spec: NodeSpec, state: NodeState) -> Verdict:
    version = state.driver.loaded
    if version:
        return passed(f"the nvidia module {version} is loaded", f"owner: {state.driver.owner or 'not known'}")
    if has_gpu(state):
        seen = ", ".join(line.split()[0] for line in state.driver.pci) or "in /proc"
        return fail("a GPU is on the bus, but no nvidia module is loaded", evidence=f"PCI: {seen}")
    if built := state.boots.module(state.kernel):
        return skip(f"no NVIDIA GPU on the PCI bus, so module {built.version} for {state.kernel} is not loaded")
    return skip("no NVIDIA GPU on this node")


def _floor(spec: NodeSpec, state: NodeState) -> Verdict:
    loaded = need.driver(state)
    if not (release := leading(loaded, 4)):
        return unknown(f"{loaded!r} is not a version of a driver")
    branch, floors = release[0], tables.security_floors()
    until = _supported(tables.supported_until()) if tables.ended(branch) else ""
    if branch > max(floors):
        return skip(f"no security bulletin for branch {branch} was known on {tables.dated('branches')[0]}")
    floor = floors.get(branch)
    if floor is not None and release < floor:
        last = f", but branch {branch} gets no security updates any more" if until else ""
        return warn(f"{loaded} has known security faults; {driver(floor)} fixes them{last}", until)
    if until:
        return warn(f"branch {branch} gets no security updates any more", until)
    return passed(f"{loaded} has all fixes that were known on {tables.dated('branches')[0]}")


def _supported(until: dict[int, tables.Until]) -> str:
    return "update to a supported branch: " + ", ".join(f"{branch} (until {month})" for branch, month in until.items())


def _match(spec: NodeSpec, state: NodeState) -> Verdict:
    loaded = need.driver(state)
    linker = need.value(state.linker)
    newest = newest_versions(linker)
    wrong = [
        f"{soname} -> {path} is {version}"
        for soname in SONAMES
        for path in linker.cache.get(soname, ())[:1]
        if (version := library_version(linker.libs.get(path, path)))
        and version != loaded
        and not is_old_link(linker, newest, path, loaded)  # libcuda.ldcache: no reload, but ldconfig
    ]
    if wrong:
        return fail(f"the module is {loaded}, but libraries have another version", evidence="; ".join(wrong))
    on_disk = state.driver.on_disk_version
    if on_disk and on_disk != loaded:
        return warn(
            f"the next boot loads {on_disk}, but {loaded} is loaded now: an update needs a reload or a reboot",
            "drain the node, then reboot it",
        )
    return passed(f"module and libraries are {loaded}")


def _nodes(spec: NodeSpec, state: NodeState) -> Verdict:
    need.driver(state)
    missing = [node for node in ("/dev/nvidiactl", "/dev/nvidia-uvm") if node not in state.driver.nodes]
    numbered = len(state.driver.gpu_nodes)
    if numbered < len(state.driver.gpus):
        missing.append(f"{len(state.driver.gpus) - numbered} of /dev/nvidia0 to {len(state.driver.gpus) - 1}")
    missing += [f"{node} (its major number is not the module's)" for node in state.leftovers.misnumbered]
    if missing:
        return warn(
            f"missing: {', '.join(missing)}",
            "gpuready apply; or nvidia-modprobe -c with each GPU's number, and nvidia-modprobe -u -c 0",
        )
    return passed(f"device nodes of {gpu_count(numbered)}, nvidiactl and nvidia-uvm")


def _count(spec: NodeSpec, state: NodeState) -> Verdict:
    want, smi = spec.hardware.expected_gpus, need.value(state.driver.smi)
    listed = re.findall(r'<gpu id="([^"]{0,32})', smi) if smi else bus.driven(state)
    seen, others = len(listed), bus.unlisted(state, listed) if state.driver.loaded else ()
    left_out = "; ".join(map(str, others))
    lost = [each.address for each in others if each.lost]
    gone = f", not {', '.join(lost)}" if lost else ""
    if want is None:
        if lost:
            return fail(
                f"the driver lists {seen} of {gpu_count(seen + len(lost))} on the PCI bus{gone}", evidence=left_out
            )
        if seen:
            remedy = f"set hardware: {{gpus: {seen}}}"
            return warn(f"{gpu_count(seen)} seen, but the spec does not say how many to expect", remedy, left_out)
        more = f" ({left_out})" if left_out else ""
        remedy = "set hardware: {gpus: none}, or how many there are"
        return unknown(f"no GPU found; a GPU that fell off the bus is not listed{more}", remedy)
    if seen != want:
        more = f"set hardware: {{gpus: {seen}}}" if seen > want else ""
        none = "" if seen or has_gpu(state) else ", none is on the PCI bus"
        if none and not state.driver.loaded:
            more = "look at the type of this machine, and whether its GPUs are attached"
        seen_are = ", ".join(listed[:16])
        return fail(
            f"{seen} of {gpu_count(want)} seen{gone}{none}", more, "; ".join(filter(None, (seen_are, left_out)))
        )
    return passed(f"{gpu_count(seen)} seen", left_out)


def _model(spec: NodeSpec, state: NodeState) -> Verdict:
    want = spec.hardware.model
    if want is None:
        return skip("hardware.model is not set")
    seen = re.findall(r"<product_name>([^<]*)</product_name>", need.value(state.driver.smi) or "")
    if not seen:
        return Verdict("unknown", "nvidia-smi lists no GPU", remedy="see gpu.count", because="gpu.count")
    wrong = sorted({name for name in seen if want.lower() not in name.lower()})
    if wrong:
        return fail(f"expected {want}, found {', '.join(wrong)}")
    return passed(f"{want}: {seen[0]}")


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
        logs = zip(state.boots.dkms_failed[::2], state.boots.dkms_failed[1::2], strict=False)
        failed = "; ".join(error for first, error in logs if f" for kernel {without[0]} " in first)
        said = f"{', '.join(without[:3])} {'have' if len(without) > 1 else 'has'} no nvidia module"
        build = f"dkms autoinstall -k {without[0]}"
        fix = f"apt-get install linux-headers-{without[0]} (or kernel-devel), then {build}"
        if kmod := recipes.for_kernel(packages.members(state.installed), without[0]):
            fix = f"dnf install {kmod}; if no repository has it, boot a kernel that has a module (grubby --set-default)"
        if failed:
            fix = f"mend that, then {build}; if this driver does not fit that kernel, install another one of the two"
        if sure:
            return fail(f"the next boot fails to load the driver: {said}", fix, failed)
        return warn(f"{said}, but the node may boot an entry other than the first", fix, failed)
    found = {kernel: module for kernel in kernels if (module := state.boots.module(kernel))}
    libraries = packages.versions(packages.members(need.value(state.packages)))
    wrong = {k: m.version for k, m in found.items() if libraries and m.version not in libraries}
    if wrong:
        said = ", ".join(f"{version} for {kernel}" for kernel, version in wrong.items())
        return fail(
            f"the next boot loads module {said}, but the packages are {', '.join(libraries)}",
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
    accepted = boots.module(state.kernel) if state.driver.loaded else None
    mine = [m.kernel for m in found if boots.signed_by_dkms(m) and (accepted is None or m.key != accepted.key)]
    if mine and boots.mok_state != "enrolled":
        said = f"Secure Boot refuses the nvidia module of {', '.join(mine)}: DKMS's key, which signed it, is"
        if boots.mok_state == "queued":
            return fail(f"{said} queued for enrolment, which a person completes at the console", next_boot.ENROL)
        return fail(f"{said} not enrolled", evidence=boots.mok)
    trusted = accepted.signer if accepted else ""
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


class AskInitramfs(Question, template="driver/ask-initramfs"):
    """Look for nvidia modules in images of the initramfs."""

    initramfs: tuple[str, ...]


def questions(spec: NodeSpec, state: NodeState) -> tuple[Question, ...]:
    images = state.boots.older_initramfs
    return (AskInitramfs({"initramfs": 60}, images),) if images else ()


CHECKS = (
    Check(
        "driver.owner",
        "only one driver is installed",
        Level.config,
        "Two drivers on one node (packages and the .run installer, the distribution's packages and NVIDIA's, packages "
        "and a mounted driver) overwrite each other's files, and each update breaks the other's libraries.",
        "dpkg -S $(readlink -f /usr/bin/nvidia-smi); command -v nvidia-uninstall; findmnt | grep nvidia",
        "keep one driver, and uninstall the other with its own tool",
        _owner,
    ),
    Check(
        "driver.packages",
        "all packages of the driver have one version",
        Level.config,
        "The driver's packages have different versions, so libraries, tools and module do not match: an update was "
        "interrupted, some packages were held, or two repositories were used.",
        "dpkg -l '*nvidia*' 'libcuda*' | grep ^.i; dpkg --audit",
        "install all of them at one full version in one transaction: apt-get install PACKAGE=VERSION ...",
        _set,
    ),
    Check(
        "driver.held",
        "no automatic update replaces the driver",
        Level.config,
        "An unattended upgrade replaces the driver's libraries while the old module stays loaded. Then NVML fails with "
        "'Driver/library version mismatch', and no new container gets a GPU until a reboot.",
        "apt-mark showhold; unattended-upgrade --dry-run --debug; dnf versionlock list; apt-cache policy nvidia-open",
        "driver: {policy: hold} in the spec, then apply",
        _held,
        component="driver",
    ),
    Check(
        "driver.loaded",
        "the kernel module nvidia is loaded",
        Level.effective,
        "The GPU is on the PCI bus, but the kernel module is not loaded: not built for this kernel, refused by Secure "
        "Boot, or nouveau holds the device.",
        "cat /proc/driver/nvidia/version; dmesg | grep -iE 'nvrm|nouveau|lockdown'",
        "run modprobe nvidia and read dmesg; build the module for this kernel (dkms status)",
        _loaded,
        gpu=True,
    ),
    Check(
        "driver.match",
        "module and libraries have one version",
        Level.effective,
        "The libraries have another version than the loaded module: an update without a reboot, or two drivers on one "
        "node. NVML fails with 'Driver/library version mismatch', CUDA with 803 or 804.",
        "cat /proc/driver/nvidia/version; ldconfig -p | grep -E 'libcuda|libnvidia-ml'; modinfo -F version nvidia",
        "drain the node and reboot it (or reload the modules); remove leftovers of another driver and run ldconfig",
        _match,
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "driver.floor",
        "the driver has all known security fixes",
        Level.effective,
        "Older drivers let a local user, also one in a container, become root on the node or read other users' memory. "
        "NVIDIA fixes this in new releases of the supported branches only.",
        "cat /proc/driver/nvidia/version",
        "update the driver within its branch: driver: {policy: install, version: ...} in the spec, then apply",
        _floor,
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "driver.nodes",
        "the device nodes exist",
        Level.effective,
        "The device nodes do not exist yet. A program that runs as root creates them. A program in a container cannot, "
        "and CUDA fails there with error 100 or 999.",
        "ls -l /dev/nvidia*; grep nvidia /proc/devices",
        "gpuready apply; by hand: nvidia-modprobe -c 0 (each GPU's number), then nvidia-modprobe -u -c 0",
        _nodes,
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "gpu.count",
        "all GPUs are there",
        Level.effective,
        "A GPU that fell off the bus, or that the driver could not start, is not listed. If it is gone from the PCI "
        "bus, too, only the number in the spec shows that it is missing.",
        "nvidia-smi -L; ls /proc/driver/nvidia/gpus; lspci -k -d 10de:",
        "look for XID 79 and NVRM in dmesg; power-cycle the node; if the GPU does not come back, replace it",
        _count,
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "gpu.model",
        "the GPUs are of the expected model",
        Level.effective,
        "The node has another GPU than the spec says: a wrong machine type, or an outdated inventory.",
        "nvidia-smi -L",
        "use the right machine type, or correct hardware.model in the spec",
        _model,
        gpu=True,
        after=("driver.loaded",),
    ),
    Check(
        "driver.nextboot",
        "the kernel of the next boot has an nvidia module",
        Level.config,
        "A new kernel or driver is installed, but the module for the next kernel is missing or has another version: "
        "DKMS had no headers, a build failed, there is no precompiled module for it, or a package was not updated. The "
        "node works until the reboot.",
        "dkms status; for k in /lib/modules/*; do modinfo -k ${k##*/} -F version nvidia; done",
        "install the headers of that kernel, then dkms autoinstall -k KERNEL; or its precompiled module "
        "(linux-modules-nvidia-*, kmod-nvidia-*)",
        _next,
    ),
    Check(
        "driver.nouveau",
        "nouveau does not hold the GPUs",
        Level.config,
        "The kernel's own driver for NVIDIA GPUs takes the devices first: nvidia-smi finds none, and no CUDA runs.",
        "lspci -k -d 10de: | grep 'driver in use'; grep -rs nouveau /etc/modprobe.d /usr/lib/modprobe.d /proc/cmdline",
        "echo 'blacklist nouveau' >/etc/modprobe.d/blacklist-nouveau.conf, rebuild the initramfs, reboot",
        _nouveau,
    ),
    Check(
        "driver.secureboot",
        "Secure Boot accepts the module",
        Level.config,
        "With Secure Boot, the kernel loads only signed modules ('Key was rejected by service'). A module that DKMS "
        "built needs the signature of a key that was enrolled at the machine's console.",
        "mokutil --sb-state; modinfo -F signer nvidia; mokutil --list-enrolled",
        "install signed modules (Ubuntu: linux-modules-nvidia-*; RHEL: kmod-nvidia-open-*); or driver: {sign: mok}: "
        "then DKMS signs them and you enrol its key at the console in the next boot; or turn Secure Boot off",
        _secure_boot,
    ),
    Check(
        "driver.initramfs",
        "the initramfs has no old nvidia module",
        Level.config,
        "The initramfs contains an nvidia module from before the update, which loads before the one on disk.",
        "lsinitramfs IMAGE | grep nvidia (or lsinitrd)",
        "update-initramfs -u -k KERNEL, or dracut -f IMAGE KERNEL",
        _initramfs,
        active=True,
        after=("driver.nextboot",),
    ),
)

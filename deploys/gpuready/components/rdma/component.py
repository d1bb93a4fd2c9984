"""RDMA: which network namespaces see a device (ib_core's netns_mode), and the user space packages.

In shared mode, the kernel's default, every container sees every device, but counters only appear on the host. In
exclusive mode, each device belongs to one network namespace; rdma-cni and dranet need that. The mode is an option of
ib_core. Many things load ib_core: rdma-core's udev rules, mlx5_ib in the initramfs, even ``rdma system show``. So
gpuready writes the option before any command could load ib_core, and rebuilds initramfs images that contain it. The
kernel changes the running mode only while no network namespace but the host's exists (else EBUSY). So a node with
containers needs a reboot. The configured and the running mode are separate keys; without ib_core there is no running
mode.
Sources: ib_core's device.c (rdma_compatdev_set), rdma-system(8), modprobe.d(5), initramfs-tools(7), dracut(8),
grubby(8), Debian's grub-mkconfig; READMEs of rdma-cni and of k8s-rdma-shared-dev-plugin, google/dranet.
"""

from gpuready.base import resources
from gpuready.base.facts import KEPT
from gpuready.base.step import Script, Step, Steps
from gpuready.components.docker.state import all_containers
from gpuready.components.rdma.conf import MODES, OPERATOR, by_files, by_next_boot, by_options, conflicts
from gpuready.components.rdma.state import CONF, DRACUT, GRUB, MARK
from gpuready.contract import ignored_containers, ledger
from gpuready.contract.component import Applies, Change, Disruption, NotComparable, Value, Values
from gpuready.contract.package_manager import manager, refuse_to_install
from gpuready.contract.removal import WholeFiles
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown

FILES = (CONF, GRUB, DRACUT)
#: Records: gpuready set the mode; the option before grubby changed it; the packages that gpuready installed.
OURS = "/var/lib/gpuready/rdma.mode"
GRUBBY = "/var/lib/gpuready/rdma.grubby"
CAME = f"{KEPT}/rdma.installed"
_STALE, _FRESH = "older than the option", "current"
_INSTALLED = "installed"
_RUNNING, _PACKAGE = "rdma.running", "rdma.package."


class Rdma(WholeFiles):
    """ib_core's netns_mode, configured and running, and the user space packages."""

    name = "rdma"
    needs_boot = True

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if managed(spec, state):
            return Applies(True, f"rdma.netns_mode: {spec.rdma.netns_mode}")
        if spec.rdma.packages:
            return Applies(True, "rdma.packages")
        if spec.rdma.netns_mode != "unmanaged":
            return Applies(False, f"the SR-IOV network operator owns netns_mode here ({OPERATOR}): observed only")
        return Applies(False, "rdma.netns_mode is unmanaged, and no packages are named")

    def installs(self, spec: NodeSpec) -> str:
        return "RDMA" if spec.rdma.packages else ""

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        want: dict[str, Value] = {}
        if mode := managed(spec, state):
            _refuse(mode, state)
            if "ib_core_builtin" not in state.marks:
                want["rdma.configured"] = mode
                if CONF in state.files or by_files(state) != mode:
                    want |= {f"rdma.initramfs.{image}": _FRESH for image in state.initramfs}
                    want |= {"rdma.dracut": CONF} if _dracut(state) else {}
            if _by_command_line(mode, state):
                want["rdma.cmdline"] = mode
            if state.ib_netns_mode:
                want[_RUNNING] = mode
        if spec.rdma.packages and not isinstance(state.packages, Unknown):
            refuse_to_install(state, "rdma.packages")
        return want | {f"{_PACKAGE}{name}": _INSTALLED for name in spec.rdma.packages}

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        mode = managed(spec, state)
        changes = bool(mode) and (by_files(state) != mode or (_dracut(state) and DRACUT not in state.files))
        found: dict[str, Value] = {
            "rdma.configured": by_files(state),
            "rdma.dracut": CONF if DRACUT in state.files else None,
            "rdma.cmdline": by_next_boot(state) or None,
            _RUNNING: running(state),
            **ledger.actual("rdma", state, FILES),
        }
        for image in state.initramfs:
            found[f"rdma.initramfs.{image}"] = _STALE if changes or image in state.initramfs_old else _FRESH
        if GRUBBY in state.files:
            found["rdma.grubby"] = state.files[GRUBBY].text.strip()
        for name in {*spec.rdma.packages, *_came(state)}:
            found[f"{_PACKAGE}{name}"] = _package(name, state)
        return found

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        found = dict(super().original(spec, state))
        if GRUBBY in state.files:
            found["rdma.grubby"] = None
        if OURS in state.files and state.ib_netns_mode:
            found[_RUNNING] = _before(state)
        return found | {f"{_PACKAGE}{name}": None for name in _came(state)}

    def touched(self, state: NodeState) -> tuple[str, ...]:
        return FILES

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        if any(c.key == _RUNNING for c in diff) and _cannot_switch(state):
            return Disruption.reboot
        return Disruption.recreate if _packages(diff) else Disruption.none  # their scripts reload systemd

    def stage(self, change: Change) -> int:
        return 2 if change.key == _RUNNING else int(change.key.startswith(_PACKAGE))

    def affected(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        return (
            all_containers(state.docker)
            if self.disruption(diff, state) == Disruption.reboot
            else super().affected(diff, state)
        )

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        said = []
        if self.disruption(diff, state) == Disruption.reboot:
            said.append(f"the running mode changes only with a reboot: {_cannot_switch(state)}")
        elif any(c.key == "rdma.configured" for c in diff) and not state.ib_netns_mode:
            said.append("ib_core is not loaded: the mode takes effect when it is loaded")
        exclusive = any(c.key in (_RUNNING, "rdma.configured") and c.expected == "exclusive" for c in diff)
        if exclusive and not {"rdma_cni", "dranet"} & set(state.marks):
            said.append("containers will see no RDMA device until one is moved to them (gpuready explain rdma.netns)")
        return tuple(said)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        if any(c.key != _RUNNING and not c.key.startswith(_PACKAGE) for c in diff):
            yield Step("rdma", _configure(diff, spec, state), timeout=1800, summary="write ib_core's option")
        if names := _packages(diff):
            packages = SetPackages(names, ignored_containers.words(spec), manager(state).dnf)
            yield Step("rdma-packages", packages, timeout=1800, summary="install packages")
        yield from _switch(diff, state)

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        files, grubby = ledger.to_restore(diff, state), any(c.key == "rdma.grubby" for c in diff)
        if files or grubby:
            option = SetOption(
                puts=(),
                files=files,
                images=state.initramfs if files else (),
                option="",
                back=True,
                update_grub=any(file.path == GRUB for file in files),
                grubby=GRUBBY if grubby else "",
            )
            yield Step("rdma", option, timeout=1800, summary="restore ib_core's option")
        if _packages(diff):
            packages = SetPackages((), ignored_containers.words(spec), manager(state).dnf)
            yield Step("rdma-packages", packages, timeout=1800, summary="purge packages")
        yield from _switch(diff, state)


class SetOption(Script, template="rdma/converge"):
    """Write ib_core's option, or restore the original one (``back``), also for the initramfs and the command line.

    ``images``: initramfs images that may contain ib_core. ``grubby``: the path of the old option's record, if grubby
    sets the command line.
    """

    puts: tuple[ledger.Put, ...]
    files: tuple[ledger.Putback, ...]
    images: tuple[str, ...]
    option: str
    back: bool
    update_grub: bool
    grubby: str
    conf: str = CONF
    mark: str = MARK
    ours: str = OURS


class SetPackages(Script, template="rdma/packages"):
    """Install packages; if there are none, purge those that gpuready installed."""

    packages: tuple[str, ...]
    work: tuple[str, ...]
    dnf: int = 0


class SwitchMode(Script, template="rdma/mode"):
    """Switch the running mode to shared or exclusive."""

    mode: str


def managed(spec: NodeSpec, state: NodeState) -> str:
    """Return the mode that gpuready sets on this node; empty if it sets none."""
    mode = spec.rdma.netns_mode
    return "" if mode == "unmanaged" or OPERATOR in state.files else mode


def running(state: NodeState) -> str | None:
    """Return the running mode; None if ib_core is not loaded."""
    return {"Y": "shared", "N": "exclusive"}.get(state.ib_netns_mode)


def _refuse(mode: str, state: NodeState) -> None:
    """Raise NotComparable if this mode is not possible on this node."""
    if "ib_core_loaded" in state.marks and not state.ib_netns_mode:
        raise NotComparable(
            f"ib_core of kernel {state.kernel} does not support netns_mode: it needs Linux 5.3 or newer"
        )
    if mode == "exclusive":
        if "rdma_shared_plugin" in state.marks:
            raise NotComparable(
                "k8s-rdma-shared-dev-plugin runs here, but does not work in exclusive mode: it shares its devices"
            )
        if "efa" in state.marks:
            raise NotComparable("the EFA driver of this node cannot move a device to a namespace: use shared mode")
    elif "rdma_cni" in state.marks:
        raise NotComparable("rdma-cni is installed (/opt/cni/bin/rdma), and starts pods only in exclusive mode")
    others = conflicts(state, mode)
    if others and "ib_core_builtin" not in state.marks:
        told = ", ".join(f"{s.path} sets {s.mode}" for s in others)
        raise NotComparable(f"{told}, which contradicts gpuready's file: remove netns_mode there")
    can_set = bool({"update-grub", "grubby"} & set(state.have))
    if not can_set and _by_command_line(mode, state) and by_next_boot(state) != mode:
        why = "ib_core is built in" if "ib_core_builtin" in state.marks else f"it says {by_next_boot(state)} now"
        raise NotComparable(
            f"the kernel command line must contain ib_core.netns_mode={MODES[mode]} ({why}), but neither update-grub "
            "nor grubby is installed: set it in the boot loader's configuration"
        )


def _by_command_line(mode: str, state: NodeState) -> bool:
    """Tell whether the mode has to be on the command line: for a built-in ib_core, or if it already is there."""
    said = {by_options(state.cmdline), by_next_boot(state)} - {"", mode}
    return "ib_core_builtin" in state.marks or bool(said) or GRUB in state.files or GRUBBY in state.files


def _dracut(state: NodeState) -> bool:
    return bool(state.initramfs) and "dracut" in state.have and "update-initramfs" not in state.have


def _cannot_switch(state: NodeState) -> str:
    """Return why the kernel would refuse to change the mode now; empty if it may accept it."""
    if state.netns:
        more = " and more" if len(state.netns) > 4 else ""
        return f"network namespaces of {', '.join(state.netns[:4])}{more} exist (EBUSY)"
    return "" if "rdma" in state.have else "the rdma command is missing (iproute2 5.3 or newer)"


def _before(state: NodeState) -> str:
    """Return the mode without gpuready's settings."""
    files = by_files(state, without=CONF)
    said = "" if GRUB in state.files or GRUBBY in state.files else by_next_boot(state)
    return said if said in MODES else files


def _switch(diff: tuple[Change, ...], state: NodeState) -> Steps:
    """Yield the step that switches the running mode, if the kernel may accept it."""
    for mode in (str(c.expected) for c in diff if c.key == _RUNNING):
        if not _cannot_switch(state):
            yield Step("rdma-mode", SwitchMode(mode), summary=f"switch to {mode}")


def _packages(diff: tuple[Change, ...]) -> tuple[str, ...]:
    return tuple(c.key.removeprefix(_PACKAGE) for c in diff if c.key.startswith(_PACKAGE))


def _came(state: NodeState) -> tuple[str, ...]:
    """Return the requested packages that gpuready installed; their dependencies are removed with them."""
    lines = state.text(CAME).split()
    return tuple(sorted({line.removeprefix("asked:") for line in lines if line.startswith("asked:")}))


def _package(name: str, state: NodeState) -> Value:
    if isinstance(state.packages, Unknown):
        return state.packages
    package = state.packages.get(name)
    return None if package is None else _INSTALLED if package.configured else "not configured"


def _configure(diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> SetOption:
    """Return the step's script for the keys of the option: files, images and the command line."""
    keys = {c.key for c in diff}
    mode = managed(spec, state)
    word = MODES.get(mode, "")
    puts = []
    if "rdma.configured" in keys:
        puts.append(ledger.put(state, CONF, resources.document("rdma/rdma.conf", mode=mode, word=word)))
    if "rdma.dracut" in keys:
        puts.append(ledger.put(state, DRACUT, resources.document("rdma/rdma.dracut", conf=CONF)))
    grub = "rdma.cmdline" in keys and "update-grub" in state.have
    if grub:
        puts.append(ledger.put(state, GRUB, resources.document("rdma/rdma.grub", word=word)))
    return SetOption(
        puts=tuple(puts),
        files=(),
        images=state.initramfs if puts or any(k.startswith("rdma.initramfs.") for k in keys) else (),
        option=f"ib_core.netns_mode={word}",
        back=False,
        update_grub=grub,
        grubby=GRUBBY if "rdma.cmdline" in keys and not grub else "",
    )

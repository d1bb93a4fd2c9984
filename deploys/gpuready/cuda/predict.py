"""Predict which libcuda a program in an image loads on a host, and whether CUDA works with it. Pure.

The result depends on which libcuda.so.1 meets which nvidia.ko. With the driver's own libcuda: native up to its CUDA
version, minor-version compatibility above it. With a newer one from the image: forward compatibility, which the GPU
must support.
Sources: CUDA Compatibility guide; the container toolkit's and libnvidia-container's code (``data/*.yaml`` name them).
"""

from dataclasses import dataclass, replace

from gpuready.base.versions import dotted, driver, numbers
from gpuready.cuda import tables
from gpuready.cuda.facts import CompatLib, Host, Image
from gpuready.cuda.require import Properties, RequireError, satisfied

VERDICTS = ("NATIVE", "MINOR", "FORWARD", "ERROR_803", "ERROR_804", "NEEDS_DRIVER", "REFUSED", "NO_CODE")
RUNS = ("NATIVE", "MINOR", "FORWARD")


@dataclass(frozen=True)
class Prediction:
    """``verdict`` is one of :data:`VERDICTS`. ``library`` is the image's libcuda if the program loads that one.

    ``certain`` is false if the verdict depends on something unknown or undocumented; the last of ``notes``, or
    ``reason``, then says what.
    ``table``: the file in data/ that the verdict rests on, or ``note`` (the library's ELF note), or ``image`` (its own
    conditions).
    """

    verdict: str
    certain: bool
    reason: str
    library: CompatLib | None = None
    notes: tuple[str, ...] = ()
    table: str = ""

    @property
    def runs(self) -> bool:
        return self.verdict in RUNS

    @property
    def doubt(self) -> str:
        """Why it is not certain; empty: it is."""
        return "" if self.certain else [self.reason, *(note for note in self.notes if note != MINOR_LIMITS)][-1]


def predict(host: Host, image: Image) -> Prediction:
    """Predict what happens when a program in this image starts on this host."""
    lacks = tables.no_support(host.gpu.architecture, host.driver[0])
    if lacks and host.driver != host.drives:
        text = f"driver {driver(host.driver)} has {lacks}: CUDA finds no device ({host.gpu.name})"
        return Prediction("NEEDS_DRIVER", True, text, table="gpus")
    if (first := host.gpu.oldest_driver) and host.driver < first.driver and host.driver != host.drives:
        return _too_old(host, first)
    open_, why = gate(host, image)
    if open_ is False:
        return Prediction("REFUSED", True, why, table="image")
    library = chosen(host, image)
    found = _forward(host, image, library) if library else _own(host, image)
    if found.runs and image.cuda[0] > host.gpu.newest_toolkit:
        return Prediction("NO_CODE", True, _dropped(host, image), notes=found.notes, table="gpus")
    if found.runs and (text := _no_code_yet(host, image)):
        found = replace(found, notes=(*found.notes, text))
    if found.runs and host.gpu.kind == "jetson":
        text = f"{host.gpu.name} has JetPack's driver, and the tables are those of the driver for PCIe GPUs"
        found = replace(found, certain=False, notes=(*found.notes, text))
    if found.runs and _unheard_of(host):
        text = f"the tables do not know the GPU {host.gpu.name!r}: it may need a newer driver or CUDA"
        found = replace(found, certain=False, notes=(*found.notes, text))
    if library is None and (text := _left_aside(host, image)):
        found = replace(found, notes=(text, *found.notes))
    if open_ is None:
        text = f"it is unknown whether NVIDIA_REQUIRE_CUDA lets the container start: {why}"
        found = replace(found, certain=False, notes=(*found.notes, text))
    return found


def _unheard_of(host: Host) -> bool:
    """Tell whether a GPU is named that the tables do not have, and that the driver was not seen to drive."""
    gpu = host.gpu
    return bool(gpu.name) and gpu.kind == "unknown" and not gpu.architecture and host.driver != host.drives


def _too_old(host: Host, first: tables.OldestDriver) -> Prediction:
    has, name, oldest = driver(host.driver), host.gpu.name, driver(first.driver)
    text = f"driver {has} may not support {name}: {oldest} is the first that NVIDIA names for it"
    if first.sure:
        text = f"{name} needs driver {oldest} or newer, not {has}"
    return Prediction("NEEDS_DRIVER", first.sure, text, table="gpus")


def _dropped(host: Host, image: Image) -> str:
    """Say that this CUDA no longer supports the GPU. Its PTX is for later ones, so the driver cannot compile it."""
    gpu = host.gpu
    last = f"the last one that did is CUDA {gpu.newest_toolkit}"
    return f"CUDA {image.cuda[0]} does not support {gpu.architecture} ({last}): CUDA error 209 on {gpu.name}"


def _no_code_yet(host: Host, image: Image) -> str:
    """Say if this CUDA has no machine code yet for this GPU. The driver's libcuda can still compile PTX for it."""
    gpu, first = host.gpu, host.gpu.oldest_toolkit
    if image.cuda[:2] < first:
        capability = f", compute capability {gpu.capability}" if gpu.kind == "jetson" else ""
        lacks = f"CUDA {dotted(image.cuda[:2])} has no machine code for {gpu.architecture}{capability}"
        return f"{lacks} (the first is CUDA {dotted(first)}): programs without PTX get error 209"
    return ""


def gate(host: Host, image: Image) -> tuple[bool | None, str]:
    """Tell whether the container starts: True, or False and the error, or None and what is unknown."""
    if not host.gate:
        return True, ""
    arch = numbers(host.gpu.capability) if host.gpu.capability else None
    cuda = None if tables.beyond(host.driver) else tables.newest_cuda(host.driver)
    has = Properties(cuda, host.driver, arch, host.gpu.brands)
    answers = []
    for requirement in image.requires:
        try:
            answers.append(satisfied(requirement, has))
        except RequireError as e:
            return False, f"the container does not start: invalid expression in NVIDIA_REQUIRE_*: {e}"
        if answers[-1] is False:
            return False, _unsatisfied(host, requirement.split()[0], has)
    if None not in answers:
        return True, ""
    return None, _not_known(has, " ".join(r for r, one in zip(image.requires, answers, strict=True) if one is None))


def _unsatisfied(host: Host, first: str, has: Properties) -> str:
    """Say why the container does not start. Suggest a newer driver only if it could help."""
    newest = replace(has, cuda=(10**6,), driver=(10**6,))
    if satisfied(first, newest) is False:
        advice = f"; no newer driver changes that for {host.gpu.name or 'this GPU'}"
    else:
        speaks = f"driver {driver(host.driver)} supports CUDA {dotted(tables.newest_cuda(host.driver))}"
        advice = f", please update your driver; {speaks}"
    return (
        f"the container does not start: unsatisfied condition: {first}{advice}, "
        "and no other alternative in NVIDIA_REQUIRE_CUDA holds for this GPU and driver branch"
    )


def _not_known(has: Properties, requirement: str) -> str:
    """List the unknown properties of the host that an undecided requirement asks for."""
    may = f"may be {' or '.join(sorted(has.brands))}" if has.brands else "is unknown"
    asked = (
        ("brand", len(has.brands) != 1, f"the GPU's brand {may}"),
        ("arch", has.arch is None, "the GPU's compute capability is unknown"),
        ("cuda", has.cuda is None, "the CUDA version of such a new driver is unknown"),
    )
    missing = [what for word, lacks, what in asked if lacks and word in requirement.lower()]
    return ", ".join(missing)


def chosen(host: Host, image: Image) -> CompatLib | None:
    """Return the image's libcuda that replaces the driver's, or None."""
    libraries = sorted(image.compat, key=lambda one: one.version)
    if not libraries or host.stack == "disabled":
        return None
    newest, branch = libraries[-1], host.driver[0]
    if host.stack == "none":  # the loader finds it first, whatever its version
        return None if newest.version == host.driver else newest
    if host.stack == "mount":
        fit = [one for one in libraries if one.version[0] != branch and one.version > host.driver]
        return fit[-1] if fit else None
    if host.stack == "ldconfig":
        return newest if newest.version[0] > branch else None
    if len(libraries) > 1:
        return None  # the hook warns of several, and uses none
    if newest.note is not None and _reads_notes(host):
        return newest if branch in newest.note.driver and newest.version > host.driver else None
    return newest if branch < newest.version[0] else None


def _reads_notes(host: Host) -> bool:
    return host.toolkit is None or host.toolkit >= tables.since("note_since")


def _left_aside(host: Host, image: Image) -> str:
    """Say if a newer libcuda of the image is ignored only because of its ELF note."""
    if host.stack != "hook" or len(image.compat) != 1 or not _reads_notes(host):
        return ""
    (library,), branch = image.compat, host.driver[0]
    if library.note is None or branch in library.note.driver or branch >= library.version[0]:
        return ""
    return (
        f"the image's libcuda {driver(library.version)} is ignored: its ELF note does not list driver branch {branch}"
    )


def _own(host: Host, image: Image) -> Prediction:
    """Predict with the driver's libcuda."""
    has, cuda = tables.newest_cuda(host.driver), image.cuda
    name, wanted = driver(host.driver), f"CUDA {dotted(cuda)}"
    speaks = f"driver {name} supports CUDA {dotted(has)}"
    branch, doubt = host.driver[0], ""
    if tables.beyond(host.driver):
        doubt = f"; driver branch {branch} is newer than the tables of {tables.dated('branches')[0]}"
    elif tables.one_source("branches", branch) and cuda[:2] > tables.newest_cuda((branch - 1,)):
        doubt = f"; which CUDA driver branch {branch} supports is known from one source only"
    sure = not doubt
    if has >= cuda[:2]:
        return Prediction("NATIVE", sure, f"{speaks}, which includes {wanted}{doubt}", table="branches")
    floor = tables.floors().get(cuda[0])
    if floor is not None and host.driver >= floor:
        text = f"{speaks}; {wanted} runs on driver {driver(floor)} or newer (minor-version compatibility){doubt}"
        return Prediction("MINOR", sure, text, None, (MINOR_LIMITS,), "branches")
    if found := _by_entrypoint(host, image):
        return found
    own = tables.bundled_driver(cuda[:2])  # CUDA 11.0 came out before the floor of its major
    least = driver(min(floor, own) if floor else tables.bundled_driver(cuda))
    text = f"{speaks}, but {wanted} needs driver {least} or newer: CUDA error 35, driver version is insufficient{doubt}"
    if (library := _newest_own(host, image)) and (refusal := _refusal(host, library)):
        text += f"; {refusal}"
    table = "toolkits" if floor is None or own < floor else "branches"
    return Prediction("NEEDS_DRIVER", sure, text, table=table)


MINOR_LIMITS = "compiling PTX at run time may fail with error 222; calls that are newer than the driver fail with 36"


#: How the reason begins if the image's entrypoint decides.
BY_ENTRYPOINT = "the image's entrypoint selects its libcuda"


def _by_entrypoint(host: Host, image: Image) -> Prediction | None:
    """NGC images test whether forward compatibility works, and use it only then."""
    library = _newest_own(host, image)
    if library is None or _refusal(host, library):
        return None
    why = f"{listed(host, library)} driver branch {host.driver[0]}"
    doubt = "uncertain: with --entrypoint, or command: in Kubernetes, error 35"
    text = f"{BY_ENTRYPOINT} {driver(library.version)} ({why}); {doubt}"
    return Prediction("FORWARD", False, text, library, table=_lists(library))


def _newest_own(host: Host, image: Image) -> CompatLib | None:
    """Return the newest libcuda that an NGC image brings and its entrypoint may select on this host."""
    return None if host.stack == "none" else max(image.own_compat, key=lambda one: one.version, default=None)


def _refusal(host: Host, library: CompatLib) -> str:
    """Say why the libcuda that an NGC image brings does not help on this host; empty if it does."""
    what = f"the image's own libcuda {driver(library.version)}"
    if host.gpu.kind != "datacenter":
        return f"{what} is only for data-center GPUs"
    if lacks := _too_new(host, library):
        return f"{what} has {lacks}"
    if library.version > host.driver and listed(host, library):
        return ""
    noted = library.note is not None and library.note.driver
    why = (
        "its ELF note does not list it" if noted else "neither the support matrix nor an image of its release lists it"
    )
    return f"{what} does not support driver branch {host.driver[0]}: {why}"


def _too_new(host: Host, library: CompatLib) -> str:
    """Say if this libcuda no longer supports the GPU, though the driver still does."""
    return tables.no_support(host.gpu.architecture, library.version[0])


_OF_RELEASE = "the images of its release list"


def listed(host: Host, library: CompatLib) -> str:
    """Return which source says that this library works on this driver branch; empty if none does."""
    branch = host.driver[0]
    if library.note is not None and library.note.driver:
        return "its ELF note lists" if branch in library.note.driver else ""
    current, released = tables.forward_branches(library.cuda)
    if branch in current:
        return "the support matrix lists"
    return _OF_RELEASE if branch in released else ""


def _lists(library: CompatLib) -> str:
    """Return what says on which driver branches this library works."""
    return "note" if library.note is not None and library.note.driver else "forward"


def _forward(host: Host, image: Image, library: CompatLib) -> Prediction:
    """Predict with the image's libcuda in place of the driver's."""
    name, version, here = host.gpu.name, driver(library.version), driver(host.driver)
    what = f"the image's libcuda {version} is loaded in place of the driver's {here}"
    if host.gpu.kind == "consumer":
        text = f"{what}, and {name} is a consumer GPU: CUDA error 804, forward compatibility on non supported HW"
        return Prediction("ERROR_804", True, text, library, table="gpus")
    if host.gpu.kind == "jetson":
        text = f"{what}: CUDA error 804, unless JetPack's driver supports that on {name}"
        return Prediction("ERROR_804", False, text, library, table="gpus")
    if host.gpu.kind == "unknown":
        text = f"{what}, and {name or 'the GPU'} is unknown: CUDA error 804, unless it is a data-center GPU"
        return Prediction("ERROR_804", False, text, library, table="gpus")
    if lacks := _too_new(host, library):
        return Prediction("ERROR_804", False, f"{what}, and that libcuda has {lacks}", library, table="gpus")
    by = listed(host, library)
    if not by or library.version < host.driver:
        noted = library.note is not None and bool(library.note.driver)
        source = "its ELF note does not list" if noted else "no support matrix lists"
        why = f"{source} driver branch {host.driver[0]}" if not by else "that libcuda is older than the driver"
        text = f"{what}, and {why}: CUDA error 803, unsupported display driver / cuda driver combination"
        return Prediction("ERROR_803", noted, text, library, table=_lists(library))
    covered = library.cuda >= image.cuda[:2] or library.version >= tables.floors().get(image.cuda[0], (10**6,))
    if not covered:
        text = f"{what}, but it supports only CUDA {dotted(library.cuda)}, not {dotted(image.cuda)}: CUDA error 35"
        return Prediction("NEEDS_DRIVER", True, text, library, table="branches")
    text, sure = f"{what}; {by} driver branch {host.driver[0]}", True
    if by == _OF_RELEASE and tables.one_source("forward", dotted(library.cuda)):
        text, sure = f"{text}, according to one source only", False
    if host.gpu.kind == "pro":
        text, sure = f"{text}; only some RTX boards support forward compatibility: test it on {name}", False
    return Prediction("FORWARD", sure, text, library, table=_lists(library))

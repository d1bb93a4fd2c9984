"""``gpuready compat``: predict from facts whether an image runs on a host; with --trace, look at a real container."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from gpuready.base.errors import UsageError, did_you_mean
from gpuready.base.versions import Version, dotted, driver, numbers
from gpuready.cli.complete import files
from gpuready.cli.main import held
from gpuready.cli.options import STATE, Verb, if_named_options
from gpuready.cli.output import deliver, targets
from gpuready.compat.answer import answers, for_releases
from gpuready.cuda import tables
from gpuready.cuda.facts import STACKS, CompatLib, Host, Image, ImageFacts, Note, cannot_be, gated, stack_of
from gpuready.cuda.require import RequireError, check
from gpuready.result.model import HostResult, Run
from gpuready.verbs.compat.part import PART, JudgedImage

if TYPE_CHECKING:
    from gpuready.model.images import ImageSpec
    from gpuready.model.spec import NodeSpec
    from gpuready.model.state import NodeState

_HELP = """Predict whether an image runs on a host, and what to do if not. Without --trace, nothing is started.

\b
  gpuready compat --driver 535 --gpu A10 --image nvcr.io/nvidia/pytorch:25.10-py3
  gpuready compat --driver 450.102.04 --gpu "GeForce RTX 2080 Ti" --stack mount \\
                  --image-cuda 11.2.2 --compat-lib 460.32.03
  gpuready compat -i hosts.yaml --image app:1.4           every host, probed; the image as its engine has it
  gpuready compat -i hosts.yaml --image image.tar         the image as docker save writes it
  gpuready compat -i hosts.yaml --trace app:1.4           also start a container there, and show which libcuda it gets

The image runs: NATIVE, MINOR or FORWARD (exit 0). It does not run: ERROR_803, ERROR_804, NEEDS_DRIVER (CUDA error 35,
or the driver does not know the GPU), REFUSED (by NVIDIA_REQUIRE_CUDA) or NO_CODE (its CUDA no longer supports the GPU,
CUDA error 209); UNKNOWN: no prediction is possible (exit 3).
A question mark means that the verdict is not certain. With --trace, the exit code is also 3 if a container does not get
what was predicted, or cannot be traced.
"""
_EXAMPLE = "gpuready compat --driver 535.54.03 --gpu 'NVIDIA L4' --image-cuda 12.6.3"
_MATRIX = "gpuready compat -i hosts.yaml --image app:1.4"
#: The options that only this verb has.
_OWN = ("driver", "gpu", "image_cuda", "compat_lib", "note", "require", "stack", "toolkit", "image", "trace", "state")
_UNASKED = (
    "NVIDIA_REQUIRE_CUDA is ignored here: only libnvidia-container (mode legacy) reads it, CDI and jit-cdi do not"
)


@click.command("compat", cls=Verb, help=_HELP)
@click.option(
    "--driver",
    metavar="VERSION|BRANCH",
    help="Driver of the host, such as 550.54.15, or a branch, such as 550, which stands for its oldest and its newest "
    "known release. With -i: assume this driver on all hosts.",
)
@click.option(
    "--gpu",
    multiple=True,
    metavar="NAME",
    help="GPU name as in nvidia-smi -L; or consumer, pro, datacenter. With -i: assume this GPU.",
)
@click.option("--image-cuda", metavar="VERSION", help="CUDA_VERSION of the image, such as 12.4.1.")
@click.option(
    "--compat-lib",
    multiple=True,
    metavar="VERSION",
    help="Version of a libcuda.so in the image's /usr/local/cuda/compat. Repeatable.",
)
@click.option("--note", metavar="JSON", help="The ELF note of that libcuda: readelf -p .note.cuda.fwd_compatibility.")
@click.option("--require", multiple=True, metavar="STRING", help="NVIDIA_REQUIRE_CUDA of the image. Repeatable.")
@click.option(
    "--stack",
    type=click.Choice(STACKS),
    help="How the host treats the libcuda of an image: a cuda-compat-mode of config.toml, `hook` for CDI and jit-cdi, "
    "`none` without containers. Default: as the toolkit does by itself.",
)
@click.option("--toolkit", metavar="VERSION", help="Version of the NVIDIA Container Toolkit. Default: a current one.")
@click.option(
    "--image",
    multiple=True,
    metavar="REF|ARCHIVE",
    shell_complete=files,
    help="An archive of docker save; an OCI layout (directory or tar); an image that Docker, containerd or podman has "
    "on every host (without -i: on this machine), never pulled; or docker://REF: ask the registry for its "
    "configuration only. If no engine has the image, gpuready searches a table of published images, and without "
    "-i also the registry. Repeatable. Default: images of the spec, unless --trace is given.",
)
@click.option(
    "--trace",
    multiple=True,
    metavar="REF",
    help="Start a container of this image on every host (with --runtime=nvidia, all GPUs, and a shell instead of its "
    "entrypoint), and show which libcuda it gets and why. Docker must have the image; it is never pulled. gpuready "
    "leaves the toolkit's configuration as it is, and removes the container. Repeatable.",
)
@if_named_options
@STATE
def command(**given: Any) -> int:
    """The exit code."""
    outputs, names = targets(given["output"]), given["image"]
    given["gpu"] = _gpu(given["gpu"])
    _refuse_contradictions(given)
    _refuse_trace(given)
    if given["inventory"]:
        return _matrix(given)
    hosts = _hosts(given)
    images = {name: _read(name, given) for name in names} or {"": _described(_image(given), hosts)}
    found = for_releases({driver(host.driver): answers([host], "", images) for host in hosts})
    run = Run("compat", part=PART)
    if len(found) == 1:
        run.parts["image"] = JudgedImage.of(found[0])
    else:
        run.hosts = [HostResult("host", {"images": tuple(map(JudgedImage.of, found))}, outcome="ok")]
    return deliver(run, outputs, color=given["color"])


def _matrix(given: dict[str, Any]) -> int:
    """Every host of the inventory, recorded or probed, and every image; by default those of its spec."""
    with held():
        from gpuready.cli.online import online, only_read
        from gpuready.cli.request import request
        from gpuready.compat.trace_verdict import trace
        from gpuready.gpu.compat_host import hosts_of
        from gpuready.run.access import Work
        from gpuready.verbs.compat.images import is_here

    traced = tuple(dict.fromkeys(given["trace"]))
    given["image"] = (*given["image"], *(name for name in traced if name not in given["image"]))
    wanted = request("compat", **{name: value for name, value in given.items() if name not in _OWN})
    drivers = [""] if given["driver"] is None else [driver(one) for one in _drivers(given["driver"])]
    files = {name: _read(name, given) for name in given["image"] if is_here(name)}
    asked = [name for name in given["image"] if name not in files]
    if given["image_cuda"] is not None:
        _cuda(given["image_cuda"])
    by_facts = not given["image"] and (given["image_cuda"] or not any(entry.spec.images for entry in wanted.entries))
    image = _image(given) if by_facts else None
    specs = {entry.name: _wanted(entry.spec, given, asked) for entry in wanted.entries}
    if given["state"] is not None:
        run = only_read(wanted, given["state"])
    else:
        entries = tuple(replace(e, spec=e.spec.model_copy(update={"images": specs[e.name]})) for e in wanted.entries)
        chosen = replace(wanted, entries=entries)
        run = online(chosen, using=Work("gpuready.verbs.compat.work:trace", {"images": traced}) if traced else None)
    for host in run.everyone:  # also one that could not be read has the key: no images
        host.parts["images"] = ()
    for host in run.hosts:
        if state := host.only_read():
            images = files | _on_node(specs[host.name], state)
            by_driver = {}
            for release in drivers:
                models, why = hosts_of(state, release, given["gpu"] or "")
                described = {} if image is None else {"image": _described(image, models)}
                by_driver[release] = answers(models, why, described | images)
            found = for_releases(by_driver)
            seen = {name: (state.active, number) for number, name in enumerate(traced)}
            host.parts["images"] = tuple(
                JudgedImage.of(
                    replace(each, trace=trace(*seen[each.image], each.prediction, state.driver.loaded))
                    if each.image in seen
                    else each
                )
                for each in found
            )
    return wanted.deliver(run)


def _on_node(images: tuple[ImageSpec, ...], state: NodeState) -> dict[str, ImageFacts]:
    """The images as the node's engines have them; one that they lack may be a published one."""
    from gpuready.compat.checks import image_facts
    from gpuready.compat.published import published_image

    found = image_facts(images, state)
    for name, facts in found.items():
        if facts.image is None and (known := published_image(name)):
            found[name] = replace(known, notes=(*known.notes, f"on the node: {facts.unknown}"))
    return found


def _wanted(spec: NodeSpec, given: dict[str, Any], asked: Sequence[str]) -> tuple[ImageSpec, ...]:
    """The images that are read on the node itself."""
    from gpuready.model.images import ImageSpec, named

    if not given["image"] and given["image_cuda"] is None:
        return named(spec.images)
    return tuple(ImageSpec.model_construct(ref=name, cuda=given["image_cuda"]) for name in asked)


def _gpu(names: Sequence[str]) -> str | None:
    """The one GPU that is named; the last of several would count unsaid."""
    if len(names) > 1:
        raise UsageError("--gpu was given several times", remedy=f"one call for each, or the nodes: {_MATRIX}")
    if names and not names[0].strip():
        raise UsageError("--gpu is empty", remedy=f"a name, or leave it out where it is not known: {_EXAMPLE}")
    if names and "," in names[0]:
        raise UsageError(f"--gpu {names[0]}: several GPUs", remedy=f"one call for each, or the nodes: {_MATRIX}")
    return names[0] if names else None


def _refuse_contradictions(given: dict[str, Any]) -> None:
    """Two sources for one thing; UsageError says which to leave out."""
    for one, others, what in (
        ("inventory", ("stack", "toolkit"), "the hosts are probed"),
        ("image", ("compat_lib", "note", "require"), "the image is read"),
    ):
        for other in others:
            if given[one] and given[other]:
                flags = [f"--{name.replace('_', '-')}" for name in (one, other)]
                raise UsageError(
                    f"{flags[0]} and {flags[1]} contradict each other: {what}", remedy=f"leave out {flags[1]}"
                )
    if given["image"]:
        from gpuready.verbs.compat.images import check_name

        for name in given["image"]:
            check_name(name)
    if given["state"] is not None and not given["inventory"]:
        raise UsageError(
            "--state needs the inventory of its hosts", remedy="gpuready compat -i hosts.yaml --state FILE"
        )


def _refuse_trace(given: dict[str, Any]) -> None:
    """UsageError where no container can be started, or where it would not be on the host that is described."""
    if not given["trace"]:
        return
    from gpuready.verbs.compat.images import check_name, is_here

    if not given["inventory"]:
        remedy = f"gpuready compat -i hosts.yaml --trace {given['trace'][0]}"
        raise UsageError("--trace starts a container on hosts: -i is missing", remedy=remedy)
    for other in ("state", "driver", "gpu"):
        if given[other] is not None:
            text = f"--trace and --{other} contradict each other: a container is started on the host as it is"
            raise UsageError(text, remedy=f"leave out --{other}")
    for name in given["trace"]:
        if is_here(name):
            raise UsageError(f"--trace {name}: not an image of the node's Docker", remedy="docker load it on the node")
        check_name(name, "--trace")


def _read(name: str, given: dict[str, Any]) -> ImageFacts:
    from gpuready.verbs.compat.images import read_image  # tar, ELF and processes: only where an image is read

    return read_image(name, _cuda(given["image_cuda"]) if given["image_cuda"] else None)


def _hosts(given: dict[str, Any]) -> list[Host]:
    """The host that is described, once for each driver that it may have."""
    if given["driver"] is None:
        raise UsageError("--driver is missing: version or branch of the host's driver", remedy=_EXAMPLE)
    toolkit = _version("--toolkit", given["toolkit"], "X.Y.Z, such as 1.17.8", 3) if given["toolkit"] else None
    stack = given["stack"] or stack_of(toolkit)
    if toolkit and (why := cannot_be(stack, toolkit)):
        remedy = f"--stack {stack_of(toolkit)}, or leave --stack out"
        raise UsageError(f"--stack {stack} contradicts --toolkit {given['toolkit']}: {why}", remedy=remedy)
    gpu = tables.gpu(given["gpu"] or "")
    return [Host(one, gpu, stack, toolkit, gated(stack, toolkit)) for one in _drivers(given["driver"])]


def _image(given: dict[str, Any]) -> Image:
    if given["image_cuda"] is None and given["inventory"]:
        raise UsageError("no image: neither --image nor --image-cuda, and no images: in the spec", remedy=_MATRIX)
    if given["image_cuda"] is None:
        raise UsageError(
            "--image-cuda is missing: the CUDA that the image is made for",
            remedy=f"or name it: --image REF; {_EXAMPLE}",
        )
    note = _note(given["note"], given["compat_lib"])
    for text in given["require"]:
        try:
            check(text)
        except RequireError as e:
            raise UsageError(f"--require: {e}", remedy="as in --require 'cuda>=12.4 brand=tesla,driver>=535'") from None
    libraries = tuple(CompatLib(_driver("--compat-lib", text), note) for text in given["compat_lib"])
    return Image(_cuda(given["image_cuda"]), libraries, requires=given["require"])


def _described(image: Image, hosts: Sequence[Host]) -> ImageFacts:
    """An image by its facts, and whether those that were given count on this host."""
    unasked = bool(image.requires and hosts) and not any(host.gate for host in hosts)
    return ImageFacts(image, notes=(_UNASKED,) if unasked else ())


def _note(text: str | None, libraries: tuple[str, ...]) -> Note | None:
    if text is None:
        return None
    from gpuready.compat.note import NoteError, given_note

    if len(libraries) != 1:
        raise UsageError(
            f"--note describes one library, and --compat-lib names {len(libraries) or 'none'}",
            remedy="give --compat-lib VERSION once beside it",
        )
    try:
        return given_note(text)
    except NoteError as e:
        raise UsageError(f"--note: {e}", remedy='as in --note \'{"format":1,"driver":[535,550]}\'') from None


def _drivers(text: str) -> tuple[Version, ...]:
    """The driver of ``--driver``; for a branch, such as 535, its oldest and its newest known release."""
    if not text.isdecimal() or len(text) > 4:
        return (_driver("--driver", text),)
    known = [branch for branch in tables.branches() if tables.releases(branch)]
    if int(text) not in known:
        date = tables.dated("branches")[0]
        branches = f"or a branch: {', '.join(map(str, known))}"
        raise UsageError(
            f"--driver {text}: no release of this branch is known (on {date})",
            remedy=f"a full driver version, such as 535.104.05; {branches}",
        )
    releases = tables.releases(int(text))
    return tuple(dict.fromkeys((releases[0], releases[-1])))


def _driver(option: str, text: str) -> Version:
    found = _version(option, text, "a full driver version, such as 535.104.05 or 460.80", 2)
    oldest = min(tables.branches())
    if found[0] < oldest:
        raise UsageError(f"{option} {text}: not a known driver", remedy=f"the oldest branch that is known is {oldest}")
    return found


def _cuda(text: str) -> Version:
    """A released CUDA version; UsageError names those that are known."""
    found = _version("--image-cuda", text, "X.Y or X.Y.Z, such as 12.4.1", 2)
    if found[:2] not in tables.known_cuda():
        known = [dotted(one) for one in tables.known_cuda()]
        hint = did_you_mean(dotted(found[:2]), known, 0.5)
        date = tables.dated("toolkits")[0]
        raise UsageError(
            f"--image-cuda {text}: no such CUDA toolkit is known (on {date}){hint}", remedy=", ".join(known)
        )
    return found


def _version(option: str, text: str, what: str, least: int) -> Version:
    try:
        found = numbers(text)
    except ValueError:
        found = ()
    if not least <= len(found) <= 3:
        raise UsageError(f"{option} {text}: not a version", remedy=what)
    return found

"""Fixes for an image that will not run: changes to the host or the image that are predicted to work.

Order: first the driver, which helps all images, then a setting, then the image.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpuready.base.versions import Version, dotted, driver, numbers
from gpuready.cuda import tables
from gpuready.cuda.facts import CompatLib, Host, Image
from gpuready.cuda.predict import Prediction, predict


@dataclass(frozen=True)
class Fix:
    """One fix: ``do`` is the instruction, then the host and the image after it, and the prediction for them."""

    do: str
    host: Host
    image: Image
    then: Prediction


def fixes(host: Host, image: Image, found: Prediction) -> tuple[Fix, ...]:
    """Return the fixes that are predicted to work, best first. Empty if the image already runs."""
    if found.runs:
        return ()
    tried = ((do, h, i, predict(h, i)) for do, h, i in _ideas(host, image, found))
    return tuple(Fix(*fix) for fix in tried if fix[3].runs)


def _ideas(host: Host, image: Image, found: Prediction) -> Iterator[tuple[str, Host, Image]]:
    plain, besides = image, ""
    if host.stack == "none" and image.compat:
        plain, besides = replace(image, compat=()), " and remove the compat directory from the linker's path"
        yield "remove the compat directory from LD_LIBRARY_PATH and /etc/ld.so.conf.d, and run ldconfig", host, plain
    yield from _newer_driver(host, plain, besides)
    yield from _last_driver(host, plain, besides)
    if found.verdict == "REFUSED":
        yield (
            "start it with -e NVIDIA_DISABLE_REQUIRE=1: this ignores the image's own conditions",
            host,
            replace(image, requires=()),
        )
    if found.library is not None and host.stack != "none":
        yield from _without_compat(host, image)
    if found.verdict == "NEEDS_DRIVER" and not image.compat:
        yield from _with_compat(host, image)
    yield from _older_image(host)


def _newer_driver(host: Host, image: Image, besides: str) -> Iterator[tuple[str, Host, Image]]:
    """A newer driver: that of this CUDA, of the image's libcuda, or the first one for the GPU."""
    oldest, last = tables.driver_branches(host.gpu.architecture)[0], host.gpu.newest_branch
    first = min(one for one in tables.toolkits().values() if one[0] >= oldest)
    if named := host.gpu.oldest_driver:
        first = max(first, named.driver)
    need = max([first, tables.bundled_driver(image.cuda), *(one.version for one in image.compat)])
    if need <= host.driver or (last is not None and need[0] > last):
        return
    later = [one for one in tables.toolkits().values() if one > need and (last is None or one[0] <= last)]
    if not all(predict(replace(host, driver=one), image).runs for one in later):  # the conditions name branches
        yield f"upgrade the driver to {driver(need)}{besides}", replace(host, driver=need), image
        return
    kept = [b for b in tables.supported_until() if b >= need[0] and (last is None or b <= last)]
    advice = f"; branch {kept[0]} is supported until {tables.supported_until()[kept[0]]}" if kept else ""
    yield f"upgrade the driver to {driver(need)} or newer{besides}{advice}", replace(host, driver=need), image


def _last_driver(host: Host, image: Image, besides: str) -> Iterator[tuple[str, Host, Image]]:
    """If this driver does not support the GPU: the last branch that does, with this image or one that fits it."""
    gpu, last = host.gpu, host.gpu.newest_branch
    if last is None or not tables.no_support(gpu.architecture, host.driver[0]):
        return
    at = replace(host, driver=max(one for one in tables.toolkits().values() if one[0] <= last))
    do = f"use a driver of branch {last}, such as {driver(at.driver)}, the last for {gpu.architecture} GPUs"
    if predict(at, image).runs:
        yield do + besides, at, image
        return
    for then, there, older in _older_image(at):
        yield f"{do}, and {then}", there, older


def _without_compat(host: Host, image: Image) -> Iterator[tuple[str, Host, Image]]:
    off = replace(host, stack="disabled")
    setting = 'cuda-compat-mode = "disabled" in config.toml (toolkit.cuda_compat_mode of the spec)'
    feature = "features.disable-cuda-compat-lib-hook = true in config.toml"
    if host.toolkit is not None and host.toolkit < tables.since("mode_since"):
        from gpuready.components.toolkit.spec import TOOLKIT_VERSION  # with pydantic: most answers need none

        newer = replace(off, toolkit=numbers(TOOLKIT_VERSION), gate=False)
        yield f"update the container toolkit to {TOOLKIT_VERSION} and set {setting} and {feature}", newer, image
    elif host.stack == "hook" and not host.gate:
        spec = "nvidia-ctk cdi generate --disable-hook=enable-cuda-compat"
        yield f"set {feature} (in a CDI spec: {spec}): new containers use the driver's libcuda", off, image
    else:
        yield f"set {setting}: new containers use the driver's libcuda", off, image
    yield "build the image without its libcuda: RUN rm -rf /usr/local/cuda-*/compat", host, replace(image, compat=())


def _with_compat(host: Host, image: Image) -> Iterator[tuple[str, Host, Image]]:
    if host.stack == "disabled" or host.gpu.kind != "datacenter":
        return
    major, minor = image.cuda[:2]
    library = CompatLib(tables.bundled_driver(image.cuda))
    yield (
        f"install cuda-compat-{major}-{minor} in the image: this GPU supports forward compatibility",
        host,
        replace(image, compat=(library,)),
    )


def _older_image(host: Host) -> Iterator[tuple[str, Host, Image]]:
    """An image of the newest CUDA that the driver itself and the GPU support."""
    has, last = tables.newest_cuda(host.driver), host.gpu.newest_toolkit
    older = max((cuda for cuda in tables.toolkits() if cuda[:2] <= has and cuda[0] <= last), default=None)
    if older is not None:
        yield f"use an image of CUDA {dotted(older[:2])} or older", host, official(older)


def official(cuda: Version) -> Image:
    """Describe NVIDIA's own image for a CUDA: it has the libcuda of its release, and requires that CUDA."""
    return Image(cuda, (CompatLib(tables.bundled_driver(cuda)),), requires=(f"cuda>={dotted(cuda[:2])}",))

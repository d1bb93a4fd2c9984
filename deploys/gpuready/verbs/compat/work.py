"""What ``gpuready compat --trace`` does on hosts: probe, read the images, then start a container of each traced one.

Nothing on a node changes, so no lock is held.
"""

from collections.abc import Sequence

from pyinfra.api.host import Host

from gpuready.operations.images import trace_images
from gpuready.result.model import Run
from gpuready.run.converge import look_at_images
from gpuready.run.fleet import Fleet


def trace(fleet: Fleet, *, images: Sequence[str]) -> Run:
    """Predict as compat does, and see on each host what a container of these images gets."""

    def work(host: Host) -> None:
        look_at_images(fleet, host)
        result = fleet.results[host.name]
        if result.state is not None:
            fleet.progress(host.name, "trace")
            result.read(trace_images(host, result.state, fleet.entries[host.name].spec, images))

    return fleet.work("compat", lambda run: fleet.each(work))

"""Run ``gpuready compat --trace`` on hosts: probe, read the images, then start a container of each traced one.

Nothing on a node changes, so the engine holds no lock.
"""

from collections.abc import Sequence

from pyinfra.api.host import Host

from gpuready.engine import Engine
from gpuready.operations.active import trace_images
from gpuready.report.run import Run


class TraceEngine(Engine):
    """The engine of ``gpuready compat --trace``."""

    _images: Sequence[str]

    def trace(self, images: Sequence[str]) -> Run:
        """Predict as compat does, and see on each host what a container of these images gets."""
        self._images = images
        return self.verify()

    def _examine(self, host: Host) -> None:
        super()._examine(host)
        run = self._runs[host.name]
        if run.state is not None:
            self.progress(host.name, "trace")
            run.state = trace_images(host, run.state, self.entries[host.name].spec, self._images)

"""The part of ``launch hosts``: the torchrun line of each host."""

from gpuready.fabric.launch import Launch
from gpuready.network import torch
from gpuready.result.model import Run, VerbPart
from gpuready.result.text import Painter


class LaunchPart(VerbPart):
    """A value of each host."""

    def blocks(self, run: Run, paint: Painter) -> list[list[str]]:
        lines = {host.name: host.parts["launch"] for host in run.hosts if "launch" in host.parts}
        if not lines:
            return []
        shown = [row for name, made in lines.items() for row in (f"    {paint('bold', name)}:", f"      {made}")]
        values = [f"      {value}  {what}" for value, what in torch.VALUES.items()]
        return [
            [
                f"{paint('bold', 'launch')}, ranks in the order of the inventory",
                *shown,
                f"    {torch.VARIABLE}: what a rank does when another rank is lost:",
                *values,
                f"    Its name before PyTorch 2.2: {torch.OLD_NAME}.",
            ]
        ]


PART = LaunchPart(
    verb="launch",
    of_host={"launch": (Launch, "launch hosts: the torchrun command of this host.")},
    judges=False,
)

"""What can be asked of CRI-O."""

from __future__ import annotations

from gpuready.core.section import Section


class CrioSpec(Section):
    """CRI-O is wanted on this node, with these settings."""

    default_runtime: bool = False
    """Make nvidia the default runtime."""

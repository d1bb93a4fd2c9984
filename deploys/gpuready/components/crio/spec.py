"""The spec of CRI-O."""

from gpuready.base.section import Section


class CrioSpec(Section):
    """CRI-O is required on this node, with these settings."""

    default_runtime: bool = False
    """Make nvidia the default runtime."""

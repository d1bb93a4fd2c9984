"""The state of nvidia-persistenced, from systemd and the probe."""

from gpuready.base.facts import Unit

PERSISTENCED = "nvidia-persistenced.service"


def persistence(unit: Unit, old: bool, no_socket: bool) -> str:
    """Return systemd's state of nvidia-persistenced, or what it lacks: its new file, or its socket.

    ``old``: it runs from a replaced file. ``no_socket``: there is no socket of its own.
    """
    if unit.load == "not-found":
        return "not installed"
    if unit.active == "active" and old:
        return "of before the update"
    return "without its socket" if unit.active == "active" and no_socket else unit.active

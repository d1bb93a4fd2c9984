"""Real test machines for gpuready: `python -m tests.lab up`, or the fixtures of tests.lab.fixtures."""

from tests.lab.host import LabError
from tests.lab.lab import DISTROS, Lab, available
from tests.lab.machine import Machine
from tests.lab.repository import Repository

__all__ = ["DISTROS", "Lab", "LabError", "Machine", "Repository", "available"]

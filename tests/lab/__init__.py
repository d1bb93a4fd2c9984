"""Real test machines for gpuready: `python -m tests.lab up`, or the fixtures of tests.lab.fixtures."""

from tests.lab.host import LabError
from tests.lab.lab import DISTROS, Lab, available
from tests.lab.machine import Machine
from tests.lab.node import Node
from tests.lab.repository import Repository
from tests.lab.vm import VM

__all__ = ["DISTROS", "VM", "Lab", "LabError", "Machine", "Node", "Repository", "available"]

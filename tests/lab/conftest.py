"""The lab's own tests use the lab's fixtures, as any other folder may."""

from tests.lab.fixtures import lab, machine, module_machine, vm_lab

__all__ = ["lab", "machine", "module_machine", "vm_lab"]

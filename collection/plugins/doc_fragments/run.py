"""The options that both actions have."""


class ModuleDocFragment:
    """Found by Ansible under this name."""

    DOCUMENTATION = """
---
options:
  inventory:
    description: The inventories that gpuready reads. By default, those of the play.
    type: list
    elements: str
  arguments:
    description: More arguments of gpuready, such as C(--level smoke).
    type: list
    elements: str
    default: []
  hosts:
    description: Only these of the hosts that are left in the play, or in its batch. By default, all of them.
    type: list
    elements: str
  executable:
    description: The program. By default, the one beside Ansible's Python, or the one on C(PATH).
    type: str
"""

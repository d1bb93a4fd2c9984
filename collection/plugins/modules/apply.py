"""What ``ansible-doc gpuready.node.apply`` shows. The action of the same name does the work."""

DOCUMENTATION = """
---
module: apply
short_description: Converge GPU nodes
description:
  - The control node runs C(gpuready apply) once over all hosts of the play, or of its batch (C(serial)).
  - The spec of a host is its variable C(gpuready), as gpuready reads it from the inventory.
  - The task fails if a host fails. The role of the same name lets only that host fail.
  - Changes that wait for permission or for an idle node are no failure.
options:
  inventory:
    description: The inventories that gpuready reads. By default, those of the play.
    type: list
    elements: str
  arguments:
    description: More arguments of C(gpuready apply), such as C(--allow-disruption reload).
    type: list
    elements: str
    default: []
  executable:
    description: The program. By default, the one beside Ansible's Python, or the one on C(PATH).
    type: str
attributes:
  check_mode:
    description: Runs C(gpuready plan).
    support: full
author: The gpuready authors
"""

EXAMPLES = """
- hosts: gpu
  gather_facts: false
  tasks:
    - name: Converge the GPU nodes
      gpuready.node.apply:
        arguments: [--allow-disruption, reload]
      run_once: true
      register: gpuready_run
"""

RETURN = """
---
hosts:
  description:
    - By name, what became of each host - C(outcome), C(failed), C(changed), C(message), C(components_changed),
      C(components_pending) with reasons, and C(checks) with their status.
    - It is missing if the run could not be done at all.
  returned: if there was a run
  type: dict
stdout_lines:
  description: The result as text.
  returned: always
  type: list
rc:
  description: The exit code of gpuready.
  returned: always
  type: int
"""

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
extends_documentation_fragment: gpuready.node.run
attributes:
  check_mode:
    description: Runs C(gpuready plan).
    support: full
author: The gpuready authors
"""

EXAMPLES = """
- hosts: all
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
      C(components_pending) with reasons, and C(checks) with their status. In check mode, what would change is pending.
    - It is missing if the run could not be done at all, or was interrupted.
  returned: if there was a run
  type: dict
stdout_lines:
  description: The result as text.
  returned: if gpuready was started
  type: list
rc:
  description: The exit code of gpuready.
  returned: if gpuready was started
  type: int
only_hosts_failed:
  description: A host failed, and nothing else did.
  returned: if there was a run
  type: bool
"""

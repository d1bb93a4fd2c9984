"""What ``ansible-doc gpuready.node.verify`` shows. The action of the same name does the work."""

DOCUMENTATION = """
---
module: verify
short_description: Check GPU nodes against their spec
description:
  - The control node runs C(gpuready verify) once over all hosts of the play, or of its batch (C(serial)).
  - The spec of a host is its variable C(gpuready), as gpuready reads it from the inventory.
  - The task fails if a host fails. The role of the same name lets only that host fail.
extends_documentation_fragment: gpuready.node.run
attributes:
  check_mode:
    description: It changes nothing anyway.
    support: full
author: The gpuready authors
"""

EXAMPLES = """
- hosts: gpu
  gather_facts: false
  tasks:
    - name: Verify the GPU nodes
      gpuready.node.verify:
        arguments: [--level, smoke]
      run_once: true
      register: gpuready_run
"""

RETURN = """
---
hosts:
  description:
    - By name, what became of each host - C(outcome), C(failed), C(changed), C(message), C(components_changed),
      C(components_pending) with reasons, and C(checks) with their status.
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

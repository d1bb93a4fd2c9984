"""Write cloud-init user-data for a node that installs gpuready and converges itself at its first boot.

cloud-init writes the spec and starts a unit, which runs only after cloud-init has ended: steps of gpuready that install
packages wait for that end, and would wait in vain inside of it.
Sources: cloud-init's reference (write_files, runcmd), systemd-run(1).
"""

import json
import re

from gpuready.base import resources
from gpuready.inventory.build import written
from gpuready.model.spec import NodeSpec

#: The requirements that name their content, with a hash that pip or git checks. A bare name does not: no package index
#: has gpuready, so whoever registers the name there would run code as root. ci/gitlab.yml has the same pattern.
PINNED = r"https://[^ #]+\.whl([?][^ #]*)?#sha256=[0-9a-f]{64}|git[+]https://[^ #]+@[0-9a-f]{40}"


def is_pinned(package: str) -> bool:
    """Tell whether a requirement names one content and no other."""
    return re.fullmatch(PINNED, package) is not None


def user_data(spec: NodeSpec, package: str) -> str:
    """Return the user-data (YAML). ``package``: the requirement by which pip finds gpuready, pinned."""
    inventory = written(spec).rstrip()
    return resources.document("verbs/render/cloud-init.yml", inventory=inventory, package=json.dumps(package))

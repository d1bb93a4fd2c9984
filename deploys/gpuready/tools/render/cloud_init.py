"""Write cloud-init user-data for a node that installs gpuready and converges itself at its first boot.

cloud-init writes the spec and starts a unit, which runs only after cloud-init has ended: steps of gpuready that install
packages wait for that end, and would wait in vain inside of it.
Sources: cloud-init's reference (write_files, runcmd), systemd-run(1).
"""

import json

import yaml

from gpuready.core import resources
from gpuready.spec.model import NodeSpec
from gpuready.spec.secrets import is_reference


def user_data(spec: NodeSpec, package: str) -> str:
    """Return the user-data (YAML). ``package``: the requirement by which pip finds gpuready."""
    given = spec.model_dump(mode="json", exclude_defaults=True)
    inventory = yaml.safe_dump({"all": {"vars": {"gpuready": given}}}, sort_keys=False, allow_unicode=True)
    return resources.document("tools/render/cloud-init.yml", inventory=inventory.rstrip(), package=json.dumps(package))


def local_files(spec: NodeSpec) -> tuple[str, ...]:
    """Return the keys of the spec that name files or variables of this machine, which the node will not have."""
    repo = spec.toolkit.repo
    found = {
        "torch_wheels": bool(spec.torch_wheels),
        "toolkit.repo.key": "://" not in repo.key,
        "toolkit.repo.proxy": bool(repo.proxy) and is_reference(str(repo.proxy)),
    }
    return tuple(key for key, local in found.items() if local)

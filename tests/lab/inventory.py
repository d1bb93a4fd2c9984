"""The inventory of running machines: the Ansible YAML that gpuready, and Ansible itself, take."""

from collections.abc import Iterable, Mapping

import yaml

from tests.lab import access, packages
from tests.lab.image import DOCKER_IMAGE

Settings = Mapping[str, object]


def text(hosts: Iterable[tuple[str, str]], settings: Settings | None, user: str = "gpu") -> str:
    """The inventory of (name, address) pairs as YAML; without settings it has no `gpuready` variable."""
    variables: dict[str, object] = {
        "ansible_user": user,
        "ansible_ssh_private_key_file": str(access.client_key()),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={access.known_hosts()} -o StrictHostKeyChecking=yes",
    }
    if settings is not None:
        variables["gpuready"] = dict(settings)
    listed = {name: {"ansible_host": address} for name, address in hosts}
    return yaml.safe_dump({"all": {"vars": variables, "hosts": listed}}, sort_keys=False, width=200)


def settings(repository: Settings, overrides: Settings) -> dict[str, object]:
    """The `gpuready` variable that points at a repository of the lab, with a test's own values laid over it."""
    toolkit: dict[str, object] = {"repo": dict(repository)}
    if version := packages.asked():  # which may lie below the security floor
        toolkit |= {"version": version, "floor_exception": {"reason": "a test asks for it", "until": "2999-01-01"}}
    base: dict[str, object] = {
        "hardware": {"gpus": "none"},  # said, or a GPU that nobody sees is a failure, as it should be
        "toolkit": toolkit,
        # Debian's serves CRI, so each first apply would restart it, too: that is for tests that ask for it.
        "runtimes": {"containerd": "absent"},
        "verify": {"image": DOCKER_IMAGE},
    }
    return _merged(base, overrides)


def _merged(base: Settings, over: Settings) -> dict[str, object]:
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[key] = _merged(below, value) if both else value  # type: ignore[arg-type]
    return result

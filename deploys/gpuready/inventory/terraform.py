"""Terraform and OpenTofu: the JSON of ``terraform show -json`` and of ``terraform output -json``.

An output named ``gpuready_inventory`` is the inventory: a mapping of groups as in YAML (``{all: {hosts: {...}}}``), or
a list of hosts. Without it, every instance of Google Cloud, AWS or Azure in the state is a host. Its name is the
resource's address with dots for brackets (``aws_instance.gpu[0]`` is ``aws_instance.gpu.0``). Its address is the public
IP, else the private one. Its groups are the type and the name of the resource (``aws_instance``, ``gpu``), so
``group_vars/gpu.yml`` beside the file chooses and describes it. Sources: Terraform's documentation, "JSON Output
Format"; the providers' documentation of the resources.
"""

import re
from collections.abc import Iterator

from gpuready.base.errors import InventoryError
from gpuready.inventory.ansible import Source, YamlSource
from gpuready.inventory.host_names import is_host
from gpuready.inventory.source_values import Located, value_at

OUTPUT = "gpuready_inventory"
_OUTPUT_ALLOWED = "a mapping of groups, such as {all = {hosts = {...}}}, or a list of hosts"
#: Where each kind of instance has its address: the first one that is set counts.
_ADDRESSES = {
    "google_compute_instance": (
        ("network_interface", 0, "access_config", 0, "nat_ip"),
        ("network_interface", 0, "network_ip"),
    ),
    "aws_instance": (("public_ip",), ("private_ip",)),
    "azurerm_linux_virtual_machine": (("public_ip_address",), ("private_ip_address",)),
}
_USERS = {"azurerm_linux_virtual_machine": "admin_username"}

Top = dict[object, Located]


def is_terraform(top: Top) -> bool:
    return "format_version" in top or all(
        isinstance(entry.value, dict) and {"value", "sensitive"} <= entry.value.keys() for entry in top.values()
    )


class TerraformSource(Source):
    """The hosts of an output, or of the resources of a state."""

    def read(self, top: Top) -> None:
        """Read the hosts; InventoryError if there are none."""
        tree = Located(top, next(iter(top.values())).where)
        file = tree.where.file
        if "planned_values" in top:
            raise InventoryError(
                f"{file}: this is a plan of Terraform; its hosts do not exist yet",
                remedy="after terraform apply: terraform show -json > terraform.json",
            )
        path = ("values", "outputs", OUTPUT, "value") if "format_version" in top else (OUTPUT, "value")
        output = value_at(tree, path)
        if output is not None:
            self._output(output)
            return
        found = [self._instance(resource) for resource in _resources(value_at(tree, ("values", "root_module")))]
        if not any(found):
            raise InventoryError(
                f"{file}: Terraform: no output {OUTPUT}, and no resource of {', '.join(_ADDRESSES)}",
                remedy=f"define an output {OUTPUT}: {_OUTPUT_ALLOWED}",
            )

    def _output(self, output: Located) -> None:
        if isinstance(output.value, dict):
            YamlSource(self.graph, self.errors).read(output.value)
        elif isinstance(output.value, list):
            for entry in output.value:
                self.add_hosts(entry.value, self.graph.groups["ungrouped"], entry.where)
        else:
            self.refuse(f"output {OUTPUT}: not accepted", output.where, output.value, _OUTPUT_ALLOWED)

    def _instance(self, resource: Located) -> bool:
        """Add the host, if the resource is an instance."""
        kind, name, address = (_text(resource, (key,)) for key in ("type", "name", "address"))
        if _text(resource, ("mode",)) != "managed" or kind not in _ADDRESSES or not address:
            return False
        groups = [self.add_group(group, resource.where) for group in (kind, name)]
        host = re.sub(r"[^A-Za-z0-9_.-]+", ".", address).rstrip(".-_")
        ip = next(filter(None, (_text(resource, ("values", *path)) for path in _ADDRESSES[kind])), "")
        if host in self.graph.hosts:
            self.refuse("two resources with the same host name", resource.where, address, f"not also {host}")
        elif not is_host(ip):
            self.refuse(f"{address}: no IP address", resource.where, ip, "an instance that runs")
        else:
            for group in filter(None, groups):
                self.add_hosts(host, group, resource.where)
            user = _text(resource, ("values", _USERS.get(kind, "")))
            variables = {"ansible_host": ip} | ({"ansible_user": user} if user else {})
            located = {key: Located(value, resource.where) for key, value in variables.items()}
            self.set_variables(host, located, resource.where, host)
        return True


def _resources(module: Located | None) -> Iterator[Located]:
    """The resources of a module, then those of the modules in it."""
    if module is None:
        return
    for key in ("resources", "child_modules"):
        section = value_at(module, (key,))
        for entry in section.value if section is not None and isinstance(section.value, list) else ():
            yield from [entry] if key == "resources" else _resources(entry)


def _text(tree: Located, path: tuple[object, ...]) -> str:
    """The text at a path, or nothing."""
    found = value_at(tree, path)
    return found.value if found is not None and isinstance(found.value, str) else ""

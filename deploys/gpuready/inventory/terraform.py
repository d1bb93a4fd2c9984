"""Terraform and OpenTofu: the JSON of ``terraform show -json`` and of ``terraform output -json``.

An output named ``gpuready_inventory`` is the inventory: a mapping of groups as in YAML (``{all: {hosts: {...}}}``). An
output named ``hosts`` is a list of hosts, or a mapping of hosts. Without them, every instance in the state is a host.
Its name is that of the instance, if no other instance has it; the resource's address (``aws_instance.gpu[0]``) is an
alias. Its address is the public IP, else the private one. Its groups are the type and the name of the resource
(``aws_instance``, ``gpu``), so ``group_vars/gpu.yml`` beside the file chooses and describes it.

Sources: Terraform's documentation, "JSON Output Format"; the documentation of the resources in hashicorp/google,
hashicorp/aws, hashicorp/azurerm, oracle/oci, terraform-provider-openstack/openstack and elct9620/lambdalabs.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gpuready.base.errors import InventoryError, SpecError
from gpuready.inventory.ansible import Source, YamlSource
from gpuready.inventory.groups import Graph
from gpuready.inventory.host_names import is_host
from gpuready.inventory.source_values import Located, value_at

GROUPS, HOSTS = "gpuready_inventory", "hosts"
_GROUPS_ALLOWED = "a mapping of groups, such as {all = {hosts = {...}}}"
_HOSTS_ALLOWED = 'a list of hosts, such as ["10.0.0.7"], or a mapping, such as {gpu01 = "10.0.0.7"}'


@dataclass(frozen=True)
class _Kind:
    """Where an instance of one type has its name, addresses and login user; the first one that is set counts."""

    names: tuple[tuple[object, ...], ...]
    addresses: tuple[tuple[object, ...], ...]
    user: tuple[object, ...] = ("",)


_AWS = _Kind((("tags", "Name"), ("tags_all", "Name")), (("public_ip",), ("private_ip",)))
_KINDS = {
    "google_compute_instance": _Kind(
        (("name",),),
        (("network_interface", 0, "access_config", 0, "nat_ip"), ("network_interface", 0, "network_ip")),
    ),
    "aws_instance": _AWS,
    "aws_spot_instance_request": _AWS,
    "azurerm_linux_virtual_machine": _Kind(
        (("name",),), (("public_ip_address",), ("private_ip_address",)), ("admin_username",)
    ),
    "oci_core_instance": _Kind((("display_name",),), (("public_ip",), ("private_ip",))),
    "openstack_compute_instance_v2": _Kind((("name",),), (("access_ip_v4",), ("access_ip_v6",))),
    "lambdalabs_instance": _Kind((("name",),), (("ip",),)),
}

Top = dict[object, Located]


def is_terraform(top: Top) -> bool:
    return "format_version" in top or all(
        isinstance(entry.value, dict) and {"value", "sensitive"} <= entry.value.keys() for entry in top.values()
    )


class TerraformSource(Source):
    """The hosts of an output, or of the resources of a state. ``given``: what -i says, if it is not the file."""

    def __init__(self, graph: Graph, errors: list[SpecError], file: str, given: str = "") -> None:
        super().__init__(graph, errors)
        self._file = file
        graph.choose[file] = _how_to_choose(given or file, beside=not given)

    def read(self, top: Top) -> None:
        """Read the hosts; InventoryError if there are none."""
        tree = Located(top, next(iter(top.values())).where)
        if "planned_values" in top:
            raise InventoryError(
                f"{self._file}: this is a Terraform plan; its hosts do not exist yet",
                remedy="after terraform apply: terraform show -json > terraform.json",
            )
        outputs = ("values", "outputs") if "format_version" in top else ()
        groups, hosts = (value_at(tree, (*outputs, name, "value")) for name in (GROUPS, HOSTS))
        if groups is not None:
            self._groups(groups)
        elif hosts is not None:
            self._hosts(hosts)
        else:
            self._instances(value_at(tree, ("values", "root_module")))

    def _groups(self, output: Located) -> None:
        if isinstance(output.value, dict):
            YamlSource(self.graph, self.errors).read(output.value)
        else:
            self.refuse(f"output {GROUPS}: not accepted", output.where, output.value, _GROUPS_ALLOWED)

    def _hosts(self, output: Located) -> None:
        """A list of names and addresses; or a mapping of names to an address, or to variables as in YAML."""
        ungrouped = self.graph.groups["ungrouped"]
        if isinstance(output.value, list):
            for entry in output.value:
                self.add_hosts(entry.value, ungrouped, entry.where)
        elif isinstance(output.value, dict):
            for pattern, entry in output.value.items():
                plain = isinstance(entry.value, str)
                variables = {"ansible_host": entry} if plain else entry.value
                for host in self.add_hosts(pattern, ungrouped, entry.where):
                    self.set_variables(host, variables, entry.where, f"output {HOSTS}: host {host}")
        else:
            self.refuse(f"output {HOSTS}: not accepted", output.where, output.value, _HOSTS_ALLOWED)

    def _instances(self, root: Located | None) -> None:
        found = [each for each in _resources(root) if _is_instance(each)]
        if not found:
            raise InventoryError(
                f"{self._file}: Terraform: no output {GROUPS} or {HOSTS}, and no resource of {', '.join(_KINDS)}",
                remedy=f"define an output {GROUPS}: {_GROUPS_ALLOWED}; or an output {HOSTS}: {_HOSTS_ALLOWED}",
            )
        names = Counter(map(_name, found))
        shared = [name for name, number in names.items() if name and number > 1]
        if shared:
            text = f"{', '.join(shared)}: several instances have this name; each is named after its resource"
            self.graph.notes.append(f"{self._file}: {text}")
        for each in found:
            name = _name(each)
            self._instance(each, name if names[name] == 1 else "")

    def _instance(self, resource: Located, name: str) -> None:
        """Add an instance. Without a name of its own, it is named after its address."""
        kind, group, address = (_text(resource, (key,)) for key in ("type", "name", "address"))
        groups = [self.add_group(each, resource.where) for each in (kind, group)]
        host = name or re.sub(r"[^A-Za-z0-9_.-]+", ".", address).rstrip(".-_")
        ip = _first(resource, _KINDS[kind].addresses).strip("[]")  # OpenStack: an IPv6 address has brackets
        if host in self.graph.aliases.values():
            self.refuse("two resources with the same host name", resource.where, address, f"not also {host}")
        elif not is_host(ip):
            self.refuse(f"{address}: no IP address", resource.where, ip, "an instance that runs")
        else:
            for each in filter(None, groups):
                self.add_hosts(host, each, resource.where)
            user = _text(resource, ("values", *_KINDS[kind].user))
            variables = {"ansible_host": ip} | ({"ansible_user": user} if user else {})
            located = {key: Located(value, resource.where) for key, value in variables.items()}
            self.set_variables(host, located, resource.where, host)
            self.graph.aliases[address] = host


def _how_to_choose(given: str, beside: bool) -> str:
    also = "; or write `gpuready: {}` into group_vars/all.yml beside it" if beside else ""
    both = f"-i {shlex.quote(given)} -i spec.yaml"
    return f"write `all: {{vars: {{gpuready: {{}}}}}}` into spec.yaml, and give both: {both}{also}"


def _is_instance(resource: Located) -> bool:
    managed = _text(resource, ("mode",)) == "managed"
    return managed and _text(resource, ("type",)) in _KINDS and bool(_text(resource, ("address",)))


def _name(instance: Located) -> str:
    """The name of an instance; empty if it has none that a host could have."""
    name = _first(instance, _KINDS[_text(instance, ("type",))].names)
    return name if is_host(name) else ""


def _resources(module: Located | None) -> Iterator[Located]:
    """The resources of a module, then those of the modules in it."""
    if module is None:
        return
    for key in ("resources", "child_modules"):
        section = value_at(module, (key,))
        for entry in section.value if section is not None and isinstance(section.value, list) else ():
            yield from [entry] if key == "resources" else _resources(entry)


def _first(resource: Located, paths: tuple[tuple[object, ...], ...]) -> str:
    return next(filter(None, (_text(resource, ("values", *path)) for path in paths)), "")


def _text(tree: Located, path: tuple[object, ...]) -> str:
    """The text at a path, or nothing."""
    found = value_at(tree, path)
    return found.value if found is not None and isinstance(found.value, str) else ""

"""Terraform's JSON as an inventory: an output named gpuready_inventory, or the instances of a state."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuready.base.errors import GpureadyError, InventoryError, SpecErrors
from gpuready.inventory.hosts import Connection, load


def written(folder: Path, document: object, **files: str) -> str:
    for name, text in files.items():
        (folder / "group_vars").mkdir(exist_ok=True)
        (folder / "group_vars" / f"{name}.yml").write_text(text)
    (folder / "tf.json").write_text(json.dumps(document, indent=1))
    return str(folder / "tf.json")


def output(value: object) -> dict[str, Any]:
    """An output as ``terraform output -json`` prints it."""
    return {"sensitive": False, "type": "dynamic", "value": value}


def resource(address: str, mode: str = "managed", **values: object) -> dict[str, Any]:
    kind, _, name = address.split("[")[0].rpartition(".")
    return {"address": address, "mode": mode, "type": kind.rpartition(".")[2], "name": name, "values": values}


def state(*resources: object, outputs: object = None, modules: object = ()) -> dict[str, Any]:
    """A state as ``terraform show -json`` prints it."""
    module = {"resources": list(resources), "child_modules": [{"address": "module.a", "resources": modules}]}
    values = {"root_module": module} | ({"outputs": outputs} if outputs else {})
    return {"format_version": "1.0", "terraform_version": "1.9.8", "values": values}


TWINS = [resource(f'aws_instance.a["{key}"]', public_ip="1.2.3.4") for key in ("b.c", "b c")]
GROUPS = {"gpu": {"hosts": {"n1": {"ansible_host": "10.0.0.1"}}, "vars": {"gpuready": {"hardware": {"gpus": 8}}}}}


@pytest.mark.parametrize(
    "document",
    [
        {"ip": output("10.0.0.9"), "gpuready_inventory": output(GROUPS)},
        state(outputs={"gpuready_inventory": {"sensitive": True, "value": GROUPS}}),
        state(resource("aws_instance.x", public_ip="1.2.3.4"), outputs={"gpuready_inventory": output(GROUPS)}),
    ],
    ids=["output", "state", "an output before resources"],
)
def test_an_output_is_the_inventory(document: object, tmp_path: Path) -> None:
    (entry,) = load([written(tmp_path, document)]).chosen
    assert (entry.connection, entry.spec.hardware.gpus, entry.groups) == (Connection("10.0.0.1"), 8, ("gpu",))
    assert str(entry.source).startswith(f"{tmp_path}/tf.json:")


def test_a_list_of_hosts(tmp_path: Path) -> None:
    source = written(tmp_path, {"gpuready_inventory": output(["10.0.0.1", "n[1:2]:2222"])}, all="gpuready: {}")
    reach = [(entry.connection.address, entry.connection.port) for entry in load([source]).chosen]
    assert reach == [("10.0.0.1", None), ("n1", 2222), ("n2", 2222)]


def test_the_instances_of_a_state(tmp_path: Path) -> None:
    interface = {"network_ip": "10.1.0.2", "access_config": [{"nat_ip": "34.1.2.3"}]}
    private = {"network_ip": "10.1.0.3", "access_config": []}
    document = state(
        resource("google_compute_instance.gpu[0]", network_interface=[interface]),
        resource('google_compute_instance.gpu["b c"]', network_interface=[private]),
        resource("aws_instance.old", mode="data", public_ip="1.1.1.1"),
        resource("aws_vpc.net", id="vpc-1"),
        resource("azurerm_linux_virtual_machine.ci", public_ip_address="20.0.0.1", admin_username="azureuser"),
        modules=[resource("module.a.aws_instance.gpu", public_ip="", private_ip="172.16.0.5")],
    )
    found = load([written(tmp_path, document, gpu="gpuready: {}\nansible_user: ubuntu\n")])
    assert [(e.name, e.connection.address, e.connection.user, e.groups) for e in found.chosen] == [
        ("google_compute_instance.gpu.0", "34.1.2.3", "ubuntu", ("google_compute_instance", "gpu")),
        ("google_compute_instance.gpu.b.c", "10.1.0.3", "ubuntu", ("google_compute_instance", "gpu")),
        ("module.a.aws_instance.gpu", "172.16.0.5", "ubuntu", ("aws_instance", "gpu")),
    ]
    assert [host.name for host in found.skipped] == ["azurerm_linux_virtual_machine.ci"]
    limited = load([written(tmp_path, document)], limit=["*.gpu.0"]).chosen
    assert [entry.name for entry in limited] == ["google_compute_instance.gpu.0"]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"ip": output("1.2.3.4")}, "Terraform: no output gpuready_inventory, and no resource of google"),
        ({"format_version": "1.0"}, "Terraform: no output gpuready_inventory"),
        (state(resource("aws_vpc.a", id="x")), "Terraform: no output gpuready_inventory"),
        ({"format_version": "1.2", "planned_values": {}}, "this is a plan of Terraform"),
        ({"gpuready_inventory": output("10.0.0.1")}, "output gpuready_inventory: not accepted; given '10.0.0.1'"),
        ({"gpuready_inventory": output(["a;id"])}, "not a host name; given 'a;id'"),
        ({"gpuready_inventory": output({"all": {"hots": {}}})}, "unknown key in group all"),
        (state(resource("aws_instance.a", public_ip="", private_ip="")), "aws_instance.a: no IP address"),
        (state(resource("aws_instance.a", public_ip="$(id)")), "aws_instance.a: no IP address; given '$(id)'"),
        (state(*TWINS), "two resources with the same host name"),
        (state({"address": 5}, 7, None, {"type": "aws_instance", "mode": "managed"}), "no output gpuready_inventory"),
    ],
)
def test_what_is_refused(document: object, says: str, tmp_path: Path) -> None:
    source = written(tmp_path, document)
    with pytest.raises(GpureadyError) as caught:
        load([source])
    assert isinstance(caught.value, (SpecErrors, InventoryError)) and caught.value.exit_code == 5
    assert says in str(caught.value) and str(caught.value).startswith(source)

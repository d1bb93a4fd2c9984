"""Terraform's JSON as an inventory: an output named gpuready_inventory or hosts, or the instances of a state."""

import io
import json
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuready.base.errors import GpureadyError, InventoryError, SpecErrors
from gpuready.inventory.hosts import Connection, NothingChosen, load
from tests.command import Exits
from tests.pages import ROOT, blocks, commands


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


GUIDE = ROOT / "docs" / "guides" / "inventory.md"


def instances(*names: str) -> list[dict[str, Any]]:
    return [
        resource(f"aws_instance.gpu[{n}]", tags={"Name": name}, private_ip=f"10.0.0.{n}")
        for n, name in enumerate(names)
    ]


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


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["10.0.0.1", "n[1:2]:2222"], {"10.0.0.1": ("10.0.0.1", None), "n1": ("n1", 2222), "n2": ("n2", 2222)}),
        ({"gpu01": "10.0.0.7", "gpu02": None}, {"gpu01": ("10.0.0.7", None), "gpu02": ("gpu02", None)}),
        ({"gpu01": {"ansible_host": "10.0.0.7", "ansible_port": 2222}}, {"gpu01": ("10.0.0.7", 2222)}),
    ],
    ids=["a list", "addresses", "variables"],
)
@pytest.mark.parametrize("whole", [False, True], ids=["output", "state"])
def test_an_output_of_hosts(value: object, expected: object, whole: bool, tmp_path: Path) -> None:
    outputs = {"hosts": output(value)}
    document = state(*instances("other"), outputs=outputs) if whole else outputs
    found = load([written(tmp_path, document, all="gpuready: {}")]).chosen
    assert {entry.name: (entry.connection.address, entry.connection.port) for entry in found} == expected


#: An instance as each provider describes it, and the address and user of its host.
PROVIDERS: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "google_compute_instance": (
        {"name": "gpu01", "network_interface": [{"network_ip": "10.1.0.2", "access_config": [{"nat_ip": "34.1.2.3"}]}]},
        "34.1.2.3",
        None,
    ),
    "aws_instance": ({"tags": {"Name": "gpu01"}, "public_ip": "3.1.2.3", "private_ip": "10.0.0.5"}, "3.1.2.3", None),
    "aws_spot_instance_request": (
        {"tags": None, "tags_all": {"Name": "gpu01"}, "public_ip": "", "private_ip": "10.0.0.6"},
        "10.0.0.6",
        None,
    ),
    "azurerm_linux_virtual_machine": (
        {"name": "gpu01", "public_ip_address": "20.0.0.1", "admin_username": "azureuser"},
        "20.0.0.1",
        "azureuser",
    ),
    "oci_core_instance": ({"display_name": "gpu01", "public_ip": "", "private_ip": "10.0.2.9"}, "10.0.2.9", None),
    "openstack_compute_instance_v2": (
        {"name": "gpu01", "access_ip_v4": "", "access_ip_v6": "[2001:db8::7]"},  # the provider writes the brackets
        "2001:db8::7",
        None,
    ),
    "lambdalabs_instance": ({"name": "gpu01", "ip": "150.0.0.9"}, "150.0.0.9", None),
}


@pytest.mark.parametrize("kind", PROVIDERS)
def test_the_instance_of_a_provider(kind: str, tmp_path: Path) -> None:
    values, address, user = PROVIDERS[kind]
    (entry,) = load([written(tmp_path, state(resource(f"{kind}.a", **values)), all="gpuready: {}")]).chosen
    assert (entry.name, entry.connection, entry.groups) == ("gpu01", Connection(address, user), ("a", kind))
    assert f"`{kind}`" in GUIDE.read_text("utf-8")


def test_a_name_of_several_instances_is_no_name_of_a_host(tmp_path: Path) -> None:
    source = written(tmp_path, state(*instances("gpu", "gpu", "login", "not a host")), all="gpuready: {}")
    found = load([source]).chosen
    assert [entry.name for entry in found] == [
        "aws_instance.gpu.0",
        "aws_instance.gpu.1",
        "login",
        "aws_instance.gpu.3",
    ]
    assert f"{source}: gpu: several instances have this name; each is named after its resource" in found[0].notes


def test_an_address_is_an_alias(tmp_path: Path) -> None:
    source = written(tmp_path, state(*instances("n0", "n1", "n2")), all="gpuready: {}")

    def limited(*limit: str) -> list[str]:
        return [entry.name for entry in load([source], limit=limit).chosen]

    assert limited("aws_instance.gpu[2]") == ["n2"]
    assert limited("aws_instance.gpu[0],n1") == ["n0", "n1"]
    assert limited("all:!aws_instance.gpu[1]") == ["n0", "n2"]
    assert limited("gpu[1]") == ["n1"]  # Ansible's second host of the group
    keyed = resource("aws_instance.gpu", tags={"Name": "n3"}, public_ip="1.2.3.4")
    keyed["address"] = 'module.a["x,y"].aws_instance.gpu["b:c"]'
    source = written(tmp_path, state(keyed, *instances("n0")), all="gpuready: {}")
    assert limited(keyed["address"]) == ["n3"]


def test_an_instance_with_the_name_of_its_resource(tmp_path: Path) -> None:
    """The variables of the resource's group apply, and the address is the host's own."""
    train = resource("aws_instance.train", tags={"Name": "train"}, private_ip="10.0.0.9")
    (entry,) = load([written(tmp_path, state(train), train="gpuready: {}")]).chosen
    assert (entry.name, entry.connection.address, entry.notes) == ("train", "10.0.0.9", ())
    other = resource("module.b.aws_instance.train", tags={"Name": "b"}, private_ip="10.0.0.8")
    found = load([written(tmp_path, state(train, other), train="gpuready: {}")]).chosen
    assert {entry.name: entry.connection.address for entry in found} == {"train": "10.0.0.9", "b": "10.0.0.8"}
    assert "train is the name of a host and a group" in found[0].notes[0]


def test_the_spec_beside_it_as_in_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exits: Exits) -> None:
    monkeypatch.chdir(tmp_path)
    spec = next(text for text in blocks(GUIDE, "yaml") if "ansible_user: ubuntu" in text)
    Path("spec.yaml").write_text(spec)
    text = json.dumps(state(*instances("gpu01", "gpu02")))
    Path("terraform.json").write_text(text)
    lines = [each.line for each in commands(GUIDE) if "spec.yaml" in each.line]
    assert [line.split()[1] for line in lines] == ["trust", "plan", "apply", "show", "apply"]
    hosts = []
    for line in lines:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode()), closed=False, isatty=bool))
        argv = shlex.split(line.rpartition("| ")[2], comments=True)[2:]
        listed = exits(0, "inventory", *argv, "--output", "json").document["hosts"]
        hosts.append(list(listed))
        assert {each["inventory"]["user"] for each in listed.values()} == {"ubuntu"}
        assert {each["inventory"]["spec"]["hardware"]["gpus"] for each in listed.values()} == {8}
    assert hosts == [*[["gpu01", "gpu02"]] * 4, ["gpu01"]]


def test_what_to_do_if_nothing_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = written(tmp_path, state(*instances("gpu01")))
    with pytest.raises(NothingChosen) as caught:
        load([source])
    assert (
        f"`all: {{vars: {{gpuready: {{}}}}}}` into spec.yaml, and give both: -i {source} -i spec" in caught.value.remedy
    )
    assert "group_vars/all.yml beside it" in caught.value.remedy
    data = io.BytesIO(Path(source).read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=data, closed=False, isatty=bool))
    with pytest.raises(NothingChosen) as caught:
        load(["-"])
    assert caught.value.remedy.endswith("give both: -i - -i spec.yaml")


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
        ({"ip": output("1.2.3.4")}, "Terraform: no output gpuready_inventory or hosts, and no resource of google"),
        ({"format_version": "1.0"}, "Terraform: no output gpuready_inventory"),
        (state(resource("aws_vpc.a", id="x")), "Terraform: no output gpuready_inventory or hosts, and no resource"),
        ({"format_version": "1.2", "planned_values": {}}, "this is a Terraform plan"),
        ({"gpuready_inventory": output("10.0.0.1")}, "output gpuready_inventory: not accepted; given '10.0.0.1'"),
        ({"gpuready_inventory": output(["a"])}, "output gpuready_inventory: not accepted; given a list of 1"),
        ({"hosts": output(["a;id"])}, "not a host name; given 'a;id'"),
        ({"hosts": output("10.0.0.1")}, "output hosts: not accepted; given '10.0.0.1'"),
        ({"hosts": output({"a": ["10.0.0.1"]})}, "output hosts: host a is not a mapping"),
        ({"hosts": output({"a": {"ansible_host": "$(id)", "gpuready": {}}})}, "ansible_host: not accepted"),
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

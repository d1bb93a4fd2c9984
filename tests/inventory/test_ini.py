"""INI inventories: what is refused, with file and line, and how gpuready is set in them.

tests/inventory/test_inventory_oracle.py compares what is read with ansible-core.
"""

import time
from pathlib import Path

import pytest

from gpuready.base.errors import InventoryError, SpecErrors, Where
from gpuready.inventory.hosts import Connection, NothingChosen, load
from tests.command import Exits


def written(folder: Path, text: str, name: str = "hosts") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


DEEPOPS = """\
[all]
mgmt01  ansible_host=10.0.0.1
gpu[01:02]

[kube-node]
gpu01  # the first
[slurm-node]
gpu02 gpuready="{'hardware': {'gpus': 4}}"
[gpu:children]
kube-node
slurm-node

[gpu:vars]
gpuready={'hardware': {'gpus': 8}, 'ldso': 'off'}
ansible_user=ubuntu
ansible_ssh_common_args='-o ServerAliveInterval=5 -J ops@10.0.0.1'
"""


def test_an_inventory_as_deepops_has_it(tmp_path: Path) -> None:
    found = load([written(tmp_path, DEEPOPS)])
    specs = [(entry.name, entry.spec.hardware.gpus, entry.spec.ldso) for entry in found.chosen]
    assert specs == [("gpu01", 8, "off"), ("gpu02", 4, "off")]
    options = (("ServerAliveInterval", "5"),)
    assert found.chosen[0].connection == Connection("gpu01", "ubuntu", jump="ops@10.0.0.1", options=options)
    assert found.chosen[1].groups == ("gpu", "slurm-node")
    assert found.chosen[1].source == Where(str(tmp_path / "hosts"), 3)
    assert [host.name for host in found.skipped] == ["mgmt01"]


@pytest.mark.parametrize("name", ["hosts", "hosts.ini", "inventory.cfg", "production", "hosts.example"])
def test_an_ini_inventory_of_any_name(name: str, tmp_path: Path) -> None:
    assert load([written(tmp_path, "gpu1\n\n[all:vars]\ngpuready={}\n", name)]).chosen[0].name == "gpu1"
    assert load([written(tmp_path, "# us\ngpu1 gpuready={}\n", name)]).chosen[0].name == "gpu1"


@pytest.mark.parametrize("name", ["hosts", "hosts.yaml", "hosts.cfg"])
def test_yaml_stays_yaml(name: str, tmp_path: Path) -> None:
    text = "all:\n  vars:\n    gpuready: {}\n    x: |\n      [a]\n      b\n  hosts:\n    gpu1:\n"
    assert load([written(tmp_path, text, name)]).chosen[0].name == "gpu1"
    with pytest.raises(SpecErrors, match=f"{name}:2: not YAML"):
        load([written(tmp_path, "all:\n  hosts: a: b\n", name)])


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[g]\nh\n[g:var]\na=1\n", 3, "section [g:var]: not accepted; allowed: [GROUP], [GROUP:vars]"),
        ("[g]\nh\n[two words]\n", 3, "not a section; given '[two words]'"),
        ("[g:vars]\na=1\n", 1, "no such group; given 'g'; allowed: a group with a section: [g]"),
        ("[g]\nh\n[all:children]\ng\nlost\n", 5, "no such group; given 'lost'"),
        ("[g:children]\na b\n", 2, "[g:children]: not a group name; given 'a b'; allowed: one group a line"),
        ("[g]\nh a=1 b = hunter2\n", 2, "host h: word 3 is not a variable; allowed: one host a line, then NAME=VALUE"),
        ("[g]\nh ansible_become_password= hunter2\n", 2, "host h: word 3 is not a variable"),
        ("[g]\nh\n[g:vars]\nhunter2\n", 4, "[g:vars]: not a variable; allowed: NAME=VALUE"),
        ("[g]\nh a='hunter2\n", 2, "the line of a host: no closing quotation; allowed: one host a line"),
        ("[g]\nh[1:\n", 2, "the range has no closing ]"),
        ("[g]\nh;id\n", 2, "not a host name; given 'h;id'"),
        ("[g]\nh:70000\n", 2, "not a port"),
        ("[g]\nh a={[]:1}\n", 2, "a: unhashable type: 'list'; allowed: a Python literal, or text"),
        ("[g]\nh a=" + "[" * 100 + "]" * 100 + "\n", 2, "a: nested more than 64 levels deep"),
        ("[g]\nh a=(" + "1," * 60000 + ")\n", 2, "a: longer than 100000 characters"),
        ("[g]\nh gpuready={} ansible_port=0x" + "f" * 5000 + "\n", 2, "ansible_port: the number is too large"),
        ("[a:children]\nb\n[b:children]\na\n", 4, "a group is inside itself"),
        ("[g]\nh gpuready=\"{'hardware': {'gpus': 'x'}}\"\n", 2, "hardware.gpus: not accepted; given 'x'"),
        ("[g]\nh gpuready={}\n[g:vars]\ngpuready={'ldso': 5}\n", 4, "ldso: not accepted; given 5"),
        ("[g]\nh gpuready={} ansible_port=x\n", 2, "ansible_port: not accepted; given 'x'"),
        ("[g]\nh gpuredy={}\n", 2, "unknown variable gpuredy"),
        ("[g:vars]\ngpuready={\n[g]\nh\n", 2, "gpuready: not a Python literal; allowed: gpuready={} or"),
        ("[g]\nh gpuready=\n", 2, "gpuready is empty; allowed: gpuready={} or, with double quotes"),
        ("[g:vars]\ngpuready=\n[g]\nh\n", 2, "gpuready is empty; allowed: gpuready={} or gpuready={'hardware'"),
        ("[g]\nh gpuready={'hardware': {'gpus': 8}}\n", 2, "host h: gpuready has blanks, and no quotes around it"),
        ("[g]\nh gpuready={'hardware':{'gpus':8}}\n", 2, "its keys need quotes; allowed: gpuready={} or, with"),
        ("[g:vars]\ngpuready={toolkit: {}}\n[g]\nh\n", 2, "gpuready: its keys need quotes; allowed: gpuready={} or"),
        ("[g]\nh\n[g:vars]\ngpuready={'driver': true}\n", 4, "gpuready: not a Python literal: write True, not true;"),
        ("[g]\nh gpuready=\"{'a': null, 'b': false}\"\n", 2, "write None, not null, False, not false; allowed: "),
        ("[g:vars]\ngpuready=null\n[g]\nh\n", 2, "gpuready: not a Python literal: write None, not null;"),
        ("[g:vars]\ngpuready={'a': 'is true'\n[g]\nh\n", 2, "gpuready: not a Python literal; allowed:"),
        ("[g:vars]\ngpuready=\"{'ldso': 'off'}\"\n[g]\nh\n", 2, "gpuready: the quotes around it make it text;"),
        ("[g]\nh gpuready={} // first\n", 2, "host h: word 3 is not a variable"),
        ("[g]\nh gpuready.hardware.gpus=8\n", 2, "unknown variable gpuready.hardware.gpus; allowed: gpuready"),
        ("[g]\nh\n[g:vars\na=hunter2\n", 3, "the section has no closing ]; given '[g:vars'; allowed: [GROUP], [G"),
        ("[g\nh\n[i]\nj\n", 1, "the section has no closing ]; given '[g'; allowed: [GROUP], [GROUP:vars]"),
        ("[g ]\nh\n", 1, "not a section; given '[g ]'"),
        ("[g] ; hunter2\nh\n[i]\nj\n", 1, "text after the section; given '[g]'; allowed: a comment with #"),
        (
            "[train]\nh\n[trian:vars]\na=1\n",
            3,
            "no such group; given 'trian'; allowed: a group with a section: [trian]",
        ),
        ("[train]\nh\n[all:children]\ntrian\n", 4, "or in a file that an earlier -i names; did you mean 'train'?"),
        ("[kube-node]\nh\n[all:children]\nkube-controlplane\n", 4, "a group with a section: [kube-controlplane]"),
        ("[g]\nh1\n[all:children]\nh1\n", 4, "a host, not a group; given 'h1'"),
        ("[g]\ngpu[01-16]\n", 2, "with FIRST not above LAST, such as gpu[01:16]; did you mean 'gpu[01:16]'?"),
        ("[g]\ngpu{1..4}-ib\n", 2, "(letters, digits, . _ -) or an IP address; did you mean 'gpu[1:4]-ib'?"),
        ("[g]\nadmin@h\n", 2, "or an IP address; the login is the variable ansible_user"),
        ("[g]\nh a=1 \x1b[2J\n", 2, "control character"),
    ],
)
def test_what_is_wrong_and_where(text: str, line: int, says: str, tmp_path: Path) -> None:
    source = written(tmp_path, text)
    with pytest.raises(SpecErrors) as caught:
        load([source])
    message = str(caught.value)
    assert message.startswith(f"{source}:{line}: ") and says in message
    assert len(message.splitlines()) == 1 and "hunter2" not in message and "\x1b" not in message


def test_an_earlier_file_may_declare_the_group(tmp_path: Path) -> None:
    """Sites keep their hosts in several files: without the one that declares the group, the message asks for it."""
    first, second = tmp_path / "storage", tmp_path / "gpus"
    first.write_text("[lustre-client]\nh1\n")
    second.write_text("[lustre]\nh2 gpuready={}\n[mounts:children]\nlustre\nlustre-client\n")
    assert [host.name for host in load([str(first), str(second)]).chosen] == ["h2"]
    with pytest.raises(SpecErrors, match=r"\[lustre-client\], here or in a file that an earlier -i names"):
        load([str(second)])


def test_a_range_at_the_beginning_of_a_line_is_no_section(tmp_path: Path) -> None:
    found = load([written(tmp_path, "[g]\n[1:3] gpuready={}\n[a:b]-ib gpuready={}\n")])
    assert [host.name for host in found.chosen] == ["1", "2", "3", "a-ib", "b-ib"]


def test_how_to_choose_a_host_is_said_in_ini(tmp_path: Path, exits: Exits) -> None:
    source = written(tmp_path, "[g]\na\nb\n")
    with pytest.raises(NothingChosen) as caught:
        load([source])
    assert caught.value.remedy.startswith("add `gpuready={}` to a host's line, or below [GROUP:vars]")
    shown = exits(0, "inventory", "-i", source, "-i", "c,").out
    assert "skipped  a,b: no gpuready value in the inventory\n  fix:     add `gpuready={}` to" in shown


def test_every_wrong_line_is_shown(tmp_path: Path) -> None:
    with pytest.raises(SpecErrors) as caught:
        load([written(tmp_path, "[g]\na b\nc\nd[\n[g:vars]\ne\n[x:y]\nignored here\n[z:children]\nlost\n")])
    assert [error.where.line for error in caught.value.errors] == [2, 4, 6, 7, 10]


PASSWD = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"


def test_a_file_that_is_neither_ini_nor_yaml(tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match="passwd: not an inventory") as caught:
        load([written(tmp_path, PASSWD, "passwd")])
    assert "nobody" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[g]\n" + "h a='x' b={1:2}\n" * 30_000,
        "[" * 2_000_000,
        "[g]\n" + "h" * 4_000_000,
        "[g]\nh a=" + "-" * 90_000 + "1\n",
        "[g]\nh a=" + "(" * 90_000 + "\n",
        "[g]\nh a=" + "1+" * 45_000 + "1\n",
        "[g]\nh[1:99999] " + " ".join(f"v{n}=1" for n in range(100)),
        "[g:children]\n" + "".join(f"g{n}\n[g{n}:children]\n" for n in range(20_000)) + "end\n[end]\nh\n",
        "\x85" * 1_000_000,
    ],
    ids=["lines", "brackets", "a long name", "signs", "open", "sums", "range and variables", "chain", "empty lines"],
)
def test_hostile_files_end_soon(text: str, tmp_path: Path) -> None:
    source = written(tmp_path, text)
    began = time.process_time()
    with pytest.raises((SpecErrors, InventoryError)):
        load([source])
    assert time.process_time() - began < 20

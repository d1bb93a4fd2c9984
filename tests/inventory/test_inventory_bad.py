"""Bad inventories: each ends in exit code 5 and one message with file, line, what was given and what is allowed."""

import datetime
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuready.base.errors import GpureadyError, InventoryError, SpecErrors
from gpuready.inventory.hosts import load
from gpuready.inventory.source_values import Shown
from tests.command import write_hosts

TODAY = datetime.date(2026, 11, 1)


@dataclass(frozen=True)
class Bad:
    """An inventory, and what its message says: the line (0: the file as a whole) and these words."""

    text: str | bytes
    line: int
    says: tuple[str, ...]


def spec(block: str, line: int, *says: str) -> Bad:
    """A host with a ``gpuready:`` block; ``line`` counts within the block, from 1."""
    indented = "\n".join(f"      {row}" for row in block.split("\n"))
    text = f"# line 1\nall:\n  hosts: {{n1: }}\n  vars:\n    gpuready:\n{indented}\n"
    return Bad(text, line + 5, says)


CHOSEN = "  vars: {gpuready: {}}\n"


def host(name: str, *says: str) -> Bad:
    return Bad(f"all:\n  hosts:\n    {name}:\n", 3, says)


def variable(row: str, *says: str) -> Bad:
    return Bad(f"all:\n  hosts:\n    n1:\n      {row}\n{CHOSEN}", 4, says)


def each(form: Callable[..., Bad], text: str, values: list[Any], *says: str) -> list[Bad]:
    """A case for each value, which takes the place of VALUE in ``text``."""
    return [form(text.replace("VALUE", json.dumps(value)), f"given {Shown(value)!r}", *says) for value in values]


def first_line(block: str, *says: str) -> Bad:
    return spec(block, 1, *says)


def in_file() -> Iterator[Bad]:
    """The cases of bad_specs.yaml, whose head of two lines explains the form."""
    block: list[str] = []
    for row in Path(__file__).with_name("bad_specs.yaml").read_text("utf-8").splitlines()[2:]:
        text, mark, says = row.partition("#!")
        block += [text.rstrip()] if text else []
        if mark:
            yield spec("\n".join(block), len(block), *says.strip().split(" ... "))
            block = []


SPECS = [
    *in_file(),
    spec("- toolkit", 0, "gpuready", "given a list of 1", "allowed: a mapping with hardware"),
    spec("hardware:\n  model: |\n    H200\n    H100", 2, "hardware.model", "allowed: one line of text"),
    spec(
        "verify:\n waive:\n - check: gpu.count\n   until: 2027-01-01", 3, "verify.waive[0].reason is missing; allowed:"
    ),
    spec("ldso: !vault |\n  $ANSIBLE_VAULT;1.1;AES256", 1, "cannot decrypt ansible-vault", "env:, file: or cmd:"),
    spec("maintenance: {spread_by: rack}", -2, "host n1 has no plain value for the variable rack", "rack: NAME for ev"),
]


def test_hosts_without_a_value_of_spread_by_are_one_error(tmp_path: Path) -> None:
    source = write_hosts(tmp_path, "all: {hosts: {'gpu[01:60]': {gpuready: {maintenance: {spread_by: rack}}}}}\n")
    with pytest.raises(SpecErrors) as caught:
        load([source])
    (line,) = str(caught.value).splitlines()
    assert "60 hosts have no plain value for the variable rack (gpu01, gpu02, " in line and " and 48 more)" in line


COMMANDS = ["/a;reboot", "/a`id`", "/a|b", "/a&", "/$(id)"]
VALUES = {
    "hardware: {gpus: VALUE}": (["8", 0, True, 1.5], "allowed: auto | none | a number from 1"),
    "toolkit: {hold: VALUE}": (["yes", None], "allowed: true | false"),
    "toolkit: {version: VALUE}": (["1.20.0-1", "1.20.0;reboot", "1.20.0\n"], "X.Y.Z"),
    "toolkit: {floor_exception: {reason: x, until: VALUE}}": (["soon", "2026-02-30"], "allowed: a date, such as"),
    "toolkit: {repo: {proxy: VALUE}}": (["proxy:3128", 'http://p:1";'], "allowed: http(s)://host:port, or env:"),
    "toolkit: {repo: {url: VALUE}}": (
        ["a.org", "file:///etc", "https://h/a b", 'https://h/"x', "https://h/\nTrusted: yes", "https://h/$(id)"],
        "toolkit.repo.url: not a plain repository URL",
    ),
    "runtimes: {docker: {shm_size: VALUE}}": (["big", 0, "8g; id"], "allowed: a size such as 8g"),
    "verify: {image: VALUE}": (["--privileged", "a b"], "allowed: an image reference"),
    "verify: {thresholds: {nccl: VALUE}}": ([0, 80], "a fraction above 0"),
    "maintenance: {batch: VALUE}": ([0, "200%"], "allowed: a number from 1, a percentage"),
    "ldso: VALUE": (["/usr/local/nvidia/lib64", True], "allowed: auto | off | a list"),
    "ldso: [VALUE]": (
        ["/", "/usr/../etc", "/usr/lib/*", "/usr/my lib", "/a\n/b", "include /etc/x", "/usr/$HOME", *COMMANDS],
        "ldso[0]: not a plain absolute directory",
    ),
}  # fmt: skip
for text, (values, says) in VALUES.items():
    SPECS += each(first_line, text, values, says)

HOST = "allowed: a host name"
STRUCTURE = [
    Bad("all:\n\thosts:\n", 2, ("a tab indents this line", "allowed: spaces")),
    Bad("all:\n  hosts:\n    a:\n\t  b: 1\n", 4, ("a tab indents this line",)),
    Bad("all:\n  hosts: [a\n  vars:\n", 3, ("not YAML", "allowed: key: value")),
    Bad("all:\n  hosts: a: b\n", 2, ("not YAML", "mapping values are not allowed")),
    Bad("all: {hosts: {a: }}\n---\nall: {hosts: {b: }}\n", 2, ("a second document", "allowed: one")),
    Bad(b"\x7fELF\x02\x01\x01\x00\x00", 1, ("control character", "allowed: UTF-8 text")),
    Bad("all:\n  hosts: {a\0: }\n", 2, ("control character", "given '\\x00'")),
    Bad("all:\n  # f\u00fcr\n".encode("latin-1"), 2, ("not a text file", "given 'byte 0xfc'", "allowed: UTF-8")),
    Bad("all: {hosts: {a: }}".encode("utf-16"), 1, ("not a text file", "allowed: UTF-8")),
    Bad(
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
        6,
        ("too many values", "allowed: at most 500000"),
    ),
    Bad("all: &a\n  vars: {x: *a}\n", 2, ("*a is inside its own anchor",)),
    Bad("all:\n  vars: *nowhere\n", 2, ("no anchor",)),
    Bad("all: " + "[" * 10_000, 1, ("nested too deeply", "allowed: at most 64 levels")),
    Bad("all: !!python/object/apply:os.system ['id']\n", 1, ("tag; given '!!python/object/apply:os.system'; allowed",)),
    Bad("all:\n  vars: {x: !env HOME}\n", 2, ("unknown YAML tag; given '!env'; allowed: plain YAML",)),
    Bad("all:\n  ? {a: b}\n  : c\n", 2, ("the key is a mapping or list",)),
    Bad("all:\n  vars: {<<: x}\n", 2, ("<< needs a mapping",)),
    Bad("all:\n  hosts:\n    a: {}\n    a: {}\n", 4, ("duplicate key 'a', first at hosts.yaml:3", "each key once")),
    Bad('{"all": {"hosts": {}},\n "all": {}}', 2, ("duplicate key 'all'",)),
    Bad("- a\n- b\n", 1, ("not an inventory", "given a list of 2", "a mapping of groups")),
    Bad("gpu1 gpu2", 1, ("not an inventory", "given 'gpu1 gpu2'", "a mapping of groups")),
    Bad("gpu:\n  - a\n", 1, ("group gpu", "given a list of 1", "a mapping with hosts, vars, children")),
    Bad("all:\n  hosts:\n    - a\n", 2, ("hosts of group all: not accepted; given a list", "a colon after each name")),
    Bad("all:\n  vars: [a]\n", 2, ("vars of group all", "given a list of 1", "VARIABLE: value")),
    Bad("all:\n  hosts:\n    a: [1]\n", 3, ("host a is not a mapping", "given a list of 1", "variables as key: value")),
    Bad(
        "all:\n  host: {a: }\n", 2, ("group all; given 'host'; allowed: hosts, vars, children; did you mean 'hosts'?",)
    ),
    Bad("all:\n  hosts: {a: }\n  gpuready: {}\n", 3, ("gpuready is a variable, not a part of a group", "below vars")),
    Bad("gpuready:\n  toolkit: {}\n", 2, ("gpuready is a variable, not a part of a group", "below vars")),
    Bad("hosts:\n  a: {gpuready: {}}\n", 1, ("not below a group; given 'hosts'; allowed: all: {hosts: ...}",)),
    Bad("all:\nhosts:\n- a\n- b\n", 2, ("not below a group; given 'hosts'",)),
    host("a: {vars: {gpuready: {}}}\n    b", "vars below a host", "allowed: HOST: {gpuready: ...}"),
    host("gpuready: {}\n    b", "a variable among the hosts; given 'gpuready'; allowed: indented"),
    host("ansible_host: b\n    b", "a variable among the hosts; given 'ansible_host'"),
    Bad("g:\n  a: {gpuready: {}}\n", 2, ("given 'a'; allowed: hosts, vars, children; a host stands below hosts",)),
    Bad("all:\n  hosts: {'gpu[1-4]': }\n", 2, ("[1-4] is not a range", "did you mean 'gpu[1:4]'?")),
    Bad("7: {hosts: {a: }}\n", 1, ("not a group name", "given 7", "numbers in quotes")),
    Bad("all:\n  children:\n    ../../etc: \n", 3, ("not a group name", "given '../../etc'", "text without /")),
    Bad("a: {children: {b: }}\nb:\n  children:\n    c: {children: {a: }}\n", 4, ("a > b > c > a", "without a cycle")),
    Bad("a:\n  children: {a: }\n", 2, ("a group is inside itself", "a > a")),
    Bad("a:\n  children: {all: }\n", 2, ("a group is inside itself",)),
    Bad("ungrouped:\n  children:\n    a:\n", 3, ("ungrouped", "hosts and vars only")),
    Bad(
        "a:\n  vars: {ansible_group_priority: high}\n", 2, ("ansible_group_priority", "given 'high'", "a whole number")
    ),
    host("gpu[0:999999999]", "more than 100000 hosts", "given 'gpu[0:999999999]'", "[FIRST:LAST]"),
    host("g[0:999]-[0:999]", "more than 100000 hosts"),
    host("gpu[5:1]", "empty range", "given 'gpu[5:1]'", "FIRST not above LAST"),
    host("gpu[]", "is not a range", "[FIRST:LAST]"),
    host('"gpu[1:5"', "no closing ]", "[FIRST:LAST]"),
    host("gpu[01:100]", "equal length", "[FIRST:LAST]"),
    host("gpu[1:5:0]", "empty range", "[FIRST:LAST]"),
    host("gpu[a:5]", "is not a range"),
    host("10", "not a host name", "given 10;", "numbers in quotes"),
    host("~", "not a host name", "given null"),
    host("gpu:70000", "not a port", "given 'gpu:70000'", "1 to 65535"),
]
CONNECTIONS = [
    variable("ansible_host: 10.0", "given 10.0", HOST),
    variable("ansible_ssh_host: 'a b'", "ansible_ssh_host", HOST),
    variable("ansible_host: '{{ ip }}'", "does not evaluate templates", "a plain value"),
    variable("ansible_user: !vault abc", "cannot decrypt ansible-vault", "env:, file: or cmd:"),
    variable("ansible_port: 010", "ansible_port: YAML reads 010 as 8", "allowed: 8, or quoted text"),
    variable("ansible_ssh_port: 1:30", "ansible_ssh_port: YAML reads 1:30 as 90"),
    variable("ansible_ssh_private_key_file: 'k;id'", "private_key_file", "a plain path"),
    variable('ansible_ssh_private_key_file: "k\\nProxyCommand id"', "a plain path"),
    variable("ansible_become_method: su", "given 'su'", "allowed: sudo"),
    variable("ansible_become_user: admin", "given 'admin'", "allowed: root"),
    variable("ansible_become_password: hunter2", "not supported", "NOPASSWD"),
    variable("ansible_become_pass: hunter2", "not supported", "NOPASSWD"),
    variable("ansible_connection: docker", "given 'docker'", "allowed: ssh"),
    variable("ansible_ssh_common_args: [-J, a]", "given a list of 2", "-F FILE, -J HOST, -o Keyword=value"),
    variable("ansible_ssh_common_args: '-o \"a'", "no closing quotation", "-F FILE"),
    variable("ansible_ssh_common_args: -W x", "-W is not supported", "-F FILE"),
    variable("ansible_ssh_common_args: -i ~/k", "-i is not supported", "allowed: the variable ansible_ssh_private_key"),
    variable("ansible_ssh_common_args: -p2222", "-p2222 is not supported", "allowed: the variable ansible_port"),
    variable("ansible_ssh_extra_args: -o User=a -l b", "-l is not supported", "allowed: the variable ansible_user"),
    variable("ansible_ssh_common_args: '-4'", "-4 is not supported", "allowed: -o AddressFamily=inet"),
    variable("ansible_ssh_args: -C -6", "-6 is not supported", "allowed: -o AddressFamily=inet6"),
    variable("ansible_ssh_common_args: -o Compression", "is not supported", "Keyword=value"),
    variable("ansible_ssh_common_args: -o 'ProxyCommand=touch x'", "ProxyCommand runs a command", "--allow-exec"),
    variable("ansible_ssh_common_args: -o PKCS11Provider=/tmp/x.so", "runs a command", "--allow-exec"),
    variable("ansible_ssh_common_args: -o Include=/tmp/x", "is not supported"),
    variable("ansible_ssh_common_args: -J 'a;id'", "'a;id' is not a jump host", "[USER@]HOST"),
    variable("ansible_ssh_common_args: -J -oProxyCommand=id", "is not a jump host"),
    variable("ansible_ssh_common_args: -F '$(id)'", "a plain path after -F"),
    variable('ansible_ssh_common_args: "-J a\\n"', "-F FILE"),
    variable("ansible_ssh_common_args: '-J {{ jump }}'", "does not evaluate templates"),
]
NAMES = [
    "gpu 1",
    "-oProxyCommand=id",
    "gpu;reboot",
    "gpu$(id)",
    "`id`",
    "gpu|id",
    "../etc/passwd",
    "root@gpu",
    "gpu\nid",
]
ADDRESSES = ["10.0.0.256", "10.0.1", "2001:db8::zz", "{{ name }}", ""]
STRUCTURE += each(host, "VALUE", [*NAMES, *ADDRESSES], "not a host name", HOST)
CONNECTIONS += each(variable, "ansible_host: VALUE", ["a b", "a;id", "-oProxyCommand=id", "10.0.0.300"], HOST)
CONNECTIONS += each(variable, "ansible_user: VALUE", ["a$(id)", "-root", 1000], "allowed: a plain user name")
CONNECTIONS += each(variable, "ansible_port: VALUE", [0, 65536, "ssh", True], "allowed: 1 to 65535")


@pytest.mark.parametrize("bad", [*SPECS, *STRUCTURE, *CONNECTIONS], ids=lambda bad: " ".join(bad.says)[:60])
def test_a_bad_inventory_is_one_clear_message(bad: Bad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = bad.text if isinstance(bad.text, bytes) else bad.text.encode()
    Path("hosts.yaml").write_bytes(data)
    with pytest.raises(SpecErrors) as caught:
        load(["hosts.yaml"], today=TODAY)
    message = str(caught.value)
    assert caught.value.exit_code == 5 and caught.value.kind == "spec"
    where = f"hosts.yaml:{bad.line}: " if bad.line else "hosts.yaml: "
    assert all(line.startswith("hosts.yaml") for line in message.splitlines())
    assert where in message
    for words in bad.says:
        assert words in message
    assert "hunter2" not in message and message.isascii() and "\x1b" not in message


SOURCES = {
    "empty": ("hosts.yaml", "", "the inventory is empty"),
    "only comments": ("hosts.yaml", "# nothing\n---\n", "the inventory is empty"),
    "empty mapping": ("hosts.yaml", "{}", "the inventory is empty"),
    "null": ("hosts.yaml", "~", "the inventory is empty"),
    "no hosts": ("hosts.yaml", "all:\n", "has no hosts"),
    "groups without hosts": ("hosts.yaml", "all: {children: {gpu: {vars: {a: 1}}}}", "has no hosts"),
    "empty INI": ("hosts.ini", "# nothing\n", "the inventory is empty"),
    "TOML": ("hosts.toml", "[all]", "not supported yet: TOML"),
    "pyinfra": ("hosts.py", "hosts = []", "pyinfra inventory"),
    "plugin": ("aws_ec2.yml", "plugin: amazon.aws.aws_ec2\n", "not supported yet: inventory plugin"),
    "terraform": (
        "tf.json",
        '{"ips": {"sensitive": false, "type": "string", "value": "10.0.0.1"}}',
        "tf.json: Terraform: no output gpuready_inventory",
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_file_that_is_not_an_inventory(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, text, says = SOURCES[name]
    monkeypatch.chdir(tmp_path)
    Path(file).write_text(text)
    with pytest.raises(InventoryError) as caught:
        load([file])
    assert caught.value.exit_code == 5
    assert says in str(caught.value) and ("hosts" in says or file in str(caught.value))
    if "empty" in says or "has no hosts" in says:
        assert "gpuready init - --host gpu01" in caught.value.remedy


@pytest.mark.parametrize("there", [True, False])
def test_the_fix_names_pyinfras_command_where_there_is_one(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pipx and uv put it beside their Python, and not on the PATH."""
    path = tmp_path / "my hosts.py"
    path.touch()
    if there:
        (tmp_path / "pyinfra").touch()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(InventoryError) as caught:
        load([str(path)])
    run = f"; or run {tmp_path}/pyinfra -y '{path}' gpuready.pyinfra.converge" if there else ""
    assert caught.value.remedy == f"gpuready init writes a YAML file{run}"


OTHER_FILES = {
    "ansible.cfg": "[defaults]\nhost_key_checking = False\nforks = 20\n[ssh_connection]\npipelining = True\n",
    "my.ini": "[client]\nhost=localhost\nuser=me\npassword=hunter2\n",
    "docker-compose.yml": "services:\n  web: {image: nginx}\n  db: {image: postgres}\nvolumes: {data: {}}\n",
    "pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: x, labels: {a: b}}\nspec: {containers: [{name: a}]}\n",
    "package.json": '{"name": "x", "version": "1", "scripts": {"a": "b", "c": "d"}}',
    "hosts": "127.0.0.1 localhost\n10.0.0.1 gpu1 gpu1.example.com\n10.0.0.2 gpu2\n",
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_another_kind_of_file_is_one_error(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(OTHER_FILES[name])
    with pytest.raises(SpecErrors) as caught:
        load([str(tmp_path / name)])
    (error,) = caught.value.errors
    assert re.fullmatch(r"not an inventory; the first of [2-9] errors: .+", error.message)
    assert "hunter2" not in str(error)


def test_an_inventory_with_several_errors_shows_each(tmp_path: Path) -> None:
    (tmp_path / "hosts.ini").write_text("[gpu]\ngpu1\ngpu2 a b\ngpu3 c d\n")
    (tmp_path / "hosts.yaml").write_text("gpu: {vars: {}, a: {}, b: {}}\n")
    (tmp_path / "groups.ini").write_text("[gpu:children]\na100\nh100\n")
    for name in ("hosts.ini", "hosts.yaml", "groups.ini"):
        with pytest.raises(SpecErrors) as caught:
            load([str(tmp_path / name)])
        assert len(caught.value.errors) == 2 and "not an inventory" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("nowhere.yaml", "no such inventory"),
        ("gpu1", "with a comma: -i gpu1,"),
        ("gpu1:2222", "with a comma: -i gpu1:2222,"),
        ("@docker/x", "not supported yet"),
        ("@lcal", "did you mean @local"),
        ("hosts.py", "-i takes a file that exists$"),
        ("hosts.yaml:22", "-i takes a file that exists$"),
        ("", "no such inventory"),
        ("a\0b", "no such inventory"),
        ("x" * 5000, "no such inventory"),
    ],
)
def test_a_source_that_does_not_exist(source: str, says: str) -> None:
    with pytest.raises(InventoryError, match=says):
        load([source])


def test_the_inventories_beside_a_source_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("hosts.yaml", "notes.txt", "old.ini"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InventoryError) as wrong:
        load(["inventory.yaml"])
    assert wrong.value.remedy == "check the path; there are: hosts.yaml, old.ini; gpuready init writes an inventory"


@pytest.mark.parametrize(
    "source",
    [
        "a b,",
        "root@,",
        "-oProxyCommand=id,",
        "a;id@host",
        "$(id)@host",
        "host,1.2.3.400",
        "h[1:2,",
        "user@host:x",
        "h:70000,",
    ],
)
def test_bad_host_list(source: str) -> None:
    with pytest.raises(SpecErrors) as caught:
        load([source])
    assert f"-i {source}: " in str(caught.value) and "allowed: " in str(caught.value)


def test_all_problems_at_once_and_each_once(tmp_path: Path) -> None:
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "group_vars").mkdir()
    hosts = "g:\n  hosts:\n    n[1:5]:\n    m: {ansible_port: x}\n  vars: {gpuready: {ldso: 5}}\n"
    (tmp_path / "group_vars" / "g.yml").write_text("gpuready:\n  hardware: {gpus: x}\n")
    (tmp_path / "host_vars" / "n3.yml").write_text("gpuready:\n\n  verify:\n    levle: smoke\n")
    with pytest.raises(SpecErrors) as caught:
        load([write_hosts(tmp_path, hosts)])
    places = [(Path(e.where.file).name, e.where.line) for e in caught.value.errors]
    assert places == [("g.yml", 2), ("n3.yml", 4), ("hosts.yaml", 4), ("hosts.yaml", 5)]


def test_very_many_problems_are_cut(tmp_path: Path) -> None:
    rows = "".join(f"    n{n}: {{ansible_port: x}}\n" for n in range(200))
    with pytest.raises(SpecErrors) as caught:
        load([write_hosts(tmp_path, f"all:\n  hosts:\n{rows}{CHOSEN}")])
    assert len(caught.value.errors) == 51 and "150 more problems" in str(caught.value)


def test_a_secret_command_does_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    block = f"{{toolkit: {{repo: {{proxy: 'cmd:touch {mark}'}}}}}}"
    with pytest.raises(GpureadyError):
        load([write_hosts(tmp_path, f"all: {{hosts: {{a: }}, vars: {{gpuready: {block}}}}}")])
    assert not mark.exists()


def test_control_characters_of_a_key_do_not_reach_the_terminal(tmp_path: Path) -> None:
    with pytest.raises(SpecErrors) as caught:
        load([write_hosts(tmp_path, 'all: {hosts: {a: }, vars: {gpuready: {"\\e[31mx\\nok": 1}}}')])
    assert "\x1b" not in str(caught.value) and len(str(caught.value).splitlines()) == 1


def test_all_errors_of_one_host_are_shown(tmp_path: Path) -> None:
    row = "n1: {ansible_port: x, ansible_user: 5, ansible_become_user: me, gpuready: {ldso: 5, hardware: {gpus: x}}}"
    with pytest.raises(SpecErrors) as caught:
        load([write_hosts(tmp_path, f"all: {{hosts: {{{row}}}}}")])
    assert len(caught.value.errors) == 5


def test_a_bad_vars_file_is_shown_once(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "hosts.yaml").write_text("g: {hosts: {'n[1:9]': }}")
    for text, says in (
        ("a: 1\n\tb: 2", "a tab"),
        ("- a", "the file is not accepted; given a list of 1"),
        ("a: 1\na: 2", "duplicate"),
    ):
        (tmp_path / "group_vars" / "g.yml").write_text(text)
        with pytest.raises(SpecErrors, match=says) as caught:
            load([str(tmp_path / "hosts.yaml")])
        assert len(caught.value.errors) == 1 and "g.yml:" in str(caught.value)

"""Loading: connections, the merge of gpuready, notes, --limit, and the other kinds of sources."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpuready.base.errors import InventoryError, SpecErrors, Where
from gpuready.inventory.hosts import Connection, HostEntry, load
from tests.command import Exits


def chosen(sources: list[str], **options: Any) -> tuple[HostEntry, ...]:
    """The chosen hosts."""
    return load(sources, **options).chosen


def write(folder: Path, **files: str) -> str:
    """Write files (``group_vars__all`` is group_vars/all.yml); the inventory is ``hosts``."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return str(folder / "hosts.yaml")


def one(folder: Path, variables: str, **options: Any) -> HostEntry:
    """The one host of an inventory, with these variables in flow style."""
    text = f"all: {{hosts: {{n1: {{{variables}}}}}, vars: {{gpuready: {{}}}}}}"
    (entry,) = chosen([write(folder, hosts=text)], **options)
    return entry


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ("", Connection("n1")),
        ("ansible_host: 10.0.0.1, ansible_user: ubuntu, ansible_port: 2222", Connection("10.0.0.1", "ubuntu", 2222)),
        ("ansible_port: '2222', ansible_user: ", Connection("n1", port=2222)),
        ("ansible_host: '2001:db8::1'", Connection("2001:db8::1")),
        ("ansible_host: 'fe80::1%eth0'", Connection("fe80::1%eth0")),
        ("ansible_host: a, ansible_ssh_host: b, ansible_user: c, ansible_ssh_user: d", Connection("b", "d")),
        ("ansible_ssh_port: 1, ansible_port: 2", Connection("n1", port=1)),
        ("ansible_ssh_private_key_file: ~/.ssh/lab key", Connection("n1", key="~/.ssh/lab key")),
        ("ansible_private_key_file: k", Connection("n1", key="k")),
        ("ansible_become: true, ansible_become_method: sudo, ansible_become_user: root", Connection("n1")),
        ("ansible_connection: ssh", Connection("n1")),
        ("ansible_timeout: 60, ansible_ssh_timeout: '30'", Connection("n1", timeout=30)),
        ("ansible_ssh_extra_args: -o ConnectTimeout=20", Connection("n1", timeout=20)),
        ("ansible_ssh_args: -o 'connecttimeout 5' -o ConnectTimeout=20", Connection("n1", timeout=5)),
    ],
)
def test_connection(variables: str, expected: Connection, tmp_path: Path) -> None:
    entry = one(tmp_path, variables)
    assert entry.connection == expected and entry.notes == ()


CONF = {"config": "host x\n  Port 5\n"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("-F conf -J me@a:22,b", {**CONF, "jump": "me@a:22,b"}),
        ("-Fconf -Ja -oUser=me -C -vv -oCompression=yes", {**CONF, "jump": "a", "options": (("User", "me"),)}),
        ("-o ProxyJump=a -o 'ServerAliveInterval 5'", {"jump": "a", "options": (("ServerAliveInterval", "5"),)}),
        ("-J [2001:db8::1]:22", {"jump": "[2001:db8::1]:22"}),
        ("", {}),
    ],
)
def test_arguments_of_ssh(
    arguments: str, expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("conf").write_text("Host x # ours\n\tPort = 5\n  Compression yes\n")
    entry = one(tmp_path, f'ansible_ssh_common_args: "{arguments}"')
    assert entry.connection == Connection("n1", **expected) and entry.notes == ()


def test_of_all_arguments_of_ssh_the_first_counts(tmp_path: Path) -> None:
    args = "ansible_ssh_args: -C -o ControlMaster=auto -J a, ansible_ssh_extra_args: -J b -o Port=2"
    assert one(tmp_path, args).connection == Connection("n1", jump="a", options=(("Port", "2"),))


@pytest.mark.parametrize("value", ["0", "ten", "true", "3601", "-1", "1.5", "010"])
def test_a_timeout_that_is_none(value: str, tmp_path: Path) -> None:
    with pytest.raises(SpecErrors, match=r"ansible_timeout: not accepted; given .* allowed: seconds, 1 to 3600"):
        one(tmp_path, f"ansible_timeout: {value}")


def test_proxy_command_with_consent(tmp_path: Path) -> None:
    entry = one(tmp_path, "ansible_ssh_common_args: '-o ProxyCommand=\"ssh -W %h:%p b\"'", allow_exec=True)
    assert entry.connection.options == (("ProxyCommand", "ssh -W %h:%p b"),)


@pytest.mark.parametrize(("value", "shared"), [("b4", "b4"), ("12", "12"), ("true", "True"), ("1.5", "1.5")])
def test_what_hosts_are_spread_by(value: str, shared: str, tmp_path: Path) -> None:
    assert one(tmp_path, f"gpuready: {{maintenance: {{spread_by: rack}}}}, rack: {value}").spread == ("rack", shared)
    assert one(tmp_path, f"rack: {value}").spread is None


@pytest.mark.parametrize("value", ["", "[a]", "{a: b}", "'{{ x }}'", "' '"])
def test_what_hosts_cannot_be_spread_by(value: str, tmp_path: Path) -> None:
    with pytest.raises(SpecErrors, match="rack"):
        one(tmp_path, f"gpuready: {{maintenance: {{spread_by: rack}}}}, rack: {value}")


@pytest.mark.fault("sudo-password")
@pytest.mark.parametrize("name", ["ansible_become_password", "ansible_become_pass", "ansible_sudo_pass"])
def test_the_password_of_sudo_by_reference(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"GPUREADY_OURS_{name}", "hunter2")
    (tmp_path / "password").write_text(f"hunter3 {name}\n")
    by_name = one(tmp_path, f"{name}: 'env:GPUREADY_OURS_{name}'")
    reference = f"file:{tmp_path}/password"
    by_file = one(tmp_path, f"{name}: '{reference}'", allow_read=[reference])
    for entry, password in ((by_name, "hunter2"), (by_file, f"hunter3 {name}")):
        assert entry.connection.become_password is not None
        assert entry.connection.become_password.reveal() == password
        assert "hunter" not in repr(entry) and entry.notes == ()


@pytest.mark.fault("sudo-password")
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("hunter2", "ansible_become_password: not supported in clear text; allowed: env:GPUREADY_NAME, file:PATH"),
        ("12345", "ansible_become_password: not supported in clear text"),
        ("'{{ hunter2 }}'", "does not evaluate templates"),
        ("!vault hunter2", "cannot decrypt ansible-vault values"),
        ("'env:GPUREADY_NOT_SET'", "the secret's environment variable is not set; given 'env:GPUREADY_NOT_SET'"),
        ("'file:/nowhere'", "the command line does not allow the inventory to read this secret"),
        ("'env:HOME'", "given 'env:HOME'; allowed: env:GPUREADY_NAME, or --allow-read env:HOME"),
        ("'cmd:touch was-run'", "cmd: runs only with --allow-exec"),
    ],
)
def test_a_password_that_is_not_accepted(
    value: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecErrors, match=r"hosts\.yaml:1: ") as caught:
        one(tmp_path, f"ansible_become_password: {value}")
    assert says in str(caught.value) and "12345" not in str(caught.value)
    assert "hunter2" not in str(caught.value) or "{{" in value
    assert not Path("was-run").exists()


@pytest.mark.fault("sudo-password")
def test_what_is_wrong_with_hosts_that_are_not_chosen_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        "all: {hosts: {a: {gpuready: {}}, b: {ansible_become_password: hunter2}, c: {ansible_connection: local}, "
        "d: {ansible_become_password: 'cmd:touch was-run'}, e: {ansible_become_password: 'env:GPUREADY_NOT_SET'}}}"
    )
    found = load([write(tmp_path, hosts=text)], allow_exec=True)
    assert [entry.name for entry in found.chosen] == ["a"]
    assert [len(host.notes) for host in found.skipped] == [1, 1, 0, 0]
    assert not Path("was-run").exists()


def test_a_host_may_have_a_name_like_a_variable(tmp_path: Path) -> None:
    found = load([write(tmp_path, hosts="all: {hosts: {ansible_ctl: {gpuready: {}}}}")])
    assert [entry.name for entry in found.chosen] == ["ansible_ctl"]


def test_ignored_variables_are_a_note(tmp_path: Path) -> None:
    row = "ansible_hots: h, ansible_python_interpreter: /x, ansible_become: no, ansible_ssh_pass: pw, other: '{{ x }}'"
    entry = one(tmp_path, row)
    hint = "ansible_hots (did you mean 'ansible_host'?)"
    assert entry.notes == (f"ignored: ansible_become, {hint}, ansible_python_interpreter, ansible_ssh_pass",)


@pytest.mark.parametrize("name", ["gpuredy", "gpu_ready", "GPUready"])
def test_a_misspelt_gpuready_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(SpecErrors, match=rf"hosts\.yaml:1: unknown variable {name}; .*did you mean 'gpuready'"):
        one(tmp_path, f"{name}: {{hardware: {{gpus: 8}}}}")


def test_unused_variables_may_have_any_value(tmp_path: Path) -> None:
    one(tmp_path, "a: !vault x, b: '{{ c }}', c: !unsafe '{{', d: {1: [2, {yes: no}]}, 5: 6")


ENCRYPTED = "$ANSIBLE_VAULT;1.1;AES256\n6162\n"
DECRYPT = "--ansible --allow-exec: ansible-inventory decrypts the file"


def test_an_encrypted_file_of_secrets_beside_the_others_is_noted(tmp_path: Path) -> None:
    text = "all: {vars: {gpuready: {}}}\ng: {hosts: {a: }}\nk: {hosts: {b: }}"
    a, b = chosen([write(tmp_path, hosts=text, group_vars__g__vault=ENCRYPTED)])
    note = f"{tmp_path}/group_vars/g/vault.yaml: encrypted with ansible-vault, not read; {DECRYPT}"
    assert a.notes == (note,)
    assert b.notes == ()


@pytest.mark.parametrize("file", ["group_vars__all", "group_vars__g", "group_vars__vault", "group_vars__g__main"])
def test_an_encrypted_file_that_a_chosen_host_needs_is_an_error(file: str, tmp_path: Path) -> None:
    text = "all: {vars: {gpuready: {}}}\ng: {hosts: {a: }}\nvault: {hosts: {a: }}"
    source = write(tmp_path, hosts=text, **{file: ENCRYPTED})
    path = f"{tmp_path}/{file.replace('__', '/')}.yaml"
    with pytest.raises(SpecErrors, match=f"^{path}: encrypted with ansible-vault, but its variables apply to a; "):
        load([source])


def test_a_host_that_only_an_encrypted_file_could_choose_is_skipped(tmp_path: Path) -> None:
    text = "g: {hosts: {a: }}\nk: {hosts: {b: {gpuready: {}}}}"
    (a,) = load([write(tmp_path, hosts=text, group_vars__g=ENCRYPTED)]).skipped
    where = f"{tmp_path}/group_vars/g.yaml"
    assert a.reason == f"no gpuready value in the inventory (not read: {where}, encrypted with ansible-vault)"
    assert a.remedy.endswith(f"; or {DECRYPT}")


def test_gpuready_is_merged_key_by_key(tmp_path: Path) -> None:
    source = write(
        tmp_path,
        hosts="""
all:
  vars: {gpuready: {toolkit: {hold: false}, ldso: [/a, /b], runtimes: {docker: {shm_size: 8g, default_runtime: true}}}}
  children:
    gpu:
      vars: {gpuready: {ldso: [/c], runtimes: {docker: {shm_size: 1g}}, verify: }}
      hosts: {n1: {gpuready: {hardware: {gpus: 8}}}, n2: , n3: {gpuready: {runtimes: {docker: absent}, ldso: off}}}
""",
        group_vars__gpu="gpuready: {toolkit: {version: 1.19.1}}",
        host_vars__n2="gpuready: {toolkit: {version: 1.20.0, hold: true}}",
    )
    n1, n2, n3 = (entry.spec for entry in chosen([source]))
    assert (n1.hardware.gpus, n1.toolkit.version, n1.toolkit.hold, n1.ldso) == (8, "1.19.1", False, ("/c",))
    assert n1.runtimes.docker == n2.runtimes.docker and n1.runtimes.docker.shm_size == "1g"  # type: ignore[union-attr]
    assert n1.runtimes.docker.default_runtime  # type: ignore[union-attr]
    assert (n2.hardware.gpus, n2.toolkit.version, n2.toolkit.hold) == ("auto", "1.20.0", True)
    assert (n3.runtimes.docker, n3.ldso) == ("absent", "off")


def test_the_same_group_in_two_sources_is_merged(tmp_path: Path) -> None:
    form = "g: {hosts: {a: {gpuready: %s}}, vars: {gpuready: {toolkit: %s}}}"
    first = write(tmp_path / "1", hosts=form % ("{ldso: off}", "{hold: false}"))
    second = write(tmp_path / "2", hosts=form % ("{hardware: {gpus: 1}}", "{version: 1.19.1}"))
    spec = chosen([first, second])[0].spec
    assert (spec.ldso, spec.hardware.gpus, spec.toolkit.hold, spec.toolkit.version) == ("off", 1, False, "1.19.1")


def test_an_inherited_error_names_its_own_file_and_line(tmp_path: Path) -> None:
    of_all = "\n\ngpuready:\n  hardware:\n    modle: H200\n"
    source = write(tmp_path, hosts="g: {hosts: {a: {gpuready: {hardware: {gpus: 8}}}}}", group_vars__all=of_all)
    with pytest.raises(SpecErrors) as caught:
        chosen([source])
    assert caught.value.errors[0].where == Where(f"{tmp_path}/group_vars/all.yaml", 5)


def test_the_key_file_is_relative_to_the_inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "lab.asc").write_text("key")
    block = "gpuready: {toolkit: {repo: {key: keys/lab.asc}}}"
    sources = {
        "hosts": f"all: {{hosts: {{a: }}, vars: {{{block}}}}}",
        "deeper__hosts": "all: {hosts: {a: }}",
        "deeper__group_vars__all__x": "gpuready: {toolkit: {repo: {key: ../keys/lab.asc}}}",
    }
    write(tmp_path, **sources)
    expected = f"{tmp_path}/keys/lab.asc"
    assert chosen([str(tmp_path / "hosts.yaml")])[0].spec.toolkit.repo.key == expected
    monkeypatch.chdir(tmp_path)
    assert chosen(["hosts.yaml"])[0].spec.toolkit.repo.key == expected
    key = chosen(["deeper/hosts.yaml"])[0].spec.toolkit.repo.key
    assert Path(key).is_absolute() and Path(key).samefile(expected)


def test_order_groups_and_places(tmp_path: Path) -> None:
    text = "all:\n  vars: {gpuready: {}}\n  children:\n    z:\n      hosts:\n        b[1:2]: \n"
    text += "    a: {hosts: {c: , b1: }, children: {deep: {hosts: {d: }}}}\n  hosts: {top: }\n"
    entries = chosen([write(tmp_path, hosts=text)])
    assert [e.name for e in entries] == ["top", "b1", "b2", "c", "d"]
    assert [e.groups for e in entries] == [("ungrouped",), ("a", "z"), ("z",), ("a",), ("a", "deep")]
    assert [e.source.line for e in entries] == [8, 6, 6, 7, 7]
    assert chosen([str(tmp_path / "hosts.yaml")]) == entries


LIMITS = "all: {children: {gpu: {hosts: {'h[1:3]': }}, cpu: {hosts: {c1: }}}, hosts: {lone: }, vars: {gpuready: {}}}"


@pytest.mark.parametrize(
    ("limit", "names"),
    [
        (["gpu"], "h1 h2 h3"),
        (["h3,c1"], "h3 c1"),
        (["c1", "h3"], "h3 c1"),
        (["gpu", "!h2"], "h1 h3"),
        (["!gpu"], "lone c1"),
        (["h*:&gpu[0]"], "h1"),
        (["~h[12]"], "h1 h2"),
        ([], "lone h1 h2 h3 c1"),
    ],
)
def test_limit(limit: list[str], names: str, tmp_path: Path) -> None:
    assert " ".join(e.name for e in chosen([write(tmp_path, hosts=LIMITS)], limit=limit)) == names


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("gpx", "--limit gpx: no host matches; did you mean gpu"),
        ("h4", "no host matches; did you mean h3, h2"),
        ("gpu,!gpu", "no host matches"),
        ("gpu[7]", "the pattern matches only 3 hosts"),
        ("@nowhere", "--limit @nowhere: cannot be read"),
        ("@\0", "cannot be read"),
        ("localhost", "no host matches; groups: "),
        ("grouped", "no host matches; groups: "),
    ],
)
def test_limit_without_a_host(limit: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InventoryError) as caught:
        chosen([write(tmp_path, hosts=LIMITS)], limit=[limit])
    assert says in str(caught.value) and caught.value.exit_code == 5


def test_a_part_of_the_limit_that_matches_nothing_is_noted(tmp_path: Path) -> None:
    (entry,) = chosen([write(tmp_path, hosts=LIMITS)], limit=["h1,gpux"])
    assert entry.notes == ("--limit gpux matches no host; did you mean gpu, cpu?",)


def test_a_file_of_group_vars_with_a_wrong_name_is_noted(tmp_path: Path) -> None:
    text = "all: {children: {train: {hosts: {a: }}, rack1: {hosts: {b: }}}}"
    files = {"group_vars__trian": "gpuready: {}", "group_vars__rack1": "x: 1", "group_vars__rack2": "gpuready: {}"}
    source = write(tmp_path, hosts=text, **files)
    with pytest.raises(InventoryError, match="no host is chosen") as caught:
        load([source])
    note = f"{tmp_path}/group_vars/trian.yaml: not read: no group has this file name; gpuready would read train.yml"
    assert [line for line in str(caught.value).splitlines() if "group_vars" in line] == [f"note: {note}"]
    (tmp_path / "group_vars" / "rack1.yaml").write_text("gpuready: {}")
    assert chosen([source])[0].notes == (note,)
    (tmp_path / "group_vars" / "train.yml").write_text("gpuready: {}")
    assert {entry.notes for entry in chosen([source])} == {()}


def test_only_selected_hosts_are_validated(tmp_path: Path) -> None:
    source = write(tmp_path, hosts="all: {hosts: {good: {gpuready: {}}, bad: {gpuready: {ldso: 5}}}}")
    assert chosen([source], limit=["good"])
    with pytest.raises(SpecErrors):
        chosen([source])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("gpu1,", [Connection("gpu1")]),
        ("root@gpu1", [Connection("gpu1", "root")]),
        ("root@gpu1,me@10.0.0.1:2222", [Connection("gpu1", "root"), Connection("10.0.0.1", "me", 2222)]),
        ("10.0.0.1:2222", [Connection("10.0.0.1", port=2222)]),
        ("me@[2001:db8::1]:22, 2001:db8::2", [Connection("2001:db8::1", "me", 22), Connection("2001:db8::2")]),
        ("root@n[1:2]", [Connection("n1", "root"), Connection("n2", "root")]),
        ("ops@example.org@gpu1", [Connection("gpu1", "ops@example.org")]),
        ("a,,a,", [Connection("a")]),
    ],
)
def test_list_of_hosts(source: str, expected: list[Connection]) -> None:
    entries = chosen([source])
    assert [entry.connection for entry in entries] == expected
    assert all(entry.groups == ("ungrouped",) and str(entry.source) == f"-i {source}" for entry in entries)


def export(hostvars: object, **groups: object) -> str:
    """The output of ``ansible-inventory --list --export``."""
    return json.dumps({"_meta": {"hostvars": hostvars}, **groups})


A = {"hosts": ["a"]}
EXPORT = export(
    {"a": {"ansible_host": "10.0.0.1", "gpuready": {"hardware": {"gpus": 8}}}, "b": {}, "nobody": {"x": 1}},
    all={"children": ["ungrouped", "gpu"], "vars": {"gpuready": {"ldso": "off", "hardware": {"model": "H200"}}}},
    gpu={"hosts": ["a", "b"], "vars": {"gpuready": {"hardware": {"gpus": 4}}}},
    old=["b", "c"],
)


def test_export(tmp_path: Path) -> None:
    (tmp_path / "hosts.json").write_text(EXPORT)
    a, b, c = chosen([str(tmp_path / "hosts.json")])
    assert (a.name, b.name, c.name) == ("a", "b", "c")
    assert (a.connection.address, a.spec.hardware.gpus, a.spec.ldso) == ("10.0.0.1", 8, "off")
    assert a.spec.hardware.model == "H200"
    assert (b.spec.hardware.gpus, c.spec.hardware.gpus) == (4, "auto")
    assert (a.groups, b.groups) == (("gpu",), ("gpu", "old"))
    assert a.notes == ()


def test_list_without_export_is_noted(tmp_path: Path) -> None:
    hostvars = {name: {"gpuready": {}} for name in "ab"}
    (tmp_path / "h.json").write_text(export(hostvars, g={"hosts": ["a", "b"]}))
    assert all("made without --export" in entry.notes[0] for entry in chosen([str(tmp_path / "h.json")]))


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ('{"_meta": {}, "g": {"hosts": ["a"]}}', "_meta.hostvars is missing"),
        ('{"g": {"hosts": ["a"]}}', '_meta.hostvars is missing; given null; allowed: "_meta": {"hostvars": {}}, or'),
        (export([], g=A), "_meta.hostvars is missing"),
        (export({}, g={"hosts": ["a b"]}), "not a host name; given 'a b'"),
        (export({}, g={"hosts": [1]}), "not a host name; given 1"),
        (export({}, g={"hosts": {"a": None}}), "hosts of group g: not accepted; given a mapping of a"),
        (export({}, g={"x": 1}), "group g: not accepted; given a mapping of x"),
        (export({}, g={"vars": [1], "hosts": ["a"]}), "vars is not a mapping"),
        (export({"a": 5}, g=A), "host a is not a mapping"),
        (export({}, g={"children": ["h"]}, h={"children": ["g"]}), "a group is inside itself"),
        (export({"a": {"gpuready": {"ldso": 5}}}, g=A), "ldso: not accepted; given 5"),
        (
            export({"a": {"gpuready": {}, "ansible_host": {"__ansible_vault": "x"}}}, g=A),
            "cannot decrypt ansible-vault",
        ),
    ],
)
def test_bad_export(document: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text(document)
    with pytest.raises(SpecErrors, match=re.escape(says)) as caught:
        chosen([str(tmp_path / "h.json")])
    assert f"{tmp_path}/h.json:1: " in str(caught.value)


def script(folder: Path, body: str) -> str:
    path = folder / "inventory"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_executable(tmp_path: Path) -> None:
    source = script(tmp_path, f"[ \"$*\" = --list ] && echo '{EXPORT}'; touch {tmp_path}/was-run")
    with pytest.raises(InventoryError, match="only with --allow-exec"):
        chosen([source])
    assert not (tmp_path / "was-run").exists()
    assert [entry.name for entry in chosen([source], allow_exec=True)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("body", "says"),
    [("echo no >&2; exit 3", "exit 3: no"), ("echo hello", "did not print JSON"), ("echo", "did not print JSON")],
)
def test_bad_executable(body: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match=says):
        chosen([script(tmp_path, body)], allow_exec=True)


def test_the_executable_bit_alone_does_not_run_a_file(tmp_path: Path) -> None:
    source = write(tmp_path, hosts="all: {hosts: {a: {gpuready: {}}}}")
    Path(source).chmod(0o755)
    assert chosen([source])


def test_directory(tmp_path: Path) -> None:
    write(tmp_path, a="g: {hosts: {x: }}", sub__b="g: {hosts: {y: }}", group_vars__g="gpuready: {ldso: off}")
    (tmp_path / "README.md").write_text("no inventory")
    assert [(entry.name, entry.spec.ldso) for entry in chosen([str(tmp_path)])] == [("x", "off"), ("y", "off")]
    (tmp_path / "broken,link").symlink_to("nowhere")
    with pytest.raises(InventoryError, match="broken,link: cannot be read"):
        chosen([str(tmp_path)])


def test_without_a_source() -> None:
    with pytest.raises(InventoryError, match="no inventory given"):
        chosen([])


def test_this_machine_has_the_spec_of_all_and_no_host_key(tmp_path: Path, exits: Exits) -> None:
    (alone,) = chosen(["@local"])
    assert (alone.name, alone.connection.address, alone.spec.ldso) == ("@local", "@local", "auto")
    spec = write(tmp_path, hosts="all: {vars: {gpuready: {reconverge: {on_driver_change: mend}}}, hosts: {gpu1: }}\n")
    mends = {entry.name: entry.spec.reconverge.on_driver_change for entry in chosen([spec, "@local"])}
    assert mends == {"gpu1": "mend", "@local": "mend"}
    assert "@local is reached without SSH" in exits(64, "trust", "--yes", "-i", "@local").err

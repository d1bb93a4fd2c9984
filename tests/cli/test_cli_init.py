"""``gpuready init`` writes what ``plan`` accepts, and overwrites nothing."""

from pathlib import Path

import click
import pytest

from gpuready.cli.app import run
from gpuready.inventory.hosts import load
from gpuready.verbs.init import command as init
from tests.command import Exits


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_options_become_an_inventory(here: Path, exits: Exits) -> None:
    hosts = ["gpu[01:03]", "admin@10.0.0.7:2222", "root@fd00::1", "[fd00::2]:22", "no", "007"]
    argv = [word for host in hosts for word in ("--host", host)]
    told = exits(0, "init", *argv, "--user", "ubuntu", "--key", "~/.ssh/my key", "--gpus", "8")
    assert "wrote hosts.yaml; next: gpuready trust -i hosts.yaml" in told.err
    found = {entry.name: entry for entry in load(["hosts.yaml"]).chosen}
    assert list(found) == ["gpu01", "gpu02", "gpu03", "10.0.0.7", "fd00::1", "fd00::2", "no", "007"]
    assert {entry.spec.hardware.gpus for entry in found.values()} == {8}
    where = {name: (entry.connection.user, entry.connection.port) for name, entry in found.items()}
    assert (where["gpu01"], where["10.0.0.7"], where["fd00::1"]) == (("ubuntu", None), ("admin", 2222), ("root", None))
    assert where["fd00::2"] == ("ubuntu", 22) and found["gpu01"].connection.key == "~/.ssh/my key"
    assert (here / "hosts.yaml").read_text().startswith("# The hosts of gpuready")


@pytest.mark.parametrize("number", range(len(init.SUGGESTIONS)))
def test_every_comment_can_be_taken_as_it_is(number: int, here: Path) -> None:
    assert run(["init", "a.yaml", "--host", "gpu01"]) == 0
    before = (here / "a.yaml").read_text()
    line, _ = init.SUGGESTIONS[number]
    (here / "b.yaml").write_text(before.replace(f"# {line}", line, 1))
    (plain,), (with_it,) = load(["a.yaml"]).chosen, load(["b.yaml"]).chosen
    assert plain.spec != with_it.spec
    for comment in ("# ansible_user: admin", "# ansible_ssh_private_key_file: ~/.ssh/id_ed25519"):
        assert comment in before


def test_the_way_from_init_to_inventory(exits: Exits) -> None:
    Path("from-stdout.yaml").write_text(exits(0, "init", "-", "--host", "gpu01").out)
    assert "hardware.gpus  auto" in exits(0, "inventory", "-i", "from-stdout.yaml").out


def test_nothing_is_overwritten(here: Path, exits: Exits) -> None:
    (here / "hosts.yaml").write_text("mine")
    (here / "link.yaml").symlink_to("nowhere")
    for name in ("hosts.yaml", "link.yaml"):
        assert f"{name} exists" in exits(64, "init", name, "--host", "gpu01").err
    assert (here / "hosts.yaml").read_text() == "mine" and not (here / "nowhere").exists()
    told = exits(64, "init", "no/such/folder.yaml", "--host", "gpu01")
    assert "cannot write no/such/folder.yaml: No such file or directory" in told.err


WRONG = (
    (["--host", "a b"], "--host a b: not a host"),
    (["--host", "a,b"], "--host a,b: not a host"),
    (["--host", ""], "not a host"),
    (["--host", "gpu[3:1]"], "--host gpu[3:1]: not a host"),
    (["--host", "gpu[01-16]"], "--host gpu[01-16]: not a host\n  fix:     write gpu[01:16]; ranges are Ansible's"),
    (["--host", "gpu[1-4]"], "write gpu[1:4];"),
    (["--host", "gpu{01..16}"], "write gpu[01:16];"),
    (["--host", "ops@gpu[a..c]-ib:22"], "write ops@gpu[a:c]-ib:22;"),
    (["--host", "a", "--gpus", "many"], "hardware.gpus: not accepted; given 'many'"),
    (["--host", "a", "--gpus", "0"], "hardware.gpus"),
    (["--host", "a", "--user", "x; rm"], "ansible_user"),
    (["--host", "a", "--key", "{{ key }}"], "ansible_ssh_private_key_file"),
    ([], "no host: --host is missing"),
)


@pytest.mark.parametrize(("argv", "words"), WRONG)
def test_wrong_answers_write_nothing(argv: list[str], words: str, here: Path, exits: Exits) -> None:
    told = exits(64, "init", *argv).err
    assert words in told and "/tmp" not in told and not list(here.iterdir())


def test_on_a_terminal_it_asks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answers = iter(["admin@gpu01, gpu[02:03]", "root", "none"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("gpuready.cli.sink.Sink.isatty", lambda self: True, raising=False)
    monkeypatch.setattr(click, "prompt", lambda *text, **options: next(answers))
    assert run(["init"]) == 0
    found = load(["hosts.yaml"]).chosen
    assert [(entry.name, entry.connection.user) for entry in found] == [
        ("gpu01", "admin"), ("gpu02", "root"), ("gpu03", "root"),
    ]  # fmt: skip
    assert found[0].spec.hardware.gpus == "none"

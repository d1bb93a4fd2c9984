"""The pages are true: files and anchors that they name exist, commands parse, those that need no host run as shown."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from docs import manual, matrix, picture, site
from docs.reference import cli, reference
from gpuready.base.errors import SpecErrors, UsageError
from gpuready.catalogue import BY_ID
from gpuready.cli.app import gpuready, run
from gpuready.inventory.hosts import load
from gpuready.messages.find import TABLE
from gpuready.model.state import NodeState
from gpuready.result.verbs import VERBS
from tests.command import write_hosts, write_states
from tests.pages import BLOCK, PAGES, ROOT, Command, blocks, commands, matches

PATH = re.compile(r"`((?:deploys|docs|inventories|templates|tests)/[\w./-]+\.(?:j2|json|md|py|sh|yaml))`")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The reference, as the code has it."""
    return reference()


# --- what a page names


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_a_page_names_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    made = page.name.startswith("adding-a-")  # a test of its own follows it
    paths = set() if made else set(PATH.findall(text))
    assert {path for path in paths if not (ROOT / path).exists()} == set()
    links = [(found[1], found[2] or "") for found in site.LINK.finditer(BLOCK.sub("", text))]
    assert [target + anchor for target, anchor in links if not leads_somewhere(page, target, anchor)] == []
    own = re.findall(r"\]\((#[^)]+)\)", BLOCK.sub("", text))
    assert [anchor for anchor in own if anchor[1:] not in anchors(text)] == []


def test_each_file_of_one_apply_exists() -> None:
    text = (ROOT / "docs" / "explanation" / "one-apply.md").read_text("utf-8")
    paths = re.findall(r"^\| `([\w/.]+)` \|", text, re.M)
    assert len(paths) > 25
    assert [
        path for path in paths if not any((ROOT / at / path).exists() for at in ("deploys/gpuready", "templates"))
    ] == []


@pytest.mark.parametrize("heading", ["## 6. The result", "## One fabric, file by file"])
def test_a_result_goes_through_few_files_and_returns_to_none(heading: str) -> None:
    """From what is shown on, a file imports none that stands above it."""
    text = (ROOT / "docs" / "explanation" / "one-apply.md").read_text("utf-8")
    section = text.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w/]+)\.py` \|", section, re.M)
    assert 8 <= len(rows) == len(set(rows)) <= 12
    shown = rows[rows.index("cli/output" if "cli/output" in rows else "verbs/fabric/part") :]
    for number, row in enumerate(shown):
        tree = ast.parse((ROOT / f"deploys/gpuready/{row}.py").read_text("utf-8"))
        froms = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
        names = {f"{each.module}.{alias.name}" for each in froms for alias in each.names}
        modules = names | {str(each.module) for each in froms}
        assert not modules & {f"gpuready.{above.replace('/', '.')}" for above in shown[:number]}, row


def test_each_file_that_the_protocol_names_exists() -> None:
    paths = re.findall(
        r"`((?!NAME)[\w/-]+/[\w.-]+\.(?:py|j2))`", (ROOT / "templates/lib/PROTOCOL.md").read_text("utf-8")
    )
    assert len(paths) > 15
    places = ("deploys/gpuready", "templates")
    assert [
        path for path in paths if "NAME" not in path and not any((ROOT / at / path).exists() for at in places)
    ] == []


def leads_somewhere(page: Path, target: str, anchor: str) -> bool:
    """On GitHub."""
    if target.startswith("../blob/HEAD/"):  # GitHub's form for templates
        return (ROOT / target.removeprefix("../blob/HEAD/")).exists()
    path = os.path.relpath(page.parent / target, ROOT)
    if not (ROOT / path).is_file():
        return False
    text = (ROOT / path).read_text("utf-8") if path.endswith(".md") else ""
    return not anchor or anchor[1:] in anchors(text)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    heads = re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_the_reference_is_current(pages: dict[str, str]) -> None:
    there = {path.relative_to(ROOT / "docs").as_posix(): path for path in (ROOT / "docs/reference").rglob("*.md")}
    old = [page for page, text in pages.items() if page not in there or there[page].read_text("utf-8") != text]
    assert old == [], "run python -m docs.reference"
    assert set(there) == set(pages)
    assert "Usage: gpuready launch slurm" in cli()


def test_links_of_the_reference_lead_somewhere(pages: dict[str, str]) -> None:
    for page, whole in pages.items():
        text = BLOCK.sub("", whole)
        links = [(found[1], found[2] or "") for found in site.LINK.finditer(text)]
        links += [(Path(page).name, anchor) for anchor in re.findall(r"\]\((#[^)]+)\)", text)]
        assert [link for link in links if not leads_somewhere(ROOT / "docs" / page, *link)] == [], page


def test_every_page_is_in_the_navigation() -> None:
    def places(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [place for below in (entry.values() if isinstance(entry, dict) else entry) for place in places(below)]

    text = re.sub(r"!!python\S*", "", (ROOT / "mkdocs.yml").read_text("utf-8"))
    shown = places(yaml.safe_load(text)["nav"])
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    checks = {place for place in there if place.startswith("reference/checks/")}  # on_config adds these
    assert {place for place in shown if place not in site.repository_files()} == there - checks | {"reference/cli.md"}
    assert len(shown) == len(set(shown))


def test_the_site_gets_each_file_that_a_page_links_to() -> None:
    outside = {path: place for place, path in site.repository_files().items()}
    assert outside["README.md"] == "index.md"
    text = "[a](../../deploys/gpuready/node.py) [b](../../README.md#install) [c](driver.md#hold)\n```sh\n](x.md)\n```\n"
    assert site.relinked(text, "docs/guides/ci.md", "guides/ci.md", outside) == (
        "[a](../repository/deploys/gpuready/node.py) [b](../index.md#install) [c](driver.md#hold)\n"
        "```sh\n](x.md)\n```\n"
    )


def test_the_readme_is_short_and_links_to_each_guide() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 120
    guides = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/guides").glob("*.md")}
    assert guides - set(site.links("README.md")) == set()


def test_the_picture_of_a_plan_is_current() -> None:
    shown = picture.words_of(picture.PICTURE.read_text("utf-8"))
    assert shown == re.sub(r"\s", "", picture.plan()), "run ./dev docs"
    assert "http" not in re.sub(r'xmlns="[^"]*"|<!--.*?-->', "", picture.PICTURE.read_text("utf-8"))


def test_the_manual_page_is_current_and_well_formed() -> None:
    """Commands and options, as click's versions word a few things differently."""
    text = manual.MANUAL.read_text("utf-8")
    assert _marked(text) == _marked(manual.manual()), "run ./dev docs"
    assert {f"gpuready {name}".replace("-", "\\-") for name in VERBS} <= set(
        re.findall(r"^\.SS (gpuready \S+)", text, re.M)
    )
    if shutil.which("groff"):
        done = subprocess.run(
            ["groff", "-man", "-ww", "-Tutf8"], input=text, capture_output=True, text=True, check=True
        )
        assert done.stderr == "" and "--allow-disruption" in re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)


def _marked(text: str) -> list[str]:
    return re.findall(r"^\.SS .*|(?<=^\.TP\n)\S+?[, ]", text, re.M)


def _messages(file: str) -> int:
    found = yaml.safe_load((ROOT / "tests/data/messages" / file).read_text("utf-8"))
    return sum(map(len, found.values())) if isinstance(found, dict) else len(found)


#: What a page says with a number, and the number; after "over", hundreds are enough.
NUMBERS = {
    r"knows over (\d+)\s+\[?messages": len(TABLE),
    r"finds over (\d+) texts": _messages("posted.yaml"),
    r"nothing for (\d+) texts": _messages("nobodys.yaml"),
    r"answers for (\d+) drivers": len(matrix.DRIVERS),
    r"(\d+) GPUs and \d+ images": len(matrix.GPUS),
    r"\d+ GPUs and (\d+) images": len(matrix.images()),
}


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_of_the_pages_are_true(text: str) -> None:
    pages = [page.read_text("utf-8") for page in PAGES]
    found = {(match[1], "over" in match[0]) for page in pages for match in re.finditer(text, page)}
    assert found
    for number, about in found:
        assert int(number) == (NUMBERS[text] // 100 * 100 if about else NUMBERS[text])


# --- its commands


COMMANDS = [command for page in PAGES for command in commands(page) if not page.name.startswith("adding-a-")]
OURS = [command for command in COMMANDS if command.line.split()[0] == "gpuready"]
OFFLINE = [command for command in OURS if command.offline]


def shortened(command: Command) -> str:
    return f"{command.page.stem}-{' '.join(command.argv)[:60]}"


@pytest.mark.parametrize("command", OURS, ids=shortened)
def test_a_command_exists_with_its_options(command: Command) -> None:
    parse(gpuready, "gpuready", command.argv)


def parse(command: click.Command, called: str, argv: list[str], parent: click.Context | None = None) -> None:
    """Raises a click error for what does not exist; nothing runs."""
    if not isinstance(command, click.Group):
        with command.make_context(called, list(argv), parent):
            return
    if argv in (["--version"], ["--help"]):
        return
    here = click.Context(command, parent, info_name=called, **command.context_settings)
    below = command.get_command(here, argv[0])
    assert below is not None, argv
    parse(below, argv[0], argv[1:], here)


@pytest.mark.parametrize("words", [["plan", "--no-such"], ["rdma", "move"], ["render", "nagios"], ["fabric", "x"]])
def test_a_wrong_command_is_found(words: list[str]) -> None:
    with pytest.raises((click.UsageError, UsageError, AssertionError)):
        parse(gpuready, "gpuready", words)


def test_what_counts_as_shown() -> None:
    out = "plan: 1 host\n\ngpu01  ok  12 checks  0.4 s\nOK\n"
    assert matches("plan: 1 host\n...\nOK\n", out) and matches("plan: ...\n...\n", out) and matches("", out)
    assert not matches("plan: 1 host\nOK\n", out) and not matches("...\nready\n", out)
    assert matches("...\ngpu01 ok  3 checks  1.7 s\nOK\n", out, like=True)
    assert not matches("...\ngpu02  ok  12 checks  0.4 s\nOK\n", out, like=True)
    assert not matches("...\ngpu01  failed  12 checks  0.4 s\nOK\n", out, like=True)


@pytest.mark.parametrize("command", OFFLINE, ids=shortened)
def test_a_command_without_a_host_runs_as_shown(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {"hardware": {"gpus": 8}, "verify": {"image": "registry.example.com/train:1.4"}}
    spec |= {"monitoring": {"rdma_exporter": "textfile"}}
    hosts: dict[str, object] = {"gpu01.example.com": {}, "job": {}}
    (tmp_path / "hosts.yaml").write_text(json.dumps({"all": {"hosts": hosts, "vars": {"gpuready": spec}}}))
    recorded = json.loads((ROOT / "tests/data/h200-mounted-driver/state.json").read_text("utf-8"))
    states = {host: {"state": recorded} for host in hosts}
    for document, result in (("before.json", "would-change.json"), ("after.json", "plan-h200.json")):
        (tmp_path / document).symlink_to(ROOT / "tests/data/results" / result)
    (tmp_path / "states.json").write_text(json.dumps({"schema": "gpuready/result/1", "hosts": states}))
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    code = run(command.argv)
    out = capsys.readouterr().out
    assert code in ((0, 3) if command.argv[0] in ("compat", "verify") else (0,)), out
    assert out.strip()
    assert matches(command.shown, out), out


def test_commands_of_dev_exist() -> None:
    usage = set(re.findall(r"^\./dev (\w+)", (ROOT / "dev").read_text("utf-8"), re.M))
    named = {found for page in PAGES for found in re.findall(r"[`$#] ?\./dev ([a-z]+)", page.read_text("utf-8"))}
    assert named <= usage


def test_ansible_converts_an_ini_inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs/guides/migrating.md"
    (line,) = [each.line for each in commands(page) if each.line.startswith("ansible-inventory")]
    spec = blocks(page, "yaml")[0]
    (tmp_path / "config/group_vars").mkdir(parents=True)
    (tmp_path / "config/inventory").write_text("[slurm-node]\ngpu[01:02]\n[slurm-node:vars]\nansible_user=ops\n")
    (tmp_path / "config/group_vars/slurm-node.yml").write_text(spec)
    monkeypatch.chdir(tmp_path)
    program = Path(sys.executable).parent / "ansible-inventory"
    subprocess.run([program, *shlex.split(line)[1:]], check=True, capture_output=True)
    hosts = load(["hosts.yaml"]).chosen
    assert [(host.name, host.spec.hardware.gpus) for host in hosts] == [("gpu01", 8), ("gpu02", 8)]
    assert [host.connection.user for host in hosts] == ["ops", "ops"]


def test_a_script_makes_an_inventory_of_a_programs_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (script,) = blocks(ROOT / "docs/guides/new-vms.md", "sh")
    for name, content in (("hosts.sh", script), ("aws", '#!/bin/sh\necho \'["10.0.0.7","10.0.0.8"]\'\n')):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    hosts = load([str(tmp_path / "hosts.sh")], allow_exec=True).chosen
    assert [(host.name, host.spec.hardware.gpus) for host in hosts] == [("10.0.0.7", 8), ("10.0.0.8", 8)]


def test_pipelines_of_the_guide_name_what_the_action_and_the_template_have() -> None:
    github, gitlab = map(yaml.safe_load, blocks(ROOT / "docs/guides/ci.md", "yml"))
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    _, verify, upload = github["jobs"]["verify"]["steps"]
    assert set(action["inputs"]) == set(verify["with"])
    parse(gpuready, "gpuready", ["verify", *shlex.split(verify["with"]["arguments"])])
    assert re.findall(r"steps\.(\w+)\.outputs\.(\w+)", upload["with"]["path"]) == [(verify["id"], *action["outputs"])]
    (include,) = gitlab.pop("include")
    template = yaml.safe_load((ROOT / include["file"].lstrip("/")).read_text("utf-8"))
    assert [*gitlab] == [*template]
    assert set(gitlab["gpuready-verify"]["variables"]) <= set(template["gpuready-verify"]["variables"])


def test_cron_mails_only_what_is_wrong(tmp_path: Path) -> None:
    """The line's own shell command, with gpuready on recorded nodes, the second of which lacks GPUs."""
    (line,) = blocks(ROOT / "docs/guides/ci.md", "crontab")
    *when, command = line.split(maxsplit=5)
    assert when == ["0", "5", "*", "*", "*"] and "%" not in command  # cron would make a new line of it
    (tmp_path / ".local/bin").mkdir(parents=True)
    program = tmp_path / ".local/bin/gpuready"
    more = "--state states.json --skip repository --skip toolkit"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gpuready "$@" {more}\n')
    program.chmod(0o755)
    folder = tmp_path / "gpu"
    folder.mkdir()
    state = NodeState.model_validate_json((ROOT / "tests/data/h200-mounted-driver/state.json").read_bytes())
    write_states(folder / "states.json", {"gpu01": state})
    for gpus, code in ((1, 0), (8, 3)):
        write_hosts(folder, f"all: {{hosts: {{gpu01: {{gpuready: {{hardware: {{gpus: {gpus}}}}}}}}}}}\n")
        done = subprocess.run(
            ["/bin/sh", "-c", command], env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, cwd=tmp_path,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        report = (folder / "verify.txt").read_text()
        assert f"exit {code}" in report or (code == 0 and report.splitlines()[-1].startswith("OK: ")), report
        assert (done.stdout, done.stderr) == (report if code else "", "")


def test_ini_of_a_page_is_an_inventory(tmp_path: Path) -> None:
    (text,) = blocks(ROOT / "docs/guides/inventory.md", "ini")
    (tmp_path / "hosts").write_text(text)
    hosts = load([str(tmp_path / "hosts")], check_ids=lambda: BY_ID).chosen
    assert [(host.name, host.spec.hardware.gpus, host.connection.user) for host in hosts] == [
        ("gpu01.example.com", "auto", "ops"),
        ("gpu02.example.com", "auto", "ops"),
        ("gpu03.example.com", 4, "ops"),
    ]


def test_the_reference_lists_the_messages_of_each_check(pages: dict[str, str]) -> None:
    for message in TABLE:
        for check in message.checks:
            page = pages[f"reference/checks/{check.partition('.')[0]}.md"]
            section = page.partition(f"## {check}\n")[2].partition("\n## ")[0]
            assert f"- `{message.title}`\n" in section, (check, message.title)


def test_python_of_a_guide_imports_what_exists() -> None:
    guides = [page for page in PAGES if page.parent.name == "guides"]
    code = [text for page in guides for text in blocks(page, "python")]
    imports = [line for text in code for line in text.splitlines() if line.startswith("from ")]
    assert imports
    subprocess.run([sys.executable, "-c", "\n".join(imports)], check=True)


# --- its inventories


DOCUMENTS = {
    f"{page.stem}-{i}": text
    for page in PAGES
    if not page.name.startswith("adding-a-") and page.parent.name != "components"
    for i, text in enumerate(blocks(page, "yaml"))
}


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS)
def test_yaml_of_a_page_is_a_valid_inventory_or_spec(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUREADY_SUDO_PASSWORD", "secret")
    monkeypatch.setenv("GPUREADY_MIRROR", "Authorization: Bearer secret")
    monkeypatch.setenv("GPUREADY_MOK", "Enrol4567")
    value = yaml.safe_load(text)
    if "all" not in value:
        spec = value.get("gpuready", value)
        text = yaml.safe_dump({"all": {"hosts": {"gpu01": {}}, "vars": {"gpuready": spec, "rack": "r1"}}})
    elif "hosts" not in text:  # a second -i has them
        text = yaml.safe_dump({"all": {"hosts": {"gpu01": {}}, **value["all"]}})
    path = tmp_path / "hosts.yaml"
    path.write_text(text)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "torch-2.2.1-cp310-cp310-linux_x86_64.whl").touch()
    assert load([str(path)], check_ids=lambda: BY_ID).chosen


@pytest.mark.parametrize("number, header", [(0, "file:mirror-header"), (1, "cmd:cat mirror-header")])
def test_a_header_from_a_file_or_a_command_needs_the_option_that_the_page_names(
    number: int, header: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "guides" / "wheels.md"
    (spec,) = (text for text in blocks(page, "yaml") if "header: env:" in text)
    (value,) = yaml.safe_load(spec)["torch_wheels"]
    hosts = {"gpu01": {"gpuready": {"torch_wheels": [value | {"header": header}]}}}
    Path("hosts.yaml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    Path("mirror-header").write_text("Authorization: Bearer secret")
    with pytest.raises(SpecErrors, match=r"--allow-(read|exec)"):
        load(["hosts.yaml"])
    apply = [each.argv for each in commands(page) if "--allow" in each.line][number]
    assert apply[:3] == ["apply", "-i", "hosts.yaml"]
    option, *words = apply[3:]
    assert load(["hosts.yaml"], allow_read=words, allow_exec=option == "--allow-exec").chosen

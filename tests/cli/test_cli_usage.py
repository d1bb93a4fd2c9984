"""The command line: exit codes, one clear message, and a valid result on every way out."""

import json
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import jsonschema
import pytest

from gpuready.catalogue import BY_ID
from gpuready.cli import options
from gpuready.cli.app import run
from gpuready.cli.parts import parts
from gpuready.contract.component import Disruption
from gpuready.model import probe
from gpuready.node import NODE
from gpuready.result.document import result_schema
from gpuready.result.exitcode import MEANING
from gpuready.result.verbs import VERBS
from tests.command import VALIDATOR, Exits, gpuready, imported, python

PLAN = f"'{sys.executable}' -m gpuready plan -i"
HOSTS = "all: {hosts: {lab1: {ansible_host: 127.0.0.1, ansible_port: 1, gpuready: {}}}}\n"


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """One host, on a port where nothing listens."""
    path = tmp_path / "hosts.yaml"
    path.write_text(HOSTS)
    return path


USAGE: tuple[tuple[list[str], str], ...] = (
    (["plan"], "no inventory: -i is missing"),
    (["verify"], "no inventory: -i is missing"),
    (["record"], "no inventory: -i is missing"),
    (["stress", "-i", "HOSTS", "--passive"], "--level stress needs the nodes: leave out --passive"),
    (["apply", "--yes"], "no inventory: -i is missing"),
    (["trust", "--yes"], "no inventory: -i is missing"),
    (["plan", "--bogus"], "--bogus"),
    (["--bogus", "plan"], "--bogus"),
    (["plan", "surplus", "-i", "HOSTS"], "surplus"),
    (["plan", "gpu01"], "did you mean: gpuready plan -i gpu01,"),
    (["plan", "-i", "hosts.yaml", "gpu01"], "did you mean: gpuready plan -i hosts.yaml --limit gpu01"),
    (["plan", "-i", "hosts.yaml", "10.0.0.7"], "did you mean: gpuready plan -i hosts.yaml --limit 10.0.0.7"),
    (
        ["plan", "-i", "hosts.yaml", "g1.example.com"],
        "did you mean: gpuready plan -i hosts.yaml --limit g1.example.com",
    ),
    (["plan", "hosts.yaml"], "did you mean: gpuready plan -i hosts.yaml"),
    (["verify", "-i", "a b.yaml", "c.yaml", "d.yaml"], "gpuready verify -i 'a b.yaml' -i c.yaml -i d.yaml"),
    (["nccl", "hosts.yaml"], "did you mean: gpuready nccl -i hosts.yaml"),
    (["example"], "gpuready example --help"),
    (["rdma", "attach"], "gpuready rdma attach --help"),
    (["init", "a.yaml", "b.yaml"], "gpuready init --help"),
    (["init", "--host"], "gpuready init --help"),
    (["-i", "HOSTS", "plan"], "options stand after the command: gpuready plan -i hosts.yaml"),
    (["pln", "-i", "HOSTS"], "did you mean 'plan'?"),
    (["status"], "no inventory: -i is missing"),
    (["doctor"], "fix:     gpuready verify"),
    (["init", "--force"], "gpuready init --help"),
    (["launch", "slurm", "--limit", "gpu01"], "-i is missing"),
    (["render", "gpu-operator", "-e", "hardware.gpus=8"], "-i is missing"),
    (["explain", "memlock", "--limit", "gpu01"], "explain reads no host without -i"),
    (["report", "RESULT", "--max-age", "1m"], "--max-age needs a directory or URL"),
    (["apply", "--check"], "fix:     gpuready plan shows what apply would change"),
    (["plan", "-u", "root"], "fix:     -e ansible_user=NAME"),
    (["apply", "-f", "5"], "fix:     --parallel NUMBER"),
    (["nccl", "--format", "env"], "fix:     --output FORMAT"),
    (["fabric"], "no inventory: -i is missing"),
    (["fabric", "-i", "HOSTS"], "one host alone: --tests loopback, or gpuready verify --level stress"),
    (["fabric", "-i", "HOSTS", "--tests", "loopback,rping"], "one host alone: --tests loopback"),
    (["fabric", "-i", "HOSTS", "--tests", "loopback", "--mpirun"], "--mpirun measures collective"),
    (["fabric", "-i", "HOSTS", "--pairs", "some"], "--pairs some"),
    (["fabric", "-i", "HOSTS", "--tests", "rpign"], "did you mean 'rping'?"),
    (["plan", "-i", "HOSTS", "--output", "svg:x.svg"], "one of human, json, jsonl, junit"),
    (["plan", "-i", "HOSTS", "--only", "dokcer"], "did you mean 'docker'?"),
    (["plan", "-i", "HOSTS", "--skip", "kernel"], "no component 'kernel'"),
    (["plan", "-i", "HOSTS", "--only", "docker", "--skip", "docker"], "leave no component"),
    (["plan", "-i", "HOSTS", "--output", "jsn"], "did you mean 'json'?"),
    (["plan", "-i", "HOSTS", "--output", "junit:/nonexistent/r.xml"], "cannot write"),
    (["plan", "-i", "HOSTS", "--output", "junit:/"], "it is a directory"),
    (["plan", "-i", "HOSTS", "--output", "junit:"], "missing"),
    (["plan", "-i", "HOSTS", "--output", "human", "--output", "jsonl"], "only one"),
    (["plan", "-i", "HOSTS", "--host-keys", "no"], "strict"),
    (["plan", "-i", "HOSTS", "--parallel", "0"], "--parallel"),
    (["verify", "-i", "HOSTS", "--detailed-exitcode"], "--detailed-exitcode"),
    (["apply", "-i", "HOSTS"], "needs --yes"),
    (["apply", "-i", "HOSTS", "--yes", "--state", "s.json"], "--state"),
    (["apply", "-i", "HOSTS", "--yes", "--allow-disruption", "all"], "reboot"),
    (["apply", "-i", "HOSTS", "--yes", "--batch", "0"], "--batch 0: not a batch size"),
    (["plan", "-i", "HOSTS", "--batch", "half"], "--batch half: not a batch size"),
    (["apply", "-i", "HOSTS", "--yes", "--max-fail", "-1"], "--max-fail -1: not a number of hosts"),
    (["plan", "-i", "HOSTS", "--max-fail", "1"], "--max-fail"),
    (["rdma", "list"], "no inventory: -i is missing"),
    (["rdma", "move", "lab1", "-i", "HOSTS"], "move"),
    (["rdma", "attach", "-i", "HOSTS", "--container", "c", "--device", "d"], "HOST"),
    (["rdma", "attach", "lab1", "-i", "HOSTS", "--device", "mlx5_0"], "--container"),
    (["rdma", "attach", "lab1", "-i", "HOSTS", "--container", "c"], "--device DEV, --netdev IF or both"),
    (["rdma", "attach", "lab1", "-i", "HOSTS", "--container", "c", "--device", "mlx5_0"], "needs --yes"),
    (["rdma", "attach", "lab1", "-i", "HOSTS", "--container", "-v", "--device", "d", "--yes"], "--container -v"),
    (["rdma", "attach", "lab1", "-i", "HOSTS", "--container", "c", "--device", "../d", "--yes"], "--device ../d"),
    (["rdma", "attach", "lab1", "-i", "HOSTS", "--container", "c", "--netdev", "a b", "--yes"], "--netdev a b"),
    (["rdma", "attach", "lab1", "-i", "HOSTS", "--container", "c", "--engine", "lxc", "--netdev", "d"], "docker"),
    (["rdma", "detach", "lab1", "-i", "HOSTS", "--yes"], "--container NAME, --device DEV or --netdev IF"),
    (["rdma", "detach", "lab1", "-i", "HOSTS", "--device", "mlx5_0"], "needs --yes"),
    (["render", "nagios"], "there are: cloud-init, docker, "),
    (["render", "k8s"], "gpuready render kubernetes"),
    (["launch", "k8s"], "gpuready launch kubernetes"),
    (["verify", "-i", "HOSTS", "--level", "fabric"], "gpuready fabric -i hosts.yaml tests between the hosts"),
    (["render", "prometheus"], "gpuready render prometheus -i FILE"),
    (["rdma", "list", "--list-hosts"], "gpuready rdma list -i FILE"),
    (["explain", "libcuda.ldcach"], "did you mean 'libcuda.ldcache'?"),
    (["apply", "-i", "HOSTS", "--yes", "--wait-lock", "5"], "such as 30m, 12h, 30d, 8w"),
    (["schema", "reslt"], "result"),
)


def test_hosts_yaml_of_this_directory_is_the_inventory(
    inventory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exits: Exits
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exits(0, "plan", "--list-hosts").out == "lab1\n"
    inventory.rename(tmp_path / "other.yaml")
    told = exits(64, "plan", "--list-hosts").err
    assert "-i is missing, and there is no hosts.yaml here" in told and "gpuready init writes hosts.yaml" in told


def test_what_follows_two_hyphens_belongs_to_the_script(tmp_path: Path, exits: Exits) -> None:
    script = ("--", "train.py", "--history", str(tmp_path / "history"), "--output", f"json:{tmp_path}/out.json")
    exits(5, "launch", "hosts", "-i", "nofile.yaml", *script)
    assert list(tmp_path.iterdir()) == []


def test_explain_reads_no_host_because_of_a_variable(
    inventory: Path, monkeypatch: pytest.MonkeyPatch, exits: Exits
) -> None:
    monkeypatch.setenv("GPUREADY_INVENTORY", str(inventory))
    assert "memlock" in exits(0, "explain", "memlock").out


def test_an_address_needs_no_comma(exits: Exits) -> None:
    assert exits(0, "plan", "-i", "198.18.0.6", "-i", "2001:db8::7", "--list-hosts").out == "198.18.0.6\n2001:db8::7\n"
    assert "with a comma: -i gpu01," in exits(5, "plan", "-i", "gpu01").err


def test_a_name_is_not_an_inventory(exits: Exits) -> None:
    assert "fix:     for a host of an inventory: -i FILE --limit gpu01\n" in exits(5, "plan", "-i", "gpu01").err


@pytest.mark.parametrize("argv", [[], ["render"], ["launch"], ["rdma"]], ids=" ".join)
def test_a_bare_command_prints_its_help_and_is_64(argv: list[str], exits: Exits) -> None:
    told = exits(64, *argv)
    assert told.out == "" and told.err == exits(0, *argv, "--help").out


@pytest.mark.parametrize(("argv", "words"), USAGE, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_usage_errors_are_64_and_valid_json(argv: list[str], words: str, inventory: Path, exits: Exits) -> None:
    argv = [{"HOSTS": str(inventory), "RESULT": f"{inventory.parent}/result.json"}.get(word, word) for word in argv]
    told = exits(64, *argv)
    assert words in told.err and told.err.startswith("error: ") and "Traceback" not in told.err
    assert told.out == "" or argv[0] == "record" or "jsonl" in argv
    found = exits(64, *argv, "--output=json").document
    assert found["error"]["kind"] == "usage" and found["exit_code"] == 64 and found["hosts"] == {}


BAD_INVENTORIES = (
    ("all: {hosts: {a: {gpuready: {hardware: {gpuz: 8}}}}}\n", "gpuz"),
    ("all: {hosts: {}}\n", "no hosts"),
    ("all:\n\thosts: {}\n", "hosts.yaml"),
    ("", "hosts.yaml"),
)


@pytest.mark.parametrize(("text", "words"), BAD_INVENTORIES)
@pytest.mark.parametrize("verb", ["plan", "verify", "record", "apply"])
def test_bad_inventories_are_5(verb: str, text: str, words: str, inventory: Path, exits: Exits) -> None:
    inventory.write_text(text)
    told = exits(5, verb, "-i", str(inventory), "--output", "json", *(["--yes"] if verb == "apply" else []))
    found = told.document
    assert (found["exit_code"], found["verb"]) == (5, verb)
    assert words in found["error"]["message"] and words in told.err


def test_nothing_matched_is_5(inventory: Path) -> None:
    assert run(["plan", "-i", str(inventory), "--limit", "lab9"]) == 5
    assert run(["plan", "-i", str(inventory.with_name("other.yaml"))]) == 5


def test_errors_reach_every_output(inventory: Path, tmp_path: Path, exits: Exits) -> None:
    inventory.write_text(BAD_INVENTORIES[0][0])
    forms = ("json", "jsonl", "junit", "human")
    told = exits(5, "verify", "-i", str(inventory), *(f"--output={form}:{tmp_path}/r.{form}" for form in forms))
    assert told.out == ""
    VALIDATOR.validate(json.loads((tmp_path / "r.json").read_text()))
    for form in forms:
        assert "gpuz" in (tmp_path / f"r.{form}").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["hosts.yaml", "r.human", "r.json", "r.jsonl", "r.junit"]


def test_unreachable_is_4(inventory: Path, tmp_path: Path) -> None:
    done = gpuready("plan", "-i", inventory, "--output", "json", "--output", f"human:{tmp_path}/plan.txt")
    found = json.loads(done.stdout)
    VALIDATOR.validate(found)
    assert done.returncode == 4 and found["hosts"]["lab1"]["outcome"] == "unreachable"
    assert "lab1  connect" in done.stderr and "UNREACHABLE" in (tmp_path / "plan.txt").read_text()


def test_a_bug_of_ours_is_70_with_its_traceback_on_stderr_only(
    inventory: Path, exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuready.cli.request.load", lambda *sources, **options: 1 / 0)
    told = exits(70, "plan", "-i", inventory, "--output", "json")
    error = told.document["error"]
    assert (error["kind"], error["message"]) == ("bug", "bug in gpuready: ZeroDivisionError: division by zero")
    assert "Traceback" in told.err


def test_ctrl_c_before_anything_began(inventory: Path, exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuready.cli.request.load", Mock(side_effect=KeyboardInterrupt))
    found = exits(130, "verify", "-i", str(inventory), "--output", "json").document
    assert (found["verb"], found["error"]["kind"]) == ("verify", "interrupted")


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_help_shows_examples_and_where_the_exit_codes_are(verb: str, exits: Exits) -> None:
    text = exits(0, verb, "--help").out
    assert f"\n    gpuready {verb} " in text or verb == "schema"
    assert text.endswith("\n  Exit codes: gpuready --help\n") and "130" not in text


def test_help_lists_every_verb_and_every_exit_code(exits: Exits) -> None:
    text = exits(0, "--help").out
    assert all(f"\n  {verb}  " in text for verb in VERBS)
    assert all(f"\n  {code}  " in text for code in MEANING)


RUN = {"jinja2", "pyinfra"}
PARSERS = {"yaml", "tomlkit", "packaging", "rich", "gevent", "paramiko"}
RESULT = {"gpuready.result.document", "gpuready.fabric.verdict"}
COMPONENTS = {"pydantic", "gpuready.node", "gpuready.catalogue", "gpuready.result.mask"}
LIGHT: tuple[tuple[list[str], set[str]], ...] = (
    *(([*verb, "--help"], RUN | COMPONENTS) for verb in ([], ["plan"], ["apply"], ["verify"], ["record"], ["remove"])),
    (["--version"], RUN | COMPONENTS),
    # pydantic looks for plugins in all installed packages when it builds its first model.
    (["explain"], RUN | PARSERS | RESULT | {"pydantic.plugin._loader"}),
    (["explain", "docker"], RUN | PARSERS | RESULT),
    (["schema"], RUN | PARSERS | RESULT),
    (["plan", "-i", "HOSTS"], RESULT | {"tomlkit"}),
)


@pytest.mark.parametrize(("argv", "heavy"), LIGHT, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_what_a_command_does_not_load(argv: list[str], heavy: set[str], inventory: Path) -> None:
    assert not heavy & imported(*(inventory if word == "HOSTS" else word for word in argv))


def test_what_a_run_loads_before_it_connects(inventory: Path) -> None:
    """The first connection is Python's audit event. Of components, only what the spec and the state are made of."""
    code = (
        "import sys\n"
        "def connects(event, args):\n"
        "    if event == 'socket.connect' and args[1] == ('127.0.0.1', 1):\n"
        "        print('CONNECTS', *sys.modules, file=sys.stderr)\n"
        "sys.addaudithook(connects)\n"
        "from gpuready.cli.main import run\nrun(sys.argv[1:])\n"
    )
    done = python("-c", code, "plan", "-i", inventory, check=True)
    (loaded,) = [set(line.split()) for line in done.stderr.splitlines() if line.startswith("CONNECTS")]
    assert "paramiko" in loaded
    assert not {f"gpuready.{name}" for name in ("node", "catalogue", "cuda.predict", "result.human")} & loaded
    parts = [name.split(".") for name in loaded if name.startswith("gpuready.components.")]
    assert {part[3] for part in parts if part[3:]} == {"spec", "state"}


def test_no_garbage_is_collected_while_a_text_is_printed() -> None:
    """A collection looks at all that was imported: a sixth of the time of plan, most of it at the exit."""
    assert _garbage("explain") == "0 collections, frozen True, collects False"


def test_a_run_over_hosts_collects_garbage(inventory: Path) -> None:
    assert _garbage("plan", "-i", str(inventory)).endswith("frozen True, collects True")


def _garbage(*argv: str) -> str:
    code = (
        "import atexit, gc, sys\n"
        "from gpuready.cli.main import main\n"
        "def count(): return sum(each['collections'] for each in gc.get_stats())\n"
        "def tell(): print(f'{count() - before} collections, frozen {gc.get_freeze_count() > 9999}', end=', ')\n"
        "atexit.register(lambda: print(f'collects {gc.isenabled()}'))\n"
        "atexit.register(tell)\n"
        "before = count()\nmain()\n"
    )
    return python("-c", code, *argv).stdout.splitlines()[-1]


def test_what_help_says_without_loading_it_is_so() -> None:
    assert tuple(item.name for item in Disruption) == options.DISRUPTIONS
    assert probe.TIMEOUT == options.PROBE_TIMEOUT


def test_version_names_the_engine_without_loading_it() -> None:
    done = gpuready("--version")
    assert done.returncode == 0
    assert [part.split()[0] for part in done.stdout.split(",")] == ["gpuready", "pyinfra", "paramiko"]


def test_color_is_only_where_it_is_wanted(inventory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in gpuready("plan", "-i", inventory).stdout
    assert "\x1b[31m" in gpuready("plan", "-i", inventory, "--color", "always").stdout
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    assert "\x1b" not in gpuready("plan", "-i", inventory, "--color", "never").stdout


@pytest.mark.fault("closed-streams")
def test_a_reader_that_leaves_is_no_error(inventory: Path) -> None:
    command = f"({PLAN} '{inventory}'; echo code $? >&2) | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert "code 4" in done.stderr
    assert "Broken" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.fault("full-output")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_result_that_cannot_be_written_is_told(inventory: Path) -> None:
    with Path("/dev/full").open("w") as full:
        lost = gpuready("plan", "-i", inventory, stdout=full)
    assert lost.returncode == 4 and "not written to stdout" in lost.stderr and "Traceback" not in lost.stderr


def test_explain_lists_and_explains(exits: Exits) -> None:
    listed = exits(0, "explain").out
    for name in (*BY_ID, *(item.name for item in NODE)):
        assert f"  {name} " in listed
    for name in BY_ID:
        told = exits(0, "explain", name).out
        assert all(f"\n  {word}" in told for word in ("cause", "confirm", "fix"))
    assert "gpuready apply -i INVENTORY --only docker" in exits(0, "explain", "docker").out


def test_explain_says_once_that_a_likely_cause_may_be_another(exits: Exits) -> None:
    told = exits(0, "explain", "Xid 79\nnvcc fatal: Unsupported gpu architecture 'compute_120'").out
    assert told.count("\n  likely ") == 2 and told.count("If none of the likely causes is found") == 1
    told = exits(0, "explain", "Failed to initialize NVML: Driver/library version mismatch").out
    assert "\n  cause " in told and "likely causes" not in told


def test_a_word_lists_its_checks_sorted_and_bounded(exits: Exits) -> None:
    told = exits(0, "explain", "gpu").out
    own, others = (re.findall(r"(?m)^  (\S+)  ", part) for part in told.split("Other checks that mention gpu"))
    assert own == sorted(id for id in BY_ID if id.startswith("gpu.")) and others == sorted(others)
    assert len(others) == 12 and re.search("\n  and [0-9]+ more\n", told)
    assert "\n  cause " in exits(0, "explain", "nccl", "torch").out


@pytest.mark.parametrize("form", ["html", "svg", "csv", "human"])
def test_a_refused_command_prints_no_picture_on_stdout(
    form: str, inventory: Path, tmp_path: Path, exits: Exits
) -> None:
    argv = ["fabric", "-i", str(inventory), "--limit", "nobody"]
    told = exits(5, *argv, "--output", form)
    assert told.out == "" and told.err.startswith("error: --limit nobody")
    assert exits(5, *argv, "--output", f"{form}:{tmp_path / 'r'}").out == "" and (tmp_path / "r").read_text()


def test_schemas_are_schemas(exits: Exits) -> None:
    assert json.loads(exits(0, "schema", "result").out) == json.loads(json.dumps(result_schema(parts())))
    jsonschema.Draft7Validator.check_schema(json.loads(exits(0, "schema").out))


@pytest.mark.fault("closed-streams")
def test_closed_streams_are_no_bug(inventory: Path) -> None:
    for closed in ("2>&-", ">&-", "<&- >&- 2>&-"):
        command = f"{PLAN} '{inventory}' {closed}"
        assert subprocess.run(["sh", "-c", command], stdout=subprocess.DEVNULL, check=False).returncode == 4

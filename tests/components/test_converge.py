"""What the steps carry, where a case file cannot say it: answers of the node that are wrong, and values of scripts."""

import base64
import hashlib
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.base import json_document as daemonjson
from gpuready.base import toml_document
from gpuready.base.errors import ConvergeError, GpureadyError
from gpuready.base.facts import KEPT
from gpuready.base.nvidia_ctk import Configure
from gpuready.base.step import Reply, Step
from gpuready.catalogue import CATALOGUE
from gpuready.components.cdi.component import Cdi, CdiGenerate
from gpuready.components.docker.component import Docker
from gpuready.components.docker.transaction import DockerInstall
from gpuready.components.ldso.component import Ldso, UpdateLinker
from gpuready.components.repository.component import FetchKey, Repository
from gpuready.components.repository.source import AptSource
from gpuready.components.toolkit.component import Toolkit
from gpuready.components.toolkit.state import PACKAGES
from gpuready.components.toolkit_config.component import OURS, Config, ConfigInstall
from gpuready.contract.compare import Comparison, compare
from gpuready.contract.component import Disruption
from gpuready.contract.ledger import Put, WriteFiles
from gpuready.contract.removal import Removal
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Docker as Engine
from gpuready.model.state import NodeState, Unknown
from tests.components.cases import KEYS, node_of
from tests.components.closing import Closed, after, applied_to, close, converged, taken_back, with_text

ED25519 = "CFCDB27B5084BE4E7873DB9F8549EB4391176AB3"
EXPIRED = "D6761C8989E5433A70AACF3894555A3C2B2D5B93"
DOCKER: dict[str, Any] = {
    "tools": {"dockerd": "/usr/bin/dockerd"},
    "docker": {"runtimes": {"nvidia": "nvidia-container-runtime"}, "live_restore": True},
    "daemon_json": '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}, "live-restore": true}',
    "clock": 100_000,
    "uptime": 50_000,
    "units": {"docker.service": {"started_us": 10_000_000_000}},
}
#: Anything that JSON can say, and the words that count somewhere.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("nvidia.com/gpu"),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=6) | st.just("containerEdits"), v, max_size=3),
    max_leaves=6,
)


def docker(spec: dict[str, Any] | None = None, **state: Any) -> Closed:
    given = {k: v for k, v in DOCKER.items() if k != "daemon_json" or "files" not in state} | state
    node_spec, node_state = node_of("docker", {"runtimes": {"docker": spec or {}}}, given)
    return converged(Docker(), node_spec, node_state)


# --- docker: what nvidia-ctk is given, and what becomes of its answer -----------------------------------------


@pytest.mark.parametrize(
    ("daemon_json", "given"),
    [
        ('{"debug": true}', b'{"debug": true}'),
        ('{"label": "gr\u00fcn"}', '{"label": "gr\u00fcn"}'.encode()),
        ('\ufeff{"debug": true}', b"{}"),
    ],
)
def test_nvidia_ctk_gets_the_users_file_or_an_empty_one(daemon_json: str, given: bytes) -> None:
    assert docker(daemon_json=daemon_json).args(Configure).given == given


@pytest.mark.parametrize(
    "answer",
    [
        "{}",
        "no JSON",
        '{"runtimes": null}',
        '{"runtimes": {"nvidia": {"path": ""}}}',
        '{"runtimes": {"nvidia": {"path": null}}}',
        '{"runtimes": {"nvidia": {"path": "\udcff"}}}',
    ],
)
def test_an_answer_of_nvidia_ctk_without_a_path_changes_nothing(answer: str) -> None:
    spec, state = node_of("docker", {}, DOCKER | {"daemon_json": "{}"})
    steps = Docker().converge(compare(Docker(), spec, state).diff, spec, state)
    assert next(steps).name == "docker-stage"
    with pytest.raises(ConvergeError, match="nothing was changed"):
        steps.send(Reply(0, answer))


# --- docker: the install step ---------------------------------------------------------------------------------


WITH_CDI = DOCKER["daemon_json"].replace("}}", '}}, "features": {"cdi": true}')


@pytest.mark.parametrize(
    ("wanted", "state", "args"),
    [
        # Nothing differs in live-restore, so nothing is asked about it.
        (
            {"default_runtime": True},
            {},
            {"reload": True, "restart": False, "default_runtime": "nvidia", "live_restore": ""},
        ),
        ({"default_runtime": True}, {"docker": "stopped"}, {"reload": False, "restart": False}),
        ({"cdi": True}, {"daemon_json": WITH_CDI}, {"reload": False, "restart": True, "content": b"", "cdi": "true"}),
        ({"default_runtime": True}, {"files": {}}, {"before": "absent"}),
        ({"default_runtime": True}, {}, {"before": hashlib.sha256(DOCKER["daemon_json"].encode()).hexdigest()}),
    ],
    ids=["a running engine", "a stopped engine", "CDI only to be loaded", "no file", "a file"],
)
def test_what_the_install_step_is_given(wanted: dict[str, Any], state: dict[str, Any], args: dict[str, Any]) -> None:
    found = docker(wanted, **state).args(DockerInstall)
    assert {name: getattr(found, name) for name in args} == args


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (["-H", "fd://", "--containerd=/run/c.sock"], ["-H", "fd://", "--containerd=/run/c.sock"]),
        (["--config-file=/etc/docker/daemon.json", "-D"], ["-D"]),
        (["-D", "--config-file", "/etc/docker/daemon.json", "-H", "fd://"], ["-D", "-H", "fd://"]),
        (["--label", "a b$(touch x)"], ["--label", "a b$(touch x)"]),
        ([], []),
    ],
)
def test_the_new_file_is_validated_with_the_flags_of_the_engine(flags: list[str], kept: list[str]) -> None:
    closed = docker({"default_runtime": True}, dockerd_flags=flags)
    assert closed.args(DockerInstall).flags == tuple(kept)
    found = re.search(r"^ +dockerd (.*?) ?--validate", closed.script("docker"), re.M)
    assert found
    assert shlex.split(found[1]) == kept


def test_changes_without_a_restart_come_first() -> None:
    users = DOCKER["daemon_json"].replace("{", '{"fluentd-buffer": 1.10, ', 1)
    wanted = {"runtimes": {"docker": {"cdi": True, "default_runtime": True}}}
    spec, state = node_of("docker", wanted, DOCKER | {"daemon_json": users})
    found = compare(Docker(), spec, state)
    first, second = Docker().groups(found.diff)
    assert {c.key for c in second} == {"docker.running.features.cdi"}
    assert set(first) | set(second) == set(found.diff)
    assert Docker().disruption(first, state) == Disruption.reload
    assert Docker().disruption(first + second, state) == Disruption.restart
    closed = close(Docker(), spec, state, first)
    args = closed.args(DockerInstall)
    assert args.reload and not args.restart
    assert '"cdi": true' in closed.writes[PATH] and '"fluentd-buffer": 1.10,' in closed.writes[PATH]


@pytest.mark.parametrize(
    "daemon_json",
    ["{}", '{"debug": true, "runtimes": {"crun": {"path": "/usr/bin/crun"}}, "default-runtime": "crun"}'],
)
def test_the_rollback_names_the_defaults_of_missing_keys(daemon_json: str) -> None:
    undo = {"runtimes": {}, "default-runtime": "runc", "live-restore": False, "default-shm-size": "67108864"}
    undo |= json.loads(daemon_json)
    before = {"default_runtime": undo["default-runtime"], "live_restore": False}
    closed = docker({"default_runtime": True, "shm_size": "1g"}, daemon_json=daemon_json, docker=before)
    assert json.loads(closed.args(DockerInstall).undo) == undo


@pytest.mark.parametrize(
    ("before", "flags", "alive", "quiet"),
    [
        (True, [], {"live-restore": True}, {"live-restore": True}),
        (False, [], {"live-restore": True}, {"live-restore": False}),
        (True, ["--live-restore"], {}, {}),
    ],
    ids=["as it was", "off before", "a flag sets it"],
)
def test_a_rollback_by_restart_keeps_containers_alive(
    before: bool, flags: list[str], alive: dict[str, Any], quiet: dict[str, Any]
) -> None:
    engine = {"runtimes": {"nvidia": "nvidia-container-runtime"}, "live_restore": before}
    wanted = {"cdi": True} if flags else {"cdi": True, "live_restore": before}
    args = docker(wanted, daemon_json='{"debug": true}', docker=engine, dockerd_flags=flags).args(DockerInstall)
    assert json.loads(args.undo_with_live_restore) == {"debug": True} | alive
    assert json.loads(args.undo_live_restore) == {"debug": True} | quiet


ALL = {"default_runtime": True, "live_restore": True, "shm_size": "1g", "cdi": True}
PATH = "/etc/docker/daemon.json"


def removed(state: NodeState) -> tuple[NodeState, Closed]:
    """What ``remove`` does."""
    return taken_back(Docker(), NodeSpec(), state)


def applied(wanted: dict[str, Any], text: str | None) -> tuple[NodeSpec, NodeState, NodeState]:
    """A node with that daemon.json, before and after apply."""
    given = {k: v for k, v in DOCKER.items() if k != "daemon_json"} | ({} if text is None else {"daemon_json": text})
    document = json.loads((text or "").removeprefix("\ufeff") or "{}")
    engine: dict[str, Any] = {"runtimes": {n: r["path"] for n, r in document.get("runtimes", {}).items()}}
    engine |= {"default_runtime": document.get("default-runtime", "runc"), "live_restore": False}
    spec, before = node_of("docker", {"runtimes": {"docker": wanted}}, given | {"docker": engine})
    return spec, before, applied_to(Docker(), spec, before)


#: What a user may have in daemon.json.
TEXTS = [
    None,
    '{ "debug":true }',
    '{"live-restore": false, "features": {"x": true}}',
    '{"runtimes": {"nvidia": {"path": "/opt/x"}, "crun": {"path": "crun"}}, "default-runtime": "crun"}',
]


@pytest.mark.parametrize("text", [*TEXTS, "", "\ufeff{}", "{}", '{"default-shm-size": "2G", "features": {}}'])
@pytest.mark.parametrize("wanted", [{}, ALL])
def test_remove_restores_the_file_and_the_engine(text: str | None, wanted: Any) -> None:
    spec, before, state = applied(wanted, text)
    assert Docker().original(spec, before) == {}
    assert compare(Docker(), spec, state).diff == ()
    left, closed = removed(state)
    assert (left.files[PATH].text if PATH in left.files else None) == text
    assert left.docker == before.docker
    assert Docker().actual(spec, left) == Docker().actual(spec, before)
    assert Docker().original(spec, left) == {}
    assert json.loads(closed.args(DockerInstall).content)["live-restore"] is False


def test_remove_keeps_what_the_user_changed() -> None:
    spec, before = node_of("docker", {"runtimes": {"docker": ALL}}, DOCKER | {"daemon_json": "{}", "docker": {}})
    state = applied_to(Docker(), spec, before)
    edited = json.loads(state.files[PATH].text) | {"default-shm-size": "16g", "debug": True, "default-runtime": "runc"}
    edited["runtimes"]["nvidia"]["runtimeArgs"] = ["--x"]
    left, _ = removed(with_text(state, PATH, json.dumps(edited)))
    assert json.loads(left.files[PATH].text) == {"debug": True, "default-shm-size": "16g", "default-runtime": "runc"}


HALF = '{"default-runtime": "nvidia", "runtimes": {}, "debug": true}'


@pytest.mark.parametrize("wanted", [{}, {"default_runtime": True}, {"default_runtime": False}], ids=str)
def test_remove_leaves_a_docker_that_starts(wanted: dict[str, Any]) -> None:
    """The node was configured by half: dockerd does not start with a default runtime that is not there."""
    spec, before, state = applied(wanted, HALF)
    assert not compare(Docker(), spec, before).error
    found = compare(Removal(Docker()), spec, state)
    assert ("docker.default-runtime", None) in [(c.key, c.expected) for c in found.diff]
    assert ["default-runtime: nvidia is removed, too" in note for note in found.notes].count(True) == 1
    left, _ = removed(state)
    assert json.loads(left.files[PATH].text) == {"debug": True}
    assert left.docker is not None and not isinstance(left.docker, Unknown)
    assert (left.docker.default_runtime, "nvidia" in left.docker.runtimes) == ("runc", False)
    assert Docker().original(spec, left) == {}


@pytest.mark.parametrize("again", [True, False], ids=["after an apply", "at once"])
def test_a_default_that_was_deleted_from_the_file_leaves_docker_too(again: bool) -> None:
    """Docker still has it. Its reload would fail when the runtime goes, and the spec no longer names it."""
    _, _, state = applied({"default_runtime": True}, "{}")
    spec, _ = node_of("docker", {}, DOCKER)
    edited = with_text(state, PATH, json.dumps({"live-restore": True}))
    found = {c.key: (c.actual, c.expected) for c in compare(Docker(), spec, edited).diff}
    assert found["docker.running.default-runtime"] == ("nvidia", "runc")
    assert "docker.default-runtime" not in found
    if again:
        edited = applied_to(Docker(), spec, edited)
        assert isinstance(edited.docker, Engine) and edited.docker.default_runtime == "runc"
    left, closed = removed(edited)
    loaded = json.loads(closed.args(DockerInstall).content)
    assert again or (loaded["default-runtime"], loaded["runtimes"]) == ("runc", {})
    assert isinstance(left.docker, Engine)
    assert (left.docker.default_runtime, "nvidia" in left.docker.runtimes) == ("runc", False)


def test_remove_takes_out_the_default_that_the_user_set_later() -> None:
    spec, before = node_of("docker", {}, DOCKER | {"daemon_json": "{}", "docker": {}})
    state = applied_to(Docker(), spec, before)
    edited = json.loads(state.files[PATH].text) | {"default-runtime": "nvidia"}
    mine = with_text(state, PATH, json.dumps(edited))
    assert any("default-runtime" in note for note in compare(Removal(Docker()), spec, mine).notes)
    assert json.loads(removed(mine)[0].files[PATH].text) == {}


def test_remove_keeps_a_default_with_a_runtime_of_its_own() -> None:
    text = '{"runtimes": {"nvidia": {"path": "/opt/x"}}, "default-runtime": "nvidia"}'
    spec, _, state = applied({}, text)
    assert not any("default-runtime" in note for note in compare(Removal(Docker()), spec, state).notes)
    assert removed(state)[0].files[PATH].text == text


def test_a_runtime_without_a_path_does_not_come_back() -> None:
    spec, _, state = applied({}, '{"runtimes": {"nvidia": {"path": ""}}, "debug": true}')
    found = compare(Removal(Docker()), spec, state)
    assert "runtimes.nvidia had no path before gpuready" in found.notes[-1]
    left, _ = removed(state)
    assert json.loads(left.files[PATH].text) == {"debug": True}
    _, _, other = applied({}, "{}")
    assert not any("no path" in note for note in compare(Removal(Docker()), spec, other).notes)


def with_files(state: NodeState, **texts: str | None) -> NodeState:
    """Other texts in /var/lib/gpuready/docker.NAME and in daemon.json (None: no such file)."""
    files = dict(state.files)
    for name, text in texts.items():
        path = PATH if name == "daemon" else f"/var/lib/gpuready/docker.{name}"
        files.pop(path, None)
        if text is not None:
            files[path] = state.files[PATH].model_copy(update={"text": text})
    return state.model_copy(update={"files": files})


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("wanted", [{}, {"default_runtime": True, "live_restore": True, "cdi": True}])
@pytest.mark.parametrize(
    "cut", ["before the file", "before the reload", "before the last words", "before the record", "restored by hand"]
)
def test_an_interrupted_remove_is_finished(text: str | None, wanted: dict[str, Any], cut: str) -> None:
    spec, before, state = applied(wanted, text)
    done, closed = removed(state)
    args = closed.args(DockerInstall)
    half = with_files(state, ours=args.between)
    if cut == "restored by hand":
        half = with_files(half, daemon=text)
    elif cut != "before the file":
        half = with_files(half, daemon=args.content.decode())
    if cut in ("before the last words", "before the record"):
        half = half.model_copy(update={"docker": done.docker})
    if cut == "before the record":
        half = with_files(half, daemon=text)
    found = compare(Removal(Docker()), spec, half)
    assert not found.error
    left = removed(half)[0] if found.diff else half
    document = json.loads(left.files[PATH].text) if PATH in left.files else {}
    assert {k: v for k, v in document.items() if v != {}} == json.loads(text or "{}")
    assert left.docker == before.docker
    assert not compare(Removal(Docker()), spec, left).diff


def test_an_interrupted_apply_can_be_removed() -> None:
    spec, before, state = applied(ALL, "{}")
    half = with_files(state, ours=converged(Docker(), spec, before).args(DockerInstall).between)
    half = half.model_copy(update={"docker": before.docker})
    left, _ = removed(half)
    assert left.files[PATH].text == "{}"
    again = applied_to(Docker(), spec, half)
    assert removed(again)[0].docker == before.docker


def test_an_apply_after_an_interrupted_remove_records_the_file() -> None:
    """The engine was restarted with another flag meanwhile, so there is something to load and nothing to write."""
    spec, before, state = applied({"default_runtime": True}, "{}")
    between = removed(state)[1].args(DockerInstall).between
    half = with_files(state, ours=between).model_copy(update={"docker": before.docker})
    args = converged(Docker(), spec, half).args(DockerInstall)
    assert (args.content, args.forget) == (b"", False)
    assert args.after == state.files["/var/lib/gpuready/docker.ours"].text != between


def test_what_a_later_restart_takes_back_stays_on_record() -> None:
    spec, before, state = applied({"cdi": True}, "{}")
    reload, restart = Docker().groups(compare(Removal(Docker()), spec, state).diff)
    closed = close(Docker(), spec, state, reload)
    assert closed.args(DockerInstall).later
    half = after(Docker(), spec, state, closed)
    assert compare(Removal(Docker()), spec, half).diff == restart
    left, closed = removed(half)
    args = closed.args(DockerInstall)
    assert args.restart and args.forget
    assert left.docker == before.docker


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"docker": Unknown(unknown="no answer")}, "docker.running: no answer"),
        ({"docker": None, "dockerd_command": ("/usr/bin/dockerd",)}, "the command docker is missing"),
        ({"not_files": (PATH,)}, f"{PATH} is not a regular file"),
        ({"daemon": '{"live-restore": true,}'}, f"{PATH}: line 1, column "),
        ({"ours": '{"live-re'}, "docker.ours, the record .* cannot be read"),
    ],
)
def test_an_unreadable_file_or_engine_stops_remove(change: dict[str, Any], why: str) -> None:
    spec, _, state = applied({}, "{}")
    texts = {k: v for k, v in change.items() if k in ("daemon", "ours")}
    state = with_files(state, **texts).model_copy(update={k: v for k, v in change.items() if k not in texts})
    found = compare(Removal(Docker()), spec, state)
    assert found.applies and re.search(why, found.error), found


def test_a_damaged_record_stops_apply_too() -> None:
    spec, _, state = applied({}, "{}")
    assert (
        "docker.ours, the record of gpuready's changes, cannot be read"
        in compare(Docker(), spec, with_files(state, ours='{"live-re')).error
    )


def test_a_lost_original_stops_remove() -> None:
    spec, _, state = applied({}, "{}")
    files = {path: file for path, file in state.files.items() if "/backup/" not in path}
    found = compare(Removal(Docker()), spec, state.model_copy(update={"files": files}))
    assert "its original is not in /var/lib/gpuready/backup" in found.error


@pytest.mark.parametrize(("text", "paths"), [
    ('{"runtimes": {"nvidia": {"path": "/opt/x"}}}', ("/opt/x",)), ("{}", ())])  # fmt: skip
def test_the_engine_has_to_answer_with_the_path_that_comes_back(text: str, paths: tuple[str, ...]) -> None:
    spec, before, state = applied({}, text)
    args = converged(Docker(), spec, before).args(DockerInstall)
    assert args.runtime_paths == ("nvidia-container-runtime", "/usr/bin/nvidia-container-runtime")
    assert removed(state)[1].args(DockerInstall).runtime_paths == paths


_OURS = st.sampled_from(["runtimes", "default-runtime", "live-restore", "default-shm-size", "features"])


@given(st.dictionaries(_OURS, JSON | st.dictionaries(st.just("nvidia"), JSON)).map(json.dumps) | st.text(max_size=30))
def test_no_daemon_json_makes_a_comparison_crash(text: str) -> None:
    spec, state = node_of(
        "docker",
        {"runtimes": {"docker": {"default_runtime": True, "shm_size": "1g", "cdi": True}}},
        DOCKER | {"daemon_json": text},
    )
    found = compare(Docker(), spec, state)
    assert set(Docker().actual(spec, state)) > {"docker.runtimes.nvidia.path", "docker.running.live-restore"}
    if not found.error:
        written = close(Docker(), spec, state, found.diff).writes.get("/etc/docker/daemon.json", text)
        document = json.loads(written)
        assert document["runtimes"]["nvidia"]["path"] == "nvidia-container-runtime"
        assert document["default-runtime"] == "nvidia"
        assert document["live-restore"] is (daemonjson.read(text.encode()).get("live-restore") is not False)


# --- repository: the key is checked before anything is written ------------------------------------------------

REPO = {"url": "https://mirror.example/deb", "key": "https://mirror.example/key", "fingerprint": ED25519}
APT = {"have": ["apt-get"], "clock": 1_800_000_000}


def key_step(repo: dict[str, Any]) -> tuple[Step, Any]:
    spec, state = node_of("repository", {"toolkit": {"repo": REPO | repo}}, APT)
    steps = Repository().converge(compare(Repository(), spec, state).diff, spec, state)
    return next(steps), steps


@pytest.mark.fault("D1")
@pytest.mark.parametrize(
    ("fingerprint", "answer", "why"),
    [
        (ED25519, KEYS / "other-with-headers.asc", "holds the key 6E77DEE03441CFF7BA224E772DFBF182B1F37779"),
        (ED25519, KEYS / "two.gpg", "not a usable key: byte 248: found a second key, 6E77DEE0"),
        (EXPIRED, KEYS / "expired.asc", f"the key {EXPIRED} is expired on 2024-01-31"),
        (ED25519, "", "the file is empty"),
        (ED25519, "<html>", "not the key file in base64"),
        (ED25519, "caf\udce9", "not the key file in base64"),
        (ED25519, "AAA", "not the key file in base64"),
    ],
)
def test_a_wrong_key_ends_before_anything_is_written(fingerprint: str, answer: Path | str, why: str) -> None:
    step, steps = key_step({"fingerprint": fingerprint})
    assert (step.name, step.survives) == ("repository-key", False)
    given = answer if isinstance(answer, str) else base64.b64encode(answer.read_bytes()).decode()
    with pytest.raises(ConvergeError, match=f"{why}.*; nothing was written"):
        steps.send(Reply(0, given))


def test_the_right_key_is_written_from_its_parts() -> None:
    raw = (KEYS / "rsa3072-subkeys.gpg").read_bytes()
    _, steps = key_step({"fingerprint": "892BFAA6DC9822B8634749E2583452AB02AA9A9C"})
    step = steps.send(Reply(0, base64.b64encode(raw).decode()))
    assert isinstance(step.args, WriteFiles) and step.survives
    assert step.args.puts[0] == Put(AptSource.keyring, "absent", (KEYS / "rsa3072-subkeys.asc").read_bytes())


def test_a_key_file_of_the_controller_is_not_asked_of_the_node(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes((KEYS / "ed25519.asc").read_bytes())
    step, _ = key_step({"key": str(file)})
    assert isinstance(step.args, WriteFiles)
    assert step.args.puts[0] == Put(AptSource.keyring, "absent", file.read_bytes())


def test_a_key_file_of_the_controller_that_went_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(GpureadyError, match="cannot be read") as caught:
        key_step({"key": str(tmp_path / "gone")})
    assert caught.value.kind == "converge"


def test_the_key_is_fetched_through_the_repositorys_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUREADY_TEST_FETCH_PROXY", "http://me:secret@proxy.example:3128")
    step, _ = key_step({"proxy": "env:GPUREADY_TEST_FETCH_PROXY"})
    line = 'Acquire::https::Proxy::mirror.example "http://me:secret@proxy.example:3128";'
    assert step.args == FetchKey("https://mirror.example/key", line)
    assert f"( umask 077; printf '%s\\n' {shlex.quote(line)} >\"$D/conf\" )" in step.script
    assert "secret" not in step.summary


def test_all_files_are_compared_before_the_first_is_written() -> None:
    lists = {
        "/etc/apt/sources.list.d/a.list": "deb https://mirror.example/deb /\n",
        "/etc/apt/sources.list.d/b.list": "deb https://mirror.example/deb /\ndeb http://other.example x y\n",
    }
    spec, state = node_of("repository", {"toolkit": {"repo": REPO}}, APT | {"files": lists})
    key = (KEYS / "ed25519.asc").read_bytes()
    script = close(Repository(), spec, state, compare(Repository(), spec, state).diff, key=key).script("repository")
    words = [line.split()[0] for line in script.splitlines() if re.match(r"(same|put|drop) ", line)]
    assert words.count("same") == words.count("put") + words.count("drop") == 4
    assert "same" not in words[4:]


# --- toolkit, ldso --------------------------------------------------------------------------------------------


def test_the_toolkits_packages_go_in_one_transaction() -> None:
    spec, state = node_of("toolkit", {"toolkit": {"version": "1.19.1"}}, {})
    (step,) = converged(Toolkit(), spec, state).steps
    (line,) = [line for line in step.script.splitlines() if "--force-confdef" in line]
    assert re.findall(r"(\S+)=1\.19\.1-1", line) == list(PACKAGES)
    assert step.survives
    assert step.timeout >= 900


def test_holds_alone_call_no_apt_get() -> None:
    spec, state = node_of("toolkit", {}, {"packages": dict.fromkeys(PACKAGES, "1.20.1-1")})
    closed = converged(Toolkit(), spec, state)
    assert "apt_get" not in closed.script("toolkit")


def test_ldso_names_the_directories_that_must_exist() -> None:
    spec, state = node_of("ldso", {"ldso": ["/a/lib64", "/b/lib"]}, {})
    closed = converged(Ldso(), spec, state)
    assert closed.args(UpdateLinker).dirs == ("/a/lib64", "/b/lib")


# --- config.toml ------------------------------------------------------------------------------------------------

CONFIG_TOML = "/etc/nvidia-container-runtime/config.toml"


def configured(text: str | None, **toolkit: Any) -> tuple[NodeSpec, NodeState]:
    return node_of("config", {"toolkit": toolkit}, {"files": {CONFIG_TOML: text} if text is not None else {}})


def unconfigured(state: NodeState) -> NodeState:
    """What ``remove`` leaves."""
    return taken_back(Config(), NodeSpec(), state)[0]


@pytest.mark.parametrize(
    "text",
    [
        "# only this\n",
        '[nvidia-container-runtime]\nmode = "legacy" # why\n\n[nvidia-container-runtime.modes.legacy]\nx = 1\n',
        "accept-nvidia-visible-devices-envvar-when-unprivileged = true\ndisable-require = false\n",
    ],
)
def test_remove_restores_config_toml(text: str) -> None:
    spec, state = configured(text, mode="cdi", cuda_compat_mode="hook", hardened=True)
    done = applied_to(Config(), spec, state)
    assert compare(Config(), spec, done).diff == ()
    assert toml_document.read(unconfigured(done).files[CONFIG_TOML].text) == toml_document.read(text)
    edited = done.files[CONFIG_TOML].text.replace('"cdi"', '"jit-cdi"')
    left = unconfigured(with_text(done, CONFIG_TOML, edited))
    assert toml_document.read(left.files[CONFIG_TOML].text)["nvidia-container-runtime"]["mode"] == "jit-cdi"


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        (CONFIG_TOML, "runtimes = [,]\n", "fix it by hand"),
        (OURS, "{", "the record of gpuready's changes, cannot be read"),
        (OURS, "[]", "the record of gpuready's changes, cannot be read"),
        (OURS, '{"x": 1}', "the record of gpuready's changes, cannot be read"),
        (OURS, '{"x": {"y": 1}}', "the record of gpuready's changes, cannot be read"),
    ],
)
def test_an_unreadable_file_stops_remove(path: str, text: str, why: str) -> None:
    spec, state = configured("# only this\n", mode="cdi")
    found = compare(Removal(Config()), spec, with_text(applied_to(Config(), spec, state), path, text))
    assert path in found.error and why in found.error
    if path == CONFIG_TOML:
        never = compare(Removal(Config()), spec, with_text(state, path, text))
        assert (never.applies, never.error) == (False, "")


def test_a_failed_remove_keeps_its_record(tmp_path: Path) -> None:
    """The step itself, on a file that somebody edits at the last moment; /var and /etc lie elsewhere."""
    spec, state = configured("# only this\n", mode="cdi")
    done = applied_to(Config(), spec, state)
    found = compare(Removal(Config()), spec, done)
    script = close(Config(), spec, done, found.diff).script("config")
    for place in ("/var/lib/gpuready", "/etc/nvidia-container-runtime"):
        script = script.replace(place, f"{tmp_path}{place}")
        tmp_path.joinpath(place[1:]).mkdir(parents=True)
    file, record = (tmp_path / path[1:] for path in (CONFIG_TOML, OURS))
    record.write_text(done.files[OURS].text)
    file.write_text(f"{done.files[CONFIG_TOML].text}# at the last moment\n")

    def run() -> str:
        return subprocess.run(["sh"], input=script, capture_output=True, text=True, check=False).stderr

    assert "changed since the plan was made" in run()
    again = compare(Removal(Config()), spec, with_text(done, OURS, record.read_text()))
    assert again.diff == found.diff != ()
    file.write_text(done.files[CONFIG_TOML].text)
    assert (run(), file.read_text().rstrip(), record.exists()) == ("", "# only this", False)


def test_a_value_stays_on_record_until_it_is_replaced() -> None:
    spec, state = configured("# only this\n", mode="cdi")
    done = applied_to(Config(), spec, state)
    other = NodeSpec.model_validate({"toolkit": {"mode": "legacy"}})
    between = converged(Config(), other, done).args(ConfigInstall).between
    cut = with_text(done, OURS, between)
    assert compare(Removal(Config()), spec, cut).diff == compare(Removal(Config()), spec, done).diff != ()


def test_config_toml_is_read_again_before_it_is_merged() -> None:
    """The package that was installed a moment ago made it, or wrote it anew."""
    spec, state = configured(None, mode="cdi")
    steps = Config().converge(compare(Config(), spec, state).diff, spec, state)
    assert next(steps).survives is False
    made = "disable-require = true\n"
    step = steps.send(Reply(0, base64.b64encode(made.encode()).decode()))
    assert isinstance(step.args, ConfigInstall)
    assert step.args.before == hashlib.sha256(made.encode()).hexdigest()
    assert step.args.content == f'{made}\n[nvidia-container-runtime]\nmode = "cdi"\n'


@pytest.mark.parametrize("made", [b"[a\n", b"a = '\xff'\n", b"nvidia-container-runtime = 1\n"])
def test_config_toml_that_became_unreadable_is_not_touched(made: bytes) -> None:
    spec, state = configured(None, mode="cdi")
    steps = Config().converge(compare(Config(), spec, state).diff, spec, state)
    next(steps)
    with pytest.raises(ConvergeError, match="it was not touched"):
        steps.send(Reply(0, base64.b64encode(made).decode()))


@given(st.text(max_size=60) | st.sampled_from(["a = 1\na = 2", "[a.b]\n[a]\nb = 1", "a = 1979-05-27", "[[a]]\n"]))
def test_no_config_toml_makes_a_comparison_crash(text: str) -> None:
    spec, state = configured(text, mode="cdi", cuda_compat_mode="hook", hardened=True)
    found = compare(Config(), spec, state)
    if not found.error:
        written = close(Config(), spec, state, found.diff).writes[CONFIG_TOML]
        document = toml_document.read(written)
        assert document["nvidia-container-runtime"]["modes"]["legacy"]["cuda-compat-mode"] == "hook"
        assert {k: v for k, v in document.items() if k in toml_document.read(text)} == toml_document.read(text) or (
            "nvidia-container-runtime" in text or "accept" in text
        )


# --- CDI --------------------------------------------------------------------------------------------------------


_KEYS = st.sampled_from(["kind", "devices", "name", "containerEdits", "mounts", "hostPath", "hooks", "path"])


@given(
    st.text(max_size=60) | st.dictionaries(_KEYS, JSON | st.lists(st.dictionaries(_KEYS, JSON))).map(json.dumps),
    st.sampled_from(["json", "yaml"]),
)
def test_no_cdi_spec_makes_a_comparison_crash(text: str, suffix: str) -> None:
    state = {
        "module": "580.159.04",
        "systemd": True,
        "files": {f"/var/run/cdi/{n}.{suffix}": text for n in ("nvidia", "x")},
    }
    spec, node = node_of("cdi", {}, state)
    found = compare(Cdi(), spec, node)
    assert found.diff and not found.error
    for check in CATALOGUE:
        if check.component == "cdi":
            assert check.verdict(spec, node).summary


def removed_cdi(
    driver: str, before: dict[str, str | None], now: list[str], more: dict[str, str] | None = None
) -> Comparison:
    """The way back on a node with that driver, whose specs from before and of now are of these."""
    text = (KEYS.parent / "h200" / "nvidia-ctk-cdi-generate.yaml").read_text("utf-8")
    files = dict.fromkeys(now, text)
    for path, version in before.items():
        kind = "original" if version else "absent"
        files[f"{KEPT}{path}.{kind}"] = text.replace("580.159.04", version) if version else ""
        files[f"{KEPT}{path}.ours"] = hashlib.sha256(text.encode()).hexdigest() if path in now else "absent"
    spec, node = node_of("cdi", {}, {"module": driver, "files": files | (more or {})})
    return compare(Removal(Cdi()), spec, node)


ETC, RUN = "/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"
NO_TOOLKIT_BEFORE = {f"{KEPT}/packages.original": "docker.io 1 ii\n"}


@pytest.mark.parametrize(
    ("driver", "was", "files", "back"),
    [
        ("580.159.04", "580.159.04", {}, {ETC: "original", RUN: None}),
        ("580.159.04", "550.54.14", {}, {}),
        ("580.159.04", "550.54.14", NO_TOOLKIT_BEFORE, {RUN: None}),
        ("", "550.54.14", {}, {ETC: "original", RUN: None}),
    ],
)
def test_no_cdi_spec_of_another_driver_comes_back(
    driver: str, was: str, files: dict[str, str], back: dict[str, str | None]
) -> None:
    found = removed_cdi(driver, {ETC: was, RUN: None}, [RUN], files)
    assert {c.key.removeprefix("cdi.files."): c.expected for c in found.diff} == back
    outdated = bool(back) and ETC not in back
    assert [f"the original {ETC} is for driver {was}" in note for note in found.notes] == [True] * outdated


def test_remove_keeps_the_only_cdi_spec_while_the_toolkit_stays() -> None:
    assert not removed_cdi("580.159.04", {RUN: None}, [RUN]).diff
    other = removed_cdi("580.159.04", {RUN: None}, [RUN, "/etc/cdi/mine.yaml"])
    assert [(c.key, c.expected) for c in other.diff] == [(f"cdi.files.{RUN}", None)]


def test_old_cdi_specs_are_moved_only_after_the_new_one_exists() -> None:
    text = (KEYS.parent / "h200" / "nvidia-ctk-cdi-generate.yaml").read_text("utf-8")
    state = {"module": "580.159.04", "files": {"/etc/cdi/nvidia.yaml": text, "/etc/cdi/old one.yaml": text}}
    spec, node = node_of("cdi", {}, state)
    closed = converged(Cdi(), spec, node)
    args, script = closed.args(CdiGenerate), closed.script("cdi")
    assert args.target == "/etc/cdi/nvidia.yaml"
    assert args.shadows == (f"{hashlib.sha256(text.encode()).hexdigest()}:/etc/cdi/old one.yaml",)
    assert script.index("nvidia-ctk cdi generate") < script.index("for s in")

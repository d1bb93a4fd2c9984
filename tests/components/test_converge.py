"""What the steps carry, where a case file cannot say it: answers of the node that are wrong, and values of scripts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuready.catalogue import CATALOGUE
from gpuready.components.cdi.component import Cdi, CdiGenerate
from gpuready.components.docker.component import Docker
from gpuready.components.docker.transaction import DockerInstall
from gpuready.components.ldso.component import Ldso, UpdateLinker
from gpuready.components.repository.component import KEYRING, FetchKey, Repository
from gpuready.components.toolkit.component import Toolkit
from gpuready.components.toolkit_config.component import OURS, Config, ConfigInstall
from gpuready.core import json_document as daemonjson
from gpuready.core import toml_document
from gpuready.core.compare import Comparison, compare
from gpuready.core.component import Change, Disruption
from gpuready.core.errors import ConvergeError, GpureadyError
from gpuready.core.ledger import Put, WriteFiles
from gpuready.core.nvidia_ctk import Configure
from gpuready.core.step import Reply, Step
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState, Unknown
from tests.components.cases import KEYS, node_of
from tests.components.closing import Closed, after, applied_to, close, converged, with_text

ED25519 = "CFCDB27B5084BE4E7873DB9F8549EB4391176AB3"
DOCKER: dict[str, Any] = {
    "tools": {"dockerd": "/usr/bin/dockerd"},
    "docker": {"runtimes": {"nvidia": "nvidia-container-runtime"}, "live_restore": True},
    "daemon_json": '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}, "live-restore": true}',
    "clock": 100_000,
    "uptime": 50_000,
    "units": {"docker.service": {"started_us": 10_000_000_000, "invocation": "abc"}},
}


def built(spec: dict[str, Any], state: dict[str, Any], component: str = "docker") -> tuple[NodeSpec, NodeState]:
    return node_of(component, spec, state)


def docker(spec: dict[str, Any] | None = None, **state: Any) -> Closed:
    given = {k: v for k, v in DOCKER.items() if k != "daemon_json" or "files" not in state} | state
    node_spec, node_state = built({"runtimes": {"docker": spec or {}}}, given)
    return converged(Docker(), node_spec, node_state)


# --- docker: what nvidia-ctk is given, and what becomes of its answer -----------------------------------------


@pytest.mark.parametrize(
    ("daemon_json", "given"),
    [
        ('{"debug": true}', b'{"debug": true}'),
        ('{"label": "gr\u00fcn"}', '{"label": "gr\u00fcn"}'.encode()),
        ("", b"{}"),
        ("\ufeff{}", b"{}"),
        ('\ufeff{"debug": true}', b"{}"),
        ('{"runtimes": null}', b"{}"),
    ],
)
def test_nvidia_ctk_gets_the_users_file_or_an_empty_one(daemon_json: str, given: bytes) -> None:
    assert docker(daemon_json=daemon_json).args(Configure).given == given


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "{}",
        "[]",
        "no JSON",
        '{"runtimes": null}',
        '{"runtimes": []}',
        '{"runtimes": {"nvidia": {}}}',
        '{"runtimes": {"nvidia": []}}',
        '{"runtimes": {"nvidia": {"path": ""}}}',
        '{"runtimes": {"nvidia": {"path": null}}}',
        '{"runtimes": {"nvidia": {"path": "\udcff"}}}',
    ],
)
def test_an_answer_of_nvidia_ctk_without_a_path_changes_nothing(answer: str) -> None:
    spec, state = built({}, DOCKER | {"daemon_json": "{}"})
    steps = Docker().converge(compare(Docker(), spec, state).diff, spec, state)
    assert next(steps).name == "docker-stage"
    with pytest.raises(ConvergeError, match="nothing was changed"):
        steps.send(Reply(0, answer))


def test_only_the_path_is_taken_from_nvidia_ctks_answer() -> None:
    spec, state = built(
        {}, DOCKER | {"daemon_json": '{"features": {"cdi": true, "buildkit": false}, "n": 9007199254740993}'}
    )
    staged = '{"features": {"cdi": true}, "n": 9007199254740992, "runtimes": {"nvidia": {"args": [], "path": "/x/y"}}}'
    written = close(Docker(), spec, state, compare(Docker(), spec, state).diff, staged).writes[
        "/etc/docker/daemon.json"
    ]
    assert "9007199254740993" in written
    assert '"buildkit": false' in written
    assert '"path": "/x/y"' in written
    assert "args" not in written


# --- docker: the install step ---------------------------------------------------------------------------------


def test_a_running_engine_is_reloaded_and_not_restarted() -> None:
    args = docker({"default_runtime": True}).args(DockerInstall)
    assert (args.reload, args.restart, args.default_runtime) == (True, False, "nvidia")
    assert args.live_restore == ""  # nothing differs there, so nothing is asked


def test_a_stopped_engine_is_neither_reloaded_nor_started() -> None:
    args = docker({"default_runtime": True}, docker="stopped").args(DockerInstall)
    assert not args.reload and not args.restart


def test_cdi_that_is_already_in_the_file_needs_a_restart_and_no_reload() -> None:
    text = DOCKER["daemon_json"].replace("}}", '}}, "features": {"cdi": true}')
    args = docker({"cdi": True}, daemon_json=text).args(DockerInstall)
    assert (args.reload, args.restart, args.content, args.cdi) == (False, True, b"", "true")


def test_the_hash_before_is_that_of_the_file_or_absent() -> None:
    _, state = built({}, DOCKER)
    assert docker({"default_runtime": True}).args(DockerInstall).before == state.files[PATH].sha256
    assert docker(files={}).args(DockerInstall).before == "absent"


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
    spec, state = built({"runtimes": {"docker": {"cdi": True, "default_runtime": True}}}, DOCKER)
    found = compare(Docker(), spec, state)
    first, second = Docker().groups(found.diff)
    assert {c.key for c in second} == {"docker.running.features.cdi"}
    assert set(first) | set(second) == set(found.diff)
    assert Docker().disruption(first, state) == Disruption.reload
    assert Docker().disruption(first + second, state) == Disruption.restart
    closed = close(Docker(), spec, state, first)
    args = closed.args(DockerInstall)
    assert args.reload and not args.restart
    assert '"cdi": true' in closed.writes[PATH]


@pytest.mark.parametrize(
    ("daemon_json", "undo"),
    [
        ("{}", {"runtimes": {}, "live-restore": False, "default-runtime": "runc"}),
        (
            '{"debug": true, "runtimes": {"crun": {"path": "/usr/bin/crun"}}, "default-runtime": "crun"}',
            {
                "debug": True,
                "runtimes": {"crun": {"path": "/usr/bin/crun"}},
                "live-restore": False,
                "default-runtime": "crun",
            },
        ),
    ],
)
def test_the_rollback_names_the_defaults_of_missing_keys(daemon_json: str, undo: dict[str, Any]) -> None:
    before = {"default_runtime": undo["default-runtime"], "live_restore": False}
    closed = docker({"default_runtime": True, "shm_size": "1g"}, daemon_json=daemon_json, docker=before)
    assert json.loads(closed.args(DockerInstall).undo) == undo | {"default-shm-size": "67108864"}


@pytest.mark.parametrize("before", [True, False])
def test_a_rollback_by_restart_keeps_containers_alive(before: bool) -> None:
    engine = {"runtimes": {"nvidia": "nvidia-container-runtime"}, "live_restore": before}
    closed = docker({"cdi": True, "live_restore": before}, daemon_json='{"debug": true}', docker=engine)
    args = closed.args(DockerInstall)
    assert json.loads(args.alive) == {"debug": True, "live-restore": True}
    assert json.loads(args.quiet) == {"debug": True, "live-restore": before}


def test_the_rollback_leaves_out_what_a_flag_sets() -> None:
    closed = docker({"cdi": True}, daemon_json='{"debug": true}', dockerd_flags=["--live-restore"])
    args = closed.args(DockerInstall)
    assert json.loads(args.alive) == json.loads(args.quiet) == {"debug": True}


ALL = {"default_runtime": True, "live_restore": True, "shm_size": "1g", "cdi": True}
PATH = "/etc/docker/daemon.json"


def removed(state: NodeState) -> tuple[NodeState, Closed]:
    """What ``remove`` does: the originals are what should be."""
    spec, actual = NodeSpec(), Docker().actual(NodeSpec(), state)
    want = Docker().original(spec, state)
    diff = tuple(Change(k, actual.get(k), v) for k, v in want.items() if actual.get(k) != v)
    closed = close(Docker(), spec, state, diff)
    return after(Docker(), spec, state, closed), closed


def applied(wanted: dict[str, Any], text: str | None) -> tuple[NodeSpec, NodeState, NodeState]:
    """A node with that daemon.json, before and after apply."""
    given = {k: v for k, v in DOCKER.items() if k != "daemon_json"} | ({} if text is None else {"daemon_json": text})
    document = json.loads((text or "").removeprefix("\ufeff") or "{}")
    engine: dict[str, Any] = {"runtimes": {n: r["path"] for n, r in document.get("runtimes", {}).items()}}
    engine |= {"default_runtime": document.get("default-runtime", "runc"), "live_restore": False}
    spec, before = built({"runtimes": {"docker": wanted}}, given | {"docker": engine})
    return spec, before, applied_to(Docker(), spec, before)


@pytest.mark.parametrize("text", [None, "", "\ufeff{}", "{}", '{ "debug":true }',
    '{"live-restore": false, "features": {"x": true}}',
    '{"runtimes": {"nvidia": {"path": "/opt/x"}, "crun": {"path": "crun"}}, "default-runtime": "crun"}',
    '{"default-shm-size": "2G", "features": {}}'])  # fmt: skip
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
    spec, before = built({"runtimes": {"docker": ALL}}, DOCKER | {"daemon_json": "{}", "docker": {}})
    state = applied_to(Docker(), spec, before)
    edited = json.loads(state.files[PATH].text) | {"default-shm-size": "16g", "debug": True, "default-runtime": "runc"}
    edited["runtimes"]["nvidia"]["runtimeArgs"] = ["--x"]
    left, _ = removed(with_text(state, PATH, json.dumps(edited)))
    assert json.loads(left.files[PATH].text) == {"debug": True, "default-shm-size": "16g", "default-runtime": "runc"}


def test_remove_stops_where_the_user_depends_on_the_runtime() -> None:
    spec, before = built({}, DOCKER | {"daemon_json": "{}", "docker": {}})
    state = applied_to(Docker(), spec, before)
    edited = json.loads(state.files[PATH].text) | {"default-runtime": "nvidia"}
    with pytest.raises(ConvergeError, match="default-runtime is 'nvidia', which is not in runtimes"):
        removed(with_text(state, PATH, json.dumps(edited)))


def with_files(state: NodeState, **texts: str | None) -> NodeState:
    """Other texts in /var/lib/gpuready/docker.NAME and in daemon.json (None: no such file)."""
    files = dict(state.files)
    for name, text in texts.items():
        path = PATH if name == "daemon" else f"/var/lib/gpuready/docker.{name}"
        files.pop(path, None)
        if text is not None:
            files[path] = state.files[PATH].model_copy(update={"text": text})
    return state.model_copy(update={"files": files})


@pytest.mark.parametrize("text", [None, '{ "debug":true }', '{"live-restore": false, "features": {"x": true}}',
    '{"runtimes": {"nvidia": {"path": "/opt/x"}, "crun": {"path": "crun"}}, "default-runtime": "crun"}'])  # fmt: skip
@pytest.mark.parametrize("wanted", [{}, {"default_runtime": True, "live_restore": True, "cdi": True}])
@pytest.mark.parametrize("cut", ["before the file", "before the reload", "before the last words", "before the record"])
def test_an_interrupted_remove_is_finished(text: str | None, wanted: dict[str, Any], cut: str) -> None:
    spec, before, state = applied(wanted, text)
    done, closed = removed(state)
    args = closed.args(DockerInstall)
    half = with_files(state, next=args.record)
    if cut != "before the file":
        half = with_files(half, daemon=args.content.decode())
    if cut in ("before the last words", "before the record"):
        half = half.model_copy(update={"docker": done.docker})
    if cut == "before the record":
        half = with_files(half, daemon=text)
    found = compare(Docker(), spec, half, original=True)
    assert not found.error
    left = removed(half)[0] if found.diff else half
    document = json.loads(left.files[PATH].text) if PATH in left.files else {}
    assert {k: v for k, v in document.items() if v != {}} == json.loads(text or "{}")
    assert left.docker == before.docker
    assert not compare(Docker(), spec, left, original=True).diff


def test_an_interrupted_apply_can_be_removed() -> None:
    spec, before, state = applied(ALL, "{}")
    ours = state.files["/var/lib/gpuready/docker.ours"].text
    half = with_files(state, ours=None, next=ours).model_copy(update={"docker": before.docker})
    left, _ = removed(half)
    assert left.files[PATH].text == "{}"
    again = applied_to(Docker(), spec, half)
    assert removed(again)[0].docker == before.docker


def test_an_apply_after_an_interrupted_remove_records_the_file() -> None:
    """The engine was restarted with another flag meanwhile, so there is something to load and nothing to write."""
    spec, before, state = applied({"default_runtime": True}, "{}")
    half = with_files(state, next="{}\n").model_copy(update={"docker": before.docker})
    args = converged(Docker(), spec, half).args(DockerInstall)
    assert (args.content, args.forget) == (b"", False)
    assert json.loads(args.record) == json.loads(state.files["/var/lib/gpuready/docker.ours"].text)


def test_what_a_later_restart_takes_back_stays_on_record() -> None:
    spec, before, state = applied({"cdi": True}, "{}")
    reload, restart = Docker().groups(compare(Docker(), spec, state, original=True).diff)
    closed = close(Docker(), spec, state, reload)
    assert closed.args(DockerInstall).later
    files = {
        p: f for p, f in after(Docker(), spec, state, closed).files.items() if p != "/var/lib/gpuready/docker.next"
    }
    half = with_files(after(Docker(), spec, state, closed).model_copy(update={"files": files}),
        next="{}\n", ours=state.files["/var/lib/gpuready/docker.ours"].text)  # fmt: skip
    assert compare(Docker(), spec, half, original=True).diff == restart
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
    found = compare(Docker(), spec, state, original=True)
    assert found.applies and re.search(why, found.error), found


def test_a_lost_original_stops_remove() -> None:
    spec, _, state = applied({}, "{}")
    files = {path: file for path, file in state.files.items() if "/backup/" not in path}
    found = compare(Docker(), spec, state.model_copy(update={"files": files}), original=True)
    assert "its original is not in /var/lib/gpuready/backup" in found.error


@pytest.mark.parametrize(("text", "paths"), [
    ('{"runtimes": {"nvidia": {"path": "/opt/x"}}}', ("/opt/x",)), ("{}", ())])  # fmt: skip
def test_the_engine_has_to_answer_with_the_path_that_comes_back(text: str, paths: tuple[str, ...]) -> None:
    spec, before, state = applied({}, text)
    args = converged(Docker(), spec, before).args(DockerInstall)
    assert args.runtime_paths == ("nvidia-container-runtime", "/usr/bin/nvidia-container-runtime")
    assert removed(state)[1].args(DockerInstall).runtime_paths == paths


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=6), v, max_size=3),
    max_leaves=6,
)
_OURS = st.sampled_from(["runtimes", "default-runtime", "live-restore", "default-shm-size", "features"])


@settings(deadline=None)  # a busy machine is no failure
@given(st.dictionaries(_OURS, _JSON | st.dictionaries(st.just("nvidia"), _JSON)).map(json.dumps) | st.text(max_size=30))
def test_no_daemon_json_makes_a_comparison_crash(text: str) -> None:
    spec, state = built(
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
APT = {"have": ["apt-get"]}


def key_step(repo: dict[str, Any]) -> tuple[Step, Any]:
    spec, state = built({"toolkit": {"repo": REPO | repo}}, APT, "repository")
    steps = Repository().converge(compare(Repository(), spec, state).diff, spec, state)
    return next(steps), steps


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((KEYS / "other-with-headers.asc").read_bytes(), "holds the key 6E77DEE03441CFF7BA224E772DFBF182B1F37779"),
        ((KEYS / "two.gpg").read_bytes(), "not a usable key: byte 248: found a second key, 6E77DEE0"),
        (b"<html>moved</html>", "line 1: this is not an OpenPGP public key: .*found '<html>moved</html>'"),
        (b"", "the file is empty"),
        ((KEYS / "ed25519.gpg").read_bytes()[:40], "byte 0: the file ends inside this packet"),
    ],
)
def test_a_wrong_key_ends_before_anything_is_written(answer: bytes, why: str) -> None:
    step, steps = key_step({})
    assert (step.name, step.survives) == ("repository-key", False)
    with pytest.raises(ConvergeError, match=why) as caught:
        steps.send(Reply(0, base64.b64encode(answer).decode()))
    assert "nothing was written" in caught.value.message


@pytest.mark.fault("D1")
@pytest.mark.parametrize(
    ("file", "fingerprint", "why"),
    [
        ("expired.asc", "D6761C8989E5433A70AACF3894555A3C2B2D5B93", "expired on 2024-01-31"),
        ("revoked.asc", "710B8092E083B578B3D5C37B7B2BA28C7F702A52", "revoked"),
    ],
)
def test_a_key_that_apt_would_refuse_is_not_written(file: str, fingerprint: str, why: str) -> None:
    raw = (KEYS / file).read_bytes()
    spec, state = built(
        {"toolkit": {"repo": REPO | {"fingerprint": fingerprint}}}, APT | {"clock": 1_800_000_000}, "repository"
    )
    with pytest.raises(ConvergeError, match=f"the key {fingerprint} is {why}; nothing was written"):
        close(Repository(), spec, state, compare(Repository(), spec, state).diff, key=raw)


@pytest.mark.parametrize("answer", ["<html>", "caf\udce9", "AAA", "AAAA AAAA"])
def test_an_answer_of_the_node_that_is_no_base64_is_a_clear_error(answer: str) -> None:
    _, steps = key_step({})
    with pytest.raises(ConvergeError, match="not the key file in base64; nothing was written"):
        steps.send(Reply(0, answer))


def test_the_right_key_is_written_from_its_parts() -> None:
    _, steps = key_step({})
    raw = (KEYS / "rsa3072-subkeys.gpg").read_bytes()
    with pytest.raises(ConvergeError):
        steps.send(Reply(0, base64.b64encode(raw).decode()))
    _, steps = key_step({"fingerprint": "892BFAA6DC9822B8634749E2583452AB02AA9A9C"})
    step = steps.send(Reply(0, base64.b64encode(raw).decode()))
    assert isinstance(step.args, WriteFiles) and step.survives
    assert step.args.puts[0] == Put(KEYRING, "absent", (KEYS / "rsa3072-subkeys.asc").read_bytes())


def test_a_key_file_of_the_controller_is_not_asked_of_the_node(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes((KEYS / "ed25519.asc").read_bytes())
    step, _ = key_step({"key": str(file)})
    assert isinstance(step.args, WriteFiles)
    assert step.args.puts[0] == Put(KEYRING, "absent", file.read_bytes())


def test_a_key_file_of_the_controller_that_went_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(GpureadyError, match="cannot be read") as caught:
        key_step({"key": str(tmp_path / "gone")})
    assert caught.value.kind == "converge"


def test_the_key_is_fetched_through_the_repositorys_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_FETCH_PROXY", "http://me:secret@proxy.example:3128")
    step, _ = key_step({"proxy": "env:TEST_FETCH_PROXY"})
    line = 'Acquire::https::Proxy::mirror.example "http://me:secret@proxy.example:3128";'
    assert step.args == FetchKey("https://mirror.example/key", line)
    assert f"( umask 077; printf '%s\\n' {shlex.quote(line)} >\"$D/apt.conf\" )" in step.script
    assert "secret" not in step.summary


def test_all_files_are_compared_before_the_first_is_written() -> None:
    spec, state = built(
        {"toolkit": {"repo": REPO}},
        APT
        | {
            "files": {
                "/etc/apt/sources.list.d/a.list": "deb https://mirror.example/deb /\n",
                "/etc/apt/sources.list.d/b.list": "deb https://mirror.example/deb /\ndeb http://other.example x y\n",
            }
        },
        "repository",
    )
    key = (KEYS / "ed25519.asc").read_bytes()
    script = close(Repository(), spec, state, compare(Repository(), spec, state).diff, key=key).script("repository")
    words = [line.split()[0] for line in script.splitlines() if re.match(r"(same|put|drop) ", line)]
    assert words.count("same") == words.count("put") + words.count("drop") == 4
    assert "same" not in words[4:]


# --- toolkit, ldso --------------------------------------------------------------------------------------------


def test_the_toolkits_packages_go_in_one_transaction() -> None:
    spec, state = built({"toolkit": {"version": "1.19.1"}}, {}, "toolkit")
    (step,) = converged(Toolkit(), spec, state).steps
    (line,) = [line for line in step.script.splitlines() if "--force-confdef" in line]
    assert re.findall(r"\S+=1\.19\.1-1", line) == [
        "nvidia-container-toolkit=1.19.1-1",
        "nvidia-container-toolkit-base=1.19.1-1",
        "libnvidia-container-tools=1.19.1-1",
        "libnvidia-container1=1.19.1-1",
    ]
    assert step.survives
    assert step.timeout >= 900


def test_holds_alone_call_no_apt_get() -> None:
    packages = dict.fromkeys(
        (
            "nvidia-container-toolkit",
            "nvidia-container-toolkit-base",
            "libnvidia-container-tools",
            "libnvidia-container1",
        ),
        "1.20.0-1",
    )
    spec, state = built({}, {"packages": packages}, "toolkit")
    closed = converged(Toolkit(), spec, state)
    assert "apt_get" not in closed.script("toolkit")


def test_ldso_names_the_directories_that_must_exist() -> None:
    spec, state = built({"ldso": ["/a/lib64", "/b/lib"]}, {}, "ldso")
    closed = converged(Ldso(), spec, state)
    assert closed.args(UpdateLinker).dirs == ("/a/lib64", "/b/lib")


# --- config.toml ------------------------------------------------------------------------------------------------

CONFIG_TOML = "/etc/nvidia-container-runtime/config.toml"


def configured(text: str | None, **toolkit: Any) -> tuple[NodeSpec, NodeState]:
    return built({"toolkit": toolkit}, {"files": {CONFIG_TOML: text} if text is not None else {}}, "config")


def unconfigured(state: NodeState) -> NodeState:
    """What ``remove`` does."""
    spec = NodeSpec()
    actual, want = Config().actual(spec, state), Config().original(spec, state)
    diff = tuple(Change(k, actual.get(k), v) for k, v in want.items() if actual.get(k) != v)
    return after(Config(), spec, state, close(Config(), spec, state, diff))


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


def test_an_unreadable_config_toml_stops_remove() -> None:
    spec, state = configured("# only this\n", mode="cdi")
    done = applied_to(Config(), spec, state)
    broken = with_text(done, CONFIG_TOML, done.files[CONFIG_TOML].text + "runtimes = [,]\n")
    found = compare(Config(), spec, broken, original=True)
    assert CONFIG_TOML in found.error and "fix it by hand" in found.error
    never = compare(Config(), spec, with_text(state, CONFIG_TOML, broken.files[CONFIG_TOML].text), original=True)
    assert (never.applies, never.error) == (False, "")


def test_a_failed_remove_keeps_its_record(tmp_path: Path) -> None:
    """The step itself, on a file that somebody edits at the last moment; /var and /etc lie elsewhere."""
    spec, state = configured("# only this\n", mode="cdi")
    done = applied_to(Config(), spec, state)
    found = compare(Config(), spec, done, original=True)
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
    again = compare(Config(), spec, with_text(done, OURS, record.read_text()), original=True)
    assert again.diff == found.diff != ()
    file.write_text(done.files[CONFIG_TOML].text)
    assert (run(), file.read_text().rstrip(), record.exists()) == ("", "# only this", False)


def test_a_value_stays_on_record_until_it_is_replaced() -> None:
    spec, state = configured("# only this\n", mode="cdi")
    done = applied_to(Config(), spec, state)
    other = NodeSpec.model_validate({"toolkit": {"mode": "legacy"}})
    between = converged(Config(), other, done).args(ConfigInstall).between
    cut = with_text(done, OURS, between)
    assert compare(Config(), spec, cut, original=True).diff == compare(Config(), spec, done, original=True).diff != ()


def test_an_unreadable_record_stops_remove() -> None:
    spec, state = configured("# only this\n", mode="cdi")
    done = applied_to(Config(), spec, state)
    for text in ("{", "[]", '{"x": 1}', '{"x": {"y": 1}}'):
        found = compare(Config(), spec, with_text(done, OURS, text), original=True)
        assert f"{OURS}, the record of gpuready's changes, cannot be read" in found.error


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


@given(
    st.text(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("nvidia.com/gpu"),
        lambda v: (
            st.lists(v, max_size=3)
            | st.dictionaries(
                st.sampled_from(["kind", "devices", "name", "containerEdits", "mounts", "hostPath", "hooks", "path"]), v
            )
        ),
        max_leaves=12,
    ).map(json.dumps),
    st.sampled_from(["json", "yaml"]),
)
def test_no_cdi_spec_makes_a_comparison_crash(text: str, suffix: str) -> None:
    state = {
        "module": "580.159.04",
        "systemd": True,
        "files": {f"/var/run/cdi/{n}.{suffix}": text for n in ("nvidia", "x")},
    }
    spec, node = built({}, state, "cdi")
    found = compare(Cdi(), spec, node)
    assert found.diff and not found.error
    for check in CATALOGUE:
        if check.component == "cdi":
            assert check.verdict(spec, node).summary


CDI_KEPT = "/var/lib/gpuready/backup"


def removed_cdi(driver: str, before: dict[str, str | None], now: list[str], **fields: Any) -> Comparison:
    """The way back on a node with that driver, whose specs from before and of now are of these."""
    text = (KEYS.parent / "h200" / "nvidia-ctk-cdi-generate.yaml").read_text("utf-8")
    files = dict.fromkeys(now, text)
    for path, version in before.items():
        kind = "original" if version else "absent"
        files[f"{CDI_KEPT}{path}.{kind}"] = text.replace("580.159.04", version) if version else ""
        files[f"{CDI_KEPT}{path}.ours"] = hashlib.sha256(text.encode()).hexdigest() if path in now else "absent"
    files |= fields.pop("files", {})
    spec, node = built({}, {"module": driver, "files": files, **fields}, "cdi")
    return compare(Cdi(), spec, node, original=True)


ETC, RUN = "/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"
NO_TOOLKIT_BEFORE = {f"{CDI_KEPT}/packages.original": "docker.io 1 ii\n"}


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
    found = removed_cdi(driver, {ETC: was, RUN: None}, [RUN], files=files)
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
    spec, node = built({}, state, "cdi")
    closed = converged(Cdi(), spec, node)
    args, script = closed.args(CdiGenerate), closed.script("cdi")
    assert args.target == "/etc/cdi/nvidia.yaml"
    assert args.shadows == (f"{hashlib.sha256(text.encode()).hexdigest()}:/etc/cdi/old one.yaml",)
    assert script.index("nvidia-ctk cdi generate") < script.index("for s in")

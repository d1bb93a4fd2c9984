"""``apply --image``: what it refuses, what an image leaves to its first boot, and what of the builder goes.

tests/system/test_image.py makes an image and boots it.
"""

import atexit
import fcntl
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hcl2
import pytest
from click.testing import CliRunner

from gpuready.base import resources
from gpuready.base.errors import UsageError
from gpuready.base.facts import File
from gpuready.components.driver import install
from gpuready.components.ledger.component import Forget
from gpuready.contract import image_boot
from gpuready.contract.compare import FIRST_BOOT, Plan
from gpuready.contract.component import Disruption
from gpuready.contract.node_record import PATH as RECORD
from gpuready.inventory.build import written
from gpuready.inventory.hosts import load
from gpuready.model.spec import NodeSpec
from gpuready.model.state import IMAGE, NodeState
from gpuready.node import NODE, REMOVALS
from gpuready.operations.active import script as active
from gpuready.result.human import human
from gpuready.result.model import HostResult, Run
from gpuready.verbs.apply import image
from gpuready.verbs.apply.command import command
from gpuready.verbs.apply.part import PART, FirstBoot
from gpuready.verbs.verify.command import command as verify
from tests.pages import ROOT, blocks

GUIDE = ROOT / "docs" / "guides" / "machine-images.md"
STATE = NodeState.model_validate_json((ROOT / "tests/data/h200-mounted-driver/state.json").read_text("utf-8"))
SPEC = NodeSpec.model_validate({"hardware": {"gpus": 8}})


def of_image(state: NodeState = STATE) -> NodeState:
    return state.model_copy(update={"files": {**state.files, IMAGE: File.model_construct()}})


def test_what_needs_a_booted_machine_waits_for_it() -> None:
    plan = Plan(NODE, SPEC, of_image())
    waits = {item.name for item in NODE if plan[item].reason == FIRST_BOOT}
    assert waits == {"devices", "cdi", "memlock", "rdma", "nccl", "dcgm", "monitoring", "wheels", "reconverge", "gate"}
    assert not any(plan[item].applies or plan[item].diff for item in NODE if item.name in waits)
    assert not any(item.reason == FIRST_BOOT for item in map(Plan(NODE, SPEC, STATE).__getitem__, NODE))


def test_no_check_judges_an_image() -> None:
    assert [Plan(NODE, SPEC, state).judges for state in (STATE, of_image())] == [True, False]
    assert not Plan(REMOVALS, SPEC, STATE).judges


def test_a_driver_in_an_image_need_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "_refuse", lambda *_: None)  # whether it can be installed here is another question
    asked = {"driver": {"policy": "install", "version": "580.95.05", "flavor": "open"}}
    spec = NodeSpec.model_validate({"hardware": {"gpus": 8}, **asked})
    assert [install.RUNNING in install.expected(spec, state) for state in (STATE, of_image())] == [True, False]


# --- what makes no sense


def asked(*names: str, spec: NodeSpec = SPEC, **given: Any) -> Any:
    return SimpleNamespace(
        entries=[SimpleNamespace(name=name, spec=spec) for name in names or ["@local"]],
        **{"selected": None, "allowed": Disruption.restart, **given},
    )


def with_proxy(proxy: str) -> NodeSpec:
    return NodeSpec.model_validate({"hardware": {"gpus": 8}, "toolkit": {"repo": {"proxy": proxy}}})


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (asked(spec=with_proxy("env:GPUREADY_PROXY")), "toolkit.repo.proxy is 'env:GPUREADY_PROXY'"),
        (asked(spec=with_proxy("cmd:pass proxy")), "toolkit.repo.proxy is"),
        (asked(spec=with_proxy("file:/tmp/proxy")), "toolkit.repo.proxy is"),
        (asked(spec=with_proxy("file:~/proxy")), "toolkit.repo.proxy is"),
        (asked("gpu01"), "no other host"),
        (asked("@local", "gpu01"), "no other host"),
        (asked(selected=frozenset({"nccl"})), "the whole image"),
        (asked(allowed=Disruption.reboot), "never reboots"),
        (asked(spec=NodeSpec()), "does not say hardware.gpus"),
    ],
)
def test_requests_that_make_no_sense(wanted: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        image.make(wanted)
    assert image.make(asked())


@pytest.mark.parametrize(
    ("words", "said"), [(["--yes", "--state-dir", "x"], "--state-dir is for a fleet"), ([], "needs --yes")]
)
def test_options_that_make_no_sense(words: list[str], said: str) -> None:
    done = CliRunner().invoke(command, ["-i", "@local", "--image", *words], standalone_mode=False)
    assert isinstance(done.exception, UsageError) and said in str(done.exception)


def test_a_machine_in_use_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(image, "_in_use", lambda: "")
    there = ("/bin/echo", "/opt/gpuready/bin/gpuready")
    image._refuse(there, tmp_path)
    with pytest.raises(UsageError, match=r"/tmp/x\.pyz does not stay in the image"):
        image._refuse(("/usr/bin/python3", "/tmp/x.pyz"), tmp_path)
    record = tmp_path / RECORD.lstrip("/")
    record.parent.mkdir(parents=True)
    record.touch()
    with pytest.raises(UsageError, match="converged it without --image") as refused:
        image._refuse(there, tmp_path)
    assert "rebooted after --image, its first boot ran here: gpuready remove" in refused.value.remedy
    record.unlink()
    lock = tmp_path / image._LOCK
    lock.parent.mkdir()
    lock.touch()
    image._refuse(there, tmp_path)
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another run of gpuready changes it"):
            image._refuse(there, tmp_path)
    monkeypatch.setattr(image, "_in_use", lambda: "kubelet (pid 7) runs")
    with pytest.raises(UsageError, match=r"kubelet \(pid 7\) runs"):
        image._refuse(there, tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="needs root"):
        image._refuse(there, tmp_path)


def test_the_policy_goes_at_each_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[object] = []
    monkeypatch.setattr(image, "IMAGE", str(tmp_path))
    monkeypatch.setattr(atexit, "register", ends.append)
    image.enter(yes=True, state_dir=None)
    assert ends == [image.forget_policy]


def test_what_cannot_run_at_boot_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `python -m gpuready` of a source directory, or of PYTHONPATH."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(image, "_in_use", lambda: "")
    (tmp_path / "gpuready_source.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, "-m", "gpuready_source"], check=True)
    with pytest.raises(UsageError, match=r"the first boot could not run .*No module named gpuready_source"):
        image._refuse((sys.executable, "-m", "gpuready_source"), tmp_path)
    image._refuse((sys.executable, "-m", "gpuready"), tmp_path)


def test_a_link_may_lead_to_where_the_image_keeps_nothing() -> None:
    found = [image._stays(path) for path in ("/opt/x", "/tmp/x", "/proc/self/root/tmp/x", "/tmpfiles/x")]
    assert found == [True, False, False, True]


def test_without_a_namespace_nothing_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "_refuse", lambda *_: None)
    monkeypatch.setattr(os, "execvp", lambda *_: pytest.fail("it went on"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="needs unshare"):
        image.enter(yes=True, state_dir=None)
    (tmp_path / "unshare").write_text("#!/bin/sh\necho unshare failed: Operation not permitted >&2\nexit 1\n")
    (tmp_path / "unshare").chmod(0o755)
    with pytest.raises(UsageError, match="namespace of its own: unshare failed: Operation not permitted"):
        image.enter(yes=True, state_dir=None)


def processes(proc: Path, age: int = 600) -> None:
    """A /proc, as proc(5) has it: process 1 of this root, which began ``age`` seconds ago."""
    (proc / "1/fd").mkdir(parents=True)
    (proc / "1/root").symlink_to("/")
    (proc / "1/comm").write_text("systemd\n")
    ticks = (10**6 - age) * os.sysconf("SC_CLK_TCK")
    (proc / "1/stat").write_text(f"1 (a ) b) S {'0 ' * 18}{ticks} 0 0\n")
    (proc / "uptime").write_text(f"{10**6}.50 3.00\n")


@pytest.mark.parametrize(
    ("name", "opened", "said"),
    [
        ("bash", "/dev/null", ""),
        ("nvidia-persiste", "/dev/nvidia0", ""),
        ("bash", "/dev/nvidiactl", ""),
        ("python3", "/dev/nvidia0", "python3 (pid 7) holds /dev/nvidia0 open"),
        ("python3", "/dev/nvidia-uvm", "python3 (pid 7) holds /dev/nvidia-uvm open"),
        *((name, "/dev/null", f"{name} (pid 7) runs") for name in ("kubelet", "k3s-server", "qemu-system-x86")),
    ],
)
def test_work_is_a_process_of_this_root(name: str, opened: str, said: str, tmp_path: Path) -> None:
    processes(tmp_path)
    (tmp_path / "7/fd").mkdir(parents=True)
    (tmp_path / "7/comm").write_text(f"{name}\n")
    (tmp_path / "7/fd/3").symlink_to(opened)
    assert image._in_use(tmp_path) == said
    # In a chroot of a builder with that process, it is none of the image.
    (tmp_path / "1/root").unlink()
    (tmp_path / "1/root").symlink_to(tmp_path)
    (tmp_path / "7/root").symlink_to(tmp_path)
    assert image._in_use(tmp_path) == ""
    (tmp_path / "7/root").unlink()
    (tmp_path / "7/root").symlink_to("/")
    assert image._in_use(tmp_path) == said


def test_a_machine_that_booted_long_ago_is_no_builder(tmp_path: Path) -> None:
    processes(tmp_path, 3 * 86400)
    assert image._in_use(tmp_path) == "it booted 3 days ago"
    (tmp_path / "1/root").unlink()
    (tmp_path / "1/root").symlink_to(tmp_path)
    assert image._in_use(tmp_path) == ""


# --- the builder


def test_what_only_the_builder_has_goes(tmp_path: Path) -> None:
    gone: tuple[str, ...] = ("etc/ssh/ssh_host_rsa_key", "etc/ssh/ssh_host_rsa_key.pub", "var/lib/systemd/random-seed")
    gone += (
        "etc/ssh/ssh_host_rsa_key-cert.pub",
        "etc/nvme/hostid",
        "etc/nvme/hostnqn",
        "etc/iscsi/initiatorname.iscsi",
    )
    gone += ("var/lib/gpuready/tx/1/script", "etc/machine-id")
    stays = ("etc/ssh/sshd_config", "var/lib/gpuready/docker.ours", "etc/hostname")
    for path in (*gone, *stays):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("builder\n")
    removed = image.forget_builder(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*stays, "etc/machine-id"} and not (tmp_path / "etc/machine-id").read_bytes()
    assert len(removed) == len(gone) and image.forget_builder(tmp_path) == ()


def test_iscsi_of_debian_makes_a_new_name(tmp_path: Path) -> None:
    """Its iscsid does not start without the file (/lib/open-iscsi/startup-checks.sh)."""
    path = tmp_path / "etc/iscsi/initiatorname.iscsi"
    path.parent.mkdir(parents=True)
    path.write_text("InitiatorName=iqn.1993-08.org.debian:01:builder\n")
    (tmp_path / "lib/open-iscsi").mkdir(parents=True)
    assert image.forget_builder(tmp_path) == (str(path),)
    assert path.read_text() == "GenerateName=yes\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
@pytest.mark.parametrize("theirs", ["none", "one", "of a killed run"])
def test_no_service_starts_meanwhile(theirs: str, tmp_path: Path) -> None:
    """And a run that is killed changes no policy: nothing is restored at its end but a link that leads nowhere."""
    policy = tmp_path / "policy-rc.d"
    if theirs == "one":
        policy.write_text("#!/bin/sh\nexit 0\n")
        policy.chmod(0o744)
    elif theirs != "none":
        policy.symlink_to("/run/gpuready.policy")
    command = ("sh", "-c", f"{policy}; echo $?")
    script = resources.script("verbs/apply/enter", command=command, mark="/run/mark", policy=str(policy))
    script = script.replace("/usr/sbin/invoke-rc.d", str(tmp_path))
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "101\n", done.stderr
    assert not os.access(policy, os.X_OK) or theirs == "one"
    image.forget_policy(policy)
    if theirs == "one":
        assert (policy.read_text(), policy.stat().st_mode & 0o777) == ("#!/bin/sh\nexit 0\n", 0o744)
    else:
        assert not policy.is_symlink()


# --- the first boot


def test_the_unit_removes_all_that_the_first_boot_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "program_words", lambda: ("/a b",))
    unit = image.unit(SPEC)
    assert f'ExecStart="/a b" apply -i {image_boot.SPEC} -i @local --limit @local --yes\n' in unit
    (removed,) = re.findall(r"^ExecStartPost=/bin/rm -f (.*)$", unit, re.M)
    assert removed.split() == list(image_boot.FILES)
    assert "--ignore-fail-on-non-empty /etc/systemd/system/multi-user.target.d\n" in unit
    assert "TimeoutStartSec" in unit and "After=network-online.target multi-user.target" in unit


def test_host_keys_are_made_between_cloud_init_and_sshd() -> None:
    """cloud-init removes keys. ssh.socket starts before basic.target, so default dependencies would make a cycle."""
    unit = resources.document("verbs/apply/host-keys.service")
    order = {key: set(" ".join(re.findall(rf"^{key}=(.*)$", unit, re.M)).split()) for key in ("After", "Before")}
    assert {"cloud-init.service", "cloud-init-network.service"} <= order["After"]
    assert {"ssh.service", "sshd.service", "ssh.socket", "sshd-keygen.target"} <= order["Before"]
    assert "\nDefaultDependencies=no\n" in unit


def test_the_unit_has_a_name_of_its_own() -> None:
    """systemd-run in the user-data of `render cloud-init` fails if a unit of that name is loaded."""
    text = resources.document("verbs/render/cloud-init.yml", inventory="{}", package='"x"')
    (name,) = re.findall(r"--unit=([^,]+),", text)
    assert f"{name}.service" not in {Path(path).name for path in image_boot.FILES}


def test_checks_that_fail_do_not_start_the_first_boot_again() -> None:
    assert "\nSuccessExitStatus=3\n" in image.unit(SPEC)


def test_the_first_boot_may_read_the_secrets_of_its_spec(tmp_path: Path) -> None:
    secret = tmp_path / "a b"
    secret.write_text("http://u:p@proxy:3128\n")
    spec = with_proxy(f"file:{secret}")
    (line,) = re.findall(r"^ExecStart=.*?( apply .*)$", image.unit(spec), re.M)
    with command.make_context("apply", shlex.split(line)[1:]) as context:
        assert context.params["allow_read"] == (f"file:{secret}",)
    (tmp_path / "spec.yaml").write_text(written(spec))
    (entry,) = load([str(tmp_path / "spec.yaml"), "@local"], allow_read=context.params["allow_read"]).chosen
    assert entry.spec == spec


@pytest.mark.parametrize("verb", ["remove", "apply"])
def test_another_run_ends_a_first_boot_that_never_ended_well(verb: str, tmp_path: Path) -> None:
    """Else it would apply the spec of the image again, over a newer one."""
    script = Forget().render() if verb == "remove" else active((), record="{}", converged=True)
    for path in image_boot.FILES:
        (tmp_path / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.lstrip("/")).touch()
    for folder in ("/etc/systemd", "/var/lib/gpuready"):
        script = script.replace(folder, f"{tmp_path}{folder}")
    subprocess.run(["sh"], input=script, text=True, capture_output=True, check=True)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == ({"var/lib/gpuready/last-apply.json"} if verb == "apply" else set())
    assert not (tmp_path / "etc/systemd/system/multi-user.target.d").exists()


def test_an_apply_that_leaves_something_leaves_the_first_boot() -> None:
    assert [path for path in image_boot.FILES if path in active((), record="{}")] == []


@pytest.mark.parametrize("outcome", ["changed", "pending", "failed"])
def test_an_image_that_is_not_finished(outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only directory is no bug of gpuready, and what else fails says that there is no image."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(image, "FILES", [str(tmp_path / "file" / "unit")] * 4)
    monkeypatch.setattr(image, "online", lambda *_, **__: Run("apply", [HostResult("@local", outcome=outcome)]))
    run = image.make(asked())(asked())
    assert run.hosts[0].outcome == ("failed" if outcome == "changed" else outcome)
    assert run.hosts[0].notes == ["the image is not finished: do not boot machines from it"]
    if outcome == "changed":
        assert run.hosts[0].error and (run.hosts[0].error.kind, run.hosts[0].error.exit_code) == ("converge", 1)
        assert str(tmp_path / "file") in run.hosts[0].error.message


def test_people_read_what_is_pending() -> None:
    run = Run("apply", [HostResult("@local", outcome="changed", probed=True)], part=PART)
    assert "the image is made" not in human(run, 0, color=False)
    run.hosts[0].parts["first_boot"] = FirstBoot(
        "gpuready-image-boot.service", ("devices", "cdi"), ("/etc/machine-id",)
    )
    text = human(run, 0, color=False)
    assert "This is an image: nothing was started, and no check ran." in text
    assert "pending until the first boot: devices, cdi" in text and "removed: /etc/machine-id" in text
    assert text.rstrip().endswith("OK: the image is made; 2 components pending until the first boot")


# --- the guide


def documents() -> tuple[dict[str, Any], dict[str, Any]]:
    """The HCL of the guide: Packer's, and Terraform's. terraform itself formats what is HCL of any program."""
    texts = blocks(GUIDE, "hcl")
    if terraform := shutil.which("terraform"):
        for text in texts:
            done = subprocess.run([terraform, "fmt", "-"], input=text, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout) == (0, text), done.stderr
    packer, module = map(hcl2.loads, texts)
    return packer, module


def test_packer_runs_what_there_is() -> None:
    (build,) = documents()[0]["build"]
    files, shell = (next(iter(each.values())) for each in build["provisioner"])
    assert [*map(json.loads, files["sources"]), json.loads(files["destination"])] == [
        "gpuready.pyz",
        "node.yaml",
        "/tmp/",
    ]
    (source,) = documents()[0]["source"]
    assert source['"amazon-ebs"']['"gpu"']["ssh_clear_authorized_keys"] is True
    lines = [shlex.split(json.loads(line)) for line in shell["inline"]]
    (apply,) = (words for words in lines if "apply" in words)
    (install,) = (words for words in lines if words[0] == "install")
    assert apply[0] == install[-1] and not apply[0].startswith(image._FLEETING)
    with command.make_context("apply", apply[2:]) as context:
        assert context.params["image"] and context.params["yes"] and context.params["limit"] == ("@local",)


@pytest.mark.parametrize("code", [0, 3, 127])
def test_terraform_sees_the_exit_code(code: int, tmp_path: Path) -> None:
    (check,) = documents()[1]["check"]
    (block,) = (value for name, value in check.items() if not name.startswith("__"))
    (data,) = block["data"]
    external = data['"external"']['"gpuready"']
    assert "lifecycle" not in external  # Terraform permits none in a check
    sh, option, script, inventory = external["program"]
    assert inventory == "${var.inventory}"
    (tmp_path / "gpuready.json").write_text("of an earlier run")
    if code != 127:
        (tmp_path / "gpuready").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >words\necho shown\nexit {code}\n')
        (tmp_path / "gpuready").chmod(0o755)
    words = [json.loads(sh), json.loads(option), re.sub(r"^\"<<-EOT\n|EOT\"$", "", script), "hosts b.yaml"]
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(words, cwd=tmp_path, env={"PATH": path}, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"exit_code": str(code)}
    assert not (tmp_path / "gpuready.json").exists()
    (claim,) = block["assert"]
    assert claim["condition"] == '${data.external.gpuready.result.exit_code == "0"}'
    assert "${data.external.gpuready.result.exit_code}" in claim["error_message"]
    if code != 127:
        assert done.stderr == "shown\n"
        verb, *given = (tmp_path / "words").read_text().splitlines()
        with verify.make_context(verb, given) as context:
            assert context.params["output"] == ("human", "json:gpuready.json")

"""The example of training, and what launches it: the script compiles, the objects and scripts are valid."""

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator

from gpuready.model.network import NetDevice, Network
from gpuready.model.slurm import SlurmNode
from gpuready.model.state import NodeState
from tests.command import Exits, Said, write_states
from tests.shellcheck import shellcheck
from tests.verbs.render.schemas import thing
from tests.verbs.render.test_kubernetes import KUBERNETES, node

#: The fields of pkg/apis/kubeflow.org/v1 in the Training Operator, as far as a job may use them.
_REPLICA = thing(
    ("replicas", "restartPolicy", "template"),
    replicas={"type": "integer", "minimum": 1},
    restartPolicy={"enum": ["Always", "OnFailure", "Never", "ExitCode"]},
    template={"type": "object", "required": ["spec"]},
)
JOB = thing(
    runPolicy=thing(cleanPodPolicy={"enum": ["All", "Running", "None"]}, backoffLimit={"type": "integer"}),
    pytorchReplicaSpecs=thing(("Master",), Master=_REPLICA, Worker=_REPLICA),
)
#: Of Run:ai's reference of runai training pytorch submit, v2.24 to v3.0: the flags without a value, and those with one.
RUNAI_PLAIN = {"--large-shm"}
RUNAI = {
    "--project", "--image", "--workers", "--gpu-devices-request", "--master-gpu-devices-request", "--restart-policy",
    "--master-restart-policy", "--capability", "--extended-resource", "--master-extended-resource", "--annotation",
    "--environment-variable", "--master-environment-variable", "--master-command",
}  # fmt: skip
ENV = ["TORCH_NCCL_ASYNC_ERROR_HANDLING=1"]


@pytest.fixture
def hosts(tmp_path: Path) -> list[str]:
    """Options for an inventory of two hosts, with their states."""
    states = {"gpu01": node(1), "gpu02": node(2)}
    spec = {"hardware": {"gpus": 8}, "verify": {"image": "app:1"}}
    inventory = tmp_path / "hosts.yaml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": dict.fromkeys(states), "vars": {"gpuready": spec}}}))
    return ["-i", str(inventory), "--state", write_states(tmp_path / "states.json", states)]


def launch(exits: Exits, *words: str) -> str:
    return exits(0, "launch", *words).out


def test_the_script_compiles_and_is_short(exits: Exits) -> None:
    out = exits(0, "example", "ddp").out
    compile(out, "ddp.py", "exec")
    assert len(out.splitlines()) <= 120 and max(map(len, out.splitlines())) <= 120
    before = out.partition("import torch\n")[0]
    for name in ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"):
        assert f'os.environ.setdefault("{name}"' in before


def test_without_a_script_the_lines_start_the_example_and_else_that_script(hosts: list[str], exits: Exits) -> None:
    for how in ("hosts", "env", "slurm", "runai"):
        assert " ddp.py" in launch(exits, how, *hosts)
        assert " train.py --epochs 3" in (out := launch(exits, how, *hosts, "--", "train.py", "--epochs", "3")), out
        assert "ddp.py" not in out


def test_the_line_for_operators_that_set_the_variables(hosts: list[str], exits: Exits) -> None:
    line = launch(exits, "env", *hosts)
    assert "NCCL_IB_HCA='=mlx5_0:1' " in line and "NCCL_SOCKET_IFNAME='=net1' " in line
    shown = {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "ddp-master-0", "MASTER_PORT": "23456", "PATH": "/bin"}
    said = subprocess.run(
        ["sh", "-c", f'torchrun() {{ printf "%s " "$@"; }}; {line}'],
        env=shown, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert said.strip() == (
        "--nnodes 2 --node-rank 1 --master-addr ddp-master-0 --master-port 23456 --nproc-per-node 8 ddp.py"
    )
    assert launch(exits, "env").split()[:2] == [*ENV, "torchrun"]


def test_the_batch_script_of_slurm(hosts: list[str], tmp_path: Path, exits: Exits) -> None:
    out = launch(exits, "slurm", *hosts)
    (tmp_path / "job.sh").write_text(out)
    found = subprocess.run(
        [shellcheck(), "-s", "sh", str(tmp_path / "job.sh")], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout) == (0, "")
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", out, re.M))
    assert (options["nodes"], options["ntasks-per-node"], options["gpus-per-node"]) == ("2", "1", "8")
    assert out.rindex("#SBATCH") < out.index("set -eu") and out.startswith("#!/bin/sh\n#SBATCH")
    for part in (
        "export NCCL_SOCKET_IFNAME='=ens1'",
        "export NCCL_IB_HCA='=mlx5_0:1'",
        "--rdzv-backend c10d",
        "export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1\n",
    ):
        assert part in out


def over_tcp(number: int, netdev: str, **of: Any) -> NodeState:
    """A node without RDMA, on the network of the cluster and on one of its own."""
    found = {
        netdev: NetDevice(addresses=(f"10.0.0.{number}/24",)),
        "eno9": NetDevice(addresses=(f"10.9.{number}.1/24",)),
    }
    state = NodeState(network=Network(devices=found, default=(netdev,)), **of)
    return state.model_copy(update={"driver": state.driver.model_copy(update={"gpus": ("0000:01:00.0",)})})


@pytest.fixture
def batch(tmp_path: Path, exits: Exits) -> Callable[..., Said]:
    """Print the batch script of these hosts."""

    def printed(states: dict[str, NodeState], code: int = 0, how: str = "slurm", **spec: Any) -> Said:
        inventory = {"all": {"hosts": dict.fromkeys(states), "vars": {"gpuready": spec}}}
        (tmp_path / "hosts.yaml").write_text(yaml.safe_dump(inventory))
        recorded = write_states(tmp_path / "states.json", states)
        return exits(code, "launch", how, "-i", str(tmp_path / "hosts.yaml"), "--state", recorded)

    return printed


#: A torchrun that prints its settings and its words.
TORCHRUN = """#!/bin/sh
env | grep -E '^(NCCL|GLOO|MASTER)' | sort
echo "$@"
"""


def started(script: str, tmp_path: Path, node: str) -> subprocess.CompletedProcess[str]:
    """Run a batch script's settings and task as on this node, without Slurm; tests/system/test_slurm.py has sbatch."""
    (tmp_path / "torchrun").write_text(TORCHRUN)
    (tmp_path / "torchrun").chmod(0o755)
    (tmp_path / "job.sh").write_text(script)
    checked = subprocess.run([shellcheck(), "-s", "sh", str(tmp_path / "job.sh")], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    settings, task = script.partition("export MASTER_ADDR\n")[2].split("exec srun ")
    return subprocess.run(
        ["sh", "-c", f'set -eu\ntask() {{ shift; "$@"; }}\n{settings}task {task}'],
        capture_output=True, text=True, check=False,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURMD_NODENAME": node, "SLURM_JOB_NUM_NODES": "2",
             "SLURM_JOB_ID": "7", "MASTER_ADDR": "gpu01"},
    )  # fmt: skip


def test_a_batch_script_over_tcp_has_the_settings_of_its_hosts(batch: Callable[..., Said], tmp_path: Path) -> None:
    """The interface is the one whose network all hosts share; one host alone has two."""
    told = batch({"gpu01": over_tcp(1, "ens1"), "gpu02": over_tcp(2, "ens1")})
    assert "export NCCL_SOCKET_IFNAME='=ens1'\nexport GLOO_SOCKET_IFNAME=ens1\n" in told.out
    assert "note: gpu[01-02]: NCCL over TCP: there is no RDMA device" in told.err and "no NCCL settings" not in told.err
    assert "SLURMD_NODENAME" not in told.out
    found = started(told.out, tmp_path, "gpu02")
    assert "NCCL_SOCKET_IFNAME==ens1\n--nnodes 2" in found.stdout
    told = batch({"gpu01": node(1), "gpu02": node(2)}, nccl={"transport": "tcp", "interfaces": ["ens1"]})
    assert "export NCCL_IB_DISABLE=1\n" in told.out and "NCCL_IB_HCA" not in told.out
    told = batch({"gpu01": over_tcp(1, "ens1")}, code=3)
    assert told.out == "" and "gpu01: there is no RDMA device" in told.err and "name one network" in told.err


def test_a_batch_script_sets_on_each_node_what_is_its_own(batch: Callable[..., Said], tmp_path: Path) -> None:
    """By Slurm's name of the node: as slurmctld said, or that of the inventory, with or without its domain."""
    other = SlurmNode(name="node2")
    states = {"gpu01.example.com": over_tcp(1, "ens1"), "gpu02": over_tcp(2, "eth0", slurm=other)}
    out = batch(states).out
    for node_name, netdev in (("gpu01", "ens1"), ("gpu01.example.com", "ens1"), ("node2", "eth0")):
        found = started(out, tmp_path, node_name)
        words = (
            "--nnodes 2 --nproc-per-node 1 --max-restarts 3 --rdzv-id 7 --rdzv-backend c10d --rdzv-endpoint gpu01:29500"
        )
        variables = f"GLOO_SOCKET_IFNAME={netdev}\nMASTER_ADDR=gpu01\nNCCL_SOCKET_IFNAME=={netdev}\n"
        assert found.stdout == f"{variables}{words} ddp.py\n"
    found = started(out, tmp_path, "gpu99")
    assert (found.returncode, found.stdout) == (1, "") and "no NCCL settings for node gpu99" in found.stderr
    both = {"gpu01.a": over_tcp(1, "ens1"), "gpu01.b": over_tcp(2, "eth0")}
    told = batch(both, code=3)
    assert told.out == "" and "gpu01.b: its NCCL settings differ" in told.err and "node: NAME" in told.err
    addresses = {"10.0.0.1": over_tcp(1, "ens1"), "10.0.0.2": over_tcp(2, "eth0")}
    assert "  10.0.0.1) " in batch(addresses).out, "10 is no name of either"


@pytest.mark.parametrize("how", ["slurm", "env", "kubernetes"])
def test_hosts_need_not_agree_in_what_is_not_printed(how: str, batch: Callable[..., Said]) -> None:
    """The names of a host's interfaces are none of a pod; and the batch script has no image."""
    batch({"gpu01": over_tcp(1, "ens1"), "gpu02": over_tcp(2, "eth0")}, how=how)


@pytest.mark.parametrize("how", ["env", "runai"])
def test_a_pod_over_tcp_has_a_note(how: str, batch: Callable[..., Said]) -> None:
    told = batch({"gpu01": over_tcp(1, "ens1"), "gpu02": over_tcp(2, "eth0")}, how=how)
    assert "note: there is no RDMA device: NCCL uses the pod's network\n" in told.err and "rdma/rdma" not in told.err


def test_a_note_that_is_not_for_all_hosts_names_its_own(batch: Callable[..., Said]) -> None:
    told = batch({"gpu01": node(1), "gpu02": node(2).model_copy(update={"ib_netns_mode": "N"})}, how="runai")
    assert "note: gpu02: the RDMA mode is exclusive" in told.err


def test_a_pytorch_job_is_valid(hosts: list[str], exits: Exits) -> None:
    code, job = yaml.safe_load_all(launch(exits, "kubernetes", "--rdma-resource", "rdma/hca", *hosts))
    kubernetes_validate.validate(code, KUBERNETES, strict=True)
    Draft202012Validator(JOB).validate(job["spec"])
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    compile(code["data"]["ddp.py"], "ddp.py", "exec")
    replicas = job["spec"]["pytorchReplicaSpecs"]
    assert [(kind, each["replicas"]) for kind, each in replicas.items()] == [("Master", 1), ("Worker", 1)]
    for each in replicas.values():
        template = each["template"]
        assert "rdma-1" in template["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": template["spec"]}
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)
        (container,) = template["spec"]["containers"]
        assert container["name"] == "pytorch"  # the operator looks for this name
        assert container["resources"]["limits"] == {"nvidia.com/gpu": 8, "rdma/hca": 1}
        assert {"name": "TORCH_NCCL_ASYNC_ERROR_HANDLING", "value": "1"} in container["env"]
        command = container["command"][2]
        assert '"${WORLD_SIZE}"' in command and command.endswith("/opt/ddp/ddp.py --checkpoint /checkpoint/ddp.pt")


def test_one_node_needs_no_worker(tmp_path: Path, exits: Exits) -> None:
    (tmp_path / "hosts.yaml").write_text("all: {hosts: {gpu01: {gpuready: {hardware: {gpus: 8}}}}}")
    out = launch(exits, "kubernetes", "-i", str(tmp_path / "hosts.yaml"))
    job: dict[str, Any] = list(yaml.safe_load_all(out))[1]
    assert list(job["spec"]["pytorchReplicaSpecs"]) == ["Master"] and "hardware.gpus" not in out
    assert "--workers" not in launch(exits, "runai", "-i", str(tmp_path / "hosts.yaml"))


def test_the_command_of_runai_has_documented_flags(hosts: list[str], exits: Exits) -> None:
    out = launch(exits, "runai", *hosts)
    words = shlex.split(out.replace("\\\n", " "))
    assert words[:5] == ["runai", "training", "pytorch", "submit", "ddp"]
    options, _, tail = " ".join(words[5:]).partition(" --command -- ")
    given: list[tuple[str, str]] = []
    rest = iter(words[5 : words.index("--command")])
    for word in rest:
        assert word in RUNAI | RUNAI_PLAIN
        given.append((word, next(rest) if word in RUNAI else ""))
    assert options and tail.startswith("sh -c torchrun")
    assert ("--workers", "1") in given and ("--image", "app:1") in given
    for flag in ("--environment-variable", "--master-environment-variable"):
        assert (flag, "NCCL_SOCKET_IFNAME==net1") in given
    assert ("--annotation", "k8s.v1.cni.cncf.io/networks=rdma-1@net1") in given
    (master,) = [value for flag, value in given if flag == "--master-command"]
    assert shlex.split(master)[2] == words[-1]  # workers and master run the same


def test_what_is_a_placeholder_is_said(tmp_path: Path, exits: Exits) -> None:
    said = exits(0, "launch", "slurm").err
    assert "note: replace 8 GPUs with the number of GPUs in each node (hardware.gpus" in said and "2 nodes" in said
    (tmp_path / "hosts.yaml").write_text("all: {hosts: {build: {gpuready: {hardware: {gpus: none}}}}}")
    told = exits(0, "launch", "env", "-i", str(tmp_path / "hosts.yaml"))
    assert "(the spec says hardware.gpus: none)" in told.err
    said = exits(0, "launch", "runai").err
    assert "PROJECT" in said and "registry.example.com/train:1.0" in said
    assert "Replace: 2 nodes" in launch(exits, "kubernetes")


def test_a_node_without_rdma_gets_no_settings_of_it(tmp_path: Path, exits: Exits) -> None:
    (tmp_path / "state.json").write_text(NodeState().model_dump_json())
    (tmp_path / "hosts.yaml").write_text("all: {hosts: {gpu01: {gpuready: {hardware: {gpus: 1}}}}}")
    given = ["-i", str(tmp_path / "hosts.yaml"), "--state", str(tmp_path / "state.json")]
    assert "rdma" not in launch(exits, "runai", *given)
    assert "NCCL_IB" not in launch(exits, "kubernetes", *given)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("example", "ddp", "-i", "hosts.yaml"), "-i"),
        (("launch", "hosts"), "-i is missing"),
        (("launch", "hosts", "-i", "a,", "--master-addr", "a b"), "not an address or a host name"),
        (("launch", "slurm", "--state", "x"), "-i is missing"),
        (
            ("launch", "kubernetes", "--", "train.py"),
            "unexpected argument 'train.py': gpuready launch kubernetes takes nothing after --\n"
            "  fix:     leave out -- train.py: put your script in place of ddp.py in the ConfigMap of the job\n",
        ),
    ],
)
def test_usage(words: tuple[str, ...], part: str, exits: Exits) -> None:
    assert part in exits(64, *words).err

"""``fabric --tests train``: the role of each host, and the verdict from the answers of all.

The texts of ranks and torchrun are from three test machines with Debian's PyTorch 2.6 and gloo, shortened. LATE is made
up in their form.
"""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.fabric.checks import judge_host
from gpuready.fabric.counters import Snapshot
from gpuready.fabric.job import Role
from gpuready.fabric.job import planned as planned_job
from gpuready.fabric.run import FabricRun, Wanted
from gpuready.fabric.schedule import Pairing
from gpuready.fabric.training import TEST, arguments, judged
from gpuready.fabric.verdict import Answer, Finding, blocked
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from tests.network.test_tcp_choice import state
from tests.verbs.render.test_kubernetes import node

SOCKETS = (Path(__file__).parents[1] / "data/fabric/all_reduce-sockets.txt").read_text("utf-8")
NAMES = ("n1", "n2", "n3")
NO_GPUS = NodeSpec.model_validate({"hardware": {"gpus": "none"}, "verify": {"torch": "/opt/env/bin/python"}})
LOSS = 0.013496098419030508
ABORTED = (
    "terminate called without an active exception\n"
    "E1123 06:50:00.671000 1450 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -6) "
    "local_rank: 0 (pid: 1454) of binary: setpriv\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "  exitcode  : -6 (pid: 1454)\n"
    "  error_file: <N/A>\n"
    "  traceback : Signal 6 (SIGABRT) received by PID 1454\n"
)
#: A rank that fails, and torchrun, which ends the other one of its host. The form is that of PyTorch 2.11.
ORDINAL = (
    "[rank1]: torch.AcceleratorError: CUDA error: invalid device ordinal\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "  traceback : Signal 15 (SIGTERM) received by PID 1454\n"
)
LATE = (
    "[rank0]: RuntimeError: Timed out waiting 60000ms for recv operation to complete\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
)
CUT = (
    "E1123 06:49:27.275000 1249 torch/distributed/elastic/agent/server/api.py:954]     idx = store.add(num, 1)\n"
    "E1123 06:49:27.275000 1249 torch/distributed/elastic/agent/server/api.py:954] "
    "torch.distributed.DistNetworkError: failed to recv, got 0 bytes\n"
)


def planned(states: dict[str, NodeState], specs: dict[str, NodeSpec], seconds: int) -> tuple[list[Role], list[Finding]]:
    return planned_job(TEST, lambda _: arguments(seconds), seconds, states, specs)


def roles(*specs: NodeSpec) -> list[Role]:
    states = {name: state(f"eth0 virtio_net 10.0.0.{name[1]}/24") for name in NAMES}
    found, wrong = planned(states, dict(zip(NAMES, specs or (NO_GPUS,) * 3, strict=True)), 5)
    assert not wrong
    return found


def rank(number: int, own: float = 0.02, loss: float = LOSS, moved: int = 1 << 30) -> Answer:
    before, after = (Snapshot("", {"net/tx_bytes": size, "net/rx_bytes": size}) for size in (0, moved))
    text = f'{{"rank": {number}, "loss": {loss!r}, "step": 0.0838, "own": {own}}}\n'
    return Answer(0, f"3 ranks, gloo on cpu, from step 0 to 1000000000\n{text}", before, after)


GOOD = [rank(0, 0.0255), rank(1, 0.0177), rank(2, 0.0224)]


def outcome(*answers: Answer) -> tuple[str, str]:
    """The status and the summary that all hosts share."""
    found = judged(roles(), answers)
    assert [(each.client.host, each.server.host) for each in found] == [(name, name) for name in NAMES]
    ((status, summary),) = {(each.status, each.summary) for each in found}
    return status, summary


def test_each_host_gets_its_part_of_one_torchrun() -> None:
    first, second, _ = (each.command for each in roles())
    assert first.tool == "/opt/env/bin/python" and first.gloo
    words = "--nnodes 3 --node-rank 1 --nproc-per-node 1 --master-addr 10.0.0.1"
    assert second.launcher == tuple(words.split())
    assert {"GLOO_SOCKET_IFNAME=eth0", "CUDA_VISIBLE_DEVICES="} <= set(second.before)


def test_with_gpus_a_rank_each_and_nccl_over_the_fabric() -> None:
    spec = NodeSpec.model_validate({"hardware": {"gpus": 8}})
    found, _ = planned({"n1": node(1), "n2": node(2)}, {"n1": spec, "n2": spec}, 5)
    assert [(each.ranks, each.end.over_tcp, each.command.gloo) for each in found] == [(8, False, False)] * 2
    assert any(word.startswith("NCCL_IB_HCA==") for word in found[1].command.before)
    by_rdma = "NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE\nNCCL INFO Using network IB\n"
    before, after = (
        Snapshot("mlx5_core", dict.fromkeys(("counters/port_xmit_data", "counters/port_rcv_data"), words))
        for words in (5, 1 << 20)
    )
    first, second = ("".join(rank(8 * n + i).text for i in range(8)) for n in (0, 1))
    for log, status in ((by_rdma, "pass"), (SOCKETS, "fail"), ("", "unknown")):
        answers = [Answer(0, text, before, after) for text in (first + by_rdma, second + log)]
        assert [each.status for each in judged(found, answers)] == ["pass", status]


def test_hosts_that_cannot_train_together_are_named() -> None:
    states = {"n1": node(1), "n2": state("eth0 virtio_net 10.0.0.2/24")}
    none, skipped = planned(states, dict.fromkeys(states, NodeSpec()), 5)
    assert not none and {(each.status, each.summary) for each in skipped} == {("skip", "n2: no GPU")}
    states = {"n1": state("eth0 - 10.0.0.1/24"), "n2": state("lo - 127.0.0.1/8")}
    none, found = planned(states, dict.fromkeys(states, NO_GPUS), 5)
    assert not none and all(each.blocked and "n2: " in each.summary for each in found)
    pair = {"n1": node(1), "n2": node(2)}
    none, short = planned(pair, dict.fromkeys(pair, NodeSpec.model_validate({"hardware": {"gpus": 9}})), 5)
    assert not none and {(each.status, each.blocked) for each in short} == {("fail", False)}
    assert "n1: 8 of 9 GPUs are present" in short[0].summary and "gpu.count" in short[0].remedy


def test_one_loss_and_the_rate_of_all() -> None:
    status, summary = outcome(*GOOD)
    assert status == "pass"
    assert summary.startswith(
        "9165 samples/s, 3 ranks, gloo, loss 0.0135; a step takes 83.8 ms; each rank computes for 17.7 to 25.5"
    )
    assert judged(roles(), GOOD)[0].value == pytest.approx(3 * 256 / 0.0838)


@pytest.mark.parametrize(
    ("answers", "status", "summary"),
    [
        ([*GOOD[:2], rank(2, loss=0.5)], "fail", "data was corrupted: the ranks have different losses (n1 0.0134"),
        ([*GOOD[:2], Answer(0, "")], "unknown", "n3: not every rank printed its result"),
        ([*GOOD[:2], replace(GOOD[2], text='{"rank": 2, "loss": 1, "step": 1, "own": 1%s}' % ("0" * 400))], "unknown",
         "n3: not every rank printed its result"),
        ([*GOOD[:2], rank(2, loss=float("nan"))], "unknown", "n3: not every rank printed its result"),
        ([Answer(None), Answer(None), Answer(missing="there is no /x")], "skip", "n3: there is no /x"),
        ([Answer(1, CUT), Answer(None), Answer(trouble="the connection broke")], "unknown",
         "the training was ended: n3: the connection broke"),
        ([Answer(None), Answer(1, ABORTED), Answer(1, CUT)], "fail",
         "n2: Signal 6 (SIGABRT) received; n3: torch.distributed.DistNetworkError: failed to recv, got 0 bytes"),
        ([Answer(None), Answer(1, "rank 1: the ranks hold different parameters\n"), Answer(None)], "fail",
         "n2: rank 1: the ranks hold different parameters"),
        ([Answer(1, ORDINAL), Answer(None), Answer(None)], "fail", "n1: torch.AcceleratorError: CUDA error"),
        ([Answer(1, LATE), Answer(None), Answer(None)], "fail", "n1: RuntimeError: Timed out waiting 60000ms for recv"),
        ([Answer(124, ""), Answer(124, ""), Answer(None)], "fail", "n[1-2]: torchrun did not end in time"),
    ],
)  # fmt: skip
def test_what_goes_wrong_on_one_host_is_the_result_of_all(answers: list[Answer], status: str, summary: str) -> None:
    found = outcome(*answers)
    assert found[0] == status and found[1].startswith(summary), found


def test_the_slow_host_and_the_wrong_interface_are_those_of_one_host() -> None:
    slow = judged(roles(), [rank(0, 0.0224), rank(1, 0.0225), rank(2, 0.2)])
    assert [each.status for each in slow] == ["pass", "pass", "warn"]
    assert slow[2].summary.startswith("89 % slower than the median host, computes for 200 ms; ")
    astray = judged(roles(), [*GOOD[:2], rank(2, moved=4000)])
    assert [each.status for each in astray] == ["pass", "pass", "fail"]
    assert astray[2].summary.endswith("but this host did not use eth0 for it")


@pytest.mark.parametrize(
    ("answers", "checks"),
    [
        (GOOD, {"fabric.train": "pass"}),
        ([*GOOD[:2], Answer(missing="there is no /x")], {"fabric.ports": "unknown", "fabric.train": "unknown"}),
        (None, {"fabric.ports": "fail", "fabric.train": "skip"}),
    ],
)
def test_a_training_that_did_not_run_proves_nothing(answers: list[Answer] | None, checks: dict[str, str]) -> None:
    run = FabricRun(Wanted(Pairing("ring"), ("train",), 5))
    for each in judged(roles(), answers) if answers else [blocked(TEST, role.end, role.end, "x") for role in roles()]:
        run.add(each)
    found = judge_host(run, "n1", NO_GPUS, date(2026, 11, 23))
    assert {each.check.id: each.verdict.status for each in found} == checks


def test_the_measured_script_is_that_of_the_example() -> None:
    plain, measured = (resources.document("verbs/example/ddp.py", measure=each) for each in (False, True))
    compile(measured, "ddp.py", "exec")
    checkpoint = plain[plain.index("def load(") : plain.index("def train(")]
    left = [line.strip() for line in plain.replace(checkpoint, "").splitlines() if line not in measured.splitlines()]
    assert left == [
        "if (saved := load(args.checkpoint, rank)) is not None:",
        'student.load_state_dict(saved["model"])',
        'optimizer.load_state_dict(saved["optimizer"])',
        'done = saved["step"]',
        "save(args.checkpoint, student, optimizer, step)",
    ]
    assert "_object" not in measured  # a rank unpickles nothing that another one sends

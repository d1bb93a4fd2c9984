"""/etc/nccl.conf: read as NCCL reads it, written so that the user's lines stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.base.step import Reply, Script
from gpuready.components.nccl.component import Nccl
from gpuready.contract.compare import compare
from gpuready.contract.component import Change
from gpuready.contract.ledger import Put, Putback, Restore, WriteFiles
from gpuready.contract.removal import Removal
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from gpuready.network import hca
from gpuready.network import nccl_conf as conf
from gpuready.network.ports import Port
from tests.verdicts import root_file

TEXTS = st.text(st.sampled_from("AB=# '\"\n\r\tx\udcff"), max_size=40) | st.text(max_size=40)
VARIABLES = st.dictionaries(st.sampled_from(("NCCL_A", "NCCL_B", "A")), st.sampled_from(("", "1", "=x:1", "y z")))
BACKUP = "/var/lib/gpuready/backup/etc/nccl.conf"


def as_nccl_does(text: str) -> dict[str, str]:
    """The parser of the user guide in other words: one environment, nothing overwritten."""
    environment: dict[str, str] = {}
    for line in text.split("\n"):
        if line[:1] != "#" and "=" in line:
            name, _, value = line.partition("=")
            environment.setdefault(name, value)
    return environment


@given(TEXTS)
def test_a_file_is_read_as_nccl_reads_it(text: str) -> None:
    assert conf.effective(text) == as_nccl_does(text)


@given(TEXTS, VARIABLES)
def test_our_lines_count_and_can_be_taken_out_again(text: str, variables: dict[str, str]) -> None:
    written = conf.with_ours(text, variables)
    assert conf.with_ours(written, {}) == text
    assert conf.with_ours(written, variables) == written
    assert conf.ours(written) == variables
    assert conf.effective(written) == {**as_nccl_does(text), **variables}
    theirs, before = conf.theirs(written), conf.assignments(text)
    assert [(line.name, line.value) for line in theirs] == [(line.name, line.value) for line in before]


@given(TEXTS)
def test_a_file_without_a_problem_says_what_it_looks_like(text: str) -> None:
    if not conf.problems(text):
        for name, value in as_nccl_does(text).items():
            assert name.split() == [name]
            assert value == value.strip()
            assert value[:1] not in ("'", '"')


def test_line_numbers_are_those_of_the_file() -> None:
    text = conf.with_ours("A=1\n", {"B": "2"}) + "C=3"
    assert [(line.number, line.name) for line in conf.theirs(text)] == [(4, "A"), (5, "C")]
    assert text.split("\n")[3] == "A=1"


@pytest.mark.parametrize(
    ("value", "selected"),
    [
        ("mlx5", {"mlx5_0:1", "mlx5_1:1", "mlx5_1:2", "mlx5_10:1"}),
        ("mlx5_1", {"mlx5_1:1", "mlx5_1:2", "mlx5_10:1"}),
        ("=mlx5_1", {"mlx5_1:1", "mlx5_1:2"}),
        ("=mlx5_1:2,mlx5_10", {"mlx5_1:2", "mlx5_10:1"}),
        ("mlx5_1:1", {"mlx5_1:1", "mlx5_10:1"}),
        ("^mlx5_1", {"mlx5_0:1", "irdma0:1"}),
        ("^=mlx5_1", {"mlx5_0:1", "mlx5_10:1", "irdma0:1"}),
        ("=mlx5_1:1:0:1", {"mlx5_1:1"}),
        ("=", set()),
    ],
)
def test_hca(value: str, selected: set[str]) -> None:
    names = ("mlx5_0:1", "mlx5_1:1", "mlx5_1:2", "mlx5_10:1", "irdma0:1")
    made = [Port(n.split(":")[0], int(n.split(":")[1]), "RoCE", "ACTIVE", "Ethernet", "", ()) for n in names]
    assert {port.name for port in made if hca.read(value).selects(port)} == selected


# --- the way back ---------------------------------------------------------------------------------------------


def back(text: str, original: str | None) -> tuple[tuple[Change, ...], Script | str]:
    kept = {f"{BACKUP}.absent": root_file("")} if original is None else {f"{BACKUP}.original": root_file(original)}
    state = NodeState(files={conf.CONF: root_file(text), **kept})
    found = compare(Removal(Nccl()), NodeSpec(), state)
    steps = Nccl().restore(found.diff, NodeSpec(), state)
    step = next(steps)
    with pytest.raises(StopIteration):
        steps.send(Reply(0, ""))
    return found.diff, step.args


def test_remove_deletes_a_file_that_gpuready_created() -> None:
    text = conf.with_ours("", {"NCCL_IB_TC": "106"})
    diff, script = back(text, None)
    assert diff == (Change("nccl.ours.NCCL_IB_TC", "106", None),)
    assert script == Restore((Putback(conf.CONF, root_file(text).sha256, False),))


def test_a_file_of_the_users_comes_back_as_it_was() -> None:
    text = conf.with_ours("# mine\n", {"NCCL_IB_TC": "106"})
    assert back(text, "# mine\n")[1] == Restore((Putback(conf.CONF, root_file(text).sha256, True),))


@pytest.mark.parametrize("original", [None, "# mine\n"])
def test_what_the_user_added_since_stays(original: str | None) -> None:
    theirs = "# mine\nNCCL_CROSS_NIC=0\n"
    text = conf.with_ours(theirs, {"NCCL_IB_TC": "106"})
    assert back(text, original)[1] == WriteFiles((Put(conf.CONF, root_file(text).sha256, theirs.encode()),))


def test_a_file_that_is_not_ours_is_left_alone() -> None:
    state = NodeState(files={conf.CONF: root_file("NCCL_IB_TC=106\n")})
    assert not compare(Removal(Nccl()), NodeSpec(), state).diff

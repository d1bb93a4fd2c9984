"""``fabric --tests collective --mpirun``: the collectives of NVIDIA's nccl-tests, which mpirun starts from one host.

mpirun reaches the other hosts by SSH. gpuready neither makes nor copies keys for that, so the script first looks
whether the user can do so, and says what is missing. It runs as the user who called sudo, since root rarely has keys.

Open MPI 5.0.7 finds no slots on the first host if --host has its address, so it is localhost. Each rank gets the
environment of its host by its number: with several programs, separated by a colon, mpirun 5.0.7 crashed.

Sources: mpirun(1) of Open MPI 4.1 and 5.0 (--host with slots, --map-by slot, an absolute path as --prefix,
--allow-run-as-root, OMPI_COMM_WORLD_RANK); nccl-tests' README.md, and src/util.cu for the rows of its tables.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuready.base.errors import brief
from gpuready.fabric import figures
from gpuready.fabric.collective import Measured, Outcome, Scope, figured, size_text
from gpuready.fabric.commands import Command, Test
from gpuready.fabric.counters import Proof
from gpuready.fabric.job import Part, start
from gpuready.fabric.verdict import Answer, log_proof
from gpuready.model.verify import Thresholds
from gpuready.network import torch

#: Not a test of its own: it measures ``collective``.
_TEST = Test("mpirun", "mpirun: nccl-tests", "GB/s", "bash", "bash", "", True, together=True)
#: nccl-tests' default.
_ITERATIONS = 20
_LEAST, _FACTOR, _MOST_OVER_TCP = 1 << 20, 4, 256 << 20
#: The names of the collectives in nccl-tests' programs.
_PROGRAMS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
             "alltoall": "all_to_all"}  # fmt: skip
_TABLE = re.compile(r"^collective: (\w+)$", re.M)
_REASON = re.compile(r"^cannot: (.{1,500})$", re.M)
#: A rank: it finds its host by its number. $0: the program. The rest: for each host "RANKS NAME=VALUE ...", quoted for
#: the shell; then -- and the arguments of the program.
_RANK = r"""
rank=$OMPI_COMM_WORLD_RANK
while [ "$rank" -ge "${1%% *}" ]; do
  rank=$((rank - ${1%% *}))
  shift
done
given=${1#* }
while [ "$1" != -- ]; do shift; done
shift
eval "exec env $given \"\$0\" \"\$@\""
"""
#: $0: NAME=ADDRESS of the other hosts, in words. $1: mpirun's hosts. $2: the ranks. $3: _RANK. The rest: its arguments.
_SCRIPT = r"""
set -o pipefail
user=${SUDO_USER:-root}
if [ "$(id -u)" = 0 ] && [ "$user" != root ]; then
  home=$(getent passwd "$user" | cut -d: -f6)
  exec runuser -u "$user" -- env HOME="$home" USER="$user" bash -l -c "$BASH_EXECUTION_STRING" "$0" "$@"
fi
cannot() {
  echo "cannot: $1"
  exit 3
}
user=$(id -un)
mpirun=$(type -P mpirun) || cannot "there is no mpirun in the PATH of $user"
first=$(type -P all_reduce_perf) || cannot "there is no all_reduce_perf of nccl-tests in the PATH of $user"
for each in $0; do
  name=${each%%=*}
  for file in "$mpirun" "$first"; do
    said=$(ssh -n -o BatchMode=yes -o ConnectTimeout=10 "${each#*=}" "test -x '$file'" 2>&1)
    case $? in
      0) ;;
      1) cannot "there is no $file on $name" ;;
      *) cannot "$user does not reach $name by SSH from here: $(echo "$said" | tail -n 1)" ;;
    esac
  done
done
slots=$1
count=$2
rank=$3
shift 3
root=
[ "$(id -u)" != 0 ] || root=--allow-run-as-root
for name in all_reduce all_gather reduce_scatter alltoall; do
  program=$(type -P "${name}_perf") || continue
  echo "collective: $name"
  "$mpirun" $root -np "$count" --host "$slots" --map-by slot --bind-to none \
    bash -c "$rank" "$program" "$@" 2>&1 </dev/null |
    awk '!/ NCCL INFO / || (/Using|via NET/ && shown++ < 100)' || exit
done
"""


def part(parts: Sequence[Part], seconds: int) -> Part:
    """Return what the first host runs for all parts of a job. ``seconds``: for each collective."""
    first = parts[0]
    most = _MOST_OVER_TCP if first.end.over_tcp else Scope().most
    sizes = ("-b", str(_LEAST), "-e", str(most), "-f", str(_FACTOR), "-g", "1", "-n", str(_ITERATIONS))
    environments = []
    for each in parts:
        given = [pair for pair in each.command.before if not pair.startswith(f"{torch.VARIABLE}=")]
        if each.end.netdev:  # MPI itself: else it may choose a bridge of Docker, which has the same address everywhere
            given.append(f"OMPI_MCA_btl_tcp_if_include={each.end.netdev}")
        environments.append(f"{each.ranks} {shlex.join(given)}")
    slots = ",".join(f"{each.end.address if each.rank else 'localhost'}:{each.ranks}" for each in parts)
    others = " ".join(f"{each.end.host}={each.end.address}" for each in parts[1:])
    ranks = sum(each.ranks for each in parts)
    limit = start(ranks) + len(_PROGRAMS) * 10 * seconds
    arguments = (others, slots, str(ranks), _RANK, *environments, "--", *sizes)
    command = Command(_TEST, arguments, limit, shell=_SCRIPT, tool=_TEST.tool)
    return replace(first, command=command)


def judged(parts: Sequence[Part], answer: Answer, limits: Thresholds) -> Outcome:
    """Return the result of nccl-tests in the form of gpuready's own."""
    here = parts[0].end.host
    remedy = "install Open MPI and nccl-tests, and let this user log in to the other hosts by key; or omit --mpirun"
    if cannot := _REASON.search(answer.text):
        return Outcome("skip", f"{here}: {brief(cannot[1])}", remedy)
    if answer.missing or answer.trouble:
        why = f"{here}: {answer.missing or answer.trouble}"
        return Outcome("skip", why, remedy) if answer.missing else Outcome("unknown", f"the job was ended: {why}")
    rows = list(_rows(answer.text, sum(each.ranks for each in parts)))
    measured = tuple(row for row, _ in rows)
    for row, wrong in rows:
        if wrong:
            scope = Scope.with_size(row.collective, row.size)
            title = row.collective.replace("_", "-")
            summary = f"wrong result: {title} of {size_text(row.size)}, {wrong} elements (nccl-tests)"
            return Outcome("fail", summary, measured=measured, fault="wrong", scope=scope)
    if answer.rc:
        ended = "it did not end in time" if answer.rc in (124, 137) else f"exit {answer.rc}"
        summary = brief(f"mpirun failed on {here} ({ended}): {figures.complaint(answer.text)}", 1000)
        return Outcome("fail", summary, measured=measured, fault="failed")
    if not measured:
        return Outcome("unknown", f"nccl-tests printed no figure: {figures.last_line(answer.text)}")
    found = figured(parts, [answer], [], measured, limits)
    return replace(found, summary=f"{found.summary}, nccl-tests")


def _rows(text: str, ranks: int) -> Iterator[tuple[Measured, int]]:
    """Parse the out-of-place columns of each table, with the number of wrong elements."""
    _, *tables = _TABLE.split(text)
    for name, table in zip(tables[::2], tables[1::2], strict=True):
        for row in figures.collectives(table):
            if name in _PROGRAMS and row.size and row.microseconds:
                yield Measured(_PROGRAMS[name], row.size, ranks, _ITERATIONS, row.microseconds), row.wrong or 0


def proof(part: Part, answer: Answer, moved: int) -> list[Proof]:
    """Return the proof by NCCL's log; the counters of all hosts but the first are not read."""
    return [log_proof(part.end, answer)]

"""``fabric --tests collective --mpirun``: the collectives of NVIDIA's nccl-tests, which mpirun starts from one host.

mpirun reaches the other hosts by SSH. gpuready neither makes nor copies keys for that, so the script first looks
whether the user can do so, and says what is missing. It runs as the user who called sudo, since root rarely has keys.

Open MPI 5.0.7 finds no slots on the first host if --host has its address, so it is localhost. Each rank gets the
environment of its host by its number: with several programs, separated by a colon, mpirun 5.0.7 crashed. mpirun 4.1.4
writes a NUL before the first word of rank 0.

Sources: mpirun(1) of Open MPI 4.1 and 5.0 (--host with slots, --map-by slot, an absolute path as --prefix,
--allow-run-as-root, OMPI_COMM_WORLD_RANK), and plm_rsh_no_tree_spawn of ompi_info; nccl-tests' README.md, and
src/util.cu for the rows of its tables.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from gpuready.base.errors import brief
from gpuready.base.words import count
from gpuready.fabric import figures
from gpuready.fabric.collective import Measured, Outcome, Scope, figured, size_text
from gpuready.fabric.commands import Command, Test
from gpuready.fabric.counters import Proof
from gpuready.fabric.job import Role, start
from gpuready.fabric.verdict import Answer, log_proof
from gpuready.model.verify import Thresholds
from gpuready.network import torch

#: Not a test of its own: it measures ``collective``.
_TEST = Test("mpirun", "mpirun: nccl-tests", "GB/s", "bash", "bash", "", True, together=True)
#: nccl-tests' default, and that with what warms up and checks.
_ITERATIONS, _RUNS = 20, 25
_LEAST, _FACTOR, _LEAST_LAST, _MOST_OVER_TCP = 1 << 20, 4, 64 << 20, 256 << 20
#: Gbit/s of a host of which a line rate is unknown.
_UNKNOWN_RATE = 100
#: Seconds for mpirun to end its ranks, and to look at 32 hosts at once, as the script does.
_ENDING, _REACH, _AT_ONCE = 15, 25, 32
#: The names of the collectives in nccl-tests' programs.
_PROGRAMS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
             "alltoall": "all_to_all"}  # fmt: skip
_TABLE = re.compile(r"^collective: (\w+)$", re.M)
_REASON = re.compile(r"^cannot: (.{1,500})$", re.M)
#: nccl-tests' first line, after MPI has started.
_STARTED = re.compile(r"^# nThread ", re.M)
#: A rank's name of its host, without the domain, as NCCL logs it.
_HOST = re.compile(r"^host: (\d{1,6}) ([^\s.]{1,64})", re.M)
_FAILED = re.compile(r"^# Out of bounds values : (\d{1,15}) FAILED", re.M)
_CAUSE = re.compile(r"^.{0,300}(?:NCCL WARN|Test (?:NCCL|CUDA) failure).{0,300}", re.M)
#: What is not an error message of nccl-tests or mpirun.
_NOISE = re.compile(r"^(?:collective: |host: |#|[ \t]*\d+[ \t]+\d+[ \t]).*\n?", re.M)
#: A rank: it finds its host by its number. $0: the program. The rest: for each host "RANKS NAME=VALUE ...", quoted for
#: the shell; then -- and the arguments of the program.
_RANK = r"""
rank=$OMPI_COMM_WORLD_RANK
host=0
while [ "$rank" -ge "${1%% *}" ]; do
  rank=$((rank - ${1%% *}))
  host=$((host + 1))
  shift
done
[ "$rank" != 0 ] || echo "host: $host $(uname -n)"
given=${1#* }
while [ "$1" != -- ]; do shift; done
shift
eval "exec env $given \"\$0\" \"\$@\""
"""
#: Keeps rows, errors, and of NCCL's log which network each host uses. NCCL may log in the middle of a row, also without
#: a blank before (NVIDIA/nccl#1453): then the name of the host begins where one begins that was seen before.
_FILTER = r"""
function network(line, tail) {
  tail = substr(line, index(line, " NCCL INFO ") + 11)
  if (match(tail, /via NET\/[A-Za-z]+/)) tail = substr(tail, RSTART, RLENGTH)
  else if (tail !~ /Using network |NET\/[A-Za-z0-9_]+ ?: Using /) return
  if (!shown[substr(line, 1, index(line, ":")), tail]++)
    print substr(line, 1, index(line, " NCCL INFO ") + 10) tail
}
held != "" && /^( +[-0-9.N]|$)/ {
  $0 = held $0
  held = ""
}
match($0, / *[^ ]+:[0-9]+:[0-9]+ \[[0-9]+\] NCCL INFO .*/) {
  before = substr($0, 1, RSTART - 1)
  line = substr($0, RSTART)
  sub(/^ +/, "", line)
  name = substr(line, 1, index(line, ":") - 1)
  if (before == "") names[name]
  else
    for (i = 1; i <= length(name); i++)
      if (substr(name, i) in names) {
        before = before " " substr(line, 1, i - 1)
        line = substr(line, i)
        break
      }
  network(line)
  if (before ~ /^ *[0-9]+ +[0-9]+ /) held = before
  next
}
/^# (nThread|Out of bounds)/ || !/^(#|$)/
END { if (held != "") print held }
"""
#: $0: NAME=ADDRESS of the other hosts, in words. $1: mpirun's hosts. $2: the ranks. $3: seconds for each collective.
#: $4: _RANK. $5: _FILTER. The rest: arguments of _RANK.
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
program() { type -P "$1_perf_mpi" || type -P "$1_perf"; }
# reach NAME=ADDRESS: say why mpirun cannot start ranks there.
reach() {
  name=${1%%=*}
  said=$(timeout -k 2 20 ssh -n -o BatchMode=yes -o ConnectTimeout=10 "${1#*=}" \
    "test -x '$mpirun' || exit 3; test -x '$first' || exit 4" 2>&1)
  case $? in
    0) ;;
    3) cannot "there is no $mpirun on $name" ;;
    4) cannot "there is no $first on $name" ;;
    124 | 137) cannot "$user does not reach $name by SSH from here: no answer within 20 s" ;;
    *) cannot "$user does not reach $name by SSH from here: ${said##*$'\n'}" ;;
  esac
}
user=$(id -un)
mpirun=$(type -P mpirun) || cannot "there is no mpirun in the PATH of $user"
root=
[ "$(id -u)" != 0 ] || root=--allow-run-as-root
case $(timeout -k 2 20 "$mpirun" $root --version 2>&1) in
  *"Open MPI"*) ;;
  *) cannot "$mpirun is not Open MPI's, or does not run" ;;
esac
first=$(program all_reduce) || cannot "there is no all_reduce_perf of nccl-tests in the PATH of $user"
export user mpirun first
export -f cannot reach
[ -z "$0" ] || printf '%s\n' $0 | xargs -P 32 -n 1 bash -c 'reach "$1"' bash || exit 3
slots=$1
count=$2
limit=$3
rank=$4
filter=$5
shift 5
# The first host starts all others: they need not reach each other by SSH. The names of Open MPI 4 and 5.
export OMPI_MCA_plm_rsh_no_tree_spawn=1 PRTE_MCA_plm_ssh_no_tree_spawn=1
for name in all_reduce all_gather reduce_scatter alltoall; do
  program=$(program "$name") || continue
  echo "collective: $name"
  timeout --foreground -k 15 "$limit" "$mpirun" $root -np "$count" --host "$slots" --map-by slot --bind-to none \
    bash -c "$rank" "$program" "$@" 2>&1 </dev/null | tr -d '\000' | awk "$filter" || exit
done
"""


def _most(roles: Sequence[Role], seconds: float) -> int:
    """Return the largest size with which a collective ends in time at half of the line rate."""
    rate = min(each.rails_gbps or _UNKNOWN_RATE for each in roles) / 8 * 1e9 / 2
    # An all-reduce sends nearly twice the size, out of place and in place; all smaller sizes together take a third.
    fits = seconds * rate / (2 * 2 * _RUNS * 4 / 3)
    most, size = _MOST_OVER_TCP if roles[0].end.over_tcp else Scope().most, _LEAST_LAST
    while size * _FACTOR <= min(fits, most):
        size *= _FACTOR
    return size


def role(roles: Sequence[Role], seconds: int) -> Role:
    """Return what the first host runs for all roles of a job. ``seconds``: a tenth of what a collective may take."""
    first = roles[0]
    most = _most(roles, 10 * seconds)
    sizes = ("-b", str(_LEAST), "-e", str(most), "-f", str(_FACTOR), "-g", "1", "-n", str(_ITERATIONS))
    environments = []
    for each in roles:
        given = [pair for pair in each.command.before if not pair.startswith(f"{torch.VARIABLE}=")]
        if each.end.netdev:  # MPI itself: else it may choose a bridge of Docker, which has the same address everywhere
            given.append(f"OMPI_MCA_btl_tcp_if_include={each.end.netdev}")
        environments.append(f"{each.ranks} {shlex.join(given)}")
    slots = ",".join(f"{each.end.address if each.rank else 'localhost'}:{each.ranks}" for each in roles)
    others = " ".join(f"{each.end.host}={each.end.address}" for each in roles[1:])
    ranks = sum(each.ranks for each in roles)
    each_limit = start(ranks) + 10 * seconds
    limit = _REACH * (1 + ceil(len(roles) / _AT_ONCE)) + len(_PROGRAMS) * (each_limit + _ENDING)
    arguments = (others, slots, str(ranks), str(each_limit), _RANK, _FILTER, *environments, "--", *sizes)
    command = Command(_TEST, arguments, limit, shell=_SCRIPT, tool=_TEST.tool)
    return replace(first, command=command, others=tuple(each.end.host for each in roles[1:]))


def judged(roles: Sequence[Role], answer: Answer, limits: Thresholds) -> Outcome:
    """Return the result of nccl-tests in the form of gpuready's own."""
    here = roles[0].end.host
    remedy = "install Open MPI and nccl-tests, and let this user log in to the other hosts by key; or omit --mpirun"
    if reasons := _REASON.findall(answer.text):
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        return Outcome("skip", f"{here}: {brief(min(reasons))}{more}", remedy)
    if answer.missing or answer.trouble:
        why = f"{here}: {answer.missing or answer.trouble}"
        return Outcome("skip", why, remedy) if answer.missing else Outcome("unknown", f"the job was ended: {why}")
    ranks = sum(each.ranks for each in roles)
    rows = list(_rows(answer.text, ranks))
    measured = tuple(row for row, _ in rows)
    printed = Counter((row.collective, row.size) for row in measured)
    if odd := [row for row, its in rows if printed[row.collective, row.size] > 1 or not _agree(row, its)]:
        title = odd[0].collective.replace("_", "-")
        summary = f"the figures of {title} are not those of one job of {ranks} ranks"
        return Outcome("unknown", f"{summary}: nccl-tests is built without MPI", "build nccl-tests with MPI=1")
    for row, its in rows:
        if its.wrong:
            scope = Scope.with_size(row.collective, row.size)
            title = row.collective.replace("_", "-")
            summary = (
                f"wrong result: {title} of {size_text(row.size)}, {count(its.wrong, 'element')} or more (nccl-tests)"
            )
            return Outcome("fail", summary, measured=measured, fault="wrong", scope=scope)
    if answer.rc:
        ended = "it did not end in time" if answer.rc in (124, 137) else f"exit {answer.rc}"
        words = _complaint(answer.text)
        if not _STARTED.search(answer.text):
            return Outcome("unknown", brief(f"mpirun started no nccl-tests on {here} ({ended}): {words}", 1000))
        last = ["nccl-tests", *_TABLE.findall(answer.text)][-1].replace("_", "-")
        summary = brief(f"mpirun failed on {here} in {last} ({ended}): {words}".removesuffix(": "), 1000)
        return Outcome("fail", summary, measured=measured, fault="failed")
    if not any(row.collective == "all_reduce" for row in measured):
        summary = f"nccl-tests printed no figure of all-reduce: {figures.last_line(answer.text)}"
        return Outcome("unknown", summary, measured=measured)
    found = figured(roles, [answer], [], measured, limits)
    return replace(found, summary=f"{found.summary}, nccl-tests")


def _rows(text: str, ranks: int) -> Iterator[tuple[Measured, figures.Collective]]:
    """Parse the rows of each table. If only the last line tells of wrong elements, they are in the last row."""
    _, *tables = _TABLE.split(text)
    for name, table in zip(tables[::2], tables[1::2], strict=True):
        rows = [row for row in figures.collectives(table) if name in _PROGRAMS and row.size and row.microseconds]
        if rows and (failed := _FAILED.search(table)) and not any(row.wrong for row in rows):
            rows[-1] = replace(rows[-1], wrong=int(failed[1]))
        for row in rows:
            yield Measured(_PROGRAMS[name], row.size, ranks, _ITERATIONS, row.microseconds), row


def _agree(row: Measured, its: figures.Collective) -> bool:
    """Whether nccl-tests computed the bus bandwidth for as many ranks; they round it, and long times to two digits."""
    return abs(row.busbw - its.busbw) <= 0.08 * row.busbw + 0.01


def _complaint(text: str) -> str:
    """Return the first errors of NCCL and CUDA, then mpirun's last words."""
    causes = [each.strip() for each in _CAUSE.findall(text)]
    return "; ".join([*list(dict.fromkeys(causes))[:3], figures.complaint(_NOISE.sub("", text))]).strip("; ")


def proof(role: Role, answer: Answer, moved: int) -> list[Proof]:
    """Return the proof by what NCCL logged on this host; the counters of all hosts but the first are not read."""
    name = next((name for number, name in _HOST.findall(answer.text) if int(number) == role.rank), "")
    log = "\n".join(line for line in answer.text.splitlines() if name and line.startswith(f"{name}:"))
    return [log_proof(role.end, replace(answer, text=log)) if log else Proof(None, f"{role.end}: no log of this host")]

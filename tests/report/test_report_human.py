"""The human report, word for word. After a wanted change, ``python tests/report/test_report_human.py`` updates it."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from gpuready.base.errors import ConvergeError, UnreachableError, Where
from gpuready.base.host_list import hostlist
from gpuready.catalogue import BY_ID
from gpuready.cli.parts import parts
from gpuready.contract.check import fail
from gpuready.contract.compare import Comparison
from gpuready.contract.permission import FOR_WINDOW
from gpuready.inventory.groups import Graph
from gpuready.inventory.patterns import select
from gpuready.result.exitcode import exit_code
from gpuready.result.human import human
from gpuready.result.model import AfterBatch, ComponentResult, Run
from gpuready.result.page import problem
from gpuready.result.text import printable
from tests.report.test_report_runs import (
    BROKEN,
    CODES,
    DOCKER,
    NO_ROUTE,
    NO_RUNTIME,
    SAME,
    STUB,
    TOOLKIT,
    UNSEEN,
    check,
    component,
    differing,
    host,
    run,
    sample,
)

GOLDEN = Path(__file__).parents[1] / "data" / "report"
TOLD = (
    "converged",
    "proven",
    "would-change",
    "changed",
    "failed",
    "unreachable",
    "pending",
    "warnings",
    "differs",
    "lost",
    "uncomparable",
    "probed",
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", TOLD)
def test_word_for_word(name: str) -> None:
    assert printable(human(sample(name), CODES[name])) == (GOLDEN / f"{name}.txt").read_text("utf-8")


def test_the_hosts_to_repeat_it_on_are_shown_whole() -> None:
    hosts = [differing(f"rack{rack:02}-gpu{at:02}.example.com") for rack in range(30) for at in range(4)]
    for made in hosts[::3]:
        made.outcome = "failed"
    told = human(run("apply", *hosts), 1)
    (again,) = [line for line in told.splitlines() if line.startswith("again:")]
    *same, option, pattern = shlex.split(again.removeprefix("again:"))
    graph = Graph()
    for made in hosts:
        graph.add_host(made.name, graph.groups["ungrouped"], Where("test"))
    assert same == ["the", "same", "command", "with"] and option == "--limit"
    assert select(graph, [pattern], []) == [made.name for made in hosts[::3]]


def test_the_next_command_has_the_options_of_this_one_and_no_mask() -> None:
    made = run("plan", differing("gpu01"), differing("gpu02"), host("gpu03", "unreachable", error=NO_ROUTE))
    made.limit = ("gpu0[1-3]", "!gpu07")
    told = human(made, 0)
    assert "next:    gpuready apply -i hosts.yaml --limit 'gpu0[1-3]' --limit '!gpu07'\n" in told
    made.repeated = ("gpuready launch hosts -i hosts.yaml", "-- train.py --epochs 3")
    assert "again:   gpuready launch hosts -i hosts.yaml --limit gpu03 -- train.py --epochs 3\n" in human(made, 0)
    made.repeated = ("gpuready plan -e ansible_become_password=1234", "")  # its secret is masked
    assert "again:   the same command with --limit gpu03\n" in human(made, 0)
    made.permission = "--batch 1"
    assert "next:    gpuready apply -i hosts.yaml --limit 'gpu0[1-3]' --limit '!gpu07' --batch 1\n" in human(made, 0)
    made.choice = "-i hosts.yaml -e ansible_become_password=env:GPUREADY_SUDO -e ansible_ssh_private_key_file=k"
    assert f"next:    gpuready apply {made.choice} --limit" in human(made, 0)
    made.choice = "-i hosts.yaml -e ansible_become_password=1234"
    assert "next:" not in human(made, 0)


@pytest.mark.parametrize(
    ("reasons", "says"),
    [
        (("until idle: x", ""), ""),
        ((f"{FOR_WINDOW} Sat", f"{FOR_WINDOW} Sun"), ", when the maintenance window opens"),
        (("", f"only docker.x: {FOR_WINDOW} Sat"), "; some wait until their maintenance window opens"),
    ],
)
def test_batches_of_a_closed_window_say_so(reasons: tuple[str, str], says: str) -> None:
    made = run("plan", differing("gpu01"), differing("gpu02"))
    made.batches = [("gpu01",), ("gpu02",)]
    for each, reason in zip(made.hosts, reasons, strict=True):
        each.components[0].pending_reason = reason
    (line,) = [line for line in human(made, 0).splitlines() if line.startswith("in 2 batches")]
    assert line == f"in 2 batches, one after another{says}"


def test_a_dry_run_of_rdma_attach_is_not_followed_by_apply() -> None:
    made = run("plan", differing("gpu01"))
    assert "next:    gpuready apply" in human(made, 0)
    made.part = next(part for part in parts() if part.verb == "rdma" and not part.of_spec)
    assert "next:" not in human(made, 0)


def test_with_a_state_directory_the_rest_is_for_resume() -> None:
    made = sample("failed")
    assert "--resume" not in human(made, 1)
    made.for_the_rest = "the same command with --resume"
    told = human(made, 1)
    assert "\nagain:   the same command with --resume\n" in told and "--limit" not in told


def test_an_interrupted_run_with_a_state_directory_has_one_way_on() -> None:
    made = run("apply", host("gpu01", "not_attempted"), interrupted=True)
    assert "fix:     run the same command again: it" in human(made, 130)
    made.for_the_rest = "the same command with --resume"
    told = human(made, 130)
    assert "fix:     run the same command with --resume: it" in told and "same command again" not in told


def test_hosts_of_an_earlier_run_are_not_probed_again() -> None:
    made = run("apply", host("gpu01", "ok"), host("gpu02", "ok"))
    assert human(made, 0).startswith("apply: 2 hosts of hosts.yaml, 2 probed, 1.5 s\n")
    made.hosts[0].earlier = "2026-11-28T10:00:00Z"
    assert human(made, 0).startswith("apply: 2 hosts of hosts.yaml, 1 probed, 1 from an earlier run, 1.5 s\n")


def test_what_an_earlier_run_changed_is_not_mixed_with_what_this_run_changed() -> None:
    hosts = [host(name, "changed", component(DOCKER, changed=True), checks=()) for name in ("gpu01", "gpu02", "gpu03")]
    made = run("apply", *hosts)
    made.hosts[0].earlier = "2026-11-28T10:00:00Z"
    told = human(made, 3)
    assert "\ndocker: changed in an earlier run on gpu01\n" in told and "\ndocker: changed on gpu[02-03]\n" in told
    assert "\ngpu01  changed in an earlier run  " in told and "\ngpu02  changed  " in told
    assert "3 hosts: 1 changed in an earlier run, 2 changed" in told


@pytest.mark.parametrize(
    ("outcome", "exit_codes", "why"),
    [
        ("changed", (0, 1), "--after-batch failed after gpu01"),
        ("changed", (None,), "--after-batch failed after gpu01"),
        ("changed", (0,), "a host failed"),
        ("failed", (1,), "a host failed"),
    ],
)
def test_a_failed_command_after_a_batch_is_no_failed_host(
    outcome: str, exit_codes: tuple[int | None, ...], why: str
) -> None:
    made = run("apply", host("gpu01", outcome))
    made.after_batch = [AfterBatch(("gpu01",), code, 1.0, "") for code in exit_codes]
    assert human(made, 1).endswith(f"; exit 1 ({why})\n")


def test_the_way_back_has_no_level() -> None:
    made = run("plan", differing("gpu01"))
    made.removing, made.hosts[0].checks = True, []
    assert human(made, 0).endswith("\n1 host: 1 would change, nothing was changed\n")


def test_after_a_confirmed_plan_the_differences_are_not_shown_again() -> None:
    made = sample("failed")
    whole = human(made, 1)
    made.diff_shown = True
    short = human(made, 1)
    assert "toolkit.nvidia-container-toolkit: 1.18.2-1" in whole and "->" not in short and "impact:" not in short
    for line in ("toolkit: changed on gpu01", "docker: failed on gpu01", "  fix:     journalctl -u docker -n 50"):
        assert f"{line}\n" in short


@pytest.mark.parametrize("name", CODES)
def test_colour_adds_nothing_but_colour(name: str) -> None:
    plain = printable(human(sample(name), CODES[name]))
    coloured = printable(human(sample(name), CODES[name], color=True))
    assert _ANSI.sub("", coloured) == plain
    assert "\x1b" not in plain and plain.endswith("\n")


@pytest.mark.parametrize("name", CODES)
def test_ready_is_said_only_where_every_host_showed_a_gpu(name: str) -> None:
    last = human(sample(name), CODES[name]).splitlines()[-1]
    assert (" ready; " in last) == (name in ("proven", "warnings"))


def test_a_converged_plan_with_failing_checks_does_not_say_ok() -> None:
    last = human(run("plan", host("a", checks=(STUB,))), 0).splitlines()[-1]
    assert last == "nothing to change, but 1 check failed; level config, no GPU was tested"


@pytest.mark.parametrize(
    ("selected", "whose"),
    [
        (None, "anything from gpuready"),
        (frozenset({"wheels"}), "gpuready's wheels"),
        (frozenset("fbcdae"), "gpuready's a, b, c, d and 2 more"),
    ],
)
@pytest.mark.parametrize("verb", ["plan", "remove"])  # as plan it is a dry run
def test_the_end_of_a_remove_speaks_of_what_was_chosen(verb: str, selected: frozenset[str] | None, whose: str) -> None:
    back = replace(run(verb, host("a", checks=())), removing=True, selected=selected)
    assert human(back, 0).splitlines()[-1] == f"OK: 1 host without {whose}"
    more = replace(run("plan", host("a", "would_change", component(TOOLKIT))), removing=True, selected=selected)
    assert human(more, 0).splitlines()[-1].startswith("1 host: 1 would change, nothing was changed")


def test_of_what_waits_in_part_it_is_told_what_is_done() -> None:
    half = component(DOCKER, changed=True, pending="until idle", closed=frozenset({"docker.live-restore"}))
    shown = human(run("apply", host("a", "pending", half)), 7)
    assert "docker: partly changed, the rest is pending on a" in shown
    assert "docker.live-restore: false -> true (done)\n" in shown
    assert "docker.runtimes.nvidia.path: (absent) -> nvidia-container-runtime\n" in shown


def test_a_remark_of_a_component_that_changes_nothing_is_a_note_of_its_hosts() -> None:
    idle = component(Comparison("reconverge", False, "no driver", notes=("nothing is done here: no driver",)))
    shown = human(run("plan", host("a", "ok", idle), host("b", "ok", idle)), 0)
    assert "note:    a,b: reconverge: nothing is done here: no driver\n" in shown


def test_checks_that_fail_because_an_earlier_component_failed_are_named_in_one_line() -> None:
    cause = ConvergeError("cannot fetch the key", remedy="set a mirror")
    items = (component(TOOLKIT, error=cause), component(DOCKER, attempted=False))
    seen = run("apply", host("a", "failed", *items, checks=(NO_RUNTIME, STUB), error=cause))
    shown = human(seen, exit_code(seen))
    assert "as a result: 1 check failed on a: docker.runtime\n" in shown
    assert "FAIL  docker.runtime" not in shown and "FAIL  libcuda.stub on a" in shown
    never = host("b", "not_attempted", component(DOCKER, attempted=False))  # as --after-batch stopped the run
    never.checks = [NO_RUNTIME]
    stopped = human(run("apply", never), 1)
    assert "before apply: 1 check failed on b: docker.runtime\n" in stopped and "as a result" not in stopped
    done = run("apply", host("a", "changed", component(DOCKER, changed=True), checks=(NO_RUNTIME,)))
    assert "FAIL  docker.runtime" in human(done, exit_code(done))


@pytest.mark.parametrize(
    ("causes", "below"),
    [({"a": "b"}, "a"), ({"a": "a"}, ""), ({"a": "b", "b": "a"}, ""), ({"a": "b", "b": "c"}, "b"), ({"a": "d"}, "")],
)
def test_a_check_is_below_its_cause_or_has_a_report_of_its_own(causes: dict[str, str], below: str) -> None:
    """Whatever a document says of causes, no failure is lost."""
    checks = tuple(check(f"x.{id}", fail("it fails", because=f"x.{causes.get(id, '')}")) for id in "abc")
    text = human(run("verify", host("gpu01", checks=checks)), 3)
    assert [id for id in "abc" if f"FAIL  x.{id} on gpu01" in text] == [id for id in "abc" if id != below]
    assert [id for id in "abc" if f"causes:  x.{id}: it fails" in text] == [*below]


def test_unknown_counts_in_verify() -> None:
    seen = run("verify", host("a", checks=(UNSEEN,)))
    assert human(seen, exit_code(seen)).splitlines()[-1].startswith("NOT OK: 1 host: 1 CHECKS UNKNOWN;")


def test_problem_keeps_every_line() -> None:
    assert problem("a:1: x\na:2: y", "mend it") == "error: a:1: x\n  a:2: y\n  fix:     mend it\n"


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["lab1"], "lab1"),
        ([f"gpu{n:02}" for n in range(1, 17)], "gpu[01-16]"),
        (["gpu9", "gpu10", "gpu12"], "gpu[9-10,12]"),
        (["gpu09", "gpu10", "gpu100"], "gpu[09-10],gpu100"),
        (["r1-gpu1.dc2.example", "r1-gpu2.dc2.example"], "r1-gpu[1-2].dc2.example"),
        (["10.0.0.1", "10.0.0.2", "10.0.1.2"], "10.0.0.[1-2],10.0.1.2"),
        (["b", "a", "b"], "b,a"),
        (["gpu01a", "gpu02a", "gpu01"], "gpu[01-02]a,gpu01"),
        (["node" + "9" * 30], "node" + "9" * 30),
        ([], ""),
    ],
)
def test_hostlist(names: list[str], folded: str) -> None:
    assert hostlist(names) == folded


def test_a_long_hostlist_ends() -> None:
    names = ["".join(chr(97 + int(d)) for d in str(n)) for n in range(100)]
    assert hostlist(names).endswith(" and 88 more")


def test_clean_keeps_what_people_write() -> None:
    assert printable("Zürich → 日本\tx") == "Zürich → 日本    x"


def test_errors_that_differ_only_in_the_host_are_one_and_name_the_first() -> None:
    names = [f"gpu{n:02}" for n in range(1, 41)]
    made = run("plan", *(
        host(name, "unreachable", error=UnreachableError(f"the host key of {name} is not known", remedy=f"ssh {name}"))
        for name in names
    ))  # fmt: skip
    told = human(made, 4)
    assert "UNREACHABLE  gpu[01-40]: the host key of gpu01 is not known (39 more hosts with the same error)\n" in told
    assert told.count("is not known") == 1 and "  fix:     ssh HOST\n" in told


def test_the_usual_known_hosts_of_an_inventory_is_named_with_v() -> None:
    made = run("plan", host("gpu01", "ok", component(SAME)))
    made.hosts[0].notes += ["known_hosts comes from the inventory: /known_hosts"]
    assert "known_hosts" not in human(made, 0)
    made.verbose = True
    assert "note:    gpu01: known_hosts comes from the inventory: /known_hosts\n" in human(made, 0)
    made.verbose, made.hosts[0].notes = False, ["known_hosts comes from the inventory, but is not there: /none"]
    assert "but is not there: /none\n" in human(made, 0)


def test_an_error_names_its_host_once_and_the_inventory_of_the_run() -> None:
    refused = UnreachableError("n1: connection refused", remedy="gpuready trust -i INVENTORY shows it")
    made = run("plan", host("n1", "unreachable", error=refused))
    told = "UNREACHABLE  n1: connection refused\n  fix:     gpuready trust {} shows it\n"
    assert told.format("-i hosts.yaml") in human(made, 4)
    made.choice = "-i hosts.yaml -e ansible_ssh_private_key_file=/home/me/.ssh/lab"
    assert told.format(made.choice) in human(made, 4)
    made.choice = "-i hosts.yaml -e ansible_password=1234"  # with a mask, the command would not work
    assert told.format("-i INVENTORY") in human(made, 4)


def many() -> Run:
    """500 hosts: most changed, the others with a few kinds of trouble, whose messages name the host or its address."""
    hosts = []
    for n in range(500):
        name = f"gpu{n:03}.rack{n % 9}.example"
        if n % 10 == 1:
            lost = UnreachableError(f"10.0.{n // 256}.{n % 256}: no route to host", remedy="is it up?")
            hosts.append(host(name, "unreachable", error=lost))
        elif n % 10 == 2:
            broken = ConvergeError(f"docker: {name}: dockerd did not answer within 60 s\n" + "long " * 99)
            hosts.append(host(name, "failed", component(DOCKER, error=broken), error=broken))
        elif n % 10 == 3:
            hosts.append(host(name, "pending", component(DOCKER, pending="until idle: " + "web " * 40)))
        elif n % 10 == 4:
            odd = check(f"odd.check{n}", fail("an own failure of each"))
            hosts.append(host(name, "changed", component(DOCKER, changed=True), checks=(odd,)))
        else:
            hosts.append(host(name, "changed", component(DOCKER, changed=True)))
    return run("apply", *hosts)


def test_the_report_of_500_hosts_ends_in_a_summary_that_fits_a_screen() -> None:
    lines = human(many(), 1).splitlines()
    start = next(i for i, line in enumerate(lines) if line == "summary of 500 hosts")
    screen = lines[start:]
    assert sum(max(1, -(-len(line) // 80)) for line in screen) <= 23, "the prompt needs the last one"
    assert all(len(line) < 80 for line in screen[:-1])
    text = "\n".join(screen)
    assert sum("no route to host" in line for line in lines[:start]) == 1, "told once, for all 50"
    assert "   50  UNREACHABLE  no route to host  gpu" in text
    assert "   50  FAILED  docker: HOST: dockerd did not answer" in text
    assert "  300  changed  docker  gpu" in text
    assert "   50  pending  until idle: web" in text and " other causes  gpu" in text
    assert "  every host: --output html:report.html" in text
    assert screen[-1].startswith("NOT OK: 500 hosts: ")


def test_few_hosts_have_a_line_each() -> None:
    fifty = run("verify", *(host(f"gpu{n}") for n in range(50)))
    assert "summary of" not in human(fifty, 0) and human(fifty, 0).count("0 GPU checks  0.4 s") == 50


@pytest.mark.parametrize(
    ("verb", "item", "apply_helps"),
    [
        ("verify", component(DOCKER), True),
        ("verify", component(replace(DOCKER, diff=())), False),
        ("verify", component(BROKEN, error=ConvergeError(BROKEN.error)), False),
        ("plan", component(BROKEN, error=ConvergeError(BROKEN.error)), False),
        ("apply", component(DOCKER, changed=True), False),
        ("apply", component(DOCKER, pending="until idle: web"), True),
        ("verify", component(TOOLKIT), True),
    ],
)
def test_a_fix_that_the_run_has_disproved_is_not_shown(verb: str, item: ComponentResult, apply_helps: bool) -> None:
    fix = "gpuready apply; or systemctl reload docker, and read its journal"
    made = run(verb, host("gpu1", "ok", item, checks=(check("docker.runtime", fail("no runtime", fix), "docker"),)))
    assert (f"  fix:     {fix}\n" in human(made, 0)) == apply_helps
    assert ("  fix:     systemctl reload docker, and read its journal\n" in human(made, 0)) != apply_helps
    assert made.hosts[0].checks[0].remedy == fix, "the document has all of it"


def test_what_is_left_of_a_fix_is_whole() -> None:
    """Of each check's own fix that begins with apply, nothing is left that begins in the middle of a sentence."""
    matches = component(replace(DOCKER, diff=()))
    fixes = [each.fix for each in BY_ID.values() if each.fix.startswith("gpuready apply")]
    assert len(fixes) > 8
    for fix in fixes:
        made = run("verify", host("gpu1", "ok", matches, checks=(check("x", fail("broken", fix), "docker"),)))
        found = re.search(r"  fix:     (.*)", human(made, 0))
        rest = found[1] if found else ""
        assert fix.endswith(rest) and not re.match(r"(or|then|and|by|after|with)\b|\W", rest), rest


def test_execs_are_counted_if_more_is_wanted() -> None:
    made = run("verify", host("gpu1"))
    assert "exec" not in human(made, 0)
    made.verbose = True
    assert "0 GPU checks  1 exec  0.4 s" in human(made, 0)


def test_a_summary_masks_before_it_cuts() -> None:
    secret = ConvergeError("docker: failed --password " + "hunter2" * 9 + " https://joe:s3cret@repo/")
    made = run("apply", *(host(f"gpu{n}", "failed", error=secret) for n in range(60)))
    assert "hunter2" not in human(made, 1) and "s3cret" not in human(made, 1)


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for told in TOLD:
        (GOLDEN / f"{told}.txt").write_text(printable(human(sample(told), CODES[told])), "utf-8")

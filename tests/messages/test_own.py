"""gpuready's own words and messages: each is known to explain, and a new one cannot be forgotten."""

import ast
import inspect
import os
import re
from unittest.mock import Mock

import pytest

from gpuready.base.errors import UnreachableError
from gpuready.contract.check import STATUSES, UNDECIDED, Level
from gpuready.contract.component import Disruption
from gpuready.fabric.launch import OUTSIDE
from gpuready.inventory.hosts import NothingChosen, Skipped
from gpuready.messages import own, vocabulary
from gpuready.operations import transport
from gpuready.result import blocks, ending, model
from gpuready.result.exitcode import MEANING
from gpuready.result.model import EARLIER, FINISHED, INTERRUPTED, OUTCOMES
from gpuready.verbs.status import part
from tests.command import Exits, gpuready

WORDS = ["ledger", "drift", *OUTCOMES, *STATUSES, *(item.name for item in Disruption), *(item.name for item in Level)]


def pipe(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this text stand in stdin, as in a pipe."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    monkeypatch.setattr("sys.stdin", os.fdopen(reading))


@pytest.mark.parametrize("word", WORDS)
def test_every_word_is_explained(word: str, exits: Exits) -> None:
    out = exits(0, "explain", word).out
    assert out.startswith(f"{word}: a") and "\n  means   " in out
    assert exits(0, "explain", word.replace("_", " ").upper()).out == out


@pytest.mark.parametrize("code", MEANING)
def test_every_exit_code_is_explained_by_its_own_meaning(code: int, exits: Exits) -> None:
    out = " ".join(exits(0, "explain", f"exit {code}").out.split())
    assert out.startswith(f"exit {code}: an exit code of gpuready means ") and MEANING[code] in out
    for text in (f"exit code {code}", f"exit code: {code}", f"gpuready exited with {code}", str(code)):
        assert " ".join(exits(0, "explain", text).out.split()) == out


@pytest.mark.parametrize(
    ("name", "words"),
    [("OUTCOMES", (*OUTCOMES, "asleep")), ("STATUSES", (*STATUSES, "asleep"))],
)
def test_a_new_word_without_a_description_is_an_error(
    name: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {kind: (words if listed == getattr(vocabulary, name) else listed, texts)
             for kind, (listed, texts) in vocabulary._KINDS.items()}  # fmt: skip
    monkeypatch.setattr(vocabulary, "_KINDS", kinds)
    with pytest.raises(KeyError, match="asleep"):
        list(vocabulary.terms())


def test_a_new_exit_code_without_a_description_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MEANING, 8, "something new")
    with pytest.raises(KeyError, match="8"):
        list(vocabulary.terms())


def test_no_description_is_of_a_word_that_is_gone() -> None:
    assert all(set(words) == set(texts) for words, texts in vocabulary._KINDS.values())
    assert set(vocabulary._AFTER_EXIT) == set(MEANING)


def test_what_a_report_says_of_a_component_is_explained() -> None:
    tree = ast.parse(inspect.getsource(blocks.status_text))
    returned = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
    inner = {id(test) for node in ast.walk(tree) if isinstance(node, ast.IfExp) for test in ast.walk(node.test)}
    said = {
        node.value
        for each in returned
        for node in ast.walk(each)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value and id(node) not in inner
    }
    assert len(said) >= 9 and not [word for word in said if not vocabulary.find(word)]


@pytest.mark.parametrize("word", ["CHECKS FAILED", "CHECKS UNKNOWN", "would change IN PART", "declined",
                                  "not compared", "no record", "unreadable record"])  # fmt: skip
def test_what_a_report_says_of_a_host_is_explained(word: str) -> None:
    printed = "".join(map(inspect.getsource, (blocks, ending, model, part)))
    assert f'"{word}"' in printed and [term.kind for term in vocabulary.find(word)] == ["what a report says of a host"]


def test_the_cause_of_a_skip_is_the_one_of_a_host_without_a_gpu(exits: Exits) -> None:
    out = " ".join(exits(0, "explain", "skipped").out.split())
    assert "sees no NVIDIA GPU" in out and "hardware: {gpus: none}" in out and "add gpuready: {}" in out


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("level smoke", ["smoke: a level of checks"]),
        ("class reboot", ["reboot: a class of disruption"]),
        ("outcome pending", ["pending: an outcome of a host"]),
        ("changed in an earlier run", ["changed: an outcome of a host"]),
        ("level pending", []),
        ("exit 127", []),
        ("exit 8", []),
        ("7 of 9", []),
    ],
)
def test_a_word_with_its_kind(text: str, titles: list[str]) -> None:
    assert [term.title for term in vocabulary.find(text)] == titles


def test_a_word_that_is_more_than_one_thing_is_explained_as_all(exits: Exits) -> None:
    out = exits(0, "explain", "reboot").out
    assert out.startswith("reboot: a class of disruption") and "\nmaintenance.reboot: a setting\n" in out
    assert "\nChecks of fabric\n" in exits(0, "explain", "fabric").out
    assert exits(0, "explain", "config").out.startswith("config: a level of checks\n")
    assert exits(0, "explain", "exit 127").out.startswith("exit 127 of docker run")


def test_a_line_of_another_program_is_not_taken_for_a_report() -> None:
    assert vocabulary.find("not ok 3 - CUDA error: out of memory; exit 1") == ()
    assert vocabulary.find("pending: NVRM: GPU has fallen off the bus; exit 1 (x)") == ()
    assert vocabulary.find("ok: 3 hosts " + "; exit 1 (" * 20_000) == ()


@pytest.mark.parametrize(
    ("line", "titles"),
    [
        ("NOT OK: 2 hosts: all 2 CHECKS FAILED; level smoke, no GPU was tested; exit 3 (a host or check)",
         ["CHECKS FAILED: what", "exit 3: an"]),
        ("NOT OK: 3 hosts: 1 ok, 1 FAILED, 1 NOT ATTEMPTED; exit 1 (a host failed)",
         ["ok: an", "failed: an", "not_attempted: an", "exit 1: an"]),
        ("PENDING: 1 host: 1 pending; nothing was judged; exit 7 (some changes)", ["pending: an", "exit 7: an"]),
        ("nothing was changed: you answered no; 2 hosts: all 2 declined; exit 7", ["declined: what", "exit 7: an"]),
        ("OK: 2 nodes are ready; 24 GPU checks (level smoke)", ["exit 0: an"]),
        ("NOT OK: no host was attempted; exit 6 (not every host was attempted)", ["exit 6: an"]),
    ],
)  # fmt: skip
def test_the_last_line_of_a_report_is_explained(line: str, titles: list[str], exits: Exits) -> None:
    parts = exits(0, "explain", line).out.split("\n\n")
    assert len(parts) == len(titles)
    assert all(part.lower().startswith(title.lower()) for part, title in zip(parts, titles, strict=True))


@pytest.mark.parametrize("line", ["ok: [gpu01]", "ok: 3", "pending: x", "OK: 1 host\nsomething else; exit 3 (x)"])
def test_a_line_of_another_program_is_no_result(line: str) -> None:
    assert not vocabulary.find(line)


SAID = (
    (OUTSIDE.format("10.0.0.0/24", "10.1.0.1"), "--master-addr", "ok"),
    (str(transport._refusal("sudo: a password is required")), "give the login user NOPASSWD in sudoers", "exit 4"),
    ("another gpuready run is changing this node (bob@laptop)", "wait until it ends", "exit 1"),
    ("another gpuready run is changing this node", "wait until it ends", "exit 1"),
    (str(NothingChosen([Skipped("a", "no key gpuready", (), "x")])), "add gpuready: {} to the hosts'", "exit 5"),
    ("10.0.0.9:22: the port is open, but no SSH server answered", "is it up, and is the address right?", "exit 4"),
    ("the host key of gpu01 is not known", "gpuready trust -i ... shows and stores it", "exit 4"),
    ("the original of /etc/docker/daemon.json in /var/lib/x: line 3, column 1: expected a key; fix it by hand",
     "its line 'reason:'", "blocked"),
    ("cannot fetch the key https://example.com/gpgkey: curl: (6) Could not resolve host: example.com",
     "let the node reach it", "exit 1"),
    ("the repository cannot be read: E: Failed to fetch", "let the node reach it", "exit 1"),
    (UNDECIDED, "write hardware: {gpus: none}", "skipped"),
    (EARLIER, "without --resume", "ok"),
    (INTERRUPTED.message, "it does only what is left", "exit 130"),
    (FINISHED.message, "it does only what is left", "exit 130"),
    ("apply does not accept --state: it must read the nodes that it changes", "gpuready plan --state FILE", "exit 64"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "fix", "ending"), SAID, ids=[text[:30] for text, *_ in SAID])
@pytest.mark.parametrize("form", ["{}", "error: {}", "gpu01  FAILED\n  {}\n"])
def test_an_error_of_gpuready_is_explained_with_its_own_remedy(
    form: str, text: str, fix: str, ending: str, exits: Exits
) -> None:
    out = " ".join(exits(0, "explain", form.format(text)).out.split())
    assert fix in out and f"(gpuready, {ending})" in out and "cause" in out


@pytest.mark.parametrize("status", ["FAIL", "UNKNOWN", "WARN"])
def test_a_line_of_a_report_is_explained_by_its_check(status: str, exits: Exits) -> None:
    out = exits(0, "explain", f"{status}  gpu.count on lab1: zork").out
    assert out == exits(0, "explain", "gpu.count").out
    assert "not known" in exits(64, "explain", f"{status}  gpu.zork on lab1: zork").err


def test_a_long_text_of_others_with_a_few_words_of_ours_is_not_ours(exits: Exits) -> None:
    assert exits(0, "explain", "the connection timed out").out.startswith("the connection timed out (gpuready, exit 4)")
    assert "not known" in exits(64, "explain", f"zork: {'zigzag ' * 9} the connection timed out").err


def test_the_messages_are_those_of_the_source() -> None:
    """The cause is what the class says of itself; an error that derives from none of gpuready's has no message."""
    known = {message.title: message for message in own.messages()}
    assert len(known) > 250
    assert len({message.pattern for message in own.messages()}) > 250
    asks = known["sudo asks for a password (gpuready, exit 4)"]
    assert asks.cause == " ".join((UnreachableError.__doc__ or "").split()) and "operations/transport.py" in asks.source
    assert not [title for title in known if "prefix length is missing" in title]  # a ValueError
    assert all(message.fix and message.cause and message.pattern for message in known.values())
    assert all(re.search(message.pattern, own.normal(message.title)) for message in known.values())


def test_of_two_messages_for_one_place_the_longer_is_shown() -> None:
    found = own.find("the answer is incomplete: the script was killed on the node")
    assert [message.title.partition(" (")[0] for message in found] == [
        "the answer is incomplete: the script was killed on the node"
    ]


def test_a_message_that_the_table_knows_is_not_ours(monkeypatch: pytest.MonkeyPatch, exits: Exits) -> None:
    monkeypatch.setattr(own, "find", Mock(side_effect=AssertionError))
    assert exits(0, "explain", "unknown or invalid runtime name: nvidia")


@pytest.mark.parametrize(("text", "lines"), [("a\nb\nc\n", "3 lines"), ("zork\n", "1 line"), ("\nfoo\nbar", "2 lines")])
def test_text_from_stdin_without_a_known_message_is_no_error(
    text: str, lines: str, exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(text, monkeypatch)
    said = exits(0, "explain", "-")
    assert (said.out, said.err) == (f"no known message in {lines}\n", "")


def test_a_pipe_that_is_empty_and_hosts_stay_errors(exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, argv, error in (("\n", (), "the text is empty"), ("zork\n", ("-i", "a,"), "not known: 'zork'")):
        pipe(text, monkeypatch)
        assert error in exits(64, "explain", "-", *argv).err


def test_dmesg_in_a_pipe() -> None:
    quiet = "\n".join(f"[{n}.000000] usb 1-1: new device number {n}" for n in range(812))
    done = gpuready("explain", "-", input=quiet)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no known message in 812 lines\n", "")

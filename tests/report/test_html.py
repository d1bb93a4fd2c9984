"""The HTML page: safe whatever a node says, of one file, small for 500 hosts, and readable by anybody."""

import base64
import hashlib
import html
import json
import re
import time
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gpuready.base.errors import ConvergeError
from gpuready.catalogue import BY_ID
from gpuready.cli.output import Target, deliver
from gpuready.result.render import render
from tests.report.html_pages import EVIL, FACTS, compared, fleet, hostile, page
from tests.report.test_fabric_report import run as fabric_run
from tests.report.test_report_runs import CODES, DOCKER, LOADED, LOST, SEVEN, component, host, run, sample
from tests.report.test_results_recorded import RECORDED, recorded

VOID = {"meta", "link", "input", "br", "hr", "img"}


class Reader(HTMLParser):
    """The page's elements, its scripts and styles, and the text that a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.raw:
            self.raw[self.open[-1]].append(data)
        else:
            self.words.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def shape(read: Reader) -> Counter[tuple[str, ...]]:
    """The kinds of elements, each with the names of its attributes."""
    return Counter((tag, *sorted(attrs)) for tag, attrs in read.elements)


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_only_our_own_style_and_script_run(name: str) -> None:
    read = Reader(page(recorded(name)))
    (style,), (script,) = read.raw["style"], read.raw["script"]
    policy = next(m["content"] for m in read.of("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy == (
        f"default-src 'none'; style-src {hashed(style)}; script-src {hashed(script)}; base-uri 'none'; "
        "form-action 'none'"
    )
    names = {name for _, attrs in read.elements for name in attrs}
    assert not {name for name in names if name.startswith("on")} | names & {"style", "src", "action", "srcset"}
    assert not {"img", "iframe", "object", "embed", "link", "base"} & {tag for tag, _ in read.elements}
    assert not re.search(r"url\(|@import", style)


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_links_stay_in_the_page_and_lead_somewhere(name: str) -> None:
    read = Reader(page(recorded(name)))
    ids = [str(attrs["id"]) for _, attrs in read.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {str(each["href"]) for each in read.of("a")} <= {f"#{id}" for id in ids}
    used = {str(attrs[key]) for _, attrs in read.elements for key in ("aria-labelledby", "for") if attrs.get(key)}
    assert {id for value in used for id in value.split()} <= set(ids)


@pytest.mark.fault("html-injection")
@pytest.mark.parametrize("name", ["would-change", "failed", "differs", "fabric", "plan-h200", "pending", "unreachable"])
def test_nothing_from_a_node_becomes_an_element(name: str) -> None:
    text = page(hostile(recorded(name)))
    plain, read = Reader(page(recorded(name))), Reader(text)
    assert set(shape(read)) <= set(shape(plain)) | {("dt",), ("dd",), ("dl",), ("option",)}
    assert read.raw["script"] == plain.raw["script"] and read.raw["style"] == plain.raw["style"]
    assert "alert(1)" in read.text and "\\x1b[2J\\u202e" in read.text
    assert not {char for char in text if char != "\n" and not char.isprintable()}
    assert EVIL.split("\x1b")[0] not in text


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_every_way_out_has_a_page(name: str, code: int) -> None:
    read = Reader(render(sample(name), code, "html"))
    assert f"exit code {code}" in read.text
    for one in sample(name).everyone:
        assert one.name in read.text or "[" in read.text


@pytest.mark.parametrize("name", [*sorted(RECORDED), "fleet"])
def test_who_cannot_see_it_can_read_it(name: str) -> None:
    """What can be held without a browser; test_html_browser.py asks axe."""
    read = Reader(page(fleet(60) if name == "fleet" else recorded(name)))
    assert [each["lang"] for each in read.of("html")] == ["en"] and len(read.of("h1")) == 1
    assert [len(read.of(tag)) for tag in ("header", "main", "footer", "nav")] == [1, 1, 1, 1]
    assert all(each.get("scope") in ("row", "col") for each in read.of("th"))
    assert all(each.get("tabindex") == "0" and each.get("aria-label") for _, each in read.elements
               if "wide" in str(each.get("class")).split())  # fmt: skip
    assert {str(each.get("for")) for each in read.of("label")} == {
        str(each["id"]) for tag in ("input", "select") for each in read.of(tag)
    }


def test_no_status_is_a_colour_only() -> None:
    text = page(fleet(12))
    cells = re.findall(r'<td(?: class="[^"]*")?>(?:(?!</td>).)*</td>', text.partition("</table>")[0])
    assert len(cells) > 20
    assert all(re.search(r"[A-Za-z]{2}", re.sub(r"<[^>]*>", "", cell)) for cell in cells)


def fleet_rows(text: str) -> list[str]:
    """The rows of the fleet as a reader sees them."""
    found = re.findall(r"<tr data-hosts.*?</tr>", text, re.S)
    return [" ".join(re.sub(r"<[^>]*>", " ", row).replace("&nbsp;", " ").split()) for row in found]


def test_the_worst_hosts_come_first() -> None:
    rows, text = fleet_rows(page(fleet(12))), page(fleet(12))
    assert [row.partition(" ")[0] for row in rows[:3]] == ["gpu005", "gpu003", "gpu007"]
    heads = re.findall(r"<summary><h3>([^<]*)</h3>", text)
    assert heads[:4] == ["gpu005", "gpu003", "gpu007", "gpu001"] and len(heads) == 12
    found = fleet(3)
    outcomes = {"ok": "changed", "waits": "pending", "bad": "failed"}
    found["hosts"] = dict(zip(outcomes, found["hosts"].values(), strict=True))
    for name, one in found["hosts"].items():
        one |= {"outcome": outcomes[name], "checks": [], "components": [], "error": None}
    assert [row.split()[0] for row in fleet_rows(page(found))] == ["bad", "waits", "ok"]


def test_the_fleet_has_the_facts_and_leads_to_each_finding() -> None:
    text = page(fleet(8))
    (row,) = [row for row in fleet_rows(text) if row.startswith("gpu004")]
    assert row.endswith("7 NVIDIA H100 80GB HBM3 570.172.08 5.15.0-161-generic Ubuntu 22.04.5 LTS 1.17.8 "
                        "containerd 2.1.4")  # fmt: skip
    (lost,) = [row for row in fleet_rows(text) if row.startswith("gpu003")]
    assert lost == "gpu003 ✗ UNREACHABLE ✗ error: unreachable not read"
    link = re.search(r'<a href="#(\w+)">✗ node.drained: fail</a>', text)
    assert link and f'id="{link[1]}"><p class="text"><strong class="b">✗ fail</strong>' in text
    old = fleet(8)
    for one in old["hosts"].values():
        del one["facts"]
    assert "Toolkit" not in page(old), "an older release wrote no facts"


def test_many_hosts_share_a_row_only_if_they_have_the_same_facts() -> None:
    rows = fleet_rows(page(fleet(300)))
    assert len(rows) < 30
    assert [row for row in rows if row.startswith("15: gpu[005,022,")], rows
    assert any(row.startswith("225 hosts names gpu[001-002,006,") for row in rows), "a long list is folded away"
    assert any("570.172.08" in row and "FAILED" in row and row.startswith("3: ") for row in rows)


def test_a_check_leads_to_its_cause_and_fix() -> None:
    text = page(fleet(8))
    link = re.search(r'<strong><a href="#(\w+)">node.drained</a></strong> on', text)
    assert link
    card = html.unescape(text.partition(f'id="{link[1]}">')[2].partition("</div>")[0])
    check = BY_ID["node.drained"]
    assert all(each in card for each in (check.title, check.cause, check.confirm, check.fix))
    assert "gpuready explain node.drained" in card
    unheard = fleet(8)
    unheard["hosts"]["gpu001"]["checks"][0] |= {"id": "new.check", "status": "fail"}
    assert "<strong>new.check</strong>" in page(unheard), "another release has other checks"


def test_an_outcome_leads_to_its_first_host() -> None:
    text = page(fleet(8))
    chips = dict(re.findall(r'<li><a href="#(h\d+)" data-pick="[^"]*">([^<]*)</a></li>', text))
    assert list(chips.values()) == ["1 FAILED", "1 UNREACHABLE", "6 changed, but CHECKS FAILED"]
    assert re.findall(r'<details class="host" id="(h\d+)"', text)[:3] == list(chips)


def test_timings_are_those_of_the_ten_slowest() -> None:
    text = page(fleet(60)).partition('id="timings"')[2]
    assert text.count('<th scope="row">') == 10 and "The 10 slowest of 60 hosts" in text
    assert text.index("gpu060") < text.index("gpu059") and "gpu050" not in text


def test_a_comparison_is_a_page_of_the_same_kind() -> None:
    after = fleet(12)
    for name in ("gpu001", "gpu002"):
        after["hosts"][name]["facts"] = {**FACTS[0], "driver": "590.44.01"}
        after["hosts"][name]["checks"][3] |= {"status": "fail", "summary": "it is <drained>"}
    after["hosts"]["gpu099"] = after["hosts"].pop("gpu012")
    text = compared(fleet(12), after)
    read_ = Reader(text)
    (style,) = read_.raw["style"]
    policy = next(m["content"] for m in read_.of("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy == f"default-src 'none'; style-src {hashed(style)}; base-uri 'none'; form-action 'none'"
    assert "2 hosts changed, 1 only in before, 1 only in after, 9 unchanged" in read_.text
    assert "driver 580.95.05 590.44.01 gpu[001-002]" in re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))
    assert "it is &lt;drained&gt;" in text and 'class="b">fail</td>' in text
    ids = {str(attrs["id"]) for _, attrs in read_.elements if "id" in attrs}
    assert {str(each["href"]) for each in read_.of("a")} <= {f"#{id}" for id in ids}
    assert '<a href="#c1">node.drained</a>' in text and "Causes and fixes" in read_.text
    assert "no change on 12 hosts" in Reader(compared(fleet(12), fleet(12))).text


@pytest.mark.fault("html-injection")
def test_nothing_from_a_node_becomes_an_element_of_a_comparison() -> None:
    before = fleet(8)
    for one in before["hosts"].values():
        for check in one["checks"][3:5]:
            check |= {"status": "warn", "summary": "other"}
    plain, spoilt = compared(before, fleet(8)), compared(hostile(before), hostile(fleet(8)))
    assert set(shape(Reader(spoilt))) <= set(shape(Reader(plain)))
    assert EVIL.split("\x1b")[0] not in spoilt and "alert(1)" in Reader(spoilt).text
    assert not {char for char in spoilt if char != "\n" and not char.isprintable()}


def test_what_another_check_explains_is_below_that() -> None:
    read = Reader(render(sample("lost"), 3, "html"))
    assert read.text.count("✗ fail gpu.count") == 4 and not re.search(r"✗ fail (libcuda|docker)", read.text)
    below = "libcuda.init: CUDA sees 7 of 8 GPUs; docker.smoke: a container has 7 of 8 GPU device nodes"
    assert f"Causes gpu[01-02]: {below}" in " ".join(read.words) and f"Causes {below}" in " ".join(read.words)


def test_what_hosts_share_is_written_once() -> None:
    found = fleet(12)
    text = page(found)
    for one in found["hosts"].values():
        for check in one["checks"]:
            check["summary"] = re.sub(r" \([0-9]+\)$", "", check["summary"])
    alike = Reader(page(found))
    assert "gpu[001-002,006,008-010,012]" in alike.text and "(7 hosts, alike)" in alike.text
    assert text.count('<details class="host"') == 12 and len(alike.of("details")) < 20


def test_500_hosts_fit_a_few_megabytes_and_seconds() -> None:
    found = fleet(500)
    began = time.process_time()
    text = page(found)
    spent = time.process_time() - began
    read = Reader(text)
    assert len(text.encode()) < 4_000_000
    assert len(read.elements) < 60_000
    assert spent < 120, "4 s on an idle machine"
    assert "gpu499" in text and "exit code 1" in read.text


def test_a_fabric_of_500_hosts_is_a_picture_of_the_pairs_that_were_tested() -> None:
    names = [f"gpu{number:03}" for number in range(500)]
    text = render(fabric_run(None, "n1", "n2", "n3", *names), 3, "html")
    assert text.count("<rect") < 1200 and len(text.encode()) < 1_500_000


def test_it_has_the_picture_of_the_fabric() -> None:
    read = Reader(page(recorded("fabric")))
    (picture,) = [each for each in read.of("svg") if each.get("role") == "img"]
    assert picture["aria-labelledby"] == "fabric" and "n1 is slow" in read.text


def test_a_file_says_when_it_was_made_and_of_what(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    deliver(sample("changed"), [Target("html", path), Target("json", tmp_path / "r.json")])
    found = json.loads((tmp_path / "r.json").read_text())
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["ended"]) and found["source"] == "hosts.yaml"
    assert f'<time datetime="{found["ended"]}">' in path.read_text()
    assert path.read_text() == page(found), "the document is all that a page needs"


def test_notes_and_reasons_are_there() -> None:
    noted = run("verify", host("gpu01", notes=("ignored: ansible_pipelining",)))
    assert "Note: gpu01: ignored: ansible_pipelining" in Reader(render(noted, 0, "html")).text


def test_a_host_that_was_left_alone_may_have_a_difference_in_its_document() -> None:
    found = recorded("differs")
    name, one = next((name, one) for name, one in found["hosts"].items() if one["components"])
    one |= {"outcome": "skipped", "probed": False, "reason": "not a GPU node"}
    (row,) = [row for row in fleet_rows(page(found)) if row.startswith(f"{name} ")]
    assert "skipped" in row and "differs" not in row, "no card shows its difference"


def test_no_control_character_is_left_to_the_writer_of_the_file() -> None:
    """Also where a text stands behind the names of its hosts, as only some of those with the finding have it."""
    hosts = [host("gpu01", checks=(LOADED, LOST, *SEVEN)), host("gpu02", checks=(LOADED, LOST))]
    hosts += [host(f"gpu{n}", "failed", component(DOCKER, error=ConvergeError(f"{n} {EVIL}"))) for n in (3, 4)]
    for one in hosts:
        one.checks = [replace(each, summary=f"{each.summary} {EVIL}") for each in one.checks]
        one.components = [replace(each, notes=(f"{one.name} {EVIL}",)) for each in one.components]
    text = render(run("apply", *hosts), 1, "html")
    plain = Reader(text).text
    assert all(f"{start} \"'><script>alert(1)" in plain for start in ("gpu3: 3", "gpu4: gpu4", "GPUs")), plain
    assert not {char for char in text if char != "\n" and not char.isprintable()}

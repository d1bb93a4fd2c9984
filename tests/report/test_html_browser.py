"""The HTML page in Chromium: axe finds nothing to mend, light and dark, wide and narrow. Part of ./dev test --all."""

import html
import json
import re
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.command import Exits
from tests.lab.host import command
from tests.report.html_pages import FACTS, compared, fleet, page
from tests.report.test_results_recorded import recorded
from tests.verbs.history.kept import fleet as history

pytestmark = pytest.mark.lab

ASK = """
var filter = document.getElementById("filter-text");
function filtered(text) {
  filter.value = text;
  filter.dispatchEvent(new Event("input", {bubbles: true}));
  return document.getElementById("filter-told").textContent;
}
var words = ["driver=570", "driver!=570", "h100 ubuntu", "gpu001, gpu002", "docker=28 gpu00",
             "gpus=7", "containerd=1 kernel=6.8", "containerd=7", "kernel=85", "docker=none", "docker", ""];
var found = filter ? words.map(filtered) : [];
document.querySelectorAll("details").forEach(function (each, number) { each.open = number < 20; });
var cut = Array.from(document.querySelectorAll("body *")).filter(function (each) {
  return each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== "inline";
}).map(function (each) { return each.outerHTML.slice(0, 200); });
axe.run(document, {resultTypes: ["violations"]}).then(function (seen) {
  parent.postMessage(JSON.stringify({
    violations: seen.violations.map(function (v) { return v.id + ": " + v.nodes[0].html; }),
    passes: seen.passes.length,
    wider: document.documentElement.scrollWidth - window.innerWidth,
    width: window.innerWidth,
    cut: cut,
    filtered: found,
    filter: !document.getElementById("filter") || !document.getElementById("filter").hidden,
    dark: matchMedia("(prefers-color-scheme: dark)").matches
  }), "*");
});
"""
TELL = """
window.addEventListener("message", function (message) {
  var told = document.createElement("template");
  told.setAttribute("data-told", message.data);
  document.body.appendChild(told);
});
"""
WIDTHS = (1280, 800, 400)


def asked(text: str, where: Path, *, dark: bool) -> list[Any]:
    """What axe and the browser say of a page, by width, in frames: a window of Chromium has 500 pixels at least.

    Its policy lets no axe in, so the copy here has none.
    """
    axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    open_, replaced = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert replaced == 1
    path, frame = where / "page.html", where / "frame.html"
    path.write_text(open_.replace("</body>", f"<script>{axe}</script><script>{ASK}</script></body>"), "utf-8")
    frames = "".join(f'<iframe src="page.html" width="{width}" height="900"></iframe>' for width in WIDTHS)
    frame.write_text(f"<body><script>{TELL}</script>{frames}")
    argv = [
        command("chromium", "chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        f"--user-data-dir={where / 'profile'}", "--window-size=1400,1000", "--virtual-time-budget=600000",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--dump-dom", frame.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=True)
    told = [json.loads(html.unescape(each)) for each in re.findall(r'data-told="([^"]*)"', done.stdout)]
    assert sorted(each["width"] for each in told) == sorted(WIDTHS), done.stderr[-2000:]
    assert {each["dark"] for each in told} == {dark}
    return told


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["fleet", "fabric", "failed"])
def test_axe_finds_no_violation(name: str, dark: bool, tmp_path: Path) -> None:
    for found in asked(page(fleet(12) if name == "fleet" else recorded(name)), tmp_path, dark=dark):
        assert found["violations"] == [] and found["passes"] > 15
        assert found["filter"] and found["wider"] <= 0
        assert found["cut"] == [], "nothing is cut or needs a scroll to the side"
        if name == "fleet":
            assert found["filtered"] == ["2 of 12 hosts", "9 of 12 hosts", "2 of 12 hosts", "2 of 12 hosts",
                                         "7 of 12 hosts", "2 of 12 hosts", "9 of 12 hosts", "0 of 12 hosts",
                                         "0 of 12 hosts", "2 of 12 hosts", "9 of 12 hosts", "all 12 hosts"]  # fmt: skip


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_violation_in_a_comparison(dark: bool, tmp_path: Path) -> None:
    after = fleet(12)
    after["hosts"]["gpu001"]["facts"] = FACTS[1]
    after["hosts"]["gpu002"]["checks"][3] |= {"status": "fail", "summary": "it is drained"}
    for found in asked(compared(fleet(12), after), tmp_path, dark=dark):
        assert found["violations"] == [] and found["passes"] > 15
        assert found["wider"] <= 0 and found["cut"] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_violation_in_a_history(
    dark: bool, tmp_path: Path, exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, page = tmp_path / "results", tmp_path / "history.html"
    results.mkdir()
    history(results)
    with monkeypatch.context() as own:
        own.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        exits(0, "history", results, "--since", "5000w", "--output", f"html:{page}")
    for found in asked(page.read_text("utf-8"), tmp_path, dark=dark):
        assert found["violations"] == [] and found["passes"] > 15
        assert found["wider"] <= 0


def test_axe_would_find_one(tmp_path: Path) -> None:
    broken = page(recorded("failed")).replace('<html lang="en">', "<html>")
    for found in asked(broken, tmp_path, dark=False):
        assert any(each.startswith("html-has-lang") for each in found["violations"])

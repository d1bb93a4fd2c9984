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
from tests.report.html_pages import fleet, page
from tests.report.test_results_recorded import recorded
from tests.verbs.history.kept import fleet as history

pytestmark = pytest.mark.lab

ASK = """
document.querySelectorAll("details").forEach(function (each, number) { each.open = number < 20; });
axe.run(document, {resultTypes: ["violations"]}).then(function (found) {
  var told = document.createElement("template");
  told.id = "told";
  told.setAttribute("data-told", JSON.stringify({
    violations: found.violations.map(function (v) { return v.id + ": " + v.nodes[0].html; }),
    passes: found.passes.length,
    wider: document.documentElement.scrollWidth - window.innerWidth,
    filter: !document.getElementById("filter") || !document.getElementById("filter").hidden,
    dark: matchMedia("(prefers-color-scheme: dark)").matches
  }));
  document.body.appendChild(told);
});
"""


def asked(text: str, where: Path, *, dark: bool, width: int) -> Any:
    """What axe and the browser say of a page. Its policy lets no axe in, so the copy here has none."""
    axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    open_, replaced = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert replaced == 1
    path = where / "page.html"
    path.write_text(open_.replace("</body>", f"<script>{axe}</script><script>{ASK}</script></body>"), "utf-8")
    argv = [
        command("chromium", "chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        f"--user-data-dir={where / 'profile'}", f"--window-size={width},900", "--virtual-time-budget=600000",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=True)
    told = re.search(r'data-told="([^"]*)"', done.stdout)
    assert told, done.stderr[-2000:]
    return json.loads(html.unescape(told[1]))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 500])
@pytest.mark.parametrize("name", ["fleet", "fabric", "failed"])
def test_axe_finds_no_violation(name: str, width: int, dark: bool, tmp_path: Path) -> None:
    found = asked(page(fleet(12) if name == "fleet" else recorded(name)), tmp_path, dark=dark, width=width)
    assert found["violations"] == [] and found["passes"] > 15
    assert found["dark"] is dark and found["filter"] and found["wider"] <= 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 500])
def test_axe_finds_no_violation_in_a_history(width: int, dark: bool, tmp_path: Path, exits: Exits) -> None:
    results, page = tmp_path / "results", tmp_path / "history.html"
    results.mkdir()
    history(results)
    exits(0, "history", results, "--since", "5000w", "--output", f"html:{page}")
    found = asked(page.read_text("utf-8"), tmp_path, dark=dark, width=width)
    assert found["violations"] == [] and found["passes"] > 15
    assert found["dark"] is dark and found["wider"] <= 0


def test_axe_would_find_one(tmp_path: Path) -> None:
    broken = page(recorded("failed")).replace('<html lang="en">', "<html>")
    found = asked(broken, tmp_path, dark=False, width=1280)
    assert any(each.startswith("html-has-lang") for each in found["violations"])

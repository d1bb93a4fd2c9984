"""./dev bench fleet N: plan, apply and report of N simulated hosts on the workers of Dask, and their memory.

The workers of --workers are threads of the command itself; each chunk of hosts is a process of its own. The HTML is
parsed: all elements end, and hosts are named.
"""

import argparse
import html.parser
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.bench.measure import measured
from tests.bench.simulated import hosts
from tests.lab.host import LabError

#: Seconds that one command may take.
_LIMIT = 3600
_GPUREADY = Path(sys.executable).parent / "gpuready"


class _Page(html.parser.HTMLParser):
    """Counts the elements that are open at the end of a page, and keeps its text."""

    _VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.words = list[str](), list[str]()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open += [tag] * (tag not in self._VOID)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """It has no end of its own."""

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise LabError(f"the page closes {tag}, which is not open")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def main(words: Sequence[str]) -> int:
    """Print a line for each command: outcomes, batches, wall and CPU time, and memory."""
    parser = argparse.ArgumentParser(prog="./dev bench fleet")
    parser.add_argument("hosts", type=int)
    parser.add_argument("--workers", default="2")
    given = parser.parse_args(words)
    print(f"{given.hosts} simulated hosts, {given.workers} workers, {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with hosts(given.hosts, folder) as environment:
            # One process plays all hosts, so few of them shake hands at a time.
            common = ("-i", "hosts.yaml", "--workers", given.workers, "--parallel", "8", "--only", "memlock")
            for verb, more in (
                ("plan", ()),
                ("apply", ("--yes", "--batch", "1,10%", "--state-dir", "state")),
            ):
                outputs = ("--output", "jsonl:result.jsonl", "--output", "html:result.html")
                _say(verb, (_GPUREADY, verb, *common, *more, *outputs), environment, folder, given.hosts)
    return 0


def _in_browser(folder: Path) -> str:
    """Return how long Chromium needs to open the page; nothing without Chromium."""
    browser = shutil.which("chromium")
    if browser is None:
        return ""
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]
    page, began = (folder / "result.html").as_uri(), time.monotonic()
    done = subprocess.run(
        [*words, f"--user-data-dir={folder / 'profile'}", page], capture_output=True, text=True, timeout=600, check=True
    )
    if "converges" not in done.stdout or not done.stdout.rstrip().endswith("</html>"):
        raise LabError(f"Chromium does not show the page: {done.stderr[-2000:]}")
    return f", opened by Chromium in {time.monotonic() - began:.0f} s"


def _say(verb: str, words: Sequence[str | Path], environment: dict[str, str], folder: Path, count: int) -> None:
    cost = measured(words, environment, folder, _LIMIT)
    outcomes = Counter[str]()
    with (folder / "result.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            summary = json.loads(line)  # the last line has no host
            outcomes.update([summary["outcome"]] if "host" in summary else [])
    if sum(outcomes.values()) != count:
        raise LabError(f"{verb}: the result has {outcomes}")
    text = (folder / "result.html").read_text("utf-8")
    page = _Page(text)
    if page.open or not any("converges" in each for each in page.words):
        raise LabError(f"{verb}: the page is not whole: {page.open}")
    print(
        f"{verb}: {dict(outcomes)}, {len(summary['batches'])} batches; {cost.wall:.0f} s, CPU {cost.cpu:.0f} s; "
        f"memory of the controller {cost.first / 1e6:.0f} MB, of a worker's process {cost.largest / 1e6:.0f} MB; "
        f"HTML {len(text) / 1e3:.0f} kB{_in_browser(folder)}",
        flush=True,
    )

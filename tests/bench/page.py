"""./dev bench page FILE ...: put figures of ``./dev bench peers --json FILE`` into docs/explanation/performance.md.

The picture shows the first file.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from tests.bench import peers, report
from tests.lab.host import sh

PAGE = peers.ROOT / "docs/explanation/performance.md"


def main(words: Sequence[str]) -> int:
    """Write the page, its data and its picture. A file may be the page's own data."""
    parser = argparse.ArgumentParser(prog="./dev bench page", description=__doc__.splitlines()[0].partition(": ")[2])
    parser.add_argument("files", type=Path, nargs="+")
    documents = [json.loads(file.read_text("utf-8")) for file in parser.parse_args(words).files]
    documents = [each for one in documents for each in (one if isinstance(one, list) else [one])]
    PAGE.with_suffix(".json").write_text(json.dumps(documents, indent=1) + "\n", "utf-8")
    PAGE.write_text(report.renewed(PAGE.read_text("utf-8"), documents), "utf-8")
    plot = Path(__file__).with_name("plot.py")
    sh(peers.environment() / "bin/python", plot, PAGE.with_suffix(".json"), PAGE.with_suffix(".svg"))
    return 0

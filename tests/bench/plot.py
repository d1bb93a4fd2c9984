"""The picture of docs/explanation/performance.md: wall time of each tool by number of hosts, one panel a round trip.

Run by ``./dev bench peers --write`` in the environment that has matplotlib: ``python plot.py FIGURES.json OUT.svg``.
"""

import json
import sys
from pathlib import Path
from statistics import median

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.report import COLOURS


def main(source: Path, target: Path) -> None:
    """Draw the medians; both axes are logarithmic."""
    runs = json.loads(source.read_text("utf-8"))[0]["runs"]
    delays = sorted({run["delay"] for run in runs})
    matplotlib.rcParams["svg.hashsalt"] = "gpuready"  # the same figures make the same file
    figure, panels = pyplot.subplots(1, len(delays), figsize=(4 * len(delays), 4), sharey=True, squeeze=False)
    for delay, panel in zip(delays, panels[0], strict=True):
        for tool, colour in COLOURS.items():
            counts = sorted({run["hosts"] for run in runs if run["tool"] == tool and run["delay"] == delay})
            walls = [
                median(run["wall"] for run in runs if (run["tool"], run["delay"], run["hosts"]) == (tool, delay, count))
                for count in counts
            ]
            panel.plot(counts, walls, marker="o", label=tool, color=colour)
        panel.set(xscale="log", yscale="log", xlabel="hosts", title=f"round trip {delay} ms")
        panel.set_xticks(sorted({run["hosts"] for run in runs}))
        panel.get_xaxis().set_major_formatter("{x:.0f}")
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("seconds")
    panels[0][0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

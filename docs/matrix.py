"""What ``gpuready compat`` answers for many drivers, GPUs and images: a page of the reference, and the grid of a test.

``python -m docs.matrix`` writes the grid, tests/cuda/matrix.txt. Review its difference after a change of a table.
"""

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuready.base.versions import numbers
from gpuready.compat.answer import answer
from gpuready.compat.fixes import official
from gpuready.cuda import tables
from gpuready.cuda.facts import Host, Image
from gpuready.cuda.predict import Prediction

GRID = Path(__file__).parents[1] / "tests" / "cuda" / "matrix.txt"
DRIVERS = (
    "418.39",
    "440.33.01",
    "450.80.02",
    "470.82.01",
    "510.47.03",
    "525.60.13",
    "535.54.03",
    "550.54.15",
    "570.124.06",
    "570.133.20",
    "580.65.06",
    "580.95.05",
    "595.58.03",
    "610.43.02",
)
#: As nvidia-smi names them, and a short name for the heads of tables.
GPUS = {
    "Tesla K80": "K80",
    "Tesla P100-PCIE-16GB": "P100",
    "Tesla V100-SXM2-32GB": "V100",
    "GeForce RTX 2080 Ti": "2080Ti",
    "Tesla T4": "T4",
    "NVIDIA A100-SXM4-80GB": "A100",
    "NVIDIA A10G": "A10G",
    "NVIDIA RTX A6000": "A6000",
    "NVIDIA GeForce RTX 4090": "4090",
    "NVIDIA L4": "L4",
    "NVIDIA L40S": "L40S",
    "NVIDIA H100 80GB HBM3": "H100",
    "NVIDIA H200": "H200",
    "NVIDIA GH200 480GB": "GH200",
    "NVIDIA GeForce RTX 5090": "5090",
    "NVIDIA B200": "B200",
    "NVIDIA GB200": "GB200",
    "NVIDIA B300 SXM6 AC": "B300",
    "NVIDIA GB300": "GB300",
    "NVIDIA GB10": "GB10",
    "NVIDIA RTX 6000D": "6000D",
    "NVIDIA Thor": "Thor",
}
_OFFICIAL = (
    "10.2.0",
    "11.0.3",
    "11.4.3",
    "11.8.0",
    "12.1.1",
    "12.4.1",
    "12.6.3",
    "12.8.1",
    "12.9.1",
    "13.0.2",
    "13.2.0",
)
_BARE = "an image without a libcuda of its own, CUDA 12.6"
#: A letter of the grid for each verdict.
LETTERS = {
    "NATIVE": "N",
    "MINOR": "M",
    "FORWARD": "F",
    "ERROR_803": "3",
    "ERROR_804": "4",
    "NEEDS_DRIVER": "D",
    "REFUSED": "R",
    "NO_CODE": "0",
}
_HEAD = """# Driver, GPU, image

What [`gpuready compat`](../guides/images.md) answers for {drivers} drivers, {gpus} GPUs and {images} images, in a
container with `--runtime=nvidia` or CDI and a current toolkit. Each image of NVIDIA brings the libcuda of its CUDA.
Rows and columns with the same answers are one. `gpuready compat` knows more GPUs than these.

- The letter after an answer is its [source](#sources).
- `?`: the answer depends on something unknown or undocumented.
- `*`: this CUDA has no machine code for the GPU. Programs with PTX run; others fail with error 209.
"""


@dataclass(frozen=True)
class Cell:
    """One answer: its word, and the file of data that it rests on."""

    word: str
    table: str


def images() -> dict[str, Image]:
    """The images by their names."""
    found = {f"nvidia/cuda:{cuda}": official(numbers(cuda)) for cuda in _OFFICIAL}
    return found | {_BARE: Image(numbers("12.6.3"))}


@functools.cache
def cells() -> dict[str, list[list[Cell]]]:
    """For each image, the answers by driver, then by GPU."""
    hosts = [[Host(numbers(driver), tables.gpu(gpu)) for gpu in GPUS] for driver in DRIVERS]
    return {name: [[_cell(host, image) for host in row] for row in hosts] for name, image in images().items()}


def _cell(host: Host, image: Image) -> Cell:
    found = answer([host], image)
    assert isinstance(found.prediction, Prediction)
    by_ptx = found.runs and image.cuda[:2] < host.gpu.oldest_toolkit
    return Cell(found.word + "*" * by_ptx, found.prediction.table)


def grid() -> str:
    """All answers as letters, with the marks of the page."""
    lines = ["# python -m docs.matrix writes this file. " + ", ".join(f"{v}: {k}" for k, v in LETTERS.items())]
    for name, rows in cells().items():
        lines += ["", name, " ".join([" " * 10, *(f"{short:6}" for short in GPUS.values())]).rstrip()]
        for driver, row in zip(DRIVERS, rows, strict=True):
            letters = [LETTERS[cell.word.rstrip("?*")] + cell.word[len(cell.word.rstrip("?*")) :] for cell in row]
            lines.append(" ".join([f"{driver:10}", *(f"{letter:6}" for letter in letters)]).rstrip())
    return "\n".join([*lines, ""])


def page() -> str:
    """The page of the reference."""
    lines = [_HEAD.format(drivers=len(DRIVERS), gpus=len(GPUS), images=len(images()))]
    marks = {path.stem: chr(ord("a") + n) for n, path in enumerate(sorted(tables.DATA.glob("*.yaml")))}
    for name, rows in cells().items():
        lines += [f"## {name}", "", *_table(rows, marks), ""]
    lines += ["## Sources", "", "| | table | date | source |", "| --- | --- | --- | --- |"]
    for name, mark in marks.items():
        date, source = tables.dated(name)
        lines.append(f"| {mark} | {name}.yaml | {date} | {source} |")
    return "\n".join([*lines, ""])


def _table(rows: list[list[Cell]], marks: dict[str, str]) -> list[str]:
    """The table of one image: a column for GPUs that agree, a row for consecutive drivers that do."""
    columns: dict[tuple[Cell, ...], list[str]] = {}
    for short, column in zip(GPUS.values(), zip(*rows, strict=True), strict=True):
        columns.setdefault(column, []).append(short)
    kept = [[column[n] for column in columns] for n in range(len(rows))]
    lines = [["driver", *(", ".join(names) for names in columns.values())], ["---"] * (len(columns) + 1)]
    for same, group in itertools.groupby(zip(DRIVERS, kept, strict=True), key=lambda pair: pair[1]):
        names = [driver for driver, _ in group]
        words = (cell.word.replace("*", r"\*") for cell in same)
        lines.append([_span(names), *(f"{w} <sup>{marks[c.table]}</sup>" for w, c in zip(words, same, strict=True))])
    return ["| " + " | ".join(line) + " |" for line in lines]


def _span(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


if __name__ == "__main__":
    GRID.write_text(grid(), "utf-8")
    print(GRID.relative_to(GRID.parents[2]))

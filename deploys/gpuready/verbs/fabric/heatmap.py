"""The fabric's matrices as one SVG picture: a square for each test, hosts as rows (from) and columns (to).

Green is at its limit or better, through yellow to red at half of it; where a test has no limit its median stands in for
it, which the legend says. A failed cell has a cross, one without proof a question mark, so that nothing depends on
colour alone. Written by hand: SVG 1.1, no library. Each cell's title is what a browser shows under the pointer.
"""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from math import ceil, floor, log10
from statistics import median

from gpuready.fabric.collective import Measured, size_text
from gpuready.fabric.commands import TESTS
from gpuready.fabric.verdict import Finding
from gpuready.result.xml import document
from gpuready.verbs.fabric.matrix import Matrix, shown

_CELL, _SMALL, _GAP, _TITLE = 44, 10, 40, 54
#: Of more hosts only the figures' colours are shown, in smaller squares.
_LABELLED = 24
_GRID, _NOTHING, _GREY, _RED = "#d0d0d0", "#f6f6f6", "#bdbdbd", "#d7301f"
_LETTER = 6.6
#: The colour and the dashes of each line.
_LINES = (("#1b6ca8", "none"), ("#c04a00", "8 3"), ("#2e7d32", "2 3"), ("#7b1fa2", "10 3 2 3"))


def svg(made: Sequence[Matrix], hosts: Sequence[str]) -> str:
    """The picture; without a matrix it says so."""
    cell = _CELL if len(hosts) <= _LABELLED else _SMALL
    left = 16 + int(_LETTER * max(map(len, hosts), default=0)) if cell == _CELL else 16
    words = [text for each in made for text in (_title(each), _legend(each, _middle(each)))]
    block = max(left + cell * len(hosts), int(_LETTER * max(map(len, words), default=0))) + _GAP
    top = 30 + (left if cell == _CELL else 0) + _TITLE
    height = top + cell * len(hosts) + _GAP
    width, total = max(block, 300), height * max(len(made), 1)
    root = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", width=str(width), height=str(total))
    root.set("viewBox", f"0 0 {width} {total}")
    root.set("font-family", "sans-serif")
    root.set("font-size", "12")
    _add(root, "rect", width="100%", height="100%", fill="#ffffff")
    if not made:
        _text(root, 16, 24, "gpuready fabric: nothing was tested")
    for number, matrix in enumerate(made):
        group = _add(root, "g", transform=f"translate(16,{number * height + 8})")
        _square(group, matrix, cell, left, top)
    return document(root)


def curves(figures: Sequence[Measured]) -> str:
    """The bus bandwidth of each collective by size: both axes are logarithmic."""
    sizes = sorted({each.size for each in figures})
    rates = [each.busbw for each in figures if each.busbw > 0] or [1.0]
    low, high = floor(log10(min(rates))), ceil(log10(max(rates)) + 1e-9)
    width, height, left, top = 560, 280, 70, 40

    def across(size: int) -> float:
        return left + width * (log10(size / sizes[0]) / (log10(sizes[-1] / sizes[0]) or 1))

    def up(rate: float) -> float:
        return top + height * (1 - (log10(max(rate, 10**low)) - low) / max(high - low, 1))

    total = (left + width + 150, top + height + 50)
    root = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", width=str(total[0]), height=str(total[1]))
    root.set("viewBox", f"0 0 {total[0]} {total[1]}")
    root.attrib |= {"font-family": "sans-serif", "font-size": "12"}
    _add(root, "rect", width="100%", height="100%", fill="#ffffff")
    title = f"bus bandwidth by size, GB/s, {figures[0].ranks} ranks"
    _text(root, 16, 20, title).set("font-weight", "bold")
    for power in range(low, high + 1):
        y = f"{up(10**power):g}"
        _add(root, "line", x1=str(left), x2=str(left + width), y1=y, y2=y, stroke=_GRID)
        _text(root, left - 8, up(10**power) + 4, f"{10.0**power:g}").set("text-anchor", "end")
    for size in sizes:
        _text(root, across(size), top + height + 20, size_text(size)).set("text-anchor", "middle")
    for number, name in enumerate(dict.fromkeys(each.collective for each in figures)):
        line = sorted((each for each in figures if each.collective == name), key=lambda each: each.size)
        colour, dash = _LINES[number % len(_LINES)]
        points = " ".join(f"{across(each.size):g},{up(each.busbw):g}" for each in line)
        drawn = {"points": points, "fill": "none", "stroke": colour, "stroke-width": "2", "stroke-dasharray": dash}
        _add(root, "polyline", **drawn)
        for each in line:
            dot = _add(root, "circle", cx=f"{across(each.size):g}", cy=f"{up(each.busbw):g}", r="4", fill=colour)
            _add(dot, "title").text = f"{name} of {size_text(each.size)}: {each.busbw:.4g} GB/s"
        y = str(top + 10 + 22 * number)
        x = left + width + 14
        drawn = {"x1": str(x), "x2": str(x + 26), "y1": y, "y2": y}
        _add(root, "line", **drawn, stroke=colour, **{"stroke-width": "2", "stroke-dasharray": dash})
        _text(root, x + 32, float(y) + 4, name.replace("_", "-"))
    return document(root)


def _square(group: ET.Element, matrix: Matrix, cell: int, left: int, top: int) -> None:
    middle = _middle(matrix)
    _text(group, 0, 16, _title(matrix)).set("font-weight", "bold")
    _text(group, 0, 34, _legend(matrix, middle)).set("fill", "#555555")
    names = list(matrix.hosts)
    for i, name in enumerate(names if cell == _CELL else ()):
        _text(group, left - 6, top + i * cell + cell / 2 + 4, name).set("text-anchor", "end")
        x, y = left + i * cell + cell / 2 + 4, top - 6
        _text(group, x, y, name).set("transform", f"rotate(-90 {x:g} {y:g})")
    if cell == _SMALL:  # of many hosts few pairs are tested: one square stands for all that were not
        side = str(cell * len(names))
        _add(group, "rect", x=str(left), y=str(top), width=side, height=side, fill=_NOTHING, stroke=_GRID)
    for i, row in enumerate(names):
        for j, column in enumerate(names):
            found = matrix.cells.get((row, column))
            if found is not None or cell == _CELL:
                _cell(group, left + j * cell, top + i * cell, cell, found, middle, own=i == j)


def _cell(
    group: ET.Element, x: int, y: int, cell: int, found: Finding | None, middle: float | None, *, own: bool
) -> None:
    fill = "#e4e4e4" if own else _NOTHING if found is None else _colour(found, middle)
    square = _add(group, "rect", x=str(x), y=str(y), width=str(cell), height=str(cell), fill=fill, stroke=_GRID)
    if found is None:
        return
    _add(square, "title").text = f"{found}: {found.summary}"
    if found.status == "fail":
        for a, b in ((2, cell - 2), (cell - 2, 2)):
            _add(group, "line", x1=str(x + a), y1=str(y + 2), x2=str(x + b), y2=str(y + cell - 2), stroke="#7f0000")
    if cell == _CELL or found.status == "unknown":
        text = _text(group, x + cell / 2, y + cell / 2 + 4, shown(found))
        text.set("text-anchor", "middle")
        text.set("font-size", "11" if cell == _CELL else "8")
        if found.status == "fail":  # readable above the cross
            text.attrib |= {"stroke": "#ffffff", "stroke-width": "3", "paint-order": "stroke"}


def _middle(matrix: Matrix) -> float | None:
    """What stands in for a limit where there is none."""
    return median(matrix.figures) if matrix.figures else None


def _colour(found: Finding, middle: float | None) -> str:
    if found.status in ("skip", "unknown"):
        return _GREY
    wanted = found.limit if found.limit is not None else middle
    if found.value is None or not wanted:
        return _RED
    reached = found.value / wanted if TESTS[found.test].higher_is_better else wanted / max(found.value, 1e-9)
    share = min(max((reached - 0.5) * 2, 0.0), 0.4 if found.status == "fail" else 1.0)
    stops = ((215, 48, 31), (254, 217, 118), (65, 171, 93))
    a, b = (stops[0], stops[1]) if share < 0.5 else (stops[1], stops[2])
    part = share * 2 % 1 if share < 1 else 1.0
    return "#" + "".join(f"{round(p + (q - p) * part):02x}" for p, q in zip(a, b, strict=True))


def _title(matrix: Matrix) -> str:
    test = TESTS[matrix.test]
    return f"{test.title}, {test.unit}"


def _legend(matrix: Matrix, middle: float | None) -> str:
    words = ["row: from, column: to"]
    limits = [each.limit for each in matrix.cells.values() if each.limit is not None]
    if limits:
        least, most = min(limits), max(limits)
        words.append(f"green at the limit {least:.4g}" + (f" to {most:.4g}" if most > least else ""))
    elif middle is not None and matrix.test != "rping":
        words.append(f"no limit: green at the median {middle:.4g}")
    total = len(matrix.cells)
    bad = sum(each.status in ("fail", "unknown") for each in matrix.cells.values())
    words.append(f"{bad or total} of {total} {'failed or unproven (x, ?)' if bad else 'passed'}")
    return "; ".join(words)


def _add(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    return ET.SubElement(parent, tag, attributes)


def _text(parent: ET.Element, x: float, y: float, text: str) -> ET.Element:
    made = _add(parent, "text", x=f"{x:g}", y=f"{y:g}")
    made.text = text
    return made

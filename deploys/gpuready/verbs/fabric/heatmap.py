"""The fabric's matrices as one SVG picture: a square for each test, hosts as rows (from) and columns (to).

Green is at its limit or better, through yellow to red at half of it; where a test has no limit its median stands in for
it, which the legend says. A failed cell has a cross, one without proof a question mark, so that nothing depends on
colour alone. Written by hand: SVG 1.1, no library. Each cell's title is what a browser shows under the pointer.
"""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from statistics import median

from gpuready.fabric.commands import TESTS
from gpuready.fabric.verdict import Finding
from gpuready.result.xml import document
from gpuready.verbs.fabric.matrix import Matrix, shown

_CELL, _SMALL, _GAP, _TITLE = 44, 10, 40, 54
#: Of more hosts only the figures' colours are shown, in smaller squares.
_LABELLED = 24
_GRID, _NOTHING, _GREY, _RED = "#d0d0d0", "#f6f6f6", "#bdbdbd", "#d7301f"
_LETTER = 6.6


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

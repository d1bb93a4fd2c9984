"""CHANGELOG.md keeps its form: known sections in one order, one short line for each change, and this version in it."""

import re
from pathlib import Path

from gpuready import __version__

TEXT = (Path(__file__).parents[1] / "CHANGELOG.md").read_text("utf-8")
SECTIONS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
RELEASES = [re.split(r"^### ", part, flags=re.M) for part in re.split(r"^## ", TEXT, flags=re.M)[1:]]


def test_each_release_has_known_sections_in_order() -> None:
    for heading, *sections in RELEASES:
        names = [section.splitlines()[0] for section in sections]
        assert names == sorted(set(names), key=SECTIONS.index), heading.splitlines()[0]
        assert "\n- " not in heading, "an entry belongs to a section"


def test_a_section_holds_one_short_line_for_each_change() -> None:
    for _, *sections in RELEASES:
        for section in sections:
            entries = [line for line in section.splitlines()[1:] if line and not re.match(r"\[.+\]: ", line)]
            assert entries and [line for line in entries if not re.fullmatch(r"- .{,118}", line)] == []


def test_this_version_is_unreleased_or_the_newest_release() -> None:
    headings = [release[0].splitlines()[0] for release in RELEASES]
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading) for heading in headings[1:])
    released = [heading.split()[0] for heading in headings[1:2]]
    assert f"This becomes {__version__}," in RELEASES[0][0] or released == [f"[{__version__}]"]


def test_each_heading_has_its_link() -> None:
    names = [release[0].split("]")[0] + "]" for release in RELEASES]
    assert [name for name in names if not re.search(rf"^{re.escape(name)}: \S+$", TEXT, re.M)] == []

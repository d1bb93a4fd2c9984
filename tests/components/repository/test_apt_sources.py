"""apt's source files, both formats: whose entries go, and that nothing else of the file changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.components.repository.apt_sources import is_bare, names_repository, stanzas, without_repository

URL = "https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH)"
MIRROR = "http://mirror.example:8080/nct/deb"
LIST, SOURCES = "/etc/apt/sources.list.d/x.list", "/etc/apt/sources.list.d/x.sources"


@pytest.mark.parametrize(
    ("text", "url", "named"),
    [
        ("deb https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /", URL, True),
        ("deb https://nvidia.github.io/libnvidia-container/stable/deb/amd64 /", URL, True),
        ("deb [signed-by=/k] https://nvidia.github.io/libnvidia-container/stable/deb /", URL, True),
        ("deb https://nvidia.github.io/libnvidia-container/experimental/deb/amd64 /", URL, True),
        ("deb https://nvidia.github.io/nvidia-docker/ubuntu20.04/amd64 /", MIRROR, True),
        ("deb https://nvidia.github.io/nvidia-container-runtime /", MIRROR, True),
        (f"deb {MIRROR} /", MIRROR, True),
        (f"deb {MIRROR}/ /", MIRROR, True),
        (f"deb {MIRROR} /", f"{MIRROR}/", True),
        ("deb http://m.example/amd64/nct /", "http://m.example/$(ARCH)/nct", True),
        ("deb http://mirror.example.org/debian trixie main", URL, False),
        ("deb https://nvidia.github.io/libnvidia-container-doc/deb /", URL, False),
        ("deb http://mirror.example:8080/nct/debug /", MIRROR, False),
        ("deb http://mirror.example:8080/nct/deb/other /", MIRROR, False),
        ("deb http://mirror.example/nct/deb /", MIRROR, False),
        ("deb http://mirrorXexample:8080/nct/deb /", MIRROR, False),
        ("deb cdrom:[Debian]/ trixie main", MIRROR, False),
        ("deb http://mirror.example/debian trixie main", "http://mirror.example", False),
        ("deb http://m.example/a/b/nct /", "http://m.example/$(ARCH)/nct", False),
    ],
)
def test_whether_a_line_names_the_repository(text: str, url: str, named: bool) -> None:
    assert names_repository(text, url) is named


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"deb {MIRROR} /\n", ""),
        (f"deb-src {MIRROR} /\n", ""),
        (f"  deb\t{MIRROR} /\n", ""),
        (f"a\n\ndeb {MIRROR} /\nb", "a\n\nb"),
        (f"# head\ndeb {MIRROR} / # ours\n\n# tail\n", "# head\n\n# tail\n"),
        (f"deb {MIRROR} /\ndeb {MIRROR} / main\nkept\n", "kept\n"),
        ("", None),
        (f"# deb {MIRROR} /\n", None),
        (f"deb http://other.example / # not {MIRROR}\n", None),
        (f"rpm {MIRROR} /\n", None),
        (f"# a comment with a form feed \x0c deb {MIRROR} /\n", None),
        (f"# and with a next-line character \x85deb {MIRROR} /\n", None),
    ],
)
def test_lines_that_go_or_all_stay(text: str, left: str | None) -> None:
    assert without_repository(LIST, text, MIRROR) == left


OURS = f"Types: deb\nURIs: {MIRROR}\nSuites: /\n"
OTHER = "Types: deb\nURIs: http://mirror.example.org/debian\nSuites: trixie\nComponents: main\n"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (OURS, ""),
        (f"{OURS}\n{OTHER}", OTHER),
        (f"{OTHER}\n{OURS}", OTHER),
        (f"{OTHER}\n{OURS}Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBFix\n", OTHER),
        (f"{OTHER}\n{OURS}\n{OTHER}", f"{OTHER}\n{OTHER}"),
        (f"{OTHER}\n \n{OURS}", OTHER),
        (f"# head\n\n{OURS}", "# head\n"),
        (OURS.replace("\n", "\r\n") + "\r\n" + OTHER.replace("\n", "\r\n"), OTHER.replace("\n", "\r\n")),
        (f"enabled: Yes\n{OURS}", ""),
        (f"Types: deb\nURIs:\n {MIRROR}/\nSuites: /\n", ""),
    ],
)
def test_stanzas_that_go(text: str, left: str) -> None:
    found = without_repository(SOURCES, text, MIRROR)
    assert found is not None
    assert found.strip() == left.strip()
    assert not left or found.endswith("\n")


@pytest.mark.parametrize(
    ("uris", "left"),
    [
        (f"URIs: {MIRROR} http://o.example/deb", "URIs: http://o.example/deb"),
        (f"URIs: http://o.example/deb {MIRROR}/", "URIs: http://o.example/deb"),
        (f"URIs:\n http://o.example/deb\n {MIRROR}", "URIs:\n http://o.example/deb"),
        (f"URIs:\n {MIRROR}\n http://o.example/deb", "URIs:\n http://o.example/deb"),
    ],
)
def test_a_stanza_of_several_repositories_loses_one(uris: str, left: str) -> None:
    text = f"{OTHER}\nTypes: deb\n{uris}\nSuites: /\n"
    assert without_repository(SOURCES, text, MIRROR) == f"{OTHER}\nTypes: deb\n{left}\nSuites: /\n"


@pytest.mark.parametrize(
    "text",
    [f"{OURS}Enabled: {off}\n" for off in ("no", "No", "false", "off", "disable", "without")]
    + ["".join(f"#{line}\n" for line in OURS.splitlines())],
)
def test_a_stanza_that_is_switched_off_or_a_comment_stays(text: str) -> None:
    assert without_repository(SOURCES, text, MIRROR) is None


def test_fields_of_stanzas() -> None:
    text = "\n\n# only a comment\n\nTYPES: deb\n# Suites: /\nuris: a:b\n c\nSigned-By:\n .\n K\nno colon\n\n\n" + OTHER
    assert stanzas(text) == [
        {"Types": "deb", "Uris": "a:b c", "Signed-By": ". K"},
        {"Types": "deb", "Uris": "http://mirror.example.org/debian", "Suites": "trixie", "Components": "main"},
    ]


@pytest.mark.parametrize(("text", "bare"), [("", True), ("\n # x\n#y", True), ("a", False), ("# x\n\na\n", False)])
def test_bare(text: str, bare: bool) -> None:
    assert is_bare(text) is bare


_ENTRIES = st.sampled_from([f"deb {MIRROR} /", f"# deb {MIRROR} /", "deb http://o.example x y", OURS, OTHER, "", "\r"])


@given(st.sampled_from([LIST, SOURCES]), st.lists(_ENTRIES | st.text(max_size=10), max_size=8).map("\n".join))
def test_what_went_is_gone_and_nothing_is_made_up(path: str, text: str) -> None:
    left = without_repository(path, text, MIRROR)
    if left is None:
        return
    assert without_repository(path, left, MIRROR) is None
    assert len(left) < len(text)
    remaining = iter(text.split("\n"))
    assert all(any(line == other for other in remaining) for line in left.split("\n") if line.strip())

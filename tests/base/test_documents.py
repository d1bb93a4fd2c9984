"""Small documents that stand for large ones: none of them takes memory or time beyond its own size."""

import ast
import base64
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuready.base import documents
from gpuready.base.documents import DocumentError, read_json, read_toml, read_xml, read_yaml
from gpuready.base.errors import SpecError
from gpuready.components.cdi.spec_files import read
from gpuready.inventory.yaml_positions import load_text
from tests.command import python

PACKAGE = Path(documents.__file__).parents[1]
CDI = 'kind: nvidia.com/gpu\ndevices:\n- name: "0"\n  containerEdits:\n    mounts:\n    - hostPath: /x\n'


@pytest.mark.fault("D3")
@pytest.mark.fault("merge-bomb")
def test_a_merge_bomb_is_refused_at_its_line() -> None:
    """Each line of 52 bytes stands for nine times as much as the one above it."""
    rows = [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], k{n}: v}}\n" for n in range(1, 40)]
    began = time.process_time()
    spec = read("/etc/cdi/bomb.yaml", CDI + "a0: &a0 {k: v}\n" + "".join(rows))
    assert spec.error == "line 7: anchors and aliases are not accepted"
    assert time.process_time() - began < 1


@pytest.mark.fault("merge-bomb")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: &x 1\n", "line 1: anchors"),
        ("a: 1\nb: *x\n", "line 2: anchors"),
        ("a: {<<: {b: 1}}\n", "line 1: the merge key"),
        ("a: 1\n---\nb: 2\n", "line 2: a second document"),
        ("[" * 100, "more than 64 levels"),
        ("[" * 900_000, "more than 64 levels"),
        ("- " * 400_000, "more than 64 levels"),
        ("? " * 400_000, "more than 64 levels"),
        ("a: " * 100_000, "line 1: "),
        ("{[a]: b}", "a key is"),
        ("x" * 1_000_001, "1000001 characters"),
        ("\x00", "not YAML"),
        ("a: \udc80", "not YAML"),
    ],
)
def test_yaml_that_is_refused(text: str, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        read_yaml(text)


def test_yaml_that_is_read() -> None:
    assert read_yaml("a: [0x10, yes, ~, '~']\nb:\n- {c: }\n") == {"a": ["0x10", "yes", None, "~"], "b": [{"c": None}]}
    assert read_yaml("") is None
    spec = read("/etc/cdi/x.yaml", CDI)
    assert (spec.error, spec.kind, spec.devices, spec.paths) == ("", "nvidia.com/gpu", ("0",), ("/x",))


@pytest.mark.parametrize(
    ("parse", "text", "why"),
    [
        (read_json, "[" * 200_000, "nested too deeply"),
        (read_json, "[]," * 400_000, "at most 1000000"),
        (read_toml, "a=[" + "1," * 5_000 + "]", "about 500[0-9] values"),
        (read_toml, "".join(f"[a.b{n}]\n" for n in range(5_000)), "values"),
        (read_toml, "#" * 300_000, "at most 250000"),
        (read_toml, "a = " + "[" * 2_000, "deep|Unexpected"),
        (read_xml, '<!DOCTYPE a [<!ENTITY x "xxxx">]><a>&x;</a>', "entities"),
        (read_xml, "<a>" * 100_000, "not XML"),
        (read_xml, "<a/>" * 600_000, "at most 2000000"),
    ],
)
def test_documents_that_are_refused(parse: Callable[[str], object], text: str, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        parse(text)


@pytest.mark.fault("D3")
def test_a_sexagesimal_number_of_an_inventory_is_refused() -> None:
    """YAML 1.1 reads 1:1:1 in base 60, and PyYAML multiplies once for each digit."""
    began = time.process_time()
    with pytest.raises(SpecError, match="not a valid int"):
        load_text("a: 1" + ":1" * 100_000, "hosts.yaml")
    assert time.process_time() - began < 5


SPARSE = """
import base64, resource, struct, sys
resource.setrlimit(resource.RLIMIT_AS, (BOUND, BOUND))
from gpuready.model.parse import ProbeError, parse
def header(name, kind, size, real):
    block = bytearray(512)
    block[:100] = name.ljust(100, b"\\0")
    block[100:108], block[108:116], block[116:124] = b"0000644\\0", b"0000000\\0", b"0000000\\0"
    block[124:136], block[136:148] = b"%011o\\0" % size, b"00000000000\\0"
    block[156:157], block[257:265] = kind, b"ustar  \\0"
    if kind == b"S":
        block[386:398], block[398:410] = b"%011o\\0" % (real - 1), b"%011o\\0" % 1
        block[483:495] = b"%011o\\0" % real
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\\0 " % sum(block)
    return bytes(block)
members = b"".join(header(b"etc/%d" % n, b"S", 1, 400_000) + b"x".ljust(512, b"\\0") for n in range(1000))
text = header(b"P/values.text", b"0", 9, 0) + b"kernel=6\\n".ljust(512, b"\\0")
data = text + members + bytes(1024)
try:
    parse(["tar " + base64.b64encode(data).decode(), "end 1"])
except ProbeError as e:
    print(e)
"""


@pytest.mark.fault("D3")
@pytest.mark.fault("summed-sparse-tar")
def test_a_sparse_tar_is_not_inflated() -> None:
    """A megabyte that stands for 400 MB: refused, below 300 MB of address space."""
    done = python("-c", SPARSE.replace("BOUND", str(300 << 20)))
    assert done.stdout == "the node's files are damaged ('etc/0' is of type b'S')\n", done.stderr


@pytest.mark.fault("D3")
def test_an_answer_of_too_many_members_lines_or_characters_is_refused() -> None:
    from gpuready.base.records import ProbeError, Records
    from tests.model.test_parse import header

    many = header(b"etc/x", b"0") * 20_001 + bytes(1024)
    for lines, why in (
        ([f"tar {base64.b64encode(many).decode()}", "end 1"], "more than 20000 members"),
        (["run a 0 AAAA"] * 10_001, "10001 lines"),
        (["x" * 16_000_001], "16000001 characters"),
    ):
        with pytest.raises(ProbeError, match=why):
            Records(lines)


#: Data of our own, files that the operator names, and the inventory, whose reader has bounds of its own.
READERS = {
    "api.py",  # the result of a command of ours
    "pytest.py",  # the same, which xdist's controller sends
    "base/documents.py",
    "run/cluster.py",  # what a worker sends: Dask itself unpickles it
    "run/process.py",  # what the controller sends
    "inventory/yaml_positions.py",
    "cli/documents.py",
    "components/driver/recipes.py",
    "gpu/thresholds.py",
    "cuda/tables.py",
}
PARSERS = {"json.loads", "json.load", "yaml.load", "yaml.safe_load", "yaml.parse", "tomlkit.parse", "tomlkit.load",
           "tomllib.loads", "tomllib.load", "ET.fromstring", "ET.parse", "ET.XML", "pickle.loads"}  # fmt: skip


def test_only_the_bounded_readers_parse() -> None:
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert not called & PARSERS or str(path.relative_to(PACKAGE)) in READERS, (path, called & PARSERS)

"""Images read without running them: layers, links, notes; and archives that somebody made to do harm."""

import contextlib
import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.compat import layers as reader
from gpuready.compat.archive import read_archive
from gpuready.compat.layers import ImageError
from gpuready.compat.note import NoteError, note_of, read_note
from gpuready.cuda.facts import CompatLib, Image, ImageFacts
from tests.compat.imagefiles import NOTE, PACK, File, docker_save, layer, library, oci, write_directory

ENV = {"CUDA_VERSION": "12.9.1", "NVIDIA_REQUIRE_CUDA": "cuda>=12.9", "NV_CUDA_COMPAT_PACKAGE": "cuda-compat-12-9"}
DIRECTORY = "usr/local/cuda-12.9/compat"
LIBRARY = f"{DIRECTORY}/libcuda.so.575.57.08"
BASE: dict[str, File] = {
    "usr": None,
    "usr/local": None,
    "usr/local/cuda": "cuda-12.9",
    LIBRARY: library(),
    f"{DIRECTORY}/libcuda.so.1": "libcuda.so.575.57.08",
    "usr/local/cuda-12.9/lib64/stubs/libcuda.so": b"no library",
}
COMPAT = CompatLib((575, 57, 8), read_note(NOTE))
WANTED = ImageFacts(Image((12, 9, 1), (COMPAT,), requires=("cuda>=12.9",)))


def facts(tmp_path: Path, *layers: dict[str, File], env: dict[str, str] = ENV) -> ImageFacts:
    path = tmp_path / "image.tar"
    path.write_bytes(layer(docker_save(env, map(layer, layers))))
    return read_archive(path)


def image(tmp_path: Path, *layers: dict[str, File], env: dict[str, str] = ENV) -> Image:
    found = facts(tmp_path, *layers, env=env).image
    assert found is not None
    return found


@pytest.mark.parametrize("packed", PACK)
@pytest.mark.parametrize("form", ["docker", "oci"])
def test_both_forms_and_every_compression_of_layers(form: str, packed: str, tmp_path: Path) -> None:
    lower: dict[str, File] = {"etc/os-release": b"NAME=Debian\n"}
    data = [PACK[packed](layer(lower)), PACK[packed](layer(BASE))]
    files = docker_save(ENV, data) if form == "docker" else oci(ENV, data)
    (tmp_path / "image.tar").write_bytes(layer(files))
    assert read_archive(tmp_path / "image.tar") == WANTED
    assert read_archive(write_directory(tmp_path / "directory", files)) == WANTED


@pytest.mark.parametrize("packed", PACK)
def test_a_packed_archive(packed: str, tmp_path: Path) -> None:
    path = tmp_path / "image.tar.packed"
    path.write_bytes(PACK[packed](layer(docker_save(ENV, [layer(BASE)]))))
    assert read_archive(path) == WANTED


NEWER, LIKEWISE = f"{DIRECTORY}/libcuda.so.580.65.06", "compat/libcuda.so.580.65.06"
OPAQUE, GONE = f"{DIRECTORY}/.wh..wh..opq", "usr/local/cuda-12.9/.wh.compat"
#: The layers above BASE, and the versions that are found then.
UPPER: dict[str, tuple[list[dict[str, File]], list[str]]] = {
    "nothing": ([{}], ["575.57.08"]),
    "the library is taken away": ([{f"{DIRECTORY}/.wh.libcuda.so.575.57.08": b""}], []),
    "its directory is taken away": ([{GONE: b""}], []),
    "all of CUDA is taken away": ([{"usr/local/.wh.cuda-12.9": b""}], []),
    "usr is emptied": ([{"usr/.wh..wh..opq": b""}], []),
    "emptied and filled anew": ([{OPAQUE: b"", NEWER: library()}], ["580.65.06"]),
    "filled before it is emptied, in one layer": ([{NEWER: library(), OPAQUE: b""}], ["580.65.06"]),
    "taken away and brought back": ([{GONE: b""}, {LIBRARY: library()}], ["575.57.08"]),
    "another one beside it": ([{f"{DIRECTORY}/libcuda.so.570.26": library(None)}], ["570.26", "575.57.08"]),
    "the link goes to another CUDA": (
        [{"usr/local/cuda": "cuda-13.0", f"usr/local/cuda-13.0/{LIKEWISE}": library(None)}], ["580.65.06"],
    ),
    "the link is a directory now": ([{"usr/local/cuda": None, f"usr/local/cuda/{LIKEWISE}": library(None)}],
         ["580.65.06"]),
    "the link is gone": ([{"usr/local/.wh.cuda": b""}], []),
    "the link is a file": ([{"usr/local/cuda": b"x"}], []),
    "by /etc/alternatives, as Debian's packages do": (
        [{"usr/local/cuda": "/etc/alternatives/cuda", "etc/alternatives/cuda": "/usr/local/cuda-12.9"}],
        ["575.57.08"],
    ),
    "compat is a link elsewhere": (
        [{DIRECTORY: "../../../opt/compat", "opt/compat/libcuda.so.590.44.01": library(None)}], ["590.44.01"],
    ),
    "a hard link": ([{"x/libcuda.so.580": library(), NEWER: ("h", "x/libcuda.so.580")}],
         ["575.57.08", "580.65.06"]),
    "names that begin with a dot or a slash": ([{f"./{GONE}": b""}, {f"/{NEWER}": library()}], ["580.65.06"]),
    "names that are no version": (
        [{f"{DIRECTORY}/libcuda.so.{name}": library() for name in ("1.1", "x", "99", "575.57.08.bak")}],
        ["575.57.08"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UPPER)
def test_one_layer_over_the_other(name: str, tmp_path: Path) -> None:
    upper, expected = UPPER[name]
    found = image(tmp_path, BASE, *upper)
    assert [".".join(f"{part:02}" for part in one.version) for one in found.compat] == expected


def test_what_nothing_leads_to_is_said(tmp_path: Path) -> None:
    found = facts(tmp_path, BASE, {"usr/local/cuda-11.8/compat/libcuda.so.520.61.05": library(None)})
    assert found.image == WANTED.image
    assert found.notes == ("/usr/local/cuda-11.8/compat is not in /usr/local/cuda, so no program uses it",)


def test_an_image_that_looks_for_itself(tmp_path: Path) -> None:
    path = f"{DIRECTORY}/lib.real/libcuda.so.575.57.08"
    found = image(tmp_path, {"usr/local/cuda": "cuda-12.9", path: library()})
    assert (found.compat, found.own_compat) == ((), (COMPAT,))


@pytest.mark.parametrize(
    ("env", "files", "cuda"),
    [
        ({"CUDA_VERSION": "12.4.0.041"}, {}, (12, 4, 0)),
        ({"CUDA_VERSION": "11.8"}, {}, (11, 8)),
        ({}, {"opt/conda/lib/libcudart.so.12.4.127": b"", "opt/conda/lib/libcudart.so.11.8.89": b""}, (12, 4)),
        ({}, {"usr/lib/python3/nvidia_cuda_runtime_cu12-12.6.77.dist-info/METADATA": b""}, (12, 6)),
        ({}, {"usr/lib/python3/nvidia_cuda_runtime-13.0.96.dist-info/METADATA": b""}, (13, 0)),
    ],
)
def test_which_cuda(env: dict[str, str], files: dict[str, File], cuda: tuple[int, ...], tmp_path: Path) -> None:
    assert image(tmp_path, files, env=env).cuda == cuda


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({}, "has neither CUDA_VERSION nor libcudart"),
        ({"CUDA_VERSION": "12.7.0"}, "CUDA_VERSION says 12.7.0, which was not a known CUDA toolkit"),
        ({"CUDA_VERSION": "latest"}, "has neither CUDA_VERSION"),
    ],
)
def test_no_cuda_no_answer(env: dict[str, str], why: str, tmp_path: Path) -> None:
    found = facts(tmp_path, {"etc/passwd": b""}, env=env)
    assert found.image is None
    assert why in found.unknown


# --- the note -------------------------------------------------------------------------------------------------------


def test_the_note_as_readelf_reads_it(tmp_path: Path) -> None:
    assert note_of(io.BytesIO(library())) == read_note(NOTE)
    if shutil.which("readelf"):
        path = tmp_path / "libcuda.so.575.57.08"
        path.write_bytes(library())
        done = subprocess.run(
            ["readelf", "-p", ".note.cuda.fwd_compatibility", path], capture_output=True, text=True, check=True
        )
        assert "NVIDIA Corporation" in done.stdout
        assert NOTE in done.stdout
        assert "warning" not in done.stderr.lower()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "unreadable ELF file"),
        (b"\x7fELF" + b"\xff" * 200, "unreadable ELF file"),
        (library()[:200], "unreadable ELF file"),
        (library("no json"), "invalid JSON"),
        (library('{"driver": [true]}'), "'driver' is not a list of numbers"),
        (library("[1]"), "not a JSON object"),
    ],
)
def test_a_broken_library_is_told(data: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(NoteError, match=why):
        note_of(io.BytesIO(data))
    found = facts(tmp_path, BASE, {LIBRARY: data})
    assert found.image is not None
    assert found.image.compat == (CompatLib((575, 57, 8)),)
    assert "unreadable ELF note" in found.notes[0]


def test_no_note() -> None:
    assert note_of(io.BytesIO(library(None))) is None
    assert note_of(io.BytesIO(library(owner=b"Somebody"))) is None
    assert note_of(io.BytesIO(library(section=b".note.other"))) is None
    orin = note_of(io.BytesIO(library('{"format":1,"CUDA version":"13.2"}')))
    assert orin is not None
    assert (orin.cuda, orin.driver) == ("13.2", frozenset())


@given(st.binary(max_size=400), st.integers(0, 400))
def test_no_library_raises_anything_else(noise: bytes, at: int) -> None:
    whole = library()
    for data in (noise, whole[:at], whole[:at] + noise + whole[at + len(noise) :]):
        with contextlib.suppress(NoteError):
            note_of(io.BytesIO(data))


# --- harm -----------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=2000), st.integers(0, 4000))
def test_no_layer_raises_anything_else(noise: bytes, at: int) -> None:
    whole = layer(BASE)
    for data in (
        noise,
        whole[:at] + noise + whole[at + len(noise) :],
        PACK["gzip"](whole)[:at],
        PACK["zstd"](whole)[:at],
    ):
        with contextlib.suppress(ImageError):
            reader.read_layer(io.BytesIO(data))


def test_nothing_is_written_where_an_archive_says(tmp_path: Path) -> None:
    evil: dict[str, File] = {
        "../../escaped": b"x",
        "/escaped": b"x",
        "usr/local/cuda": "/../../../../../../tmp",
        "link": "/etc",
        "link/escaped": b"x",
        "../usr/local/cuda/compat/libcuda.so.575.57.08": library(),
    }
    (tmp_path / "inside").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert image(tmp_path / "inside", evil).compat == ()
    (tmp_path / "inside" / "image.tar").unlink()
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/escaped").exists()


def test_links_in_a_circle(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="form a loop"):
        facts(tmp_path, {"usr/local/cuda": "cuda-12", "usr/local/cuda-12": "cuda"})


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = tarfile.TarInfo("x" * 300)
    long = header.tobuf(tarfile.GNU_FORMAT)
    info = tarfile.TarInfo.frombuf(long[:512], "utf-8", "strict")
    info.size = 1 << 40
    with pytest.raises(ImageError, match="a header of 1099511627776 bytes"):
        reader.read_layer(io.BytesIO(info.tobuf(tarfile.GNU_FORMAT) + long[512:]))
    monkeypatch.setattr(reader, "LARGEST_LIBRARY", 100)
    assert "bytes)" in facts(tmp_path, BASE).notes[0]
    monkeypatch.setattr(reader, "MOST_ENTRIES", 3)
    with pytest.raises(ImageError, match="more than 3 files"):
        facts(tmp_path, BASE)
    monkeypatch.setattr(reader, "MOST_ENTRIES", 1000)
    monkeypatch.setattr(reader, "MOST_BYTES", 10_000_000)
    bomb = PACK["gzip"](layer({"big": bytes(20_000_000)}))
    assert len(bomb) < 100_000
    with pytest.raises(ImageError, match="a layer of more than"):
        reader.read_layer(io.BytesIO(bomb))


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "neither manifest.json .docker save. nor index.json"),
        ({"manifest.json": b"[{}]"}, "its manifest is incomplete"),
        ({"manifest.json": b"[]"}, "it has 0 images"),
        ({"manifest.json": b'[{"RepoTags": ["a"]}, {"RepoTags": ["b"]}]'}, "it has 2 images, expected one; all: a, b"),
        (oci(ENV, [layer(BASE)], "riscv64"), "2 images for amd64"),
        ({"manifest.json": b"{"}, "manifest.json is not valid JSON"),
        ({"manifest.json": b"[[" * 200_000}, "manifest.json is not valid JSON"),
        ({"manifest.json": b'[{"Config": "c", "Layers": ["l"]}]'}, "the archive has no c"),
        ({"manifest.json": b'[{"Config": "c", "Layers": []}]', "c": "c"}, "c is not a file"),
        ({"index.json": b'{"manifests": [{"digest": "sha256:../../etc/passwd"}]}'}, "is not a digest"),
        ({"index.json": b'{"manifests": [{"digest": "sha256:aa"}]}'}, "the archive has no blobs/sha256/aa"),
    ],
)
def test_archives_that_are_none(files: dict[str, File], why: str, tmp_path: Path) -> None:
    (tmp_path / "image.tar").write_bytes(layer(files))
    with pytest.raises(ImageError, match=why):
        read_archive(tmp_path / "image.tar")


def test_files_that_are_no_archives(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for data in (b"", b"hello", b"\x1f\x8b\x08 not gzip", b"\x28\xb5\x2f\xfd not zstd", bytes(5000)):
        path.write_bytes(data)
        with pytest.raises(ImageError):
            read_archive(path)
    with pytest.raises(ImageError, match="No such file"):
        read_archive(tmp_path / "missing")


def test_a_layout_directory_ends_at_its_root(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("[]")
    (tmp_path / "layout").mkdir()
    (tmp_path / "layout" / "manifest.json").symlink_to("../secret")
    with pytest.raises(ImageError, match="outside the layout"):
        read_archive(tmp_path / "layout")

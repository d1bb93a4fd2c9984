"""The ELF note of a compatibility libcuda: in which drivers and on which GPUs it works, as NVIDIA wrote it there.

Sources: ``readelf -p .note.cuda.fwd_compatibility libcuda.so.X``; cmd/nvidia-cdi-hook/cudacompat of the container
toolkit.
"""

from __future__ import annotations

from typing import Any, BinaryIO

from gpuready.core.documents import read_json
from gpuready.cuda.facts import Note

SECTION = ".note.cuda.fwd_compatibility"
OWNER = "NVIDIA Corporation"
_LONGEST = 1 << 16
_MOST_SECTIONS = 1000
_KEYS = {"format": "format", "cuda version": "CUDA version", "driver": "driver", "device": "device"}


class NoteError(ValueError):
    """A note that cannot be understood."""


def read_note(text: str) -> Note:
    """The JSON of a note; raises :class:`NoteError`."""
    try:
        found = read_json(text)
    except ValueError as e:
        raise NoteError(f"no JSON: {e}") from None
    if not isinstance(found, dict):
        raise NoteError("it is no JSON object")
    found = {key.lower(): value for key, value in found.items()}
    return Note(str(found.get("cuda version", "")), _numbers(found, "driver"), _numbers(found, "device"))


def given_note(text: str) -> Note:
    """A note that a person typed: what a library may have beside is a mistake here. Raises :class:`NoteError`."""
    note, found = read_note(text), read_json(text)
    odd = [key for key in found if key.lower() not in _KEYS]
    if odd:
        raise NoteError(f"{odd[0]!r} is no key of it (there are {', '.join(_KEYS.values())})")
    if found.get("format") != 1:
        raise NoteError('its "format" is 1')
    return note


def _numbers(found: dict[str, Any], key: str) -> frozenset[int]:
    value = found.get(key, [])
    if not isinstance(value, list) or not all(type(one) is int for one in value):
        raise NoteError(f"{key!r} is no list of numbers")
    return frozenset(value)


def note_of(library: BinaryIO) -> Note | None:
    """The note of a library, None where it has none; raises :class:`NoteError` where it or the ELF file is broken."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import NoteSection

    try:
        elf = ELFFile(library)
        if elf.num_sections() > _MOST_SECTIONS:
            raise NoteError(f"it has {elf.num_sections()} sections")
        section = elf.get_section_by_name(SECTION)
        if not isinstance(section, NoteSection):
            return None
        if section["sh_size"] > _LONGEST:
            raise NoteError(f"its {SECTION} has {section['sh_size']} bytes")
        for note in section.iter_notes():
            if note["n_name"] == OWNER:
                return read_note(bytes(note["n_descdata"]).decode("utf-8", "replace").strip("\0"))
    except NoteError:
        raise
    except Exception as e:  # elftools and the parser below it have many of them, and each means the same
        raise NoteError(f"no readable ELF file: {type(e).__name__}: {e}") from None
    return None

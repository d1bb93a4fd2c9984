"""Read the ELF note of a compatibility libcuda: the drivers and GPUs that it supports, according to NVIDIA.

Sources: ``readelf -p .note.cuda.fwd_compatibility libcuda.so.X``; cmd/nvidia-cdi-hook/cudacompat of the container
toolkit.
"""

from typing import Any, BinaryIO

from gpuready.base.documents import read_json
from gpuready.cuda.facts import Note

SECTION = ".note.cuda.fwd_compatibility"
OWNER = "NVIDIA Corporation"
_LONGEST = 1 << 16
_MOST_SECTIONS = 1000
_KEYS = {"format": "format", "cuda version": "CUDA version", "driver": "driver", "device": "device"}


class NoteError(ValueError):
    """An invalid note."""


def read_note(text: str) -> Note:
    """Parse the JSON of a note; raises :class:`NoteError`."""
    try:
        found = read_json(text)
    except ValueError as e:
        raise NoteError(f"invalid JSON: {e}") from None
    if not isinstance(found, dict):
        raise NoteError("not a JSON object")
    found = {key.lower(): value for key, value in found.items()}
    return Note(str(found.get("cuda version", "")), _numbers(found, "driver"), _numbers(found, "device"))


def given_note(text: str) -> Note:
    """Parse a note that the user typed. Unlike in a library, an unknown key is an error. Raises :class:`NoteError`."""
    note, found = read_note(text), read_json(text)
    odd = [key for key in found if key.lower() not in _KEYS]
    if odd:
        raise NoteError(f"unknown key {odd[0]!r} (allowed: {', '.join(_KEYS.values())})")
    if found.get("format") != 1:
        raise NoteError('"format" must be 1')
    return note


def _numbers(found: dict[str, Any], key: str) -> frozenset[int]:
    value = found.get(key, [])
    if not isinstance(value, list) or not all(type(one) is int for one in value):
        raise NoteError(f"{key!r} is not a list of numbers")
    return frozenset(value)


def note_of(library: BinaryIO) -> Note | None:
    """Return the note of a library, None if it has none. Raises :class:`NoteError` for a damaged note or ELF file."""
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
    except Exception as e:  # elftools raises many types of errors, and all mean the same here
        raise NoteError(f"unreadable ELF file: {type(e).__name__}: {e}") from None
    return None

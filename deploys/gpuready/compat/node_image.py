"""Parse what templates/compat/images.sh.j2 prints about an image: its configuration, pieces of its libcudas."""

import base64
import binascii
import tempfile
from typing import BinaryIO, cast

from gpuready.base.documents import read_json
from gpuready.base.errors import brief
from gpuready.base.facts import Answer, Unknown
from gpuready.base.versions import Version
from gpuready.compat.archive import environment
from gpuready.compat.image import COMPAT, facts_of
from gpuready.compat.layers import LARGEST_LIBRARY, Entry, ImageError, Tree, library
from gpuready.cuda.facts import ImageFacts

_PIECES = dict[int, bytes]


def node_image(answer: Answer | Unknown | None, cuda: Version | None = None) -> ImageFacts:
    """Return the facts from one record of ``NodeState.active``, or why there are none."""
    if not isinstance(answer, Answer):
        return ImageFacts(None, answer.unknown if answer else "the image was not read")
    text = answer.out.strip()
    if answer.rc:
        return ImageFacts(None, brief(text.splitlines()[-1]) if text else f"exit {answer.rc}")
    try:
        return _facts(text, cuda)
    except (ValueError, binascii.Error, TypeError) as e:
        return ImageFacts(None, f"the node's answer about the image is invalid: {e}")


def _facts(text: str, cuda: Version | None) -> ImageFacts:
    env: dict[str, str] = {}
    entries: dict[str, Entry] = {}
    pieces: dict[str, _PIECES] = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "env":
            env = environment({"config": {"Env": read_json(rest)}})
        elif word == "config":
            env = environment(read_json(base64.b64decode(rest, validate=True)))
        elif word == "path":
            entries[rest.strip("./")] = Entry()
        elif word == "file":
            pieces.setdefault(rest, {})
        elif word == "odd":
            name, _, why = rest.partition(" ")
            entries[f"{COMPAT}/{name}"] = Entry(odd=why)
        elif word == "piece":
            name, at, data = rest.split(" ")
            pieces.setdefault(name, {})[int(at)] = base64.b64decode(data, validate=True)
    for name, parts in pieces.items():
        entries.setdefault(f"{COMPAT}/{name}", _library(parts))
    return facts_of(env, Tree(entries), cuda)


def _library(parts: _PIECES) -> Entry:
    """Read the ELF note from the pieces: a sparse file that holds them at their offsets is enough."""
    with tempfile.TemporaryFile() as file:
        for at, data in parts.items():
            if at > LARGEST_LIBRARY:
                raise ImageError(f"a piece of a library at {at}")
            file.seek(at)
            file.write(data)
        return library(cast(BinaryIO, file))

"""XML as text, of an element tree that was built from whatever nodes said."""

import xml.etree.ElementTree as ET

from gpuready.result.mask import mask_text
from gpuready.result.text import printable


def document(root: ET.Element) -> str:
    """The document with its declaration. Texts and attributes are masked; XML 1.0 has no control characters."""
    for element in root.iter():
        element.text = element.text and _legal(element.text)
        for name, value in element.items():
            element.set(name, _legal(value))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _legal(text: str) -> str:
    return printable(mask_text(text))

"""What dnf 4 or dnf 5 holds on a machine."""

import re

from gpuready.base import toml_document
from gpuready.contract.package_manager import LOCKS, LOCKS5
from tests.system.host import Host

LISTS = (LOCKS, LOCKS5)


def locks(node: Host) -> set[str]:
    """The locks of its packages, as NAME-EPOCH:VERSION-RELEASE."""
    four, five = (node.root / path[1:] for path in LISTS)
    found = {line.removesuffix(".*") for line in four.read_text().splitlines()} if four.exists() else set()
    tables = toml_document.read(five.read_text()).get("packages", []) if five.exists() else []
    found |= {f"{table['name']}-{each['value']}" for table in tables for each in table["conditions"]}
    return {lock for lock in found if re.match(r"[\w-]", lock)}

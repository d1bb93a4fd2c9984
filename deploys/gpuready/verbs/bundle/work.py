"""Write a bundle: first verify what is to be fetched, then fetch it, then write what makes it complete."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from gpuready.base.documents import read_yaml
from gpuready.base.errors import ConvergeError
from gpuready.base.files import read_file, reason
from gpuready.base.https import StatusError
from gpuready.components.repository.key import accepted
from gpuready.components.repository.openpgp import LIMIT, Certificate
from gpuready.components.toolkit.spec import Repository
from gpuready.components.toolkit.state import PACKAGES
from gpuready.inventory.secrets import resolve
from gpuready.verbs.bundle.contents import Content, FetchError, Item, path_of
from gpuready.verbs.bundle.fetch import Folder, read
from gpuready.verbs.bundle.needs import Needs, Platform
from gpuready.verbs.bundle.part import Bundle, BundledFile
from gpuready.verbs.bundle.repositories import Excerpt, excerpt_of

#: The inventory with what the specs say of the bundle.
INVENTORY = "bundle.yaml"
_HEAD = """\
# The addresses of the bundle at {url}. Give this file to gpuready after your inventory:
#
#   gpuready apply -i hosts.yaml -i {inventory}

"""


def bundle(needs: Mapping[str, Needs], root: Path, url: str, tell: Callable[[str], object]) -> Bundle:
    """Write the folder. Raises FetchError, ConvergeError for a key, and OutputError."""
    keys = _keys(needs)
    parts = [_excerpt(platform, repo, versions, keys[repo]) for (platform, repo), versions in _sources(needs).items()]
    folder = Folder(root, tell)
    folder.begin()
    for item in [*(package for part in parts for package in part.packages), *_wheels(needs)]:
        folder.fetch(item)
    paths = dict.fromkeys(wheel.wheel for each in needs.values() for wheel in each.wheels if not wheel.sha256)
    local = {path: folder.copy(Path(path)) for path in paths}
    for key in keys.values():
        folder.put(_path_of_key(key), key.armored)
    for part in parts:
        for place, data in part.index.items():
            folder.put(path_of(place), data)
    if lost := sorted(_hosts(root / INVENTORY) - set(needs)):
        tell(f"note: {INVENTORY} no longer has {', '.join(lost)}, of an earlier run; for these, run it with all hosts")
    folder.put(INVENTORY, _inventory(needs, url, keys, local).encode())
    return Bundle(str(root), url, folder.finish())


def _hosts(path: Path) -> set[str]:
    """Return the hosts of an earlier run's inventory; none if it cannot be read."""
    try:
        return set(read_yaml(path.read_text("utf-8"))["all"]["hosts"])
    except (OSError, ValueError, TypeError, KeyError):
        return set()


def _keys(needs: Mapping[str, Needs]) -> dict[Repository, Certificate]:
    """Read and check the key of each repository."""
    repos = dict.fromkeys(each.spec.toolkit.repo for each in needs.values() if each.platforms)
    return {repo: accepted(_key_file(repo.key), repo, time.time()) for repo in repos}


def _key_file(place: str) -> bytes:
    try:
        return read(place) if "://" in place else read_file(place, LIMIT)
    except StatusError as e:
        raise FetchError(f"{place} cannot be fetched: {e}", remedy="correct toolkit.repo.key") from None
    except (OSError, ValueError) as e:
        raise ConvergeError(
            f"{place} cannot be read: {reason(e)}; nothing was written",
            remedy="toolkit.repo.key is a file on the machine that runs gpuready, or a URL",
        ) from None


def _path_of_key(key: Certificate) -> str:
    return f"keys/{key.fingerprint}.asc"


def _sources(needs: Mapping[str, Needs]) -> dict[tuple[Platform, Repository], list[str]]:
    """Return each repository with the versions of the toolkit that are needed from it."""
    found: dict[tuple[Platform, Repository], list[str]] = {}
    for each in needs.values():
        for platform in each.platforms:
            versions = found.setdefault((platform, each.spec.toolkit.repo), [])
            if each.spec.toolkit.version not in versions:
                versions.append(each.spec.toolkit.version)
    return found


def _excerpt(platform: Platform, repo: Repository, versions: list[str], key: Certificate) -> Excerpt:
    wanted = [(name, f"{version}-1") for version in versions for name in PACKAGES]
    return excerpt_of(platform, platform.url(repo), wanted, key, time.time(), read)


def _wheels(needs: Mapping[str, Needs]) -> list[Item]:
    items = (
        Item(wheel.wheel, Content("sha256", wheel.sha256), resolve(wheel.header).reveal() if wheel.header else "")
        for each in needs.values()
        for wheel in each.wheels
        if wheel.sha256
    )
    return list(dict.fromkeys(items))


def _inventory(
    needs: Mapping[str, Needs], url: str, keys: Mapping[Repository, Certificate], local: Mapping[str, BundledFile]
) -> str:
    hosts = {}
    for name, each in needs.items():
        key = keys.get(each.spec.toolkit.repo)
        if said := each.settings(url, _path_of_key(key) if key else "", local):
            hosts[name] = {"gpuready": said}
    text = yaml.safe_dump({"all": {"hosts": hosts}}, sort_keys=False, width=120)
    return _HEAD.format(url=url, inventory=INVENTORY) + text

"""The repository's key against a bad mirror: what apt accepts with the file that we write, and with the raw one.

Each odd file stands for a source of its own, all of them under addresses of a repository that somebody else signed:
one `apt-get update` asks about all. Debian 12's apt verifies with gpgv, Debian 13's with sqv.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpuready.base.errors import ConvergeError
from gpuready.components.repository.component import Repository
from gpuready.components.repository.source import AptSource
from gpuready.contract.compare import compare
from tests.components.cases import Case, spec_of, state_of
from tests.components.closing import close
from tests.components.repository.odd_keys import odd_files
from tests.lab import Lab, host, signing
from tests.lab import Repository as Published
from tests.system.host import Hosts

#: Files with which an apt takes the other key, when they reach it as they are.
TAKEN = {
    "debian12": {"space after BEGIN", "doubled space in the label", "junk header", "two keys in one block"},
    "debian13": {
        "space after BEGIN",
        "text before two blocks",
        "two keys in one block",
        "two blocks, the good one first",
    },
}


@pytest.fixture(scope="module")
def good_and_evil(lab: Lab) -> Iterator[tuple[Published, Published]]:
    """Two empty repositories: one signed by the key that the spec names, one by somebody else."""
    with ExitStack() as stack:
        good, evil = (stack.enter_context(lab.publish(signer, ())) for signer in ("lab", "other"))
        yield good, evil


def written(raw: bytes) -> str | ConvergeError:
    """The key file that gpuready writes on a node when the mirror serves ``raw``, or its refusal."""
    repo = {
        "url": "http://mirror.example/deb",
        "key": "http://mirror.example/k",
        "fingerprint": signing.fingerprint("lab"),
    }
    case = Case("repository", "here", "", {"spec": {"toolkit": {"repo": repo}}, "state": {"have": ["apt-get"]}})
    spec, state = spec_of(case), state_of(case)
    try:
        steps = close(Repository(), spec, state, compare(Repository(), spec, state).diff, key=raw)
        return steps.writes[AptSource.keyring]
    except ConvergeError as e:
        return e


@pytest.mark.fault("D1", "quirky-armor")
@pytest.mark.parametrize("distro", TAKEN)
def test_no_odd_key_file_lets_another_signer_in(
    distro: str, fresh: Hosts, good_and_evil: tuple[Published, Published]
) -> None:
    node = fresh(distro)
    good, evil = good_and_evil
    sources: list[str] = []

    def source(repo: Published, kind: str, number: int, key: bytes) -> None:
        where = repo.directory / kind / str(number)
        where.parent.mkdir(exist_ok=True)
        where.unlink(missing_ok=True)
        where.symlink_to(repo.directory / "stable/deb" / host.architecture())
        file = Path(node.root, "srv/keys", f"{kind}-{number}.asc")
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(key)
        uri = f"{repo.base}/{kind}/{number}"
        sources.append(f"Types: deb\nURIs: {uri}\nSuites: /\nSigned-By: /srv/keys/{kind}-{number}.asc\n")

    files = odd_files(signing.public("lab").read_bytes(), signing.public("other").read_bytes())
    names, taken = list(files), set()
    for number, (name, odd) in enumerate(files.items()):
        ours = written(odd.data)
        assert isinstance(ours, str) == (not odd.refused), f"{name}: {ours}"
        source(evil, "raw", number, odd.data)
        if isinstance(ours, str):
            taken.add(name)
            source(evil, "evil", number, ours.encode())
            source(good, "good", number, ours.encode())
        else:
            assert "line " in ours.message or "byte " in ours.message or "the " in ours.message, ours.message
            assert "nothing was written" in ours.message
    Path(node.root, "etc/apt/sources.list.d/odd.sources").write_text("\n".join(sources), "utf-8")
    log = node.run(
        "apt-get update -q -o Dir::Etc::sourcelist=/etc/apt/sources.list.d/odd.sources -o Dir::Etc::sourceparts=- 2>&1",
        check=False,
    ).stdout
    accepted: dict[str, set[str]] = {"raw": set(), "evil": set(), "good": set()}
    for row in node.run("ls /var/lib/apt/lists").stdout.split():
        kind, _, rest = row.partition("_")[2].partition("_")
        if kind in accepted and row.endswith("_InRelease"):
            accepted[kind].add(names[int(rest.split("_")[0])])
    print(f"{distro}: {len(files)} files, {len(taken)} taken; as they are, these let the other signer in:")
    print(*sorted(accepted["raw"]), sep="\n")
    assert accepted["evil"] == set(), log
    assert accepted["good"] == taken, log
    assert accepted["raw"] >= TAKEN[distro], log

"""``gpuready bundle``: what is fetched, what is refused, and what an interrupted or a second run does."""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuready.base.https import LIMITS
from gpuready.components.toolkit.spec import TOOLKIT_VERSION
from gpuready.components.toolkit.state import PACKAGES
from gpuready.inventory.hosts import load
from gpuready.model.state import OS, NodeState
from gpuready.verbs.bundle import fetch
from gpuready.verbs.bundle.contents import FetchError, inside, path_of
from tests.command import Exits, Said, write_hosts, write_states
from tests.components.repository.gpg import Gpg
from tests.secure import Secure
from tests.verbs.bundle.site import WHEEL, Site, content

APT = NodeState(os=OS(id="debian", version_id="12", name="Debian 12"), machine="x86_64", have=("apt-get",))
DNF = NodeState(os=OS(id="rocky", version_id="9.6", name="Rocky 9.6"), machine="x86_64", have=("dnf",))
URL = "http://10.0.0.5:8000"


@pytest.fixture(scope="module")
def signers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gpg, Gpg]]:
    """Two keys."""
    found = [Gpg(tmp_path_factory.mktemp("gpg") / "home", "ed25519") for _ in range(2)]
    yield found[0], found[1]
    for each in found:
        each.end()


@pytest.fixture
def site(signers: tuple[Gpg, Gpg]) -> Iterator[Site]:
    found = Site(signers[0])
    yield found
    found.stop()


class Runs:
    """``gpuready bundle`` in a folder, with hosts of this spec."""

    def __init__(self, folder: Path, exits: Exits, spec: dict[str, Any]) -> None:
        self.folder, self.out, self.exits = folder, folder / "bundle", exits
        self.hosts = write_hosts(folder, json.dumps({"all": {"hosts": {"a": {"gpuready": spec}}}}))
        self.states = write_states(folder / "states.json", {"a": APT})

    def __call__(self, code: int = 0, *words: str) -> Said:
        more = words or ("--state", self.states)
        return self.exits(code, "bundle", "-i", self.hosts, "-o", self.out, "--url", URL, "--output", "json", *more)

    def fails(self, *parts: str) -> None:
        """It ends with exit 1 and this error."""
        error = self(1).document["error"]["message"]
        assert all(part in error for part in parts), error

    @property
    def files(self) -> set[str]:
        """All files that lie there."""
        return {str(path.relative_to(self.out)) for path in self.out.rglob("*") if path.is_file()}

    def sums(self) -> int:
        """The exit code of sha256sum -c."""
        return subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=self.out, check=False).returncode


@pytest.fixture
def run(tmp_path: Path, exits: Exits, site: Site) -> Runs:
    return Runs(tmp_path, exits, site.spec())


def fetched(said: Said) -> set[str]:
    return {each["path"] for each in said.document["bundle"]["files"] if each["fetched"]}


def test_it_has_what_the_specs_need_and_the_whole_signed_index(run: Runs, site: Site, signers: tuple[Gpg, Gpg]) -> None:
    place, key = path_of(site.url), f"keys/{signers[0].fingerprint}.asc"
    debs = {f"{place}/deb/amd64/{name}_{TOOLKIT_VERSION}-1_amd64.deb" for name in PACKAGES}
    index = {f"{place}/deb/amd64/{name}" for name in ("InRelease", "Packages.xz")}
    expected = {*debs, *index, f"{place}/{WHEEL}", key, "bundle.yaml"}
    assert fetched(run()) == expected and run.files == {*expected, "SHA256SUMS"} and run.sums() == 0
    assert (run.out / place / "deb/amd64/InRelease").read_bytes() == site.files["/deb/amd64/InRelease"]
    (host,) = load([run.hosts, str(run.out / "bundle.yaml")]).chosen
    assert host.spec.toolkit.repo.url == f"{URL}/{place}/deb/$(ARCH)"
    assert host.spec.toolkit.repo.key == f"{URL}/{key}"
    assert host.spec.toolkit.repo.fingerprint == signers[0].fingerprint
    assert host.spec.torch_wheels[0].wheel == f"{URL}/{place}/{WHEEL.replace('+', '%2B')}"


def test_each_host_gets_the_repository_of_its_package_manager(run: Runs, site: Site) -> None:
    path = run.folder / "two.yaml"
    hosts = {
        name: {"gpuready": site.spec(proxy="http://proxy.example:3128")} for name in ("apt", "dnf", "suse", "operators")
    }
    hosts["operators"]["gpuready"] |= {"owners": {"toolkit": "operator"}}
    run.hosts = str(path)
    path.write_text(json.dumps({"all": {"hosts": hosts}}))
    suse = NodeState(os=OS(id="sles", version_id="15", name="SLES 15"), machine="x86_64", have=("zypper",))
    run.states = write_states(run.folder / "two.json", {"apt": APT, "dnf": DNF, "suse": suse, "operators": APT})
    said = run(1)
    assert "SUSE" in said.document["hosts"]["suse"]["error"]["message"]
    place = path_of(site.url)
    rpms = {f"{place}/rpm/x86_64/{name}-{TOOLKIT_VERSION}-1.x86_64.rpm" for name in PACKAGES}
    index = {f"{place}/rpm/x86_64/repodata/{name}" for name in ("repomd.xml", "repomd.xml.asc", "primary.gz")}
    assert {each for each in run.files if "/rpm/" in each} == rpms | index
    found = {host.name: host.spec for host in load([run.hosts, str(run.out / "bundle.yaml")]).chosen}
    assert found["dnf"].toolkit.repo.rpm_url == f"{URL}/{place}/rpm/$basearch"
    assert (found["dnf"].toolkit.repo.proxy, found["operators"].toolkit.repo.proxy) == (
        None,
        "http://proxy.example:3128",
    )
    assert found["dnf"].toolkit.repo.url == found["operators"].toolkit.repo.url == f"{site.url}/deb/$(ARCH)"
    assert found["operators"].torch_wheels[0].wheel.startswith(URL)


def test_an_encoded_address_stays_encoded(run: Runs, site: Site) -> None:
    site.files = {path.replace("/deb/", "/d%20b~/"): data for path, data in site.files.items()}
    spec = site.spec(url=f"{site.url}/d%20b~/$(ARCH)")
    run.hosts = write_hosts(run.folder, json.dumps({"all": {"hosts": {"a": {"gpuready": spec}}}}))
    run()
    assert (run.out / path_of(site.url) / "d b~/amd64/InRelease").is_file()
    (host,) = load([run.hosts, str(run.out / "bundle.yaml")]).chosen
    assert host.spec.toolkit.repo.url == f"{URL}/{path_of(site.url)}/d%20b~/$(ARCH)"


def test_a_local_wheel_goes_along_with_one_of_a_url(run: Runs, site: Site) -> None:
    """So bundle.yaml names no path of this machine, where apply may not run."""
    spec, name = site.spec(), "apex-1.0+cu12-py3-none-any.whl"
    (run.folder / name).write_bytes(content(name))
    spec["torch_wheels"].append({"wheel": name, "env": "/opt/train"})
    run.hosts = write_hosts(run.folder, json.dumps({"all": {"hosts": {"a": {"gpuready": spec}}}}))
    sha256 = hashlib.sha256(content(name)).hexdigest()
    assert f"wheels/{sha256}/{name}" in fetched(run()) and run.sums() == 0
    assert fetched(run()) == set()
    (run.folder / name).unlink()
    (host,) = load([run.hosts, str(run.out / "bundle.yaml")]).chosen
    wheel = host.spec.torch_wheels[1]
    assert (wheel.wheel, wheel.sha256) == (f"{URL}/wheels/{sha256}/{name.replace('+', '%2B')}", sha256)


def test_without_hosts_it_fetches_for_the_platforms_that_are_named(run: Runs, site: Site) -> None:
    run(0, "--platform", "apt-amd64", "--platform", "dnf-x86_64")
    place = path_of(site.url)
    assert {f"{place}/deb/amd64/InRelease", f"{place}/rpm/x86_64/repodata/repomd.xml"} <= run.files
    (host,) = load([run.hosts, str(run.out / "bundle.yaml")]).chosen
    assert {host.spec.toolkit.repo.url, host.spec.toolkit.repo.rpm_url} == {
        f"{URL}/{place}/deb/$(ARCH)", f"{URL}/{place}/rpm/$basearch"
    }  # fmt: skip
    run(64, "--platform", "apt-amd64", "--state", run.states)
    run(1, "--platform", "apt-arm64")


def test_a_second_run_fetches_only_what_is_missing_or_damaged(run: Runs, site: Site) -> None:
    run()
    site.sent.clear()
    assert fetched(run()) == set()
    assert len(site.sent) == 4  # the key and the index, of which one form is not there
    deb = next(path for path in run.out.rglob("*.deb"))
    data = deb.read_bytes()
    deb.write_bytes(b"X" + data[1:])
    assert run.sums() == 1
    assert fetched(run()) == {str(deb.relative_to(run.out))} and deb.read_bytes() == data and run.sums() == 0


@pytest.mark.fault("bundle-cut")
@pytest.mark.parametrize("ranges", [True, False])
def test_what_broke_off_is_resumed_and_is_not_complete_before(run: Runs, site: Site, ranges: bool) -> None:
    site.ranges = ranges
    whole = 99_999
    site.cuts = [whole, whole, whole, 1000, *[0] * 3]  # the key, the index, a package; then nothing more comes
    run.fails("cannot be fetched")
    assert "SHA256SUMS" not in run.files
    (part,) = run.out.rglob(".*.part")
    assert part.stat().st_size == (1000 if ranges else 0)
    site.cuts, before = [], len(site.sent)
    run()
    resumed = len(content(part.name[1:-5])) - part_size(site.sent[before:])
    assert resumed == (1000 if ranges else 0)
    assert run.sums() == 0 and not list(run.out.rglob("*.part"))


def test_only_more_than_ever_before_is_progress(run: Runs, site: Site) -> None:
    """The server begins anew at each attempt, and each answer breaks off."""
    run()
    deb = next(path for path in run.out.rglob("*.deb"))
    deb.unlink()
    whole, site.ranges = 99_999, False
    site.cuts, before = [whole, whole, whole, *[1000, 0] * 10], len(site.sent)
    run.fails(deb.name, "bytes are missing")
    assert site.sent[before + 4 :] == [1000, 0, 1000, 0]


def test_a_wheel_without_a_length_cannot_fill_the_disk(run: Runs, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.length = False
    usage = SimpleNamespace(free=(LIMITS.reserve << 20) + 30_000)  # a wheel is larger; the packages were there before
    run()
    (run.out / path_of(site.url) / WHEEL).unlink()
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda _path: usage)
    said = run(74)
    assert WHEEL.replace("+", "%2B") in said.err and "must stay free" in said.err
    assert not list(run.out.rglob("*.part"))
    usage.free += 30_000
    assert len(fetched(run())) == 1


def test_an_answer_that_trickles_is_given_up(run: Runs, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "time", SimpleNamespace(monotonic=count(0, 130).__next__))
    run.fails("/gpgkey: less than 1024 bytes/s in 120 s")


def test_an_invalid_answer_is_an_error_of_the_server(run: Runs, site: Site) -> None:
    site.redirects["/gpgkey"] = "http://[::1"
    run.fails("/gpgkey cannot be fetched: the server's answer is invalid", "IPv6")


def part_size(sent: list[int]) -> int:
    """The bytes of the first package, after the key and the index."""
    return sent[4]


def test_a_beginning_of_another_file_is_thrown_away(run: Runs, site: Site) -> None:
    run()
    deb = next(path for path in run.out.rglob("*.deb"))
    for size in (10, len(deb.read_bytes()), len(deb.read_bytes()) + 1):
        deb.rename(part := deb.with_name(f".{deb.name}.part"))
        part.write_bytes(b"x" * size)
        run()
        assert run.sums() == 0


@pytest.mark.fault("bundle-forged")
def test_what_is_not_what_it_should_be_is_refused(run: Runs, site: Site, signers: tuple[Gpg, Gpg]) -> None:
    """A key, a signature, an index, a package and a wheel; a complete bundle stays as it is until all is verified."""
    run()
    good, before = dict(site.files), run.files
    site.files["/gpgkey"] = signers[1].key.armored
    run.fails("holds the key", signers[1].fingerprint, "nothing was written")
    site.files = dict(good)
    site.publish(signer=signers[1])
    run.fails("no valid signature by the key", signers[0].fingerprint)
    for path, part in (("InRelease", b"Origin"), ("Packages.xz", b"7zXZ")):
        site.files = dict(good)
        site.files[f"/deb/amd64/{path}"] = good[f"/deb/amd64/{path}"].replace(part, part.swapcase())
        run.fails("/deb/amd64")
    assert run.files == before and run.sums() == 0
    for path in [next(path for path in good if path.endswith(".deb") and TOOLKIT_VERSION in path), f"/{WHEEL}"]:
        name = path.replace("+", "%2B")
        site.files = {**good, name: good[name] + b"x"}
        lies = run.out / path_of(site.url) / path[1:]
        lies.unlink()
        run.fails(name, "expected")
        assert not lies.exists() and "SHA256SUMS" not in run.files and not list(run.out.rglob("*.part"))
        site.files = good
        run()


def test_the_error_names_the_versions_that_are_there(run: Runs, site: Site) -> None:
    site.publish(versions=("1.18.2", "1.19.1"))
    run.fails(f"has no {PACKAGES[0]} {TOOLKIT_VERSION}-1, but 1.18.2-1, 1.19.1-1")
    del site.files["/deb/amd64/InRelease"]
    run.fails("404")
    site.stop()
    run.fails("/gpgkey cannot be fetched", "refused")


def test_an_index_that_is_no_longer_valid_is_refused(run: Runs, site: Site) -> None:
    site.publish(head="Valid-Until: Sat, 28 Nov 2020 10:00:00 UTC\n")
    run.fails("InRelease was valid until Sat, 28 Nov 2020")
    site.publish(head="Valid-Until: Sat, 28 Nov 2099 10:00:00 UTC\n")
    run()


def test_a_package_without_a_hash_that_counts_is_missing(run: Runs, site: Site) -> None:
    site.change_index(lambda text: text.replace("SHA256:", "MD5sum:"))
    run.fails(f"has no {PACKAGES[0]} {TOOLKIT_VERSION}-1, but none")


def test_the_best_hash_of_a_package_counts(run: Runs, site: Site) -> None:
    site.change_index(lambda text: text.replace("SHA256:", f"SHA512: {'0' * 128}\nSHA256:"))
    run.fails(".deb: the sha512 is", "expected 000")


def test_an_address_of_an_rpm_index_is_encoded_already(run: Runs, site: Site) -> None:
    def change(text: str) -> str:
        return text.replace('href="', 'href="a%20b%2B/')

    good = dict(site.files)
    site.change_index(change)
    for path in [path for path in good if path.endswith(".rpm")]:
        site.files[path.replace("x86_64/", "x86_64/a%20b%2B/", 1)] = site.files.pop(path)
    run(0, "--platform", "dnf-x86_64")
    assert len(list(run.out.rglob("x86_64/a b+/*.rpm"))) == len(PACKAGES)
    for href, why in (('href="a%2F', "the path is not plain"), ('xml:base="http://other/" href="', "xml:base")):
        site.files = dict(good)
        site.change_index(lambda text, href=href: text.replace('href="', href))  # type: ignore[misc]
        assert why in run(1, "--platform", "dnf-x86_64").document["error"]["message"]


def test_hosts_that_bundle_yaml_no_longer_has_are_named(run: Runs, site: Site) -> None:
    hosts = {name: {"gpuready": site.spec()} for name in ("a", "b", "c")}
    run.hosts = write_hosts(run.folder, json.dumps({"all": {"hosts": hosts}}))
    run.states = write_states(run.folder / "states.json", dict.fromkeys(hosts, APT))
    assert "no longer" not in run().err
    assert "bundle.yaml no longer has b, c" in run(0, "--state", run.states, "--limit", "a").err


def test_a_folder_that_cannot_be_written_is_named(run: Runs, site: Site) -> None:
    run.out.write_text("a file")
    assert str(run.out) in run(74).err
    run.out.unlink()
    part = run.out / path_of(site.url) / f".{WHEEL}.part"
    part.mkdir(parents=True)
    assert f"{part}: Is a directory" in run(74).err and "SHA256SUMS" not in run.files


def test_one_url_has_one_content(run: Runs, site: Site) -> None:
    other = site.spec()
    other["torch_wheels"][0]["sha256"] = "0" * 64
    specs = {"a": {"gpuready": site.spec()}, "b": {"gpuready": other}}
    run.hosts = write_hosts(run.folder, json.dumps({"all": {"hosts": specs}}))
    run.states = write_states(run.folder / "states.json", {"a": APT, "b": APT})
    run.fails("two contents")
    assert "SHA256SUMS" not in run.files


def test_a_header_goes_to_the_server_of_the_wheel_alone(
    run: Runs, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A redirection can neither take it along, nor lead to a server without TLS."""
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    first, second = map(Secure, folders)
    (both := tmp_path / "both.pem").write_bytes(first.certificate.read_bytes() + second.certificate.read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(both))
    monkeypatch.setenv("GPUREADY_WHEELS", "Authorization: Bearer t0ken")
    path = "/torch-2.2.1-py3-none-linux_x86_64.whl"
    second.files[path], first.redirects[path] = content(WHEEL), f"{second.url}{path}"
    wheel = {**site.spec()["torch_wheels"][0], "wheel": f"{first.url}{path}", "header": "env:GPUREADY_WHEELS"}
    spec = {"owners": {"toolkit": "operator"}, "torch_wheels": [wheel]}
    run.hosts = write_hosts(run.folder, json.dumps({"all": {"hosts": {"a": {"gpuready": spec}}}}))
    said = run()
    assert fetched(said) == {f"{path_of(first.url)}{path}", "bundle.yaml"}
    assert [each[2] for each in first.asked + second.asked] == ["Bearer t0ken", ""]
    assert "t0ken" not in said.out + said.err + (run.out / "bundle.yaml").read_text()
    (run.out / f"{path_of(first.url)}{path}").unlink()
    first.redirects[path] = f"{site.url}/{WHEEL.replace('+', '%2B')}"
    run.fails(path, "unknown url type: http")
    for server in (first, second):
        server.stop()


def test_what_is_not_in_it_is_said(run: Runs, site: Site) -> None:
    spec = site.spec() | {"driver": {"policy": "install", "version": "580.95.05"}, "images": ["app:1"]}
    run.hosts = write_hosts(run.folder, json.dumps({"all": {"hosts": {"a": {"gpuready": spec}}}}))
    (note,) = [note for note in run().document["hosts"]["a"]["notes"] if "not in the bundle" in note]
    assert "the driver" in note and "app:1" in note and "Docker" not in note


def test_no_index_can_name_what_is_elsewhere() -> None:
    assert inside("http://h/deb", "./pool/a+b_1~2.deb") == "http://h/deb/pool/a+b_1~2.deb"
    for name in ("../x", "/etc/x", "a//b", "a/../../x", "http://other/x", "a\nb", ""):
        with pytest.raises(FetchError):
            inside("http://h/deb", name)
    assert path_of("https://h:8443/a%20b/%2B.whl") == "h_8443/a b/+.whl"
    for url in ("http://h/%2e%2e/x", "http://h/a%2Fb", "http://h/%00"):
        with pytest.raises(FetchError):
            path_of(url)

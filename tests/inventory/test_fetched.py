"""An inventory from a URL: its checks, and the message if one of them fails."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

import pytest

from gpuready.base.errors import GpureadyError, InventoryError, UsageError
from gpuready.inventory import fetched
from gpuready.inventory.fetched import source
from gpuready.inventory.hosts import load
from gpuready.inventory.yaml_positions import MAX_BYTES
from tests.components.wheels.mirror import Mirror
from tests.secure import Secure, Signer

SPEC = b"all: {vars: {gpuready: {hardware: {gpus: 8}}}}\n"
SHA256 = hashlib.sha256(SPEC).hexdigest()
TEXT = SPEC.decode()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    server = Secure(tmp_path_factory.mktemp("site"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return Signer(tmp_path_factory.mktemp("keys"), "ours")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return Signer(tmp_path_factory.mktemp("keys"), "other")


@pytest.fixture
def site(served: Secure, monkeypatch: pytest.MonkeyPatch) -> Secure:
    """A server that these tests trust, with the spec."""
    served.files, served.redirects, served.asked = {"/hosts.yaml": SPEC}, {}, []
    for name, value in {**served.trust, "HOME": "/nonexistent"}.items():
        monkeypatch.setenv(name, value)
    return served


def gpus(url: str) -> object:
    """What the spec that is fetched says about this machine."""
    (entry,) = load([url, "@local"], limit=["@local"]).chosen
    return entry.spec.hardware.gpus


def refused(url: str) -> str:
    with pytest.raises(InventoryError) as e:
        load([url, "@local"])
    return str(e.value)


def test_a_pinned_spec_is_read(site: Secure) -> None:
    assert gpus(f"{site.url}/hosts.yaml#sha256={SHA256}") == 8


@pytest.mark.fault("wrong-spec")
def test_another_content_is_refused(site: Secure) -> None:
    said = refused(f"{site.url}/hosts.yaml#sha256={'0' * 64}")
    assert said == f"{site.url}/hosts.yaml: the SHA-256 is {SHA256}, expected {'0' * 64}"


def test_a_signed_spec_is_read(site: Secure, ours: Signer) -> None:
    site.files["/hosts.yaml.sig"] = ours.sign(SPEC)
    assert gpus(f"{site.url}/hosts.yaml#signers={ours.allowed}") == 8
    assert gpus(f"{site.url}/hosts.yaml?version=2#signers={ours.allowed}") == 8
    assert site.asked[-1][1] == "/hosts.yaml.sig?version=2"


def test_each_principal_of_a_key_is_tried(site: Secure, ours: Signer, tmp_path: Path) -> None:
    site.files["/hosts.yaml.sig"] = ours.sign(SPEC)
    allowed = tmp_path / "allowed"
    allowed.write_text(f"!{ours.allowed.read_text()}")
    assert gpus(f"{site.url}/hosts.yaml#signers={allowed}") == 8


@pytest.mark.fault("wrong-spec")
def test_a_spec_without_the_right_signature_is_refused(site: Secure, ours: Signer, other: Signer) -> None:
    url = f"{site.url}/hosts.yaml#signers={ours.allowed}"
    assert "hosts.yaml.sig: cannot be fetched: the server answered 404" in refused(url)
    expected = f"expected a signature by a key in {ours.allowed}, got: "
    site.files["/hosts.yaml.sig"] = other.sign(SPEC)
    said = refused(url)
    assert f"{expected}one by another key: ED25519 key SHA256:" in said
    site.files["/hosts.yaml.sig"] = ours.sign(SPEC + b" ")
    assert f"{expected}the file was changed after it was signed" in refused(url)
    site.files["/hosts.yaml.sig"] = ours.sign(SPEC, "gpuready-result")
    assert f"{expected}one for another namespace than gpuready" in refused(url)
    site.files["/hosts.yaml.sig"] = b"none"
    assert expected in refused(url)
    assert "no such user" in refused(f"{site.url}/hosts.yaml#signers=~nosuchuser/x")
    assert "none: no such file" in refused(f"{site.url}/hosts.yaml#signers={ours.allowed}none")


def test_a_file_of_a_commit_or_a_branch_is_read(site: Secure, ours: Signer, tmp_path: Path) -> None:
    site.repositories = tmp_path
    first = ours.commit(tmp_path / "fleet", **{"hosts.yaml": TEXT})
    ours.commit(tmp_path / "fleet", **{"hosts.yaml": TEXT.replace("8", "4")})
    url = f"git+{site.url}/git/fleet/.git"
    assert gpus(f"{url}@main#path=hosts.yaml") == 4
    run(["git", "-C", tmp_path / "fleet", "update-ref", f"refs/heads/{first}", "HEAD"], check=True)
    assert gpus(f"{url}@{first}#path=hosts.yaml") == 8, "the commit, and not the branch of that name"
    assert gpus(f"{url}@{first}#path=hosts.yaml&signers={ours.allowed}") == 8
    assert "couldn't find remote ref none" in refused(f"{url}@none#path=hosts.yaml")
    assert "git cat-file: " in refused(f"{url}@main#path=none.yaml")
    assert "git fetch: " in refused(f"git+{site.url}/git/nosuch@main#path=hosts.yaml")


def test_the_callers_environment_does_not_lead_git_to_another_repository(
    site: Secure, ours: Signer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hook of a repository with alternates, and with the strict setting for bare repositories."""
    site.repositories = tmp_path
    ours.commit(tmp_path / "fleet", **{"hosts.yaml": TEXT})
    (elsewhere := tmp_path / "elsewhere").mkdir()
    places = {name: str(elsewhere) for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")}
    strict = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.bareRepository",
        "GIT_CONFIG_VALUE_0": "explicit",
    }
    more = {"GIT_NAMESPACE": "x", "GIT_QUARANTINE_PATH": str(elsewhere), "GIT_DEFAULT_HASH": "sha256"}
    for name, value in {**places, **strict, **more}.items():
        monkeypatch.setenv(name, value)
    assert gpus(f"git+{site.url}/git/fleet/.git@main#path=hosts.yaml&signers={ours.allowed}") == 8
    assert not any(elsewhere.iterdir())


@pytest.mark.fault("wrong-spec")
def test_a_commit_that_is_not_signed_by_an_allowed_key_is_refused(
    site: Secure, ours: Signer, other: Signer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.repositories = tmp_path
    url = f"git+{site.url}/git/fleet/.git@main#path=hosts.yaml&signers={ours.allowed}"
    commit = other.commit(tmp_path / "fleet", **{"hosts.yaml": TEXT})
    said = refused(url)
    assert f"expected commit {commit} to be signed by a key in {ours.allowed}, got: Good " in said and "ED25519" in said
    commit = ours.commit(tmp_path / "fleet", signed=False)
    assert f"expected commit {commit} to be signed by a key in {ours.allowed}, got: the commit is not" in refused(url)

    # A program that says yes to OpenPGP, for whatever keys it has.
    trusting = tmp_path / "gpg"
    trusting.write_text('#!/bin/sh\ncat >/dev/null\nprintf "\\n[GNUPG:] GOODSIG 0 a\\n[GNUPG:] TRUST_ULTIMATE\\n"\n')
    trusting.chmod(0o755)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "gpg.program")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(trusting))
    repository = tmp_path / "fleet"
    body = run(["git", "-C", repository, "cat-file", "commit", "HEAD"], capture_output=True, check=True).stdout
    head, _, rest = body.partition(b"\n\n")
    armored = b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----"
    words = ["git", "-C", str(repository), "hash-object", "-t", "commit", "-w", "--stdin"]
    made = run(words, input=head + b"\n" + armored + b"\n\n" + rest, capture_output=True, check=True).stdout.decode()
    run(["git", "-C", repository, "update-ref", "refs/heads/main", made.strip()], check=True)
    assert run(["git", "-C", repository, "verify-commit", "HEAD"], capture_output=True).returncode == 0
    assert f"expected commit {made.strip()} to be signed" in refused(url)


def test_the_header_goes_to_the_named_server_alone(
    site: Secure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUREADY_INVENTORY_HEADER", "Authorization: Bearer t0ken")
    elsewhere = Secure(tmp_path)
    elsewhere.files["/hosts.yaml"] = SPEC
    both = tmp_path / "both.pem"
    both.write_bytes(site.certificate.read_bytes() + elsewhere.certificate.read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(both))
    site.redirects["/moved.yaml"] = f"{elsewhere.url}/hosts.yaml"
    assert gpus(f"{site.url}/moved.yaml#sha256={SHA256}") == 8
    assert site.asked == [("GET", "/moved.yaml", "Bearer t0ken")]
    assert elsewhere.asked == [("GET", "/hosts.yaml", "")]
    elsewhere.stop()


def test_a_server_that_is_not_trusted_or_leads_away_is_refused(site: Secure, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = f"#sha256={SHA256}"
    plain = Mirror()
    plain.files["/hosts.yaml"] = SPEC
    site.redirects["/plain.yaml"] = f"{plain.url}/hosts.yaml"
    assert "cannot be fetched: unknown url type: http" in refused(f"{site.url}/plain.yaml{pinned}")
    assert plain.asked == []
    plain.stop()
    assert "/none.yaml: cannot be fetched: the server answered 404" in refused(f"{site.url}/none.yaml{pinned}")
    site.files["/large"] = bytes(MAX_BYTES + 1)
    assert "/large: printed more than 5 MB" in refused(f"{site.url}/large{pinned}")
    monkeypatch.setenv("GPUREADY_INVENTORY_HEADER", "Bearer")
    assert "GPUREADY_INVENTORY_HEADER is not a header" in refused(f"{site.url}/hosts.yaml{pinned}")
    monkeypatch.delenv("GPUREADY_INVENTORY_HEADER")
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    assert "certificate verify failed" in refused(f"{site.url}/hosts.yaml{pinned}")


def test_the_header_goes_to_one_server(site: Secure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUREADY_INVENTORY_HEADER", "Authorization: Bearer t0ken")
    urls = [f"{url}/hosts.yaml#sha256={SHA256}" for url in (site.url, "https://other.example.com")]
    with pytest.raises(UsageError, match=r"would go to several servers: 127\.0\.0\.1:[0-9]*, other\.example\.com$"):
        load([*urls, "@local"])
    assert site.asked == []


def test_how_to_choose_a_host_of_terraform_has_the_whole_url(site: Secure) -> None:
    data = b'{"hosts": {"sensitive": false, "value": ["h"]}}'
    site.files["/terraform.json"] = data
    url = f"{site.url}/terraform.json#sha256={hashlib.sha256(data).hexdigest()}"
    with pytest.raises(GpureadyError) as e:
        load([url])
    assert f"give both: -i '{url}' -i spec.yaml" in e.value.remedy
    assert "group_vars" not in e.value.remedy


def test_a_body_that_is_too_long_is_not_taken_whole(site: Secure) -> None:
    site.files["/large"], site.taken = bytes(64_000_000), []
    assert "/large: printed more than 5 MB" in refused(f"{site.url}/large#sha256={SHA256}")
    assert site.taken == []


def test_no_argument_of_a_process_has_the_url() -> None:
    assert not any("://" in word for word in fetched.https.get())


@pytest.mark.fault("hanging-download")
def test_a_server_that_never_ends_its_answer_is_given_up(site: Secure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuready.inventory.programs.TIMEOUT", 1)
    monkeypatch.setattr(fetched.https, "get", lambda: ["sh", "-c", "echo a; exec tail -f /dev/null"])
    assert "hosts.yaml: took longer than 1 s" in refused(f"{site.url}/hosts.yaml#sha256={SHA256}")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"http://h/a#sha256={SHA256}", "not supported"),
        ("ftp://h/a#sha256=1", "not supported"),
        ("https://h/a", "exactly one of sha256 and signers is required"),
        ("https://h/a#", "exactly one of sha256 and signers is required"),
        (f"https://h/a#{SHA256}", "after #, only sha256 and signers are allowed"),
        ("https://h/a#md5=1", "after #, only sha256 and signers are allowed"),
        (f"https://h/a#sha256={SHA256}&signers=/f", "exactly one of sha256 and signers is required"),
        ("https://h/a#sha256=12", "a SHA-256 has 64 digits"),
        ("https://h/a#signers=", "the file of allowed signers is missing"),
        (f"https://u:p@h/a#sha256={SHA256}", "all users of the machine see"),
        (f"https:///a#sha256={SHA256}", "no host"),
        (f"https://h:port/a#sha256={SHA256}", "Port could not be cast"),
        (f"https://h/a b#sha256={SHA256}", "a space or another invalid character"),
        ("git+https://h/r#path=a", "the commit or branch is missing"),
        ("git+https://h/r@#path=a", "the commit or branch is missing"),
        ("git+https://h/r@--upload-pack=x#path=a", "the commit or branch is missing"),
        ("git+ssh://git@h/r.git#path=a", "the commit or branch is missing"),
        ("git+https://h/r@4773614#path=a", "a commit has 40 digits"),
        (f"git+https://h/r@{'a' * 39}#path=a", "a commit has 40 digits"),
        ("git+https://h/r@main", "the path of the file is missing"),
        ("git+https://h/r@main#path=a&sha256=1", "after #, only path and signers are allowed"),
        ("git+https://u:p@h/r@main#path=a", "all users of the machine see"),
        ("git+ssh://-oProxyCommand=x/r@main#path=a", "no host"),
    ],
)
def test_a_url_that_cannot_be_checked_is_refused(url: str, said: str) -> None:
    with pytest.raises(UsageError) as e:
        source(url)
    assert said in str(e.value) and str(e.value).startswith(f"-i {url}: ")


def test_a_user_is_for_ssh() -> None:
    assert source("git+ssh://git@h/r.git@v1/x#path=a").url == "ssh://git@h/r.git"


def test_what_is_fetched_is_an_inventory_like_any_other(site: Secure) -> None:
    site.files["/odd.yaml"] = b"all: {vars: {gpuready: {hardware: {gpu: 8}}}}\n"
    sha256 = hashlib.sha256(site.files["/odd.yaml"]).hexdigest()
    with pytest.raises(GpureadyError) as e:
        load([f"{site.url}/odd.yaml#sha256={sha256}", "@local"])
    assert f"{site.url}/odd.yaml:1: " in str(e.value)

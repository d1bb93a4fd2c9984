"""Secrets are hidden, syntax stays, and what is no secret is left alone."""

import hashlib
import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuready.base.facts import KEPT
from gpuready.contract.ledger import SECRET, kept
from gpuready.model.state import File, NodeState
from gpuready.result.mask import mask, mask_state, mask_text, mask_value
from tests.verdicts import root_files

HIDDEN = (
    ("http://joe:S3KRET@proxy:3128/", "http://***@proxy:3128/"),
    ("deb https://S3KRET@repo.example/deb ./", "deb https://***@repo.example/deb ./"),
    ('Acquire::http::Proxy "http://a:S3KRET@p";', 'Acquire::http::Proxy "http://***@p";'),
    ("https://joe:S3KRET@x@host/", "https://***@host/"),
    (r'"http:\/\/joe:S3KRET@proxy"', r'"http:\/\/***@proxy"'),
    ('{"auths": {"reg": {"auth": "S3KRET=="}}}', '{"auths": {"reg": {"auth": "***"}}}'),
    ('{"auths": {"reg": {"identitytoken": "S3KRET"}}}', '{"auths": {"reg": {"identitytoken": "***"}}}'),
    ('{"password": 5318008}', '{"password": "***"}'),
    ('{"tokens": ["S3KRET", "b"], "x": 1}', '{"tokens": ["***"], "x": 1}'),
    ('{"HttpHeaders": {"X-Auth-Token": "S3KRET\\"a"}}', '{"HttpHeaders": {"X-Auth-Token": "***"}}'),
    ('{"api_key": "S3KRET"', '{"api_key": "***"'),
    ('"password": "S3KRET', '"password": "***"'),
    ('Environment="NGC_API_KEY=S3KRET" "A=b"', 'Environment="NGC_API_KEY=***" "A=b"'),
    ("REGISTRY_TOKEN=S3KRET dockerd", "REGISTRY_TOKEN=*** dockerd"),
    ('  password = "S3KRET"\n  insecure = true', '  password = "***"\n  insecure = true'),
    ("  auth = 'S3KRET'", "  auth = '***'"),
    ("dockerd --auth-token S3KRET -H fd://", "dockerd --auth-token *** -H fd://"),
    ("dockerd --cluster-secret=S3KRET -H fd://", "dockerd --cluster-secret=*** -H fd://"),
    ("machine h login joe password S3KRET", "machine h login joe password ***"),
    ("machine h\nlogin joe\npassword S3KRET", "machine h\nlogin joe\npassword ***"),
    ("curl -H 'Authorization: Bearer S3KRET'", "curl -H 'Authorization: Bearer ***'"),
    ("ansible_password: S3KRET", "ansible_password: ***"),
    ("-e ansible_password=S3KRETenv:GPUREADY_A", "-e ansible_password=***"),
    ("-e ansible_password=env:GPUREADY_A:S3KRET", "-e ansible_password=***"),
    ("private_key=S3KRET private_key_file=k", "private_key=*** private_key_file=k"),
    ("token: failed S3KRET", "token: failed ***"),
    ("'token_validator: is not S3KRET'", "'token_validator: is not ***'"),
    ("'token: is 'S3KRET''", "'token: is '***''"),
    ('token: is "S3KRET"', 'token: is "***"'),
    ("token: invalid, S3KRET", "token: ***"),
    ("token: failed-S3KRET", "token: ***"),
    ("token: is.S3KRET", "token: ***"),
    ("password: failed S3KRET", "password: ***"),
    ("token_password: not S3KRET", "token_password: ***"),
    ("TOKEN=failed", "TOKEN=***"),
    ("tokenIssuer: S3KRET", "tokenIssuer: ***"),
    ("tokenizer_token: S3KRET", "tokenizer_token: ***"),
    ("proxy_password=ab;S3KRET,ef", "proxy_password=***"),
    ("proxy_password={S3KRET S3KRET\nproxy=a", "proxy_password=***\nproxy=a"),
    ("Password = [S3KRET, ef", "Password = ***"),
    ('password="ab"S3KRET', "password=***"),
    ("password = a 'S3KRET' \"S3KRET\"", "password = ***"),
    ('password = """\nS3KRET"""', 'password = """***"""'),
    ('password = [\n  "S3KRET",\n]', 'password = ["***"]'),
    ("password = 5318008", 'password = "***"'),
    ("x -----BEGIN RSA PRIVATE KEY-----\nS3KRET\n-----END RSA PRIVATE KEY-----",
     "x -----BEGIN RSA PRIVATE KEY----- *** -----END RSA PRIVATE KEY-----"),
)  # fmt: skip
#: By shape of the file or line; fault D13 of the security review is among them.
SHAPES = {
    "yaml": "api_key: S3KRET",
    "yaml in a list": "- user: joe\n- password: S3KRET x",
    "yaml, quoted": "password: 'S3 KRET'  # note",
    "yaml, quoted key": "'password': S3KRET",
    "yaml block": "password: |\n  S3KRET\n\n  S3KRET\nnext: 1\n",
    "yaml folded in a list": "  - token: >-\n      S3KRET\n  - x: 1",
    "yaml flow": "{api_key: S3KRET, b: 1}",
    "python": "{'apikey': 'S3KRET'}",
    "json": '{"client_secret" : "S3KRET"}',
    "json list cut by an object": '"tokens": ["S3KRET", {"x": 1}]',
    "json in json": r'"annotation": "{\"password\": \"S3KRET\", \"a\": 1}"',
    "odbc": "mysql pwd=S3KRET host=x",
    "ini": "password = correct horse S3KRET",
    "toml": 'password = """S3\nKRET"""\nx = 1',
    "toml number": "access-key = 5318008",
    "env": "export HF_TOKEN=S3KRET",
    "env in env": 'Environment="A=token=S3KRET"',
    "ssh key": "ssh_key=S3KRET",
    "query": "https://x/?a=1&token=S3KRET&b=2",
    "url": "http://u:S3K/RET@h",
    "url, escaped": r"http:\/\/u:S3KRET@h",
    "flag": "run --registry-password S3KRET --x",
    "flag, quoted": "run --password 'S3 KRET' x",
    "curl": "curl -s -u joe:S3KRET https://x",
    "header": "Proxy-Authorization: Basic S3KRET==",
    "header without a scheme": "Authorization: S3KRET",
    "header in json": '"Authorization": "Bearer S3KRET"',
    "headers in json": '"authorization": ["Bearer S3KRET"]',
    "header of an API": '-H "X-Api-Key: S3KRET"',
    "cookie": "Cookie: session=S3KRET; a=b",
    "netrc": "machine h\n  login joe\n  password S3KRET\n",
    "netrc on a line": "default login joe password S3KRET",
    "pem": "-----BEGIN OPENSSH PRIVATE KEY-----\nS3KRET\n-----END OPENSSH PRIVATE KEY-----",
    "pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----\nS3KRET",
    "pem, cut": "-----BEGIN EC PRIVATE KEY-----\nS3KRET",
    "ngc": "login nvapi-S3KRETS3KRETS3KRETS3KRET",
    "github": "clone ghp_S3KRETS3KRETS3KRETS3KRET",
    "hugging face": "hf_S3KRETS3KRETS3KRET",
    "aws": "AKIAS3KRETS3KRETS3KR",
    "jwt": "eyJS3KRETS3KRET.eyJS3KRETS3KRET.S3KRET",
}
OPEN = (
    "PWD=/root",
    "OLDPWD=/var/lib",
    "author: joe",
    "authentication is off",
    "deb http://mirror.example/debian bookworm main",
    "docker://nvcr.io/nvidia/cuda@sha256:0123",
    "monkey: 1",
    "auth = true",
    "docker run --gpus all --shm-size 8g ubuntu@sha256:ab",
    "/usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock",
    "BOOT_IMAGE=/vmlinuz-6.1.0 root=UUID=0a1b ro quiet iommu=pt",
    'disabled_plugins = ["cri"]\nversion = 3\n[plugins."io.containerd.cri.v1.runtime"]',
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    '"keys": {"a": 1}',
    "key: value",
    "tcp://10.0.0.1:2375",
    "git@github.com: Permission denied (publickey).",
    "sudo asks for a password",
    "a password is required; the login user may not use sudo",
    "deb [signed-by=/etc/apt/keyrings/nvidia.asc] https://nvidia.github.io/x ./",
    '{"authorization-plugins": ["opa"], "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}',
    '{"log-opts": {"max-size": "10m"}, "insecure-registries": ["10.0.0.1:5000"]}',
    "repository.key: (none) -> C95B321B61E88C1809C4F759DDCAE044F796ECB0",
    'mode = "auto"\naccept-nvidia-visible-devices-envvar-when-unprivileged = true',
    "admin@10.0.0.7: Permission denied (publickey)",
    "gpuready trust -i hosts.yaml -e ansible_ssh_private_key_file=~/.ssh/lab -e ansible_private_key_file=k",
    "ansible_ssh_private_key_file: ~/.ssh/lab",
    '{"ansible_ssh_private_key_file": "lab"}',
    "-e ansible_become_password=env:GPUREADY_SUDO",
    '{"ansible_become_password": "env:GPUREADY_SUDO"}',
    '{"password": ""}',
    "error: not known: 'tokenizer: has no vocabulary'",
    "AutoTokenizer: Unable to load",
    "tokenization_utils.py: failed",
    "not known: 'token_validator: failed'",
    'not known: "AccessToken: is not valid"; see the log',
)


def test_a_query_that_opens_a_url() -> None:
    text = "https://h/a?X-Amz-Date=1&X-Amz-Signature=s3cret#sha256=1, https://h/a?sig=s3%2Fcret&se=2 signal sig=11"
    assert mask_text(text) == "https://h/a?X-Amz-Date=1&X-Amz-Signature=***, https://h/a?sig=*** signal sig=11"


@pytest.mark.parametrize(("text", "masked"), HIDDEN)
def test_hidden(text: str, masked: str) -> None:
    assert mask_text(text) == masked
    assert mask_text(masked) == masked


@pytest.mark.parametrize("text", OPEN)
def test_open(text: str) -> None:
    assert mask_text(text) == text


@pytest.mark.fault("D13", "missed-secrets")
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_a_secret(shape: str) -> None:
    masked = mask_text(SHAPES[shape])
    assert "***" in masked and not {word for word in ("S3", "KRET", "5318008") if word in masked}, masked
    assert mask_text(masked) == masked


#: Beginnings of what the patterns look for, and what they pass over.
PUMPS = (
    "auth-", "auth.", "token", "password ", "-----BEGIN ", "-", "a", " ", "\n", '"', "'", "\\", '\\"', "=", ":", "://",
    "://a:", "a:", "a=", "token=", "token: ", '"token":', '"token":[', "'token':", '"token": "', "--", "--token",
    "machine ", "machine a password", "password\n", "- ", "-a: ", "[", "{a: ",
    '"""', "'''", 'token="""', "authorization", "cookie:x ",
    "curl -u a:", "eyJaaaaaaaa.", "eyJ-", "token: |\n ", " token: >\n", "@", "\u00fc", "token = ",
    "password=", 'password="', '\\"token\\": ',
)  # fmt: skip


def seconds(text: str) -> float:
    began = time.process_time()
    mask_text(text)
    return time.process_time() - began


@pytest.mark.fault("D3")
@pytest.mark.fault("slow-masking")
@pytest.mark.parametrize("pump", PUMPS)
def test_time_grows_with_the_length_alone(pump: str) -> None:
    for head, tail in (("", ""), ('"token": [', "\0"), ("machine token=", "=")):
        few, many = (head + pump * (length // len(pump)) + tail for length in (2_000, 8_000))
        took = min(seconds(many) for _ in range(3))
        assert took < 0.05 or took < 8 * max(seconds(few) for _ in range(3)), (pump, head)


_NAMES = st.sampled_from(
    ["password", "auth", "runtimes", "token", "path", "tokens", "key", "api-key", "features"]
) | st.text(max_size=8)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(_JSON)
@example({"password": ["]"]})
@example({"token": [["}"]]})
def test_json_stays_json(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=2), json.dumps(value, ensure_ascii=False)):
        once = mask_text(text)
        json.loads(once)
        assert mask_text(once) == once


@given(st.text(alphabet=st.characters(), max_size=200))
def test_any_text_is_masked_once(text: str) -> None:
    assert mask_text(mask_text(text)) == mask_text(text)


def test_keys_hide_their_strings() -> None:
    assert mask({"a": {"token": "x", "n": 1}, "b": ["http://u:p@h"]}) == {
        "a": {"token": "***", "n": 1},
        "b": ["http://***@h"],
    }
    assert mask_value("docker.auth", "x") == "***"
    assert mask_value("docker.live-restore", False) is False


def test_a_masked_state_is_marked_and_loads() -> None:
    file = File(text='{"auth": "x"}', mode=0o644, uid=0, gid=0, mtime=0)
    state = NodeState.model_validate(mask_state(NodeState(files={"/root/.docker/config.json": file})))
    assert state.masked and state.files["/root/.docker/config.json"].text == '{"auth": "***"}'


@pytest.mark.fault("D9")
def test_a_masked_state_has_no_hash_of_a_secret() -> None:
    """The rest of the file is in the state: with its hash, a password can be guessed without asking anybody."""
    text = '{"proxies": {"http-proxy": "http://me:hunter2@proxy:3128"}}'
    digest = hashlib.sha256(text.encode()).hexdigest()
    texts = {
        "/etc/docker/daemon.json": text,
        f"{KEPT}/etc/docker/daemon.json.ours": f"{digest}\n",
        f"{KEPT}/etc/docker/daemon.json.original": text,
        "/etc/edited.json": "{}",
        f"{KEPT}/etc/edited.json.ours": f"{digest[::-1]}\n",
        f"{KEPT}/etc/gone.json.ours": "absent\n",
        f"{KEPT}/etc/proxy.ours": f"{SECRET}\n",
    }
    shown = mask_state(NodeState(files=root_files(texts)))
    assert "hunter2" not in json.dumps(shown) and digest not in json.dumps(shown)
    assert digest[::-1] not in json.dumps(shown)
    state = NodeState.model_validate(shown)
    record = kept(state, "/etc/docker/daemon.json")
    assert record is not None and state.sha256("/etc/docker/daemon.json") in record.ours, "it is still as we left it"
    assert state.files[f"{KEPT}/etc/edited.json.ours"].text == "***"
    assert state.files[f"{KEPT}/etc/gone.json.ours"].text == "absent\n"
    assert state.files[f"{KEPT}/etc/proxy.ours"].text == f"{SECRET}\n"

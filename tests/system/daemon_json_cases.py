"""The daemon.json files that users have, and what must become of each: data of test_daemon_json.py.

Which engine starts with which file was tried on both: 26.1 (Debian 13) and 20.10 (Debian 12). A file that an engine
does not start with is put in place under an engine that runs already.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.system.docker_node import DOCKERD

BOTH = ("debian13", "debian12")
OURS: dict[str, object] = {"runtimes.nvidia.path": "nvidia-container-runtime", "live-restore": True}
RUNTIME = {"runtimes.nvidia.path": "nvidia-container-runtime"}
LIVE = {"live-restore": True}


def encoded(value: object, **options: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, **options).encode()  # type: ignore[arg-type]


@dataclass(frozen=True)
class Case:
    """One row. ``error`` (a pattern of the message) set: nothing may change; else ``ours`` is what the file gains.

    ``starts`` names the engines that start with the file.
    """

    name: str
    content: bytes | None = None
    ours: Mapping[str, object] = field(default_factory=lambda: OURS)
    error: str = ""
    arrange: str = ""
    dockerd: str = DOCKERD
    flags: str = ""
    spec: Mapping[str, object] = field(default_factory=dict)
    starts: tuple[str, ...] = BOTH


def docker(**settings: object) -> dict[str, object]:
    return {"runtimes": {"docker": settings}}


RICH = {
    "shutdown-timeout": 17,
    "features": {"containerd-snapshotter": False, "buildkit": True},
    "log-opts": {"max-size": "10m", "max-file": "3", "tag": "{{.Name}}/<&>"},
    "log-driver": "json-file",
    "labels": ["ort=München", "名前=ノード", 'a=b\\c"d\u2028'],
    "default-address-pools": [{"base": "172.30.0.0/16", "size": 24}, {"size": 26, "base": "172.31.0.0/16"}],
    "default-ulimits": {"cpu": {"Name": "cpu", "Soft": 9007199254740993, "Hard": 2**63 - 1}},
    "registry-mirrors": ["https://mirror.example/"],
    "insecure-registries": ["10.0.0.0/8"],
    "node-generic-resources": ["gpu=GPU-1", "gpu=GPU-2"],
    "runtimes": {"kept": {"path": "runc", "since": 2**63, "ratio": 1.10}},
    "debug": True,
}
OTHERS = {
    "default-runtime": "slow",
    "runtimes": {
        "alt": {"path": "/usr/sbin/runc"},
        "slow": {"path": "runc", "runtimeArgs": ["--debug", "--log=/dev/null"]},
    },
}
OTHER_PATH = {
    "runtimes": {
        "nvidia": {"runtimeArgs": ["--debug"], "path": "/opt/toolkit/nvidia-container-runtime"},
        "alt": {"path": "runc"},
    }
}
OPERATORS = {"runtimes": {"nvidia": {"path": "/usr/local/nvidia/toolkit/nvidia-container-runtime"}}}
ABSOLUTE = {"path": "/usr/bin/nvidia-container-runtime", "args": []}

CONVERGED = (
    Case("absent"),
    Case("no-directory", arrange="rm -rf /etc/docker"),
    Case("empty", b"", starts=("debian13",)),
    Case("byte-order-mark", b"\xef\xbb\xbf" + encoded({"debug": True}), starts=("debian13",)),
    Case("escapes", b'{\r\n\t"labels" : ["half=\\ud800", "amp=\\u003c&>\\u2028", "slash=\\/"]}\r\n'),
    Case("rich", encoded(RICH, indent=3)),
    Case("runtimes-of-others", encoded(OTHERS)),
    Case("nvidia-other-path", encoded(OTHER_PATH)),
    Case("nvidia-of-the-gpu-operator", encoded(OPERATORS), ours={}),
    Case("nvidia-absolute-path", encoded({"runtimes": {"nvidia": ABSOLUTE}}), ours=LIVE),
    Case("nothing-to-do", encoded({"live-restore": True, "runtimes": {"nvidia": ABSOLUTE}}), ours={}),
    Case("edited-not-loaded", encoded({"live-restore": True, "runtimes": {"nvidia": ABSOLUTE}}), ours={}, starts=()),
    Case("empty-objects", encoded({"runtimes": {}, "features": {}, "log-opts": {}})),
    Case("runtimes-null", encoded({"runtimes": None, "debug": True})),
    Case("live-restore-false", encoded({"live-restore": False, "max-concurrent-uploads": 2}), ours=RUNTIME),
    Case(
        "default-nvidia-asked",
        encoded(OTHERS),
        ours={**OURS, "default-runtime": "nvidia"},
        spec=docker(default_runtime=True),
    ),
    Case("default-nvidia-unasked", encoded({"default-runtime": "nvidia", "runtimes": {"nvidia": ABSOLUTE}}), ours=LIVE),
    Case(
        "default-nvidia-taken-back",
        encoded({"default-runtime": "nvidia", "runtimes": {"nvidia": ABSOLUTE}}),
        ours={**LIVE, "default-runtime": "runc"},
        spec=docker(default_runtime=False),
    ),
    Case(
        "live-restore-off-by-spec",
        encoded({"live-restore": True}),
        ours={**RUNTIME, "live-restore": False},
        spec=docker(live_restore=False),
    ),
    Case(
        "relative-link",
        encoded({"debug": True}),
        arrange="mkdir -p /srv/docker/conf; mv /etc/docker/daemon.json /srv/docker/conf/engine.json\n"
        "ln -s ../../srv/docker/conf/engine.json /etc/docker/daemon.json",
    ),
    Case(
        "dangling-link", arrange="mkdir -p /srv/docker/conf; ln -s /srv/docker/conf/engine.json /etc/docker/daemon.json"
    ),
    Case(
        "mode-0600-other-owner",
        encoded({"debug": True}),
        arrange="chown nobody:docker /etc/docker/daemon.json; chmod 600 /etc/docker/daemon.json",
    ),
    Case("hosts-key", encoded({"hosts": ["unix:///run/other.sock", "fd://"]}), dockerd="/usr/sbin/dockerd"),
    Case("flag-default-runtime", flags="--default-runtime=runc"),
    Case("flag-live-restore", flags="--live-restore", ours=RUNTIME),
    Case(
        "flag-add-runtime",
        flags="--add-runtime nvidia=/usr/bin/nvidia-container-runtime --add-runtime=alt=runc",
        ours=LIVE,
    ),
    Case("flag-config-file-same", encoded({"debug": True}), flags="--config-file /etc/docker/daemon.json"),
)
ERRORS = (
    Case("trailing-comma", b'{\n  "debug": true,\n}\n', error="line 2, column 16: a trailing comma", starts=()),
    Case("twice", b'{"debug": true, "labels": [],\n "debug": false}', error="line 2, column 2: duplicate key 'debug'"),
    Case("comment", b'{\n  "debug": true // why\n}\n', error="line 2, column 17: JSON has no comments", starts=()),
    Case("utf-16", '{"debug": true}'.encode("utf-16"), error="it is UTF-16; save it as UTF-8", starts=("debian13",)),
    Case("latin-1", '{"labels": ["ort=München"]}'.encode("latin-1"), error="it is not UTF-8", starts=("debian12",)),
    Case("unknown-key", encoded({"no-such-key": 1, "debug": True}), error="no-such-key", starts=()),
    Case(
        "wrong-type",
        encoded({"debug": "yes"}),
        error="(?i)debug of type \\*?bool|cannot unmarshal string",
        starts=(),
    ),
    Case(
        "hosts-key-and-flag",
        encoded({"hosts": ["unix:///run/other.sock"]}),
        error="hosts",
        starts=(),
    ),
    Case("default-missing", encoded({"default-runtime": "nope"}), error="nope", starts=()),
    Case("name-reserved", encoded({"runtimes": {"runc": {"path": "/usr/bin/runc"}}}), error="runtimes.runc", starts=()),
    Case(
        "directory",
        arrange="mkdir /etc/docker/daemon.json; touch /etc/docker/daemon.json/x",
        error="is not a regular file",
        starts=(),
    ),
    Case("flag-other-runtime", flags="--add-runtime alt=runc", error="--add-runtime"),
    Case(
        "flag-default-and-asked",
        flags="--default-runtime=runc",
        spec=docker(default_runtime=True),
        error="--default-runtime",
    ),
    Case("flag-live-restore-and-off", flags="--live-restore", spec=docker(live_restore=False), error="--live-restore"),
    Case(
        "flag-config-file",
        arrange="echo '{}' >/etc/docker/other.json",
        flags="--config-file=/etc/docker/other.json",
        error="/etc/docker/other.json",
    ),
)
CASES = (*CONVERGED, *ERRORS)

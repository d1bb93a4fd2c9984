"""daemon.json as installers and platforms leave it, in our own words; more rows for the table.

After: kubeadm with cri-dockerd, NVIDIA's guides, the image of EKS, Docker Desktop's editor. Which engine starts with
which file was tried on both.
"""

import json

from tests.system.daemon_json_cases import LIVE, OURS, RUNTIME, Case, docker, encoded

_SYSTEMD = {"exec-opts": ["native.cgroupdriver=systemd"]}
_ROTATED = {"log-driver": "json-file", "log-opts": {"max-size": "100m", "max-file": "5"}}
# They raise memlock and more files, which the lab's host may not give to a machine.
_LIMITS = {"nofile": {"Name": "nofile", "Hard": 8192, "Soft": 4096}}
_GUIDE = {"path": "nvidia-container-runtime", "runtimeArgs": []}
_DESKTOP = {"builder": {"gc": {"defaultKeepStorage": "20GB", "enabled": True}}, "experimental": False}

SHAPES = (
    Case("kubeadm", encoded({**_SYSTEMD, **_ROTATED, "storage-driver": "overlay2"}, indent=2)),
    Case("cri-dockerd", encoded({**_SYSTEMD, "live-restore": True, "max-concurrent-downloads": 10}), ours=RUNTIME),
    Case("nvidia-guide", encoded({"runtimes": {"nvidia": _GUIDE}}, indent=4), ours=LIVE),
    Case(
        "nvidia-guide-default",
        encoded({"default-runtime": "nvidia", "runtimes": {"nvidia": _GUIDE}, **_SYSTEMD}),
        ours=LIVE,
    ),
    Case("eks", encoded({"bridge": "none", **_ROTATED, "live-restore": True, "default-ulimits": _LIMITS}), RUNTIME),
    Case("journald", encoded({"log-driver": "journald", "log-opts": {"tag": "{{.Name}}"}})),
    Case("local-log", encoded({"log-driver": "local", "log-opts": {"max-size": "5m"}, "log-level": "error"})),
    Case("dns", encoded({"dns": ["198.18.0.1"], "dns-search": ["cluster.example"], "dns-opts": ["ndots:2"]})),
    Case("slice", encoded({"cgroup-parent": "docker.slice", **_SYSTEMD})),
    Case("metrics", encoded({"metrics-addr": "127.0.0.1:9323", "experimental": True})),
    Case("cgroupns", encoded({"default-cgroupns-mode": "host", "default-ipc-mode": "shareable"})),
    Case("desktop-crlf", json.dumps(_DESKTOP, indent=2).replace("\n", "\r\n").encode()),
    Case("tabs", json.dumps({"debug": True, **_ROTATED}, indent="\t").encode() + b"\n"),
    Case("group", encoded({"group": "docker", "debug": False})),
    Case(
        "shm-by-spec",
        encoded({**_SYSTEMD, "default-shm-size": "128M"}),
        ours={**OURS, "default-shm-size": "8g"},
        spec=docker(shm_size="8g"),
    ),
    Case(
        "two-names-default-asked",
        encoded({"runtimes": {"nvidia": _GUIDE, "nvidia-legacy": {"path": "nvidia-container-runtime"}}}),
        ours={"live-restore": True, "default-runtime": "nvidia"},
        spec=docker(default_runtime=True),
    ),
)

"""daemon.json as installers and platforms leave it, in our own words; more rows for the table.

After: kubeadm with cri-dockerd, Kubespray, DeepOps, NVIDIA's guides, the images of EKS, GKE and AKS, registry mirrors,
hardening guides, Docker Desktop's editor. Which engine starts with which file was tried on both.
"""

from __future__ import annotations

import json

from tests.system.daemon_json_cases import ABSOLUTE, LIVE, RUNTIME, Case, docker, encoded

_SYSTEMD = {"exec-opts": ["native.cgroupdriver=systemd"]}
_ROTATED = {"log-driver": "json-file", "log-opts": {"max-size": "100m", "max-file": "5"}}
# They raise memlock and more files, which the lab's host may not give to a machine.
_LIMITS = {"nofile": {"Name": "nofile", "Hard": 8192, "Soft": 4096}}
_GUIDE = {"path": "nvidia-container-runtime", "runtimeArgs": []}
_DESKTOP = {"builder": {"gc": {"defaultKeepStorage": "20GB", "enabled": True}}, "experimental": False}

SHAPES = (
    Case("kubeadm", encoded({**_SYSTEMD, **_ROTATED, "storage-driver": "overlay2"}, indent=2)),
    Case("cri-dockerd", encoded({**_SYSTEMD, "live-restore": True, "max-concurrent-downloads": 10}), ours=RUNTIME),
    Case("kubespray", encoded({**_SYSTEMD, **_ROTATED, "insecure-registries": ["10.233.0.0/18"], "iptables": True})),
    Case("nvidia-guide", encoded({"runtimes": {"nvidia": _GUIDE}}, indent=4), ours=LIVE),
    Case(
        "nvidia-guide-default",
        encoded({"default-runtime": "nvidia", "runtimes": {"nvidia": _GUIDE}, **_SYSTEMD}),
        ours=LIVE,
    ),
    Case(
        "deepops",
        encoded(
            {
                "default-runtime": "nvidia",
                "default-shm-size": "1G",
                "default-ulimits": {**_LIMITS, "stack": {"Name": "stack", "Hard": 67108864, "Soft": 67108864}},
                "runtimes": {"nvidia": _GUIDE},
            },
            indent=4,
        ),
        ours=LIVE,
    ),
    Case("eks", encoded({"bridge": "none", **_ROTATED, "live-restore": True, "default-ulimits": _LIMITS}), RUNTIME),
    Case(
        "gke", encoded({"live-restore": True, "storage-driver": "overlay2", "mtu": 1460, "log-level": "warn"}), RUNTIME
    ),
    Case(
        "aks-gpu",
        encoded({"live-restore": True, **_ROTATED, "default-runtime": "nvidia", "runtimes": {"nvidia": ABSOLUTE}}),
        ours={},
    ),
    Case("mirror", encoded({"registry-mirrors": ["https://m.example"], "insecure-registries": ["r.example:5000"]})),
    Case("journald", encoded({"log-driver": "journald", "log-opts": {"tag": "{{.Name}}"}})),
    Case("local-log", encoded({"log-driver": "local", "log-opts": {"max-size": "5m"}, "log-level": "error"})),
    Case("dns", encoded({"dns": ["198.18.0.1"], "dns-search": ["cluster.example"], "dns-opts": ["ndots:2"]})),
    Case("slice", encoded({"cgroup-parent": "docker.slice", **_SYSTEMD})),
    Case(
        "hardened",
        encoded({"icc": False, "userland-proxy": False, "no-new-privileges": True, "live-restore": True}),
        RUNTIME,
    ),
    Case("metrics", encoded({"metrics-addr": "127.0.0.1:9323", "experimental": True})),
    Case("pools", encoded({"default-address-pools": [{"base": "10.199.0.0/16", "size": 24}]})),
    Case("cgroupns", encoded({"default-cgroupns-mode": "host", "default-ipc-mode": "shareable"})),
    Case("buildkit", encoded({"features": {"buildkit": True}, "builder": {"gc": {"enabled": True}}})),
    Case("desktop-crlf", json.dumps(_DESKTOP, indent=2).replace("\n", "\r\n").encode()),
    Case("tabs", json.dumps({"debug": True, **_ROTATED}, indent="\t").encode() + b"\n"),
    Case("group", encoded({"group": "docker", "debug": False})),
    Case("limits", encoded({"max-concurrent-uploads": 2, "max-download-attempts": 9, "shutdown-timeout": 60})),
    Case("live-restore-off", encoded({**_SYSTEMD, "live-restore": False}), RUNTIME),
    Case(
        "shm-by-spec",
        encoded({**_SYSTEMD, "default-shm-size": "128M"}),
        ours={"runtimes.nvidia.path": "nvidia-container-runtime", "live-restore": True, "default-shm-size": "8g"},
        spec=docker(shm_size="8g"),
    ),
    Case(
        "two-names-default-asked",
        encoded({"runtimes": {"nvidia": _GUIDE, "nvidia-legacy": {"path": "nvidia-container-runtime"}}}),
        ours={"live-restore": True, "default-runtime": "nvidia"},
        spec=docker(default_runtime=True),
    ),
)

"""Kubernetes on one test machine: etcd, API server, controller manager, scheduler and kubelet over containerd 2.

They are built from Kubernetes' own module, and kubectl is Debian's. Cold, the build takes ten minutes of CPU time and
2 GB, so the tests with a cluster are a tier of their own. Pods run in the machine's network, so no network plugin is
needed. A machine is a container without the controllers of cgroups, so kubelet limits no pod.
"""

import json
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.lab import cache, cri, golang, host, scale
from tests.lab.host import LabError
from tests.lab.image import DOCKER_IMAGE
from tests.lab.kubectl import kubectl
from tests.lab.machine import Machine

VERSION = "1.36.4"
_SOURCE = Path(__file__).with_suffix(".go")
_PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
_FOLDER = "/etc/kubernetes"
_CONFIG = f"--kubeconfig={_FOLDER}/admin.conf"
_KEY = f"{_FOLDER}/accounts.key"
_CERTIFICATE = f"{_FOLDER}/apiserver.crt"
_FLAGS = {
    "etcd": "--data-dir=/var/lib/etcd --unsafe-no-fsync --log-level=warn",
    "kube-apiserver": f"--etcd-servers=http://127.0.0.1:2379 --cert-dir={_FOLDER} --advertise-address={{address}} "
    f"--token-auth-file={_FOLDER}/tokens --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction "
    f"--service-cluster-ip-range=10.96.0.0/16 --service-account-issuer=https://lab "
    f"--service-account-key-file={_KEY} --service-account-signing-key-file={_KEY}",
    "kube-controller-manager": f"{_CONFIG} --leader-elect=false --root-ca-file={_CERTIFICATE} "
    f"--service-account-private-key-file={_KEY}",
    "kube-scheduler": f"{_CONFIG} --leader-elect=false",
    "kubelet": f"--kubeconfig={_FOLDER}/kubelet.conf --config={_FOLDER}/kubelet.yaml --node-ip={{address}}",
}
_KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "staticPodPath": f"{_FOLDER}/manifests",
    "cgroupsPerQOS": False,
    "enforceNodeAllocatable": [],
    "localStorageCapacityIsolation": False,
    "cpuCFSQuota": False,
    "singleProcessOOMKill": True,
    "failSwapOn": False,
    "failCgroupV1": False,
    "imageGCHighThresholdPercent": 100,
    "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%"},
    "resolvConf": "",
}
#: containerd is ready for pods when there is a network, which those in the machine's own never ask.
_NETWORK = {"cniVersion": "0.4.0", "name": "lab", "plugins": [{"type": "none"}]}
#: kubelet wants to set these, but the kernel's settings are the host's: it sees them as it wants them.
_KERNEL = """
ln -sf /dev/null /dev/kmsg
while read -r path value; do
  [ "$(cat /proc/sys/$path)" != "$value" ] || continue
  mkdir -p /run/kernel/${path%/*}
  echo "$value" >/run/kernel/$path
  mount --bind /run/kernel/$path /proc/sys/$path
done <<'X'
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
X
"""
_UNIT = "[Service]\nExecStart=/usr/local/bin/{name} {flags}\nRestart=on-failure\nRestartSec=1\nTimeoutStopSec=1\n"


def programs() -> Path:
    """A directory with the programs of a cluster."""
    flags = f"-s -w -X k8s.io/component-base/version.gitVersion=v{VERSION}"
    recipe = {"source": _SOURCE.read_text("utf-8"), "flags": flags, "architecture": host.architecture()}

    def build(into: Path) -> None:
        scratch = into / "build"
        scratch.mkdir()
        module = golang.module(f"k8s.io/kubernetes@v{VERSION}")
        # Its go.mod replaces its parts by directories that the module does not have; they are modules, too.
        text = (module / "go.mod").read_text("utf-8")
        text = re.sub(r"=> \./staging/src/(\S+)", rf"=> \1 v0{VERSION[1:]}", text)
        text = re.sub(r"(?m)^module .*", "module lab/kubernetes", text)
        (scratch / "go.mod").write_text(f"{text}\nrequire k8s.io/kubernetes v{VERSION}\n", "utf-8")
        shutil.copyfile(module / "go.sum", scratch / "go.sum")
        shutil.copyfile(_SOURCE, scratch / "main.go")
        own = {"GOFLAGS": "-trimpath -mod=mod -buildvcs=false", "CGO_ENABLED": "0"}
        words = ("build", "-ldflags", flags, "-o", into / "bin/kubernetes", ".")
        host.sh("nice", golang.go(), *words, env=golang.environment() | own, cwd=scratch)
        for name in _PROGRAMS:
            (into / "bin" / name).symlink_to("kubernetes")
        shutil.rmtree(scratch)

    return cache.cached("kubernetes", recipe, build) / "bin"


class Cluster:
    """A cluster of one machine. ``config``: by which kubectl, and so gpuready, finds it; ``env``: kubectl's own."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.node = machine, machine.name
        self.config = machine.home / "kubeconfig"
        self.env = {"KUBECONFIG": str(self.config), "HOME": str(machine.home)}  # where its cache lies

    def start(self) -> None:
        """Give the running machine Kubernetes, and wait until its node is ready."""
        machine, tokens = self.machine, {name: secrets.token_hex(16) for name in ("admin", f"system:node:{self.node}")}
        cri.prepare(machine, cri.containerd2())
        machine.put(programs(), "/usr/local/bin")
        groups = ("system:masters", "system:nodes")
        rows = (f"{tokens[user]},{user},{user},{group}\n" for user, group in zip(tokens, groups, strict=True))
        self._write(f"{_FOLDER}/tokens", "".join(rows))
        for name, token in zip(("admin", "kubelet"), tokens.values(), strict=True):
            self._write(f"{_FOLDER}/{name}.conf", self.access(token, _CERTIFICATE))
        self._write(f"{_FOLDER}/kubelet.yaml", json.dumps(_KUBELET))
        self._write("/etc/cni/net.d/10-lab.conflist", json.dumps(_NETWORK))
        for name, flags in _FLAGS.items():
            self._write(
                f"/etc/systemd/system/{name}.service",
                _UNIT.format(name=name, flags=flags.format(address=machine.address)),
            )
        machine.sh(
            f"ssh-keygen -q -t rsa -m PEM -N '' -f {_KEY}; mkdir -p {_FOLDER}/manifests; systemctl daemon-reload"
        )
        machine.sh("systemctl start etcd kube-apiserver")
        certificate = machine.root / _CERTIFICATE.lstrip("/")
        self.until(certificate.exists, "the API server's certificate")
        self.config.write_text(self.access(tokens["admin"]), "utf-8")
        self.until_served()
        machine.sh(f"{_KERNEL}systemctl start kube-controller-manager kube-scheduler kubelet")
        self.until(lambda: "True" in self.condition("Ready"), "the node's readiness")
        self.until(lambda: self.ask("get", "serviceaccount", "default", check=False), "the account of pods")

    def _write(self, path: str, text: str) -> None:
        place = self.machine.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")

    def access(self, token: str, certificate: str = "") -> str:
        """A kubeconfig with this token, for this host unless it has another place for the certificate."""
        certificate = certificate or str(self.machine.root / _CERTIFICATE.lstrip("/"))
        server = {"server": f"https://{self.machine.address}:6443", "certificate-authority": certificate}
        context = {"name": "lab", "context": {"cluster": "lab", "user": "lab"}}
        parts = {"clusters": [{"name": "lab", "cluster": server}], "users": [{"name": "lab", "user": {"token": token}}]}
        whole = {"apiVersion": "v1", "kind": "Config", **parts, "contexts": [context], "current-context": "lab"}
        return json.dumps(whole)

    def ask(self, *words: str, stdin: str | None = None, check: bool = True) -> str:
        """What kubectl prints; empty if it fails and ``check`` is off."""
        done = subprocess.run(
            [kubectl() / "kubectl", *words],
            input=stdin,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=scale.seconds(60),
            check=False,
        )
        if done.returncode and check:
            raise LabError(f"kubectl {' '.join(words)}: {done.stderr}")
        return "" if done.returncode else done.stdout

    def apply(self, *objects: Mapping[str, Any], options: tuple[str, ...] = ()) -> str:
        """What kubectl apply says of these objects."""
        return self.ask("apply", *options, "-f", "-", stdin=yaml.safe_dump_all(objects))

    def condition(self, name: str) -> str:
        """The status of a condition of the node."""
        path = f"jsonpath={{.status.conditions[?(@.type=='{name}')].status}}"
        return self.ask("get", "node", self.node, "-o", path, check=False)

    def until_served(self) -> None:
        """Wait until the API server answers."""
        self.until(lambda: self.ask("get", "--raw", "/readyz", check=False) == "ok", "an answer of the API server")

    def until(self, condition: Any, what: str, seconds: float = 90) -> None:
        """Wait for something to come true; else say what the cluster logged."""
        limit = scale.Limit(seconds)
        while not condition():
            if limit.over():
                log = "journalctl -q --no-pager -o cat -n 15 -u {} | cut -c 1-300"
                told = self.machine.run("; ".join(log.format(name) for name in _FLAGS), check=False).stdout
                pods = self.ask("get", "pods", "-A", "-o", "wide", check=False)
                raise LabError(f"{what} did not come\n{pods}{told}")
            time.sleep(0.2)


def pod_spec(**spec: Any) -> dict[str, Any]:
    """The spec of a pod that needs no network; its container ``main`` gets what is given as ``main``."""
    main = {"name": "main", "image": f"docker.io/library/{DOCKER_IMAGE}", "imagePullPolicy": "Never"}
    main |= {"command": ["sh", "-c", "trap exit TERM; sleep 9999 & wait"], **spec.pop("main", {})}
    return {"hostNetwork": True, "containers": [main], **spec}

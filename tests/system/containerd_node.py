"""A machine's containerd as a test sees it: put into a known state, then look at all that may not change.

What holds is asked through CRI or of ``containerd config dump``, never through ``ctr``, which passes by it.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuready.components.containerd.files import leaves
from gpuready.components.containerd.removal import OURS
from gpuready.components.containerd.state import effective
from tests.lab import Machine, cri

CONFIG = "/etc/containerd/config.toml"
UNIT = "containerd.service"
DROP_IN = f"/etc/systemd/system/{UNIT}.d/case.conf"
_CLEAR = f"""
if [ -e /run/work.pod ]; then crictl rmp -f $(cat /run/work.pod) >/dev/null; rm -f /run/work.pod /run/pod.pid; fi
rm -rf /etc/containerd /srv/containerd /var/lib/gpuready/backup/etc/containerd {OURS}
if [ -e {DROP_IN} ]; then rm -r {DROP_IN.rpartition("/")[0]}; systemctl daemon-reload; fi
mkdir -p /etc/containerd
"""
_LOOK = f"""
for f in $(find /etc/containerd /srv/containerd -type f -o -type l 2>/dev/null); do
  echo "file $f $(stat -c '%i %.Y %a %U:%G %F' "$f" | tr ' ' '_') $(base64 -w0 <"$f")"
done
echo "unit $(systemctl show -p ActiveState --value {UNIT}) $(systemctl show -p MainPID --value {UNIT})"
# The files that were read stand there in any order, anew each time.
if [ -e {CONFIG} ]; then containerd config dump; else containerd -c /dev/null config dump; fi 2>/dev/null |
  grep -v '^imports = ' | base64 -w0 | sed 's/^/dump /'; echo
# containerd 1.6 is ready for systemd before its CRI is.
until i=$(crictl info 2>&1) || ! echo "$i" | grep -q 'not initialized'; do sleep 0.1; done
echo "info $(crictl info 2>/dev/null | base64 -w0)"
echo "pod $([ -e /run/pod.pid ] && cat /proc/$(cat /run/pod.pid)/stat | cut -d' ' -f1,22)"
echo "docker $(systemctl show -p MainPID --value docker.service)"
"""
_POD = """
cd /run
NETWORK='"linux":{"security_context":{"namespace_options":{"network":2}}}'
echo '{"metadata":{"name":"work","uid":"work","namespace":"test"},"log_directory":"/run/podlog",'"$NETWORK"'}' >pod.json
echo '{"metadata":{"name":"work"},"image":{"image":"busybox:lab"},"command":["sleep","100000"],"log_path":"work.log",'"$NETWORK"'}' >work.json
POD=$(crictl runp RUNTIME pod.json)
ID=$(crictl create "$POD" work.json pod.json)
crictl start "$ID"
echo "$ID" >/run/work.id
echo "$POD" >/run/work.pod
crictl inspect -o go-template --template '{{.info.pid}}' "$ID" >/run/pod.pid
"""  # noqa: E501


@dataclass(frozen=True)
class Seen:
    """What was there: every file (state and content), the unit, the dump, the running engine's own words, the pod."""

    files: dict[str, tuple[str, bytes]]
    unit: str
    dump: str
    info: dict[str, Any]
    pod: str
    docker: str

    @property
    def contents(self) -> dict[str, bytes]:
        """The files without inode and times."""
        return {path: content for path, (_, content) in self.files.items()}

    @property
    def text(self) -> str:
        """The main file."""
        return self.contents[CONFIG].decode()

    def settings(self, *, ours: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
        """All that the dump says, but for nvidia, the keys of ``ours`` and the files' own names."""
        return {
            path: value
            for path, value in leaves(effective(self.dump).whole).items()
            if "nvidia" not in path[4:5] and path[-1] not in ours and path[0] not in ("imports", "version")
        }

    @property
    def runtimes(self) -> dict[str, Any]:
        """The runtimes of the engine that runs, as it tells a client of the CRI."""
        found: dict[str, Any] = self.info["containerd"]["runtimes"]
        return found


class ContainerdNode:
    """The containerd of one machine."""

    def __init__(self, machine: Machine, version: str) -> None:
        self.machine, self.name, self.version, self.sh = machine, machine.name, version, machine.sh
        cri.prepare(machine, cri.containerd2() if version.startswith("2") else None)

    def prepare(self, files: Mapping[str, str], arrange: str = "", drop_in: str = "") -> Seen:
        """containerd runs with these files; ``arrange`` is a script after they were written, before it is started."""
        script = _CLEAR
        for path, text in files.items():
            content = base64.b64encode(text.encode()).decode()
            script += f"mkdir -p {path.rpartition('/')[0]}; echo {content} | base64 -d >{path}\n"
        if drop_in:
            content = base64.b64encode(drop_in.encode()).decode()
            script += f"mkdir -p {DROP_IN.rpartition('/')[0]}; echo {content} | base64 -d >{DROP_IN}\n"
            script += "systemctl daemon-reload\n"
        self.sh(f"{script}{arrange}\nsystemctl reset-failed {UNIT} 2>/dev/null || true\nsystemctl restart {UNIT}\n")
        return self.look()

    def start_pod(self, runtime: str = "") -> None:
        """A pod, whose process every look finds again."""
        self.sh(_POD.replace("RUNTIME", f"--runtime={runtime}" if runtime else ""))

    def end_pod(self) -> None:
        """End it."""
        self.sh("crictl rmp -f $(cat /run/work.pod); rm /run/work.pod /run/pod.pid")

    def look(self) -> Seen:
        """What is there now."""
        files: dict[str, tuple[str, bytes]] = {}
        found: dict[str, str] = {}
        for line in self.machine.run("sh", stdin=_LOOK).stdout.splitlines():
            word, _, rest = line.partition(" ")
            if word == "file":
                path, stat, content = rest.split(" ")
                files[path] = (stat, base64.b64decode(content))
            else:
                found[word] = rest
        dump, info = (base64.b64decode(found[name]).decode() for name in ("dump", "info"))
        config = json.loads(info or "{}").get("config", {})
        return Seen(files, found["unit"], dump, config, found["pod"], found["docker"])

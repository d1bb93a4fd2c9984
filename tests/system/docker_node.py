"""A machine's Docker as a test sees it: put it into a known state, then look at all that may not change.

One look is one shell script, so that a table of many cases stays affordable.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.lab import Machine

DAEMON_JSON = "/etc/docker/daemon.json"
DROP_IN = "/etc/systemd/system/docker.service.d/case.conf"
DOCKERD = "/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock"
VERSIONS = {"debian13": "26.1", "debian12": "20.10"}
BACKUP = "/var/lib/gpuready/backup"
#: Other names of runc, which 20.10 forgets whenever it reloads runtimes, whoever asks for it.
ALIASES = frozenset({"Runtimes.io.containerd.runc.v2", "Runtimes.io.containerd.runtime.v1.linux"})
#: What `docker info` counts or measures anew each time.
_RESTLESS = ("SystemTime", "NFd", "NGoroutines", "NEventsListener")

_CLEAR_FILES = """\
rm -rf /etc/docker /srv/docker /var/lib/gpuready/backup /var/lib/gpuready/docker.*
mkdir /etc/docker
"""
_CLEAR_UNIT = f"if [ -e {DROP_IN} ]; then rm -r {DROP_IN.rpartition('/')[0]}; systemctl daemon-reload; fi\n"
_LOOK = f"""
F={DAEMON_JSON}
echo "link $(readlink $F)"
echo "path $(readlink -f $F)"
[ -e $F ] && echo "stat $(stat -Lc '%i %.Y %a %U:%G %F' $F)"
[ -f $F ] && echo "content $(base64 -w0 <$F)"
d=$(readlink -f $F); d=${{d%/*}}
echo "beside $(ls -A "${{d:-/etc/docker}}" 2>/dev/null | tr '\\n' ' ')"
echo "unit $(systemctl show -p ActiveState --value docker.service) $(systemctl show -p MainPID --value docker.service)"
if [ "$(systemctl show -p ActiveState --value docker.service)" = active ]; then
  printf 'info %s\n' "$(docker info --format '{{{{json .}}}}' 2>/dev/null)"
  printf 'before %s\n' "$(docker inspect before --format '{{{{json .State}}}}' 2>/dev/null)"
fi
for kind in original last absent; do
  k="{BACKUP}$F.$kind"
  [ -e "$k" ] && echo "backup.$kind $(base64 -w0 <"$k")"
done
true
"""


@dataclass(frozen=True)
class Seen:
    """What was there: the file, the engine's own answers, the container from before, the copies kept."""

    link: str
    path: str
    stat: str
    content: bytes | None
    beside: str
    unit: str
    info: dict[str, Any]
    before: dict[str, Any]
    backup: dict[str, bytes] = field(default_factory=dict)

    @property
    def file(self) -> tuple[object, ...]:
        """Everything about the file: link, inode, modification time, mode, owner, kind, content."""
        return self.link, self.path, self.stat, self.content, self.beside

    @property
    def mode(self) -> list[str]:
        """Mode and owner."""
        return self.stat.split()[2:4]

    @property
    def document(self) -> Any:
        """The file, parsed by Python without any loss."""
        return parse(self.content or b"")

    def answers(self) -> dict[str, Any]:
        """`docker info` without what never stands still, a key for each runtime. A reload shuffles labels."""
        rest = {k: v for k, v in self.info.items() if k not in (*_RESTLESS, "Runtimes")}
        rest["Labels"] = sorted(rest.get("Labels") or [])
        return rest | {f"Runtimes.{name}": value for name, value in self.info.get("Runtimes", {}).items()}

    def differs(self, before: Seen) -> set[str]:
        """The keys of `docker info` that are not what they were."""
        now, then = self.answers(), before.answers()
        return {key for key in now.keys() | then.keys() if now.get(key) != then.get(key)}


def parse(content: bytes) -> Any:
    """JSON as dockerd takes it: a byte-order mark and an empty file are fine. Numbers keep every digit."""
    return json.loads(content.decode("utf-8-sig").strip() or "{}", parse_float=Decimal)


def exec_start(command: str) -> str:
    """A drop-in that starts dockerd so."""
    return f"[Service]\nExecStart=\nExecStart={command}\n"


class DockerNode:
    """The Docker of one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.name, self.distro, self.sh = machine, machine.name, machine.distro, machine.sh
        self._plain = False

    def prepare(
        self,
        content: bytes | None = None,
        arrange: str = "",
        drop_in: str = "",
        starts: bool = True,
        run: bool = True,
        reuse: bool = False,
    ) -> None:
        """Docker runs, started with that daemon.json or (``starts`` false) with none, which is then put in place.

        ``arrange`` is a script that runs after the file was written, ``drop_in`` one for docker.service. With ``reuse``
        an engine that was started without a file for the last case goes on, and its container, too.
        """
        place = arrange + "\n"
        if content is not None:
            place = f"echo {base64.b64encode(content).decode()} | base64 -d >{DAEMON_JSON}\n{place}"
        if reuse and self._plain and not starts:
            self.sh(f"{_CLEAR_FILES}{place}")
            return
        self._plain = reuse and not starts and not drop_in
        script = f"docker rm -f before >/dev/null 2>&1 || true\n{_CLEAR_FILES}{_CLEAR_UNIT}"
        if drop_in:
            script += (
                f"mkdir -p {DROP_IN.rpartition('/')[0]}; cat >{DROP_IN} <<'X'\n{drop_in}X\nsystemctl daemon-reload\n"
            )
        restart = "systemctl reset-failed docker.service docker.socket 2>/dev/null || true\n"
        restart += "systemctl restart docker.service\n"
        script += place + restart if starts else restart + place
        if run:
            script += "docker rm -f before >/dev/null 2>&1 || true\n"  # of a case that left Docker down
            script += "docker run -d --name before --network none busybox:lab sleep 10000 >/dev/null\n"
        self.sh(script)

    def look(self) -> Seen:
        """What is there now."""
        rows = dict(line.partition(" ")[::2] for line in self.machine.run("sh", stdin=_LOOK).stdout.splitlines())
        content = rows.get("content")
        return Seen(
            link=rows["link"],
            path=rows["path"],
            stat=rows.get("stat", ""),
            content=None if content is None else base64.b64decode(content),
            beside=rows["beside"],
            unit=rows["unit"],
            info=json.loads(rows.get("info") or "{}"),
            before=json.loads(rows.get("before") or "{}"),
            backup={k.partition(".")[2]: base64.b64decode(v) for k, v in rows.items() if k.startswith("backup.")},
        )

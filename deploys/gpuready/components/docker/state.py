"""Facts of Docker: its own answers, its daemon.json, and the command line of dockerd.

The answers are all in JSON: ``docker info`` on the first line, then one inspected container per line.
Sources: the release notes of Docker Engine 25.0 and 28.2 on CDI; dockerd's reference, and docker.service of Debian and
of docker.com, on the command line. Looked up on 2026-11-23.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field

from gpuready.base import json_document
from gpuready.base.documents import read_json
from gpuready.base.facts import Facts, File, Package, Unit, Unknown
from gpuready.base.json_document import DaemonJsonError, Document
from gpuready.base.records import Records

CONFIG = "/etc/docker/daemon.json"
#: Engine 25.0 has features.cdi; 28.2 enables it by default.
CDI_SINCE, CDI_BY_ITSELF = (25, 0), (28, 2)


class Container(Facts):
    """A running Docker container."""

    id: str
    name: str
    image: str
    runtime: str = ""
    gpu: bool = False
    restart: str = "no"
    pid: int = 0


class Docker(Facts):
    """The running engine's own answers (``docker info``, ``docker inspect``)."""

    version: str = ""
    runtimes: dict[str, str] = Field(default_factory=dict)
    default_runtime: str = ""
    live_restore: bool = False
    swarm: bool = False
    rootless: bool = False
    cgroup_driver: str = ""
    cdi_spec_dirs: tuple[str, ...] = ()
    images: int = 0
    containers: tuple[Container, ...] = ()


def docker(r: Records) -> Docker | Unknown | None:
    """Parse Docker's answers; None without Docker."""
    answer = r.run("docker")
    if answer is None or isinstance(answer, Unknown):
        return answer
    info, *inspected = [line for line in answer.split("\n") if line.strip()] or [""]
    try:
        found = read_json(info)
        rows = [read_json(line) for line in inspected]
        return _docker_model(found, rows)
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError) as e:
        return Unknown(unknown=f"docker: its answer is not understood ({type(e).__name__}: {str(e)[:120]})")


def _docker_model(info: dict[str, Any], rows: list[dict[str, Any]]) -> Docker:
    if info.get("ServerErrors"):
        raise ValueError("; ".join(info["ServerErrors"]))
    return Docker(
        version=info.get("ServerVersion") or "",
        runtimes={name: (r or {}).get("path") or "" for name, r in (info.get("Runtimes") or {}).items()},
        default_runtime=info.get("DefaultRuntime") or "",
        live_restore=bool(info.get("LiveRestoreEnabled")),
        swarm=(info.get("Swarm") or {}).get("LocalNodeState") not in (None, "", "inactive"),
        rootless=any("rootless" in o for o in info.get("SecurityOptions") or []),
        cgroup_driver=info.get("CgroupDriver") or "",
        cdi_spec_dirs=tuple(info.get("CDISpecDirs") or ()),
        images=int(info.get("Images") or 0),
        containers=tuple(_container(row) for row in rows),
    )


def _container(row: dict[str, Any]) -> Container:
    runtime = row.get("runtime") or ""
    devices = row.get("devices") or []
    gpu = runtime.startswith("nvidia") or any(
        "gpu" in (c for caps in d.get("Capabilities") or [] for c in caps) or d.get("Driver") in ("nvidia", "cdi")
        for d in devices
    )
    return Container(
        id=row["id"],
        name=(row.get("name") or "").lstrip("/"),
        image=row.get("image") or "",
        runtime=runtime,
        gpu=gpu,
        restart=row.get("restart") or "no",
        pid=int(row.get("pid") or 0),
    )


def engine_version(docker: Docker | Unknown | None, installed: Mapping[str, Package]) -> tuple[int, ...]:
    """Return the version of the running engine, else that of its package; (0,) if both are unknown."""
    text = docker.version if isinstance(docker, Docker) else ""
    for name in ("docker-ce", "docker.io", "moby-engine", "docker"):
        text = text or (installed[name].version.split(":")[-1] if name in installed else "")
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0,)


def gpu_containers(docker: Docker | Unknown | None) -> tuple[str, ...]:
    """Return running containers that use a GPU or run under nvidia, as ``name (image)``."""
    return _named(c for c in _running(docker) if c.gpu)


def all_containers(docker: Docker | Unknown | None) -> tuple[str, ...]:
    """Return all running containers, as ``name (image)``."""
    return _named(_running(docker))


def _running(docker: Docker | Unknown | None) -> tuple[Container, ...]:
    return docker.containers if isinstance(docker, Docker) else ()


def _named(containers: Iterable[Container]) -> tuple[str, ...]:
    return tuple(f"{c.name} ({c.image})" for c in containers)


def daemon_json(files: Mapping[str, File]) -> Document:
    """Return the parsed daemon.json; empty if it cannot be parsed."""
    try:
        return json_document.read(files[CONFIG].data) if CONFIG in files else {}
    except DaemonJsonError:
        return {}


def command_line(running: tuple[str, ...], unit: Unit) -> tuple[str, ...]:
    """Return the command line of the running dockerd, else its unit's ExecStart."""
    return running or tuple(word for word in unit.exec_start if not word.startswith("$"))


def flags(words: tuple[str, ...]) -> dict[str, str]:
    """Return the long flags of a command line without dashes, with their values; of several, the last one."""
    return dict(_given(words))


def added_runtimes(words: tuple[str, ...]) -> dict[str, str]:
    """Return the paths that --add-runtime gives to runtimes, by name. The flag can occur several times."""
    found = (value.partition("=") for flag, value in _given(words) if flag == "add-runtime")
    return {name: path for name, _, path in found}


def _given(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each long flag without dashes, with its value."""
    for word, following in zip(words[1:], (*words[2:], ""), strict=False):
        if word.startswith("--"):
            flag, equals, value = word[2:].partition("=")
            yield flag, value if equals or following.startswith("-") else following


def validation_flags(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return all words except --config-file, for ``dockerd --validate`` with another file."""
    return tuple(
        word
        for before, word in zip(("", *words[1:]), words[1:], strict=False)
        if before != "--config-file" and word.partition("=")[0] != "--config-file"
    )

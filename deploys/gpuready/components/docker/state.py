"""Docker's own answers, all in JSON: ``docker info`` on the first line, then one inspected container per line."""

from typing import Any

from pydantic import Field

from gpuready.base.documents import read_json
from gpuready.base.facts import Facts, Unknown
from gpuready.base.records import Records


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
    root_dir: str = ""
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
        root_dir=info.get("DockerRootDir") or "",
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

"""``gpuready render TARGET``: print configuration for other systems, made from the spec."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from gpuready import __version__
from gpuready.base import resources
from gpuready.base.errors import UsageError
from gpuready.cli.options import EXIT_CODES, RDMA_RESOURCE, STATE, HostVerb, Verb, each_options, hosts, period
from gpuready.cli.request import request
from gpuready.cli.sink import say
from gpuready.cli.workload import agreed, check_agreement, chooses, recorded
from gpuready.fabric import kubernetes
from gpuready.inventory.build import local_values
from gpuready.inventory.fetched import FORMS
from gpuready.inventory.hosts import HostEntry
from gpuready.model.spec import NodeSpec
from gpuready.verbs.render import cloud_init, dashboard, gate, gpu_operator, pod_check, prometheus, pull

_HELP = """Print configuration for monitoring, Docker, Kubernetes, Slurm, systemd or cloud-init. Only docker connects.

\b
  gpuready render grafana > dashboard.json
  gpuready render prometheus -i hosts.yaml
  gpuready render kubernetes --help
"""
_KUBERNETES = """RuntimeClass, networks and a pod for Kubernetes.

Each RDMA port gets a network. The pod has NCCL's settings, GPUs, shared memory and RDMA.

NCCL's settings come from the states that gpuready record printed. Without --state, there are placeholders.

\b
  gpuready render kubernetes
  gpuready render kubernetes -i hosts.yaml --state states.json
"""
_CLOUD_INIT = f"""Print cloud-init user-data for one host. The node runs gpuready apply at its first boot.

As root, pip installs the package of --package. In a clone, python -m pip wheel --no-deps -w dist . builds a wheel,
and sha256sum prints its hash.

\b
  gpuready render cloud-init -i hosts.yaml --limit gpu01 \\
      --package 'https://files.example.com/gpuready-{__version__}-py3-none-any.whl#sha256=HASH' > user-data
"""
_PINNED = f"https://HOST/gpuready-{__version__}-py3-none-any.whl#sha256=HASH, or git+https://HOST/gpuready@COMMIT"

_PULL = """Print a program that installs a systemd service and timer: the node fetches its spec and applies it.

Run the program as root on each node, where gpuready is in /opt/gpuready. The service runs gpuready apply -i URL -i
@local, so the node gets the variables of the group all. Its result goes to NODE.json in --results, where NODE is its
hostname. gpuready report shows the results of all nodes.

\b
  gpuready render pull --spec 'https://HOST/hosts.yaml#signers=/etc/gpuready/allowed_signers' \\
      --results https://HOST/results > pull.sh
"""
_DOCKER = """Print the docker run options that give a container GPUs, shared memory and RDMA on each host.

\b
  gpuready render docker -i hosts.yaml                    the options, and why each
  gpuready render docker -i hosts.yaml --output json
  gpuready render docker -i hosts.yaml --state states.json

This command connects to the hosts. If Docker provides no GPUs yet (exit 3), run gpuready apply first.
"""
_POD_CHECK = """Print a file for a running pod or container: it tests what NCCL needs there, and prints NCCL's settings.

It tests RDMA devices, GIDs, locked memory, GPUs and /dev/shm. It needs sh, coreutils and grep; the settings need Python
3.10 or newer, without packages. The ports are chosen as gpuready nccl chooses them, by nccl in the spec of -i.

\b
  gpuready render pod-check -i hosts.yaml > pod-check.sh
  kubectl exec -i POD -- sh < pod-check.sh
  docker exec -i CONTAINER sh < pod-check.sh
"""
#: Targets that are the same for all hosts: what each one is, and its text.
_FIXED = {
    "rules": ("Alert rules for Prometheus, to go into rule_files.", prometheus.rules),
    "grafana": ("Dashboard, to import into Grafana.", lambda: json.dumps(dashboard.dashboard(), indent=2)),
    "fabric-image": (
        "Dockerfile of nccl-tests, perftest and rdma-core.",
        lambda: resources.document("verbs/render/fabric.Dockerfile"),
    ),
    "slurm": ("Program for Slurm that asks the gate. It serves as Prolog, Epilog and HealthCheckProgram.", gate.slurm),
    "node-problem-detector": (
        "Node condition that asks the gate.",
        lambda: json.dumps(gate.node_problem_detector(), indent=2),
    ),
}


@click.group("render", help=_HELP, epilog=EXIT_CODES, no_args_is_help=True)
def command() -> None:
    """The group."""


def _print(text: Callable[[], str]) -> None:
    say(text().rstrip())


for _name, (_about, _text) in _FIXED.items():
    command.add_command(Verb(_name, callback=partial(_print, _text), help=_about))


@command.command("prometheus", cls=Verb)
@hosts
def _prometheus(**given: Any) -> None:
    """scrape_configs, to go into prometheus.yml. They name each host's node_exporter (RDMA) and dcgm-exporter."""
    say(prometheus.scrape_configs(_chosen("prometheus", given)).rstrip())


@command.command("kubernetes", cls=Verb, help=_KUBERNETES)
@hosts
@STATE
@RDMA_RESOURCE
def _kubernetes(state: str | None, rdma_resource: str, **given: Any) -> None:
    entries = _chosen("kubernetes", given) if state is not None or chooses(given) else ()
    states = recorded(entries, state)
    wanted = agreed(entries, states, "image", "gpus", "shm", "variables", "attachments", "rdma")
    head = kubernetes.head("render kubernetes", wanted, rdma_resource)
    say(kubernetes.document(head, kubernetes.objects(wanted, [*states.values()], rdma_resource)).rstrip())


@command.command("gpu-operator", cls=Verb)
@hosts
def _gpu_operator(**given: Any) -> None:
    """Helm values for the GPU Operator. Turns off what gpuready manages. Without -i, the default spec applies."""
    entries = _chosen("gpu-operator", given) if chooses(given) else ()
    made = {entry.name: gpu_operator.values(entry.spec) for entry in entries}
    made = made or {"": gpu_operator.values(NodeSpec())}
    check_agreement(made)
    values = next(iter(made.values()))
    say(kubernetes.document(gpu_operator.head(values), [values]).rstrip())


@command.command("pod-check", cls=Verb, help=_POD_CHECK)
@hosts
def _pod_check(**given: Any) -> None:
    entries = _chosen("pod-check", given) if chooses(given) else ()
    specs = {entry.name: entry.spec for entry in entries} or {"": NodeSpec()}
    check_agreement({name: pod_check.values(spec) for name, spec in specs.items()})
    say(pod_check.script(next(iter(specs.values()))).rstrip())


@command.command("cloud-init", cls=Verb, help=_CLOUD_INIT)
@hosts
@click.option(
    "--package",
    metavar="URL",
    required=True,
    help=f"What pip installs on the node: {_PINNED}.",
)
def _cloud_init(package: str, **given: Any) -> None:
    if not cloud_init.is_pinned(package):
        raise UsageError(
            f'--package "{package}" does not say with a hash what pip installs as root',
            remedy=f"{_PINNED}, with all 64 or 40 digits",
        )
    entry = _one("cloud-init", given)
    if keys := [key for key, _ in local_values(entry.spec)]:
        raise UsageError(
            f"{entry.name} ({entry.source}): {' and '.join(keys)}: files or variables of this machine, which the node "
            "will not have",
            remedy="gpuready apply from this machine",
        )
    say(cloud_init.user_data(entry.spec, package).rstrip())


@command.command("docker", cls=HostVerb, help=_DOCKER)
@each_options
@STATE
def _docker(state: str | None, **given: Any) -> int:
    from gpuready.cli.online import only_read
    from gpuready.verbs.render.docker import NoGpusError, arguments

    wanted = request("render docker", **given)
    run = only_read(wanted, state)
    specs = {entry.name: entry.spec for entry in wanted.entries}
    for host in run.hosts:
        if host.state is None or host.error is not None:
            continue
        try:
            host.parts["docker_run"] = arguments(specs[host.name], host.state)
        except NoGpusError as e:
            host.fail(e)
    return wanted.deliver(run)


@command.command("pull", cls=Verb, help=_PULL)
@click.option("--spec", required=True, metavar="URL", help=f"The inventory to fetch: {FORMS}.")
@click.option("--results", required=True, metavar="DIR_OR_URL",
              help="Where the result goes: a directory (absolute path), https://... (PUT) or s3://...")  # fmt: skip
@click.option("--every", callback=period, default="1h", show_default=True, metavar="TIME",
              help="Time between two runs, such as 30m, 6h. A random part of at most half of it is added.")  # fmt: skip
def _pull(spec: str, results: str, every: int) -> None:
    say(pull.install(spec, results, every).rstrip())


def _chosen(target: str, given: dict[str, Any]) -> tuple[HostEntry, ...]:
    """Return the chosen hosts; stderr names those that are skipped."""
    found = request(f"render {target}", **given)
    found.tell_skipped()
    return found.entries


def _one(target: str, given: dict[str, Any]) -> HostEntry:
    """Return the one host that is chosen. Raises UsageError for several."""
    entries = request(f"render {target}", **given).entries
    if len(entries) != 1:
        raise UsageError(
            f"{target} needs exactly one host, but {len(entries)} are chosen", remedy="choose one with --limit"
        )
    return entries[0]

"""``gpuready render TARGET``: print configuration for other systems, made from the spec. Does not connect."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import click

from gpuready import __version__
from gpuready.base import resources
from gpuready.base.errors import UsageError
from gpuready.cli.complete import files
from gpuready.cli.options import EXIT_CODES, RDMA_RESOURCE, STATE, Verb, hosts, period
from gpuready.cli.request import request
from gpuready.cli.sink import say
from gpuready.cli.workload import agreed, check_agreement
from gpuready.fabric import kubernetes
from gpuready.inventory.fetched import FORMS
from gpuready.inventory.hosts import HostEntry
from gpuready.model.images import named
from gpuready.model.spec import NodeSpec
from gpuready.verbs.render import cloud_init, dashboard, gate, gcp_batch, gpu_operator, prometheus, pull

_HELP = """Print configuration for other systems: monitoring, Kubernetes, Slurm, systemd, clouds. Does not connect.

\b
  gpuready render grafana > dashboard.json
  gpuready render prometheus -i hosts.yaml
  gpuready render k8s --help
"""
_K8S = """RuntimeClass, networks and a pod for Kubernetes.

Each RDMA port gets a network. The pod has NCCL's settings, GPUs, shared memory and RDMA.

NCCL's settings come from the states that gpuready probe recorded. Without --state, there are placeholders.

\b
  gpuready render k8s
  gpuready render k8s -i hosts.yaml --state states.json
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
hostname. gpuready report reads them all.

\b
  gpuready render pull --spec 'https://HOST/hosts.yaml#signers=/etc/gpuready/allowed_signers' \\
      --results https://HOST/results > pull.sh
"""
_GCP_BATCH = """Job for Google Cloud Batch. It starts torchrun in a container, on one VM with GPUs.

\b
  gpuready render gcp-batch -i hosts.yaml --limit job --machine-type a3-highgpu-8g -- train.py > job.json
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


@click.group("render", help=_HELP, epilog=EXIT_CODES, no_args_is_help=False)
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


@command.command("k8s", cls=Verb, help=_K8S)
@hosts
@STATE
@RDMA_RESOURCE
def _k8s(state: str | None, rdma_resource: str, **given: Any) -> None:
    entries = _chosen("k8s", given) if given["inventory"] or state is not None else ()
    wanted, states = agreed(entries, state)
    head = kubernetes.head("render k8s", wanted, rdma_resource)
    say(kubernetes.document(head, kubernetes.objects(wanted, states, rdma_resource)).rstrip())


@command.command("gpu-operator", cls=Verb)
@hosts
def _gpu_operator(**given: Any) -> None:
    """Helm values for the GPU Operator. Turns off what gpuready manages. Without -i, the default spec applies."""
    entries = _chosen("gpu-operator", given) if given["inventory"] else ()
    made = {entry.name: gpu_operator.values(entry.spec) for entry in entries}
    made = made or {"": gpu_operator.values(NodeSpec())}
    check_agreement(made)
    values = next(iter(made.values()))
    say(kubernetes.document(gpu_operator.head(values), [values]).rstrip())


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
    if keys := cloud_init.local_files(entry.spec):
        raise UsageError(
            f"{entry.name} ({entry.source}): {' and '.join(keys)}: files or variables of this machine, which the node "
            "will not have",
            remedy="gpuready apply from this machine",
        )
    say(cloud_init.user_data(entry.spec, package).rstrip())


@command.command("pull", cls=Verb, help=_PULL)
@click.option("--spec", required=True, metavar="URL", help=f"The inventory to fetch: {FORMS}.")
@click.option("--results", required=True, metavar="DIR_OR_URL",
              help="Where the result goes: a directory (absolute path), https://... (PUT) or s3://...")  # fmt: skip
@click.option("--every", callback=period, default="1h", show_default=True, metavar="TIME",
              help="Time between two runs, such as 30m, 6h. A random part of at most half of it is added.")  # fmt: skip
def _pull(spec: str, results: str, every: int) -> None:
    say(pull.install(spec, results, every).rstrip())


@command.command("gcp-batch", cls=Verb, help=_GCP_BATCH)
@hosts
@click.option("--machine-type", default="", metavar="TYPE", help="Machine type of the VM, such as a3-highgpu-8g.")
@click.option("--accelerator", default="", metavar="TYPE", help="GPUs to attach, for machine types without GPUs.")
@click.option("--boot-image", default="", metavar="IMAGE", help="Boot image. Default: that of Batch for --system.")
@click.option("--system", type=click.Choice(tuple(gcp_batch.IMAGES)), default="debian", show_default=True,
              help="System of the VM: Debian or Container-Optimized OS.")  # fmt: skip
@click.argument("script", nargs=-1, metavar="[-- SCRIPT ARGS...]", shell_complete=files)
def _gcp_batch(
    machine_type: str, accelerator: str, boot_image: str, system: str, script: tuple[str, ...], **given: Any
) -> None:
    words = {
        "a machine type": ("--machine-type, such as a3-highgpu-8g", machine_type),
        "a script": ("-- train.py", script),
    }
    entry = _one("gcp-batch", given, _missing(words))
    spec = entry.spec
    image = spec.verify.image or next((one.ref for one in named(spec.images)), "")
    gpus, repo = spec.hardware.expected_gpus, spec.toolkit.repo
    lacking = {
        **words,
        "an image": (f"verify: {{image: IMAGE}} in the spec of {entry.name}", image),
        "the number of GPUs": (f"hardware: {{gpus: NUMBER}} in the spec of {entry.name}", gpus),
        "a URL of the toolkit's key": ("toolkit: {repo: {key: https://...}}", system == "cos" or "://" in repo.key),
        "GPUs (this machine type has none)": (
            "--accelerator, such as nvidia-tesla-t4, or another --machine-type",
            accelerator or not machine_type or gcp_batch.has_gpus(machine_type),
        ),
    }
    if missing := _missing(lacking):
        raise UsageError(
            f"{entry.name} ({entry.source}): the Batch job needs {'; '.join(missing)}",
            remedy="; ".join(missing.values()),
        )
    assert gpus is not None
    job = gcp_batch.Job(image, machine_type, script, accelerator, boot_image, system)
    if job.contradiction:
        other = "cos" if system == "debian" else "debian"
        raise UsageError(
            f"--boot-image {boot_image} is of another system than --system {system}, whose driver is elsewhere",
            remedy=f"--system {other}",
        )
    say(json.dumps(gcp_batch.job(job, gpus, spec), indent=2))


def _chosen(target: str, given: dict[str, Any]) -> tuple[HostEntry, ...]:
    """Return the chosen hosts; stderr names those that are skipped."""
    found = request(f"render {target}", **given)
    found.tell_skipped()
    return found.entries


def _missing(needed: Mapping[str, tuple[str, object]]) -> dict[str, str]:
    """Return what is missing, each with its remedy."""
    return {what: remedy for what, (remedy, there) in needed.items() if not there}


def _one(target: str, given: dict[str, Any], also: Mapping[str, str] = MappingProxyType({})) -> HostEntry:
    """Return the one host that is chosen. Raises UsageError for several. ``also``: what else is missing."""
    entries = request(f"render {target}", **given).entries if given["inventory"] or not also else ()
    if len(entries) != 1:
        choose = "choose one with --limit" if entries else "-i INVENTORY"
        missing = {f"exactly one host, but {len(entries)} are chosen": choose, **also}
        raise UsageError(f"{target} needs {'; '.join(missing)}", remedy="; ".join(missing.values()))
    return entries[0]

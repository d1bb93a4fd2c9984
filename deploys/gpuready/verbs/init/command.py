"""``gpuready init``: write an inventory to begin with, from options or from answers on a terminal."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gpuready.base.errors import InventoryError, SpecError, SpecErrors, UsageError
from gpuready.cli.complete import files
from gpuready.cli.options import Verb
from gpuready.cli.output import write_new
from gpuready.cli.sink import say, write_stdout

_HELP = """Write an inventory to begin with: your hosts, the default spec, and comments on other settings.

On a terminal it asks for what is missing. It never overwrites a file. The default FILE is hosts.yaml; - is stdout.

\b
  gpuready init
  gpuready init --host 'gpu[01:16]' --user admin --gpus 8
  gpuready init train.yaml --host admin@10.0.0.7 --host 10.0.0.8:2222
"""
_HEAD = """\
# The hosts of gpuready, as an Ansible YAML inventory: hosts, groups, ranges and precedence are Ansible's.
# A host with a `gpuready` value, its own or an inherited one, is managed; all others are left alone.
#
#   gpuready inventory -i {file}     show what this file says
#   gpuready trust -i {file}         store the SSH host keys, once
#   gpuready plan -i {file}          show what would change
#   gpuready apply -i {file}         change it, then verify
#
# `gpuready schema` prints the schema of all keys.

all:
  vars:
"""
#: Lines that are comments until somebody wants them, each of them valid where it stands.
SUGGESTIONS = (
    ("toolkit: {hold: false}", "do not hold the packages of the NVIDIA Container Toolkit"),
    (
        "toolkit: {repo: {url: https://MIRROR/stable/deb/$(ARCH), key: https://MIRROR/gpgkey}}",
        "a mirror, if nodes lack the internet",
    ),
    ("driver: {policy: hold}", "hold the driver's packages; install also installs a version"),
    ("runtimes: {docker: {shm_size: 8g}}", "the size of /dev/shm in new containers"),
    ("memlock: unlimited", "locked memory for RDMA; auto: on nodes with an RDMA port"),
    ("maintenance: {restart: never}", "never restart an engine; idle: when nothing running is affected"),
    ("verify: {image: 'nvidia/cuda:12.4.1-base-ubuntu22.04'}", "an image on the node: verify starts a container, too"),
)
_PLAIN = re.compile(r"[A-Za-z]([A-Za-z0-9_.:\[\]-]*[A-Za-z0-9_\]])?")


@click.command("init", cls=Verb, help=_HELP)
@click.argument("file", default="hosts.yaml", shell_complete=files)
@click.option("--host", "hosts", multiple=True, metavar="[USER@]HOST[:PORT]",
              help="A host, or a range such as gpu[01:16]. Repeatable.")  # fmt: skip
@click.option(
    "--user", metavar="NAME", help="Login user of all hosts: root, or a user with sudo (with a password: -K)."
)
@click.option(
    "--key",
    metavar="PATH",
    shell_complete=files,
    help="SSH private key of all hosts. Default: your SSH configuration decides.",
)
@click.option("--gpus", metavar="auto|none|N", help="GPUs that each host must have (default: auto, any number).")
def command(file: str, hosts: tuple[str, ...], user: str | None, key: str | None, gpus: str | None) -> int:
    path = Path(file).expanduser()
    exists = UsageError(f"{path} exists, and init overwrites nothing", remedy="give another name: gpuready init FILE")
    if file != "-" and (path.exists() or path.is_symlink()):
        raise exists
    if not hosts and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("no host: --host is missing", remedy="gpuready init --host gpu01, or run it on a terminal")
    if not hosts:
        given = click.prompt("Hosts, with commas (admin@10.0.0.7, gpu[01:16])", err=True)
        hosts = tuple(filter(None, (part.strip() for part in given.split(","))))
        user = user or click.prompt("Login user (empty: as ssh decides)", default="", show_default=False, err=True)
        gpus = gpus or click.prompt("GPUs in each host (auto, none, or a number)", default="auto", err=True)
    text = inventory(file if file != "-" else "hosts.yaml", hosts, user or "", key or "", gpus or "auto")
    _check(text)
    if file == "-":
        write_stdout(text)
        return 0
    write_new(path, text, exists)
    say(f"wrote {path}; next: gpuready trust -i {file}, then gpuready plan -i {file}", err=True)
    return 0


def inventory(file: str, hosts: Sequence[str], user: str, key: str, gpus: str) -> str:
    """The text; UsageError for a host that is none."""
    login = f"ansible_user: {_scalar(user)}" if user else "# ansible_user: admin  # or root; -K: sudo's password"
    shared = [f"    {login}"]
    private = (
        f"ansible_ssh_private_key_file: {_scalar(key)}" if key else "# ansible_ssh_private_key_file: ~/.ssh/id_ed25519"
    )
    shared.append(f"    {private}")
    spec = [f"      # {line:<36}  # {why}" for line, why in SUGGESTIONS]
    pinned = f"hardware: {{gpus: {_scalar(gpus)}}}"
    lines = [
        *shared,
        "    gpuready:",
        f"      {pinned:<38}  # auto: any number; a number: a lost GPU is an error; none: a build host",
        *spec,
        "  hosts:",
        *(line for host in hosts for line in _host(host)),
    ]
    return _HEAD.format(file=file) + "\n".join(lines) + "\n"


def _host(text: str) -> list[str]:
    from gpuready.inventory.groups import Graph
    from gpuready.inventory.host_names import split_port
    from gpuready.inventory.sources import read_source

    errors: list[SpecError] = []
    if text.strip() and "," not in text:
        read_source(f"{text},", Graph(), errors, allow_exec=False)
    if errors or not text.strip() or "," in text:
        remedy = errors[0].allowed if errors else "one host for each --host: [USER@]HOST[:PORT]"
        if errors and errors[0].near:
            remedy = f"write {errors[0].near}; ranges are Ansible's"
        raise UsageError(f"--host {text}: not a host", remedy=remedy)
    user, _, address = text.strip().rpartition("@")
    name, port = split_port(address)
    variables = {"ansible_user": _scalar(user)} if user else {}
    variables |= {"ansible_port": str(port)} if port else {}
    inside = ", ".join(f"{key}: {value}" for key, value in variables.items())
    return [f"    {_scalar(name)}:" + (f" {{{inside}}}" if inside else "")]


def _scalar(text: str) -> str:
    """As YAML: plain where that means the same, else quoted."""
    if text.isdecimal() and str(int(text)) == text:
        return text
    words = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
    return text if _PLAIN.fullmatch(text) and text.lower() not in words else "'" + text.replace("'", "''") + "'"


def _check(text: str) -> None:
    """Read it as plan would; UsageError says which answer is wrong."""
    import tempfile

    from gpuready.inventory.hosts import load

    with tempfile.TemporaryDirectory(prefix="gpuready-") as folder:
        path = Path(folder, "hosts.yaml")
        path.write_text(text, encoding="utf-8")
        try:
            load([str(path)])
        except SpecErrors as e:
            first = e.errors[0]
            raise UsageError(f"{first.message}; given {first.given!r}", remedy=first.allowed) from None
        except (SpecError, InventoryError) as e:
            raise UsageError(e.message.replace(f"{path}: ", "")) from None

"""pyinfra's own command line with our deploys does the same work, as cheaply; the guides' blocks run as they are."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.command import python
from tests.lab import DISTROS, access, scale
from tests.pages import BLOCK, PAGES, ROOT, blocks, commands
from tests.system.harness import Sessions, door, listing, pyinfra
from tests.system.host import Host, Hosts

RUNTIMES = "docker info -f '{{json .Runtimes}}'"


@pytest.mark.promise
@pytest.mark.parametrize("distro", DISTROS)
def test_the_plain_doors_converge_and_verify(distro: str, fresh: Hosts, tmp_path: Path) -> None:
    node = fresh(distro)
    where = node.where()
    node.run("printf '{broken' >/etc/docker/daemon.json")
    assert "1.99.0" in door(tmp_path, node.where(toolkit={"version": "1.99.0"}), "converge", code=1)
    assert node.run("cat /etc/docker/daemon.json; rm /etc/docker/daemon.json").stdout == "{broken"

    assert "toolkit.config" in door(tmp_path, where, "verify", code=1)
    door(tmp_path, where, "converge", "verify")
    assert '"nvidia"' in node.run(RUNTIMES).stdout
    with node.untouched(sessions=1):
        door(tmp_path, where, "converge")

    # Both doors mean the same by "converged".
    node.plan("--detailed-exitcode")
    count = Sessions(node)
    door(tmp_path, where, "verify")
    assert count.count() == 2

    node.run('echo \'{"runtimes": {"other": {"path": "runc"}}}\' >/etc/docker/daemon.json; systemctl reload docker')
    assert "docker.runtime:" in door(tmp_path, where, "verify", code=1)


def pyinfra_inventory(folder: Path, node: Host, **spec: object) -> Path:
    """A pyinfra inventory of the machine, with the lab's login and spec; ``spec`` is laid over that."""
    group = yaml.safe_load(node.where().read_text("utf-8"))["all"]["vars"]
    data = {
        "ssh_user": group["ansible_user"],
        "ssh_key": group["ansible_ssh_private_key_file"],
        "ssh_known_hosts_file": str(access.known_hosts()),
        "gpuready": group["gpuready"] | spec,
    }
    path = folder / "inventory.py"
    path.write_text(f"nodes = [({node.address!r}, {data!r})]\n", "utf-8")
    return path


def deploy(folder: Path, node: Host, text: str, *options: str, code: int = 0, **spec: object) -> str:
    """Run a deploy of somebody's own with pyinfra; the spec is the host's data in pyinfra's own inventory."""
    pyinfra_inventory(folder, node, **spec)
    (folder / "deploy.py").write_text(text)
    return pyinfra(folder, *options, "inventory.py", "deploy.py", code=code)


def test_own_pyinfra_code_calls_components_as_deploys(fresh: Hosts, tmp_path: Path) -> None:
    """pyinfra's own inventory and operations, with ours between; the spec is the host's data."""
    node = fresh()
    text = (
        "from pyinfra.operations import files\n"
        "from gpuready.pyinfra import config, docker, ldso, repository, toolkit\n\n"
        "files.directory(path='/opt/driver/lib', _sudo=True)\n"
        "ldso()\nrepository()\ntoolkit()\nconfig()\ndocker()\n"
    )
    deploy(tmp_path, node, text, "-y", ldso=["/opt/driver/lib"])
    assert '"nvidia"' in node.run(RUNTIMES).stdout
    assert "/opt/driver/lib" in node.run("cat /etc/ld.so.conf.d/*gpuready*").stdout
    before = listing(node)
    deploy(tmp_path, node, text, "-y", ldso=["/opt/driver/lib"])
    assert before == listing(node)
    wrong = {"docker": {"shm_size": "8 gigs"}}
    assert f"host.data.gpuready of {node.address}: runtimes.docker.shm_size" in deploy(
        tmp_path, node, text, "-y", code=1, runtimes=wrong
    )


# --- somebody's own operations between ours

CONVERGED = "from pyinfra.operations import server\nfrom gpuready.pyinfra import converge, docker, verify\n\n"
#: A quick machine restarts Docker more often than systemd allows by itself.
RESTART = "systemctl reset-failed docker; systemctl restart docker"
BREAK = f"server.shell('rm /etc/docker/daemon.json; {RESTART}', _sudo=True)\n"


@pytest.mark.fault("stale-proof")
def test_verify_fails_if_a_step_before_it_breaks_docker(shared: Hosts, tmp_path: Path) -> None:
    node = shared()
    deploy(tmp_path, node, f"{CONVERGED}converge()\nverify()\n", "-y")
    told = deploy(tmp_path, node, f"{CONVERGED}docker()\n{BREAK}verify()\n", "-y", code=1)
    assert "docker.config: fail" in told and "docker.runtime: fail" in told
    assert '"nvidia"' not in node.run(RUNTIMES).stdout


@pytest.mark.parametrize("options", [[], ["-y"]], ids=["confirmed", "unasked"])
@pytest.mark.fault("stale-proof")
def test_a_component_plans_from_what_a_step_before_it_left(options: list[str], shared: Hosts, tmp_path: Path) -> None:
    """Without ``-y`` pyinfra detects changes first; a file that changes since then is none that docker may write."""
    node = shared()
    deploy(tmp_path, node, f"{CONVERGED}converge()\nverify()\n", "-y")
    write = f"server.shell('echo {{}} >/etc/docker/daemon.json; {RESTART}', _sudo=True)\n"
    deploy(tmp_path, node, f"{CONVERGED}docker()\n{write}docker()\nverify()\n", *options)
    assert '"nvidia"' in node.run(RUNTIMES).stdout


# --- what messages and guides print


def test_the_fix_for_a_pyinfra_inventory_converges_it(shared: Hosts, tmp_path: Path) -> None:
    node = shared()
    where = pyinfra_inventory(tmp_path, node)
    node.run(f"rm -f /etc/docker/daemon.json; {RESTART}")
    refused = node.gpuready("plan", inventory=where, code=5)
    words = shlex.split(refused.document["error"]["remedy"].rpartition("; or run ")[2])
    subprocess.run(words, cwd=tmp_path, stdin=subprocess.DEVNULL, check=True, timeout=scale.seconds(240))
    assert '"nvidia"' in node.run(RUNTIMES).stdout
    deploys = [str(ROOT / "deploys" / name) for name in ("converge.py", "verify.py")]
    pyinfra(tmp_path, "-y", "inventory.py", *deploys)
    (tmp_path / "other.py").write_text(where.read_text("utf-8").replace("'gpuready'", "'other'"))
    assert f"{node.address} has no data gpuready" in pyinfra(tmp_path, "-y", "other.py", *deploys, code=1)


GUIDES = {
    f"{page.stem}-{number}": (language, text)
    for page in PAGES
    if not page.name.startswith("adding-a-")  # a component, which a test of its own adds
    for number, (language, text) in enumerate(BLOCK.findall(page.read_text("utf-8")))
    if (language == "python" and "gpuready.pyinfra" in text) or (language == "console" and "$ pyinfra " in text)
}


@pytest.mark.promise
@pytest.mark.parametrize("block", GUIDES.values(), ids=GUIDES)
def test_a_guides_own_code_configures_a_pristine_machine(block: tuple[str, str], fresh: Hosts, tmp_path: Path) -> None:
    node = fresh()
    language, text = block
    assert "verify" in text
    if language == "python":
        deploy(tmp_path, node, text, "-y")
    else:
        pyinfra_inventory(tmp_path, node)
        (tmp_path / "deploys").symlink_to(ROOT / "deploys")
        (tmp_path / "inventories").mkdir()
        shutil.copy(ROOT / "inventories/example.py", tmp_path / "inventories")
        shutil.copy(node.where(), tmp_path / "inventories/example.yaml")
        for line in text.splitlines():
            pyinfra(tmp_path, *shlex.split(line)[2:])
    node.verify()


@pytest.mark.promise
def test_python_and_pytest_verify_a_machine(shared: Hosts, tmp_path: Path) -> None:
    """The guide's program and its command for pytest, before and after Docker's configuration is broken."""
    page = ROOT / "docs/guides/own-code.md"
    (program,) = (text for text in blocks(page, "python") if "gpuready.api" in text)
    (command,) = (each for each in commands(page) if each.line.startswith("pytest "))
    node = shared()
    node.apply()
    shutil.copy(node.where(), tmp_path / "hosts.yaml")
    done = python("-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout.split()) == (0, [node.name, "good"]), done.stderr
    assert python("-m", "pytest", "-p", "gpuready.pytest", *command.argv, cwd=tmp_path).returncode == 0
    node.run(f"rm -f /etc/docker/daemon.json; {RESTART}")
    done = python("-c", program, cwd=tmp_path)
    assert done.returncode == 3 and f"{node.name} failed" in done.stdout and "  docker.config: " in done.stdout
    done = python("-m", "pytest", "-p", "gpuready.pytest", *command.argv, cwd=tmp_path)
    assert done.returncode == 1 and f"FAILED gpuready::{node.name}::docker.config" in done.stdout, done.stdout

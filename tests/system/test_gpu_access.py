"""How containers get their GPUs: the toolkit's config.toml, and CDI specs that no longer fit the host.

The machine has no GPU: a spec's files are real driver libraries, the toolkit's programs are the real ones, and where
they need a driver they fail as they do on such a host.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from gpuready.base import resources
from gpuready.base.records import unmarked as records
from gpuready.binaries import cuinit
from gpuready.components.cdi.component import Cdi
from gpuready.contract.compare import compare
from gpuready.contract.component import Change
from gpuready.gpu import triton
from gpuready.gpu.visible import sight_in
from gpuready.model import probe
from gpuready.model.parse import parse
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState
from tests.lab import Lab, Machine
from tests.lab.driver import version
from tests.system.host import LIBRARIES, Host, Hosts

TOML = "/etc/nvidia-container-runtime/config.toml"
FRESH, OLD = "/var/run/cdi/nvidia.yaml", "/etc/cdi/nvidia.yaml"
RECORDED = (Path(__file__).parents[1] / "data/h200/nvidia-ctk-cdi-generate.yaml").read_text("utf-8")
OLDER = {"version": "1.18.2", "floor_exception": {"reason": "test", "until": "2999-01-01"}}
WANTED = {"mode": "cdi", "cuda_compat_mode": "disabled", "hardened": True}


@pytest.fixture(scope="module")
def node(shared: Hosts) -> Host:
    """A machine with Docker, a container, and the libraries of a driver; nothing of gpuready's."""
    machine = shared()
    machine.put_libraries()
    machine.run("docker run -d --restart=no --name work busybox:lab sleep 100000")
    return machine.with_spec(ldso=[LIBRARIES])


def effective(machine: Machine) -> dict[str, Any]:
    """The settings as the node's own nvidia-ctk reads them."""
    return tomlkit.parse(machine.run(f"nvidia-ctk config --config-file={TOML}").stdout).unwrap()


def test_config_toml(node: Host) -> None:
    # The packages come with it in the same run; nvidia-ctk of each version reads what was written.
    assert "config" in node.apply(toolkit=OLDER | WANTED).changed()
    before = node.pids()
    node.run(f"sed -i 's/^mode = .*/& # mine/; s/^disable-require = false/disable-require = true/' {TOML}")
    for toolkit in (OLDER, {}):
        node.apply(toolkit=toolkit | WANTED)
        found = effective(node)
        assert found["nvidia-container-runtime"]["mode"] == "cdi"
        assert found["nvidia-container-runtime"]["modes"]["legacy"]["cuda-compat-mode"] == "disabled"
        assert found["accept-nvidia-visible-devices-envvar-when-unprivileged"] is False
        assert found["accept-nvidia-visible-devices-as-volume-mounts"] is True
        assert found["disable-require"] is True, "the user's own"
        node.settled(toolkit=toolkit | WANTED)
    assert node.pids() == before, "nothing is restarted for it"

    # What the user changed since is kept, what he did not say is left alone.
    node.run(f"sed -i 's/^mode = .*/mode = \"legacy\" # mine/' {TOML}")
    softer = node.with_spec(toolkit={"hardened": False})
    assert softer.plan().diff("config") == {
        "config.accept-nvidia-visible-devices-envvar-when-unprivileged": (False, True),
        "config.accept-nvidia-visible-devices-as-volume-mounts": (True, False),
    }
    softer.apply()
    assert 'mode = "legacy" # mine' in node.run(f"cat {TOML}").stdout


def test_a_config_toml_that_cannot_be_read_stops_the_packages(node: Host) -> None:
    text = node.run(f"cat {TOML}").stdout
    packages = "dpkg -l 'nvidia-container-toolkit*' 'libnvidia-container*'"
    before = node.run(packages).stdout
    node.run(f"cat >{TOML}", stdin=f"{text}\n[broken\n")
    refused = node.apply(toolkit=OLDER | {"mode": "cdi"}, code=1)
    for name in ("toolkit", "config"):
        message = refused.component(name)["error"]["message"]
        assert re.search(rf"{TOML}: it is not valid TOML: .*line \d+", message), message
    assert "config.readable" in refused.checks("fail")
    assert node.run(packages).stdout == before
    node.run(f"cat >{TOML}", stdin=f'{text}\n[nvidia-container-cli]\nno-cgroups = "x"\n')
    # TOML to us, and nothing to nvidia-ctk, which is asked on the node.
    node.apply(toolkit=OLDER | {"mode": "cdi"}, code=1)
    assert node.run(packages).stdout == before
    node.run(f"cat >{TOML}", stdin=text)
    node.apply(toolkit={"mode": "cdi"})


def seen(machine: Machine, driver: str) -> NodeState:
    """The machine's state, with a driver that is loaded: all that this machine cannot have."""
    state = parse(records(machine.run("sh", stdin=probe.script()).stdout))
    return state.model_copy(update={"driver": state.driver.model_copy(update={"module_version": driver})})


def step(machine: Machine, driver: str) -> tuple[tuple[Change, ...], str]:
    """The difference, and what the script that closes it says (nothing: it ended well)."""
    state = seen(machine, driver)
    found = compare(Cdi(), NodeSpec(), state)
    assert not found.error
    (one,) = Cdi().converge(found.diff, NodeSpec(), state)
    done = machine.run("sh", stdin=one.script, check=False)
    assert bool(done.returncode) == bool(done.stderr.strip()), done.stderr
    return found.diff, done.stderr.strip()


def test_cdi_specs_that_do_not_fit(node: Host, lab: Lab) -> None:
    driver = version(lab.driver_libraries("debian13"))
    lines = re.sub(r"580\.159\.04", driver, RECORDED).splitlines(keepends=True)
    there = {f"{LIBRARIES}/{name}" for name in node.run(f"ls {LIBRARIES}").stdout.split()}
    text = 'cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- {name: "0", containerEdits: {env: [A=1]}}\n'
    text += "containerEdits:\n"
    text += "  hooks:\n  - {hookName: createContainer, path: /usr/bin/nvidia-cdi-hook}\n  mounts:\n"
    text += "".join(f"  - {{hostPath: {path}, containerPath: {path}}}\n" for path in sorted(there) if driver in path)
    assert "libcuda" in text and "hostPath: /usr/local/nvidia/lib64/libEGL" in "".join(lines)

    # Without a driver: said, not acted on. The paths of YAML and JSON are looked for on the node itself.
    node.run(f"mkdir -p /etc/cdi /var/run/cdi; cat >{FRESH}", stdin="".join(lines))
    verdicts = node.plan(hardware={"gpus": 1}, code=None)
    assert verdicts.component("cdi")["reason"] == "no NVIDIA driver is loaded"
    stale = verdicts.check("cdi.stale")
    assert stale["status"] == "warn" and "missing files, such as" in stale["evidence"]
    missing = set(seen(node, driver).cdi_missing)
    assert {f"{LIBRARIES}/libEGL_nvidia.so.{driver}", "/dev/nvidiactl"} <= missing
    assert not {f"{LIBRARIES}/libcuda.so.{driver}", "/usr/bin/nvidia-cdi-hook"} & missing

    # Nothing can be made without a driver; what is there stays, and so does what would have gone aside.
    node.run(f"cp {FRESH} {OLD}")
    diff, said = step(node, driver)
    assert {"cdi.missing", "cdi.shadows"} <= {change.key for change in diff}
    assert "nvidia-ctk cdi generate failed" in said and f"{FRESH} is as it was" in said, said
    assert node.run(f"cat {FRESH}; cat {OLD}").stdout == "".join(lines) * 2

    # A spec that fits: only the old one is aside then, and `remove` brings it back.
    node.run(f"cat >{FRESH}", stdin=text)
    diff, said = step(node, driver)
    assert ([change.key for change in diff], said) == (["cdi.shadows"], "")
    assert node.run(f"test ! -e {OLD}; cat /var/lib/gpuready/backup{OLD}.original").stdout == "".join(lines)
    assert compare(Cdi(), NodeSpec(), seen(node, driver)).diff == ()
    assert "nvidia.com/gpu=0" in node.run("nvidia-ctk cdi list").stdout
    other = compare(Cdi(), NodeSpec(), seen(node, "590.1.2"))
    assert f"NVML is {driver}, driver 590.1.2 is loaded" in other.reason

    # JSON, as nvidia-ctk writes it: on one line.
    edits = {"mounts": [{"hostPath": "/gone", "containerPath": "/there"}], "deviceNodes": [{"path": "/dev/gone"}]}
    twice = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0", "containerEdits": edits}]}
    node.run("cat >/var/run/cdi/x.json", stdin=json.dumps(twice, separators=(",", ":")))
    assert {"/gone", "/dev/gone"} <= set(seen(node, driver).cdi_missing)
    assert "/there" not in seen(node, driver).cdi_missing
    shadow = node.plan(hardware={"gpus": 1}, code=None)
    assert "cdi.shadow" in shadow.checks("fail"), shadow.explain()
    assert "nvidia.com/gpu=0" not in node.run("nvidia-ctk cdi list").stdout, "which is why it is a failure"
    node.run("rm /var/run/cdi/x.json")


_IMAGE = """
set -e
I=/tmp/image; L=lib/x86_64-linux-gnu
mkdir -p $I/sbin $I/etc $I/lib64 $I/$L $I/usr/lib
cp /usr/sbin/ldconfig $I/sbin/
cp -L /lib64/ld-linux-x86-64.so.2 $I/lib64/
for l in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do cp -L /$L/$l $I/$L/; done
docker create --name source busybox:lab true >/dev/null
docker export source | tar -C $I -xf - bin
docker rm source >/dev/null
echo /$L >$I/etc/ld.so.conf; ldconfig -r $I
tar -C $I -c . | docker import - glibc:lab >/dev/null
"""


def test_what_a_new_container_tells_of_libcuda(node: Host) -> None:
    """Real libraries, a real image with glibc, and containers under the real runtime; cuInit finds no GPU in them."""
    node.run(_IMAGE)
    look = resources.script("probe/container").split("<<'SH'\n")[1].rpartition("\nSH\n")[0]
    node.run("base64 -d >/root/cuinit && chmod 755 /root/cuinit", stdin=cuinit("x86_64"))

    def told(image: str, *words: str, start: str = "") -> str:
        command = ["docker", "run", "--rm", "--network=none", "-v", f"{LIBRARIES}:{LIBRARIES}:ro", *words]
        command += ["-v", "/root/cuinit:/gpuready-cuinit:ro,z", "--entrypoint", "sh", image, "-c", start + look]
        return node.run(shlex.join(command)).stdout

    # As on GCP Batch: the libraries are mounted, and the image's cache does not know.
    out = told("glibc:lab")
    assert "error while loading shared libraries: libcuda.so.1" in out and "cuinit-exit=127" in out
    assert (sight_in(out).cache, triton.triton3(sight_in(out))) == ({}, "")
    # The path helps the loader, and the third generation; ldconfig helps all.
    out = told("glibc:lab", "-e", f"LD_LIBRARY_PATH={LIBRARIES}")
    assert "cuInit=100 count=-1" in out and triton.triton3(sight_in(out)) == LIBRARIES
    out = told("glibc:lab", start=f"ldconfig {LIBRARIES}; ")
    assert "cuInit=100 count=-1" in out and triton.triton2(sight_in(out)) == LIBRARIES
    # Not even a loader is in this one.
    out = told("busybox:lab")
    assert "no-ldconfig" in out and "cuinit-exit=127" in out and "cuInit=" not in out

    done = node.verify(verify={"image": "glibc:lab"}, code=None)
    assert {"docker.smoke"} <= done.checks("pass"), done.explain()
    assert {"libcuda.triton", "libcuda.copies"} <= done.checks("pass", "warn"), done.explain()
    assert "libcuda.container" in done.checks("skip"), "no driver is loaded"
    assert node.run("ls -d /run/gpuready-* /var/lib/gpuready-* 2>/dev/null || true").stdout == ""


def test_all_of_it_goes_again(node: Host) -> None:
    before = node.pids()
    node.remove()
    assert node.run(f"cat {OLD}").stdout.startswith("---\ncdiVersion")
    # A spec of another driver does not come back; it is kept where no later apply takes it for its own.
    assert node.run(f"ls {TOML} 2>/dev/null; find /var/lib/gpuready -type f 2>/dev/null || true").stdout.split() in (
        [],
        ["/var/lib/gpuready/left/var/run/cdi/nvidia.yaml.original"],
    )
    assert node.pids() == before

"""The driver's libraries where platforms mount them, and a linker that does not know: found, mended, proved.

The libraries are real ones, of Debian's own packages; no module is loaded, as on a machine without a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuready.components.ldso.component import CONF
from tests.lab import DISTROS, Lab, Machine
from tests.system.harness import Gpuready, Inventories, Result, Sessions, listing

pytestmark = pytest.mark.promise

DIRECTORY = "/usr/local/nvidia/lib64"
CACHE = "/etc/ld.so.cache"


@pytest.fixture(scope="module", params=DISTROS)
def node(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Machine]:
    """A machine with a driver's libraries in DIRECTORY, of which nobody told ldconfig."""
    with lab.machine(request.param) as machine:
        machine.put(lab.driver_libraries(request.param), DIRECTORY)
        yield machine


@pytest.fixture
def wanted(node: Machine, inventory: Inventories) -> Path:
    """An inventory that lists DIRECTORY."""
    return inventory(node, ldso=[DIRECTORY])


#: For what does not depend on the distribution.
ONE_DISTRO = pytest.mark.parametrize("node", ["debian13"], indirect=True)


def run(gpuready: Gpuready, verb: str, inventory: Path) -> Result:
    """A verb for this component alone: the toolkit and Docker have tests of their own."""
    words = {"apply": ["apply", "--yes"], "verify": ["verify", "--passive"], "plan": ["plan", "--detailed-exitcode"]}
    return gpuready(*words[verb], "--only", "ldso", inventory=inventory)


def cached(machine: Machine) -> str:
    """What the linker's cache lists from DIRECTORY."""
    return machine.run(f"/sbin/ldconfig -p | grep -F ' => {DIRECTORY}/' || true").stdout


def identity(machine: Machine, path: str) -> str:
    return machine.run(f"stat -c '%i %Y' {path}").stdout


def test_auto_acts_only_beside_a_loaded_module(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    auto = inventory(node)
    planned = run(gpuready, "plan", auto)
    assert (planned.code, planned.component("ldso")["applies"]) == (0, False), planned.explain()
    assert "no NVIDIA module is loaded" in planned.component("ldso")["reason"]
    assert run(gpuready, "apply", auto).host()["outcome"] == "ok"
    assert node.run(f"test ! -e {CONF}", check=False).returncode == 0


def test_verify_names_the_cache_before_and_passes_after(node: Machine, gpuready: Gpuready, wanted: Path) -> None:
    before = run(gpuready, "verify", wanted)
    assert before.code == 3
    assert {"libcuda.ldcache", "ldso.config"} <= before.checks("fail"), before.explain()
    done = run(gpuready, "apply", wanted)
    assert (done.code, done.changed()) == (0, {"ldso"}), done.explain()
    assert "libcuda.so.1 " in cached(node) and "libnvidia-ml.so.1 " in cached(node)
    assert (
        "libcuda.so.1 => " + DIRECTORY in node.run("LD_PRELOAD=libcuda.so.1 LD_TRACE_LOADED_OBJECTS=1 /bin/true").stdout
    )
    assert {"libcuda.ldcache", "libcuda.loader", "ldso.config", "libcuda.stub"} <= done.checks("pass")
    assert run(gpuready, "verify", wanted).code == 0

    count, untouched = Sessions(node), listing(node)
    again = run(gpuready, "apply", wanted)
    assert (again.code, again.host()["outcome"], again.host()["execs"], count.count()) == (0, "ok", 1, 1)
    assert untouched ^ listing(node) == frozenset()


STALE = {
    "the cache is gone": f"rm {CACHE}",
    "the cache was made without the directory": f"mv {CONF} /root/c && ldconfig; mv /root/c {CONF}",
    "a library came later": f"mv {DIRECTORY}/libnvidia-ml.* /root/ && ldconfig; mv /root/libnvidia-ml.* {DIRECTORY}/",
}


@pytest.mark.parametrize("damage", STALE.values(), ids=STALE.keys())
def test_a_stale_cache_is_mended_by_ldconfig_alone(
    node: Machine, gpuready: Gpuready, wanted: Path, damage: str
) -> None:
    if not cached(node):  # else the test before has left it converged
        assert run(gpuready, "apply", wanted).code == 0
    before, good = identity(node, CONF), cached(node)
    node.run(damage)
    assert cached(node) != good
    result = run(gpuready, "apply", wanted)
    assert (result.code, result.changed()) == (0, {"ldso"}), result.explain()
    assert set(result.diff("ldso")) == {f"ldso.cache.{DIRECTORY}"}
    assert cached(node) == good
    assert identity(node, CONF) == before


REFUSED = {
    "there is no such directory": ("/opt/nowhere", "true", "/opt/nowhere"),
    "a link to stubs": ("/opt/linked", "mkdir -p /opt/cuda/stubs; ln -sfn cuda/stubs /opt/linked", "stubs"),
    "a known directory that is really stubs": (
        "/usr/local/nvidia/lib",
        f"mkdir -p /opt/cuda/stubs; cp {DIRECTORY}/libcuda.so.1 /opt/cuda/stubs/; "
        "ln -sfn /opt/cuda/stubs /usr/local/nvidia/lib",
        "stubs",
    ),
}


@ONE_DISTRO
@pytest.mark.parametrize(("directory", "setting", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_what_would_break_programs_is_refused(
    node: Machine, gpuready: Gpuready, inventory: Inventories, directory: str, setting: str, said: str
) -> None:
    node.run(f"{setting or 'true'}")
    before = {row for row in listing(node) if row.startswith("/etc/")}
    result = run(gpuready, "apply", inventory(node, ldso=[directory]))
    node.run("rm -rf /opt/linked /opt/cuda /usr/local/nvidia/lib")
    assert (result.code, result.changed()) == (1, set()), result.explain()
    assert said in result.host()["error"]["message"], result.host()["error"]
    assert {row for row in listing(node) if row.startswith("/etc/")} == before


@ONE_DISTRO
def test_a_stubs_directory_by_name_is_no_spec(node: Machine, gpuready: Gpuready, inventory: Inventories) -> None:
    result = run(gpuready, "plan", inventory(node, ldso=["/usr/local/cuda/lib64/stubs"]))
    assert (result.code, result.document["hosts"]) == (5, {})

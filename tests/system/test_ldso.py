"""The driver's libraries where platforms mount them, and a linker that does not know: found, mended, proved.

The libraries are real ones, of Debian's own packages; no module is loaded, as on a machine without a GPU.
"""

import pytest

from gpuready.components.ldso.component import CONF
from tests.lab import DISTROS, Machine
from tests.system.harness import listing
from tests.system.host import LIBRARIES, Host, Hosts

pytestmark = pytest.mark.promise


@pytest.fixture(scope="module", params=DISTROS)
def node(request: pytest.FixtureRequest, shared: Hosts) -> Host:
    """A machine with a driver's libraries, of which nobody told ldconfig."""
    machine = shared(request.param)
    machine.put_libraries()
    return machine.only("ldso")


@pytest.fixture
def wanted(node: Host) -> Host:
    """The same, with a spec that lists their directory."""
    return node.with_spec(ldso=[LIBRARIES])


#: For what does not depend on the distribution.
ONE_DISTRO = pytest.mark.parametrize("node", ["debian13"], indirect=True)


def cached(machine: Machine) -> str:
    """What the linker's cache lists from that directory."""
    return machine.run(f"/sbin/ldconfig -p | grep -F ' => {LIBRARIES}/' || true").stdout


def identity(machine: Machine, path: str) -> str:
    return machine.run(f"stat -c '%i %Y' {path}").stdout


def test_auto_acts_only_beside_a_loaded_module(node: Host) -> None:
    planned = node.plan("--detailed-exitcode")
    assert planned.component("ldso")["applies"] is False, planned.explain()
    assert "no NVIDIA module is loaded" in planned.component("ldso")["reason"]
    assert node.call("apply", code=3).host()["outcome"] == "ok"  # no cache has the libraries, which verify says
    assert node.run(f"test ! -e {CONF}", check=False).returncode == 0


def test_verify_names_the_cache_before_and_passes_after(node: Host, wanted: Host) -> None:
    assert {"libcuda.ldcache", "ldso.config"} <= wanted.verify("--passive", code=3).checks("fail")
    done = wanted.apply()
    assert done.changed() == {"ldso"}, done.explain()
    assert "libcuda.so.1 " in cached(node) and "libnvidia-ml.so.1 " in cached(node)
    loaded = node.run("LD_PRELOAD=libcuda.so.1 LD_TRACE_LOADED_OBJECTS=1 /bin/true").stdout
    assert f"libcuda.so.1 => {LIBRARIES}" in loaded
    assert {"libcuda.ldcache", "libcuda.loader", "ldso.config", "libcuda.stub"} <= done.checks("pass")
    wanted.verify("--passive")
    with node.untouched(sessions=1):
        wanted.settled()


STALE = {
    "the cache is gone": "rm /etc/ld.so.cache",
    "the cache was made without the directory": f"mv {CONF} /root/c && ldconfig; mv /root/c {CONF}",
    "a library came later": f"mv {LIBRARIES}/libnvidia-ml.* /root/ && ldconfig; mv /root/libnvidia-ml.* {LIBRARIES}/",
}


@pytest.mark.parametrize("damage", STALE.values(), ids=STALE.keys())
def test_a_stale_cache_is_mended_by_ldconfig_alone(node: Host, wanted: Host, damage: str) -> None:
    wanted.apply()
    before, good = identity(node, CONF), cached(node)
    node.run(damage)
    assert cached(node) != good
    result = wanted.apply()
    assert result.changed() == {"ldso"}, result.explain()
    assert set(result.diff("ldso")) == {f"ldso.cache.{LIBRARIES}"}
    assert cached(node) == good
    assert identity(node, CONF) == before


REFUSED = {
    "there is no such directory": ("/opt/nowhere", "true", "/opt/nowhere"),
    "a link to stubs": ("/opt/linked", "mkdir -p /opt/cuda/stubs; ln -sfn cuda/stubs /opt/linked", "stubs"),
    "a known directory that is really stubs": (
        "/usr/local/nvidia/lib",
        f"mkdir -p /opt/cuda/stubs; cp {LIBRARIES}/libcuda.so.1 /opt/cuda/stubs/; "
        "ln -sfn /opt/cuda/stubs /usr/local/nvidia/lib",
        "stubs",
    ),
}


@ONE_DISTRO
@pytest.mark.parametrize(("directory", "setting", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_what_would_break_programs_is_refused(node: Host, directory: str, setting: str, said: str) -> None:
    node.run(setting)
    before = {row for row in listing(node) if row.startswith("/etc/")}
    assert not node.fails(said, ldso=[directory]).changed()
    node.run("rm -rf /opt/linked /opt/cuda /usr/local/nvidia/lib")
    assert {row for row in listing(node) if row.startswith("/etc/")} == before


@ONE_DISTRO
def test_a_stubs_directory_by_name_is_no_spec(node: Host) -> None:
    assert node.plan(ldso=["/usr/local/cuda/lib64/stubs"], code=5).document["hosts"] == {}
